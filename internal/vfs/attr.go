package vfs

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
)

// knownLocked returns what a path leads to, or nil if that has to be asked.
func (f *FS) knownLocked(p string, now time.Time) *name {
	n := f.names.get(f.key(p))
	if n == nil || n.path != p || !f.history.holds(n.key, n.asked.seq) {
		return nil
	}
	in := n.inode
	switch {
	case in != nil && n.asked.seq < in.unnamed:
		return nil
	case now.Before(n.until):
		return n
	case in == nil || len(in.handles) == 0 || n.asked.seq < in.shaken.Load() || f.cfg.File.Mode != pagecache.Strict:
		return nil
	case in.file.Keeps(remote.CacheHandle): // else we would have been told to close it
		return n
	}
	return nil
}

// wasLocked returns what a path led to when last heard of, or nil.
func (f *FS) wasLocked(p string) *inode {
	if n := f.names.get(f.key(p)); n != nil {
		return n.inode
	}
	return nil
}

// rememberLocked remembers what a path leads to; a nil inode is nothing.
func (f *FS) rememberLocked(p string, in *inode, q question) {
	n := &name{key: f.key(p), path: p, inode: in, asked: q}
	n.until = q.at.Add(f.cfg.DirAttrTime)
	if in != nil {
		n.until = q.at.Add(f.ttl(in.kind))
	}
	old := f.names.get(n.key)
	if old == nil || old.path != p || q.seq > old.asked.seq || !f.history.holds(n.key, old.asked.seq) {
		f.putLocked(n)
	}
	if in != nil {
		f.releaseLocked(in)
	}
}

// putLocked puts a name into the table.
func (f *FS) putLocked(n *name) {
	if n.inode != nil {
		n.inode.names++
	}
	if out := f.names.put(n); out != nil && out.inode != nil {
		out.inode.names--
		f.releaseLocked(out.inode)
	}
}

// foundLocked remembers what the server says of a path.
func (f *FS) foundLocked(p string, attr remote.Attr, q question) *inode {
	in := f.meetLocked(attr, f.wasLocked(p))
	f.learnAtLocked(p, in, attr, q)
	f.rememberLocked(p, in, q)
	return in
}

// learnAtLocked is learnLocked of what was asked for by path. It may be a folder of
// which it was not known that names in it have changed since.
func (f *FS) learnAtLocked(p string, in *inode, attr remote.Attr, q question) {
	if in.kind != remote.Dir || f.history.holds(contents(f.key(p)), q.seq) {
		f.learnLocked(in, attr, q)
	}
}

// contents is a key for what is in a folder, below that of the folder.
func contents(key string) string { return key + "/" }

// changeLocked notes that a name was changed here: made, removed or moved.
func (f *FS) changeLocked(p string) {
	n := f.seq.Add(1)
	f.history.change(f.key(p), n)
	f.history.change(contents(f.key(parent(p))), n)
	if dir := f.wasLocked(parent(p)); dir != nil {
		f.touchLocked(dir)
	}
}

// bindLocked notes that a change made here, begun at q, lets a path lead to in. When
// another change of the same name was made meanwhile, nobody knows which was first.
func (f *FS) bindLocked(p string, in *inode, q question) {
	alone := f.history.holds(f.key(p), q.seq)
	f.changeLocked(p)
	if alone {
		q.seq = f.seq.Add(1)
	}
	f.rememberLocked(p, in, q)
}

// setLocked notes what an inode is after a change made here that was begun at q. When
// something else was learned of it meanwhile, nobody knows which came first.
func (f *FS) setLocked(in *inode, attr remote.Attr, q question) {
	alone := q.seq >= in.changed && q.seq >= in.asked.seq
	f.touchLocked(in)
	if alone {
		q.seq = in.changed
	}
	if in.writer() == nil {
		q = q.about(in)
	}
	f.learnLocked(in, attr, q)
	if !alone && len(in.handles) > 0 { // and so the size that it is read by
		in.file.Doubt()
	}
}

// GetAttr returns the attributes of what a path leads to; a symbolic link is not
// followed.
func (f *FS) GetAttr(ctx context.Context, p string) (remote.Attr, error) {
	f.mu.Lock()
	now := time.Now()
	if n := f.knownLocked(p, now); n != nil {
		if n.inode == nil {
			f.mu.Unlock()
			return remote.Attr{}, syscall.ENOENT
		}
		if f.freshLocked(n.inode, now) {
			defer f.mu.Unlock()
			return f.viewLocked(n.inode, n.inode.attr), nil
		}
	}
	q := f.askLocked(f.wasLocked(p))
	f.mu.Unlock()

	attr, err := f.vol.GetAttr(ctx, at(p))

	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.missedLocked(p, err, q)
		return remote.Attr{}, err
	}
	return f.viewLocked(f.foundLocked(p, attr, q), attr), nil
}

// missedLocked remembers that nothing is there, if that is what the error says.
func (f *FS) missedLocked(p string, err error, q question) {
	if errors.Is(err, fs.ErrNotExist) {
		f.rememberLocked(p, nil, q)
	}
}

// SetAttr changes attributes. What was written here to an open file goes to the server
// first if it would move the times that are set, and its size is set where its bytes
// are.
func (f *FS) SetAttr(ctx context.Context, p string, set remote.SetAttr) (remote.Attr, error) {
	f.mu.Lock()
	writer := f.writerLocked(p)
	f.mu.Unlock()
	if writer != nil && set.Size != nil {
		if err := f.truncate(ctx, p, *set.Size); err != nil {
			return remote.Attr{}, err
		}
		if set.Size = nil; set == (remote.SetAttr{}) {
			return f.GetAttr(ctx, p)
		}
	}
	if writer != nil && !set.Written.IsZero() {
		if err := writer.Flush(ctx); err != nil {
			return remote.Attr{}, err
		}
	}

	f.mu.Lock()
	q := f.askLocked(f.wasLocked(p))
	f.mu.Unlock()
	attr, err := f.vol.SetAttr(ctx, at(p), set)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.missedLocked(p, err, q)
		return remote.Attr{}, err
	}
	in := f.meetLocked(attr, f.wasLocked(p))
	if set.Size != nil && in.file != nil {
		in.file.Forget()
	}
	if !set.Written.IsZero() && in.writer() != nil {
		in.stamp = attr.Written
	}
	f.setLocked(in, attr, q)
	f.rememberLocked(p, in, q)
	return f.viewLocked(in, attr), nil
}

// truncate sets the size of a file through an open of its own.
func (f *FS) truncate(ctx context.Context, p string, size int64) error {
	h, err := f.Open(ctx, p, remote.How{Access: remote.ForWrite})
	if err != nil {
		return err
	}
	return errors.Join(h.Truncate(ctx, size), h.Close(ctx))
}

// ReadLink returns what a symbolic link points to.
func (f *FS) ReadLink(ctx context.Context, p string) (string, error) {
	return f.vol.ReadLink(ctx, at(p))
}

// StatFS says how large and how full the volume is.
func (f *FS) StatFS(ctx context.Context) (remote.StatFS, error) { return f.vol.StatFS(ctx) }
