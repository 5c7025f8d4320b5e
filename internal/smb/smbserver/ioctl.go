package smbserver

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

var errNegotiation = errors.New("somebody has changed the negotiation on its way")

// ioctl does what a CtlCode says. See [MS-SMB2] 3.3.5.15.
func (r *request) ioctl() ntstatus.Status {
	var m smb2msg.IoctlRequest
	switch {
	case !r.decode(&m), !r.fitsTransact(m.MaxOutputResponse, max(len(m.Input), int(m.MaxInputResponse))):
		return ntstatus.InvalidParameter
	case m.Flags != smb2msg.IoctlIsFsctl:
		return ntstatus.NotSupported
	}
	var output []byte
	var status ntstatus.Status
	switch m.CtlCode {
	case smb2msg.FsctlValidateNegotiateInfo:
		output, status = r.validateNegotiate(m.Input)
	case smb2msg.FsctlQueryNetworkInterfaceInfo:
		output, status = r.interfaces()
	case smb2msg.FsctlDFSGetReferrals, smb2msg.FsctlDFSGetReferralsEx:
		return ntstatus.FsDriverRequired
	default:
		var o *open
		if o, status = r.lookup(m.FileID); status == ntstatus.Success {
			output, status = r.control(o, &m)
		}
	}
	if status.IsError() || r.x.fatal != nil {
		return status
	}
	if len(output) > int(m.MaxOutputResponse) {
		return ntstatus.BufferTooSmall
	}
	r.reply(&smb2msg.IoctlResponse{CtlCode: m.CtlCode, FileID: m.FileID, Output: output})
	return status
}

// control is an ioctl of an open file or pipe.
func (r *request) control(o *open, m *smb2msg.IoctlRequest) ([]byte, ntstatus.Status) {
	if o.pipe != nil {
		if m.CtlCode != smb2msg.FsctlPipeTransceive {
			return nil, ntstatus.NotSupported
		}
		if status := o.pipe.write(m.Input); status != ntstatus.Success {
			return nil, status
		}
		out, whole := o.pipe.read(int(m.MaxOutputResponse))
		if !whole {
			return out, ntstatus.BufferOverflow
		}
		return out, ntstatus.Success
	}
	switch m.CtlCode {
	case smb2msg.FsctlGetReparsePoint:
		target, err := o.object().Target()
		if err != nil {
			return nil, ntstatus.NotAReparsePoint
		}
		link := reparseOf(target)
		point := fscc.NewReparsePoint(fscc.ReparseTagSymlink, &link)
		return point.Append(nil), ntstatus.Success
	case smb2msg.FsctlSetReparsePoint, smb2msg.FsctlDeleteReparsePoint:
		return nil, o.setReparse(m.CtlCode, m.Input)
	case smb2msg.FsctlSetSparse:
		return nil, ntstatus.Success // every file is
	case smb2msg.FsctlSetZeroData:
		return nil, o.zero(m.Input)
	case smb2msg.FsctlSrvRequestResumeKey:
		return o.resumeKey().Append(nil), ntstatus.Success
	case smb2msg.FsctlSrvCopychunk, smb2msg.FsctlSrvCopychunkWrite:
		return r.copyChunks(o, m.Input)
	}
	return nil, ntstatus.InvalidDeviceRequest
}

// validateNegotiate ends the connection unless the client says under its
// signature what it said before. See [MS-SMB2] 3.3.5.15.12.
func (r *request) validateNegotiate(input []byte) ([]byte, ntstatus.Status) {
	t := r.x.c.terms.Load()
	var m smb2msg.ValidateNegotiateInfoRequest
	rd := byteio.NewReader(input)
	c := &t.client
	if m.Decode(&rd) != nil || t.dialect == smb2msg.SMB311 || m.Capabilities != c.Capabilities ||
		m.GUID != c.ClientGUID || m.SecurityMode != c.SecurityMode || !slices.Equal(m.Dialects, c.Dialects) {
		r.x.fatal = errNegotiation
		return nil, ntstatus.Success
	}
	reply := smb2msg.ValidateNegotiateInfoResponse{
		Capabilities: t.capabilities, GUID: r.x.c.srv.guid, SecurityMode: t.security, Dialect: t.dialect,
	}
	return reply.Append(nil), ntstatus.Success
}

// interfaces tells the one address that the client knows already.
func (r *request) interfaces() ([]byte, ntstatus.Status) {
	const speed = 1e9 // nobody measures it
	addr, err := netip.ParseAddrPort(r.x.c.nc.LocalAddr().String())
	if err != nil || r.x.c.terms.Load().dialect < smb2msg.SMB300 {
		return nil, ntstatus.NotSupported
	}
	reply := smb2msg.NetworkInterfaceInfo{Interfaces: []smb2msg.NetworkInterface{{IfIndex: 1, LinkSpeed: speed, Address: addr}}}
	return reply.Append(nil), ntstatus.Success
}

// devices begins the paths of Windows that are absolute.
const devices = `\??\`

// reparseOf is a link with slashes as one with backslashes.
func reparseOf(target string) fscc.SymbolicLinkReparseData {
	name := strings.ReplaceAll(target, "/", `\`)
	return fscc.SymbolicLinkReparseData{
		SubstituteName: name,
		PrintName:      strings.TrimPrefix(name, devices),
		Relative:       !strings.HasPrefix(name, `\`),
	}
}

// setReparse makes a file a symbolic link or ends its being one. Other reparse
// points are not kept. See [MS-FSA] 2.1.5.10.37.
func (o *open) setReparse(code smb2msg.CtlCode, input []byte) ntstatus.Status {
	var point fscc.ReparsePoint
	rd := byteio.NewReader(input)
	switch {
	case o.tree.share.ReadOnly, o.access&(smb2msg.AccessWriteData|smb2msg.AccessWriteAttributes) == 0:
		return ntstatus.AccessDenied
	case point.Decode(&rd) != nil:
		return ntstatus.IoReparseDataInvalid
	case point.Tag != fscc.ReparseTagSymlink:
		return ntstatus.IoReparseTagInvalid
	}
	s := o.tree.share
	s.mu.Lock()
	defer s.mu.Unlock()
	defer o.spoil()
	if code == smb2msg.FsctlDeleteReparsePoint {
		if a, err := o.node.Attr(); err != nil || a.Mode.Type() != fs.ModeSymlink {
			return ntstatus.NotAReparsePoint
		}
		return statusOf(o.node.SetTarget(""))
	}
	var link fscc.SymbolicLinkReparseData
	rd = byteio.NewReader(point.Data)
	if link.Decode(&rd) != nil || link.SubstituteName == "" {
		return ntstatus.IoReparseDataInvalid
	}
	return statusOf(o.node.SetTarget(strings.ReplaceAll(link.SubstituteName, `\`, "/")))
}

// zero makes a range read as zeros. See [MS-FSCC] 2.3.71.
func (o *open) zero(input []byte) ntstatus.Status {
	rd := byteio.NewReader(input)
	from, to := rd.Uint64(), rd.Uint64()
	switch {
	case rd.Err() != nil, from > to, to > math.MaxInt64:
		return ntstatus.InvalidParameter
	case o.access&smb2msg.AccessWriteData == 0:
		return ntstatus.AccessDenied
	case o.file == nil:
		return ntstatus.InvalidParameter
	}
	err := o.file.Punch(int64(from), int64(to-from))
	o.spoil()
	return statusOf(err)
}

func (o *open) resumeKey() *smb2msg.ResumeKey {
	var key smb2msg.ResumeKey
	byteio.Append64(key[:0], o.id)
	return &key
}

// What one server-side copy may take. See [MS-SMB2] 3.3.3.
const (
	maxChunks     = 256
	maxChunk      = 1 << 20
	maxChunkBytes = 16 << 20
)

// copyChunks copies between two files of a session. See [MS-SMB2] 3.3.5.15.6.
func (r *request) copyChunks(o *open, input []byte) ([]byte, ntstatus.Status) {
	var m smb2msg.CopychunkRequest
	rd := byteio.NewReader(input)
	if m.Decode(&rd) != nil {
		return nil, ntstatus.InvalidParameter
	}
	rd = byteio.NewReader(m.SourceKey[:])
	id := rd.Uint64()
	source := r.session.open(smb2msg.FileID{Persistent: id, Volatile: id})
	switch {
	case source == nil:
		return nil, ntstatus.ObjectNameNotFound
	case source.file == nil, o.file == nil, source.access&smb2msg.AccessReadData == 0,
		o.access&(smb2msg.AccessWriteData|smb2msg.AccessAppendData) == 0:
		return nil, ntstatus.AccessDenied
	}
	var total int64
	for _, c := range m.Chunks {
		total += int64(c.Length)
		if c.Length == 0 || c.Length > maxChunk || c.SourceOffset > math.MaxInt64-maxChunk || c.TargetOffset > math.MaxInt64-maxChunk {
			total = maxChunkBytes + 1
			break
		}
	}
	if len(m.Chunks) > maxChunks || total > maxChunkBytes {
		limits := smb2msg.CopychunkResponse{ChunksWritten: maxChunks, ChunkBytesWritten: maxChunk, TotalBytesWritten: maxChunkBytes}
		r.reply(&smb2msg.IoctlResponse{CtlCode: smb2msg.FsctlSrvCopychunk, FileID: smb2msg.FileID{Persistent: o.id, Volatile: o.id}, Output: limits.Append(nil)})
		return nil, ntstatus.InvalidParameter
	}
	defer o.spoil()
	buf := r.x.c.srv.pool.get(maxChunk)
	defer buf.free()
	var reply smb2msg.CopychunkResponse
	for _, c := range m.Chunks {
		p := buf.b[:c.Length]
		n, err := source.file.ReadAt(p, int64(c.SourceOffset))
		if n < len(p) && (err == nil || err == io.EOF) {
			return nil, ntstatus.EndOfFile
		}
		if err == nil || err == io.EOF {
			_, err = o.file.WriteAt(p, int64(c.TargetOffset))
		}
		if err != nil {
			return nil, statusOf(err)
		}
		reply.ChunksWritten++
		reply.TotalBytesWritten += c.Length
	}
	return reply.Append(nil), ntstatus.Success
}
