package pagecache

import (
	"context"
	"io"
	"sync"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// readDirect reads what may not be kept, once all that was written there is on the
// server.
func (o *Open) readDirect(ctx context.Context, p []byte, off int64) (n int, err error) {
	f := o.file
	whole := extent.Range{Off: off, End: off + int64(len(p))}
	if err := f.settle(ctx, whole); err != nil {
		return 0, err
	}
	f.mu.RLock()
	server, grown := f.server, f.grownLocked()
	f.mu.RUnlock()
	size, workers := f.request(remote.Reading)
	eof := false
	if whole.Len() <= size {
		n, eof, err = o.readPiece(ctx, p, off, server)
	} else {
		s := spread{whole: whole, piece: size, workers: workers, do: func(ctx context.Context, r extent.Range) (int64, bool, error) {
			n, eof, err := o.readPiece(ctx, p[r.Off-off:r.End-off], r.Off, server)
			return int64(n), eof, err
		}}
		var m int64
		m, eof, err = s.run(ctx)
		n = int(m)
	}
	if eof && err == nil && n < len(p) {
		if end := min(grown, whole.End) - off; end > int64(n) { // what makes it longer is still to be written
			clear(p[n:end])
			n = int(end)
		}
		if n < len(p) {
			err = io.EOF
		}
	}
	return n, err
}

// readPiece fills p with the file from off, as far as it goes. That it stops just
// where the server is known to have the end, is as good as being told.
func (o *Open) readPiece(ctx context.Context, p []byte, off, server int64) (n int, eof bool, err error) {
	file, reads := o.server, o.file.cfg.Reads
	v := vectors.Get().(*[1][]byte)
	defer vectors.Put(v)
	for n < len(p) && !eof && err == nil {
		var m int
		v[0] = p[n:]
		start := reads.Begin()
		m, eof, err = file.ReadAt(ctx, remote.Req{Open: o.remote, Off: off + int64(n)}, v[:])
		reads.Done(start, m, err)
		n += m
		switch {
		case eof || err != nil || n == len(p):
		case m == 0:
			err = io.ErrNoProgress
		default:
			eof = off+int64(n) == server
		}
	}
	v[0] = nil
	return n, eof, err
}

// vectors keeps the lists of one buffer that requests take.
var vectors = sync.Pool{New: func() any { return new([1][]byte) }}

// writeDirect writes what may not be kept, or must not stay here.
func (o *Open) writeDirect(ctx context.Context, p []byte, off int64) (n int, err error) {
	f := o.file
	whole := extent.Range{Off: off, End: off + int64(len(p))}
	c, err := f.claimClean(ctx, whole)
	if err != nil {
		return 0, err
	}
	size, workers := f.request(remote.Writing)
	if whole.Len() <= size {
		n, err = o.writePiece(ctx, p, off)
	} else {
		s := spread{whole: whole, piece: size, workers: workers, do: func(ctx context.Context, r extent.Range) (int64, bool, error) {
			n, err := o.writePiece(ctx, p[r.Off-off:r.End-off], r.Off)
			return int64(n), false, err
		}}
		var m int64
		m, _, err = s.run(ctx)
		n = int(m)
	}
	f.mu.Lock()
	f.invalidateLocked(whole) // whoever asked for these bytes meanwhile may have got either
	if n > 0 {
		f.wroteLocked(off + int64(n))
	}
	f.yieldLocked(c)
	f.mu.Unlock()
	f.changed.wake()
	if err != nil {
		f.Doubt()
	}
	return n, err
}

// wroteLocked notes that the server has the file up to end at least.
func (f *File) wroteLocked(end int64) {
	f.serverSizeLocked(max(f.server, end))
	f.touchLocked()
}

func (o *Open) writePiece(ctx context.Context, p []byte, off int64) (n int, err error) {
	file, writes := o.server, o.file.cfg.Writes
	v := vectors.Get().(*[1][]byte)
	defer vectors.Put(v)
	for n < len(p) && err == nil {
		var m int
		v[0] = p[n:]
		start := writes.Begin()
		m, _, err = file.WriteAt(ctx, remote.Req{Open: o.remote, Off: off + int64(n)}, remote.Write{Data: v[:], Stable: o.stable})
		writes.Done(start, m, err)
		n += m
		if m == 0 && err == nil {
			err = io.ErrShortWrite
		}
	}
	v[0] = nil
	return n, err
}

// spread does something to a range in pieces, several at a time.
type spread struct {
	whole   extent.Range
	piece   int64 // borders of pieces are multiples of it
	workers int
	do      func(context.Context, extent.Range) (n int64, end bool, err error)

	mu sync.Mutex
	// guarded by mu
	next int64 // the first byte that is nobody's
	stop int64 // where the first piece ended that did not come through
	end  bool  // that was the end of the file
	err  error // or why
}

// run returns how much of the range came through without a gap, and why not more.
func (s *spread) run(ctx context.Context) (n int64, end bool, err error) {
	s.next, s.stop = s.whole.Off, s.whole.End
	var wg sync.WaitGroup
	pieces := int((s.whole.Len() + s.piece - 1) / s.piece)
	for range min(s.workers, pieces) - 1 {
		wg.Go(func() { s.work(ctx) })
	}
	s.work(ctx)
	wg.Wait()
	return s.stop - s.whole.Off, s.end, s.err
}

func (s *spread) work(ctx context.Context) {
	for {
		s.mu.Lock()
		r := upTo(extent.Range{Off: s.next, End: s.whole.End}, s.piece)
		if r.Off >= s.stop {
			s.mu.Unlock()
			return
		}
		s.next = r.End
		s.mu.Unlock()
		n, end, err := s.do(ctx, r)
		if err != nil || end || n < r.Len() {
			s.cut(r.Off+n, end, err)
			return
		}
	}
}

// cut notes that nothing counts from at on.
func (s *spread) cut(at int64, end bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.stop || at == s.stop && s.err == nil && !s.end {
		s.stop, s.end, s.err = at, end, err
	}
}

// Bypass has everything of this open go past the cache from now on.
func (o *Open) Bypass() { o.direct.Store(true) }

// WriteThrough is WriteAt that keeps nothing here: when it returns, the server has it.
func (o *Open) WriteThrough(ctx context.Context, p []byte, off int64) (int, error) {
	if err := o.check(remote.ForWrite, off, len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	return o.writeDirect(ctx, p, off)
}

// Keeps reports whether bytes that are read, or written, may be kept now.
func (o *Open) Keeps(right remote.Rights) bool { return o.file.Keeps(right) }

// Size returns how long the file is, with what was written here.
func (o *Open) Size() int64 { return o.file.Size() }
