package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// FS is a share, or a folder of one. Names are slash-separated and obey
// fs.ValidPath. It satisfies fs.StatFS, fs.ReadDirFS, fs.ReadFileFS,
// fs.ReadLinkFS and fs.SubFS, and is safe for concurrent use.
//
// Errors of operations on names are an *fs.PathError, or an *os.LinkError if
// there are two. Symbolic links are followed as long as they stay within the
// share. What is cached, and for how long, the options cache and actimeo say.
type FS struct {
	share *share
	dir   string // on the share, "." for its root
}

// OpenFile opens a file as os.OpenFile does. ctx bounds the opening only. The
// server has no place for perm: see Chmod.
func (f *FS) OpenFile(ctx context.Context, name string, flag int, perm fs.FileMode) (*File, error) {
	return f.open(ctx, context.Background(), name, flag)
}

// Create makes or empties a file and opens it for reading and writing.
func (f *FS) Create(ctx context.Context, name string) (*File, error) {
	return f.OpenFile(ctx, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// change is follow for what a read-only file system refuses.
func (f *FS) change(ctx context.Context, op, name string, last bool, do func(full string) error) error {
	if f.share.options.ReadOnly {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
	}
	return pathError(op, name, ctx, f.follow(ctx, name, last, do))
}

// Mkdir makes a folder. The server has no place for perm.
func (f *FS) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	return f.change(ctx, "mkdir", name, false, func(full string) error {
		_, err := f.share.files.Make(ctx, full, remote.Make{Kind: remote.Dir})
		return err
	})
}

// MkdirAll makes a folder and those above it, as far as they are missing.
func (f *FS) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	if name == "." {
		return nil
	}
	err := f.Mkdir(ctx, name, perm)
	switch {
	case err == nil || errors.Is(err, fs.ErrInvalid):
		return err
	case errors.Is(err, fs.ErrNotExist) && path.Dir(name) != ".":
		if err := f.MkdirAll(ctx, path.Dir(name), perm); err != nil {
			return err
		}
		if err = f.Mkdir(ctx, name, perm); err == nil {
			return nil
		}
	}
	// A server may refuse before it looks whether the folder is there.
	if attr, statErr := f.getAttr(ctx, name, true); statErr == nil && attr.Kind == remote.Dir {
		return nil
	}
	return err
}

// Remove removes a file, a symbolic link or an empty folder.
func (f *FS) Remove(ctx context.Context, name string) error {
	return f.change(ctx, "remove", name, false, func(full string) error {
		if full == "." {
			return syscall.EBUSY
		}
		err := f.share.files.Remove(ctx, full, false)
		if errors.Is(err, syscall.EISDIR) {
			err = f.share.files.Remove(ctx, full, true)
		}
		return err
	})
}

// removers is how many files of a folder RemoveAll removes at once.
const removers = 16

// RemoveAll removes name and whatever is in it. That it does not exist is no
// error. Symbolic links are removed, not followed.
func (f *FS) RemoveAll(ctx context.Context, name string) error {
	if name == "." {
		return &fs.PathError{Op: "removeall", Path: name, Err: syscall.EINVAL}
	}
	err := f.Remove(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	if err := f.empty(ctx, name); err != nil {
		return err
	}
	if err := f.Remove(ctx, name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// empty removes what is in dir, files several at a time, and returns the first error.
func (f *FS) empty(ctx context.Context, dir string) error {
	var (
		folders []string
		wg      sync.WaitGroup
		mu      sync.Mutex
		first   error
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil && !errors.Is(err, fs.ErrNotExist) {
			first = err
		}
	}
	places := make(chan struct{}, removers)
	for e, err := range f.Entries(ctx, dir) {
		if err != nil {
			fail(err)
			break
		}
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			folders = append(folders, name)
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			fail(f.Remove(ctx, name))
		})
	}
	wg.Wait()
	for _, name := range folders {
		fail(f.RemoveAll(ctx, name))
	}
	return first
}

// Rename moves oldname to newname, in the place of what is there.
func (f *FS) Rename(ctx context.Context, oldname, newname string) error {
	return f.pair(ctx, "rename", oldname, newname, func(from, to string) error {
		return f.share.files.Rename(ctx, from, to, true)
	})
}

// Link makes newname another name of the file oldname.
func (f *FS) Link(ctx context.Context, oldname, newname string) error {
	return f.pair(ctx, "link", oldname, newname, func(from, to string) error {
		return f.share.files.Link(ctx, from, to)
	})
}

// pair does something to two names, neither of which is followed at its end.
func (f *FS) pair(ctx context.Context, op, oldname, newname string, do func(from, to string) error) error {
	if f.share.options.ReadOnly {
		return linkError(op, oldname, newname, ctx, syscall.EROFS)
	}
	return linkError(op, oldname, newname, ctx, f.follow(ctx, oldname, false, func(from string) error {
		return f.follow(ctx, newname, false, func(to string) error {
			if from == "." || to == "." {
				return syscall.EBUSY
			}
			return do(from, to)
		})
	}))
}

// Symlink makes newname a symbolic link to target.
func (f *FS) Symlink(ctx context.Context, target, newname string) error {
	return f.change(ctx, "symlink", newname, false, func(full string) error {
		_, err := f.share.files.Make(ctx, full, remote.Make{Kind: remote.Symlink, Target: target})
		return err
	})
}

// Chmod sets the read-only attribute if mode has no bit for w, and else clears it.
// That is all of a mode that a server without Unix extensions keeps, and on a
// folder not even that has this meaning.
func (f *FS) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.change(ctx, "chmod", name, true, func(full string) error {
		attr, err := f.share.files.GetAttr(ctx, full)
		switch {
		case err != nil:
			return err
		case attr.Kind == remote.Symlink:
			return errLink
		case attr.Kind == remote.Dir || attr.DOS == 0:
			return nil
		}
		dos := attr.DOS &^ dosReadOnly
		if mode&0o222 == 0 {
			dos |= dosReadOnly
		}
		if dos == attr.DOS {
			return nil
		}
		if dos == 0 {
			dos = dosNormal
		}
		_, err = f.share.files.SetAttr(ctx, full, remote.SetAttr{DOS: &dos})
		return err
	})
}

// Chtimes sets the times of access and modification. A zero time leaves its own
// as it is.
func (f *FS) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	return f.change(ctx, "chtimes", name, true, func(full string) error {
		attr, err := f.share.files.SetAttr(ctx, full, remote.SetAttr{Accessed: atime, Written: mtime})
		if err == nil && attr.Kind == remote.Symlink {
			return errLink
		}
		return err
	})
}

// WriteFile makes or empties a file and writes data; as much as fits into one
// request, in a single round trip. The server has no place for perm.
func (f *FS) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	if len(data) > min(f.share.vol.Limits().Write, onePiece) || f.share.options.MFSymlinks {
		return f.writeLarge(ctx, name, data, os.O_TRUNC, perm)
	}
	return f.writeSmall(ctx, name, data, remote.TruncateNew)
}

// WriteNewFile is WriteFile for a file that must not be there yet. What is there
// is left alone, so a file has either no bytes or all of them, unless the
// connection is lost meanwhile.
func (f *FS) WriteNewFile(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	if len(data) <= min(f.share.vol.Limits().Write, onePiece) {
		return f.writeSmall(ctx, name, data, remote.New)
	}
	return f.writeLarge(ctx, name, data, os.O_EXCL, perm)
}

func (f *FS) writeSmall(ctx context.Context, name string, data []byte, create remote.Create) error {
	return f.change(ctx, "write", name, create != remote.New, func(full string) error {
		how := remote.How{Access: remote.ForWrite, Create: create}
		m := &f.share.meters[remote.Writing]
		start := m.Begin()
		_, err := f.share.files.WriteFile(ctx, full, how, data)
		m.Done(start, len(data), err)
		return err
	})
}

// onePiece is how much WriteFile writes in one request; more goes out as several
// at once.
const onePiece = 1 << 20

func (f *FS) writeLarge(ctx context.Context, name string, data []byte, flag int, perm fs.FileMode) error {
	file, err := f.OpenFile(ctx, name, os.O_WRONLY|os.O_CREATE|flag, perm)
	if err != nil {
		return err
	}
	_, err = file.WriteAtContext(ctx, data, 0)
	if err = errors.Join(err, file.Close()); err != nil && flag&os.O_EXCL != 0 {
		err = errors.Join(err, f.Remove(context.WithoutCancel(ctx), name))
	}
	return err
}

// Usage is the size of a share in bytes, and what its server calls it.
type Usage struct {
	Total, Free, Avail int64 // Avail: free to this user
	Block              int64 // the smallest allocation
	Label, Type        string
}

// Usage says how large and how full the share is.
func (f *FS) Usage(ctx context.Context) (Usage, error) {
	s, err := f.share.files.StatFS(ctx)
	if err != nil {
		return Usage{}, pathError("statfs", f.dir, ctx, err)
	}
	return Usage{Total: s.Total, Free: s.Free, Avail: s.Avail, Block: s.Block, Label: s.Label, Type: s.Type}, nil
}

// Stats returns what the share's connection is and has done.
func (f *FS) Stats() Stats { return f.share.stats() }

// Close closes all files, which writes what is not yet on the server, and gives up the
// share, for those of Sub as well, and the connection if Dial made it.
func (f *FS) Close() error { return f.share.close(context.Background()) }
