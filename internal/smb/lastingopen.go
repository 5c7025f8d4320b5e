package smb

import (
	"context"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/pagewire/pagewire/internal/remote"
)

// lastingOpen is an Open that outlives the connection: see lastingFile.
type lastingOpen struct {
	f      *lastingFile
	how    remote.How
	handle atomic.Pointer[handle]
	stale  atomic.Bool // it has no file any more
	closed atomic.Bool
}

// handle is an open under one session.
type handle struct {
	s    *Session
	file *File
	open remote.Open
}

// use returns the handle of an open, over a connection that is not known to be dead.
func (o *lastingOpen) use(ctx context.Context) (*handle, error) {
	for first := true; ; first = false {
		h := o.handle.Load()
		switch {
		case o.closed.Load():
			return nil, net.ErrClosed
		case o.stale.Load():
			return nil, errReplaced
		case h.s.alive():
			return h, nil
		}
		if err := o.comeBack(ctx); err != nil && (!first || !lost(err) || ctx.Err() != nil) {
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
	if o.handle.Load().s.alive() || o.stale.Load() {
		return nil
	}
	v, err := f.sh.volume(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	node, id, born := remote.Node(f.path), f.id, f.born
	f.mu.Unlock()
	touches := f.sh.touches.Load()
	opened, err := v.Open(ctx, remote.At{Node: node}, o.how, &listener{s: v.s, f: f})
	switch {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR):
		o.lose(v.s)
		return errReplaced
	case err != nil:
		return err
	case opened.Attr.ID != id || !opened.Attr.Born.Equal(born):
		o.lose(v.s)
		opened.Open.Close(ctx)
		return errReplaced
	}
	f.back(v.s, opened, touches) // before anybody uses the handle
	f.mu.Lock()
	open := f.opens[o]
	if open {
		o.handle.Store(&handle{s: v.s, file: opened.File.(*File), open: opened.Open})
	}
	f.mu.Unlock()
	if !open {
		opened.Open.Close(ctx)
		return net.ErrClosed
	}
	return nil
}

// lose gives an open up whose file is not there any more, for good. Others may have
// found it before.
func (o *lastingOpen) lose(s *Session) {
	f := o.f
	o.stale.Store(true)
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	if f.s == s || f.events == nil {
		f.mu.Unlock()
		return
	}
	ch := f.changeLocked(remote.Outdated, 0)
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
}

// restore brings the rights of a file back about which somebody is unsure, with the
// open that asks for the most.
func (f *lastingFile) restore(ctx context.Context) error {
	f.mu.Lock()
	var best *lastingOpen
	if f.unsure {
		for o := range f.opens {
			if best == nil || o.how.Rights > best.how.Rights {
				best = o
			}
		}
	}
	f.mu.Unlock()
	if best == nil {
		return nil
	}
	_, err := best.use(ctx)
	return err
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

// unchanged returns a handle to send something with that changes the file, if that is
// still what it was when it had been strange so often.
func (o *lastingOpen) unchanged(ctx context.Context, strange int) (*handle, error) {
	h, err := o.use(ctx)
	if err == nil {
		err = o.f.strangeSince(strange)
	}
	return h, err
}

func (f *lastingFile) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (n int, stable bool, err error) {
	o, size := req.Open.(*lastingOpen), length(w.Data)
	h, err := o.unchanged(ctx, f.strangeness())
	if err != nil {
		return 0, false, err
	}
	b := f.begin(req.Off + int64(size))
	req.Open = h.open
	n, stable, err = h.file.WriteAt(ctx, req, w)
	if lost(err) && ctx.Err() == nil {
		if h, err = o.unchanged(ctx, b.strange); err == nil {
			req.Open = h.open
			n, stable, err = h.file.WriteAt(ctx, req, w)
		}
	}
	f.ended(b, err)
	return n, stable, err
}

// Commit makes the server flush the file.
func (f *lastingFile) Commit(ctx context.Context, open remote.Open, spans []remote.Span) (redo []remote.Span, err error) {
	o, strange := open.(*lastingOpen), f.strangeness()
	h, err := o.unchanged(ctx, strange)
	if err != nil {
		return nil, err
	}
	redo, err = h.file.Commit(ctx, h.open, spans)
	if lost(err) && ctx.Err() == nil {
		if h, err = o.unchanged(ctx, strange); err == nil {
			redo, err = h.file.Commit(ctx, h.open, spans)
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
		sent, quiet, touches := f.sent, f.flying == 0, f.sh.touches.Load()
		f.mu.Unlock()
		attr, err := h.file.GetAttr(ctx, h.open)
		if first && lost(err) && ctx.Err() == nil {
			continue
		}
		if err == nil && quiet {
			f.mu.Lock()
			if f.sent == sent {
				f.learnLocked(attr, touches)
			}
			f.mu.Unlock()
		}
		return attr, err
	}
}

func (f *lastingFile) SetSize(ctx context.Context, open remote.Open, size int64) (attr remote.Attr, err error) {
	o := open.(*lastingOpen)
	h, err := o.unchanged(ctx, f.strangeness())
	if err != nil {
		return attr, err
	}
	b, touches := f.begin(size), f.sh.touches.Load()
	f.mu.Lock()
	f.known.end = max(f.known.end, f.known.size) // it may have happened or not, whatever is heard
	f.known.size = min(f.known.size, size)
	f.mu.Unlock()
	attr, err = h.file.SetSize(ctx, h.open, size)
	if lost(err) && ctx.Err() == nil {
		if h, err = o.unchanged(ctx, b.strange); err == nil {
			attr, err = h.file.SetSize(ctx, h.open, size)
		}
	}
	f.ended(b, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && b.quiet && f.sent == b.n+1 {
		f.learnLocked(attr, touches)
	}
	return attr, err
}

func (f *lastingFile) Limits() remote.Limits { return f.sh.Limits() }
func (f *lastingFile) Flow() remote.Flow     { return f.sh.Flow() }

// Append is not tried again: the server may have done it.
func (o *lastingOpen) Append(ctx context.Context, data [][]byte) (off int64, n int, err error) {
	h, err := o.unchanged(ctx, o.f.strangeness())
	if err != nil {
		return 0, 0, err
	}
	f := o.f
	f.mu.Lock()
	end := f.known.end
	f.mu.Unlock()
	b := f.begin(math.MaxInt64) // wherever that is
	off, n, err = h.open.Append(ctx, data)
	f.ended(b, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && b.quiet && f.sent == b.n+1 {
		f.known.end = max(end, off+int64(n))
	}
	return off, n, err
}

// Close gives the handle up. One whose connection is lost is gone already.
func (o *lastingOpen) Close(ctx context.Context) error {
	if o.closed.Swap(true) {
		return net.ErrClosed
	}
	o.hand(ctx)
	h := o.leave()
	err := h.open.Close(ctx)
	if lost(err) {
		err = nil
	}
	return err
}

// hand sees to it that another open of the file has a handle before o gives up what may
// be the only one since the connection was lost: the rights go with the last.
func (o *lastingOpen) hand(ctx context.Context) {
	f := o.f
	f.mu.Lock()
	var others []*lastingOpen
	if s := o.handle.Load().s; f.rights != 0 && s == f.s && s.alive() && !f.heldLocked(o) {
		for other := range f.opens {
			if other != o && !other.stale.Load() {
				others = append(others, other)
			}
		}
	}
	f.mu.Unlock()
	for _, other := range others {
		if _, err := other.use(ctx); err == nil {
			return
		}
	}
}

// heldLocked reports whether another open than o has a handle under the session that
// the file is known to.
func (f *lastingFile) heldLocked(o *lastingOpen) bool {
	for other := range f.opens {
		if other != o && other.handle.Load().s == f.s && !other.stale.Load() {
			return true
		}
	}
	return false
}

// leave takes an open off its file, and returns the handle. If that was the last one and
// there are opens which found none, nobody tells these of changes any more, so they have
// no rights. What the file had to tell until then is told.
func (o *lastingOpen) leave() *handle {
	f := o.f
	f.telling.Lock()
	defer f.telling.Unlock()
	h := f.sh.closed(o)
	f.mu.Lock()
	if h.s != f.s || f.rights == 0 || len(f.opens) == 0 || f.events == nil || f.heldLocked(o) {
		f.mu.Unlock()
		return h
	}
	ch := f.changeLocked(remote.Current, 0)
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
	return h
}
