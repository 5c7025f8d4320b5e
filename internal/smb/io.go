package smb

import (
	"context"
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/flow"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// ioCall is a READ or WRITE under way. They are pooled, so that the hot path
// allocates nothing.
type ioCall struct {
	v         *Volume
	call      smbconn.Call
	readMsg   smb2msg.ReadRequest
	writeMsg  smb2msg.WriteRequest
	fewerRead func(int) // bound once, since a method value allocates
	fewerData func(int)
}

func newIOCall(v *Volume) *ioCall {
	op := &ioCall{v: v}
	op.fewerRead = func(charge int) {
		op.readMsg.Length = min(op.readMsg.Length, uint32(charge*smbconn.CreditUnit))
	}
	op.fewerData = func(charge int) {
		op.writeMsg.Length = min(op.writeMsg.Length, uint32(charge*smbconn.CreditUnit))
		op.call.Out = clip(op.call.Out, int(op.writeMsg.Length))
	}
	return op
}

// start prepares the call for n bytes of payload.
func (op *ioCall) start(cmd smb2msg.Command, body smbconn.Body, n int) {
	c := &op.call
	c.Command, c.Body, c.TreeID, c.Seal = cmd, body, op.v.tree, op.v.seal
	c.Into, c.Out = nil, nil
	c.Charge = smbconn.Charge(n)
}

// read reads n bytes at off. See [MS-SMB2] 3.2.4.6.
func (op *ioCall) read(ctx context.Context, id smb2msg.FileID, off int64, n int, into [][]byte) (int, ntstatus.Status, error) {
	op.readMsg = smb2msg.ReadRequest{Length: uint32(n), Offset: uint64(off), FileID: id}
	op.start(smb2msg.CommandRead, &op.readMsg, n)
	op.call.Into = into
	s := op.v.s
	if err := s.conn.DoUpTo(ctx, &op.call, op.fewerRead); err != nil {
		return 0, 0, err
	}
	op.call.Into = nil
	status := op.call.Header.Status
	if status == ntstatus.BufferOverflow { // of a pipe: more is there
		status = ntstatus.Success
	}
	if status == ntstatus.Success {
		s.sample(s.read, op.call.N, &op.call)
	}
	return op.call.N, status, nil
}

// write writes as much of w as one request carries. See [MS-SMB2] 3.2.4.7.
func (op *ioCall) write(ctx context.Context, id smb2msg.FileID, off int64, w remote.Write) (int, ntstatus.Status, error) {
	s, n, data := op.v.s, length(w.Data), w.Data
	if limit := s.limits().Write; n > limit {
		n, data = limit, clip(data, limit)
	}
	if n == 0 {
		return 0, ntstatus.Success, nil
	}
	op.writeMsg = smb2msg.WriteRequest{Length: uint32(n), Offset: uint64(off), FileID: id}
	if w.Stable && s.writesThrough() {
		op.writeMsg.Flags = smb2msg.WriteThrough
	}
	op.start(smb2msg.CommandWrite, &op.writeMsg, n)
	op.call.Out = data
	if err := s.conn.DoUpTo(ctx, &op.call, op.fewerData); err != nil {
		return 0, 0, err
	}
	op.call.Out = nil
	if status := op.call.Header.Status; status != ntstatus.Success {
		return 0, status, nil
	}
	var m smb2msg.WriteResponse
	r := byteio.NewReader(op.call.Reply()) // not decode, whose Reader allocates
	r.Skip(smb2msg.HeaderSize)
	if err := m.Decode(&r); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", smbconn.ErrProtocol, err)
	}
	if m.Count == 0 || m.Count > op.writeMsg.Length {
		return 0, 0, fmt.Errorf("%w: %d bytes written of %d", smbconn.ErrProtocol, m.Count, op.writeMsg.Length)
	}
	s.sample(s.write, int(m.Count), &op.call)
	return int(m.Count), ntstatus.Success, nil
}

// writesThrough says that a WRITE can ask to be stable.
func (s *Session) writesThrough() bool { return s.conn.Dialect != smb2msg.SMB202 }

// sample tells an estimator of a finished request.
func (s *Session) sample(e *flow.Estimator, n int, call *smbconn.Call) {
	e.Sample(flow.Sample{
		Bytes:     n,
		Sent:      call.Sent,
		FirstByte: call.First,
		Done:      call.Done,
	})
}

// pipeline is how many requests should find credits at a time, so that few
// credits make small requests and not a silent wire.
const pipeline = 4

// affordable is how many payload bytes one request should carry, given the
// credits there are.
func (s *Session) affordable() int {
	return max(1, s.conn.Credits()/pipeline) * smbconn.CreditUnit
}

func (s *Session) readLimit() int  { return bound(s.conn.MaxRead, s.cfg.ReadSize) }
func (s *Session) writeLimit() int { return bound(s.conn.MaxWrite, s.cfg.WriteSize) }

// bound applies a limit, if there is one.
func bound(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// Limits is what one request may carry now.
func (s *Session) limits() remote.Limits {
	afford := s.affordable()
	return remote.Limits{Read: min(s.readLimit(), afford), Write: min(s.writeLimit(), afford)}
}

func (v *Volume) Limits() remote.Limits { return v.s.limits() }
func (f *File) Limits() remote.Limits   { return f.v.s.limits() }

func (v *Volume) Flow() remote.Flow { return volumeFlow{v} }
func (f *File) Flow() remote.Flow   { return volumeFlow{f.v} }

// volumeFlow is a volume's path to its server, which all of a session share.
type volumeFlow struct{ v *Volume }

func (f volumeFlow) Window(d remote.Direction) remote.Window {
	s := f.v.s
	limits, e := s.limits(), s.read
	l := flow.Limits{MaxSize: limits.Read, MaxInFlight: s.conn.Credits() * smbconn.CreditUnit}
	if d == remote.Writing {
		l.MaxSize, e = limits.Write, s.write
		l.FastSize = 4 << 20 // servers take few large writes with less ado
	}
	if f.v.Sealed() {
		l.FastSize = 1 << 20 // what goes through a buffer in between should stay in a cache
	}
	w := e.Window(l)
	if size := s.cfg.requestSize(d); size > 0 { // who names a size wants that
		size = min(size, l.MaxSize)
		w.Requests, w.Size = max((w.Requests*w.Size+size-1)/size, 1), size
	}
	return remote.Window{Requests: w.Requests, Size: w.Size}
}

// requestSize is the size of requests that was asked for; 0: none was.
func (c *Config) requestSize(d remote.Direction) int {
	if d == remote.Writing {
		return c.WriteSize
	}
	return c.ReadSize
}
