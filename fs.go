package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"time"
)

// FS is a share, or a folder of one. Names are slash-separated and obey
// fs.ValidPath. It satisfies fs.FS, fs.StatFS, fs.ReadDirFS, fs.ReadFileFS,
// fs.ReadLinkFS and fs.SubFS, and is safe for concurrent use.
//
// Errors of operations on names are an *fs.PathError. Symbolic links are
// followed as far as they stay within the share.
type FS struct{}

// WithContext returns the same files for readers of io/fs; ctx bounds every
// call, and every call on the files opened through it.
func (f *FS) WithContext(ctx context.Context) fs.FS { return nil }

// Open opens a file or folder for reading. What it returns is a *File.
func (f *FS) Open(name string) (fs.File, error) { return nil, errors.ErrUnsupported }

// Stat describes what name leads to, at the end of symbolic links.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Lstat describes name, even if that is a symbolic link. Its Sys is an *Attr.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// ReadDir lists a folder, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }

// ReadFile reads a whole file; a small one in a single round trip.
func (f *FS) ReadFile(name string) ([]byte, error) { return nil, errors.ErrUnsupported }

// ReadLink returns what a symbolic link points to.
func (f *FS) ReadLink(name string) (string, error) { return "", errors.ErrUnsupported }

// Sub returns the folder dir as an FS, which need not be closed.
func (f *FS) Sub(dir string) (fs.FS, error) { return nil, errors.ErrUnsupported }

// Entries yields what is in a folder as it comes from the server, unsorted. Info
// of an entry costs no round trip. An error comes last.
func (f *FS) Entries(ctx context.Context, dir string) iter.Seq2[fs.DirEntry, error] { return nil }

// OpenFile opens a file as os.OpenFile does. ctx bounds the opening only. The
// server has no place for perm, so it matters no more than fs.FileMode's bits for w do.
func (f *FS) OpenFile(ctx context.Context, name string, flag int, perm fs.FileMode) (*File, error) {
	return nil, errors.ErrUnsupported
}

// Create makes or empties a file and opens it for reading and writing.
func (f *FS) Create(ctx context.Context, name string) (*File, error) {
	return nil, errors.ErrUnsupported
}

// Mkdir makes a folder.
func (f *FS) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	return errors.ErrUnsupported
}

// MkdirAll makes a folder and those above it, as far as they are missing.
func (f *FS) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	return errors.ErrUnsupported
}

// Remove removes a file, a symbolic link or an empty folder.
func (f *FS) Remove(ctx context.Context, name string) error { return errors.ErrUnsupported }

// RemoveAll removes name and whatever is in it. That it does not exist is no error.
func (f *FS) RemoveAll(ctx context.Context, name string) error { return errors.ErrUnsupported }

// Rename moves oldname to newname, in the place of what is there.
func (f *FS) Rename(ctx context.Context, oldname, newname string) error {
	return errors.ErrUnsupported
}

// Link makes newname another name of the file oldname.
func (f *FS) Link(ctx context.Context, oldname, newname string) error { return errors.ErrUnsupported }

// Symlink makes newname a symbolic link to target.
func (f *FS) Symlink(ctx context.Context, target, newname string) error {
	return errors.ErrUnsupported
}

// Chmod sets or clears the read-only attribute: set if mode has no bit for w.
// That is all of a mode that a server without Unix extensions keeps.
func (f *FS) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return errors.ErrUnsupported
}

// Chtimes sets the times of access and modification. A zero time leaves its own as it is.
func (f *FS) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	return errors.ErrUnsupported
}

// WriteFile makes or empties a file and writes data; a little of it in a single round trip.
func (f *FS) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	return errors.ErrUnsupported
}

// Usage says how large and how full the share is.
func (f *FS) Usage(ctx context.Context) (Usage, error) { return Usage{}, errors.ErrUnsupported }

// Usage is the size of a share in bytes, and what its server calls it.
type Usage struct {
	Total, Free, Avail int64 // Avail: free to this user
	Block              int64 // the smallest allocation
	Label, Type        string
}

// Stats returns what the share's connection does and has done.
func (f *FS) Stats() Stats { return Stats{} }

// Close gives up the share, and the connection if Dial made it.
func (f *FS) Close() error { return errors.ErrUnsupported }

// Attr is what a server knows of a file beyond fs.FileInfo, whose Sys returns an
// *Attr. Zero times, ID and Links mean that the server has none.
type Attr struct {
	ID    uint64 // unique on the share
	Links uint32
	DOS   uint32 // [MS-FSCC] 2.6 file attributes
	Alloc int64

	Born, Accessed, Written, Changed time.Time
}
