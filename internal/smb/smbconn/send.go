package smbconn

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

const (
	prefixSize   = 4         // the transport's length word; see [MS-SMB2] 2.1
	maxFrame     = 1<<24 - 1 // what it can say
	sealedAtOnce = 4         // sealed frames under construction at a time

	flagsAt, nextCommandAt = 16, 20 // in a header
)

// errLeft says that the caller left before his turn to send came.
var errLeft = errors.New("left before sending")

// transmit encodes, protects and sends calls in one frame. Their credits are
// taken: from here on only the connection's death keeps them from the wire.
// When ctx ends before others are done sending, they go out later.
func (c *Conn) transmit(ctx context.Context, calls []*Call, first uint64) error {
	sec := c.security.Load()
	seal := false
	mid := first
	for i, call := range calls {
		c.encode(call, sec, mid, i, i == len(calls)-1)
		seal = seal || call.sealed()
		mid += uint64(call.Charge)
	}
	if !seal {
		for _, call := range calls {
			if call.signed() {
				sign(sec.Signer, call)
				c.stats.signed.Add(1)
			}
		}
	}

	c.mu.Lock()
	if err := c.dead; err != nil {
		c.mu.Unlock()
		return err
	}
	now := time.Now()
	for _, call := range calls {
		call.Sent, call.First = now, time.Time{}
		c.calls[call.mid] = call
	}
	c.stats.sent(calls, len(c.calls))
	c.mu.Unlock()

	left := ctx.Done()
	for _, call := range calls {
		if len(call.Out) > 0 {
			left = nil // what is the caller's is sent before he has it back
		}
	}
	err := c.write(left, sec, calls, seal)
	if err == errLeft {
		c.sendLater(sec, calls, seal)
		return err
	}
	if err != nil {
		c.fail(err)
		for _, call := range calls {
			<-call.signal // fail has ended it; nobody else holds its buffers
		}
		return c.Err()
	}
	return nil
}

// sendLater sends calls whose caller has left, and cancels the first of them.
func (c *Conn) sendLater(sec *Security, calls []*Call, seal bool) {
	c.Go(func() {
		if err := c.write(nil, sec, calls, seal); err != nil {
			c.fail(err)
			return
		}
		c.cancel(calls[0])
	})
}

// write sends calls when it is their turn, unless left is closed before.
func (c *Conn) write(left <-chan struct{}, sec *Security, calls []*Call, seal bool) error {
	if seal {
		return c.writeSealed(left, sec, calls)
	}
	return c.writePlain(left, calls)
}

// encode builds the header and body of call in its frame, padded to 8 bytes if
// another follows. See [MS-SMB2] 2.2.1.2 and 3.2.4.1.4.
func (c *Conn) encode(call *Call, sec *Security, mid uint64, index int, last bool) {
	call.mid, call.charge, call.sec = mid, call.Charge, sec
	call.in, call.out = total(call.Into), total(call.Out)
	h := smb2msg.Header{
		Command:   call.Command,
		Credits:   c.credits.request(call.Charge),
		MessageID: mid,
		TreeID:    call.TreeID,
		SessionID: sec.SessionID,
	}
	if c.Capabilities&smb2msg.CapLargeMTU != 0 && c.Dialect != smb2msg.SMB202 {
		h.CreditCharge = uint16(call.Charge)
	}
	if index > 0 {
		h.Flags |= smb2msg.FlagRelated
	}
	b := h.Append(call.frame[:0])
	b = call.Body.Append(b)
	call.pad = nil
	if !last {
		n := len(b) + int(call.out)
		call.pad = zeros[:-n&7]
		binary.LittleEndian.PutUint32(b[nextCommandAt:], uint32(n+len(call.pad)))
	}
	call.frame = b
}

var zeros [8]byte // never written to

// sign puts the signature into call's header.
func sign(s *smbcrypt.Signer, call *Call) {
	flags := binary.LittleEndian.Uint32(call.frame[flagsAt:])
	binary.LittleEndian.PutUint32(call.frame[flagsAt:], flags|uint32(smb2msg.FlagSigned))
	var few [8][]byte
	s.Sign(call.segments(few[:0])...)
}

// writePlain sends calls by one writev from where their bytes are.
func (c *Conn) writePlain(left <-chan struct{}, calls []*Call) error {
	select {
	case c.send <- struct{}{}:
	case <-left:
		return errLeft
	}
	defer func() { <-c.send }()
	c.bufs = append(c.bufs[:0], c.prefix[:])
	for _, call := range calls {
		c.bufs = call.segments(c.bufs)
	}
	binary.BigEndian.PutUint32(c.prefix[:], uint32(total(c.bufs[1:])))
	c.consumed = c.bufs
	begin := time.Now()
	_, err := c.consumed.WriteTo(c.nc)
	c.wrote(begin)
	clear(c.bufs)
	return err
}

// writeSealed copies calls into one of the connection's buffers, seals them
// there and sends them. See [MS-SMB2] 3.1.4.3.
func (c *Conn) writeSealed(left <-chan struct{}, sec *Security, calls []*Call) error {
	size := prefixSize + smbcrypt.TransformSize
	for _, call := range calls {
		size += len(call.frame) + int(call.out) + len(call.pad)
	}
	var b []byte
	select {
	case b = <-c.sealBufs:
	case <-left:
		return errLeft
	}
	b = grow(b[:0], size+smbcrypt.TagSize)[:prefixSize+smbcrypt.TransformSize]
	for _, call := range calls {
		b = append(b, call.frame...)
		for _, p := range call.Out {
			b = append(b, p...)
		}
		b = append(b, call.pad...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-prefixSize))
	sec.Sealer.Seal(b[prefixSize:])

	defer func() { c.sealBufs <- b }()
	select {
	case c.send <- struct{}{}:
	case <-left:
		return errLeft
	}
	c.stats.sealed.Add(1)
	begin := time.Now()
	_, err := c.nc.Write(b)
	c.wrote(begin)
	<-c.send
	return err
}

// wrote notes a sign of life when a write, begun at a time, had to wait for
// room in the socket: the server has taken bytes meanwhile.
func (c *Conn) wrote(begin time.Time) {
	const instant = 10 * time.Millisecond
	if time.Since(begin) > instant {
		c.alive()
	}
}

// cancel asks the server to end call. It costs no credit, carries the
// MessageId or AsyncId of what it cancels, and is not answered. See [MS-SMB2]
// 3.2.4.24.
func (c *Conn) cancel(call *Call) {
	sec := call.sec
	h := smb2msg.Header{
		Command:   smb2msg.CommandCancel,
		MessageID: call.mid,
		SessionID: sec.SessionID,
	}
	if id := call.asyncID.Load(); id != 0 {
		h.Flags |= smb2msg.FlagAsync
		h.AsyncID = id
	}
	m := &Call{frame: (&smb2msg.CancelRequest{}).Append(h.Append(nil)), sec: sec, Seal: call.Seal}
	if !m.sealed() && m.signed() {
		sign(sec.Signer, m)
	}
	if err := c.write(nil, sec, []*Call{m}, m.sealed()); err != nil {
		c.fail(err)
	}
}

// segments appends the pieces of the request to segs, in order.
func (c *Call) segments(segs [][]byte) [][]byte {
	segs = append(append(segs, c.frame), c.Out...)
	if len(c.pad) > 0 {
		segs = append(segs, c.pad)
	}
	return segs
}
