package meter

import (
	"math"
	"slices"
	"testing"
)

func histogram(values ...int64) Histogram {
	var c counters
	for _, v := range values {
		c.add(v)
	}
	return c.load()
}

func TestBuckets(t *testing.T) {
	for _, c := range []struct{ v, low, high int64 }{
		{math.MinInt64, 0, 1}, {-1, 0, 1}, {0, 0, 1}, {1, 0, 1}, {2, 2, 2}, {3, 3, 4}, {4, 3, 4}, {5, 5, 8},
		{1<<20 - 1, 1<<19 + 1, 1 << 20}, {1 << 20, 1<<19 + 1, 1 << 20}, {1<<20 + 1, 1<<20 + 1, 1 << 21},
		{1 << 46, 1<<45 + 1, 1 << 46}, {1<<46 + 1, 1<<46 + 1, 1 << 47}, {math.MaxInt64, 1<<46 + 1, 1 << 47},
	} {
		got := slices.Collect(histogram(c.v).All())
		if want := []Bucket{{c.low, c.high, 1}}; !slices.Equal(got, want) {
			t.Errorf("%d is in %v, want %v", c.v, got, want)
		}
	}
	for i := 1; i < buckets; i++ {
		if low(i) != high(i-1)+1 {
			t.Errorf("bucket %d starts at %d, and the one before ends at %d", i, low(i), high(i-1))
		}
	}
}

func TestQuantile(t *testing.T) {
	var hundred []int64
	for i := range int64(100) {
		hundred = append(hundred, i+1)
	}
	for _, c := range []struct {
		name string
		h    Histogram
		q    float64
		want int64
	}{
		{"none", Histogram{}, 0.5, 0},
		{"one", histogram(5), 0, 8},
		{"one", histogram(5), 1, 8},
		{"two", histogram(1, 1<<20), 0.5, 1},
		{"two", histogram(1, 1<<20), 0.51, 1 << 20},
		{"hundred", histogram(hundred...), 0, 1},
		{"hundred", histogram(hundred...), 0.01, 1},
		{"hundred", histogram(hundred...), 0.02, 2},
		{"hundred", histogram(hundred...), 0.5, 64},
		{"hundred", histogram(hundred...), 0.64, 64},
		{"hundred", histogram(hundred...), 0.65, 128},
		{"hundred", histogram(hundred...), 1, 128},
		{"below", histogram(hundred...), -1, 1},
		{"above", histogram(hundred...), 7, 128},
		{"endless", histogram(hundred...), math.Inf(1), 128},
		{"largest", histogram(math.MaxInt64), 0.5, 1 << 47},
	} {
		if got := c.h.Quantile(c.q); got != c.want {
			t.Errorf("%s: Quantile(%v) = %d, want %d", c.name, c.q, got, c.want)
		}
	}
}

func TestSub(t *testing.T) {
	older := histogram(1, 5, 5, 4096)
	newer := histogram(1, 5, 5, 4096, 5, 1<<20, 1<<20)
	diff := newer.Sub(older)
	if got, want := slices.Collect(diff.All()), []Bucket{{5, 8, 1}, {1<<19 + 1, 1 << 20, 2}}; !slices.Equal(got, want) {
		t.Errorf("Sub: %v, want %v", got, want)
	}
	if got := newer.Count(); got != 7 {
		t.Errorf("Sub changed what it was called on: %d values, want 7", got)
	}
	for b := range diff.All() { // which may be left early
		if b.Count != 1 {
			t.Errorf("first bucket %v", b)
		}
		break
	}
}
