package smbserver

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/memfs"
)

// Folder is a Tree over a folder on disk. Nothing outside it can be reached,
// whatever its symbolic links say.
type Folder struct {
	root       *os.Root
	ignoreCase bool
}

// OpenFolder opens the folder at dir. With ignoreCase a name that is not there
// as it is spelled is searched for, which takes reading the folder it is in.
func OpenFolder(dir string, ignoreCase bool) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root, ignoreCase}, nil
}

// Close gives up the folder.
func (f *Folder) Close() error { return f.root.Close() }

// IgnoresCase reports how names are found.
func (f *Folder) IgnoresCase() bool { return f.ignoreCase }

// Root returns the folder itself.
func (f *Folder) Root() Node { return folderNode{f, "."} }

// Stat returns the size of the file system that the folder is on.
func (f *Folder) Stat() (memfs.StatFS, error) {
	d, err := f.root.Open(".")
	if err != nil {
		return memfs.StatFS{}, err
	}
	defer d.Close()
	return statFS(d)
}

// folderNode is an object by its path in the folder.
type folderNode struct {
	*Folder
	path string
}

// folderFile adds punching to a file.
type folderFile struct{ *os.File }

func (n folderNode) at(name string) folderNode {
	return folderNode{n.Folder, path.Join(n.path, name)}
}

func (n folderNode) Attr() (memfs.Attr, error) {
	info, err := n.root.Lstat(n.path)
	if err != nil {
		return memfs.Attr{}, err
	}
	return attrOf(info), nil
}

func attrOf(info fs.FileInfo) memfs.Attr {
	written := info.ModTime()
	a := memfs.Attr{
		Mode: info.Mode(), Size: info.Size(), Links: 1, Alloc: info.Size(),
		Born: written, Accessed: written, Written: written, Changed: written,
	}
	statAttr(info, &a)
	if a.Mode.IsDir() {
		a.Size, a.Alloc, a.Links = 0, 0, 1
	}
	if a.Mode.IsRegular() && a.Mode&0o200 == 0 {
		a.DOS = dosReadonly
	}
	// What a disk has no room for is derived from what it has.
	if a.Changed.Before(a.Born) {
		a.Born = a.Changed
	}
	a.Change = uint64(a.Changed.UnixNano())
	return a
}

// dosReadonly is the one DOS attribute that has a place in a mode.
const dosReadonly = 1

func (n folderNode) SetAttr(set memfs.SetAttr) error {
	a, err := n.Attr()
	if err != nil || a.Mode.Type() == fs.ModeSymlink {
		return err
	}
	perm := a.Mode.Perm()
	if set.Perm != nil {
		perm = set.Perm.Perm()
	}
	if set.DOS != nil && a.Mode.IsRegular() {
		perm |= 0o200
		if *set.DOS&dosReadonly != 0 {
			perm &^= 0o222
		}
	}
	if perm != a.Mode.Perm() {
		err = n.root.Chmod(n.path, perm)
	}
	if set.Accessed.IsZero() && set.Written.IsZero() {
		return err
	}
	return errors.Join(err, n.root.Chtimes(n.path, either(set.Accessed, a.Accessed), either(set.Written, a.Written)))
}

func either(t, or time.Time) time.Time {
	if t.IsZero() {
		return or
	}
	return t
}

func (n folderNode) Open(write bool) (File, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := n.root.OpenFile(n.path, flag, 0)
	if err != nil {
		return nil, err
	}
	return folderFile{f}, nil
}

func (n folderNode) Lookup(name string) (Node, string, error) {
	child := n.at(name)
	_, err := n.root.Lstat(child.path)
	if err == nil || !n.ignoreCase || !errors.Is(err, fs.ErrNotExist) {
		return child, name, err
	}
	names, readErr := n.names()
	if readErr != nil {
		return nil, "", readErr
	}
	folded := memfs.Fold(name)
	for _, spelled := range names {
		if memfs.Fold(spelled) == folded {
			return n.at(spelled), spelled, nil
		}
	}
	return nil, "", err
}

func (n folderNode) names() ([]string, error) {
	d, err := n.root.Open(n.path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (n folderNode) ReadDir() ([]memfs.Entry, error) {
	names, err := n.names()
	if err != nil {
		return nil, err
	}
	entries := make([]memfs.Entry, 0, len(names))
	for _, name := range names {
		if a, err := n.at(name).Attr(); err == nil { // else it has gone meanwhile
			entries = append(entries, memfs.Entry{Name: name, Attr: a})
		}
	}
	return entries, nil
}

func (n folderNode) Create(name string) (Node, error) {
	child := n.at(name)
	f, err := n.root.OpenFile(child.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return child, f.Close()
}

func (n folderNode) Mkdir(name string) (Node, error) {
	child := n.at(name)
	return child, n.root.Mkdir(child.path, 0o755)
}

func (n folderNode) Link(name string, to Node) error {
	return n.root.Link(to.(folderNode).path, n.at(name).path)
}

func (n folderNode) Rename(name string, to Node, newName string, replace bool) error {
	from, dest := n.at(name), to.(folderNode).at(newName)
	if _, err := n.root.Lstat(dest.path); err == nil && !replace && from.path != dest.path {
		return syscall.EEXIST
	}
	return n.root.Rename(from.path, dest.path)
}

func (n folderNode) Remove(name string, dir bool) error {
	child := n.at(name)
	a, err := child.Attr()
	switch {
	case err != nil:
		return err
	case dir && !a.Mode.IsDir():
		return syscall.ENOTDIR
	case !dir && a.Mode.IsDir():
		return syscall.EISDIR
	}
	return n.root.Remove(child.path)
}

func (n folderNode) Target() (string, error) { return n.root.Readlink(n.path) }

func (n folderNode) SetTarget(target string) error {
	a, err := n.Attr()
	link := a.Mode.Type() == fs.ModeSymlink
	switch {
	case err != nil:
		return err
	case !link && target == "":
		return syscall.EINVAL
	case !link && a.Size != 0:
		return syscall.ENOTEMPTY
	}
	if err := n.root.Remove(n.path); err != nil {
		return err
	}
	if target == "" {
		_, err := n.Create("")
		return err
	}
	return n.root.Symlink(target, n.path)
}
