package remotetest

import (
	"context"
	"io/fs"
	"slices"
	"syscall"

	"github.com/pagewire/pagewire/internal/remote"
)

// file is one object as one client has it open. All fields but f and obj are
// guarded by tree.mu.
type file struct {
	f      *Fake
	obj    *object
	node   remote.Node
	opens  int
	rights remote.Rights
	epoch  uint64
	events remote.Events // of the last open that asked for rights
	lost   []remote.Span // by Restart
}

type open struct {
	file   *file
	access remote.Access
	stable bool
	closed bool // guarded by tree.mu
}

func (f *Fake) opened(p place, how remote.How, events remote.Events) remote.Opened {
	of := f.files[p.obj]
	if of == nil {
		of = &file{f: f, obj: p.obj}
		f.files[p.obj] = of
		p.obj.opens[of] = true
	}
	of.opens++
	of.node = p.node
	if events != nil && p.obj.kind == remote.Regular {
		of.events = events
		granted := how.Rights & f.cfg.Rights
		if len(p.obj.opens) > 1 { // by other clients too
			granted &^= remote.CacheWrite
		}
		if granted&^of.rights != 0 {
			of.rights |= granted
			of.epoch++
		}
	}
	return remote.Opened{
		File: of, Open: &open{file: of, access: how.Access, stable: how.Stable}, Attr: p.obj.attr(p.node),
		Rights: of.rights, Epoch: of.epoch,
	}
}

// use checks that o is an open of this file with such an access.
func (of *file) use(o remote.Open, access remote.Access) error {
	mine, ok := o.(*open)
	switch {
	case !ok || mine.file != of || mine.closed:
		return fs.ErrClosed
	case of.obj.kind == remote.Dir && access != 0:
		return syscall.EISDIR
	case mine.access&access != access:
		return syscall.EACCES
	}
	return nil
}

func (o *open) Close(ctx context.Context) error {
	return o.file.f.do(ctx, Op{Call: "Close", At: o.file.at()}, 0, func() error {
		if o.closed {
			return fs.ErrClosed
		}
		o.closed = true
		of := o.file
		if of.opens--; of.opens == 0 {
			delete(of.f.files, of.obj)
			of.f.tree.forget(of)
		}
		return nil
	})
}

func (o *open) Append(ctx context.Context, data [][]byte) (off int64, n int, err error) {
	off, n, _, err = o.file.write(ctx, "Append", remote.Req{Open: o}, remote.Write{Data: data})
	return off, n, err
}

func (of *file) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	lent := of.f.lend("ReadAt", into, true)
	defer lent.end()
	op := Op{Call: "ReadAt", At: of.at(), Off: req.Off, Len: size(into), Class: req.Class}
	err = of.f.do(ctx, op, 0, func() error {
		lent.filling()
		if err := of.use(req.Open, remote.ForRead); err != nil {
			return err
		}
		if req.Off < 0 {
			return syscall.EINVAL
		}
		limit := min(op.Len, of.f.cfg.limits().Read)
		if short := of.f.cfg.ShortRead; short > 0 {
			limit = min(limit, short)
		}
		rest := of.obj.data[min(req.Off, int64(len(of.obj.data))):]
		eof = len(rest) < limit // as SMB has it: only those who ask for more learn of the end
		rest = rest[:min(len(rest), limit)]
		for _, p := range into {
			n += copy(p, rest[n:])
		}
		return nil
	})
	return n, eof, err
}

func (of *file) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (n int, stable bool, err error) {
	_, n, stable, err = of.write(ctx, "WriteAt", req, w)
	return n, stable, err
}

// write serves Append, which goes to the end of the file, and WriteAt.
func (of *file) write(ctx context.Context, call string, req remote.Req, w remote.Write) (off int64, n int, stable bool, err error) {
	lent := of.f.lend(call, append([][]byte{w.Head, w.Tail}, w.Data...), false)
	defer lent.end()
	op := Op{Call: call, At: of.at(), Off: req.Off, Len: size(w.Data), Class: req.Class}
	err = of.f.do(ctx, op, remote.CacheRead|remote.CacheWrite, func() error {
		if err := of.use(req.Open, remote.ForWrite); err != nil {
			return err
		}
		cfg := &of.f.cfg
		if off = req.Off; call == "Append" {
			off = int64(len(of.obj.data))
		}
		if off < 0 || int64(max(len(w.Head), len(w.Tail))) > cfg.limits().Block {
			return syscall.EINVAL
		}
		n = min(op.Len, cfg.limits().Write)
		if cfg.ShortWrite > 0 {
			n = min(n, cfg.ShortWrite)
		}
		stable = !cfg.Unstable || w.Stable || req.Open.(*open).stable
		if err := of.f.tree.write(of.obj, off, w.Data, n, of, stable); err != nil {
			n = 0
			return err
		}
		return nil
	})
	return off, n, stable, err
}

// write puts the first n bytes of data at off. What by wrote can be undone
// until it is stable.
func (t *tree) write(o *object, off int64, data [][]byte, n int, by *file, stable bool) error {
	if n == 0 {
		return nil
	}
	size, end := int64(len(o.data)), off+int64(n)
	if !stable {
		old := slices.Clone(o.data[min(off, size):min(end, size)])
		o.unsafe = append(o.unsafe, undo{by: by, off: off, len: int64(n), old: old, size: size})
	}
	if end > size {
		if err := t.resize(o, end); err != nil {
			return err
		}
	}
	to := o.data[off:end]
	for _, p := range data {
		to = to[copy(to, p):]
	}
	o.modified()
	return nil
}

// Commit of no spans is one of the whole file.
func (of *file) Commit(ctx context.Context, o remote.Open, spans []remote.Span) (redo []remote.Span, err error) {
	err = of.f.do(ctx, Op{Call: "Commit", At: of.at()}, 0, func() error {
		if err := of.use(o, remote.ForWrite); err != nil {
			return err
		}
		of.obj.unsafe = nil
		if spans == nil {
			spans = []remote.Span{{Len: int64(len(of.obj.data))}}
			for _, l := range of.lost {
				spans[0].Len = max(spans[0].Len, l.Off+l.Len)
			}
		}
		for _, l := range of.lost {
			for _, s := range spans {
				off, end := max(l.Off, s.Off), min(l.Off+l.Len, s.Off+s.Len)
				if off < end {
					redo = append(redo, remote.Span{Off: off, Len: end - off})
				}
			}
		}
		of.lost = nil
		return nil
	})
	return redo, err
}

func (of *file) GetAttr(ctx context.Context, o remote.Open) (attr remote.Attr, err error) {
	err = of.f.do(ctx, Op{Call: "GetAttr", At: of.at()}, 0, func() error {
		if err := of.use(o, 0); err != nil {
			return err
		}
		attr = of.obj.attr(of.node)
		return nil
	})
	return attr, err
}

func (of *file) SetSize(ctx context.Context, o remote.Open, size int64) (attr remote.Attr, err error) {
	op := Op{Call: "SetSize", At: of.at(), Off: size}
	err = of.f.do(ctx, op, remote.CacheRead|remote.CacheWrite, func() error {
		if err := of.use(o, remote.ForWrite); err != nil {
			return err
		}
		if err := of.f.tree.truncate(of.obj, size); err != nil {
			return err
		}
		attr = of.obj.attr(of.node)
		return nil
	})
	return attr, err
}

func (of *file) Limits() remote.Limits { return of.f.Limits() }
func (of *file) Flow() remote.Flow     { return of.f.Flow() }

func (of *file) at() remote.At {
	of.f.tree.mu.Lock()
	defer of.f.tree.mu.Unlock()
	return remote.At{Node: of.node}
}

func size(bufs [][]byte) (n int) {
	for _, p := range bufs {
		n += len(p)
	}
	return n
}
