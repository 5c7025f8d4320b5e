package pagecache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// runner is a lane that is run.
type runner struct {
	*player
	host   *host
	region extent.Range // nobody else touches these bytes
	tail   bool         // the end of the file is in it
	faults faults
	base   []byte // what the file was at the start of the round

	maybe       []maybe
	least, most int64 // what the size may be, if that is not sure
}

// maybe is a write of which bytes may have been lost.
type maybe struct {
	off      int64
	old, new []byte
}

func (l *runner) run(acts []act) {
	for _, a := range acts {
		if a.pause > 0 {
			<-time.After(a.pause)
		}
		if !l.do(a) {
			return
		}
	}
}

// do does one thing, and reports whether the lane can go on.
func (l *runner) do(a act) bool {
	if l.region.Empty() {
		return false
	}
	ctx := ctx
	if a.cancel > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, a.cancel)
		defer stop()
	}
	i := a.open % len(l.host.opens)
	o := l.host.opens[i]
	off := l.region.Off + a.off%l.region.Len()
	if at := l.origin + a.off; l.region.Off <= at && at < l.region.End {
		off = at // with its alignment
	}
	n := min(a.n, l.region.End-off)
	l.note(l.host, "%v %d at %d with open %d in %v", a.verb, n, off, i, l.region)
	defer func() { l.note(l.host, "done: %v %d at %d", a.verb, n, off) }()
	switch a.verb {
	case toRead:
		return l.read(ctx, a, o, off, n)
	case toReadOn:
		for k := 0; k < 40 && off < l.region.End; k++ {
			if !l.read(ctx, a, o, off, min(n, l.region.End-off)) {
				return false
			}
			off += n
		}
		return true
	case toWrite:
		return l.write(ctx, a, o, off, n)
	case toWriteOn:
		for k := 0; k < 20 && off < l.region.End; k++ {
			if !l.write(ctx, a, o, off, min(n, l.region.End-off)) {
				return false
			}
			off += n
		}
		return true
	case toAppend:
		return !l.tail || l.append(ctx, a, o)
	case toTruncate:
		return !l.tail || l.faults.lasting || l.truncate(ctx, a, o, off)
	case toSync:
		return l.sync(ctx, a, i)
	case toStream:
		return l.stream(ctx, a, o, off)
	case toReopen:
		return l.reopen(ctx, a, off, n)
	case toForget:
		l.host.file.Forget()
	}
	return true
}

// excused reports whether an error may be, and complains if it may not.
func (l *runner) excused(a act, off, n int64, err error) bool {
	if a.cancel > 0 && errors.Is(err, context.DeadlineExceeded) || l.faults.read > 0 && errors.Is(err, errRead) ||
		l.faults.write > 0 && !l.faults.lasting && errors.Is(err, errBusy) || l.faults.lasting && errors.Is(err, errLasting) {
		return true
	}
	l.fail("%v %d at %d: error %v", a.verb, n, off, err)
	return false
}

func (l *runner) read(ctx context.Context, a act, o *Open, off, n int64) bool {
	p := make([]byte, n)
	m, err := o.ReadAt(ctx, p, off)
	return l.got(a, p, off, m, err)
}

// got looks at what was read.
func (l *runner) got(a act, p []byte, off int64, m int, err error) bool {
	n := int64(len(p))
	least, most := n, n
	if l.tail {
		least, most = min(max(l.least-off, 0), n), min(max(l.most-off, 0), n)
	}
	switch {
	case int64(m) > most:
		l.fail("%v %d at %d: %d bytes, although the file ends at %d", a.verb, n, off, m, l.most)
		return false
	case err == nil && int64(m) < n:
		l.fail("%v %d at %d: %d bytes, and no error", a.verb, n, off, m)
		return false
	case err == io.EOF && (int64(m) < least || int64(m) == n):
		l.fail("%v %d at %d: %d bytes and EOF, although the file ends at %d", a.verb, n, off, m, l.least)
		return false
	case err != nil && err != io.EOF && !l.excused(a, off, n, err):
		return false
	}
	return l.same(a, p[:m], off)
}

// same compares bytes at off with the model.
func (l *runner) same(a act, got []byte, off int64) bool {
	if i := l.wrong(got, off); i >= 0 {
		at := off + int64(i)
		l.fail("%v %d at %d: byte %d is %#x, want %#x", a.verb, len(got), off, at, got[i], l.model[at])
		return false
	}
	return true
}

// wrong returns the first byte that can't be, or -1.
func (l *runner) wrong(got []byte, off int64) int {
	want := l.model[off : off+int64(len(got))]
	for i := differ(got, want); i >= 0 && i < len(got); i++ {
		if i%MinPage == 0 && bytes.Equal(got[i:min(i+MinPage, len(got))], want[i:min(i+MinPage, len(got))]) {
			i += MinPage - 1
		} else if got[i] != want[i] && !l.may(got[i], off+int64(i)) {
			return i
		}
	}
	return -1
}

// may reports whether a byte may be what it was before a write that was lost.
func (l *runner) may(b byte, at int64) bool {
	if l.faults.lasting && b == l.base[at] {
		return true
	}
	for _, m := range l.maybe {
		if j := at - m.off; j >= 0 && j < int64(len(m.new)) && (b == m.old[j] || b == m.new[j]) {
			return true
		}
	}
	return false
}

func (l *runner) write(ctx context.Context, a act, o *Open, off, n int64) bool {
	p := l.bytes[a.from : a.from+int(n)]
	old := bytes.Clone(l.model[off : off+n])
	m, err := o.WriteAt(ctx, p, off)
	if err == nil && int64(m) != n {
		l.fail("%v %d at %d: %d bytes, and no error", a.verb, n, off, m)
		return false
	}
	return l.wrote(a, p, old, off, m, err)
}

// wrote does to the model what was done to the file.
func (l *runner) wrote(a act, p, old []byte, off int64, m int, err error) bool {
	n, before := int64(len(p)), l.most
	copy(l.model[off:], p[:m])
	if err != nil || l.faults.lasting {
		l.maybe = append(l.maybe, maybe{off: off, old: old, new: p})
	}
	if l.tail && m > 0 {
		l.most = max(l.most, off+int64(m))
		if !l.faults.lasting {
			l.least = max(l.least, off+int64(m))
		}
	}
	if err == nil {
		return true
	}
	if l.tail && off+n > l.most { // part of it may be there
		l.most = off + n
	}
	return l.excused(a, off, n, err) && l.most == before
}

func (l *runner) append(ctx context.Context, a act, o *Open) bool {
	if l.least != l.most || l.faults.lasting {
		return true
	}
	n := min(a.n, l.region.End-l.most)
	p := l.bytes[a.from : a.from+int(n)]
	off, m, err := o.Append(ctx, p)
	switch {
	case err == nil && int64(m) != n:
		l.fail("append %d: %d bytes, and no error", n, m)
		return false
	case m > 0 && off != l.most:
		l.fail("append %d: at %d, want %d", n, off, l.most)
		return false
	}
	return l.wrote(a, p, make([]byte, n), l.most, m, err)
}

func (l *runner) truncate(ctx context.Context, a act, o *Open, size int64) bool {
	if err := o.Truncate(ctx, size); err != nil {
		return l.excused(a, size, 0, err)
	}
	clear(l.model[size:])
	l.least, l.most = size, size
	if got := o.file.Size(); got != size && o.file.Keeps(remote.CacheRead) {
		l.fail("truncate to %d: size is %d", size, got)
		return false
	}
	return true
}

func (l *runner) sync(ctx context.Context, a act, i int) bool {
	err := l.host.opens[i].Sync(ctx)
	l.hear(l.host, i, err)
	if err != nil {
		return l.excused(a, 0, 0, err)
	}
	server := l.stored()
	end := min(l.region.End, int64(len(server)))
	if l.tail && !l.faults.lasting && (int64(len(server)) < l.least || int64(len(server)) > l.most) {
		l.fail("sync: size on the server is %d, want %d", len(server), l.least)
		return false
	}
	return l.region.Off >= end || l.same(a, server[l.region.Off:end], l.region.Off)
}

var errEnough = errors.New("enough")

func (l *runner) stream(ctx context.Context, a act, o *Open, off int64) bool {
	at, good := off, true
	n, kept, err := o.Stream(ctx, off, func(p []byte) error {
		p = p[:min(int64(len(p)), l.region.End-at)]
		if l.tail && at+int64(len(p)) > l.most {
			l.fail("stream at %d goes beyond %d", at, l.most)
			good = false
		}
		good = good && l.same(a, p, at)
		if at += int64(len(p)); !good || at == l.region.End || at-off > 4*a.n {
			return errEnough
		}
		return nil
	})
	switch {
	case !good:
	case err == nil && kept && (!l.tail || off+n < l.least):
		l.fail("stream from %d ends after %d bytes, and without an error", off, n)
		return false
	case err != nil && err != errEnough:
		return l.excused(a, off, n, err)
	}
	return good
}

// reopen has one more open for a moment, by which rights come back.
func (l *runner) reopen(ctx context.Context, a act, off, n int64) bool {
	o, err := l.host.attach(ctx)
	if err != nil {
		return l.excused(a, off, n, err)
	}
	good := true
	if a.n%2 == 0 {
		good = l.read(ctx, a, o, off, n)
	} else {
		good = l.write(ctx, a, o, off, n)
	}
	if err := o.Close(ctx); err != nil {
		good = l.excused(a, off, n, err) && good
	}
	return good
}

// adopt puts into the model what the server made of writes that are not sure.
func (p *player) adopt(server []byte) {
	for _, l := range p.lanes {
		end := min(l.region.End, int64(len(server)))
		if l.region.Off < end {
			part := server[l.region.Off:end]
			if i := l.wrong(part, l.region.Off); i >= 0 {
				p.fail("byte %d on the server is %#x, want %#x", l.region.Off+int64(i), part[i], l.model[l.region.Off+int64(i)])
				return
			}
			copy(l.model[l.region.Off:], part)
		}
		if l.tail {
			if n := int64(len(server)); n < l.least || n > l.most {
				p.fail("size on the server is %d, want %d to %d", n, l.least, l.most)
				return
			} else {
				clear(l.model[n:])
				p.end = n
			}
		}
	}
	p.lanes = nil
}

// invariants complains if what is known of the file contradicts itself.
func (h *host) invariants(p *player) {
	f := h.file
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, dirty := int64(0), []int64(nil)
	for i, c := range f.chunks {
		var covered extent.Set
		at := i << maxRunShift
		for _, m := range c.runs {
			if m.r.Off < at || m.r.Len() != int64(len(m.mem)) || m.r.Off%m.r.Len() != 0 || m.refs.Load() < 1 {
				p.fail("run %v of chunk %d, after %d, with %d references", m.r, i, at, m.refs.Load())
			}
			at = m.r.End
			covered.Add(m.r)
		}
		for r := range c.valid.All() {
			if !covered.Contains(r) {
				p.fail("%v is valid, and no run has it", r)
			}
		}
		for r := range c.dirty.All() {
			if !c.valid.Contains(r) {
				p.fail("%v is dirty, and not valid", r)
			}
		}
		if c.dirty.Len() > 0 {
			dirty = append(dirty, i)
		}
		sum += c.dirty.Bytes()
	}
	slices.Sort(dirty)
	if sum != f.bytes || !slices.Equal(dirty, f.dirty) {
		p.fail("%d dirty bytes in %v, want %d in %v", f.bytes, f.dirty, sum, dirty)
	}
	for _, w := range f.writes {
		if c := f.chunkLocked(w.r.Off); c == nil || !f.flying.Contains(w.r) {
			p.fail("%v is under way, and not flying", w.r)
		}
		sum += w.r.Len()
	}
	if n := h.cache.dirty.Load(); n != sum {
		p.fail("the cache counts %d dirty bytes, want %d", n, sum)
	}
}

// leaks complains about what nobody uses any more: all opens are closed.
func (h *host) leaks(p *player, i int) {
	f, sum := h.file, int64(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.chunks {
		for _, m := range c.runs {
			if sum += m.r.Len(); m.refs.Load() != 1 {
				p.fail("client %d: run %v has %d references", i, m.r, m.refs.Load())
			}
		}
	}
	if len(f.fills) > 0 || len(f.writes) > 0 || f.flying.Len() > 0 || f.bytes > 0 || len(f.sweeps) > 0 {
		p.fail("client %d: %d fills, %d writes, %d flying, %d dirty, %d sweeps", i, len(f.fills), len(f.writes), f.flying.Bytes(), f.bytes, len(f.sweeps))
	}
	h.cache.mu.Lock()
	defer h.cache.mu.Unlock()
	if used := h.cache.budget - h.cache.arena.free; used != sum {
		p.fail("client %d: %d bytes of memory are used, and %d found", i, used, sum)
	}
}
