// Package memfs is a tree of files in memory, the one behind both test servers.
//
// It owns names, contents, attributes and the space they take, and answers with
// syscall.Errno. It knows no protocol: share modes, locks, handles, access
// rights and paths belong to the servers. It starts no goroutine.
//
// Lock order: FS.mu (all names and links) before any Node.mu (one node's
// contents and attributes); nobody holds two Node.mu at once.
package memfs

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxName is the longest name, in bytes. Names of 255 UTF-16 units fit.
const maxName = 3 * 255

// Config says how an FS behaves. The zero value is case-sensitive and unbounded.
type Config struct {
	IgnoreCase bool  // names that differ only in case are the same; the first spelling stays
	Limit      int64 // bytes that files may take; 0: none
}

// FS is a file system. It is safe for concurrent use.
type FS struct {
	cfg  Config
	used atomic.Int64

	mu    sync.RWMutex
	nodes map[uint64]*Node // guarded by mu: everything that has a name
	last  uint64           // guarded by mu: the newest node's id
	root  *Node            // set before New returns
}

// New returns an empty file system.
func New(cfg Config) *FS {
	f := &FS{cfg: cfg, nodes: map[uint64]*Node{}}
	f.root = f.newLocked(fs.ModeDir | 0o755)
	f.root.parent = f.root
	return f
}

// IgnoresCase reports whether names that differ only in case are the same.
func (f *FS) IgnoresCase() bool { return f.cfg.IgnoreCase }

// Root returns the folder everything is in.
func (f *FS) Root() *Node { return f.root }

// Node returns the node with an id, nil if there is none (any more).
func (f *FS) Node(id uint64) *Node {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.nodes[id]
}

// StatFS is the size of a file system in bytes, and how many nodes it has.
type StatFS struct{ Total, Free, Nodes int64 }

// Stat returns sizes. One without a limit claims to be large.
func (f *FS) Stat() StatFS {
	f.mu.RLock()
	n := int64(len(f.nodes))
	f.mu.RUnlock()
	total := f.cfg.Limit
	if total == 0 {
		total = 1 << 50
	}
	return StatFS{Total: total, Free: max(0, total-f.used.Load()), Nodes: n}
}

// take claims n more bytes, or says that they are not there.
func (f *FS) take(n int64) error {
	if used := f.used.Add(n); n > 0 && f.cfg.Limit > 0 && used > f.cfg.Limit {
		f.used.Add(-n)
		return syscall.ENOSPC
	}
	return nil
}

func (f *FS) newLocked(mode fs.FileMode) *Node {
	f.last++
	now := time.Now()
	n := &Node{fs: f, attr: Attr{
		ID: f.last, Mode: mode, Links: 1, Change: 1,
		Born: now, Accessed: now, Written: now, Changed: now,
	}}
	if mode.IsDir() {
		n.names = map[string]*name{}
	} else {
		n.chunks = map[int64][]byte{}
	}
	f.nodes[n.attr.ID] = n
	return n
}

// name is one entry of a folder. It does not change once made.
type name struct {
	text   string
	cookie uint64
	node   *Node
}

// dirLocked returns the error of using n as the folder that text is in.
func (n *Node) dirLocked(text string) error {
	switch {
	case n.names == nil:
		return syscall.ENOTDIR
	case len(text) > maxName:
		return syscall.ENAMETOOLONG
	}
	return nil
}

// addableLocked returns the error of adding text to the folder n.
func (n *Node) addableLocked(text string) error {
	if err := n.dirLocked(text); err != nil {
		return err
	}
	if text == "" || text == "." || text == ".." || strings.ContainsAny(text, "/\x00") {
		return syscall.EINVAL
	}
	if n.parent == nil {
		return syscall.ENOENT // it has been removed
	}
	if n.names[n.fs.key(text)] != nil {
		return syscall.EEXIST
	}
	return nil
}

func (n *Node) addLocked(text string, child *Node) {
	n.cookie++
	e := &name{text, n.cookie, child}
	n.names[n.fs.key(text)] = e
	n.list = append(n.list, e)
	if child.names != nil {
		child.parent = n
	}
	n.touch(true)
}

func (n *Node) dropLocked(e *name) {
	delete(n.names, n.fs.key(e.text))
	i, _ := slices.BinarySearchFunc(n.list, e.cookie, byCookie)
	n.list = slices.Delete(n.list, i, i+1)
	n.touch(true)
}

func byCookie(e *name, cookie uint64) int { return cmp.Compare(e.cookie, cookie) }

// Lookup finds a name in the folder n, and how it is really spelled.
// ".." is the parent, also of the root, which is its own.
func (n *Node) Lookup(text string) (*Node, string, error) {
	n.fs.mu.RLock()
	defer n.fs.mu.RUnlock()
	if err := n.dirLocked(text); err != nil {
		return nil, "", err
	}
	switch text {
	case ".":
		return n, text, nil
	case "..":
		if n.parent == nil {
			return nil, "", syscall.ENOENT
		}
		return n.parent, text, nil
	}
	e := n.names[n.fs.key(text)]
	if e == nil {
		return nil, "", syscall.ENOENT
	}
	return e.node, e.text, nil
}

func (n *Node) make(text string, mode fs.FileMode, fill func(*Node)) (*Node, error) {
	n.fs.mu.Lock()
	defer n.fs.mu.Unlock()
	if err := n.addableLocked(text); err != nil {
		return nil, err
	}
	child := n.fs.newLocked(mode)
	if fill != nil {
		fill(child)
	}
	n.addLocked(text, child)
	return child, nil
}

// Create makes an empty file in the folder n; it fails if the name is there.
func (n *Node) Create(text string, perm fs.FileMode) (*Node, error) {
	return n.make(text, perm.Perm(), nil)
}

// Mkdir makes a folder in n.
func (n *Node) Mkdir(text string, perm fs.FileMode) (*Node, error) {
	return n.make(text, fs.ModeDir|perm.Perm(), nil)
}

// Symlink makes a symbolic link in n. The target is never looked at.
func (n *Node) Symlink(text, target string) (*Node, error) {
	return n.make(text, fs.ModeSymlink|0o777, func(c *Node) { c.setTargetLocked(target) })
}

// Link gives target, which is no folder, one more name.
func (n *Node) Link(text string, target *Node) error {
	n.fs.mu.Lock()
	defer n.fs.mu.Unlock()
	if target.names != nil {
		return syscall.EPERM
	}
	if n.fs != target.fs {
		return syscall.EXDEV
	}
	if err := n.addableLocked(text); err != nil {
		return err
	}
	if !target.addLinks(1) {
		return syscall.ENOENT
	}
	n.addLocked(text, target)
	return nil
}

// unlinkLocked takes away a name's claim on its node.
func (n *Node) unlinkLocked(e *name) {
	n.dropLocked(e)
	if e.node.addLinks(-1) {
		return
	}
	delete(n.fs.nodes, e.node.attr.ID)
	e.node.parent = nil
}

// Remove takes away a name: a folder's, which must be empty, or any other's, as
// dir says. What has it open keeps the node, contents and all, without its space
// counting any longer.
func (n *Node) Remove(text string, dir bool) error {
	n.fs.mu.Lock()
	defer n.fs.mu.Unlock()
	if err := n.dirLocked(text); err != nil {
		return err
	}
	e := n.names[n.fs.key(text)]
	switch {
	case e == nil:
		return syscall.ENOENT
	case e.node.names != nil && !dir:
		return syscall.EISDIR
	case e.node.names == nil && dir:
		return syscall.ENOTDIR
	case len(e.node.names) > 0:
		return syscall.ENOTEMPTY
	}
	n.unlinkLocked(e)
	return nil
}

// Rename moves text in n to newText in to. An existing target other than the
// node itself is replaced only if replace says so and its kind is the same.
func (n *Node) Rename(text string, to *Node, newText string, replace bool) error {
	f := n.fs
	if f != to.fs {
		return syscall.EXDEV
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := n.dirLocked(text); err != nil {
		return err
	}
	e := n.names[f.key(text)]
	if e == nil {
		return syscall.ENOENT
	}
	for up := to; e.node.names != nil && up != nil; up = up.parent {
		if up == e.node {
			return syscall.EINVAL
		}
		if up == f.root {
			break
		}
	}
	err := to.addableLocked(newText)
	old := to.names[f.key(newText)]
	switch {
	case err != nil && err != syscall.EEXIST:
		return err
	case old == nil || old == e:
	case old.node == e.node:
		// Two names of one file: POSIX leaves both, Windows drops the first.
		if !replace {
			return syscall.EEXIST
		}
	case !replace:
		return syscall.EEXIST
	case old.node.names != nil && e.node.names == nil:
		return syscall.EISDIR
	case old.node.names == nil && e.node.names != nil:
		return syscall.ENOTDIR
	case len(old.node.names) > 0:
		return syscall.ENOTEMPTY
	}
	n.dropLocked(e)
	if old != nil && old != e {
		to.unlinkLocked(old)
	}
	to.addLocked(newText, e.node)
	e.node.touch(false)
	return nil
}

// Entry is a name in a folder and what it names.
type Entry struct {
	Name   string
	Cookie uint64 // pass to ReadDir to go on after this entry
	Node   *Node
	Attr   Attr
}

// ReadDir returns up to limit entries that come after a cookie, all if limit is
// 0, in the order they were made. The first cookie is 0. Entries that stay are
// seen exactly once, whatever happens to others meanwhile.
func (n *Node) ReadDir(after uint64, limit int) ([]Entry, error) {
	n.fs.mu.RLock()
	defer n.fs.mu.RUnlock()
	if n.names == nil {
		return nil, syscall.ENOTDIR
	}
	i, found := slices.BinarySearchFunc(n.list, after, byCookie)
	if found {
		i++
	}
	list := n.list[i:]
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	entries := make([]Entry, len(list))
	for i, e := range list {
		entries[i] = Entry{e.text, e.cookie, e.node, e.node.Attr()}
	}
	return entries, nil
}

// Parent returns the folder that the folder n is in, nil for removed ones and
// for other nodes, which may have many.
func (n *Node) Parent() *Node {
	n.fs.mu.RLock()
	defer n.fs.mu.RUnlock()
	return n.parent
}
