package memfs

import (
	"io"
	"strings"
	"syscall"
)

// The functions here are for tests, which look at a server's files by path:
// names between slashes, from the root, symbolic links not followed.

// Find returns the node at a path.
func (f *FS) Find(path string) (*Node, error) {
	n := f.root
	for text := range strings.SplitSeq(path, "/") {
		if text == "" {
			continue
		}
		var err error
		if n, _, err = n.Lookup(text); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// MkdirAll returns the folder at a path, and makes it and those above it if
// they are not there.
func (f *FS) MkdirAll(path string) (*Node, error) {
	n := f.root
	for text := range strings.SplitSeq(path, "/") {
		if text == "" {
			continue
		}
		child, err := n.Mkdir(text, 0o755)
		if err == syscall.EEXIST {
			child, _, err = n.Lookup(text)
		}
		if err != nil {
			return nil, err
		}
		n = child
	}
	return n, nil
}

// ReadFile returns the contents of the file at a path.
func (f *FS) ReadFile(path string) ([]byte, error) {
	n, err := f.Find(path)
	if err != nil {
		return nil, err
	}
	data := make([]byte, n.Attr().Size)
	got, err := n.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data[:got], err
}

// WriteFile makes data the contents of the file at a path. It makes the file and
// the folders above it if they are not there.
func (f *FS) WriteFile(path string, data []byte) error {
	dir, file := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, file = path[:i], path[i+1:]
	}
	d, err := f.MkdirAll(dir)
	if err != nil {
		return err
	}
	n, err := d.Create(file, 0o644)
	if err == syscall.EEXIST {
		if n, _, err = d.Lookup(file); err == nil {
			err = n.Truncate(0)
		}
	}
	if err == nil {
		_, err = n.WriteAt(data, 0)
	}
	return err
}
