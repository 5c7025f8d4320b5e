package smbserver

import (
	"io"
	"math"
	"slices"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// read reads from a file straight into the reply. See [MS-SMB2] 3.3.5.12.
func (r *request) read() ntstatus.Status {
	var m smb2msg.ReadRequest
	rd := r.body()
	if m.Decode(&rd) != nil {
		return ntstatus.InvalidParameter
	}
	terms := r.x.c.terms.Load()
	if int64(m.Length) > int64(terms.read) || !terms.pays(&r.hdr, int(m.Length)) || m.Channel != 0 {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	if o.pipe != nil {
		return r.readPipe(o.pipe, &m)
	}
	switch {
	case o.isDir:
		return ntstatus.InvalidDeviceRequest
	case o.access&(smb2msg.AccessReadData|smb2msg.AccessExecute) == 0:
		return ntstatus.AccessDenied
	case o.file == nil, m.Offset > math.MaxInt64-uint64(m.Length):
		return ntstatus.InvalidParameter
	case o.inode.locks.conflict(o, m.Offset, uint64(m.Length), false):
		return ntstatus.FileLockConflict
	}
	length := int(m.Length)
	if short := r.fault.Short; short > 0 {
		length = min(length, short)
	}
	r.x.reserve(smb2msg.ReadDataOffset + length)
	fixed := len(r.x.b)
	head := smb2msg.ReadResponse{}
	r.x.b = head.Append(r.x.b)
	data := len(r.x.b)
	n, err := o.file.ReadAt(r.x.b[data:data+length], int64(m.Offset))
	switch {
	case err != nil && err != io.EOF:
		return r.retract(statusOf(err))
	case n == 0 && m.Length > 0, n < int(m.MinimumCount) && r.fault.Short == 0:
		return r.retract(ntstatus.EndOfFile)
	}
	head.DataLength = uint32(n)
	head.Append(r.x.b[:fixed])
	r.x.b = r.x.b[:data+n]
	r.x.c.srv.stats.reads.add(n)
	return ntstatus.Success
}

// write writes to a file. See [MS-SMB2] 3.3.5.13.
func (r *request) write() ntstatus.Status {
	var m smb2msg.WriteRequest
	rd := r.body()
	if m.Decode(&rd) != nil {
		return ntstatus.InvalidParameter
	}
	terms := r.x.c.terms.Load()
	if int64(m.Length) > int64(terms.write) || !terms.pays(&r.hdr, int(m.Length)) || m.Channel != 0 {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	if o.pipe != nil {
		return r.writePipe(o.pipe, m.Data)
	}
	switch {
	case o.isDir:
		return ntstatus.InvalidDeviceRequest
	case o.access&(smb2msg.AccessWriteData|smb2msg.AccessAppendData) == 0:
		return ntstatus.AccessDenied
	case o.file == nil, m.Offset > math.MaxInt64-uint64(m.Length):
		return ntstatus.InvalidParameter
	case o.inode.locks.conflict(o, m.Offset, uint64(m.Length), true):
		return ntstatus.FileLockConflict
	}
	if short := r.fault.Short; short > 0 {
		m.Data = m.Data[:min(len(m.Data), short)]
	}
	n, err := o.file.WriteAt(m.Data, int64(m.Offset))
	o.spoil()
	if err == nil && m.Flags&smb2msg.WriteThrough != 0 {
		err = o.file.Sync()
	}
	if err != nil {
		return statusOf(err)
	}
	r.x.c.srv.stats.writes.add(n)
	reply := smb2msg.WriteResponse{Count: uint32(n)}
	r.x.b = reply.Append(r.x.b)
	return ntstatus.Success
}

// flush makes what was written durable. See [MS-SMB2] 3.3.5.11.
func (r *request) flush() ntstatus.Status {
	var m smb2msg.FlushRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	switch {
	case status != ntstatus.Success:
		return status
	case o.file != nil && o.access&(smb2msg.AccessWriteData|smb2msg.AccessAppendData) == 0:
		return ntstatus.AccessDenied
	case o.file != nil:
		if err := o.file.Sync(); err != nil {
			return statusOf(err)
		}
	}
	return r.reply(&smb2msg.FlushResponse{})
}

// lock locks or unlocks ranges. What would have to wait for a lock fails at
// once, whether or not it is asked to. See [MS-SMB2] 3.3.5.14.
func (r *request) lock() ntstatus.Status {
	var m smb2msg.LockRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	if o.inode == nil || o.isDir {
		return ntstatus.InvalidParameter
	}
	status = o.inode.locks.apply(o, m.Locks)
	if m.Locks[0].Flags&smb2msg.LockUnlock == 0 {
		o.spoil() // whoever locks a range wants to see what is in it
	}
	if status != ntstatus.Success {
		return status
	}
	return r.reply(&smb2msg.LockResponse{})
}

// apply does all that is asked for or, if that fails, undoes what it has locked.
func (l *locks) apply(o *open, list []smb2msg.LockElement) ntstatus.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.count.Store(int32(len(l.list))) }()
	unlock := list[0].Flags&smb2msg.LockUnlock != 0
	before := len(l.list)
	for _, e := range list {
		mode := e.Flags & (smb2msg.LockShared | smb2msg.LockExclusive | smb2msg.LockUnlock)
		want := lockedRange{o, e.Offset, e.Length, mode == smb2msg.LockExclusive}
		switch {
		case mode == smb2msg.LockUnlock && unlock:
			i := slices.IndexFunc(l.list, func(have lockedRange) bool {
				return have.open == o && have.off == e.Offset && have.size == e.Length
			})
			if i < 0 {
				return ntstatus.RangeNotLocked
			}
			l.list = slices.Delete(l.list, i, i+1)
		case unlock, mode != smb2msg.LockShared && mode != smb2msg.LockExclusive:
			l.list = l.list[:min(before, len(l.list))]
			return ntstatus.InvalidParameter
		case e.Length > 0 && e.Offset > math.MaxUint64-(e.Length-1):
			l.list = l.list[:before]
			return ntstatus.InvalidLockRange
		case slices.ContainsFunc(l.list, want.excludes):
			l.list = l.list[:before]
			return ntstatus.LockNotGranted
		default:
			l.list = append(l.list, want)
		}
	}
	return ntstatus.Success
}

// excludes reports whether two locks cannot both be.
func (a lockedRange) excludes(b lockedRange) bool {
	return (a.exclusive || b.exclusive) && a.overlaps(b.off, b.size)
}

func (a lockedRange) overlaps(off, size uint64) bool {
	return a.size > 0 && size > 0 && a.off <= off+(size-1) && off <= a.off+(a.size-1)
}

// conflict reports whether a lock forbids an open to read or write a range.
func (l *locks) conflict(o *open, off, size uint64, write bool) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(have lockedRange) bool {
		// A shared lock keeps its owner from writing, too.
		return (have.exclusive && have.open != o || !have.exclusive && write) && have.overlaps(off, size)
	})
}

// drop unlocks all that an open has locked.
func (l *locks) drop(o *open) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(have lockedRange) bool { return have.open == o })
	l.count.Store(int32(len(l.list)))
}
