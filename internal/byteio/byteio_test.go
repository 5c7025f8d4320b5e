package byteio

import (
	"bytes"
	"errors"
	"testing"
)

func TestReaderFailureSticks(t *testing.T) {
	r := NewReader([]byte{1, 2, 3})
	if got := r.Uint16(); got != 0x0201 {
		t.Fatalf("Uint16 = %#x, want 0x0201", got)
	}
	if got := r.Uint32(); got != 0 {
		t.Fatalf("Uint32 past the end = %#x, want 0", got)
	}
	if got := r.Uint8(); got != 0 || !errors.Is(r.Err(), ErrShort) {
		t.Fatalf("after a failure: Uint8 = %d, Err = %v; want 0, ErrShort", got, r.Err())
	}
}

func TestReaderRefusesLies(t *testing.T) {
	for _, n := range []int64{-1, 4, 1 << 62, -1 << 63} {
		r := NewReader([]byte{1, 2, 3})
		if got := r.Bytes(n); got != nil || r.Err() == nil {
			t.Errorf("Bytes(%d) = %v, Err %v; want a failure", n, got, r.Err())
		}
	}
	for _, c := range []struct{ off, n int64 }{{-1, 1}, {3, 1}, {0, 4}, {1 << 62, 1 << 62}, {2, -1}} {
		r := NewReader([]byte{1, 2, 3})
		if got := r.At(c.off, c.n); got != nil || r.Err() == nil {
			t.Errorf("At(%d, %d) = %v, Err %v; want a failure", c.off, c.n, got, r.Err())
		}
	}
	r := NewReader([]byte{1, 2, 3})
	if r.At(1<<40, 0); r.Err() != nil {
		t.Errorf("At(far, 0): Err = %v, want none", r.Err())
	}
}

func FuzzUTF16RoundTrip(f *testing.F) {
	f.Add([]byte{'a', 0, 0x3D, 0xD8, 0x00, 0xDE})             // a, U+1F600
	f.Add([]byte{0x00, 0xD8, 'a', 0, 0x00, 0xDC, 0x00, 0xD8}) // unpaired
	f.Add([]byte{0xFF, 0xFF, 0xFD, 0xFF})
	f.Fuzz(func(t *testing.T, p []byte) {
		p = p[:len(p)&^1]
		s := UTF16(p)
		if got := AppendUTF16(nil, s); !bytes.Equal(got, p) {
			t.Errorf("%x -> %q -> %x", p, s, got)
		}
		if got := UTF16Len(s); got != len(p)/2 {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, len(p)/2)
		}
	})
}
