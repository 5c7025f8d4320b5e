package main

import (
	"testing"
	"time"
)

func TestResume(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	want := partialState{Source: "//nas/media/a", Size: 100, ModTime: at}
	for _, c := range []struct {
		name    string
		state   partialState
		partial int64
		have    int64
	}{
		{"as recorded", partialState{"//nas/media/a", 100, at, 60}, 80, 60},
		{"in another zone", partialState{"//nas/media/a", 100, at.In(time.FixedZone("", 3600)), 60}, 60, 60},
		{"complete", partialState{"//nas/media/a", 100, at, 100}, 100, 100},
		{"another source", partialState{"//nas/media/b", 100, at, 60}, 80, 0},
		{"another size", partialState{"//nas/media/a", 101, at, 60}, 80, 0},
		{"another time", partialState{"//nas/media/a", 100, at.Add(1), 60}, 80, 0},
		{"partial cut short", partialState{"//nas/media/a", 100, at, 60}, 59, 0},
		{"more than all", partialState{"//nas/media/a", 100, at, 101}, 200, 0},
		{"negative", partialState{"//nas/media/a", 100, at, -1}, 80, 0},
		{"empty", partialState{}, 80, 0},
	} {
		if got := c.state.resume(want, c.partial); got != c.have {
			t.Errorf("%s: resume = %d, want %d", c.name, got, c.have)
		}
	}
}
