package pagecache

import (
	"context"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/meter"
	"github.com/pagewire/pagewire/internal/remote"
)

// ErrClosed is what calls on a closed Open or of a closed Cache end with.
var ErrClosed = fs.ErrClosed

// Mode says what is kept of a file.
type Mode uint8

const (
	Strict   Mode = iota // what the server gives rights for
	None                 // nothing
	Loose                // everything, whatever others do; see Learn
	ReadOnly             // what is read, since nobody writes
)

// FileConfig says how to treat a file. Its zero value is Strict.
type FileConfig struct {
	Mode          Mode
	Ahead         int64                // read ahead exactly so many bytes; 0: as many as pay off
	NoCommit      bool                 // Sync only writes, and does not ask the server to make it durable
	Reads, Writes *meter.Meter         // count requests; nil: nobody does
	Temporary     func(err error) bool // says that a write may succeed later; nil: never
}

// File is what is kept of one file, whoever has it open. It is safe for concurrent
// use, and is told of rights as remote.Events.
type File struct {
	cache *Cache
	cfg   FileConfig

	changed notice        // something below has changed
	held    atomic.Int64  // bytes of the runs in the index
	appends chan struct{} // full while somebody writes at the end

	mu sync.RWMutex
	// guarded by mu
	remote  remote.File // nil while nobody has the file open
	told    remote.File // what rights and epoch are of; the last one, while there is none
	opens   []*Open
	rights  remote.Rights
	epoch   uint64      // of rights
	unsure  bool        // the connection is lost, and rights mean nothing
	blind   bool        // nothing vouched for the file until now, so its size is not known
	size    int64       // as readers here see it
	server  int64       // as the server has it, as far as is known
	learned uint64      // how often server has changed
	touched time.Time   // when it was last written here; zero if version has that
	version remote.Attr // of the valid bytes

	chunks  map[int64]*chunk // by offset / maxRun
	dirty   []int64          // the chunks that have dirty bytes, in order
	bytes   int64            // that are dirty
	flying  extent.Set       // what writes are under way for
	fills   []*fill
	claims  []claim // in order
	claimed uint64  // how many there ever were
	cut     int64   // where a truncation is under way to cut; maxFile: none is

	writes  []*write // under way
	issued  uint64   // how many writes were begun
	sweeps  []*sweep
	cursor  int64 // where the next write looks for dirty bytes
	growing int64 // where the last write by a caller ended
	aging   bool  // a timer runs
	stalled bool  // what failed may succeed later, and is not tried again by itself
	stall   error // why the last such write failed
	stalls  uint64
	failed  uint64 // how many writes have failed for good
	failure error  // the last of them
}

// chunk is maxRun bytes of a file, aligned.
type chunk struct {
	runs         []*run // by offset
	valid, dirty extent.Set
}

// Open is one open of a file.
type Open struct {
	file   *File
	server remote.File
	remote remote.Open
	access remote.Access
	stable bool
	direct atomic.Bool // past the cache
	closed atomic.Bool // set under File.mu

	ctx     context.Context // of what goes on in the background for it
	end     context.CancelFunc
	pending sync.WaitGroup // these; Add under File.mu and only while the open is in File.opens

	seen uint64 // how much of File.failed was reported; guarded by File.mu

	mu sync.Mutex
	// guarded by mu
	stream  readahead
	window  window
	age     int  // accesses until window is looked at again
	streams bool // it has read ahead, and counts in Cache.streams
}

// NewFile returns a file of which nothing is known yet.
func (c *Cache) NewFile(cfg FileConfig) *File {
	if cfg.Reads == nil {
		cfg.Reads = new(meter.Meter)
	}
	if cfg.Writes == nil {
		cfg.Writes = new(meter.Meter)
	}
	return &File{cache: c, cfg: cfg, appends: make(chan struct{}, 1), chunks: map[int64]*chunk{}, cut: maxFile, growing: -1}
}

// Wants returns the rights to ask for.
func (f *File) Wants() remote.Rights {
	if f.cfg.Mode == Strict {
		return remote.CacheRead | remote.CacheWrite | remote.CacheHandle
	}
	return 0
}

// Attach adds an open, and owns what stands behind it from now on. It was asked for
// with f as its Events. stable says that what is written has to reach the disk at
// once.
func (f *File) Attach(opened remote.Opened, access remote.Access, stable bool) *Open {
	o := &Open{file: f, server: opened.File, remote: opened.Open, access: access, stable: stable}
	o.ctx, o.end = context.WithCancel(f.cache.ctx)
	f.mu.Lock()
	o.seen = f.failed
	first := len(f.opens) == 0
	f.remote = opened.File
	if first && f.told != nil && f.told != opened.File { // which counts anew
		f.rights, f.epoch, f.unsure = 0, 0, false
	}
	f.told = opened.File
	f.opens = append(f.opens, o)
	rights := opened.Rights
	if opened.Epoch < f.epoch { // a change has come first
		rights = f.rights
	}
	f.epoch = max(f.epoch, opened.Epoch)
	var dropped map[int64]*chunk
	if first {
		f.rights = rights
		if dropped = f.learnLocked(opened.Attr); dropped == nil && f.cfg.Mode == Strict && rights&remote.CacheWrite == 0 {
			dropped = f.purgeLocked() // what others write who have it open need not show in its times yet
		}
		f.serverSizeLocked(opened.Attr.Size)
	} else { // the attributes may be older than what is known
		dropped = f.rightsLocked(rights)
	}
	blind := f.blind
	f.mu.Unlock()
	f.drop(dropped)
	if blind {
		f.cache.background(f.look)
	}
	return o
}

// learnLocked notes what the file is on the server, and returns what is left to drop
// if that is another version than that which is here.
func (f *File) learnLocked(attr remote.Attr) map[int64]*chunk {
	same := f.touched.IsZero() && attr.Size == f.version.Size && attr.Written.Equal(f.version.Written) && attr.Changed.Equal(f.version.Changed)
	f.version, f.touched = attr, time.Time{}
	if same {
		return nil
	}
	return f.purgeLocked()
}

// keepsLocked reports whether bytes may be kept that were read, or were written.
func (f *File) keepsLocked(right remote.Rights) bool {
	switch {
	case f.unsure || f.blind || f.cfg.Mode == None:
		return false
	case f.cfg.Mode == Loose:
		return true
	case f.cfg.Mode == ReadOnly:
		return right == remote.CacheRead
	}
	right |= remote.CacheRead
	return f.rights&right == right
}

// serverSizeLocked notes how long the file is on the server. What was written here
// and did not get there yet may make it longer.
func (f *File) serverSizeLocked(size int64) {
	if size = min(max(size, 0), maxFile); size != f.server {
		f.server = size
		f.learned++
	}
	if size = max(size, f.grownLocked()); size < f.size {
		f.forgetLocked(extent.Range{Off: size, End: math.MaxInt64})
	}
	f.size = size
}

// grownLocked returns how long the file will be at least by what was written here and
// did not get to the server yet.
func (f *File) grownLocked() (end int64) {
	if n := len(f.dirty); n > 0 {
		for r := range f.chunks[f.dirty[n-1]].dirty.All() {
			end = r.End
		}
	}
	for _, w := range f.writes {
		end = max(end, w.r.End)
	}
	return end
}

// Size returns how long the file is, with what was written here.
func (f *File) Size() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.size
}

// State says what a face needs for its attributes: how long the file is with what
// was written here, when something was, which is zero if the server knows better,
// and whether the rights vouch for all that is known of the file.
func (f *File) State() (size int64, touched time.Time, vouched bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.size, f.touched, f.vouchedLocked()
}

// Learn notes what the file is on the server, by an answer that was asked for when
// State had this touched; if something was written here since, it says nothing.
// What is kept without a right to it, is dropped if somebody else has changed it.
func (f *File) Learn(attr remote.Attr, touched time.Time) {
	f.mu.Lock()
	var dropped map[int64]*chunk
	if f.touched.Equal(touched) && f.bytes == 0 && len(f.writes) == 0 && len(f.claims) == 0 {
		f.serverSizeLocked(attr.Size)
		if f.vouchedLocked() || f.cfg.Mode == Loose && !touched.IsZero() { // nobody else can have, or we are to think so
			f.version, f.touched = attr, time.Time{}
		} else {
			dropped = f.learnLocked(attr)
		}
	}
	f.mu.Unlock()
	f.drop(dropped)
}

// vouchedLocked reports whether the rights vouch for all that is known of the file.
func (f *File) vouchedLocked() bool {
	return !f.unsure && !f.blind && f.cfg.Mode == Strict && f.rights&remote.CacheRead != 0 && len(f.opens) > 0
}

// Keeps reports whether bytes that are read, or written, may be kept.
func (f *File) Keeps(right remote.Rights) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.keepsLocked(right)
}

// Forget drops all bytes that need not be written.
func (f *File) Forget() {
	f.mu.Lock()
	dropped := f.purgeLocked()
	f.mu.Unlock()
	f.drop(dropped)
}

// everything is a whole file.
var everything = extent.Range{End: math.MaxInt64}

// maxFile is the largest size of a file: any byte of it is in a chunk that ends at a
// number.
const maxFile = math.MaxInt64 &^ (maxRun - 1)

// purgeLocked takes all runs out of the index but those with bytes that have to be
// written, of which it keeps nothing else. It may run where nobody may wait, so what
// it returns is left to drop.
func (f *File) purgeLocked() map[int64]*chunk {
	for _, fl := range f.fills {
		fl.stale.Add(everything)
	}
	old := f.chunks
	f.chunks = make(map[int64]*chunk, len(f.dirty))
	keep := func(i int64) {
		if c := old[i]; c != nil && f.chunks[i] == nil {
			c.valid.Clear()
			for r := range c.dirty.All() {
				c.valid.Add(r)
			}
			f.chunks[i] = c
			delete(old, i)
		}
	}
	for _, i := range f.dirty {
		keep(i)
	}
	for _, w := range f.writes { // which may become dirty again
		if !w.void {
			i := w.r.Off >> maxRunShift
			keep(i)
			f.chunks[i].valid.Add(w.r)
		}
	}
	return old
}

// wipe gives up all memory, whatever is in it.
func (f *File) wipe() {
	f.mu.Lock()
	f.discardLocked()
	old := f.chunks
	f.chunks = map[int64]*chunk{}
	f.mu.Unlock()
	f.drop(old)
}

// drop frees what purgeLocked has left.
func (f *File) drop(chunks map[int64]*chunk) {
	for _, c := range chunks {
		for _, m := range c.runs {
			f.cache.unlink(m)
		}
	}
	f.changed.wake()
	f.cache.freed.wake()
}

// chunk returns the chunk at an offset, or nil.
func (f *File) chunkLocked(off int64) *chunk { return f.chunks[off>>maxRunShift] }

func (f *File) makeChunkLocked(off int64) *chunk {
	c := f.chunks[off>>maxRunShift]
	if c == nil {
		c = &chunk{}
		f.chunks[off>>maxRunShift] = c
	}
	return c
}

// chunksLocked returns the numbers of the chunks in r, in order.
func (f *File) chunksLocked(r extent.Range) []int64 {
	var all []int64
	if first, last := r.Off>>maxRunShift, (r.End-1)>>maxRunShift; last-first < int64(len(f.chunks)) {
		for i := first; i <= last; i++ {
			if f.chunks[i] != nil {
				all = append(all, i)
			}
		}
		return all
	}
	for i := range f.chunks {
		if i >= r.Off>>maxRunShift && i<<maxRunShift < r.End {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// chunkEnd returns where the chunk of an offset ends.
func chunkEnd(off int64) int64 { return off>>maxRunShift<<maxRunShift + maxRun }

// find returns which run ends behind off first; there may be none.
func (c *chunk) find(off int64) int {
	i, j := 0, len(c.runs)
	for i < j {
		if h := (i + j) / 2; c.runs[h].r.End <= off {
			i = h + 1
		} else {
			j = h
		}
	}
	return i
}

// overlaps reports whether there is a run for any of r.
func (c *chunk) overlaps(r extent.Range) bool {
	i := c.find(r.Off)
	return i < len(c.runs) && c.runs[i].r.Off < r.End
}

// invalidateLocked makes bytes invalid and clean, those being filled, too.
func (f *File) invalidateLocked(r extent.Range) {
	for _, fl := range f.fills {
		if fl.r.Overlaps(r) {
			fl.stale.Add(r)
		}
	}
	for _, i := range f.chunksLocked(r) {
		c := f.chunks[i]
		f.cleanLocked(i, r)
		c.valid.Remove(r)
		f.pruneLocked(i, r)
	}
}

// pruneLocked drops the runs of chunk i that touch r and have no valid bytes left.
func (f *File) pruneLocked(i int64, r extent.Range) {
	c := f.chunks[i]
	c.runs = slices.DeleteFunc(c.runs, func(m *run) bool {
		gone := m.r.Overlaps(r) && !c.valid.Overlaps(m.r)
		if gone {
			f.cache.unlink(m)
		}
		return gone
	})
	if len(c.runs) == 0 && c.valid.Len() == 0 {
		delete(f.chunks, i)
	}
}

// unlink gives up the reference of an index.
func (c *Cache) unlink(m *run) {
	c.mu.Lock()
	if m.next != nil {
		c.clock.remove(m)
	}
	c.mu.Unlock()
	m.file.held.Add(-m.r.Len())
	c.unpin(m)
}

// linkLocked puts a run into the index, whose reference it takes over, where none
// overlaps it.
func (f *File) linkLocked(c *chunk, m *run) {
	c.runs = slices.Insert(c.runs, c.find(m.r.Off), m)
	m.used.Store(true) // or else what was read ahead would go first
	f.cache.mu.Lock()
	f.cache.clock.add(m)
	f.cache.mu.Unlock()
	f.held.Add(m.r.Len())
}

// evict drops a clean run that nobody uses, and reports whether it did.
func (f *File) evict(m *run) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.evictLocked(m, 2) // the index's and the caller's
}

// evictLocked drops a clean run that has so many references.
func (f *File) evictLocked(m *run, refs int32) bool {
	c := f.chunkLocked(m.r.Off)
	if c == nil || m.refs.Load() > refs {
		return false
	}
	i := c.find(m.r.Off)
	if i == len(c.runs) || c.runs[i] != m || c.dirty.Overlaps(m.r) || f.flying.Overlaps(m.r) {
		return false
	}
	c.runs = slices.Delete(c.runs, i, i+1)
	c.valid.Remove(m.r)
	if len(c.runs) == 0 {
		delete(f.chunks, m.r.Off>>maxRunShift)
	}
	f.cache.counts.evicted.Add(m.r.Len())
	f.cache.unlink(m)
	return true
}

// soilLocked makes valid bytes of chunk i dirty.
func (f *File) soilLocked(i int64, r extent.Range) {
	c := f.chunks[i]
	before := c.dirty.Bytes()
	c.dirty.Add(r)
	if before == 0 {
		at, _ := slices.BinarySearch(f.dirty, i)
		f.dirty = slices.Insert(f.dirty, at, i)
	}
	f.countLocked(c.dirty.Bytes() - before)
	if !f.aging {
		f.aging = true
		time.AfterFunc(maxAge, f.aged)
	}
}

// cleanLocked makes bytes of chunk i clean.
func (f *File) cleanLocked(i int64, r extent.Range) {
	c := f.chunks[i]
	before := c.dirty.Bytes()
	if before == 0 {
		return
	}
	c.dirty.Remove(r)
	if c.dirty.Bytes() == 0 {
		at, _ := slices.BinarySearch(f.dirty, i)
		f.dirty = slices.Delete(f.dirty, at, at+1)
	}
	f.countLocked(c.dirty.Bytes() - before)
}

func (f *File) countLocked(n int64) {
	before := f.bytes
	f.bytes += n
	f.cache.dirty.Add(n)
	if (before == 0) != (f.bytes == 0) {
		f.cache.noteWriting(f, f.bytes > 0)
	}
}

func (c *Cache) noteWriting(f *File, dirty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if dirty {
		c.writing[f] = true
	} else {
		delete(c.writing, f)
	}
}

// failLocked notes that bytes were lost, for every open to hear of once.
func (f *File) failLocked(err error) {
	f.failed++
	f.failure = err
}

// reportLocked returns what o has not heard of yet.
func (o *Open) reportLocked() error {
	if o.seen == o.file.failed {
		return nil
	}
	o.seen = o.file.failed
	return o.file.failure
}

// check refuses what o was not opened for, and what no file has room for.
func (o *Open) check(access remote.Access, off int64, n int) error {
	switch {
	case o.closed.Load():
		return ErrClosed
	case o.access&access == 0:
		return syscall.EBADF
	case off < 0 || off > math.MaxInt64-int64(n):
		return syscall.EINVAL
	case access == remote.ForWrite && off+int64(n) > maxFile:
		return syscall.EFBIG
	}
	return nil
}
