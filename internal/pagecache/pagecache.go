// Package pagecache keeps the bytes of remote files: it reads ahead, writes behind,
// and forgets what the server no longer allows it to keep. It knows files only as
// the seam shows them (internal/remote), and no protocol, no names and no attributes
// beyond a size.
//
// Two things are kept apart. A run is memory that stands for an aligned range of a
// file. Which bytes of it count is said by sets of byte ranges: valid bytes are what
// a reader may have, dirty ones (always valid, too) are still to be written, flying
// ones are under way to the server. So there is no state per page: a write reads
// nothing first, however small it is, and a page may be larger than what the server
// reads at once, or much smaller.
//
// The rules that keep it exact:
//   - Bytes that come from the server arrive in memory that no reader sees. They are
//     published under the file's lock, and never over bytes that are valid.
//   - What is written, cut off or invalidated while a fill is under way is noted in
//     the fill, which then does not publish it, even if it is not valid any more.
//   - Flying bytes do not change: who wants to write over them waits for the answer.
//     So what is signed is what is sent, and nothing written meanwhile is taken for
//     written. Direct writes and truncations claim their range, for which the same
//     holds, and of those that overlap each has its turn.
//   - What may not be kept is read from and written to the server directly, after
//     dirty bytes of that range are written.
//
// Goroutines: a cache's are its requests under way and one per file that is being
// written back or loses its rights; Close joins them all. Lock order: Open.mu →
// File.mu → Cache.mu. Under File.mu bytes are copied, a quarter of a megabyte at most
// at a time, so that a reader sees all of such a piece of a write or nothing of it; no
// lock is held across a request.
package pagecache

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// What New accepts.
const (
	MinPage   = 4 << 10
	MaxPage   = 1 << 20
	minBudget = 4 // pages
)

// Config says how large a cache is. Its zero value is a cache of 256 MiB with pages
// of 4 KiB.
type Config struct {
	PageSize int
	Budget   int64        // bytes
	Heap     bool         // take the memory from the Go heap, where the race detector sees it
	Logger   *slog.Logger // nil: discard
}

// Cache is the memory that files share. It is safe for concurrent use.
type Cache struct {
	page   int64
	budget int64
	heap   bool
	unmap  func() error // gives the memory back
	logger *slog.Logger
	ctx    context.Context // of the work in the background; ends with Close
	end    context.CancelFunc
	bg     sync.WaitGroup
	counts counts

	freed   notice       // memory was freed, or dirty bytes were written
	dirty   atomic.Int64 // bytes that are dirty or being written, of all files
	streams atomic.Int64 // opens that read ahead

	mu sync.Mutex
	// guarded by mu
	closed  bool
	arena   *arena
	clock   ring           // published runs, the next candidate for eviction first
	writing map[*File]bool // files that have dirty bytes
}

// New returns an empty cache.
func New(cfg Config) (*Cache, error) {
	if cfg.PageSize == 0 {
		cfg.PageSize = MinPage
	}
	if cfg.Budget == 0 {
		cfg.Budget = 256 << 20
	}
	page := int64(cfg.PageSize)
	if page < MinPage || page > MaxPage || bits.OnesCount64(uint64(page)) != 1 {
		return nil, fmt.Errorf("page size %d is no power of two from %d to %d", page, MinPage, MaxPage)
	}
	if cfg.Budget < minBudget*page {
		return nil, fmt.Errorf("cache size %d is less than %d pages of %d", cfg.Budget, minBudget, page)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cache{page: page, budget: cfg.Budget / page * page, heap: cfg.Heap, logger: cfg.Logger, writing: map[*File]bool{}}
	var memory []byte
	if c.heap {
		memory = make([]byte, c.budget)
	} else {
		var err error
		if memory, c.unmap, err = mapMemory(int(c.budget)); err != nil {
			return nil, fmt.Errorf("reserve %d bytes for the page cache: %w", c.budget, err)
		}
	}
	c.arena = newArena(memory, cfg.PageSize)
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Close gives the memory back, once nothing uses it any more. Every file must have
// been closed before; what they had is lost.
func (c *Cache) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	c.end()
	c.bg.Wait()
	for _, f := range c.files() {
		f.wipe()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unmapLocked()
}

// unmapLocked gives the memory back, unless somebody still looks at some of it, and
// whoever does that last will.
func (c *Cache) unmapLocked() error {
	if c.heap || c.arena.memory == nil || c.arena.free < c.budget {
		return nil
	}
	c.arena.memory = nil
	return c.unmap()
}

// files returns the files that have memory.
func (c *Cache) files() []*File {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := map[*File]bool{}
	m := c.clock.first
	for range c.clock.n {
		files[m.file] = true
		m = m.next
	}
	return slices.Collect(maps.Keys(files))
}

// background runs f in the background, unless the cache is closed.
func (c *Cache) background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.bg.Go(f)
	return true
}

// notice wakes whoever waits for something to change. Take the channel before
// looking whether it has.
type notice struct {
	mu sync.Mutex
	ch chan struct{} // nil: nobody waits; guarded by mu
}

func (n *notice) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *notice) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}
