package pagecache

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// What starts writing: bytes are dirty for longer than maxAge, or more of them than
// threshold; memory is wanted; somebody syncs or closes the file, or the rights to
// keep it dirty end.
const (
	maxAge    = 5 * time.Second
	maxWrites = 1024 // requests of one file under way, whatever the window
)

func (c *Cache) threshold() int64 { return min(16<<20, c.budget/8) }

// plan says which dirty bytes to write next. It is the policy of writing, and pure.
type plan struct {
	at, to  int64 // where to look
	request int64 // bytes that one request carries
	whole   bool  // only what reaches the border of a request, so that nothing will be added to it
	growing int64 // nothing that ends here, since more may follow; -1: never mind
}

// looks is how many ranges a plan looks at before it gives up for now. Who writes at
// random leaves many, none of them whole.
const looks = 16

// next returns what to write: the first dirty bytes, with what follows without a gap,
// up to the next multiple of the request. So however small the pieces are in which a
// file is written, it goes out in whole requests, always at the same borders.
// first returns the first dirty range that ends behind an offset.
func (p *plan) next(first func(int64) (extent.Range, bool)) (extent.Range, bool) {
	for range looks {
		r, ok := first(p.at)
		if r.Off = max(r.Off, p.at); !ok || r.Off >= p.to {
			p.at = p.to
			break
		}
		r = upTo(r, p.request)
		r.End = min(r.End, p.to)
		p.at = r.End
		ends := r.End%p.request == 0 || r.End%maxRun == 0
		if ends || !p.whole && r.End != p.growing {
			return r, true
		}
	}
	return extent.Range{}, false
}

// soiledLocked reports whether any byte of r is dirty.
func (f *File) soiledLocked(r extent.Range) bool {
	d, ok := f.dirtyLocked(r.Off)
	return ok && d.Off < r.End
}

// dirtyLocked returns the first dirty range that ends behind at.
func (f *File) dirtyLocked(at int64) (extent.Range, bool) {
	i, _ := slices.BinarySearch(f.dirty, at>>maxRunShift)
	for _, n := range f.dirty[i:] {
		if r, ok := f.chunks[n].dirty.First(at); ok {
			return r, true
		}
	}
	return extent.Range{}, false
}

// sweep is one passage over dirty bytes, on behalf of somebody.
type sweep struct {
	at, to int64
	over   bool   // all of it is under way or done
	issued uint64 // File.issued then
}

// write is dirty bytes under way to the server.
type write struct {
	f    *File
	o    *Open
	r    extent.Range
	runs []*run
	seq  uint64
	void bool // it is worth nothing any more; guarded by File.mu
}

// pump starts as many writes as the window has room for and as there is need of.
func (f *File) pump() {
	size, requests := f.request(remote.Writing)
	f.mu.Lock()
	defer f.mu.Unlock()
	waiters := len(f.sweeps)
	for o := f.writerLocked(); len(f.writes) < min(requests, maxWrites); {
		if o == nil && f.bytes > 0 {
			break
		}
		r, ok := f.nextLocked(size)
		if !ok || !f.cache.background(f.beginLocked(o, r).run) {
			break
		}
	}
	if len(f.sweeps) < waiters {
		f.changed.wake()
	}
}

// nextLocked returns what to write next: for those who wait, or because it is much.
func (f *File) nextLocked(request int64) (extent.Range, bool) {
	for len(f.sweeps) > 0 {
		s := f.sweeps[0]
		p := plan{at: s.at, to: s.to, request: request, growing: -1}
		r, ok := p.next(f.dirtyLocked)
		if ok {
			if r.End = min(r.End, f.cut); r.Empty() {
				return r, false // once it is known what was cut off
			}
			s.at = r.End
			return r, true
		}
		s.over, s.issued = true, f.issued
		f.sweeps = slices.Delete(f.sweeps, 0, 1)
	}
	if f.stalled || f.bytes < f.cache.threshold() {
		return extent.Range{}, false
	}
	r, ok := f.steadyLocked(request, true)
	if !ok && f.bytes >= 2*f.cache.threshold() {
		r, ok = f.steadyLocked(request, false)
	}
	return r, ok
}

// steadyLocked goes on where it ended the last time, and then from the start.
func (f *File) steadyLocked(request int64, whole bool) (r extent.Range, ok bool) {
	for range 2 {
		p := plan{at: f.cursor, to: f.cut, request: request, whole: whole, growing: f.growing}
		r, ok = p.next(f.dirtyLocked)
		if f.cursor = p.at; ok || p.at < p.to {
			break
		}
		f.cursor = 0
	}
	return r, ok
}

// writerLocked returns an open to write with.
func (f *File) writerLocked() *Open {
	for _, o := range slices.Backward(f.opens) {
		if o.access&remote.ForWrite != 0 {
			return o
		}
	}
	return nil
}

// beginLocked makes dirty bytes flying.
func (f *File) beginLocked(o *Open, r extent.Range) *write {
	f.issued++
	w := &write{f: f, o: o, r: r, seq: f.issued}
	c := f.chunkLocked(r.Off)
	for _, m := range c.runs[c.find(r.Off):] {
		if m.r.Off >= r.End {
			break
		}
		f.cache.pin(m)
		w.runs = append(w.runs, m)
	}
	f.cleanLocked(r.Off>>maxRunShift, r)
	f.cache.dirty.Add(r.Len())
	f.flying.Add(r)
	f.writes = append(f.writes, w)
	return w
}

// run writes, and starts what is next.
func (w *write) run() {
	f := w.f
	n, err := w.send()
	lost := err != nil && !f.temporary(err)
	if lost {
		f.cache.logger.Warn("written bytes are lost", "offset", w.r.Off+n, "bytes", w.r.Len()-n, "err", err)
	}
	if !lost || !f.ask(f.cache.ctx, w.o, func(attr remote.Attr) {
		w.landLocked(n, err, lost)
		f.serverSizeLocked(attr.Size)
	}) {
		f.mu.Lock()
		w.landLocked(n, err, lost)
		f.mu.Unlock()
	}
	for _, m := range w.runs {
		f.cache.unpin(m)
	}
	f.changed.wake()
	f.cache.freed.wake()
	f.pump()
}

// landLocked notes that the first n bytes are on the server, and what became of the
// rest.
func (w *write) landLocked(n int64, err error, lost bool) {
	f := w.f
	f.writes = slices.DeleteFunc(f.writes, func(other *write) bool { return other == w })
	f.flying.Remove(w.r)
	f.cache.dirty.Add(-w.r.Len())
	f.touched = f.touched.Add(1) // what the server said before says nothing any more: see Learn
	rest := extent.Range{Off: w.r.Off + n, End: w.r.End}
	switch {
	case err == nil || w.void:
	case lost || f.writerLocked() == nil: // who closed did not wait
		f.failLocked(err)
		f.invalidateLocked(rest)
	default:
		f.stalled, f.stall = true, err
		f.stalls++
		if !rest.Empty() {
			f.soilLocked(rest.Off>>maxRunShift, rest)
		}
	}
	end := f.server
	if n > 0 {
		end = max(end, rest.Off)
	}
	f.serverSizeLocked(end)
}

func (f *File) temporary(err error) bool {
	return f.cache.ctx.Err() == nil && f.cfg.Temporary != nil && f.cfg.Temporary(err)
}

// send returns how much of the range got there.
func (w *write) send() (n int64, err error) {
	f := w.f
	bufs := make([][]byte, 0, len(w.runs))
	for r := w.r; !r.Empty() && err == nil; {
		bufs = bufs[:0]
		for _, m := range w.runs {
			if m.r.Overlaps(r) {
				bufs = append(bufs, m.bytes(r))
			}
		}
		var m int
		start := f.cfg.Writes.Begin()
		m, _, err = w.o.server.WriteAt(f.cache.ctx, remote.Req{Open: w.o.remote, Off: r.Off, Class: remote.Back}, remote.Write{Data: bufs})
		f.cfg.Writes.Done(start, m, err)
		if m == 0 && err == nil {
			err = io.ErrShortWrite
		}
		n += int64(m)
		r.Off += int64(m)
	}
	return n, err
}

// settle returns when nothing of r is dirty or flying that was so when it began.
func (f *File) settle(ctx context.Context, r extent.Range) error {
	f.mu.Lock()
	quiet := !f.soiledLocked(r) && !f.flying.Overlaps(r)
	if quiet {
		f.mu.Unlock()
		return nil
	}
	s := &sweep{at: r.Off, to: r.End}
	if r == everything {
		s.to = max(f.size, 1)
	}
	stalls := f.stalls
	f.stalled = false
	f.sweeps = append(f.sweeps, s)
	f.mu.Unlock()
	f.pump()
	for {
		err := f.await(ctx, func() bool {
			f.mu.RLock()
			defer f.mu.RUnlock()
			return s.over && !slices.ContainsFunc(f.writes, func(w *write) bool { return w.seq <= s.issued && w.r.Overlaps(r) })
		})
		f.mu.Lock()
		failed, dirty := f.stalls != stalls, f.soiledLocked(r)
		stalls, s.issued = f.stalls, f.issued
		if err != nil {
			f.sweeps = slices.DeleteFunc(f.sweeps, func(other *sweep) bool { return other == s })
		} else if failed && dirty {
			err = f.stall
		}
		f.mu.Unlock()
		if err != nil || !failed {
			return err
		}
		// What failed is on its way again, on behalf of somebody else.
	}
}

// relieve has written what is dirty, and reports whether any of it is on its way then.
func (c *Cache) relieve() bool {
	c.mu.Lock()
	files := slices.Collect(maps.Keys(c.writing))
	c.mu.Unlock()
	stuck := int64(0)
	for _, f := range files {
		stuck += f.relieve()
	}
	return c.dirty.Load() > stuck
}

// relieve has all dirty bytes written, unless some are under way already, and returns
// how many can't be.
func (f *File) relieve() (stuck int64) {
	f.mu.Lock()
	switch {
	case f.stalled:
		stuck = f.bytes
	case len(f.writes) == 0:
		f.sweepLocked()
	}
	f.mu.Unlock()
	f.pump()
	return stuck
}

// sweepLocked has pump write all dirty bytes.
func (f *File) sweepLocked() {
	f.stalled = false
	if len(f.sweeps) == 0 && f.bytes > 0 {
		f.sweeps = append(f.sweeps, &sweep{to: maxFile})
	}
}

// aged has written what has been dirty for a while.
func (f *File) aged() {
	f.mu.Lock()
	f.sweepLocked()
	if f.aging = f.bytes > 0 && f.cache.ctx.Err() == nil; f.aging {
		time.AfterFunc(maxAge, f.aged)
	}
	f.mu.Unlock()
	f.pump()
}

// Sync returns when everything that was written is on the server, and durable there
// unless NoCommit says that this does not matter. Of each write that has failed for
// good since, every open hears once.
func (o *Open) Sync(ctx context.Context) error {
	if o.closed.Load() {
		return ErrClosed
	}
	f := o.file
	err := f.settle(ctx, everything)
	f.mu.Lock()
	if lost := o.reportLocked(); lost != nil {
		err = lost
	}
	writer := o
	if o.access&remote.ForWrite == 0 {
		writer = f.writerLocked()
	}
	f.mu.Unlock()
	if err != nil || writer == nil || f.cfg.NoCommit {
		return err
	}
	redo, err := writer.server.Commit(ctx, writer.remote, nil)
	if err == nil && len(redo) > 0 {
		err = errRedo
	}
	return err
}

// Flush returns when everything that was written is on the server. What has failed for
// good is left for Sync and Close to tell.
func (o *Open) Flush(ctx context.Context) error { return o.file.settle(ctx, everything) }

// Close writes what is dirty, gives the open up, and reports what Sync would have.
func (o *Open) Close(ctx context.Context) error {
	f := o.file
	f.mu.Lock()
	again := o.closed.Swap(true)
	f.mu.Unlock()
	if again {
		return ErrClosed
	}
	o.end()
	var err error
	if o.access&remote.ForWrite != 0 {
		err = f.settle(ctx, everything)
	}
	f.mu.Lock()
	f.opens = slices.DeleteFunc(f.opens, func(other *Open) bool { return other == o })
	f.mu.Unlock()
	o.pending.Wait()
	// A write that began meanwhile may use this open.
	err = cmp.Or(err, f.await(ctx, func() bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return !slices.ContainsFunc(f.writes, func(w *write) bool { return w.o == o })
	}))
	f.mu.Lock()
	if f.bytes > 0 && f.writerLocked() == nil {
		f.failLocked(cmp.Or(err, ErrClosed))
		f.discardLocked()
	}
	if lost := o.reportLocked(); lost != nil {
		err = lost
	}
	if len(f.opens) == 0 {
		f.remote, f.blind = nil, false
	}
	f.mu.Unlock()
	f.pump()
	f.changed.wake()
	f.cache.freed.wake()
	o.mu.Lock()
	if o.streams {
		f.cache.streams.Add(-1)
	}
	o.streams = true // whoever still reads is not to count again
	o.mu.Unlock()
	if closeErr := o.remote.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}
