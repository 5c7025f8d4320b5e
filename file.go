package pagewire

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/vfs"
)

// File is an open file or folder. ReadAt and WriteAt run in parallel; Read, Write
// and Seek share an offset. As far as the server allows it, or the option cache says,
// what is read comes from the cache, and what is written goes there: Sync and Close
// write it to the server, and report if that was not possible.
//
// Its errors are an *fs.PathError, but for io.EOF and for those of the other side
// of WriteTo and ReadFrom.
type File struct {
	share    *share
	name     string
	access   remote.Access
	appends  bool
	handle   *vfs.Handle // nil: it is a folder
	folder   *folder     // or nil
	deadline *deadline
	size     int64      // at the opening
	pos      chan int64 // holds the offset while nobody uses it
	progress atomic.Int64
	closed   atomic.Bool
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
	err := f.follow(ctx, name, how.Create != remote.New, func(full string) (err error) {
		file.handle, err = f.openNoLink(ctx, full, how)
		return err
	})
	if errors.Is(err, syscall.EISDIR) && how == (remote.How{Access: remote.ForRead}) {
		file.folder = &folder{fs: f, name: name}
		_, err = f.getAttr(ctx, name, true)
	}
	if err != nil {
		return nil, pathError("open", name, ctx, err)
	}
	if file.handle != nil {
		file.size = file.handle.Size()
		if flag&O_DIRECT != 0 {
			file.handle.Bypass()
		}
	}
	file.deadline = newDeadline(base)
	file.pos = make(chan int64, 1)
	file.pos <- 0
	if !f.share.add(file) {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrClosed}
	}
	return file, nil
}

func (f *FS) openNoLink(ctx context.Context, full string, how remote.How) (*vfs.Handle, error) {
	if full == "." {
		return nil, syscall.EISDIR
	}
	if f.share.options.MFSymlinks { // which are files to the server, and would be opened
		if attr, err := f.share.files.GetAttr(ctx, full); err == nil && attr.Kind == remote.Symlink && how.Create != remote.New {
			return nil, errLink
		}
	}
	h, err := f.share.files.Open(ctx, full, how)
	if err == nil && h.Kind() == remote.Symlink {
		return nil, errors.Join(errLink, h.Close(ctx))
	}
	return h, err
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

// ReadAt reads into p from off: see io.ReaderAt. What is larger than one request goes
// out as several at once, and if reads follow each other, what comes next is read
// ahead.
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
	if off < 0 {
		err = fs.ErrInvalid
	} else if len(p) > 0 {
		n, err = f.handle.ReadAt(ctx, p, off)
	}
	return n, f.fail(ctx, "read", err)
}

// WriteAt writes p at off: see io.WriterAt. What may not be cached and is larger than
// one request goes out as several at once.
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
	case len(p) > 0:
		n, err = f.handle.WriteAt(ctx, p, off)
	}
	return n, f.fail(ctx, "write", err)
}

// Read reads from the offset of the file: see io.Reader. Where nothing may be cached,
// each call asks the server; WriteTo, which io.Copy uses, is how to read much.
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
	ctx := f.deadline.context()
	at, n, err := f.handle.Append(ctx, p)
	if n > 0 {
		off = at + int64(n)
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
		attr, err := f.attr(ctx, true)
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

// Cached says whether what is read of the file, and what is written, may now be kept
// here: that is up to the server, unless the option cache says something else.
func (f *File) Cached() (reads, writes bool) {
	if f.usable("cached", 0) != nil || f.folder != nil {
		return false, false
	}
	return f.handle.Keeps(remote.CacheRead), f.handle.Keeps(remote.CacheWrite)
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

// attr returns the attributes; fresh ones, the server is asked for.
func (f *File) attr(ctx context.Context, fresh bool) (remote.Attr, error) {
	if f.folder != nil {
		return f.folder.fs.getAttr(ctx, f.name, true)
	}
	return f.handle.Attr(ctx, fresh)
}

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) {
	if err := f.usable("stat", 0); err != nil {
		return nil, err
	}
	ctx := f.deadline.context()
	attr, err := f.attr(ctx, false)
	if err != nil {
		return nil, f.fail(ctx, "stat", err)
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
	return f.fail(ctx, "truncate", f.handle.Truncate(ctx, size))
}

// Sync makes what was written durable. Of bytes that are lost because the server
// refused to take them, every open of the file hears once, from Sync or Close.
func (f *File) Sync() error {
	if err := f.usable("sync", 0); err != nil || f.folder != nil {
		return err
	}
	ctx := f.deadline.context()
	return f.fail(ctx, "sync", f.handle.Sync(ctx))
}

// Close writes what is not yet on the server, and closes the file. Whatever still
// runs on it fails with fs.ErrClosed.
func (f *File) Close() error {
	ctx := context.WithoutCancel(f.deadline.parent)
	if f.deadline.parent.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeGrace)
		defer cancel()
	}
	return f.close(ctx)
}

func (f *File) close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.share.remove(f)
	f.deadline.close(fs.ErrClosed)
	if f.folder != nil {
		off := <-f.pos
		f.folder.rewind()
		f.pos <- off
		return nil
	}
	return f.fail(ctx, "close", f.handle.Close(ctx))
}
