package memfs

import (
	"io/fs"
	"sync"
	"syscall"
	"time"
)

// Node is a file, a folder or a symbolic link, whatever its names.
type Node struct {
	fs *FS // set before the node is seen

	// A folder's names; nil for other nodes. Guarded by fs.mu.
	names  map[string]*name
	list   []*name // by cookie
	cookie uint64  // the newest one
	parent *Node   // the folder it is in; itself for the root, nil once removed

	mu     sync.RWMutex
	attr   Attr             // guarded by mu, but for ID
	target string           // guarded by mu
	chunks map[int64][]byte // guarded by mu: contents, see data.go
	gone   bool             // guarded by mu: no name is left, so no space is counted
}

// Attr describes a node.
type Attr struct {
	ID       uint64 // never used again
	Mode     fs.FileMode
	UID, GID uint32
	DOS      uint32 // bits as SetAttr left them; kinds are in Mode alone
	Links    uint32
	Size     int64
	Alloc    int64
	Change   uint64 // grows whenever anything else here or any content changes

	Born, Accessed, Written, Changed time.Time
}

// SetAttr says what to change; zero fields stay as they are.
type SetAttr struct {
	Born, Accessed, Written, Changed time.Time

	Perm     *fs.FileMode
	UID, GID *uint32
	DOS      *uint32
}

// Attr returns what is known of n.
func (n *Node) Attr() Attr {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.attr
}

// SetAttr changes attributes.
func (n *Node) SetAttr(set SetAttr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := &n.attr
	n.changedLocked(false)
	for _, t := range []struct {
		to *time.Time
		is time.Time
	}{{&a.Born, set.Born}, {&a.Accessed, set.Accessed}, {&a.Written, set.Written}, {&a.Changed, set.Changed}} {
		if !t.is.IsZero() {
			*t.to = t.is
		}
	}
	if set.Perm != nil {
		a.Mode = a.Mode.Type() | set.Perm.Perm()
	}
	for _, v := range []struct{ to, is *uint32 }{{&a.UID, set.UID}, {&a.GID, set.GID}, {&a.DOS, set.DOS}} {
		if v.is != nil {
			*v.to = *v.is
		}
	}
}

// changedLocked notes a change, one of the contents if written says so.
func (n *Node) changedLocked(written bool) {
	now := time.Now()
	n.attr.Change++
	n.attr.Changed = now
	if written {
		n.attr.Written = now
	}
}

func (n *Node) touch(written bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changedLocked(written)
}

// addLinks changes the link count and reports whether any link was and is left.
func (n *Node) addLinks(by int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return false
	}
	n.attr.Links += uint32(by)
	n.changedLocked(false)
	if n.attr.Links == 0 {
		n.gone = true
		_ = n.fs.take(-n.attr.Alloc) // giving back never fails
	}
	return !n.gone
}

// Target returns where a symbolic link points.
func (n *Node) Target() (string, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.attr.Mode.Type() != fs.ModeSymlink {
		return "", syscall.EINVAL
	}
	return n.target, nil
}

func (n *Node) setTargetLocked(target string) {
	n.target = target
	n.attr.Size = int64(len(target))
}

// SetTarget turns an empty file or folder into a symbolic link, or points a link
// elsewhere; with an empty target it turns a link into an empty file.
func (n *Node) SetTarget(target string) error {
	n.fs.mu.Lock()
	defer n.fs.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	link := n.attr.Mode.Type() == fs.ModeSymlink
	switch {
	case !link && target == "", n == n.fs.root:
		return syscall.EINVAL
	case !link && (n.attr.Size != 0 || len(n.names) > 0):
		return syscall.ENOTEMPTY
	}
	if n.names != nil {
		n.names, n.list, n.parent, n.chunks = nil, nil, nil, map[int64][]byte{}
	}
	n.attr.Mode = n.attr.Mode.Perm()
	if target != "" {
		n.attr.Mode |= fs.ModeSymlink
	}
	n.setTargetLocked(target)
	n.changedLocked(true)
	return nil
}
