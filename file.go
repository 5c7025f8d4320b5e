package pagewire

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// File is an open file or folder. ReadAt and WriteAt run in parallel; Read,
// Write and Seek share an offset. Nothing is cached: what a call has written,
// the server has.
type File struct{}

func (f *File) Name() string { return "" }

func (f *File) ReadAt(p []byte, off int64) (int, error) { return 0, errors.ErrUnsupported }

func (f *File) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return 0, errors.ErrUnsupported
}

func (f *File) WriteAt(p []byte, off int64) (int, error) { return 0, errors.ErrUnsupported }

func (f *File) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return 0, errors.ErrUnsupported
}

func (f *File) Read(p []byte) (int, error) { return 0, errors.ErrUnsupported }

func (f *File) Write(p []byte) (int, error) { return 0, errors.ErrUnsupported }

func (f *File) Seek(offset int64, whence int) (int64, error) { return 0, errors.ErrUnsupported }

// WriteTo writes the rest of the file to w, reading many requests ahead. Into a
// regular file, such as an *os.File that is not opened for appending, pieces are
// written as they come: after an error, what lies beyond the n bytes returned is
// undefined.
func (f *File) WriteTo(w io.Writer) (n int64, err error) { return 0, errors.ErrUnsupported }

// ReadFrom writes what r has left into the file at its offset, many requests at a
// time; a regular file is read by all of them at once. After an error, what lies
// beyond the n bytes returned is undefined.
func (f *File) ReadFrom(r io.Reader) (n int64, err error) { return 0, errors.ErrUnsupported }

// Progress returns how many bytes of the running, or else the last, WriteTo or
// ReadFrom have come through without a gap.
func (f *File) Progress() int64 { return 0 }

// SetDeadline makes every call on the file that runs at t or later fail with an
// error that wraps os.ErrDeadlineExceeded. The zero time means never.
func (f *File) SetDeadline(t time.Time) error { return errors.ErrUnsupported }

func (f *File) ReadDir(n int) ([]fs.DirEntry, error) { return nil, errors.ErrUnsupported }

func (f *File) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Truncate sets the size of the file.
func (f *File) Truncate(size int64) error { return errors.ErrUnsupported }

// Sync makes what was written durable.
func (f *File) Sync() error { return errors.ErrUnsupported }

func (f *File) Close() error { return errors.ErrUnsupported }
