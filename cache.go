package pagewire

import (
	"os"

	"github.com/pagewire/pagewire/internal/pagecache"
)

// Cache is memory that keeps the bytes of files. One may serve any number of file
// systems, which then share its size. It is safe for concurrent use.
type Cache struct{ pages *pagecache.Cache }

// CacheConfig says how large a Cache is. The zero value means the defaults.
type CacheConfig struct {
	Size     int64 // bytes; 0: a quarter of the memory there is, 256 MiB at most
	PageSize int   // bytes, a power of two from 4 KiB to 1 MiB; 0: 4 KiB
	OnHeap   bool  // take the memory from the Go heap, where the race detector sees it
}

// NewCache returns an empty cache. Of its memory, nothing is used before it is needed.
func NewCache(cfg CacheConfig) (*Cache, error) {
	if cfg.Size == 0 {
		cfg.Size = defaultCacheSize(os.DirFS("/"))
	}
	pages, err := pagecache.New(pagecache.Config{PageSize: cfg.PageSize, Budget: cfg.Size, Heap: cfg.OnHeap})
	if err != nil {
		return nil, err
	}
	return &Cache{pages}, nil
}

// Close gives the memory back. The file systems that use it must be closed before.
func (c *Cache) Close() error { return c.pages.Close() }

// CacheStats is a snapshot of a cache.
type CacheStats struct {
	Hits, Misses int64 // reads that found all they asked for, and others

	// Bytes that were read before anybody asked; of these, those that were used then,
	// and those that were dropped without it.
	Ahead, AheadUsed, AheadWasted int64

	Cached  int64 // bytes of memory in use, all of it off the Go heap
	Dirty   int64 // bytes that are still to be written
	Evicted int64 // bytes that had to make room
	Size    int64 // bytes that may be used
}

// Stats returns what the cache has done, for all that use it.
func (c *Cache) Stats() CacheStats {
	s := c.pages.Stats()
	return CacheStats{
		Hits: s.Hits, Misses: s.Misses,
		Ahead: s.Ahead, AheadUsed: s.AheadUsed, AheadWasted: s.AheadWasted,
		Cached: s.Cached, Dirty: s.Dirty, Evicted: s.Evicted, Size: s.Budget,
	}
}
