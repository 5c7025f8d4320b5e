package vfs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
)

// Handle is an open file. Its bytes are those of the embedded open, which all handles
// of the file share, whatever they were opened by and whatever became of that name.
type Handle struct {
	*pagecache.Open
	fs     *FS
	inode  *inode
	opened remote.Opened
	access remote.Access
	closed atomic.Bool
	path   string // what it is called now, "" if it has lost its name; guarded by FS.mu
}

// Open opens a regular file, in one trip. What else is there is an error, as Volume
// has it.
func (f *FS) Open(ctx context.Context, p string, how remote.How) (*Handle, error) {
	if how.Dir {
		return nil, syscall.EINVAL
	}
	f.mu.Lock()
	q := f.askLocked(f.wasLocked(p))
	f.mu.Unlock()

	ask := how
	ask.Rights = f.wants
	if how.Create >= remote.Truncate {
		ask.Access |= remote.ForWrite // to empty it here, too
	}
	events := &events{fs: f}
	opened, err := f.vol.Open(ctx, at(p), ask, events)
	if err != nil {
		f.failed(p, how.Create, err, q)
		return nil, err
	}

	h, named := &Handle{fs: f, opened: opened, access: ask.Access, path: p}, q
	f.mu.Lock()
	for tries := 0; !f.attachLocked(h, how.Stable, q, tries == maxTries); tries++ {
		f.mu.Unlock()
		q = f.ask()
		attr, err := opened.File.GetAttr(ctx, opened.Open)
		if err != nil {
			f.mu.Lock()
			f.attachLocked(h, how.Stable, q, true) // others may have events through this open
			in := h.inode
			file := in.file
			f.mu.Unlock()
			events.tell(in, file)
			ctx, cancel := grace(ctx)
			defer cancel()
			return nil, errors.Join(err, h.Close(ctx))
		}
		attr.ID, attr.Kind = opened.Attr.ID, opened.Attr.Kind
		h.opened.Attr = attr
		f.mu.Lock()
	}
	in := h.inode
	shared := len(in.handles) > 1
	if how.Create >= remote.Truncate {
		f.setLocked(in, h.opened.Attr, q)
	} else {
		f.learnLocked(in, h.opened.Attr, q)
	}
	if makes(how.Create) {
		f.bindLocked(p, in, named)
	} else {
		f.rememberLocked(p, in, named)
	}
	file := in.file
	f.mu.Unlock()
	events.tell(in, file)

	if how.Create >= remote.Truncate && shared { // what was written here before is not to come after that
		if err := h.Truncate(ctx, 0); err != nil {
			ctx, cancel := grace(ctx)
			defer cancel()
			return nil, errors.Join(err, h.Close(ctx))
		}
	}
	return h, nil
}

// grace is the context of what is to be tidied up even for a caller who has gone.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
}

// failed remembers what an open or a WriteFile that failed has told.
func (f *FS) failed(p string, create remote.Create, err error, q question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if makes(create) {
		f.changeLocked(p) // something may be there, or is
	} else {
		f.missedLocked(p, err, q)
	}
}

// makes reports whether what was not there may be, after such an open.
func makes(create remote.Create) bool { return create != remote.Existing && create != remote.Truncate }

// attachLocked makes a handle one of the inode that it is of. It reports false if the
// file was changed here after the open was asked for, since its attributes may be from
// before that, unless that is how it always is.
func (f *FS) attachLocked(h *Handle, stable bool, q question, always bool) bool {
	opened := h.opened
	in := f.open[opened.File]
	if in == nil {
		in = f.meetLocked(opened.Attr, f.wasLocked(h.path))
		if slices.ContainsFunc(in.handles, func(other *Handle) bool { return !other.closed.Load() }) {
			opened.Attr.ID = in.id
			in = f.newInodeLocked(opened.Attr) // it is another object to the server
		}
	}
	if q.seq < max(in.changed, in.closed) && !always {
		return false
	}
	f.unkeepLocked(in)
	if in.file == nil {
		in.file = f.cache.NewFile(f.cfg.File)
	}
	f.open[opened.File] = in
	h.inode = in
	h.Open = in.file.Attach(opened, h.access, stable)
	in.handles = append(in.handles, h)
	f.pathLocked(h, h.path)
	return true
}

// maxTries is how often attributes are asked for that others keep changing.
const maxTries = 5

// Kind says what was opened.
func (h *Handle) Kind() remote.Kind { return h.inode.kind }

// Inode returns the number of the file.
func (h *Handle) Inode() uint64 { return h.inode.number }

// Attr returns the attributes of the file; those that are remembered, if they hold and
// fresh does not say otherwise.
func (h *Handle) Attr(ctx context.Context, fresh bool) (remote.Attr, error) {
	f, in := h.fs, h.inode
	f.mu.Lock()
	if !fresh && f.freshLocked(in, time.Now()) {
		defer f.mu.Unlock()
		return f.viewLocked(in, in.attr), nil
	}
	q := f.askLocked(in)
	f.mu.Unlock()

	attr, err := h.opened.File.GetAttr(ctx, h.opened.Open)
	if err != nil {
		return remote.Attr{}, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	attr.Kind = in.kind
	f.learnLocked(in, attr, q)
	return f.viewLocked(in, attr), nil
}

// Close writes what is to be written, gives the file up, and reports what went wrong
// since it was opened and was not reported.
func (h *Handle) Close(ctx context.Context) error {
	if h.closed.Swap(true) {
		return pagecache.ErrClosed
	}
	f, in := h.fs, h.inode
	if h.access&remote.ForWrite != 0 {
		h.Flush(ctx) // Close tells what went wrong
		f.mu.Lock()
		in.closed = f.seq.Add(1)
		f.mu.Unlock()
	}
	err := h.Open.Close(ctx)
	if p, stamp := f.closed(h); p != "" {
		if _, err := f.SetAttr(ctx, p, remote.SetAttr{Written: stamp}); err != nil {
			f.cfg.Logger.Info("the time of a file that was written could not be kept", "name", p, "err", err)
		}
	}
	return err
}

// closed notes that a handle is closed. A server may take the time of the last write
// for that of the file when a handle is closed that has written, though another one was
// set since by name. If so, it returns where to set which time again.
func (f *FS) closed(h *Handle) (p string, stamp time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := h.inode
	in.handles = slices.DeleteFunc(in.handles, func(other *Handle) bool { return other == h })
	if h.access&remote.ForWrite != 0 {
		_, written, _ := in.file.State()
		if !written.IsZero() {
			f.touchLocked(in) // from here on the server knows better
		}
		if in.writer() == nil {
			if written.IsZero() && !in.stamp.IsZero() && in.attr.Written.Equal(in.stamp) {
				p, stamp = h.path, in.stamp
			}
			in.stamp = time.Time{}
		}
	}
	f.pathLocked(h, "")
	if !slices.ContainsFunc(in.handles, func(other *Handle) bool { return other.opened.File == h.opened.File }) {
		delete(f.open, h.opened.File)
	}
	switch {
	case len(in.handles) > 0:
	case in.names > 0 && in.id != 0 && f.byID[in.id] == in:
		f.keepLocked(in)
	default:
		f.dropLocked(in)
	}
	return p, stamp
}

// pathLocked notes what a handle is called from now on.
func (f *FS) pathLocked(h *Handle, p string) {
	key := f.key(h.path)
	if delete(f.paths[key], h); len(f.paths[key]) == 0 {
		delete(f.paths, key)
	}
	if h.path = p; p == "" {
		return
	}
	key = f.key(p)
	if f.paths[key] == nil {
		f.paths[key] = map[*Handle]bool{}
	}
	f.paths[key][h] = true
}

// writerLocked returns a handle that can write what a path leads to, or nil.
func (f *FS) writerLocked(p string) *Handle {
	for h := range f.paths[f.key(p)] {
		if h.access&remote.ForWrite != 0 {
			return h
		}
	}
	if in := f.wasLocked(p); in != nil {
		return in.writer()
	}
	return nil
}

// writer returns a handle that can write, or nil. It requires FS.mu.
func (in *inode) writer() *Handle {
	for _, h := range in.handles {
		if h.access&remote.ForWrite != 0 {
			return h
		}
	}
	return nil
}

// events is told of the rights of an object whose open is not answered yet, so that
// nobody knows which inode it is of.
type events struct {
	fs *FS

	mu sync.Mutex
	// guarded by mu
	inode *inode
	file  *pagecache.File
	early []remote.Change
}

// maxEarly bounds what is kept until the inode is known. A server that says more
// meanwhile is understood to have said only the last of it.
const maxEarly = 16

// Rights is remote.Events.
func (e *events) Rights(c remote.Change) {
	e.mu.Lock()
	in, file := e.inode, e.file
	switch {
	case in != nil:
	case len(e.early) == maxEarly:
		e.early[maxEarly-1] = c
	default:
		e.early = append(e.early, c)
	}
	e.mu.Unlock()
	if in != nil {
		in.shake(e.fs.seq.Add(1))
		file.Rights(c)
	}
}

// tell has an inode hear of everything.
func (e *events) tell(in *inode, file *pagecache.File) {
	e.mu.Lock()
	e.inode, e.file = in, file
	early := e.early
	e.early = nil
	e.mu.Unlock()
	for _, c := range early {
		e.Rights(c)
	}
}

// shake notes a change of rights: while nothing vouched for it, the file may have
// changed.
func (in *inode) shake(n uint64) {
	for old := in.shaken.Load(); old < n && !in.shaken.CompareAndSwap(old, n); old = in.shaken.Load() {
	}
}
