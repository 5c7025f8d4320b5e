package pagewire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// File is an open file or folder. ReadAt and WriteAt run in parallel; Read, Write
// and Seek share an offset. Nothing is cached: what a call has written, the server
// has.
//
// Its errors are an *fs.PathError, but for io.EOF and for those of the other side
// of WriteTo and ReadFrom.
type File struct {
	share    *share
	name     string
	access   remote.Access
	appends  bool
	opened   remote.Opened // but for a folder, which needs none
	folder   *folder       // or nil
	deadline *deadline
	pos      chan int64 // holds the offset while nobody uses it
	progress atomic.Int64
	closed   atomic.Bool
	end      atomic.Int64 // where the server said that the file ends

	mu sync.Mutex
	// guarded by mu
	attr   remote.Attr
	attrAt time.Time // zero: attr is outdated
	unseen bool      // attr is that of the opening, and nobody asked for it
}

var (
	_ fs.ReadDirFile     = (*File)(nil)
	_ io.ReadWriteSeeker = (*File)(nil)
	_ io.ReaderAt        = (*File)(nil)
	_ io.WriterAt        = (*File)(nil)
	_ io.WriterTo        = (*File)(nil)
	_ io.ReaderFrom      = (*File)(nil)
)

// closeGrace is how long a Close may take whose context is over already.
const closeGrace = 3 * time.Second

// open opens a file for as long as base allows.
func (f *FS) open(ctx, base context.Context, name string, flag int) (*File, error) {
	file := &File{share: f.share, name: name, appends: flag&os.O_APPEND != 0}
	how := howToOpen(flag)
	file.access = how.Access
	if f.share.options.ReadOnly && (how.Access&remote.ForWrite != 0 || how.Create != remote.Existing) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	err := f.follow(ctx, name, how.Create != remote.New, func(at remote.At) (err error) {
		file.opened, err = f.openNoLink(ctx, at, how)
		return err
	})
	if errors.Is(err, syscall.EISDIR) && how == (remote.How{Access: remote.ForRead}) {
		file.folder = &folder{fs: f, name: name}
		file.opened.Attr, err = f.getAttr(ctx, name, true)
	}
	if err != nil {
		return nil, pathError("open", name, ctx, err)
	}
	file.attr, file.attrAt, file.unseen = file.opened.Attr, time.Now(), true
	file.end.Store(file.attr.Size)
	file.deadline = newDeadline(base)
	file.pos = make(chan int64, 1)
	file.pos <- 0
	return file, nil
}

func (f *FS) openNoLink(ctx context.Context, at remote.At, how remote.How) (remote.Opened, error) {
	if at == (remote.At{}) {
		return remote.Opened{}, syscall.EISDIR
	}
	if f.share.options.MFSymlinks { // which are files to the server, and would be opened
		if attr, err := f.share.vol.GetAttr(ctx, at); err == nil && attr.Kind == remote.Symlink && how.Create != remote.New {
			return remote.Opened{}, errLink
		}
	}
	o, err := f.share.vol.Open(ctx, at, how, nil)
	if err == nil && o.Attr.Kind == remote.Symlink {
		return o, errors.Join(errLink, o.Open.Close(ctx))
	}
	return o, err
}

func howToOpen(flag int) remote.How {
	how := remote.How{Access: remote.ForRead, Stable: flag&os.O_SYNC != 0}
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		how.Access = remote.ForWrite
	case os.O_RDWR:
		how.Access = remote.ForRead | remote.ForWrite
	}
	switch flag & (os.O_CREATE | os.O_EXCL | os.O_TRUNC) {
	case os.O_CREATE:
		how.Create = remote.OrNew
	case os.O_CREATE | os.O_EXCL, os.O_CREATE | os.O_EXCL | os.O_TRUNC:
		how.Create = remote.New
	case os.O_CREATE | os.O_TRUNC:
		how.Create = remote.TruncateNew
	case os.O_TRUNC, os.O_TRUNC | os.O_EXCL:
		how.Create = remote.Truncate
	}
	return how
}

// Name returns the name the file was opened with.
func (f *File) Name() string { return f.name }

// usable says whether the file is open for that access.
func (f *File) usable(op string, access remote.Access) error {
	var err error
	switch {
	case f.closed.Load():
		err = fs.ErrClosed
	case f.folder != nil && access != 0:
		err = syscall.EISDIR
	case f.access&access != access:
		err = syscall.EBADF
	default:
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// fail makes an error public that came up under ctx.
func (f *File) fail(ctx context.Context, op string, err error) error {
	if local, ok := errors.AsType[localError](err); ok {
		return local.error
	}
	return pathError(op, f.name, ctx, err)
}

// within returns a context that ends with the file's and with ctx.
func (f *File) within(ctx context.Context) (context.Context, func()) {
	own := f.deadline.context()
	if ctx.Done() == nil {
		return own, func() {}
	}
	both, end := context.WithCancelCause(own)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	return both, func() { stop(); end(nil) }
}

// ReadAt reads into p from off: see io.ReaderAt. What is larger than the server's
// largest read goes out as several requests at once.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.usable("read", remote.ForRead); err != nil {
		return 0, err
	}
	return f.readAt(f.deadline.context(), p, off)
}

// ReadAtContext is ReadAt that ends with ctx.
func (f *File) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.usable("read", remote.ForRead); err != nil {
		return 0, err
	}
	both, end := f.within(ctx)
	defer end()
	return f.readAt(both, p, off)
}

func (f *File) readAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	switch {
	case off < 0:
		err = fs.ErrInvalid
	case len(p) == 0:
	case len(p) <= f.opened.File.Limits().Read:
		v := f.share.vector()
		n, _, err = f.readPiece(ctx, v, p, off)
		f.share.giveBack(v)
	default:
		pl := &pipeline{file: f, dir: remote.Reading, base: off, whole: p, move: readMemory}
		pl.start(ctx, int64(len(p)))
		var n64 int64
		n64, err = pl.run()
		n = int(n64)
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, f.fail(ctx, "read", err)
}

func readMemory(w *worker) error {
	n, err := w.fetch()
	w.moved = n
	return err
}

// readPiece fills p, which is no larger than one request may be as a rule, with
// the file from off. That it is short means the end of the file.
//
// SMB tells of the end only those who ask for nothing else, which would cost one
// more round trip. A reply that is short just where the file is known to end is
// as good.
func (f *File) readPiece(ctx context.Context, v *[1][]byte, p []byte, off int64) (n int, eof bool, err error) {
	t := &f.share.traffic[remote.Reading]
	for n < len(p) && !eof && err == nil {
		m := 0
		v[0] = p[n:]
		t.begin()
		m, eof, err = f.opened.File.ReadAt(ctx, remote.Req{Open: f.opened.Open, Off: off + int64(n)}, v[:])
		t.done(m)
		n += m
		switch {
		case eof || err != nil || n == len(p):
		case m == 0:
			err = io.ErrNoProgress
		default:
			eof = off+int64(n) == f.end.Load()
		}
	}
	return n, eof, err
}

// WriteAt writes p at off: see io.WriterAt. What is larger than the server's
// largest write goes out as several requests at once.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if err := f.usable("write", remote.ForWrite); err != nil {
		return 0, err
	}
	return f.writeAt(f.deadline.context(), p, off)
}

// WriteAtContext is WriteAt that ends with ctx.
func (f *File) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.usable("write", remote.ForWrite); err != nil {
		return 0, err
	}
	both, end := f.within(ctx)
	defer end()
	return f.writeAt(both, p, off)
}

var errAppends = errors.New("a file opened with O_APPEND is written at its end only")

func (f *File) writeAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	switch {
	case f.appends:
		err = errAppends
	case off < 0:
		err = fs.ErrInvalid
	case len(p) == 0:
	case len(p) <= f.opened.File.Limits().Write:
		v := f.share.vector()
		n, err = f.writePiece(ctx, v, p, off)
		f.share.giveBack(v)
		f.touched()
	default:
		pl := &pipeline{file: f, dir: remote.Writing, base: off, whole: p, move: func(w *worker) error { return w.store(w.n) }}
		pl.start(ctx, int64(len(p)))
		var n64 int64
		n64, err = pl.run()
		n = int(n64)
		f.touched()
	}
	return n, f.fail(ctx, "write", err)
}

// writePiece writes p, which is no larger than one request may be as a rule.
func (f *File) writePiece(ctx context.Context, v *[1][]byte, p []byte, off int64) (n int, err error) {
	t := &f.share.traffic[remote.Writing]
	for n < len(p) && err == nil {
		m := 0
		v[0] = p[n:]
		t.begin()
		m, _, err = f.opened.File.WriteAt(ctx, remote.Req{Open: f.opened.Open, Off: off + int64(n)}, remote.Write{Data: v[:]})
		t.done(m)
		n += m
		if m == 0 && err == nil {
			err = io.ErrShortWrite
		}
	}
	return n, err
}

// Read reads from the offset of the file: see io.Reader. Each call asks the
// server; WriteTo, which io.Copy uses, is how to read much.
func (f *File) Read(p []byte) (n int, err error) {
	if err := f.usable("read", remote.ForRead); err != nil {
		return 0, err
	}
	off := <-f.pos
	defer func() { f.pos <- off + int64(n) }()
	n, err = f.readAt(f.deadline.context(), p, off)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// Write writes at the offset of the file, or at its end with O_APPEND: see io.Writer.
func (f *File) Write(p []byte) (n int, err error) {
	if err := f.usable("write", remote.ForWrite); err != nil {
		return 0, err
	}
	off := <-f.pos
	defer func() { f.pos <- off }()
	if !f.appends {
		n, err = f.writeAt(f.deadline.context(), p, off)
		off += int64(n)
		return n, err
	}
	ctx, v := f.deadline.context(), f.share.vector()
	defer f.share.giveBack(v)
	defer f.touched()
	t := &f.share.traffic[remote.Writing]
	for n < len(p) && err == nil {
		m, at := 0, int64(0)
		v[0] = p[n:]
		t.begin()
		at, m, err = f.opened.Open.Append(ctx, v[:])
		t.done(m)
		n += m
		if m > 0 {
			off = at + int64(m)
		} else if err == nil {
			err = io.ErrShortWrite
		}
	}
	return n, f.fail(ctx, "write", err)
}

// Seek sets the offset of Read and Write: see io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if err := f.usable("seek", 0); err != nil {
		return 0, err
	}
	ctx := f.deadline.context()
	pos := <-f.pos
	defer func() { f.pos <- pos }()
	to := offset
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		to += pos
	case io.SeekEnd:
		attr, err := f.refresh(ctx)
		if err != nil {
			return 0, f.fail(ctx, "seek", err)
		}
		to += attr.Size
	default:
		return 0, f.fail(ctx, "seek", fs.ErrInvalid)
	}
	if to < 0 {
		return 0, f.fail(ctx, "seek", fs.ErrInvalid)
	}
	if f.folder != nil && to == 0 {
		f.folder.rewind()
	}
	pos = to
	return pos, nil
}

// SetDeadline makes every call on the file that runs at t or later fail with an
// error that wraps os.ErrDeadlineExceeded. The zero time means never.
func (f *File) SetDeadline(t time.Time) error {
	if err := f.usable("set deadline", 0); err != nil {
		return err
	}
	f.deadline.set(t)
	return nil
}

// known returns the attributes as they were at some time.
func (f *File) known() (remote.Attr, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attr, f.attrAt
}

// touched says that the file has changed.
func (f *File) touched() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attrAt, f.unseen = time.Time{}, false
}

// refresh asks the server for the attributes.
func (f *File) refresh(ctx context.Context) (attr remote.Attr, err error) {
	if f.folder != nil {
		attr, err = f.folder.fs.getAttr(ctx, f.name, true)
	} else {
		attr, err = f.opened.File.GetAttr(ctx, f.opened.Open)
	}
	if err != nil {
		return attr, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attr, f.attrAt, f.unseen = attr, time.Now(), false
	f.end.Store(attr.Size)
	return attr, nil
}

// Stat describes the file. Just after the opening, that costs no round trip.
func (f *File) Stat() (fs.FileInfo, error) {
	if err := f.usable("stat", 0); err != nil {
		return nil, err
	}
	f.mu.Lock()
	attr, current := f.attr, f.unseen && time.Since(f.attrAt) < attrAge
	f.unseen = false
	f.mu.Unlock()
	if !current {
		ctx := f.deadline.context()
		var err error
		if attr, err = f.refresh(ctx); err != nil {
			return nil, f.fail(ctx, "stat", err)
		}
	}
	return f.share.info(f.name, attr), nil
}

// Truncate sets the size of the file.
func (f *File) Truncate(size int64) error {
	if err := f.usable("truncate", remote.ForWrite); err != nil {
		return err
	}
	ctx := f.deadline.context()
	if size < 0 {
		return f.fail(ctx, "truncate", fs.ErrInvalid)
	}
	_, err := f.opened.File.SetSize(ctx, f.opened.Open, size)
	f.touched()
	f.end.Store(size)
	return f.fail(ctx, "truncate", err)
}

// Sync makes what was written durable.
func (f *File) Sync() error {
	if err := f.usable("sync", 0); err != nil || f.folder != nil {
		return err
	}
	ctx := f.deadline.context()
	redo, err := f.opened.File.Commit(ctx, f.opened.Open, nil)
	if err == nil && len(redo) > 0 {
		err = fmt.Errorf("the server lost what was written from offset %d on: %w", redo[0].Off, syscall.EIO)
	}
	return f.fail(ctx, "sync", err)
}

// Close closes the file. Whatever still runs on it fails with fs.ErrClosed.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.deadline.close(fs.ErrClosed)
	if f.folder != nil {
		off := <-f.pos
		f.folder.rewind()
		f.pos <- off
		return nil
	}
	ctx := context.WithoutCancel(f.deadline.parent)
	if f.deadline.parent.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeGrace)
		defer cancel()
	}
	return f.fail(ctx, "close", f.opened.Open.Close(ctx))
}
