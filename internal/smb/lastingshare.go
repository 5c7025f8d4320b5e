package smb

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/remote"
)

// Share is a Volume that outlives the connection. What only asks is asked again over
// the new one. What changes something and was under way when the connection was lost,
// is an error: the server may have done it.
type Share struct {
	c    *Client
	name string

	mounting chan struct{} // full while somebody makes a new volume
	touches  atomic.Uint64 // what was changed by name, which may be of any file that is open

	mu sync.Mutex
	// guarded by mu
	vol   *Volume                 // of some session, which may be dead
	files map[*lastingFile]bool   // that are open
	ids   map[uint64]*lastingFile // by the server's, if it has any
}

var _ remote.Volume = (*Share)(nil)

// Mount connects to a share.
func (c *Client) Mount(ctx context.Context, name string) (*Share, error) {
	sh := &Share{c: c, name: name, mounting: make(chan struct{}, 1), files: map[*lastingFile]bool{}, ids: map[uint64]*lastingFile{}}
	err := c.again(ctx, func(s *Session) (err error) {
		sh.vol, err = s.Mount(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shares[sh] = true
	return sh, nil
}

// latest returns the volume that there was last.
func (sh *Share) latest() *Volume {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.vol
}

// volume returns the volume over a connection that is not known to be dead.
func (sh *Share) volume(ctx context.Context) (*Volume, error) {
	if v := sh.latest(); v.s.alive() {
		return v, nil
	}
	select {
	case sh.mounting <- struct{}{}:
		defer func() { <-sh.mounting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v := sh.latest(); v.s.alive() {
		return v, nil
	}
	old := sh.latest()
	var v *Volume
	err := sh.c.again(ctx, func(s *Session) (err error) {
		v, err = s.Mount(ctx, sh.name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if old.Sealed() && !v.Sealed() {
		v.Close(ctx)
		return nil, errUnsealed
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.vol = v
	return v, nil
}

// once runs do, which may change something, over a live connection.
func (sh *Share) once(ctx context.Context, do func(*Volume) error) error {
	v, err := sh.volume(ctx)
	if err != nil {
		return err
	}
	return do(v)
}

// again runs do, which only asks, and once more if the connection is lost meanwhile.
func (sh *Share) again(ctx context.Context, do func(*Volume) error) error {
	err := sh.once(ctx, do)
	if lost(err) && ctx.Err() == nil {
		err = sh.once(ctx, do)
	}
	return err
}

// Open opens a file. If that makes or empties one, it is not tried again.
func (sh *Share) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (opened remote.Opened, err error) {
	if events == nil {
		how.Rights = 0 // nobody would hear of their end
	}
	try := sh.again
	if how.Create != remote.Existing && how.Create != remote.OrNew {
		try = sh.once
	}
	err = try(ctx, func(v *Volume) error {
		l := &listener{s: v.s}
		touches := sh.touches.Load()
		inner, err := v.Open(ctx, at, how, l)
		if err == nil {
			opened = sh.adopt(l, events, inner, how, touches)
		}
		return err
	})
	return opened, err
}

// adopt makes an open that lasts of one that does not, of a file that is open here
// already or of a new one. With it, the others of the file come back if the connection
// was lost meanwhile.
func (sh *Share) adopt(l *listener, events remote.Events, inner remote.Opened, how remote.How, touches uint64) remote.Opened {
	file, s := inner.File.(*File), l.s
	o := &lastingOpen{how: how}
	o.how.Create = remote.Existing
	o.handle.Store(&handle{s: s, file: file, open: inner.Open})
	path := file.node()

	sh.mu.Lock()
	f := sh.find(file, inner.Attr)
	if f == nil {
		f = &lastingFile{sh: sh, coming: make(chan struct{}, 1), id: inner.Attr.ID, born: inner.Attr.Born, path: path,
			s: s, opens: map[*lastingOpen]bool{}}
		f.learnLocked(inner.Attr, touches)
		sh.files[f] = true
		if f.id != 0 {
			sh.ids[f.id] = f
		}
	}
	o.f = f
	f.mu.Lock()
	if f.events == nil {
		f.events = events
	}
	if len(f.opens) > 0 && how.Create >= remote.Truncate {
		f.known.ours, f.known.size = true, 0
	}
	f.opens[o] = true
	late := f.s != s
	if !late {
		f.underLocked(s, file)
	}
	f.mu.Unlock()
	sh.mu.Unlock()

	l.of(f)
	if late {
		f.back(s, inner, touches)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	inner.File, inner.Open, inner.Rights, inner.Epoch = f, o, f.rights, f.epoch
	return inner
}

// find returns what an object that has just been opened is among those that are open,
// nil if it is none of them. sh.mu is held.
func (sh *Share) find(file *File, attr remote.Attr) *lastingFile {
	if f := sh.ids[attr.ID]; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.file == file || f.born.Equal(attr.Born) {
			return f
		}
	}
	if attr.ID != 0 {
		return nil
	}
	for f := range sh.files { // of a server without IDs
		f.mu.Lock()
		same := f.file == file
		f.mu.Unlock()
		if same {
			return f
		}
	}
	return nil
}

// closed forgets an open, and its file with the last one. It returns the handle.
func (sh *Share) closed(o *lastingOpen) *handle {
	f := o.f
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.opens, o)
	if len(f.opens) == 0 {
		delete(sh.files, f)
		if sh.ids[f.id] == f {
			delete(sh.ids, f.id)
		}
	}
	return o.handle.Load()
}

// open returns the files that are open.
func (sh *Share) open() []*lastingFile {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return slices.Collect(maps.Keys(sh.files))
}

func (sh *Share) GetAttr(ctx context.Context, at remote.At) (attr remote.Attr, err error) {
	err = sh.again(ctx, func(v *Volume) (err error) { attr, err = v.GetAttr(ctx, at); return err })
	return attr, err
}

func (sh *Share) SetAttr(ctx context.Context, at remote.At, set remote.SetAttr) (attr remote.Attr, err error) {
	sh.touches.Add(1)
	err = sh.once(ctx, func(v *Volume) (err error) { attr, err = v.SetAttr(ctx, at, set); return err })
	if err == nil && !set.Born.IsZero() {
		sh.reborn(attr)
	}
	return attr, err
}

// reborn notes that this client has changed what a file is known by.
func (sh *Share) reborn(attr remote.Attr) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if f := sh.ids[attr.ID]; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.born = attr.Born
	}
}

func (sh *Share) ReadFile(ctx context.Context, at remote.At, p []byte) (n int, attr remote.Attr, err error) {
	err = sh.again(ctx, func(v *Volume) (err error) { n, attr, err = v.ReadFile(ctx, at, p); return err })
	return n, attr, err
}

func (sh *Share) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (attr remote.Attr, err error) {
	sh.touches.Add(1)
	err = sh.once(ctx, func(v *Volume) (err error) { attr, err = v.WriteFile(ctx, at, how, p); return err })
	return attr, err
}

// ReadDir begins again only if nothing was listed yet.
func (sh *Share) ReadDir(ctx context.Context, at remote.At) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		begun, over := false, false
		err := sh.again(ctx, func(v *Volume) error {
			if over {
				return nil
			}
			for page, err := range v.ReadDir(ctx, at) {
				if err != nil && !begun {
					return err
				}
				begun = true
				if !yield(page, err) || err != nil {
					over = true
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

func (sh *Share) Make(ctx context.Context, at remote.At, m remote.Make) (attr remote.Attr, err error) {
	err = sh.once(ctx, func(v *Volume) (err error) { attr, err = v.Make(ctx, at, m); return err })
	return attr, err
}

func (sh *Share) ReadLink(ctx context.Context, at remote.At) (target string, err error) {
	err = sh.again(ctx, func(v *Volume) (err error) { target, err = v.ReadLink(ctx, at); return err })
	return target, err
}

func (sh *Share) Rename(ctx context.Context, from, to remote.At, replace bool) (node remote.Node, err error) {
	sh.touches.Add(1)
	err = sh.once(ctx, func(v *Volume) (err error) { node, err = v.Rename(ctx, from, to, replace); return err })
	if err != nil {
		return "", err
	}
	if old, err := sh.c.cfg.Mapping.path(from); err == nil {
		for _, f := range sh.open() {
			f.moved(old, string(node))
		}
	}
	return node, nil
}

func (sh *Share) Link(ctx context.Context, from, to remote.At) error {
	sh.touches.Add(1)
	return sh.once(ctx, func(v *Volume) error { return v.Link(ctx, from, to) })
}

func (sh *Share) Remove(ctx context.Context, at remote.At, dir bool) error {
	sh.touches.Add(1)
	return sh.once(ctx, func(v *Volume) error { return v.Remove(ctx, at, dir) })
}

func (sh *Share) StatFS(ctx context.Context) (st remote.StatFS, err error) {
	err = sh.again(ctx, func(v *Volume) (err error) { st, err = v.StatFS(ctx); return err })
	return st, err
}

func (sh *Share) Limits() remote.Limits { return sh.latest().Limits() }
func (sh *Share) Flow() remote.Flow     { return sh.latest().Flow() }

// Sealed says whether messages of this share are sealed.
func (sh *Share) Sealed() bool { return sh.latest().Sealed() }

// Close disconnects from the share, if there is a connection.
func (sh *Share) Close(ctx context.Context) error {
	sh.c.mu.Lock()
	delete(sh.c.shares, sh)
	sh.c.mu.Unlock()
	err := sh.latest().Close(ctx)
	if lost(err) {
		err = nil
	}
	return err
}
