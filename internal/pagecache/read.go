package pagecache

import (
	"context"
	"io"
	"slices"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// copyPiece is how much is copied under a file's lock at a time.
const copyPiece = 256 << 10

// ReadAt reads into p from off: see io.ReaderAt.
func (o *Open) ReadAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	if err := o.check(remote.ForRead, off, len(p)); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if o.direct.Load() {
		return o.readDirect(ctx, p, off)
	}
	f := o.file
	ahead := o.note(extent.Range{Off: off, End: off + int64(len(p))})
	for missed := false; ; missed = true {
		m, found := f.copyOut(p[n:], off+int64(n))
		n += m
		switch {
		case found == direct:
			m, err = o.readDirect(ctx, p[n:], off+int64(n))
			return n + m, err
		case found == absent:
			// below
		default:
			if !missed {
				f.cache.counts.hits.Add(1)
			}
			if !ahead.Empty() {
				o.prefetch(ahead)
			}
			if n < len(p) {
				err = io.EOF
			}
			return n, err
		}
		if !missed {
			f.cache.counts.misses.Add(1)
		}
		need := extent.Range{Off: off + int64(n), End: off + int64(len(p))}
		m, err = o.load(ctx, need, ahead, p[n:])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
		ahead = extent.Range{}
	}
}

// found says what copyOut has come to.
type found uint8

const (
	all    found = iota // that was asked for, or all up to the end of the file
	absent              // the next byte is not here
	direct              // nothing may be kept
)

// copyOut copies the valid bytes at off, as far as they go without a gap.
func (f *File) copyOut(p []byte, off int64) (n int, _ found) {
	for {
		m, what := f.copyPiece(p[n:], off+int64(n))
		n += m
		if m == 0 || what != all || n == len(p) {
			return n, what
		}
	}
}

func (f *File) copyPiece(p []byte, off int64) (n int, _ found) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c, r, what := f.presentLocked(extent.Range{Off: off, End: off + int64(min(len(p), copyPiece))})
	if r.Empty() {
		return 0, what
	}
	for _, m := range c.runs[c.find(off):] {
		if m.r.Off >= r.End {
			break
		}
		m.touch()
		n += copy(p[n:], m.bytes(r))
	}
	return n, all
}

// presentLocked returns what r begins with that is valid, within one chunk, and that
// chunk; or nothing, and why.
func (f *File) presentLocked(r extent.Range) (*chunk, extent.Range, found) {
	if !f.keepsLocked(remote.CacheRead) {
		return nil, extent.Range{}, direct
	}
	if r.Off >= f.size {
		return nil, extent.Range{}, all
	}
	c := f.chunkLocked(r.Off)
	if c == nil {
		return nil, extent.Range{}, absent
	}
	valid, ok := c.valid.First(r.Off)
	if !ok || valid.Off > r.Off {
		return nil, extent.Range{}, absent
	}
	r.End = min(r.End, valid.End, f.size, chunkEnd(r.Off))
	return c, r, all
}

// note notes an access, and returns what to read ahead for it.
func (o *Open) note(r extent.Range) extent.Range {
	size := o.file.Size()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.age--; o.age < 0 {
		o.age = windowAge
		o.window = o.file.window()
	}
	ahead := o.stream.access(r, size, o.window)
	if !ahead.Empty() {
		o.age = 0
		if !o.streams {
			o.streams = true
			o.file.cache.streams.Add(1)
		}
	}
	return ahead
}

// windowAge is how many accesses a look at the window lasts, if nothing is read ahead.
const windowAge = 64

// window returns what may be read ahead now.
func (f *File) window() window {
	size, requests := f.request(remote.Reading)
	most := min(f.cache.budget/4, f.cache.budget/2/max(f.cache.streams.Load(), 1))
	return window{request: size, most: min(size*int64(requests), most), fixed: min(f.cfg.Ahead, most)}
}

// request returns how large a request should be, and how many are best in flight.
func (f *File) request(d remote.Direction) (size int64, requests int) {
	f.mu.RLock()
	file := f.remote
	f.mu.RUnlock()
	if file == nil {
		return f.cache.page, 1
	}
	w, l := file.Flow().Window(d), file.Limits()
	limit := l.Read
	if d == remote.Writing {
		limit = l.Write
	}
	size = max(min(int64(w.Size), int64(limit), f.cache.budget/8, maxRun), 1)
	return size, max(w.Requests, 1)
}

// prefetch starts to read r, of which nobody waits for anything yet.
func (o *Open) prefetch(r extent.Range) {
	f := o.file
	size, _ := f.request(remote.Reading)
	f.mu.Lock()
	fills := o.planLocked(r, size, remote.Ahead)
	f.mu.Unlock()
	o.begin(fills)
}

// begin runs fills in the background.
func (o *Open) begin(fills []*fill) {
	if len(fills) == 0 {
		return
	}
	started := o.background(func() {
		for i, fl := range fills {
			if !fl.allocate() {
				fl.fail()
				continue
			}
			if i == len(fills)-1 {
				fl.run(o.ctx)
			} else if !o.background(func() { fl.run(o.ctx) }) {
				fl.fail()
			}
		}
	})
	if !started {
		for _, fl := range fills {
			fl.fail()
		}
	}
}

// background runs f for as long as the open is open.
func (o *Open) background(f func()) bool {
	o.file.mu.Lock()
	defer o.file.mu.Unlock()
	if o.ctx.Err() != nil {
		return false
	}
	o.pending.Go(f)
	return true
}

// load returns when some of what need begins with has come, or may have: it reads
// that itself or waits for whoever does, and has ahead read, too. When there is no
// memory, it reads into p instead, and says how much.
func (o *Open) load(ctx context.Context, need, ahead extent.Range, p []byte) (n int, err error) {
	f := o.file
	size, requests := f.request(remote.Reading)
	want := need
	switch most := max(min(size*int64(requests), f.cache.budget/4), f.cache.page); {
	case need.Len() > most: // or else its end is in the way of its start, or evicts it
		want.End = need.Off + most
	case !ahead.Empty():
		want.End = max(want.End, ahead.End)
	}
	f.mu.Lock()
	want.End = min(want.End, f.size)
	fills := o.planLocked(want, size, remote.Demand)
	f.mu.Unlock()
	for _, fl := range fills {
		if fl.r.Off >= need.End {
			fl.class = remote.Ahead
		}
	}
	if len(fills) == 0 || fills[0].r.Off > need.Off { // it is here by now, or somebody else is at it
		o.begin(fills)
		return 0, f.await(ctx, func() bool {
			here, coming := f.lookFor(need.Off)
			return here || !coming
		})
	}
	o.mu.Lock()
	o.stream.missed(need)
	o.mu.Unlock()
	o.begin(fills[1:])
	first := fills[0]
	if first.allocate() {
		err = first.run(ctx)
		if here, _ := f.lookFor(need.Off); here {
			err = nil // if it went wrong, then later on
		}
		return 0, err
	}
	first.fail()
	return o.readDirect(ctx, p[:min(int64(len(p)), first.r.Len())], need.Off)
}

// lookFor reports whether nobody has to fetch the byte at off, which is valid, or not
// to be kept, or beyond the end; or else whether somebody does.
func (f *File) lookFor(off int64) (here, coming bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.keepsLocked(remote.CacheRead) || off >= f.size {
		return true, false
	}
	r := extent.Range{Off: off, End: off + 1}
	if c := f.chunkLocked(off); c != nil && c.valid.Overlaps(r) {
		return true, false
	}
	return false, slices.ContainsFunc(f.fills, func(fl *fill) bool { return fl.r.Overlaps(r) })
}
