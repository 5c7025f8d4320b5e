package smb

import (
	"context"
	"iter"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// Share is a Volume that outlives the connection. What only asks is asked again over
// the new one. What changes something and was under way when the connection was lost,
// is an error: the server may have done it.
type Share struct {
	c    *Client
	name string

	mounting chan struct{} // full while somebody makes a new volume

	mu sync.Mutex
	// guarded by mu
	vol   *Volume // of some session, which may be dead
	files map[*lastingFile]bool
}

var _ remote.Volume = (*Share)(nil)

// Mount connects to a share.
func (c *Client) Mount(ctx context.Context, name string) (*Share, error) {
	sh := &Share{c: c, name: name, mounting: make(chan struct{}, 1), files: map[*lastingFile]bool{}}
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
	var v *Volume
	err := sh.c.again(ctx, func(s *Session) (err error) {
		v, err = s.Mount(ctx, sh.name)
		return err
	})
	if err != nil {
		return nil, err
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
	try := sh.again
	if how.Create != remote.Existing && how.Create != remote.OrNew {
		try = sh.once
	}
	err = try(ctx, func(v *Volume) error {
		f := newLastingFile(sh, v.s, events)
		inner, err := v.Open(ctx, at, how, f.first)
		if err == nil {
			opened = sh.adopt(f, v.s, inner, how)
		}
		return err
	})
	return opened, err
}

// adopt makes an open that lasts of one that does not, of a file that is open here
// already or of the new one f. With it, the others of the file come back if the
// connection was lost meanwhile.
func (sh *Share) adopt(f *lastingFile, s *Session, inner remote.Opened, how remote.How) remote.Opened {
	g := f.first
	late := false
	sh.mu.Lock()
	for other := range sh.files {
		var same bool
		if same, late = other.is(inner, s); same {
			g.f.Store(other)
			f = other
			break
		}
	}
	sh.files[f] = true
	o := f.add(s, inner, how)
	sh.mu.Unlock()
	if late {
		f.back(g, inner)
	}
	return f.opened(o, inner)
}

// touched notes that something is changed by name, which may be of any file that is
// open: its times alone are no sign of somebody else.
func (sh *Share) touched() {
	for _, f := range sh.open() {
		f.begin(0)
		f.ended(nil, net.ErrClosed)
	}
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
	sh.touched()
	err = sh.once(ctx, func(v *Volume) (err error) { attr, err = v.SetAttr(ctx, at, set); return err })
	return attr, err
}

func (sh *Share) ReadFile(ctx context.Context, at remote.At, p []byte) (n int, attr remote.Attr, err error) {
	err = sh.again(ctx, func(v *Volume) (err error) { n, attr, err = v.ReadFile(ctx, at, p); return err })
	return n, attr, err
}

func (sh *Share) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (attr remote.Attr, err error) {
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
	sh.touched()
	err = sh.once(ctx, func(v *Volume) (err error) { node, err = v.Rename(ctx, from, to, replace); return err })
	return node, err
}

func (sh *Share) Link(ctx context.Context, from, to remote.At) error {
	sh.touched()
	return sh.once(ctx, func(v *Volume) error { return v.Link(ctx, from, to) })
}

func (sh *Share) Remove(ctx context.Context, at remote.At, dir bool) error {
	sh.touched()
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

// serverTime is what the server's clock said at a moment of ours.
func (s *Session) serverTime(t time.Time) time.Time { return t.Add(s.conn.Clock) }
