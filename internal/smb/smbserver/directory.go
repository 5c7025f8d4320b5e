package smbserver

import (
	"io/fs"
	"sync"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// scan is how far an open has listed its folder. The entries are those that were
// there when the scan began.
type scan struct {
	mu      sync.Mutex
	begun   bool // guarded by mu, as what follows
	pattern string
	entries []memfs.Entry
	next    int
}

// firstListing is how much of a reply comes from the pool. Few are larger.
const firstListing = 64 << 10

// queryDirectory lists a folder. See [MS-SMB2] 3.3.5.18.
func (r *request) queryDirectory() ntstatus.Status {
	var m smb2msg.QueryDirectoryRequest
	if !r.decode(&m) || !r.fitsTransact(m.OutputBufferLength, 0) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	switch {
	case status != ntstatus.Success:
		return status
	case !o.isDir:
		return ntstatus.InvalidParameter
	case o.access&smb2msg.AccessListDirectory == 0:
		return ntstatus.AccessDenied
	case !listsDirectories(m.FileInformationClass):
		return ntstatus.InvalidInfoClass
	}
	s := &o.scan
	s.mu.Lock()
	defer s.mu.Unlock()
	restart := m.Flags&(smb2msg.QueryDirectoryRestartScans|smb2msg.QueryDirectoryReopen) != 0
	if !s.begun || restart {
		if status := s.beginLocked(o, m.FileName); status != ntstatus.Success {
			return status
		}
	}
	if m.Flags&smb2msg.QueryDirectoryIndexSpecified != 0 && int64(m.FileIndex) <= int64(len(s.entries)) {
		s.next = int(m.FileIndex)
	}
	none := ntstatus.NoMoreFiles
	if s.next == 0 {
		none = ntstatus.NoSuchFile
	}
	single := m.Flags&smb2msg.QueryDirectoryReturnSingleEntry != 0

	r.x.reserve(min(int(m.OutputBufferLength), firstListing))
	body := len(r.x.b)
	const head = 8 // of a response; see smb2msg.QueryDirectoryResponse
	r.x.b = byteio.AppendZero(r.x.b, head)
	w := fscc.NewDirWriter(r.x.b, m.FileInformationClass, int(m.OutputBufferLength))
	n := 0
	for ; s.next < len(s.entries) && (n == 0 || !single); s.next++ {
		e := &s.entries[s.next]
		if !matches(s.pattern, e.Name, o.tree.share.ignoreCase) {
			continue
		}
		if !w.Append(dirEntry(e, s.next+1)) {
			if n == 0 {
				return r.retract(ntstatus.InfoLengthMismatch)
			}
			break
		}
		n++
	}
	if n == 0 {
		return r.retract(none)
	}
	r.x.b = w.Bytes()
	// Nothing moves: the entries are where Append puts them.
	reply := smb2msg.QueryDirectoryResponse{Output: r.x.b[body+head:]}
	r.x.b = reply.Append(r.x.b[:body])
	return ntstatus.Success
}

func listsDirectories(class fscc.Class) bool {
	switch class {
	case fscc.ClassFileDirectory, fscc.ClassFileFullDirectory, fscc.ClassFileBothDirectory, fscc.ClassFileNames,
		fscc.ClassFileIDBothDirectory, fscc.ClassFileIDFullDirectory, fscc.ClassFileIDExtdDirectory:
		return true
	}
	return false
}

func (s *scan) beginLocked(o *open, pattern string) ntstatus.Status {
	if pattern == "" {
		if pattern = s.pattern; pattern == "" {
			return ntstatus.ObjectNameInvalid
		}
	}
	o.tree.share.mu.Lock()
	node, dir := o.node, o.dir
	o.tree.share.mu.Unlock()
	entries, err := node.ReadDir()
	if err != nil {
		return statusOf(err)
	}
	self, err := node.Attr()
	if err != nil {
		return statusOf(err)
	}
	up := self
	if dir != nil {
		if up, err = dir.Attr(); err != nil {
			return statusOf(err)
		}
	}
	s.begun, s.pattern, s.next = true, pattern, 0
	s.entries = append([]memfs.Entry{{Name: ".", Attr: self}, {Name: "..", Attr: up}}, entries...)
	return ntstatus.Success
}

func dirEntry(e *memfs.Entry, index int) *fscc.DirEntry {
	a := &e.Attr
	d := &fscc.DirEntry{
		FileIndex:    uint32(index),
		CreationTime: fscc.FiletimeOf(a.Born), LastAccessTime: fscc.FiletimeOf(a.Accessed),
		LastWriteTime: fscc.FiletimeOf(a.Written), ChangeTime: fscc.FiletimeOf(a.Changed),
		EndOfFile: uint64(size(a)), AllocationSize: uint64(allocation(a)),
		FileAttributes: attributes(a), FileID: a.ID, FileName: e.Name,
	}
	if a.Mode.Type() == fs.ModeSymlink {
		d.ReparseTag = fscc.ReparseTagSymlink
	}
	return d
}

// fitsTransact checks a request's buffers against what was negotiated and paid.
func (r *request) fitsTransact(output uint32, input int) bool {
	t := r.x.c.terms.Load()
	return int64(output) <= int64(t.transact) && int64(input) <= int64(t.transact) &&
		t.pays(&r.hdr, max(int(output), input))
}

// changeNotify waits, as nothing is watched, until it is cancelled or the folder
// is closed. See [MS-SMB2] 3.3.5.19.
func (r *request) changeNotify() ntstatus.Status {
	var m smb2msg.ChangeNotifyRequest
	if !r.decode(&m) || !r.fitsTransact(m.OutputBufferLength, 0) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	switch {
	case status != ntstatus.Success:
		return status
	case !o.isDir:
		return ntstatus.InvalidParameter
	case o.access&smb2msg.AccessListDirectory == 0:
		return ntstatus.AccessDenied
	}
	return r.pend(o)
}
