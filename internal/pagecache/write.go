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
	if err := o.check(remote.ForWrite, off); err != nil {
		return 0, err
	}
	if !o.stable && !o.direct.Load() {
		n, err = o.writeHere(ctx, p, off)
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
	if err := o.check(remote.ForWrite, 0); err != nil {
		return 0, 0, err
	}
	f := o.file
	select {
	case f.appends <- struct{}{}:
		defer func() { <-f.appends }()
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	if off = f.Size(); !o.stable && !o.direct.Load() {
		n, err = o.writeHere(ctx, p, off)
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
	if err := f.claim(ctx, everything); err != nil {
		return 0, 0, err
	}
	start := f.cfg.Writes.Begin()
	off, n, err = o.remote.Append(ctx, [][]byte{p})
	f.cfg.Writes.Done(start, n, err)
	if n == 0 && err == nil {
		err = io.ErrShortWrite
	}
	f.mu.Lock()
	f.flying.Remove(everything)
	f.invalidateLocked(extent.Range{Off: off, End: math.MaxInt64})
	if n > 0 {
		f.wroteLocked(off + int64(n))
	}
	f.mu.Unlock()
	f.changed.wake()
	return off, n, err
}

// stop says why writeHere can't go on at once.
type stop uint8

const (
	going    stop = iota
	forbids       // the rights to keep what is written are gone
	occupied      // bytes there are flying
	full          // too much is dirty
	homeless      // there is no run
)

// writeHere copies p into the cache, as far as the rights last.
func (o *Open) writeHere(ctx context.Context, p []byte, off int64) (n int, err error) {
	f := o.file
	var spare *run
	defer func() {
		if spare != nil {
			f.cache.unpin(spare)
		}
	}()
	f.mu.RLock()
	stalls := f.stalls
	f.mu.RUnlock()
	for n < len(p) {
		at := off + int64(n)
		m, ripe, why := o.copyIn(p[n:], at, &spare)
		n += m
		if ripe {
			f.pump()
		}
		switch why {
		case forbids:
			return n, nil
		case occupied:
			err = f.waitUntilFree(ctx, at)
		case full:
			err = f.waitForRoom(ctx, stalls, func() bool { return f.cache.dirty.Load() < f.cache.dirtyLimit() })
		case homeless:
			if spare != nil {
				f.cache.unpin(spare)
				spare = nil
			}
			err = f.waitForRoom(ctx, stalls, func() bool {
				spare = f.home(at, int64(len(p)-n))
				return spare != nil
			})
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// dirtyLimit is how much of a cache may be dirty before writers wait. The rest is for
// readers, and for runs that are dirty in part.
func (c *Cache) dirtyLimit() int64 { return c.budget / 2 }

// copyIn copies the first bytes of p to one run, and makes them valid and dirty. It
// takes spare for that if there is no run. ripe says that there may be work for pump.
func (o *Open) copyIn(p []byte, off int64, spare **run) (n int, ripe bool, _ stop) {
	f := o.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.closed.Load() || !f.keepsLocked(remote.CacheWrite) {
		return 0, false, forbids
	}
	if f.cache.dirty.Load() >= f.cache.dirtyLimit() {
		return 0, false, full
	}
	r := extent.Range{Off: off, End: min(off+int64(min(len(p), copyPiece)), chunkEnd(off))}
	if fly, ok := f.flying.First(off); ok && fly.Off < r.End {
		if r.End = fly.Off; r.Len() <= 0 {
			return 0, false, occupied
		}
	}
	c := f.makeChunkLocked(off)
	i := c.find(off)
	if i == len(c.runs) || c.runs[i].r.Off > off {
		m := *spare
		if m == nil || !m.r.Contains(extent.Range{Off: off, End: off + 1}) || i < len(c.runs) && c.runs[i].r.Off < m.r.End || i > 0 && c.runs[i-1].r.End > m.r.Off {
			return 0, false, homeless
		}
		*spare = nil // its reference is the index's now
		f.linkLocked(c, m)
	}
	m := c.runs[i]
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
	f.resizeLocked(max(f.size, r.End))
	f.growing = r.End
	f.touchLocked()
	if !f.aging {
		f.aging = true
		time.AfterFunc(maxAge, f.aged)
	}
	return n, f.bytes >= f.cache.threshold() && len(f.writes) < maxWrites, going
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
	for ; size >= page; size /= 2 {
		if m := f.cache.memory(f, extent.Range{Off: at, End: at + size}); m != nil {
			return m
		}
	}
	return nil
}

// maxGrowth is the largest run that is taken for what may be written next.
const maxGrowth = 1 << 20

// waitUntilFree waits until the byte at off is not flying.
func (f *File) waitUntilFree(ctx context.Context, off int64) error {
	return f.await(ctx, func() bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return !f.flying.Overlaps(extent.Range{Off: off, End: off + 1})
	})
}

// await waits for something of the file.
func (f *File) await(ctx context.Context, ready func() bool) error {
	for {
		changed := f.changed.wait()
		if ready() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.cache.ctx.Done():
			return ErrClosed
		}
	}
}

// waitForRoom waits for memory, and has written what is dirty. It gives up when
// writing this file has stalled since.
func (f *File) waitForRoom(ctx context.Context, stalls uint64, ready func() bool) error {
	for {
		freed := f.cache.freed.wait()
		if ready() {
			return nil
		}
		f.mu.RLock()
		err := f.stall
		if f.stalls == stalls {
			err = nil
		}
		f.mu.RUnlock()
		if err != nil {
			return err
		}
		f.cache.pressure()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.cache.ctx.Done():
			return ErrClosed
		}
	}
}

// Truncate sets the size of the file.
func (o *Open) Truncate(ctx context.Context, size int64) error {
	if err := o.check(remote.ForWrite, size); err != nil {
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
	err := f.await(ctx, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.flying.Overlaps(tail) {
			return false
		}
		f.flying.Add(tail)
		return true
	})
	if err != nil {
		return err
	}
	_, err = o.server.SetSize(ctx, o.remote, size)
	f.mu.Lock()
	f.flying.Remove(tail)
	if err == nil {
		f.invalidateLocked(tail)
		f.server = size
		f.resizeLocked(size)
	} else { // it may have happened
		f.forgetLocked(tail)
	}
	f.touchLocked()
	f.mu.Unlock()
	f.changed.wake()
	f.cache.freed.wake()
	return err
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
		for fly := range f.flying.In(r) { // is valid as long as it can come back
			for _, w := range f.writes {
				if part := w.r.Intersect(fly).Intersect(extent.Range{Off: i << maxRunShift, End: (i + 1) << maxRunShift}); !part.Empty() {
					c.valid.Add(part)
				}
			}
		}
		f.pruneLocked(i, r)
	}
}
