package meter

import (
	"iter"
	"math"
	"math/bits"
	"sync/atomic"
)

// buckets is how many a histogram has. The last one, from 2^46, has whatever is
// larger, too: no request carries that much, or takes two years.
const buckets = 48

// bucket returns where v counts: the first bucket has 0 and 1, each other one what
// is larger than a power of two up to the next one. So the sizes that requests have,
// which are powers of two, stand at the upper bound of theirs.
func bucket(v int64) int {
	return min(bits.Len64(uint64(max(v, 1)-1)), buckets-1)
}

// counters is a histogram under construction.
type counters [buckets]atomic.Int64

func (c *counters) add(v int64) { c[bucket(v)].Add(1) }

func (c *counters) load() (h Histogram) {
	for i := range c {
		h.counts[i] = c[i].Load()
	}
	return h
}

// Histogram counts values by power of two. Its zero value is empty.
type Histogram struct{ counts [buckets]int64 }

// Count returns how many values there are.
func (h Histogram) Count() (n int64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Quantile returns the upper bound of the bucket with the value that the share q of
// all, from 0 to 1, does not exceed. It is 0 if there is no value.
func (h Histogram) Quantile(q float64) int64 {
	all := h.Count()
	if all == 0 {
		return 0
	}
	left := max(int64(math.Ceil(min(max(q, 0), 1)*float64(all))), 1)
	for i, c := range h.counts {
		if left -= c; left <= 0 {
			return high(i)
		}
	}
	return high(buckets - 1)
}

// Bucket is a range of values, bounds included, and how many are in it.
type Bucket struct{ Low, High, Count int64 }

// All yields the buckets that have values, the smallest first.
func (h Histogram) All() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for i, c := range h.counts {
			if c != 0 && !yield(Bucket{low(i), high(i), c}) {
				return
			}
		}
	}
}

// Sub returns what was counted after older, which must be of the same Meter.
func (h Histogram) Sub(older Histogram) Histogram {
	for i, c := range older.counts {
		h.counts[i] -= c
	}
	return h
}

func low(i int) int64 {
	if i == 0 {
		return 0
	}
	return 1<<(i-1) + 1
}

func high(i int) int64 { return 1 << i }
