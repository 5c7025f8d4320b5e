package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/internal/remote"
)

// view is an FS for those who pass no context: it has theirs.
type view struct {
	fs  *FS
	ctx context.Context
}

var (
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
	_ fs.SubFS      = (*FS)(nil)
	_ fs.StatFS     = view{}
	_ fs.ReadDirFS  = view{}
	_ fs.ReadFileFS = view{}
	_ fs.ReadLinkFS = view{}
	_ fs.SubFS      = view{}
)

// WithContext returns the same files for readers of io/fs; ctx bounds every call,
// and every call on the files opened through it.
func (f *FS) WithContext(ctx context.Context) fs.FS { return view{f, ctx} }

func (f *FS) background() view { return view{f, context.Background()} }

// Open opens a file or folder for reading. What it returns is a *File.
func (f *FS) Open(name string) (fs.File, error) { return f.background().Open(name) }

// Stat describes what name leads to, at the end of symbolic links.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.background().Stat(name) }

// Lstat describes name, even if that is a symbolic link. Its Sys is an *Attr.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.background().Lstat(name) }

// ReadDir lists a folder, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) { return f.background().ReadDir(name) }

// ReadFile reads a whole file; a small one in a single round trip.
func (f *FS) ReadFile(name string) ([]byte, error) { return f.background().ReadFile(name) }

// ReadLink returns what a symbolic link points to.
func (f *FS) ReadLink(name string) (string, error) { return f.background().ReadLink(name) }

// Sub returns the folder dir as an FS, which need not be closed.
func (f *FS) Sub(dir string) (fs.FS, error) { return f.sub("sub", dir) }

func (f *FS) sub(op, dir string) (*FS, error) {
	full, err := f.full(dir)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: dir, Err: err}
	}
	return &FS{share: f.share, dir: full}, nil
}

func (v view) Sub(dir string) (fs.FS, error) {
	sub, err := v.fs.sub("sub", dir)
	if err != nil {
		return nil, err
	}
	return view{sub, v.ctx}, nil
}

func (v view) Open(name string) (fs.File, error) {
	f, err := v.fs.open(v.ctx, v.ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, err // and no *File in an fs.File
	}
	return f, nil
}

func (v view) Stat(name string) (fs.FileInfo, error) { return v.attr("stat", name, true) }

func (v view) Lstat(name string) (fs.FileInfo, error) { return v.attr("lstat", name, false) }

func (v view) attr(op, name string, last bool) (fs.FileInfo, error) {
	attr, err := v.fs.getAttr(v.ctx, name, last)
	if err != nil {
		return nil, pathError(op, name, v.ctx, err)
	}
	return v.fs.share.info(name, attr), nil
}

func (f *FS) getAttr(ctx context.Context, name string, last bool) (attr remote.Attr, err error) {
	err = f.follow(ctx, name, last, func(full string) (err error) {
		attr, err = f.share.files.GetAttr(ctx, full)
		if err == nil && last && attr.Kind == remote.Symlink {
			return errLink
		}
		return err
	})
	return attr, err
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	for e, err := range v.fs.Entries(v.ctx, name) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (v view) ReadFile(name string) ([]byte, error) {
	return v.fs.readFile(v.ctx, name, math.MaxInt64)
}

// ReadSmallFile is ReadFile for a file of which no more than limit bytes are
// wanted: a larger one is an error that is syscall.EFBIG.
func (f *FS) ReadSmallFile(ctx context.Context, name string, limit int) ([]byte, error) {
	return f.readFile(ctx, name, int64(limit))
}

func (f *FS) readFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if f.share.options.MFSymlinks { // which a server takes for files
		return f.readLarge(ctx, name, limit)
	}
	b := f.share.buffers.fit(nil, claimUnit)
	defer f.share.buffers.put(b)
	n, whole := 0, false
	err := f.follow(ctx, name, true, func(full string) error {
		meter := &f.share.meters[remote.Reading]
		start := meter.Begin()
		m, attr, err := f.share.files.ReadFile(ctx, full, b.b)
		meter.Done(start, m, err)
		switch {
		case err != nil:
			return err
		case attr.Kind == remote.Symlink:
			return errLink
		case attr.Kind == remote.Dir:
			return syscall.EISDIR
		}
		// What fills the request may go on, whatever size it had when it was opened.
		filled := m == min(len(b.b), f.share.vol.Limits().Read)
		n, whole = m, int64(m) == attr.Size || int64(m) > attr.Size && !filled
		if max(int64(m), attr.Size) > limit {
			return syscall.EFBIG
		}
		return nil
	})
	if err != nil {
		return nil, pathError("read", name, ctx, err)
	}
	if whole {
		return slices.Clone(b.b[:n]), nil
	}
	return f.readLarge(ctx, name, limit)
}

// readLarge reads a file from the start, since it may be another one by now.
func (f *FS) readLarge(ctx context.Context, name string, limit int64) ([]byte, error) {
	file, err := f.open(ctx, ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := sink{ctx: ctx, file: file, limit: limit, size: file.size, b: make([]byte, 0, max(min(file.size, limit, maxHint), 0))}
	if err := data.fit(0); err != nil {
		return nil, pathError("read", name, ctx, err)
	}
	if _, err = file.WriteTo(&data); data.err != nil {
		err = pathError("read", name, ctx, data.err)
	}
	return data.b, err
}

// maxHint is how much ReadFile allocates because a server says that a file is so
// large, before it has seen the bytes.
const maxHint = 16 << 20

// sink takes the bytes of a file, and no more of them than its server says there
// are: one that sends for ever must not fill the memory.
type sink struct {
	ctx         context.Context
	file        *File
	size, limit int64
	b           []byte
	err         error // of Write
}

var errEndless = errors.New("the file goes on after what its server says is the end")

func (s *sink) Write(p []byte) (int, error) {
	if s.err = s.fit(len(p)); s.err != nil {
		return 0, s.err
	}
	s.b = append(s.b, p...)
	return len(p), nil
}

// fit reports whether n more bytes may come.
func (s *sink) fit(n int) error {
	want := int64(len(s.b)) + int64(n)
	if want > s.size { // has it grown?
		attr, err := s.file.attr(s.ctx, true)
		if err != nil {
			return err
		}
		s.size = attr.Size
	}
	switch {
	case max(want, s.size) > s.limit:
		return syscall.EFBIG
	case want > s.size:
		return errEndless
	}
	return nil
}

func (v view) ReadLink(name string) (target string, err error) {
	err = v.fs.follow(v.ctx, name, false, func(full string) (err error) {
		target, err = v.fs.share.files.ReadLink(v.ctx, full)
		return err
	})
	return target, pathError("readlink", name, v.ctx, err)
}
