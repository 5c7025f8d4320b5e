package remotetest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

func (f *Fake) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (remote.Opened, error) {
	lose := remote.Rights(0)
	if how.Access&(remote.ForRead|remote.ForWrite) != 0 {
		lose = remote.CacheWrite
	}
	if how.Create >= remote.Truncate {
		lose = remote.CacheWrite | remote.CacheRead
	}
	var opened remote.Opened
	err := f.do(ctx, Op{Call: "Open", At: at}, lose, func() error {
		p, err := f.tree.open(at, how)
		if err != nil {
			return err
		}
		opened = f.opened(p, how, events)
		return nil
	})
	return opened, err
}

// open does what Open, WriteFile and ReadFile have in common: it makes, empties
// or refuses what is there, as how says.
func (t *tree) open(at remote.At, how remote.How) (place, error) {
	p, err := t.locate(at)
	if err != nil {
		return p, err
	}
	if p.obj == nil {
		switch how.Create {
		case remote.Existing, remote.Truncate:
			return p, syscall.ENOENT
		}
		kind := remote.Regular
		if how.Dir {
			kind = remote.Dir
		}
		t.insert(&p, t.newObject(kind))
		return p, nil
	}
	writes := how.Access&remote.ForWrite != 0 || how.Create >= remote.Truncate
	switch {
	case how.Create == remote.New:
		return p, syscall.EEXIST
	case p.obj.kind == remote.Symlink:
		return p, syscall.ELOOP
	case how.Dir && p.obj.kind != remote.Dir:
		return p, syscall.ENOTDIR
	case !how.Dir && p.obj.kind == remote.Dir:
		return p, syscall.EISDIR
	case how.Dir && how.Create >= remote.Truncate:
		return p, syscall.EINVAL
	case writes && p.obj.dos&dosReadOnly != 0:
		return p, syscall.EACCES
	case how.Create >= remote.Truncate:
		return p, t.truncate(p.obj, 0)
	}
	return p, nil
}

func (t *tree) truncate(o *object, size int64) error {
	if err := t.resize(o, size); err != nil {
		return err
	}
	o.unsafe = nil
	o.modified()
	return nil
}

func (f *Fake) GetAttr(ctx context.Context, at remote.At) (attr remote.Attr, err error) {
	err = f.do(ctx, Op{Call: "GetAttr", At: at}, 0, func() error {
		p, err := f.tree.find(at)
		if err == nil {
			attr = p.obj.attr(p.node)
		}
		return err
	})
	return attr, err
}

func (f *Fake) SetAttr(ctx context.Context, at remote.At, set remote.SetAttr) (attr remote.Attr, err error) {
	lose := remote.Rights(0)
	if set.Size != nil {
		lose = remote.CacheRead | remote.CacheWrite
	}
	err = f.do(ctx, Op{Call: "SetAttr", At: at}, lose, func() error {
		p, err := f.tree.find(at)
		if err != nil {
			return err
		}
		o := p.obj
		if set.Size != nil {
			switch {
			case o.kind == remote.Dir:
				return syscall.EISDIR
			case o.kind != remote.Regular:
				return syscall.EINVAL
			case o.dos&dosReadOnly != 0:
				return syscall.EACCES
			}
			if err := f.tree.truncate(o, *set.Size); err != nil {
				return err
			}
		}
		for _, t := range []struct {
			to   *time.Time
			from time.Time
		}{{&o.born, set.Born}, {&o.accessed, set.Accessed}, {&o.written, set.Written}} {
			if !t.from.IsZero() {
				*t.to = t.from.UTC().Truncate(100)
			}
		}
		if set.DOS != nil {
			o.dos = *set.DOS & dosSettable
		}
		o.changed = now()
		attr = o.attr(p.node)
		return nil
	})
	return attr, err
}

func (f *Fake) ReadFile(ctx context.Context, at remote.At, p []byte) (n int, attr remote.Attr, err error) {
	lent := f.lend("ReadFile", [][]byte{p}, true)
	defer lent.end()
	err = f.do(ctx, Op{Call: "ReadFile", At: at, Len: len(p)}, remote.CacheWrite, func() error {
		place, err := f.tree.open(at, remote.How{Access: remote.ForRead})
		if err != nil {
			return err
		}
		lent.filling()
		attr = place.obj.attr(place.node)
		n = copy(p[:min(len(p), f.cfg.limits().Read)], place.obj.data)
		return nil
	})
	return n, attr, err
}

func (f *Fake) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (attr remote.Attr, err error) {
	lent := f.lend("WriteFile", [][]byte{p}, false)
	defer lent.end()
	how.Access |= remote.ForWrite
	err = f.do(ctx, Op{Call: "WriteFile", At: at, Len: len(p)}, remote.CacheRead|remote.CacheWrite, func() error {
		if len(p) > f.cfg.limits().Write || how.Dir {
			return syscall.EINVAL
		}
		place, err := f.tree.open(at, how)
		if err != nil {
			return err
		}
		if err := f.tree.write(place.obj, 0, [][]byte{p}, len(p), nil, true); err != nil {
			return err
		}
		attr = place.obj.attr(place.node)
		return nil
	})
	return attr, err
}

// ReadDir sees the names that the folder had at first.
func (f *Fake) ReadDir(ctx context.Context, at remote.At) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		var names []string
		for first, off := true, 0; first || len(names) > 0; first = false {
			var page []remote.Entry
			err := f.do(ctx, Op{Call: "ReadDir", At: at, Off: int64(off)}, 0, func() error {
				p, err := f.tree.find(at)
				switch {
				case err != nil:
					return err
				case p.obj.kind != remote.Dir:
					return syscall.ENOTDIR
				case first:
					names = slices.Sorted(maps.Keys(p.obj.names))
				}
				n := f.cfg.PageSize
				if n == 0 {
					n = 100
				}
				n = min(n, len(names))
				for _, name := range names[:n] {
					if e, ok := p.obj.names[name]; ok {
						node := join(p.node, e.name)
						page = append(page, remote.Entry{Name: e.name, Attr: e.obj.attr(node)})
					}
				}
				names, off = names[n:], off+n
				return nil
			})
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) {
				return
			}
		}
	}
}

func join(dir remote.Node, name string) remote.Node {
	if dir == "" {
		return remote.Node(name)
	}
	return dir + "/" + remote.Node(name)
}

func (f *Fake) Make(ctx context.Context, at remote.At, m remote.Make) (attr remote.Attr, err error) {
	err = f.do(ctx, Op{Call: "Make", At: at}, 0, func() error {
		p, err := f.tree.locate(at)
		switch {
		case err != nil:
			return err
		case p.obj != nil:
			return syscall.EEXIST
		case m.Kind != remote.Dir && m.Kind != remote.Symlink:
			return syscall.EINVAL
		}
		f.tree.insert(&p, f.tree.newObject(m.Kind))
		p.obj.target = m.Target
		attr = p.obj.attr(p.node)
		return nil
	})
	return attr, err
}

func (f *Fake) ReadLink(ctx context.Context, at remote.At) (target string, err error) {
	err = f.do(ctx, Op{Call: "ReadLink", At: at}, 0, func() error {
		p, err := f.tree.find(at)
		switch {
		case err != nil:
			return err
		case p.obj.kind != remote.Symlink:
			return syscall.EINVAL
		}
		target = p.obj.target
		return nil
	})
	return target, err
}

func (f *Fake) Rename(ctx context.Context, from, to remote.At, replace bool) (node remote.Node, err error) {
	err = f.do(ctx, Op{Call: "Rename", At: from, To: to}, remote.CacheHandle, func() error {
		src, err := f.tree.find(from)
		if err != nil {
			return err
		}
		dst, err := f.tree.locate(to)
		if err != nil {
			return err
		}
		if err := f.tree.rename(src, dst, replace); err != nil {
			return err
		}
		node = dst.node
		return nil
	})
	return node, err
}

func (t *tree) rename(src, dst place, replace bool) error {
	if src.dir == nil || dst.dir == nil {
		return syscall.EBUSY
	}
	if src.node == dst.node {
		return nil
	}
	itself := dst.obj == src.obj && dst.dir == src.dir && t.key(src.name) == t.key(dst.name)
	isDir := src.obj.kind == remote.Dir
	switch {
	case isDir && t.holds(src.obj, dst.dir):
		return syscall.EINVAL
	case itself || dst.obj == nil:
	case !replace:
		return syscall.EEXIST
	case dst.obj == src.obj: // two names of one file
		return nil
	case dst.obj.kind == remote.Dir && !isDir:
		return syscall.EISDIR
	case dst.obj.kind != remote.Dir && isDir:
		return syscall.ENOTDIR
	case len(dst.obj.names) > 0:
		return syscall.ENOTEMPTY
	default:
		t.remove(dst)
	}
	delete(src.dir.names, t.key(src.name))
	src.dir.touch()
	t.insert(&dst, src.obj)
	src.obj.changed = now()
	t.each(func(o *object) {
		for file := range o.opens {
			if file.node == src.node {
				file.node = dst.node
			} else if below, ok := strings.CutPrefix(string(file.node), string(src.node)+"/"); ok {
				file.node = join(dst.node, below)
			}
		}
	})
	return nil
}

// holds reports whether o is below or is dir.
func (t *tree) holds(dir, o *object) bool {
	if dir == o {
		return true
	}
	for _, e := range dir.names {
		if e.obj.kind == remote.Dir && t.holds(e.obj, o) {
			return true
		}
	}
	return false
}

func (f *Fake) Link(ctx context.Context, from, to remote.At) error {
	return f.do(ctx, Op{Call: "Link", At: from, To: to}, 0, func() error {
		src, err := f.tree.find(from)
		if err != nil {
			return err
		}
		dst, err := f.tree.locate(to)
		switch {
		case err != nil:
			return err
		case dst.obj != nil:
			return syscall.EEXIST
		case src.obj.kind == remote.Dir:
			return syscall.EPERM
		}
		f.tree.insert(&dst, src.obj)
		src.obj.links++
		src.obj.changed = now()
		return nil
	})
}

func (f *Fake) Remove(ctx context.Context, at remote.At, dir bool) error {
	return f.do(ctx, Op{Call: "Remove", At: at}, remote.CacheHandle, func() error {
		p, err := f.tree.find(at)
		switch {
		case err != nil:
			return err
		case p.dir == nil:
			return syscall.EBUSY
		case dir && p.obj.kind != remote.Dir:
			return syscall.ENOTDIR
		case !dir && p.obj.kind == remote.Dir:
			return syscall.EISDIR
		case len(p.obj.names) > 0:
			return syscall.ENOTEMPTY
		}
		f.tree.remove(p)
		return nil
	})
}

func (f *Fake) StatFS(ctx context.Context) (st remote.StatFS, err error) {
	err = f.do(ctx, Op{Call: "StatFS"}, 0, func() error {
		total := f.tree.capacity
		if total == 0 {
			total = 1 << 40
		}
		free := max(0, total-f.tree.used)
		st = remote.StatFS{Total: total, Free: free, Avail: free, Block: blockSize, Label: "fake", Type: "memory"}
		return nil
	})
	return st, err
}
