package smbserver

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// serve checks who asks and does what it says. What it appends to the reply is
// the body; if that is nothing, an error's body goes there.
// See [MS-SMB2] 3.3.5.2.
func (r *request) serve() ntstatus.Status {
	if r.again {
		if r.ended != ntstatus.Success {
			return r.leave(r.ended)
		}
		return r.leave(r.dispatch())
	}
	r.follow()
	if status := r.check(); status != ntstatus.Success || r.x.fatal != nil {
		return r.leave(status)
	}
	if r.fault.Status != ntstatus.Success {
		return r.leave(r.fault.Status)
	}
	return r.leave(r.dispatch())
}

func (r *request) dispatch() ntstatus.Status {
	switch r.hdr.Command {
	case smb2msg.CommandNegotiate:
		return r.negotiate()
	case smb2msg.CommandSessionSetup:
		return r.sessionSetup()
	case smb2msg.CommandLogoff:
		return r.logoff()
	case smb2msg.CommandTreeConnect:
		return r.treeConnect()
	case smb2msg.CommandTreeDisconnect:
		return r.treeDisconnect()
	case smb2msg.CommandCreate:
		return r.create()
	case smb2msg.CommandClose:
		return r.close()
	case smb2msg.CommandFlush:
		return r.flush()
	case smb2msg.CommandRead:
		return r.read()
	case smb2msg.CommandWrite:
		return r.write()
	case smb2msg.CommandLock:
		return r.lock()
	case smb2msg.CommandIoctl:
		return r.ioctl()
	case smb2msg.CommandEcho:
		return r.echo()
	case smb2msg.CommandQueryDirectory:
		return r.queryDirectory()
	case smb2msg.CommandChangeNotify:
		return r.changeNotify()
	case smb2msg.CommandQueryInfo:
		return r.queryInfo()
	case smb2msg.CommandSetInfo:
		return r.setInfo()
	case smb2msg.CommandOplockBreak:
		return r.oplockBreak()
	}
	return ntstatus.InvalidParameter
}

// follow gives a related request the ids of the one before it.
func (r *request) follow() {
	rel := &r.x.related
	if r.hdr.Flags&smb2msg.FlagRelated != 0 && r != &r.x.reqs[0] {
		r.hdr.SessionID, r.hdr.TreeID = rel.session, rel.tree
		return
	}
	*rel = related{file: smb2msg.RelatedFileID}
}

// leave leaves to a related request what it may need.
func (r *request) leave(status ntstatus.Status) ntstatus.Status {
	rel := &r.x.related
	rel.session, rel.tree = r.hdr.SessionID, r.hdr.TreeID
	if r.hdr.Command == smb2msg.CommandCreate && status != ntstatus.Success {
		rel.file, rel.status = smb2msg.RelatedFileID, status
	}
	return status
}

// check finds the session and the tree of a request and looks at its protection.
func (r *request) check() ntstatus.Status {
	cmd, x := r.hdr.Command, r.x
	if cmd == smb2msg.CommandNegotiate {
		return ntstatus.Success
	}
	if x.c.terms.Load() == nil {
		x.fatal = errFirst
		return ntstatus.Success
	}
	if r.hdr.Flags&smb2msg.FlagRelated != 0 && r == &x.reqs[0] {
		return ntstatus.InvalidParameter
	}
	r.session = x.c.session(r.hdr.SessionID)
	if x.sealer != nil && x.sealer != r.session {
		x.fatal = errSessions
		return ntstatus.Success
	}
	ready := r.session != nil && r.session.ready.Load()
	if ready {
		if status := r.verify(); status != ntstatus.Success {
			return status
		}
	}
	switch {
	case cmd == smb2msg.CommandSessionSetup, cmd == smb2msg.CommandEcho:
		return ntstatus.Success
	case !ready:
		return ntstatus.UserSessionDeleted
	case cmd == smb2msg.CommandLogoff, cmd == smb2msg.CommandTreeConnect:
		return ntstatus.Success
	}
	if r.tree = r.session.tree(r.hdr.TreeID); r.tree == nil {
		return ntstatus.NetworkNameDeleted
	}
	if r.tree.share.Seal && x.sealer == nil {
		return ntstatus.AccessDenied
	}
	return ntstatus.Success
}

// verify checks the signature of a request. See [MS-SMB2] 3.3.5.2.4.
func (r *request) verify() ntstatus.Status {
	s := r.session
	switch {
	case r.x.sealer != nil:
	case s.seal:
		return ntstatus.AccessDenied
	case r.hdr.Flags&smb2msg.FlagSigned != 0 && s.signer != nil:
		if !s.signer.Verify(r.msg) {
			return ntstatus.AccessDenied
		}
		r.sign = true
		r.x.c.srv.stats.signed.Add(1)
	case s.sign && r.hdr.Command != smb2msg.CommandEcho:
		return ntstatus.AccessDenied
	}
	return ntstatus.Success
}

// body returns a Reader that stands where the request's body starts.
func (r *request) body() byteio.Reader {
	rd := byteio.NewReader(r.msg)
	rd.Skip(smb2msg.HeaderSize)
	return rd
}

// decode reads the body, and reports whether it makes sense.
func (r *request) decode(m interface{ Decode(*byteio.Reader) error }) bool {
	rd := r.body()
	return m.Decode(&rd) == nil
}

// reply appends the body of a reply.
func (r *request) reply(m interface{ Append([]byte) []byte }) ntstatus.Status {
	r.x.b = m.Append(r.x.b)
	return ntstatus.Success
}

// retract takes back what has been appended.
func (r *request) retract(status ntstatus.Status) ntstatus.Status {
	r.x.b = r.x.b[:r.start+smb2msg.HeaderSize]
	return status
}

// lookup finds an open file; in a related compound, that of the request before.
func (r *request) lookup(id smb2msg.FileID) (*open, ntstatus.Status) {
	if id == smb2msg.RelatedFileID {
		if id = r.x.related.file; id == smb2msg.RelatedFileID {
			if status := r.x.related.status; status != ntstatus.Success {
				return nil, status
			}
		}
	}
	o := r.session.open(id)
	if o == nil || o.tree != r.tree {
		return nil, ntstatus.FileClosed
	}
	r.x.related.file = id
	return o, ntstatus.Success
}

func (r *request) echo() ntstatus.Status { return r.reply(&smb2msg.EchoResponse{}) }

// statusOf is the status that says what err does.
func statusOf(err error) ntstatus.Status {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		switch {
		case err == nil:
			return ntstatus.Success
		case errors.Is(err, fs.ErrClosed):
			return ntstatus.FileClosed
		}
		return ntstatus.UnexpectedIoError
	}
	switch errno {
	case syscall.ENOENT:
		return ntstatus.ObjectNameNotFound
	case syscall.EEXIST:
		return ntstatus.ObjectNameCollision
	case syscall.ENOTDIR:
		return ntstatus.NotADirectory
	case syscall.EISDIR:
		return ntstatus.FileIsADirectory
	case syscall.ENOTEMPTY:
		return ntstatus.DirectoryNotEmpty
	case syscall.ENOSPC:
		return ntstatus.DiskFull
	case syscall.EDQUOT:
		return ntstatus.QuotaExceeded
	case syscall.EACCES, syscall.EPERM:
		return ntstatus.AccessDenied
	case syscall.EROFS:
		return ntstatus.MediaWriteProtected
	case syscall.ENAMETOOLONG:
		return ntstatus.ObjectNameInvalid
	case syscall.EINVAL, syscall.EFBIG:
		return ntstatus.InvalidParameter
	case syscall.EXDEV:
		return ntstatus.NotSameDevice
	case syscall.EMFILE, syscall.ENFILE:
		return ntstatus.TooManyOpenedFiles
	case syscall.EOPNOTSUPP:
		return ntstatus.NotSupported
	}
	return ntstatus.UnexpectedIoError
}

// describe is what a fault may be chosen by. i is the request's place.
func (r *request) describe(i int) Request {
	d := Request{
		Command: r.hdr.Command.String(), N: r.number, MessageID: r.hdr.MessageID,
		Conn: r.x.c.number, Compound: i, Last: i == len(r.x.reqs)-1,
	}
	var id smb2msg.FileID
	rd := r.body()
	switch r.hdr.Command {
	case smb2msg.CommandCreate:
		var m smb2msg.CreateRequest
		_ = m.Decode(&rd) // whoever serves the request complains
		d.Name = strings.ReplaceAll(m.Name, `\`, "/")
		return d
	case smb2msg.CommandRead:
		var m smb2msg.ReadRequest
		_ = m.Decode(&rd)
		id, d.Offset, d.Length = m.FileID, int64(m.Offset), int(m.Length)
	case smb2msg.CommandWrite:
		var m smb2msg.WriteRequest
		_ = m.Decode(&rd)
		id, d.Offset, d.Length = m.FileID, int64(m.Offset), int(m.Length)
	case smb2msg.CommandOplockBreak:
		var m smb2msg.LeaseBreak
		if t := r.x.c.terms.Load(); t != nil && m.Decode(&rd) == nil {
			d.Name = r.x.c.srv.leases.path(leaseKey{t.client.ClientGUID, m.LeaseKey})
			return d
		}
		id = r.fileID()
	default:
		id = r.fileID()
	}
	if session := r.x.c.session(r.hdr.SessionID); session != nil {
		if o := session.open(id); o != nil {
			d.Name = o.path()
		}
	}
	return d
}

// fileID is the file that commands other than READ and WRITE are about.
func (r *request) fileID() smb2msg.FileID {
	offset := int64(-1)
	switch r.hdr.Command {
	case smb2msg.CommandClose, smb2msg.CommandFlush, smb2msg.CommandLock, smb2msg.CommandIoctl,
		smb2msg.CommandQueryDirectory, smb2msg.CommandChangeNotify, smb2msg.CommandOplockBreak:
		offset = 8
	case smb2msg.CommandQueryInfo:
		offset = 24
	case smb2msg.CommandSetInfo:
		offset = 16
	}
	rd := r.body()
	rd.Skip(offset)
	return smb2msg.FileID{Persistent: rd.Uint64(), Volatile: rd.Uint64()}
}
