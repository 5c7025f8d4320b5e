package pagecache

import (
	"cmp"
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/extent"
)

// run is memory that stands for an aligned range of a file. What of it counts, the
// file's sets say. One reference is the file's, as long as the run is in its index;
// the others are pins of those who use the memory outside of the file's lock. The
// last one frees it.
type run struct {
	file  *File
	r     extent.Range // of the file
	mem   []byte
	at    int64 // in the arena
	order int
	refs  atomic.Int32
	used  atomic.Bool // since the clock last came by
	ahead atomic.Bool // read ahead, and not yet used by anybody

	prev, next *run // in the clock; guarded by Cache.mu
}

// bytes returns the run's memory for the part of r that it stands for.
func (m *run) bytes(r extent.Range) []byte {
	r = r.Intersect(m.r)
	return m.mem[r.Off-m.r.Off : r.End-m.r.Off]
}

// touch notes that somebody reads from the run.
func (m *run) touch() {
	if !m.used.Load() {
		m.used.Store(true)
	}
	if m.ahead.Load() && m.ahead.CompareAndSwap(true, false) {
		m.file.cache.counts.aheadUsed.Add(m.r.Len())
	}
}

func (c *Cache) pin(m *run) { m.refs.Add(1) }

func (c *Cache) unpin(m *run) {
	if m.refs.Add(-1) == 0 {
		c.release(m)
	}
}

// maxIdle is how many pieces of free memory are kept from the system.
const maxIdle = 4

// release frees a run's memory.
func (c *Cache) release(m *run) {
	if m.ahead.Load() {
		c.counts.aheadWasted.Add(m.r.Len())
	}
	c.mu.Lock()
	var err error
	if piece := c.arena.give(m.at, m.order); piece >= 0 && c.arena.idle > maxIdle && !c.heap {
		c.arena.withdraw(piece)
		c.mu.Unlock()
		order := c.arena.order(maxRun)
		err = forget(c.arena.block(piece<<maxRunShift, order))
		c.mu.Lock()
		c.arena.give(piece<<maxRunShift, order)
		c.arena.idle-- // it is free, but has no pages
	}
	if c.closed {
		err = cmp.Or(err, c.unmapLocked())
	}
	c.mu.Unlock()
	if err != nil {
		c.logger.Debug("page cache keeps its memory", "err", err)
	}
	c.freed.wake()
}

// memory returns a run that stands for the pages of r, pinned once, in a file's
// name; nil if there is no memory. It evicts what it needs.
func (c *Cache) memory(f *File, r extent.Range) *run {
	order := c.arena.order(r.Len())
	at := c.take(order)
	if at < 0 {
		return nil
	}
	m := &run{file: f, r: extent.Range{Off: r.Off, End: r.Off + c.page<<order}, at: at, order: order, mem: c.arena.block(at, order)}
	m.refs.Store(1)
	return m
}

func (c *Cache) take(order int) int64 {
	for tries := 0; ; tries++ {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return -1
		}
		at := c.arena.take(order)
		c.mu.Unlock()
		if at >= 0 || tries == evictions || !c.evict(c.arena.size(order)) {
			return at
		}
	}
}

const (
	// evictions is how often memory is freed before a block of it is given up on, which
	// may not come together.
	evictions = 4
	// refusals is how many runs that have to stay are looked at before memory is given
	// up on: there may be as many as there are pages.
	refusals = 1024
)

// evict frees about n bytes of clean runs that were not used lately, and reports
// whether it freed any. The clock comes by twice, as a run that was used is spared
// the first time.
func (c *Cache) evict(n int64) bool {
	freed, refused, round := int64(0), 0, c.runs()
	for i := 0; i < 2*round && freed < n && refused < refusals; i++ {
		m := c.candidate(i < round)
		if m == nil {
			continue
		}
		if m.file.evict(m) {
			freed += m.r.Len()
		} else {
			refused++
		}
		c.unpin(m)
	}
	return freed > 0
}

func (c *Cache) runs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.n
}

// candidate turns the clock by one, and returns what it then points to, pinned,
// unless that is pinned, or spare says to spare what was used since the clock last
// came by.
func (c *Cache) candidate(spare bool) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.clock.first
	if m == nil {
		return nil
	}
	c.clock.first = m.next
	if m.used.Swap(false) && spare || m.refs.Load() > 1 {
		return nil
	}
	c.pin(m)
	return m
}

// ring is a list of runs in a circle.
type ring struct {
	first *run
	n     int
}

func (l *ring) add(m *run) {
	l.n++
	if l.first == nil {
		m.prev, m.next = m, m
		l.first = m
		return
	}
	m.prev, m.next = l.first.prev, l.first
	m.prev.next, m.next.prev = m, m
}

func (l *ring) remove(m *run) {
	l.n--
	m.prev.next, m.next.prev = m.next, m.prev
	if l.first == m {
		l.first = m.next
	}
	if l.n == 0 {
		l.first = nil
	}
	m.prev, m.next = nil, nil
}
