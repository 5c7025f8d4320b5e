package pagecache

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// WriteAt writes p at off. Where the rights allow, it is copied here and written to
// the server later: see Sync.
func (o *Open) WriteAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	if err := o.check(remote.ForWrite, off, len(p)); err != nil {
		return 0, err
	}
	if !o.stable && !o.direct.Load() {
		_, n, err = o.writeHere(ctx, p, off)
	}
	if err == nil && n < len(p) {
		var m int
		m, err = o.writeDirect(ctx, p[n:], off+int64(n))
		n += m
	}
	return n, err
}

// Append writes p at the end of the file, and says where that was.
func (o *Open) Append(ctx context.Context, p []byte) (off int64, n int, err error) {
	if err := o.check(remote.ForWrite, 0, len(p)); err != nil {
		return 0, 0, err
	}
	f := o.file
	select {
	case f.appends <- struct{}{}:
		defer func() { <-f.appends }()
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	if off = f.Size(); len(p) > 0 && !o.stable && !o.direct.Load() {
		off, n, err = o.writeHere(ctx, p, atEnd)
	}
	for n < len(p) && err == nil {
		var m int
		var at int64
		if at, m, err = o.appendDirect(ctx, p[n:]); n == 0 {
			off = at
		}
		n += m
	}
	return off, n, err
}

// appendDirect has the server find the end, once all of the file is there.
func (o *Open) appendDirect(ctx context.Context, p []byte) (off int64, n int, err error) {
	f := o.file
	c, err := f.claimClean(ctx, everything)
	if err != nil {
		return 0, 0, err
	}
	start := f.cfg.Writes.Begin()
	off, n, err = o.remote.Append(ctx, [][]byte{p})
	f.cfg.Writes.Done(start, n, err)
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	f.mu.Lock()
	f.invalidateLocked(extent.Range{Off: off, End: math.MaxInt64})
	if n > 0 {
		f.wroteLocked(off + int64(n))
	}
	f.yieldLocked(c)
	f.mu.Unlock()
	f.changed.wake()
	if err != nil {
		f.Doubt()
	}
	return off, n, err
}

// stop says why writeHere can't go on at once.
type stop uint8

const (
	going    stop = iota
	forbids       // the rights to keep what is written are gone
	moved         // the file does not end there any more
	occupied      // bytes there are flying, or claimed
	full          // too much is dirty
	homeless      // there is no run
)

// atEnd is for writeHere where the file ends.
const atEnd = -1

// writeHere copies p into the cache, as far as the rights last and there is hope for
// room. It says where.
func (o *Open) writeHere(ctx context.Context, p []byte, off int64) (at int64, n int, err error) {
	f := o.file
	var spare *run
	defer func() {
		if spare != nil {
			f.cache.unpin(spare)
		}
	}()
	for at = off; n < len(p); {
		if off == atEnd && n == 0 {
			at = f.Size()
			if err := o.check(remote.ForWrite, at, len(p)); err != nil {
				return at, 0, err
			}
		}
		next := at + int64(n)
		m, ripe, why := o.copyIn(p[n:], next, off == atEnd && n == 0, &spare)
		n += m
		if ripe {
			f.pump()
		}
		room := true
		switch why {
		case forbids:
			return at, n, nil
		case occupied:
			err = f.waitUntilFree(ctx, next)
		case full:
			room, err = f.waitForRoom(ctx, func() bool { return f.cache.dirty.Load() < f.cache.dirtyLimit() })
		case homeless:
			if spare != nil {
				f.cache.unpin(spare)
				spare = nil
			}
			room, err = f.waitForRoom(ctx, func() bool {
				spare = f.home(next, int64(len(p)-n))
				return spare != nil
			})
		}
		if err != nil || !room {
			return at, n, err
		}
	}
	return at, n, nil
}

// dirtyLimit is how much of a cache may be dirty before writers wait. The rest is for
// readers, and for runs that are dirty in part.
func (c *Cache) dirtyLimit() int64 { return c.budget / 2 }

// copyIn copies the first bytes of p to one run, and makes them valid and dirty. It
// takes spare for that if there is no run. atEnd says that the file has to end there.
// ripe says that there may be work for pump.
func (o *Open) copyIn(p []byte, off int64, atEnd bool, spare **run) (n int, ripe bool, _ stop) {
	f := o.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case o.closed.Load() || !f.keepsLocked(remote.CacheWrite):
		return 0, false, forbids
	case atEnd && off != f.size:
		return 0, false, moved
	case f.cache.dirty.Load() >= f.cache.dirtyLimit():
		return 0, false, full
	}
	r := f.freeLocked(extent.Range{Off: off, End: min(off+int64(min(len(p), copyPiece)), chunkEnd(off))})
	if r.Empty() {
		return 0, false, occupied
	}
	m := f.runLocked(off, spare)
	if m == nil {
		return 0, false, homeless
	}
	c := f.chunkLocked(off)
	r.End = min(r.End, m.r.End)
	n = copy(m.bytes(r), p)
	m.touch()
	c.valid.Add(r)
	f.soilLocked(off>>maxRunShift, r)
	for _, fl := range f.fills {
		if fl.r.Overlaps(r) {
			fl.stale.Add(r)
		}
	}
	f.size = max(f.size, r.End)
	f.growing = r.End
	f.touchLocked()
	return n, f.bytes >= f.cache.threshold() && len(f.writes) < maxWrites, going
}

// runLocked returns the run for the byte at off. If there is none, it links spare, if
// that will do, and takes over its reference.
func (f *File) runLocked(off int64, spare **run) *run {
	c := f.chunkLocked(off)
	if c != nil {
		if i := c.find(off); i < len(c.runs) && c.runs[i].r.Off <= off {
			return c.runs[i]
		}
	}
	m := *spare
	if m == nil || !m.r.Contains(extent.Range{Off: off, End: off + 1}) || c != nil && c.overlaps(m.r) {
		return nil
	}
	*spare = nil
	f.linkLocked(f.makeChunkLocked(off), m)
	return m
}

// touchLocked notes that the file was written here. It is never twice at the same time,
// as Learn tells by it whether anything came between.
func (f *File) touchLocked() {
	if now := time.Now(); now.After(f.touched) {
		f.touched = now
	} else {
		f.touched = f.touched.Add(1)
	}
}

// home returns a run for bytes at off, of which n are to come: as large as what was
// written before it without a gap, so that a file written from its start takes few
// runs, and one that is written here and there takes a page for each place.
func (f *File) home(off, n int64) *run {
	page := f.cache.page
	at := off / page * page
	end := chunkEnd(at)
	most := page
	f.mu.RLock()
	if c := f.chunkLocked(at); c != nil {
		i := c.find(off)
		if i < len(c.runs) {
			end = min(end, c.runs[i].r.Off)
		}
		if r, ok := c.valid.First(off - 1); ok && r.Off < off {
			most = max(most, min(off-r.Off, maxGrowth))
		}
	}
	f.mu.RUnlock()
	most = max(most, min(n, maxGrowth))
	size := page
	for at%(2*size) == 0 && 2*size <= most && at+2*size <= end {
		size *= 2
	}
	if size > page {
		f.recycle(at, size)
	}
	for ; size >= page; size /= 2 {
		if m := f.cache.memory(f, extent.Range{Off: at, End: at + size}); m != nil {
			return m
		}
	}
	return nil
}

// maxGrowth is the largest run that is taken for what may be written next.
const maxGrowth = 1 << 20

// waitForRoom waits for memory, and has written what is dirty. It reports false when
// that is hopeless: then write directly, and hear from the server why.
func (f *File) waitForRoom(ctx context.Context, ready func() bool) (bool, error) {
	for {
		freed := f.cache.freed.wait()
		if ready() {
			return true, nil
		}
		if !f.cache.relieve() {
			return false, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-f.cache.ctx.Done():
			return false, ErrClosed
		}
	}
}

// Truncate sets the size of the file.
func (o *Open) Truncate(ctx context.Context, size int64) error {
	if err := o.check(remote.ForWrite, size, 0); err != nil {
		return err
	}
	f := o.file
	select {
	case f.appends <- struct{}{}:
		defer func() { <-f.appends }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tail := extent.Range{Off: size, End: math.MaxInt64}
	c, err := f.claim(ctx, tail)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.cut = size // what is dirty behind it need not be written
	f.mu.Unlock()
	asked := false
	if err = f.await(ctx, func() bool { return !f.flies(tail) }); err == nil {
		_, err = o.server.SetSize(ctx, o.remote, size)
		asked = true
	}
	f.mu.Lock()
	switch {
	case err == nil:
		f.invalidateLocked(tail)
		f.serverSizeLocked(size)
		f.touchLocked()
	case asked: // it may have happened
		f.forgetLocked(tail)
		f.touchLocked()
	}
	f.cut = maxFile
	f.yieldLocked(c)
	f.mu.Unlock()
	f.pump()
	f.changed.wake()
	f.cache.freed.wake()
	if err != nil && asked {
		f.Doubt()
	}
	return err
}

// flies reports whether writes of any of r are under way.
func (f *File) flies(r extent.Range) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.flying.Overlaps(r)
}

// forgetLocked makes clean bytes invalid, those being filled, too.
func (f *File) forgetLocked(r extent.Range) {
	for _, fl := range f.fills {
		fl.stale.Add(r)
	}
	for _, i := range f.chunksLocked(r) {
		c := f.chunks[i]
		c.valid.Remove(r)
		for d := range c.dirty.In(r) {
			c.valid.Add(d)
		}
		for _, w := range f.writes { // which may become dirty again
			if w.r.Off>>maxRunShift == i && !w.void {
				c.valid.Add(w.r.Intersect(r))
			}
		}
		f.pruneLocked(i, r)
	}
}
