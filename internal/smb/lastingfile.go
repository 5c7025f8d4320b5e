package smb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// lastingFile is a File that outlives the connection. When that is lost, each open
// finds a handle again at its next use, by the path that the file has now, and never
// makes or empties anything. It has to be the same object; whether it is unchanged,
// too, the first open to come back decides for all: see knowledge.
//
//   - Whoever keeps bytes of the file is told at once that the rights are gone and
//     nothing is sure, and, when it is open again, of the new rights and the verdict.
//   - Reads are asked again. A WRITE that was not answered is sent again, once, if the
//     file is unchanged, and else fails with ESTALE: it must not land on the bytes of
//     somebody else.
//   - Later writes go on: they know of the change.
type lastingFile struct {
	sh     *Share
	first  *generation   // that it was made under
	coming chan struct{} // full while an open comes back

	telling sync.Mutex // orders what events are told

	mu sync.Mutex
	// guarded by mu
	events  remote.Events
	id      uint64
	born    time.Time
	now     *generation
	rights  remote.Rights
	epoch   uint64
	known   knowledge
	flying  int    // WRITEs
	sent    uint64 // WRITEs and SetSizes begun
	opens   map[*lastingOpen]bool
	missed  *Session // the one under which a change by somebody else was found
	missing error    // what to say of it
}

// generation is a file under one session.
type generation struct {
	f    atomic.Pointer[lastingFile]
	s    *Session
	file *File  // nil: not open yet; guarded by lastingFile.mu, as is seen
	seen uint64 // the epoch of what it was told last
}

func newGeneration(f *lastingFile, s *Session) *generation {
	g := &generation{s: s}
	g.f.Store(f)
	return g
}

// lastingOpen is an Open that outlives the connection.
type lastingOpen struct {
	f      *lastingFile
	how    remote.How
	handle atomic.Pointer[handle]
	stale  atomic.Pointer[error] // it has no file any more
	closed atomic.Bool
}

// handle is an open under one session.
type handle struct {
	s    *Session
	file *File
	open remote.Open
}

var (
	errReplaced = fmt.Errorf("the file is gone or another one since the connection was lost: %w", syscall.ESTALE)
	errForeign  = fmt.Errorf("the file was changed on the server while the connection was lost: %w", syscall.ESTALE)
	errUndone   = fmt.Errorf("the server has lost what it had written before the connection was lost: %w", syscall.EIO)
)

func newLastingFile(sh *Share, s *Session, events remote.Events) *lastingFile {
	f := &lastingFile{sh: sh, coming: make(chan struct{}, 1), events: events, opens: map[*lastingOpen]bool{}}
	f.first = newGeneration(f, s)
	f.now = f.first
	return f
}

// is says whether f is what was opened under a session; late, that it is not open
// under that session yet.
func (f *lastingFile) is(opened remote.Opened, s *Session) (same, late bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.s == s {
		return f.now.file == opened.File, false
	}
	same = f.id != 0 && f.id == opened.Attr.ID && f.born.Equal(opened.Attr.Born)
	return same, same
}

// add adds an open.
func (f *lastingFile) add(s *Session, inner remote.Opened, how remote.How) *lastingOpen {
	file := inner.File.(*File)
	o := &lastingOpen{f: f, how: how}
	o.how.Create = remote.Existing
	f.mu.Lock()
	defer f.mu.Unlock()
	o.handle.Store(&handle{s: s, file: file, open: inner.Open})
	f.opens[o] = true
	if f.now.file == nil {
		f.now.file = file
		f.id, f.born = inner.Attr.ID, inner.Attr.Born
	}
	if len(f.opens) == 1 {
		f.learnLocked(inner.Attr)
	} else if how.Create >= remote.Truncate {
		f.known.ours, f.known.size = true, 0
	}
	return o
}

func (f *lastingFile) learnLocked(attr remote.Attr) {
	f.known = knowledge{size: attr.Size, written: attr.Written, changed: attr.Changed}
}

// opened is what the caller of an open gets.
func (f *lastingFile) opened(o *lastingOpen, inner remote.Opened) remote.Opened {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inner.Epoch > f.now.seen {
		f.now.seen, f.rights = inner.Epoch, inner.Rights
		f.epoch++
	}
	inner.File, inner.Open, inner.Rights, inner.Epoch = f, o, f.rights, f.epoch
	return inner
}

// Rights hears of a change from the session that g belongs to.
func (g *generation) Rights(ch remote.Change) {
	f := g.f.Load()
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	now, events := f.now, f.events
	if now.s == g.s {
		if ch.Epoch > now.seen {
			now.seen, f.rights = ch.Epoch, ch.Rights
		} else {
			f.rights &= ch.Rights
		}
		f.epoch++
		ch.Rights, ch.Epoch = f.rights, f.epoch
	}
	open := len(f.opens) > 0
	f.mu.Unlock()
	switch {
	case now.s == g.s && open && events != nil:
		events.Rights(ch)
	case ch.Ack != nil: // nobody keeps anything
		g.s.conn.Go(func() { ch.Ack(nil) })
	}
}

// unsure tells that a session is lost, unless the file is known to a later one, and
// reports whether somebody wants to hear how it goes on.
func (f *lastingFile) unsure(s *Session) bool {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	if f.now.s != s || len(f.opens) == 0 || f.events == nil {
		f.mu.Unlock()
		return false
	}
	f.rights = 0
	f.epoch++
	ch := remote.Change{Node: f.nodeLocked(), Epoch: f.epoch, Trust: remote.Unsure}
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
	return true
}

func (f *lastingFile) nodeLocked() remote.Node { return remote.Node(f.now.file.node()) }

// restore brings one open back, and the file's rights with it.
func (f *lastingFile) restore(ctx context.Context) error {
	f.mu.Lock()
	var best *lastingOpen
	for o := range f.opens {
		if best == nil || o.how.Rights > best.how.Rights {
			best = o
		}
	}
	f.mu.Unlock()
	if best == nil {
		return nil
	}
	_, err := best.use(ctx)
	return err
}

// use returns the handle of an open, over a connection that is not known to be dead.
func (o *lastingOpen) use(ctx context.Context) (*handle, error) {
	for tries := 0; ; tries++ {
		h := o.handle.Load()
		switch stale := o.stale.Load(); {
		case o.closed.Load():
			return nil, net.ErrClosed
		case stale != nil:
			return nil, *stale
		case h.s.alive():
			return h, nil
		}
		if err := o.comeBack(ctx); err != nil && (!lost(err) || tries > 0 || ctx.Err() != nil) {
			return nil, err
		}
	}
}

// comeBack opens the file again. One open of a file does it at a time.
func (o *lastingOpen) comeBack(ctx context.Context) error {
	f := o.f
	select {
	case f.coming <- struct{}{}:
		defer func() { <-f.coming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.handle.Load().s.alive() {
		return nil
	}
	v, err := f.sh.volume(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	node := f.nodeLocked()
	g := f.now
	if g.s != v.s {
		g = newGeneration(f, v.s)
	}
	f.mu.Unlock()
	opened, err := v.Open(ctx, remote.At{Node: node}, o.how, g)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) {
		return o.lose(ctx, g, nil)
	}
	if err != nil {
		return err
	}
	if opened.Attr.ID != f.id || !opened.Attr.Born.Equal(f.born) {
		return o.lose(ctx, g, opened.Open)
	}
	o.handle.Store(&handle{s: v.s, file: opened.File.(*File), open: opened.Open})
	f.back(g, opened)
	return nil
}

// back notes that an open is there again, and tells what the file has turned out to
// be, if it is the first under its session.
func (f *lastingFile) back(g *generation, opened remote.Opened) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	ch := remote.Change{Trust: remote.Current}
	if old := f.now; old.s != g.s {
		g.file = opened.File.(*File)
		f.now = g
		switch f.known.judge(opened.Attr, g.s.serverTime(old.s.lostAt())) {
		case changed:
			ch.Trust, f.missed, f.missing = remote.Outdated, g.s, errForeign
		case undone:
			ch.Trust, f.missed, f.missing = remote.Outdated, g.s, errUndone
		}
		if f.flying == 0 || ch.Trust == remote.Outdated {
			f.learnLocked(opened.Attr)
		}
	}
	if now := f.now; opened.Epoch >= now.seen {
		now.seen, f.rights = opened.Epoch, opened.Rights
	}
	f.epoch++
	ch.Node, ch.Rights, ch.Epoch = f.nodeLocked(), f.rights, f.epoch
	events := f.events
	f.mu.Unlock()
	if events != nil {
		events.Rights(ch)
	}
}

// lose gives an open up whose file is not there any more, for good.
func (o *lastingOpen) lose(ctx context.Context, g *generation, other remote.Open) error {
	f := o.f
	o.stale.Store(&errReplaced)
	if other != nil {
		other.Close(ctx)
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	f.rights = 0
	f.epoch++
	ch := remote.Change{Node: f.nodeLocked(), Epoch: f.epoch, Trust: remote.Outdated}
	events := f.events
	f.mu.Unlock()
	if events != nil {
		events.Rights(ch)
	}
	return errReplaced
}

// lostAt is when the session was lost, which is now if nobody has noticed yet.
func (s *Session) lostAt() time.Time {
	if at := s.lost.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}

func (f *lastingFile) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	o := req.Open.(*lastingOpen)
	for first := true; ; first = false {
		h, err := o.use(ctx)
		if err != nil {
			return 0, false, err
		}
		req.Open = h.open
		n, eof, err = h.file.ReadAt(ctx, req, into)
		if !first || !lost(err) || ctx.Err() != nil {
			return n, eof, err
		}
	}
}

// begin notes that something is sent which changes the file up to end.
func (f *lastingFile) begin(end int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	f.flying++
	f.known.ours = true
	f.known.end = max(f.known.end, end)
}

// ended notes how that went, under a session.
func (f *lastingFile) ended(s *Session, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying--
	if err == nil {
		f.known.heard = s.serverTime(time.Now())
	}
}

// resend says why what was sent over an earlier connection must not be sent again.
func (f *lastingFile) resend(h *handle) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missed == h.s {
		return f.missing
	}
	return nil
}

// change sends what changes the file up to end, and sends it once more if the
// connection is lost meanwhile and the file is still what it was.
func (o *lastingOpen) change(ctx context.Context, end int64, send func(*handle) error) error {
	f := o.f
	h, err := o.use(ctx)
	if err != nil {
		return err
	}
	f.begin(end)
	err = send(h)
	if lost(err) && ctx.Err() == nil {
		if h, err = o.use(ctx); err == nil {
			if err = f.resend(h); err == nil {
				err = send(h)
			}
		}
	}
	if h == nil {
		h = o.handle.Load()
	}
	f.ended(h.s, err)
	return err
}

func (f *lastingFile) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (n int, stable bool, err error) {
	o, size := req.Open.(*lastingOpen), length(w.Data)
	h, err := o.use(ctx)
	if err != nil {
		return 0, false, err
	}
	f.begin(req.Off + int64(size))
	req.Open = h.open
	n, stable, err = h.file.WriteAt(ctx, req, w)
	if lost(err) && ctx.Err() == nil {
		var next *handle
		if next, err = o.use(ctx); err == nil {
			h = next
			if err = f.resend(h); err == nil {
				req.Open = h.open
				n, stable, err = h.file.WriteAt(ctx, req, w)
			}
		}
	}
	f.ended(h.s, err)
	return n, stable, err
}

// Commit makes the server flush the file.
func (f *lastingFile) Commit(ctx context.Context, open remote.Open, spans []remote.Span) (redo []remote.Span, err error) {
	o := open.(*lastingOpen)
	h, err := o.use(ctx)
	if err != nil {
		return nil, err
	}
	redo, err = h.file.Commit(ctx, h.open, spans)
	if lost(err) && ctx.Err() == nil {
		if h, err = o.use(ctx); err == nil {
			if err = f.resend(h); err == nil {
				redo, err = h.file.Commit(ctx, h.open, spans)
			}
		}
	}
	return redo, err
}

func (f *lastingFile) GetAttr(ctx context.Context, open remote.Open) (remote.Attr, error) {
	o := open.(*lastingOpen)
	for first := true; ; first = false {
		h, err := o.use(ctx)
		if err != nil {
			return remote.Attr{}, err
		}
		f.mu.Lock()
		sent, quiet := f.sent, f.flying == 0
		f.mu.Unlock()
		attr, err := h.file.GetAttr(ctx, h.open)
		if first && lost(err) && ctx.Err() == nil {
			continue
		}
		if err == nil && quiet {
			f.mu.Lock()
			if f.sent == sent {
				f.learnLocked(attr)
			}
			f.mu.Unlock()
		}
		return attr, err
	}
}

func (f *lastingFile) SetSize(ctx context.Context, open remote.Open, size int64) (attr remote.Attr, err error) {
	o := open.(*lastingOpen)
	f.mu.Lock()
	quiet := f.flying == 0
	sent := f.sent
	f.mu.Unlock()
	err = o.change(ctx, size, func(h *handle) (err error) {
		attr, err = h.file.SetSize(ctx, h.open, size)
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && quiet && f.sent == sent+1:
		f.learnLocked(attr)
	default:
		f.known.size = min(f.known.size, size) // it may have happened
	}
	return attr, err
}

func (f *lastingFile) Limits() remote.Limits { return f.sh.Limits() }
func (f *lastingFile) Flow() remote.Flow     { return f.sh.Flow() }

// Append is not tried again: the server may have done it.
func (o *lastingOpen) Append(ctx context.Context, data [][]byte) (off int64, n int, err error) {
	h, err := o.use(ctx)
	if err != nil {
		return 0, 0, err
	}
	o.f.begin(1<<63 - 1)
	off, n, err = h.open.Append(ctx, data)
	o.f.ended(h.s, err)
	if err == nil {
		o.f.mu.Lock()
		o.f.known.end = max(o.f.known.size, off+int64(n))
		o.f.mu.Unlock()
	}
	return off, n, err
}

// Close gives the handle up. One whose connection is lost is gone already.
func (o *lastingOpen) Close(ctx context.Context) error {
	if o.closed.Swap(true) {
		return net.ErrClosed
	}
	f := o.f
	f.sh.mu.Lock()
	f.mu.Lock()
	delete(f.opens, o)
	if len(f.opens) == 0 {
		delete(f.sh.files, f)
	}
	f.mu.Unlock()
	f.sh.mu.Unlock()
	err := o.handle.Load().open.Close(ctx)
	if lost(err) {
		err = nil
	}
	return err
}
