package pagecache

import (
	"context"
	"io"
	"math"
	"slices"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// fill is a range under way from the server, in memory that no reader sees yet. It
// takes several requests if a page is larger than one of them.
type fill struct {
	o       *Open
	r       extent.Range
	class   remote.Class
	request int64
	runs    []*run
	stale   extent.Set // what changed here meanwhile; guarded by File.mu
	learned uint64     // File.learned when it was begun
}

// planLocked returns fills for what of r is neither here nor under way, and books
// them as being under way.
func (o *Open) planLocked(r extent.Range, request int64, class remote.Class) []*fill {
	f := o.file
	if !f.keepsLocked(remote.CacheRead) {
		return nil
	}
	unit := max(request/f.cache.page, 1) * f.cache.page
	var fills []*fill
	for at := r.Off; at < r.End; {
		gap, ok := f.gapLocked(extent.Range{Off: at, End: r.End})
		if !ok {
			break
		}
		gap = upTo(gap, unit)
		fl := &fill{o: o, r: gap, class: class, request: request, learned: f.learned}
		fills = append(fills, fl)
		f.fills = append(f.fills, fl)
		at = gap.End
	}
	return fills
}

// upTo returns what of r is before the next multiple of unit.
func upTo(r extent.Range, unit int64) extent.Range {
	return extent.Range{Off: r.Off, End: r.Off + min(r.Len(), unit-r.Off%unit)}
}

// gapLocked returns the first part of r, within one chunk, that is neither valid nor
// being fetched.
func (f *File) gapLocked(r extent.Range) (extent.Range, bool) {
next:
	for r.Off < r.End {
		gap := extent.Range{Off: r.Off, End: min(r.End, chunkEnd(r.Off))}
		if c := f.chunkLocked(r.Off); c != nil {
			var ok bool
			if gap, ok = c.valid.Gap(gap); !ok {
				r.Off = chunkEnd(r.Off)
				continue
			}
		}
		for _, fl := range f.fills {
			switch {
			case !fl.r.Overlaps(gap):
			case fl.r.Off <= gap.Off:
				r.Off = fl.r.End
				continue next
			default:
				gap.End = fl.r.Off
			}
		}
		return gap, true
	}
	return r, false
}

// allocate finds memory for the pages of the fill, in as few runs as their alignment
// and the free memory allow.
func (fl *fill) allocate() bool {
	c := fl.o.file.cache
	off := fl.r.Off / c.page * c.page
	end := (fl.r.End + c.page - 1) / c.page * c.page
	if fl.class == remote.Ahead {
		fl.o.file.recycle(off, end-off)
	}
	for off < end {
		n := alignedPart(off, end)
		m := c.memory(fl.o.file, extent.Range{Off: off, End: off + n})
		for m == nil && n > c.page {
			n /= 2
			m = c.memory(fl.o.file, extent.Range{Off: off, End: off + n})
		}
		if m == nil {
			return false
		}
		fl.runs = append(fl.runs, m)
		off += n
	}
	return true
}

// alignedPart returns the largest power of two that off is a multiple of and that
// fits before end.
func alignedPart(off, end int64) int64 {
	n := int64(maxRun)
	for off%n != 0 || off+n > end {
		n /= 2
	}
	return n
}

// run fetches and publishes.
func (fl *fill) run(ctx context.Context) error {
	n, eof, err := fl.fetch(ctx)
	fl.publish(n, eof)
	return err
}

// fetch reads the range, as far as it goes.
func (fl *fill) fetch(ctx context.Context) (n int64, eof bool, err error) {
	if fl.r.Len() <= fl.request {
		return fl.fetchPart(ctx, fl.r)
	}
	parts := int((fl.r.Len() + fl.request - 1) / fl.request)
	s := spread{whole: fl.r, piece: fl.request, workers: parts, do: fl.fetchPart}
	return s.run(ctx)
}

func (fl *fill) fetchPart(ctx context.Context, r extent.Range) (n int64, eof bool, err error) {
	f := fl.o.file
	for r.Off < r.End && !eof && err == nil {
		var m int
		start := f.cfg.Reads.Begin()
		m, eof, err = fl.o.server.ReadAt(ctx, remote.Req{Open: fl.o.remote, Off: r.Off, Class: fl.class}, fl.buffers(r))
		f.cfg.Reads.Done(start, m, err)
		n += int64(m)
		r.Off += int64(m)
		if m == 0 && !eof && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, eof, err
}

// buffers returns the memory of a part of the fill.
func (fl *fill) buffers(r extent.Range) [][]byte {
	bufs := make([][]byte, 0, len(fl.runs))
	for _, m := range fl.runs {
		if m.r.Overlaps(r) {
			bufs = append(bufs, m.bytes(r))
		}
	}
	return bufs
}

// publish makes the first n bytes of the fill valid. If that is where the server ends
// the file, it is shorter than was known, or what is beyond was not written: zeros.
func (fl *fill) publish(n int64, eof bool) {
	f := fl.o.file
	f.mu.Lock()
	got := extent.Range{Off: fl.r.Off, End: fl.r.Off + n}
	if eof && got.End < fl.r.End {
		if f.learned == fl.learned && got.End < f.server {
			f.forgetLocked(extent.Range{Off: got.End, End: math.MaxInt64})
			f.serverSizeLocked(got.End)
		}
		if zero := (extent.Range{Off: got.End, End: min(fl.r.End, f.size)}); !zero.Empty() {
			for _, p := range fl.buffers(zero) {
				clear(p)
			}
			got.End = zero.End
		}
	}
	if f.keepsLocked(remote.CacheRead) {
		for _, m := range fl.runs {
			f.placeLocked(m, got.Intersect(m.r), fl)
		}
	}
	f.doneLocked(fl)
	f.mu.Unlock()
	fl.end()
}

// fail ends a fill that fetched nothing.
func (fl *fill) fail() {
	f := fl.o.file
	f.mu.Lock()
	f.doneLocked(fl)
	f.mu.Unlock()
	fl.end()
}

func (f *File) doneLocked(fl *fill) {
	i := slices.Index(f.fills, fl)
	f.fills = slices.Delete(f.fills, i, i+1)
}

func (fl *fill) end() {
	f := fl.o.file
	for _, m := range fl.runs {
		f.cache.unpin(m)
	}
	fl.runs = nil
	f.changed.wake()
}

// placeLocked makes the bytes r of a run of a fill valid, but for those that are so
// already and those that are stale. Runs never overlap: the run takes its place in the
// index or, where one of its bytes has a place, a larger run takes in the smaller.
func (f *File) placeLocked(m *run, r extent.Range, fl *fill) {
	stale := &fl.stale
	if r.Empty() || stale.Contains(r) {
		return
	}
	c := f.makeChunkLocked(m.r.Off)
	i := c.find(m.r.Off)
	var inner []*run
	for j := i; j < len(c.runs) && c.runs[j].r.Off < m.r.End; j++ {
		inner = append(inner, c.runs[j])
	}
	if len(inner) == 1 && inner[0].r.Len() >= m.r.Len() {
		to := inner[0]
		for fresh := range stale.Gaps(r) {
			for gap := range c.valid.Gaps(fresh) {
				copy(to.bytes(gap), m.bytes(gap))
			}
		}
	} else {
		for _, old := range inner {
			for part := range c.valid.In(old.r) {
				copy(m.bytes(part), old.bytes(part))
			}
			f.cache.unlink(old)
		}
		c.runs = slices.Delete(c.runs, i, i+len(inner))
		if fl.class == remote.Ahead {
			m.ahead.Store(true)
			f.cache.counts.ahead.Add(m.r.Len())
		}
		f.cache.pin(m)
		f.linkLocked(c, m)
	}
	for fresh := range stale.Gaps(r) {
		c.valid.Add(fresh)
	}
}
