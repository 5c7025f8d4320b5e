package smbserver

import (
	"slices"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// setInfo changes a file. See [MS-SMB2] 3.3.5.21.
func (r *request) setInfo() ntstatus.Status {
	var m smb2msg.SetInfoRequest
	if !r.decode(&m) || !r.fitsTransact(0, len(m.Buffer)) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	switch {
	case status != ntstatus.Success:
		return status
	case o.pipe != nil:
		return ntstatus.NotSupported
	case o.tree.share.ReadOnly:
		return ntstatus.AccessDenied
	case m.InfoType == smb2msg.InfoFile:
		status = r.setFileInfo(o, m.FileInfoClass, m.Buffer)
	case m.InfoType == smb2msg.InfoSecurity:
		// Everybody may do everything, whatever is asked for.
	default:
		status = ntstatus.NotSupported
	}
	if status != ntstatus.Success {
		return status
	}
	return r.reply(&smb2msg.SetInfoResponse{})
}

// setFileInfo is SET_INFO for one file. See [MS-FSCC] 2.4.
func (r *request) setFileInfo(o *open, class fscc.Class, buf []byte) ntstatus.Status {
	rd := byteio.NewReader(buf)
	decode := func(m interface{ Decode(*byteio.Reader) error }) bool { return m.Decode(&rd) == nil }
	const short = ntstatus.InfoLengthMismatch
	switch class {
	case fscc.ClassFileBasic:
		var m fscc.FileBasicInformation
		if !decode(&m) {
			return short
		}
		return o.setBasic(&m)
	case fscc.ClassFileEndOfFile:
		var m fscc.FileEndOfFileInformation
		if !decode(&m) {
			return short
		}
		return o.resize(int64(m.EndOfFile), true)
	case fscc.ClassFileAllocation:
		var m fscc.FileAllocationInformation
		if !decode(&m) {
			return short
		}
		return o.resize(int64(m.AllocationSize), false)
	case fscc.ClassFileDisposition:
		var m fscc.FileDispositionInformation
		if !decode(&m) {
			return short
		}
		return r.dispose(o, m.DeletePending, false)
	case fscc.ClassFileDispositionEx:
		var m fscc.FileDispositionInformationEx
		if !decode(&m) {
			return short
		}
		if m.Flags&fscc.DispositionPosixSemantics != 0 {
			return ntstatus.NotSupported
		}
		return r.dispose(o, m.Flags&fscc.DispositionDelete != 0, m.Flags&fscc.DispositionIgnoreReadonlyAttribute != 0)
	case fscc.ClassFileRename:
		var m fscc.FileRenameInformation
		if !decode(&m) {
			return short
		}
		return r.rename(o, m.FileName, m.ReplaceIfExists)
	case fscc.ClassFileRenameEx:
		var m fscc.FileRenameInformationEx
		if !decode(&m) {
			return short
		}
		if m.Flags&fscc.RenamePosixSemantics != 0 {
			return ntstatus.NotSupported
		}
		return r.rename(o, m.FileName, m.Flags&fscc.RenameReplaceIfExists != 0)
	case fscc.ClassFileLink:
		var m fscc.FileLinkInformation
		if !decode(&m) {
			return short
		}
		return r.link(o, m.FileName, m.ReplaceIfExists)
	case fscc.ClassFilePosition, fscc.ClassFileMode:
		return ntstatus.Success // kept for nobody
	case fscc.ClassFileFullEa:
		return ntstatus.EasNotSupported
	}
	return ntstatus.InvalidInfoClass
}

// setBasic sets times and attributes. See [MS-FSCC] 2.4.7.
func (o *open) setBasic(m *fscc.FileBasicInformation) ntstatus.Status {
	if o.access&smb2msg.AccessWriteAttributes == 0 {
		return ntstatus.AccessDenied
	}
	for _, t := range []fscc.Filetime{m.CreationTime, m.LastAccessTime, m.LastWriteTime, m.ChangeTime} {
		if t < fscc.FiletimeThaw {
			return ntstatus.InvalidParameter
		}
	}
	set := memfs.SetAttr{
		Born: m.CreationTime.Time(), Accessed: m.LastAccessTime.Time(),
		Written: m.LastWriteTime.Time(), Changed: m.ChangeTime.Time(),
	}
	if m.FileAttributes != 0 {
		if m.FileAttributes&fscc.AttributeDirectory != 0 && !o.isDir {
			return ntstatus.InvalidParameter
		}
		dos := uint32(m.FileAttributes & settable)
		set.DOS = &dos
	}
	return statusOf(o.object().SetAttr(set))
}

// resize sets the size of a file. Of an allocation, only that it cuts a file
// counts: space is taken when it is written to.
func (o *open) resize(to int64, exact bool) ntstatus.Status {
	if o.access&smb2msg.AccessWriteData == 0 {
		return ntstatus.AccessDenied
	}
	if o.file == nil || to < 0 {
		return ntstatus.InvalidParameter
	}
	defer o.spoil()
	if !exact {
		a, err := o.object().Attr()
		if err != nil || to >= a.Size {
			return statusOf(err)
		}
	}
	return statusOf(o.file.Truncate(to))
}

// dispose decides whether the last CLOSE removes the file.
func (r *request) dispose(o *open, remove, readonlyToo bool) ntstatus.Status {
	if o.access&smb2msg.AccessDelete == 0 {
		return ntstatus.AccessDenied
	}
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if !remove {
		o.inode.deleted = false
		return ntstatus.Success
	}
	a, err := o.node.Attr()
	switch {
	case err != nil:
		return statusOf(err)
	case o.dir == nil, attributes(&a)&fscc.AttributeReadonly != 0 && !readonlyToo:
		return ntstatus.CannotDelete
	}
	if o.isDir {
		entries, err := o.node.ReadDir()
		if err != nil {
			return statusOf(err)
		}
		if len(entries) > 0 {
			return ntstatus.DirectoryNotEmpty
		}
	}
	if status := r.releaseLocked(o, o.inode); status != ntstatus.Success {
		return status
	}
	o.inode.deleted = true
	return ntstatus.Success
}

// releaseLocked asks all but o not to keep objects open just for the sake of their
// caches, since names are about to change. If it has to wait for that, the status is
// STATUS_PENDING.
func (r *request) releaseLocked(o *open, list ...*inode) ntstatus.Status {
	var ready <-chan struct{}
	for _, in := range list {
		c := claim{mine: o.lease, take: leaseHandle, wait: leaseHandle, again: r.again}
		if wait := o.tree.share.leases.contend(in, c); wait != nil {
			ready = wait // for the others it waits later
		}
	}
	if ready != nil {
		return r.await(ready)
	}
	return ntstatus.Success
}

// target finds where a file is to get a name: the folder, and what is there.
func (r *request) targetLocked(o *open, path string, replace bool) (to *open, status ntstatus.Status) {
	parts, status := split(path)
	if status != ntstatus.Success {
		return nil, status
	}
	if len(parts) == 0 {
		return nil, ntstatus.InvalidParameter
	}
	to = &open{tree: o.tree}
	if status := r.walkLocked(to, parts); status != ntstatus.Success {
		return nil, status
	}
	// A file keeps the spelling it had; a new name is as it is written.
	to.parts[len(to.parts)-1] = parts[len(parts)-1]
	if to.node == nil {
		return to, ntstatus.Success
	}
	a, err := to.node.Attr()
	switch {
	case err != nil:
		return nil, statusOf(err)
	case a.ID == o.nodeID:
	case !replace:
		return nil, ntstatus.ObjectNameCollision
	case a.Mode.IsDir(), attributes(&a)&fscc.AttributeReadonly != 0:
		return nil, ntstatus.AccessDenied
	}
	if in := o.tree.share.inodes[a.ID]; in != nil && in != o.inode {
		if status := r.releaseLocked(o, in); status != ntstatus.Success {
			return nil, status
		}
		return nil, ntstatus.AccessDenied // it is open all the same
	}
	return to, ntstatus.Success
}

// rename gives a file another name. See [MS-FSA] 2.1.5.15.11.
func (r *request) rename(o *open, path string, replace bool) ntstatus.Status {
	if o.access&smb2msg.AccessDelete == 0 {
		return ntstatus.AccessDenied
	}
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.dir == nil {
		return ntstatus.AccessDenied
	}
	if below := o.belowLocked(); o.isDir && len(below) > 0 {
		if status := r.releaseLocked(o, below...); status != ntstatus.Success {
			return status
		}
		return ntstatus.AccessDenied
	}
	to, status := r.targetLocked(o, path, replace)
	if status != ntstatus.Success {
		return status
	}
	if status := r.releaseLocked(o, o.inode); status != ntstatus.Success {
		return status
	}
	old := o.parts
	newName := to.parts[len(to.parts)-1]
	if err := o.dir.Rename(old[len(old)-1], to.dir, newName, replace); err != nil {
		return statusOf(err)
	}
	node, _, err := to.dir.Lookup(newName)
	if err != nil {
		return statusOf(err)
	}
	for _, other := range o.inode.opens {
		if len(other.parts) == len(old) && slices.Equal(other.parts, old) {
			other.dir, other.parts, other.node = to.dir, to.parts, node
		}
	}
	return ntstatus.Success
}

// link gives a file one more name. See [MS-FSA] 2.1.5.15.6.
func (r *request) link(o *open, path string, replace bool) ntstatus.Status {
	if o.isDir {
		return ntstatus.FileIsADirectory
	}
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	to, status := r.targetLocked(o, path, replace)
	if status != ntstatus.Success {
		return status
	}
	if status := r.releaseLocked(o, o.inode); status != ntstatus.Success {
		return status
	}
	name := to.parts[len(to.parts)-1]
	if to.node != nil {
		if !replace {
			return ntstatus.ObjectNameCollision
		}
		if to.node == o.node {
			return ntstatus.Success
		}
		if err := to.dir.Remove(name, false); err != nil {
			return statusOf(err)
		}
	}
	return statusOf(to.dir.Link(name, o.node))
}
