package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakeClock is a clock that tests set.
type fakeClock struct{ t time.Time }

func (c *fakeClock) now() time.Time          { return c.t }
func (c *fakeClock) advance(d time.Duration) { c.t = c.t.Add(d) }

func TestMeter(t *testing.T) {
	clock := &fakeClock{t: time.Unix(1e9, 0)}
	m := newMeter(clock.now)
	for range 209 {
		m.found(1 << 20)
	}
	m.found(4 << 30)
	m.walked.Store(true)
	none := func() int64 { return 0 }
	for range 37 {
		small := m.begin("small", 1<<20, 0, none)
		m.end(small, 1<<20, nil)
	}
	failed := m.begin("broken", 1<<20, 0, none)
	m.end(failed, 0, errors.New("broken"))

	var done int64
	big := m.begin("raw/a.mov", 4<<30, 2<<30, func() int64 { return done })
	m.begin("raw/b.jpg", 1<<20, 0, none)
	m.snapshot()
	for range 10 {
		clock.advance(time.Second)
		done += 54 << 20
		m.snapshot()
	}
	want := "raw/a.mov  63%  2.5/4.0 GiB  57 MB/s  ETA 0:28  37/210 files"
	if got := m.snapshot().String(); got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	m.end(big, done, nil)
	want = "raw/b.jpg  25%  0.6/2.2 GiB  57 MB/s  ETA 0:31  38/210 files"
	if got := m.snapshot().String(); got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}

func TestSnapshotWithoutTotals(t *testing.T) {
	s := snapshot{Name: "a\x1b[2J", Total: 0, TotalFiles: 3}
	if got, want := s.String(), "a?[2J  100%  0/0 B  0.0 kB/s  ETA -:--  0/3+ files"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}

func TestBarFits(t *testing.T) {
	s := snapshot{Name: "some/folder/with/a/rather/long/name.mov", Done: 1 << 30, Total: 4 << 30, Rate: 1e8, Files: 1, TotalFiles: 2, TotalsFinal: true}
	for width := range 140 {
		if got := len([]rune(s.bar(width))); got > width {
			t.Errorf("bar(%d) is %d wide: %q", width, got, s.bar(width))
		}
	}
	want := "some/folder/with/a/rather/long/name.mov  [====              ]  25%  1.0/4.0 GiB  100 MB/s  ETA 0:32  1/2 files"
	if got := s.bar(110); got != want {
		t.Errorf("bar(110) = %q, want %q", got, want)
	}
}

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := 0
		p := logLines(newMeter(time.Now), logEvery, func(snapshot) { lines++ })
		<-time.After(35 * time.Second)
		p.stop()
		if lines != 3 {
			t.Errorf("%d lines in 35 s, want 3", lines)
		}
	})
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		files, bytes int64
		took         time.Duration
		want         string
	}{
		{210, 33500000000, 299 * time.Second, "210 files, 31.2 GiB in 4:59, 112 MB/s"},
		{1, 1 << 30, 900 * time.Millisecond, "1 file, 1.0 GiB in 0.9 s, 1193 MB/s"},
		{0, 0, 0, "0 files, 0 B in 0.0 s, 0.0 kB/s"},
	} {
		if got := summary(c.files, c.bytes, c.took); got != c.want {
			t.Errorf("summary(%d, %d, %v) = %q, want %q", c.files, c.bytes, c.took, got, c.want)
		}
	}
}
