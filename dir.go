package pagewire

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"syscall"
)

// folder is what a File that is one reads its entries from. Who has the file's
// offset may use it.
type folder struct {
	fs   *FS
	name string
	next func() (fs.DirEntry, error, bool) // nil: at the start
	stop func()
}

// rewind makes the next entry the first one.
func (d *folder) rewind() {
	if d.next != nil {
		d.stop()
		d.next, d.stop = nil, nil
	}
}

// ReadDir returns the next n entries of a folder, or all that are left: see
// fs.ReadDirFile.
func (f *File) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := f.usable("readdir", 0); err != nil {
		return nil, err
	}
	if f.folder == nil {
		return nil, &fs.PathError{Op: "readdir", Path: f.name, Err: syscall.ENOTDIR}
	}
	off := <-f.pos
	defer func() { f.pos <- off }()
	return f.folder.read(f.deadline.context(), n)
}

func (d *folder) read(ctx context.Context, n int) ([]fs.DirEntry, error) {
	if d.next == nil {
		d.next, d.stop = iter.Pull2(d.fs.Entries(ctx, d.name))
	}
	var entries []fs.DirEntry
	for n <= 0 || len(entries) < n {
		e, err, ok := d.next()
		if !ok {
			break
		}
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	if n > 0 && len(entries) == 0 {
		return nil, io.EOF
	}
	return entries, nil
}

// Entries yields what is in a folder as it comes from the server, unsorted. Info
// of an entry costs no round trip. An error comes last.
func (f *FS) Entries(ctx context.Context, dir string) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		stopped := false
		err := f.follow(ctx, dir, true, func(full string) error {
			for page, err := range f.share.files.ReadDir(ctx, full) {
				if err != nil {
					return err
				}
				for i := range page {
					if stopped = !yield(f.share.info(page[i].Name, page[i].Attr), nil); stopped {
						return nil
					}
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, pathError("readdir", dir, ctx, err))
		}
	}
}
