package smbserver

import (
	"io"

	"github.com/pagewire/pagewire/internal/memfs"
)

// Tree is what a share shows. Its errors are syscall.Errno, or wrap one.
type Tree interface {
	Root() Node
	Stat() (memfs.StatFS, error)
	IgnoresCase() bool
}

// Node is one object of a Tree. The server calls what changes names for one
// request of a share at a time, and renames no folder while it has anything
// below it open.
type Node interface {
	Attr() (memfs.Attr, error)
	SetAttr(memfs.SetAttr) error
	// Open yields the contents of a file.
	Open(write bool) (File, error)

	// Lookup finds a name in a folder, and how it is really spelled.
	Lookup(name string) (Node, string, error)
	Create(name string) (Node, error)
	Mkdir(name string) (Node, error)
	Link(name string, to Node) error
	Rename(name string, to Node, newName string, replace bool) error
	Remove(name string, dir bool) error
	// ReadDir returns all of a folder; of an entry it leaves Node and Cookie to others.
	ReadDir() ([]memfs.Entry, error)

	// Target is where a symbolic link points, with slashes. SetTarget makes an
	// empty file or folder a link, or, with "", a link an empty file.
	Target() (string, error)
	SetTarget(target string) error
}

// File is the contents of an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	// Punch makes a range read as zeros.
	Punch(off, size int64) error
}

// Memory is a Tree over a file system in memory.
func Memory(fs *memfs.FS) Tree { return memory{fs} }

type memory struct{ fs *memfs.FS }

func (m memory) Root() Node                  { return memoryNode{m.fs.Root()} }
func (m memory) IgnoresCase() bool           { return m.fs.IgnoresCase() }
func (m memory) Stat() (memfs.StatFS, error) { return m.fs.Stat(), nil }

// memoryNode is a Node and its File: a node of memfs is both as it stands, but
// for the types.
type memoryNode struct{ *memfs.Node }

func (n memoryNode) Attr() (memfs.Attr, error)       { return n.Node.Attr(), nil }
func (n memoryNode) Open(bool) (File, error)         { return n, nil }
func (n memoryNode) Close() error                    { return nil }
func (n memoryNode) Sync() error                     { return nil }
func (n memoryNode) ReadDir() ([]memfs.Entry, error) { return n.Node.ReadDir(0, 0) }

func (n memoryNode) SetAttr(set memfs.SetAttr) error {
	n.Node.SetAttr(set)
	return nil
}

func (n memoryNode) Lookup(name string) (Node, string, error) {
	child, spelled, err := n.Node.Lookup(name)
	return memoryNode{child}, spelled, err
}

func (n memoryNode) Create(name string) (Node, error) {
	child, err := n.Node.Create(name, 0o644)
	return memoryNode{child}, err
}

func (n memoryNode) Mkdir(name string) (Node, error) {
	child, err := n.Node.Mkdir(name, 0o755)
	return memoryNode{child}, err
}

func (n memoryNode) Link(name string, to Node) error {
	return n.Node.Link(name, to.(memoryNode).Node)
}

func (n memoryNode) Rename(name string, to Node, newName string, replace bool) error {
	return n.Node.Rename(name, to.(memoryNode).Node, newName, replace)
}
