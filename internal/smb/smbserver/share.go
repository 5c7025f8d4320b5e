package smbserver

import (
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// share is a Share and what is open of it.
type share struct {
	Share
	ignoreCase bool
	leases     *leases // of the server

	mu     sync.Mutex        // also: held by whatever changes names
	inodes map[uint64]*inode // guarded by mu: what is open, by its id
}

// inode is an object with at least one open.
type inode struct {
	opens   []*open // guarded by share.mu, as deleted
	deleted bool    // the last CLOSE removes it
	locks   locks

	leased  atomic.Int32  // how many leases there are, for those who only want to know whether
	leases  []*lease      // guarded by leases.mu
	changed chan struct{} // guarded by leases.mu: closed when an open or a lease has changed; nil: nobody waits
}

// open is a file that a client has opened. See [MS-SMB2] 3.3.1.10.
type open struct {
	id      uint64
	session *session
	tree    *tree
	file    File // nil unless data can be read or written
	isDir   bool
	access  smb2msg.AccessMask
	shared  smb2msg.ShareAccess
	inode   *inode
	nodeID  uint64
	lease   *lease // or oplock, or nil
	pipe    *pipe  // of IPC$; then most of the above is zero

	// Where it is, and so what a rename or removal is about. Guarded by
	// share.mu; dir is nil for the root.
	node          Node
	dir           Node
	parts         []string
	deleteOnClose bool

	scan    scan
	watched atomic.Bool // some request waits, or has waited, for it to change
}

const (
	accessRead = smb2msg.AccessReadData | smb2msg.AccessReadEA | smb2msg.AccessExecute | smb2msg.AccessReadAttributes |
		smb2msg.AccessReadControl | smb2msg.AccessSynchronize
	accessWrite = smb2msg.AccessWriteData | smb2msg.AccessAppendData | smb2msg.AccessWriteEA | smb2msg.AccessDeleteChild |
		smb2msg.AccessWriteAttributes | smb2msg.AccessDelete | smb2msg.AccessWriteDAC | smb2msg.AccessWriteOwner
	accessAll = accessRead | accessWrite

	accessData = smb2msg.AccessReadData | smb2msg.AccessExecute | smb2msg.AccessWriteData | smb2msg.AccessAppendData
	// What counts as no access at all when it comes to sharing.
	accessStat = smb2msg.AccessReadAttributes | smb2msg.AccessWriteAttributes | smb2msg.AccessSynchronize
)

func newShare(cfg Share, leases *leases) *share {
	s := &share{Share: cfg, leases: leases, inodes: map[uint64]*inode{}}
	if cfg.Tree != nil {
		s.ignoreCase = cfg.Tree.IgnoresCase()
	}
	return s
}

// access is the most that anybody may do.
func (s *share) access() smb2msg.AccessMask {
	if s.ReadOnly {
		return accessRead
	}
	return accessAll
}

// mapAccess turns generic rights into those they stand for.
func (s *share) mapAccess(want smb2msg.AccessMask) smb2msg.AccessMask {
	for _, g := range []struct{ bit, means smb2msg.AccessMask }{
		{smb2msg.AccessGenericRead, accessRead &^ smb2msg.AccessExecute},
		{smb2msg.AccessGenericExecute, smb2msg.AccessExecute | smb2msg.AccessReadAttributes | smb2msg.AccessReadControl | smb2msg.AccessSynchronize},
		{smb2msg.AccessGenericWrite, accessWrite&^(smb2msg.AccessDelete|smb2msg.AccessDeleteChild|smb2msg.AccessWriteDAC|smb2msg.AccessWriteOwner) | smb2msg.AccessReadControl | smb2msg.AccessSynchronize},
		{smb2msg.AccessGenericAll, accessAll},
		{smb2msg.AccessMaximumAllowed, s.access()},
	} {
		if want&g.bit != 0 {
			want = want&^g.bit | g.means
		}
	}
	return want
}

// join adds an open of a node, unless it goes against what those who have it
// open allow, or it against what they do. See [MS-FSA] 2.1.5.1.2.2.
func (s *share) joinLocked(o *open) ntstatus.Status {
	in := s.inodes[o.nodeID]
	if in == nil {
		in = &inode{}
		s.inodes[o.nodeID] = in
	}
	if in.deleted {
		return ntstatus.DeletePending
	}
	if !in.admitsLocked(o) {
		return ntstatus.SharingViolation
	}
	o.inode = in
	in.opens = append(in.opens, o)
	return ntstatus.Success
}

// admitsLocked reports whether those who have an object open allow one more to.
func (in *inode) admitsLocked(o *open) bool {
	for _, other := range in.opens {
		if o.access&^accessStat != 0 && other.access&^accessStat != 0 &&
			(!shares(o.access, other.shared) || !shares(other.access, o.shared)) {
			return false
		}
	}
	return true
}

func shares(access smb2msg.AccessMask, allowed smb2msg.ShareAccess) bool {
	const read, write = smb2msg.AccessReadData | smb2msg.AccessExecute, smb2msg.AccessWriteData | smb2msg.AccessAppendData
	return (access&read == 0 || allowed&smb2msg.ShareRead != 0) &&
		(access&write == 0 || allowed&smb2msg.ShareWrite != 0) &&
		(access&smb2msg.AccessDelete == 0 || allowed&smb2msg.ShareDelete != 0)
}

// leaveLocked takes an open out, and reports whether the node is to be removed.
func (s *share) leaveLocked(o *open) bool {
	in := o.inode
	for i, other := range in.opens {
		if other == o {
			in.opens = append(in.opens[:i], in.opens[i+1:]...)
			break
		}
	}
	s.leases.leave(o)
	in.deleted = in.deleted || o.deleteOnClose
	if len(in.opens) > 0 {
		return false
	}
	delete(s.inodes, o.nodeID)
	return in.deleted && o.dir != nil
}

// close ends an open that is in no table any longer.
func (o *open) close() ntstatus.Status {
	if o.pipe != nil {
		return ntstatus.Success
	}
	o.inode.locks.drop(o)
	var err error
	if o.file != nil {
		err = o.file.Close()
	}
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaveLocked(o) {
		return statusOf(err)
	}
	a, err := o.node.Attr() // it may have become a link
	if err == nil {
		err = o.dir.Remove(o.parts[len(o.parts)-1], a.Mode.IsDir())
	}
	return statusOf(err)
}

// object is what o has open.
func (o *open) object() Node {
	o.tree.share.mu.Lock()
	defer o.tree.share.mu.Unlock()
	return o.node
}

// path is where o is, with slashes.
func (o *open) path() string {
	if o.pipe != nil {
		return o.pipe.name
	}
	o.tree.share.mu.Lock()
	defer o.tree.share.mu.Unlock()
	return strings.Join(o.parts, "/")
}

// belowLocked returns what is open below o.
func (o *open) belowLocked() (list []*inode) {
	for _, in := range o.tree.share.inodes {
		for _, other := range in.opens {
			if len(other.parts) > len(o.parts) && equal(other.parts[:len(o.parts)], o.parts) {
				list = append(list, in)
				break
			}
		}
	}
	return list
}

func equal(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// attributes are the DOS attributes of what a describes.
func attributes(a *memfs.Attr) fscc.FileAttributes {
	attrs := fscc.FileAttributes(a.DOS) & settable
	switch a.Mode.Type() {
	case fs.ModeDir:
		attrs |= fscc.AttributeDirectory
	case 0:
	default:
		attrs |= fscc.AttributeReparsePoint
	}
	if attrs == 0 {
		return fscc.AttributeNormal
	}
	return attrs
}

// settable are the attributes that clients choose.
const settable = fscc.AttributeReadonly | fscc.AttributeHidden | fscc.AttributeSystem | fscc.AttributeArchive |
	fscc.AttributeTemporary | fscc.AttributeSparseFile | fscc.AttributeOffline | fscc.AttributeNotContentIndexed

// locks are the byte ranges of an inode that are locked.
type locks struct {
	count atomic.Int32 // of list, for those who only want to know whether there is any
	mu    sync.Mutex
	list  []lockedRange // guarded by mu
}

type lockedRange struct {
	open      *open
	off, size uint64
	exclusive bool
}
