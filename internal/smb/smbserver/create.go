package smbserver

import (
	"io/fs"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// create opens or creates a file. See [MS-SMB2] 3.3.5.9 and [MS-FSA] 2.1.5.1.
func (r *request) create() ntstatus.Status {
	var m smb2msg.CreateRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	if r.tree.share.Tree == nil {
		return r.openPipe(&m)
	}
	if status := wellFormed(&m); status != ntstatus.Success {
		return status
	}
	parts, status := split(m.Name)
	if status != ntstatus.Success {
		return status
	}
	o := &open{
		id: r.x.c.srv.nextID(), session: r.session, tree: r.tree,
		access:        r.tree.share.mapAccess(m.DesiredAccess),
		shared:        m.ShareAccess,
		deleteOnClose: m.CreateOptions&smb2msg.OptionDeleteOnClose != 0,
	}
	if status := o.permitted(&m); status != ntstatus.Success {
		return status
	}
	w, status := r.rights(&m)
	if status != ntstatus.Success {
		return status
	}
	action, a, status := r.openNode(o, &m, parts, &w)
	if status != ntstatus.Success {
		return status
	}
	if !r.session.add(o) {
		o.close()
		return ntstatus.UserSessionDeleted
	}
	reply := smb2msg.CreateResponse{
		CreateAction: action,
		CreationTime: fscc.FiletimeOf(a.Born), LastAccessTime: fscc.FiletimeOf(a.Accessed),
		LastWriteTime: fscc.FiletimeOf(a.Written), ChangeTime: fscc.FiletimeOf(a.Changed),
		AllocationSize: uint64(allocation(&a)), EndOfFile: uint64(size(&a)),
		FileAttributes: attributes(&a),
		FileID:         smb2msg.FileID{Persistent: o.id, Volatile: o.id},
	}
	if a.Mode.Type() == fs.ModeSymlink {
		reply.Flags = smb2msg.CreateFlagReparsePoint
	}
	if _, ok := smb2msg.FindContext(m.Contexts, smb2msg.ContextMxAc); ok {
		reply.Contexts = append(reply.Contexts, smb2msg.NewCreateContext(smb2msg.ContextMxAc,
			&smb2msg.QueryMaximalAccessResponse{MaximalAccess: r.tree.share.access()}))
	}
	if _, ok := smb2msg.FindContext(m.Contexts, smb2msg.ContextQFid); ok {
		reply.Contexts = append(reply.Contexts, smb2msg.NewCreateContext(smb2msg.ContextQFid,
			&smb2msg.QueryOnDiskIDResponse{DiskFileID: a.ID, VolumeID: volumeID}))
	}
	w.describe(&reply)
	r.x.related.file = reply.FileID
	return r.reply(&reply)
}

// size and allocation are zero for what is no file.
func size(a *memfs.Attr) int64 {
	if !a.Mode.IsRegular() {
		return 0
	}
	return a.Size
}

func allocation(a *memfs.Attr) int64 {
	if !a.Mode.IsRegular() {
		return 0
	}
	return a.Alloc
}

// add puts an open into the session's table, unless the session is over.
func (s *session) add(o *open) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trees[o.tree.id] != o.tree {
		return false
	}
	s.opens[o.id] = o
	return true
}

// wellFormed checks what needs no file. See [MS-SMB2] 3.3.5.9 and [MS-FSA]
// 2.1.5.1.1.
func wellFormed(m *smb2msg.CreateRequest) ntstatus.Status {
	const unsupported = smb2msg.OptionOpenByFileID | smb2msg.OptionReserveOpfilter
	const both = smb2msg.OptionDirectoryFile | smb2msg.OptionNonDirectoryFile
	switch {
	case m.CreateOptions&unsupported != 0:
		return ntstatus.NotSupported
	case m.ImpersonationLevel > smb2msg.ImpersonationDelegate, m.CreateDisposition > smb2msg.OverwriteIf, m.CreateOptions&both == both,
		m.ShareAccess&^(smb2msg.ShareRead|smb2msg.ShareWrite|smb2msg.ShareDelete) != 0:
		return ntstatus.InvalidParameter
	case m.DesiredAccess == 0:
		return ntstatus.AccessDenied
	}
	if m.CreateOptions&smb2msg.OptionDirectoryFile != 0 && replaces(m) {
		return ntstatus.InvalidParameter
	}
	return ntstatus.Success
}

// permitted checks the access that is asked for.
func (o *open) permitted(m *smb2msg.CreateRequest) ntstatus.Status {
	writes := o.access&accessWrite != 0
	if replaces(m) || m.CreateDisposition == smb2msg.Create {
		writes = true
	}
	switch {
	case o.deleteOnClose && o.access&smb2msg.AccessDelete == 0:
		return ntstatus.InvalidParameter
	case writes && o.tree.share.ReadOnly:
		return ntstatus.AccessDenied
	}
	return ntstatus.Success
}

// openNode finds or makes the object of an open, and makes it one of those who
// have it open. Of the rights that it asks for, w is what it gets.
func (r *request) openNode(o *open, m *smb2msg.CreateRequest, parts []string, w *rights) (smb2msg.CreateAction, memfs.Attr, ntstatus.Status) {
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(status ntstatus.Status) (smb2msg.CreateAction, memfs.Attr, ntstatus.Status) {
		return 0, memfs.Attr{}, status
	}
	if status := r.walkLocked(o, parts); status != ntstatus.Success {
		return fail(status)
	}
	action := smb2msg.ActionOpened
	mine := s.leases.find(w)
	if o.node == nil {
		switch {
		case mine != nil:
			return fail(ntstatus.InvalidParameter) // a key is for one file
		case m.CreateDisposition == smb2msg.Open, m.CreateDisposition == smb2msg.Overwrite:
			return fail(ntstatus.ObjectNameNotFound)
		case s.ReadOnly:
			return fail(ntstatus.AccessDenied)
		}
		if status := o.make(m); status != ntstatus.Success {
			return fail(status)
		}
		action = smb2msg.ActionCreated
	} else if m.CreateDisposition == smb2msg.Create {
		return fail(ntstatus.ObjectNameCollision)
	}
	a, err := o.node.Attr()
	if err != nil {
		return fail(statusOf(err))
	}
	o.isDir, o.nodeID = a.Mode.IsDir(), a.ID
	if action == smb2msg.ActionOpened {
		if status := r.fits(o, m, &a); status != ntstatus.Success {
			return fail(status)
		}
		if status := r.makeWayLocked(o, m, mine); status != ntstatus.Success {
			return fail(status)
		}
	}
	if status := s.joinLocked(o); status != ntstatus.Success {
		if len(s.inodes[o.nodeID].opens) == 0 {
			delete(s.inodes, o.nodeID)
		}
		return fail(status)
	}
	if action == smb2msg.ActionOpened {
		action, err = o.overwrite(m, &a)
	}
	if err == nil && a.Mode.IsRegular() && o.access&accessData != 0 {
		o.file, err = o.node.Open(o.access&(smb2msg.AccessWriteData|smb2msg.AccessAppendData) != 0)
	}
	if err != nil {
		o.deleteOnClose = false
		s.leaveLocked(o)
		return fail(statusOf(err))
	}
	r.grantLocked(o, w)
	return action, a, ntstatus.Success
}

// makeWayLocked takes from others what rights to cache they cannot keep when a file
// is opened, mine being the lease of who opens it. If it has to wait for them, the
// status is STATUS_PENDING. See [MS-FSA] 2.1.5.1.2.
func (r *request) makeWayLocked(o *open, m *smb2msg.CreateRequest, mine *lease) ntstatus.Status {
	s := o.tree.share
	in := s.inodes[o.nodeID]
	switch {
	case mine != nil && mine.in != in:
		return ntstatus.InvalidParameter // a key is for one file
	case in == nil || in.deleted:
		return ntstatus.Success // joinLocked knows
	case o.access&^accessStat == 0 && !replaces(m):
		return ntstatus.Success
	}
	c := claim{mine: mine, take: leaseWrite, wait: leaseWrite, again: r.again}
	switch {
	case !in.admitsLocked(o):
		// Perhaps it is only kept open for the sake of a cache.
		c.take, c.wait = leaseHandle, leaseHandle
	case replaces(m):
		c.take = leaseAll
	case o.deleteOnClose:
		c.take, c.wait = leaseWrite|leaseHandle, leaseWrite|leaseHandle
	default:
		c.oplocks = o.access&^(accessStat|smb2msg.AccessReadControl) == 0
	}
	if ready := s.leases.contend(in, c); ready != nil {
		return r.await(ready)
	}
	return ntstatus.Success
}

// replaces reports whether what is there is emptied by being opened.
func replaces(m *smb2msg.CreateRequest) bool {
	switch m.CreateDisposition {
	case smb2msg.Supersede, smb2msg.Overwrite, smb2msg.OverwriteIf:
		return true
	}
	return false
}

// walkLocked goes from the root to where a path leads: it sets o.dir and o.parts
// and, if something is there, o.node.
func (r *request) walkLocked(o *open, parts []string) ntstatus.Status {
	o.node = o.tree.share.Tree.Root()
	for i, name := range parts {
		o.dir, o.node = o.node, nil
		last := i == len(parts)-1
		child, spelled, err := o.dir.Lookup(name)
		switch status := statusOf(err); {
		case status == ntstatus.NotADirectory:
			return ntstatus.ObjectPathNotFound
		case status == ntstatus.ObjectNameNotFound && last:
			o.parts = append(o.parts, name)
			return ntstatus.Success
		case status == ntstatus.ObjectNameNotFound:
			return ntstatus.ObjectPathNotFound
		case status != ntstatus.Success:
			return status
		}
		o.node, o.parts = child, append(o.parts, spelled)
		if last {
			break
		}
		if status := r.stop(child, parts[i+1:]); status != ntstatus.Success {
			return status
		}
	}
	return ntstatus.Success
}

// stop says that a path goes through a symbolic link, if it does.
// See [MS-SMB2] 2.2.2.2.1.
func (r *request) stop(n Node, rest []string) ntstatus.Status {
	target, err := n.Target()
	if err != nil {
		return ntstatus.Success
	}
	unparsed := ""
	if len(rest) > 0 {
		unparsed = `\` + strings.Join(rest, `\`)
	}
	r.detail = (&smb2msg.SymlinkErrorResponse{
		UnparsedPathLength:      uint16(2 * byteio.UTF16Len(unparsed)),
		SymbolicLinkReparseData: reparseOf(target),
	}).Append(nil)
	return ntstatus.StoppedOnSymlink
}

// make creates a file or a folder.
func (o *open) make(m *smb2msg.CreateRequest) (status ntstatus.Status) {
	var err error
	name := o.parts[len(o.parts)-1]
	dos := uint32(m.FileAttributes & settable)
	if m.CreateOptions&smb2msg.OptionDirectoryFile != 0 {
		o.node, err = o.dir.Mkdir(name)
	} else {
		o.node, err = o.dir.Create(name)
		dos |= uint32(fscc.AttributeArchive)
	}
	if err == nil && dos != 0 {
		err = o.node.SetAttr(memfs.SetAttr{DOS: &dos})
	}
	return statusOf(err)
}

// fits checks that what is there can be opened like this.
func (r *request) fits(o *open, m *smb2msg.CreateRequest, a *memfs.Attr) ntstatus.Status {
	const writing = smb2msg.AccessWriteData | smb2msg.AccessAppendData
	attrs := attributes(a)
	if a.Mode.Type() == fs.ModeSymlink && m.CreateOptions&smb2msg.OptionOpenReparsePoint == 0 {
		return r.stop(o.node, nil)
	}
	switch {
	case a.Mode.IsRegular() && m.CreateOptions&smb2msg.OptionDirectoryFile != 0:
		return ntstatus.NotADirectory
	case o.isDir && m.CreateOptions&smb2msg.OptionNonDirectoryFile != 0:
		return ntstatus.FileIsADirectory
	case o.isDir && replaces(m):
		return ntstatus.ObjectNameCollision
	case attrs&fscc.AttributeReadonly != 0 && !o.isDir && (replaces(m) || o.access&writing != 0):
		return ntstatus.AccessDenied
	case attrs&fscc.AttributeReadonly != 0 && o.deleteOnClose:
		return ntstatus.CannotDelete
	case o.deleteOnClose && o.dir == nil:
		return ntstatus.CannotDelete
	case replaces(m) && attrs&^m.FileAttributes&(fscc.AttributeHidden|fscc.AttributeSystem) != 0:
		// Whoever replaces a file has to know what it was.
		return ntstatus.AccessDenied
	}
	return ntstatus.Success
}

// overwrite empties a file that is to be replaced, and says what it has done.
func (o *open) overwrite(m *smb2msg.CreateRequest, a *memfs.Attr) (smb2msg.CreateAction, error) {
	action := smb2msg.ActionOverwritten
	switch m.CreateDisposition {
	case smb2msg.Open, smb2msg.OpenIf:
		return smb2msg.ActionOpened, nil
	case smb2msg.Supersede:
		action = smb2msg.ActionSuperseded
	}
	if !a.Mode.IsRegular() {
		return action, syscall.EINVAL
	}
	f, err := o.node.Open(true)
	if err != nil {
		return action, err
	}
	err = f.Truncate(0)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	dos := uint32(m.FileAttributes&settable | fscc.AttributeArchive)
	if err == nil {
		err = o.node.SetAttr(memfs.SetAttr{DOS: &dos})
	}
	if err == nil {
		*a, err = o.node.Attr()
	}
	return action, err
}

// close closes a file. See [MS-SMB2] 3.3.5.10.
func (r *request) close() ntstatus.Status {
	var m smb2msg.CloseRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	if !r.session.remove(o) {
		return ntstatus.FileClosed
	}
	r.x.c.closing(o)
	reply := smb2msg.CloseResponse{}
	if m.Flags&smb2msg.ClosePostQueryAttrib != 0 && o.pipe == nil {
		if a, err := o.object().Attr(); err == nil {
			reply = smb2msg.CloseResponse{
				Flags:        smb2msg.ClosePostQueryAttrib,
				CreationTime: fscc.FiletimeOf(a.Born), LastAccessTime: fscc.FiletimeOf(a.Accessed),
				LastWriteTime: fscc.FiletimeOf(a.Written), ChangeTime: fscc.FiletimeOf(a.Changed),
				AllocationSize: uint64(allocation(&a)), EndOfFile: uint64(size(&a)),
				FileAttributes: attributes(&a),
			}
		}
	}
	if status := o.close(); status != ntstatus.Success {
		return status
	}
	return r.reply(&reply)
}

// remove takes an open out of the session's table, which happens once.
func (s *session) remove(o *open) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opens[o.id] != o {
		return false
	}
	delete(s.opens, o.id)
	return true
}
