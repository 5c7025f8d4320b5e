package pagecache

import "sync/atomic"

// counts is what a cache has done.
type counts struct {
	hits, misses                  atomic.Int64 // reads
	ahead, aheadUsed, aheadWasted atomic.Int64 // bytes
	evicted                       atomic.Int64 // bytes
}

// Stats is a snapshot of a cache. All but the first two are bytes.
type Stats struct {
	Hits, Misses                  int64 // reads that found all they wanted, and that had to wait; none that went past
	Ahead, AheadUsed, AheadWasted int64 // read ahead; of runs that were used then, and that were dropped unused
	Evicted                       int64
	Cached, Dirty                 int64 // memory in use; bytes to be written
	Budget                        int64 // of memory, off the Go heap
}

// Stats returns what the cache is and has done.
func (c *Cache) Stats() Stats {
	s := Stats{
		Hits: c.counts.hits.Load(), Misses: c.counts.misses.Load(),
		Ahead: c.counts.ahead.Load(), AheadUsed: c.counts.aheadUsed.Load(), AheadWasted: c.counts.aheadWasted.Load(),
		Evicted: c.counts.evicted.Load(), Dirty: c.dirty.Load(), Budget: c.budget,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arena != nil {
		s.Cached = c.budget - c.arena.free
	}
	return s
}
