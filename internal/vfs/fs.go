// Package vfs is what the faces see of a volume: names and attributes that need not
// be asked for each time, open files that share one cache of bytes, and what programs
// expect of a file that loses its name while it is open. It owns no bytes, which are
// internal/pagecache's, and knows no protocol. A name is a path from the root of the
// volume, slash-separated, "." being the root; the protocol walks it in one trip, so
// what is remembered is remembered by whole path.
//
// What is remembered is never older than Config allows, with three exceptions that are
// exact: what was changed here is known to have changed at once; while the server
// promises to tell when a file changes, its attributes hold; and of a file that is
// written here, size and time are those of the writing. Two paths that are ways to one
// name, through a symbolic link that the server follows, are not known to be that: what
// is done by one of them shows by the other in time, and at once only if it takes a name
// away or is about a file itself.
//
// Changes made here and questions to the server have numbers in one row. An answer says
// nothing about a name or an object that has changed since its question, however late it
// comes.
//
// There are no goroutines here. No lock is held across a request. Lock order: FS.mu →
// pagecache's; events.mu is a leaf.
package vfs

import (
	"container/list"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
)

// Config says how to treat a volume.
type Config struct {
	AttrTime    time.Duration // how long attributes and names of files hold; 0: 1 s, negative: not at all
	DirAttrTime time.Duration // the same of folders and of names that do not exist
	Names       int           // how many names are remembered; 0: 65536
	Kept        int           // how many closed files keep their bytes, at most; 0: 1024

	File pagecache.FileConfig // how to treat the bytes of a file

	// ServerIno says that files have the server's numbers. Those of which it has none,
	// and without ServerIno all, get one here that they keep as long as they are known.
	ServerIno bool
	// CaseSensitive says that the server takes names that differ in case for different
	// ones. Without it that is not known.
	CaseSensitive bool
	// Silly says that on the server the name of an open file cannot be removed or
	// replaced, or stays until the file is closed.
	Silly bool

	Logger *slog.Logger // nil: discard
}

// FS is a volume with what is known of it here. It is safe for concurrent use.
type FS struct {
	vol   remote.Volume
	cache *pagecache.Cache
	cfg   Config
	wants remote.Rights
	seq   atomic.Uint64 // the last number of a change or a question

	mu sync.Mutex
	// guarded by mu
	history history
	names   names
	byID    map[uint64]*inode           // by the server's number
	open    map[remote.File]*inode      // that have handles
	paths   map[string]map[*Handle]bool // the handles by the key of what they are called now
	kept    list.List                   // *inode without handles that have bytes, the oldest first
	numbers uint64                      // how many were made up
}

// New returns the FS of a volume whose files keep their bytes in cache. Both stay the
// caller's.
func New(vol remote.Volume, cache *pagecache.Cache, cfg Config) *FS {
	const second = time.Second
	if cfg.AttrTime == 0 {
		cfg.AttrTime = second
	}
	if cfg.DirAttrTime == 0 {
		cfg.DirAttrTime = second
	}
	if cfg.Names == 0 {
		cfg.Names = 64 << 10
	}
	if cfg.Kept == 0 {
		cfg.Kept = 1024
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &FS{
		vol: vol, cache: cache, cfg: cfg, wants: cache.NewFile(cfg.File).Wants(),
		history: newHistory(),
		names:   newNames(cfg.Names),
		byID:    map[uint64]*inode{},
		open:    map[remote.File]*inode{},
		paths:   map[string]map[*Handle]bool{},
	}
}

// Close forgets the bytes of closed files. Open ones are closed by their owners.
func (f *FS) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.kept.Len() > 0 {
		f.dropLocked(f.kept.Front().Value.(*inode))
	}
}

// ttl is how long attributes hold.
func (f *FS) ttl(kind remote.Kind) time.Duration {
	if kind == remote.Dir {
		return f.cfg.DirAttrTime
	}
	return f.cfg.AttrTime
}
