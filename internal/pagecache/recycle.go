package pagecache

import "github.com/pagewire/pagewire/internal/extent"

// share is how much of a cache a file may have that does not fit into it, as far as
// streams bring it there.
func (c *Cache) share() int64 { return c.budget / 4 }

// recycle has a stream that comes to off reuse what it was through with. A file that
// is larger than the cache would else push everything out, only to be pushed out
// itself before anybody comes back to it; and memory that was just used costs less
// than memory that never was. It drops about n clean bytes, those farthest behind
// first.
func (f *File) recycle(off, n int64) {
	if f.held.Load() < f.cache.share() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.size <= f.cache.budget {
		return
	}
	for _, i := range f.chunksLocked(extent.Range{End: off}) {
		c := f.chunks[i]
		for j := 0; j < len(c.runs) && n > 0; {
			if m := c.runs[j]; m.r.End <= off && f.evictLocked(m, 1) {
				n -= m.r.Len()
			} else {
				j++
			}
		}
		if n <= 0 {
			return
		}
	}
}
