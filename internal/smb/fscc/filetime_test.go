package fscc

import (
	"math"
	"testing"
	"time"
)

func TestFiletime(t *testing.T) {
	for _, c := range []struct {
		f    Filetime
		want time.Time
	}{
		{116444736000000000, time.Unix(0, 0)},
		{116444736000000000 - 1, time.Unix(-1, 999999900)},
		{132223104000000000, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
		{1, time.Date(1601, 1, 1, 0, 0, 0, 100, time.UTC)},
		{math.MaxInt64, time.Date(30828, 9, 14, 2, 48, 5, 477580700, time.UTC)},
		{0, time.Time{}},
	} {
		if got := c.f.Time(); !got.Equal(c.want) {
			t.Errorf("Filetime(%d).Time() = %v, want %v", c.f, got, c.want)
		}
		if got := FiletimeOf(c.want); got != c.f {
			t.Errorf("FiletimeOf(%v) = %d, want %d", c.want, got, c.f)
		}
	}
	for _, f := range []Filetime{FiletimeFreeze, FiletimeThaw, math.MinInt64} {
		if got := f.Time(); !got.IsZero() {
			t.Errorf("Filetime(%d).Time() = %v, want none", f, got)
		}
	}
	for _, c := range []struct {
		t    time.Time
		want Filetime
	}{
		{time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), 1},
		{time.Date(1600, 12, 31, 23, 59, 59, 0, time.UTC), 1},
		{time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC), 1}, // 0 would be no time
		{time.Date(30828, 9, 14, 2, 48, 6, 0, time.UTC), math.MaxInt64},
		{time.Date(200000, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxInt64},
		{time.Unix(0, 199), 116444736000000001},
		{time.Unix(0, 0).In(time.FixedZone("", 3600)), 116444736000000000},
	} {
		if got := FiletimeOf(c.t); got != c.want {
			t.Errorf("FiletimeOf(%v) = %d, want %d", c.t, got, c.want)
		}
	}
}

func FuzzFiletime(f *testing.F) {
	f.Add(int64(116444736000000000))
	f.Add(int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64 - 56))
	f.Add(int64(-1))
	f.Fuzz(func(t *testing.T, n int64) {
		if got, want := FiletimeOf(Filetime(n).Time()), Filetime(max(n, 0)); got != want {
			t.Errorf("%d becomes %d, want %d", n, got, want)
		}
	})
}
