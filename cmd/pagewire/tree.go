package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire"
)

// tree is one end of a copy: a share, or a folder of this machine. Names obey
// fs.ValidPath on both.
type tree interface {
	lstat(ctx context.Context, name string) (fs.FileInfo, error)
	entries(ctx context.Context, dir string) iter.Seq2[fs.DirEntry, error]
	// readFile is for small files. A larger one than limit is a syscall.EFBIG.
	readFile(ctx context.Context, name string, limit int) ([]byte, error)
	readLink(ctx context.Context, name string) (string, error)
	open(ctx context.Context, name string) (stream, error)
	// reopen is open for what is really there, whatever is cached.
	reopen(ctx context.Context, name string) (stream, error)

	create(ctx context.Context, name string) (stream, error)  // in the place of what is there
	openOld(ctx context.Context, name string) (stream, error) // for writing
	// writeFile puts data in the place of what is there, all of it or nothing. A
	// share takes a new file in one compounded request; what replaces another is
	// a temporary file first, which is renamed.
	writeFile(ctx context.Context, name string, data []byte) error
	mkdir(ctx context.Context, name string) error
	symlink(ctx context.Context, target, name string) error
	rename(ctx context.Context, oldname, newname string) error
	remove(ctx context.Context, name string) error
	chtimes(ctx context.Context, name string, t time.Time) error
	chmod(ctx context.Context, name string, mode fs.FileMode) error

	// place is where name is, for people.
	place(name string) place
}

// stream is an open file of either end: a *pagewire.File or an *os.File.
type stream interface {
	io.ReadWriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
	SetDeadline(t time.Time) error
}

// remoteTree is a share.
type remoteTree struct {
	fs *pagewire.FS
	at place // the share
}

func (t remoteTree) lstat(ctx context.Context, name string) (fs.FileInfo, error) {
	return fs.Lstat(t.fs.WithContext(ctx), name)
}

func (t remoteTree) entries(ctx context.Context, dir string) iter.Seq2[fs.DirEntry, error] {
	return t.fs.Entries(ctx, dir)
}

func (t remoteTree) readFile(ctx context.Context, name string, limit int) ([]byte, error) {
	return t.fs.ReadSmallFile(ctx, name, limit)
}

func (t remoteTree) readLink(ctx context.Context, name string) (string, error) {
	return fs.ReadLink(t.fs.WithContext(ctx), name)
}

func (t remoteTree) open(ctx context.Context, name string) (stream, error) {
	return nilIfFailed(openRemote(ctx, t.fs, name))
}

func (t remoteTree) reopen(ctx context.Context, name string) (stream, error) {
	return nilIfFailed(t.fs.OpenFile(ctx, name, os.O_RDONLY|pagewire.O_DIRECT, 0))
}

// create never writes through a symbolic link, which an earlier copy may have
// brought there.
func (t remoteTree) create(ctx context.Context, name string) (stream, error) {
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := t.fs.OpenFile(ctx, name, flag, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if err = t.fs.Remove(ctx, name); err == nil {
			f, err = t.fs.OpenFile(ctx, name, flag, 0o666)
		}
	}
	return nilIfFailed(f, err)
}

func (t remoteTree) openOld(ctx context.Context, name string) (stream, error) {
	return nilIfFailed(t.fs.OpenFile(ctx, name, os.O_WRONLY, 0))
}

func (t remoteTree) writeFile(ctx context.Context, name string, data []byte) error {
	err := t.fs.WriteNewFile(ctx, name, data, 0o666)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// What is there stays until it can be replaced as a whole.
	temporary := partialOf(name)
	if err = t.fs.WriteNewFile(ctx, temporary, data, 0o666); errors.Is(err, fs.ErrExist) {
		if err = t.fs.Remove(ctx, temporary); err == nil {
			err = t.fs.WriteNewFile(ctx, temporary, data, 0o666)
		}
	}
	if err == nil {
		err = t.fs.Rename(ctx, temporary, name)
	}
	if err != nil {
		t.fs.Remove(context.WithoutCancel(ctx), temporary)
	}
	return err
}

func (t remoteTree) mkdir(ctx context.Context, name string) error {
	return t.fs.Mkdir(ctx, name, 0o777)
}

func (t remoteTree) symlink(ctx context.Context, target, name string) error {
	return t.fs.Symlink(ctx, target, name)
}

func (t remoteTree) rename(ctx context.Context, oldname, newname string) error {
	return t.fs.Rename(ctx, oldname, newname)
}

func (t remoteTree) remove(ctx context.Context, name string) error { return t.fs.Remove(ctx, name) }

func (t remoteTree) chtimes(ctx context.Context, name string, at time.Time) error {
	return t.fs.Chtimes(ctx, name, time.Time{}, at)
}

func (t remoteTree) chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return t.fs.Chmod(ctx, name, mode)
}

func (t remoteTree) place(name string) place { return t.at.join(name) }

// localTree is a folder of this machine. What is below it stays below it: os.Root
// follows no symbolic link out of it, whoever made that link.
type localTree struct {
	root *os.Root
	dir  string // as the user calls it
}

func openLocalTree(dir string) (localTree, error) {
	root, err := os.OpenRoot(dir)
	return localTree{root, dir}, err
}

func (t localTree) lstat(_ context.Context, name string) (fs.FileInfo, error) {
	return t.root.Lstat(name)
}

func (t localTree) entries(ctx context.Context, dir string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		f, err := t.root.Open(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for {
			batch, err := f.ReadDir(1000)
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				if err != io.EOF {
					yield(nil, err)
				}
				return
			}
		}
	}
}

func (t localTree) readFile(_ context.Context, name string, limit int) ([]byte, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), int64(limit))+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, int64(limit)+1)); err != nil {
		return nil, err
	}
	if b.Len() > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EFBIG}
	}
	return b.Bytes(), nil
}

func (t localTree) readLink(_ context.Context, name string) (string, error) {
	return t.root.Readlink(name)
}

func (t localTree) open(_ context.Context, name string) (stream, error) {
	return nilIfFailed(t.root.Open(name))
}

func (t localTree) reopen(ctx context.Context, name string) (stream, error) { return t.open(ctx, name) }

// create never writes through a symbolic link: an earlier copy may have brought
// it here, from a server that hopes for this one.
func (t localTree) create(_ context.Context, name string) (stream, error) {
	const flag = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := t.root.OpenFile(name, flag, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if err = t.root.Remove(name); err == nil {
			f, err = t.root.OpenFile(name, flag, 0o666)
		}
	}
	return nilIfFailed(f, err)
}

func (t localTree) openOld(_ context.Context, name string) (stream, error) {
	return nilIfFailed(t.root.OpenFile(name, os.O_WRONLY, 0))
}

func (t localTree) writeFile(ctx context.Context, name string, data []byte) error {
	temporary := partialOf(name)
	f, err := t.create(ctx, temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = closeKeeping(f, err); err == nil {
		err = t.root.Rename(temporary, name)
	}
	if err != nil {
		t.root.Remove(temporary)
	}
	return err
}

func (t localTree) mkdir(_ context.Context, name string) error { return t.root.Mkdir(name, 0o777) }

func (t localTree) symlink(_ context.Context, target, name string) error {
	return t.root.Symlink(target, name)
}

func (t localTree) rename(_ context.Context, oldname, newname string) error {
	return t.root.Rename(oldname, newname)
}

func (t localTree) remove(_ context.Context, name string) error { return t.root.Remove(name) }

func (t localTree) chtimes(_ context.Context, name string, at time.Time) error {
	return t.root.Chtimes(name, time.Time{}, at)
}

func (t localTree) chmod(_ context.Context, name string, mode fs.FileMode) error {
	return t.root.Chmod(name, mode)
}

func (t localTree) place(name string) place {
	p := filepath.Join(t.dir, filepath.FromSlash(name))
	return place{arg: p, name: p, path: p}
}

// nilIfFailed keeps the nil pointer that comes with an error from becoming a
// stream that is not nil.
func nilIfFailed[S stream](s S, err error) (stream, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// checkName refuses what no folder may have in it, whatever its server says.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") ||
		filepath.Separator != '/' && strings.ContainsRune(name, filepath.Separator) {
		return errors.New("the server's name for it is none")
	}
	return nil
}
