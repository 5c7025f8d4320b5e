package pagewire

import (
	"context"
	"io"
	"math"
	"sync"

	"github.com/pagewire/pagewire/internal/remote"
)

// pipeline moves a range between a file and something local, past the cache, in pieces of one
// request each and several at a time. Workers claim one piece after the other
// and carry it from end to end, each in a buffer of its own, so nothing is
// handed around and nothing is allocated per piece.
//
// Its goroutines are the workers; the caller of run is the first one, and joins
// the others. Offsets are relative to the range.
type pipeline struct {
	file *File
	dir  remote.Direction
	base int64     // of the range in the file
	from io.Reader // what claims are read from in their order, if anything
	move func(w *worker) error
	ctx  context.Context // of this run; see start
	stop context.CancelCauseFunc

	reading chan struct{} // a token: who has it reads from
	workers sync.WaitGroup

	mu sync.Mutex
	// guarded by mu
	next    int64 // what is claimed next
	size    int64 // where the range seems to end
	end     int64 // where it ends, once somebody has seen that
	beyond  bool  // a claim that reaches beyond size is under way
	running int   // workers
	err     error // the first one
	// The claims under way, in the order of their offsets. A claim that failed
	// stays, since nothing behind it counts.
	first, last *worker
}

// worker is one of those who move pieces. Its claim is the n bytes at off.
type worker struct {
	p          *pipeline
	buf        *buffer
	piece      []byte // where the claim is in memory
	off        int64
	n          int
	moved      int           // bytes of the claim that have come through, if it failed
	prev, next *worker       // guarded by p.mu
	turn       chan struct{} // wakes a worker that waits to be the first
}

// claimUnit is what a request beyond the end is rounded up to: as much as one
// credit of SMB pays for.
const claimUnit = 64 << 10

// start readies a pipeline for a range that seems to be size long. ctx bounds
// the run; what its requests are asked with ends with the run, too.
func (p *pipeline) start(ctx context.Context, size int64) {
	p.ctx, p.stop = context.WithCancelCause(ctx)
	p.size, p.end = max(size, 0), math.MaxInt64
	if p.from != nil {
		p.reading = make(chan struct{}, 1)
	}
}

// run moves the range and returns how much of it came through without a gap.
func (p *pipeline) run() (int64, error) {
	defer p.stop(nil)
	c := &p.file.share.crowd[p.dir]
	c.transfers.Add(1)
	defer c.transfers.Add(-1)
	p.mu.Lock()
	p.enterLocked()
	p.mu.Unlock()
	p.work()
	p.workers.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.throughLocked(), p.err
}

func (p *pipeline) work() {
	w := &worker{p: p}
	defer func() { p.file.share.buffers.put(w.buf) }()
	for p.claim(w) {
		if err := p.move(w); err != nil {
			p.fail(w, err)
			return
		}
		p.finish(w)
	}
}

func (p *pipeline) enterLocked() {
	p.running++
	p.file.share.crowd[p.dir].workers.Add(1)
}

func (p *pipeline) leaveLocked() {
	p.running--
	p.file.share.crowd[p.dir].workers.Add(-1)
}

// window says how many requests may be in flight, and how large.
func (p *pipeline) window() remote.Window {
	vol := p.file.share.vol
	window, limits := vol.Flow().Window(p.dir), vol.Limits()
	largest := limits.Read
	if p.dir == remote.Writing {
		largest = limits.Write
	}
	return remote.Window{Requests: max(window.Requests, 1), Size: max(min(window.Size, largest), 1)}
}

// claim gives w a piece to move, unless there is none left, or there are too many
// workers.
func (p *pipeline) claim(w *worker) bool {
	window := p.window()
	if p.from != nil {
		return p.claimFrom(w, window)
	}
	if !p.claimNext(w, window) {
		return false
	}
	w.buf = p.file.share.buffers.fit(w.buf, w.n)
	w.piece = w.buf.b[:w.n]
	return true
}

func (p *pipeline) claimNext(w *worker, window remote.Window) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.next >= p.end || p.beyond || p.crowdedLocked(window) {
		p.leaveLocked()
		return false
	}
	n := int64(window.Size)
	switch left := max(p.size-p.next, 0); {
	case left < n: // the end is here, unless the file grows: ask for a little more, and see
		p.beyond = true
		n = min(n, (left/claimUnit+1)*claimUnit)
	case left == n && n > claimUnit: // leave something to the one who asks for more
		n -= claimUnit
	}
	p.linkLocked(w, int(n))
	if p.next < p.end && !p.beyond {
		p.growLocked(window)
	}
	return true
}

// claimFrom reads the next piece from the source, which others wait for
// meanwhile. A piece is full or the last one.
func (p *pipeline) claimFrom(w *worker, window remote.Window) bool {
	n, err := 0, error(nil)
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-p.ctx.Done():
		err = context.Cause(p.ctx)
	}
	p.mu.Lock()
	ok := err == nil && p.err == nil && p.next < p.end && !p.crowdedLocked(window)
	p.mu.Unlock()
	if ok {
		w.buf = p.file.share.buffers.fit(w.buf, window.Size)
		n, err = io.ReadFull(p.from, w.buf.b[:window.Size])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		p.linkLocked(w, n)
		w.piece = w.buf.b[:n]
	}
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		p.end = p.next
	case err != nil && p.err == nil:
		p.err = err
	case err == nil && n > 0:
		p.growLocked(window)
	}
	if n == 0 {
		p.leaveLocked()
	}
	return n > 0
}

// All transfers of a direction have one window together. Each may have its share
// of the requests, which is one at least, and what the others leave of theirs.
func (p *pipeline) shareLocked(window remote.Window) (fair, free int) {
	c := &p.file.share.crowd[p.dir]
	return max(window.Requests/int(c.transfers.Load()), 1), window.Requests - int(c.workers.Load())
}

// crowdedLocked reports whether this transfer has a worker too many.
func (p *pipeline) crowdedLocked(window remote.Window) bool {
	fair, free := p.shareLocked(window)
	return free < 0 && p.running > fair
}

// growLocked starts one more worker, if there is room. It will do the same.
func (p *pipeline) growLocked(window remote.Window) {
	if fair, free := p.shareLocked(window); free > 0 || p.running < fair {
		p.enterLocked()
		p.workers.Go(p.work)
	}
}

func (p *pipeline) linkLocked(w *worker, n int) {
	w.off, w.n, w.moved = p.next, n, 0
	p.next += int64(n)
	w.prev, w.next = p.last, nil
	if p.last != nil {
		p.last.next = w
	} else {
		p.first = w
	}
	p.last = w
}

// finish books a claim that came through.
func (p *pipeline) finish(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		p.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		p.last = w.prev
	}
	if p.beyond && w.off+int64(w.n) > p.size { // it is longer than it seemed, or else end says so
		p.beyond = false
		p.size = p.next + 2*int64(w.n)
	}
	p.file.progress.Store(p.throughLocked())
	if p.first != nil && p.first.turn != nil {
		p.first.wake()
	}
}

// fail keeps the first error, which ends the claiming. What is under way comes
// through.
func (p *pipeline) fail(w *worker, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	w.off += int64(w.moved)
	p.leaveLocked()
}

// abort is fail for what makes it useless that others go on.
func (p *pipeline) abort(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.stop(p.err)
}

// throughLocked returns how much came through without a gap.
func (p *pipeline) throughLocked() int64 {
	if p.first != nil {
		return min(p.first.off, p.end)
	}
	return min(p.next, p.end)
}

// endAt books that the range ends at off.
func (p *pipeline) endAt(off int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = min(p.end, off)
}

// endIn returns how much of the n bytes of w's claim is before the end.
func (p *pipeline) endIn(w *worker, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(min(int64(n), max(p.end-w.off, 0)))
}

func (w *worker) wake() {
	select {
	case w.turn <- struct{}{}:
	default: // it knows already
	}
}

// await returns once all that is claimed before w's claim has come through.
func (w *worker) await() error {
	for {
		w.p.mu.Lock()
		if w.turn == nil {
			w.turn = make(chan struct{}, 1)
		}
		first := w.p.first == w
		w.p.mu.Unlock()
		if first {
			return nil
		}
		select {
		case <-w.turn:
		case <-w.p.ctx.Done():
			return context.Cause(w.p.ctx)
		}
	}
}

// fetch fills w's claim from the file, and returns how much of it there is.
func (w *worker) fetch() (int, error) {
	p := w.p
	n, err := p.file.handle.ReadAt(p.ctx, w.piece, p.base+w.off)
	if err == io.EOF {
		p.endAt(w.off + int64(n))
		err = nil
	}
	return n, err
}

// store writes the first n bytes of w's claim to the file.
func (w *worker) store(n int) error {
	var err error
	w.moved, err = w.p.file.handle.WriteThrough(w.p.ctx, w.piece[:n], w.p.base+w.off)
	return err
}
