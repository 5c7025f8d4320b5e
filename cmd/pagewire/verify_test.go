package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCompareStreams(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 300000)
	changed := bytes.Clone(long)
	changed[2345678] ^= 1
	for _, c := range []struct {
		name string
		a, b []byte
		want string // in the error; "": none
	}{
		{"same", long, long, ""},
		{"empty", nil, nil, ""},
		{"a byte", long, changed, "at byte 2345678"},
		{"the copy is short", long, long[:2000001], "it ends after 2000001 bytes"},
		{"the copy is empty", long, nil, "it ends after 0 bytes"},
		{"the copy is long", long[:2000001], long, "it goes on after 2000001 bytes"},
		{"the source is empty", nil, long, "it goes on after 0 bytes"},
	} {
		err := compareStreams(bytes.NewReader(c.a), bytes.NewReader(c.b))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.Is(err, errDiffers) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want a difference, %q", c.name, err, c.want)
		}
	}
}
