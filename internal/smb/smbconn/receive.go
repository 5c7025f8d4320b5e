package smbconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// readHead is how much of a READ reply comes before its payload.
const readHead = smb2msg.HeaderSize + 16

// heads is room for the headers and fixed parts of a frame's messages.
const heads = 64 << 10

// unsolicited is the MessageId of oplock and lease breaks.
const unsolicited = 1<<64 - 1

// read is the reader goroutine.
func (c *Conn) read() {
	for {
		if err := c.readFrame(); err != nil {
			c.unreadable(err)
			return
		}
	}
}

// unreadable ends the connection, from which nothing more can be read.
func (c *Conn) unreadable(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	c.fail(err)
}

// malformed words a reply that makes no sense.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// readFrame reads one frame and completes the calls it answers.
func (c *Conn) readFrame() error {
	prefix := c.head[:prefixSize]
	if err := c.src.full(prefix); err != nil {
		return err
	}
	c.inFrame.Store(true)
	defer c.inFrame.Store(false)
	size := int64(binary.BigEndian.Uint32(prefix))
	if size < smb2msg.HeaderSize || size > c.maxReply() {
		return malformed("frame of %d bytes", size)
	}
	if err := c.src.full(c.head[:4]); err != nil {
		return err
	}
	switch binary.LittleEndian.Uint32(c.head[:4]) {
	case uint32(smb2msg.ProtocolSMB2):
		return c.readPlain(size)
	case uint32(smb2msg.ProtocolTransform):
		return c.readSealed(size)
	case uint32(smb2msg.ProtocolSMB1):
		return malformed("%w", errSMB1)
	}
	return malformed("protocol %x", c.head[:4])
}

// maxReply bounds a frame: what the server may send, and room for headers of a
// compound. Before the negotiation nothing large comes.
func (c *Conn) maxReply() int64 {
	return min(maxFrame, c.largest.Load()+heads)
}

// readPlain reads the rest of a frame of size bytes, the first four of which
// are in head, message by message.
func (c *Conn) readPlain(size int64) error {
	have := int64(4)
	for {
		if size < smb2msg.HeaderSize {
			return malformed("message of %d bytes", size)
		}
		if err := c.src.full(c.head[have:smb2msg.HeaderSize]); err != nil {
			return err
		}
		have = 0
		h, err := decodeHeader(c.head[:smb2msg.HeaderSize])
		if err != nil {
			return err
		}
		n, err := messageSize(h, size)
		if err != nil {
			return err
		}
		if err := c.readMessage(h, n); err != nil {
			return err
		}
		if size -= n; size == 0 {
			return nil
		}
	}
}

func decodeHeader(b []byte) (h smb2msg.Header, err error) {
	r := byteio.NewReader(b)
	if err := h.Decode(&r); err != nil {
		return h, malformed("header: %w", err)
	}
	if h.Flags&smb2msg.FlagServerToRedir == 0 {
		return h, malformed("header: not a reply")
	}
	return h, nil
}

// messageSize is how many of the left bytes of a frame belong to h's message.
func messageSize(h smb2msg.Header, left int64) (int64, error) {
	n := int64(h.NextCommand)
	if n == 0 {
		return left, nil
	}
	if n%8 != 0 || n < smb2msg.HeaderSize || n+smb2msg.HeaderSize > left {
		return 0, malformed("next command at %d of %d bytes", n, left)
	}
	return n, nil
}

// readMessage reads the rest of an unsealed message of n bytes, whose header
// is in head, and completes its call.
func (c *Conn) readMessage(h smb2msg.Header, n int64) error {
	call, err := c.answered(h, n, false)
	if err != nil {
		return err
	}
	if call == nil { // a break, or an interim reply: never signed, and short
		b := append(make([]byte, 0, n), c.head[:smb2msg.HeaderSize]...)[:n]
		if err := c.src.full(b[smb2msg.HeaderSize:]); err != nil {
			return err
		}
		c.unasked(h, b)
		return nil
	}
	call.First = time.Now()
	call.Header = h
	if call.Into != nil && h.Command == smb2msg.CommandRead && carriesData(h.Status) && n >= readHead {
		err = c.readPayload(call, n)
	} else {
		call.reply = append(call.reply[:0], c.head[:smb2msg.HeaderSize]...)
		call.reply = grow(call.reply, int(n))
		if err := c.src.full(call.reply[smb2msg.HeaderSize:]); err != nil {
			return c.lose(call, err)
		}
		c.segs = append(c.segs[:0], call.reply)
		err = verify(call, c.segs)
	}
	if err != nil {
		return c.lose(call, err)
	}
	c.complete(call)
	return nil
}

// grow returns b with length n, its bytes kept.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		b = append(make([]byte, 0, n), b...)
	}
	return b[:n]
}

// carriesData says that a READ reply with this status has a payload.
func carriesData(s ntstatus.Status) bool {
	return s == ntstatus.Success || s == ntstatus.BufferOverflow
}

// readPayload reads a READ reply: its head, and its payload straight into the
// caller's buffers.
func (c *Conn) readPayload(call *Call, n int64) error {
	if err := c.src.full(c.head[smb2msg.HeaderSize:readHead]); err != nil {
		return err
	}
	call.reply = append(call.reply[:0], c.head[:readHead]...)
	var m smb2msg.ReadResponse
	r := byteio.NewReader(call.reply)
	r.Skip(smb2msg.HeaderSize)
	if err := m.DecodeHead(&r); err != nil {
		return malformed("READ: %w", err)
	}
	length := int64(m.DataLength)
	gap := int64(m.DataOffset) - readHead
	if length == 0 {
		gap = n - readHead
	}
	rest := n - readHead - gap - length
	switch {
	case gap < 0 || rest < 0:
		return malformed("READ: %d bytes at %d of %d", length, m.DataOffset, n)
	case length > call.in:
		return malformed("READ: %d bytes where %d were asked for", length, call.in)
	}
	c.tail = grow(c.tail[:0], int(gap+rest))
	if err := c.src.full(c.tail[:gap]); err != nil {
		return err
	}
	if err := c.src.payload(call, length); err != nil {
		return err
	}
	if err := c.src.full(c.tail[gap:]); err != nil {
		return err
	}

	call.mu.Lock() // the buffers stay ours while they are hashed
	defer call.mu.Unlock()
	if call.gone {
		return nil
	}
	c.segs = append(c.segs[:0], call.reply)
	if gap > 0 {
		c.segs = append(c.segs, c.tail[:gap])
	}
	for _, p := range call.Into {
		p = p[:min(int64(len(p)), length)]
		length -= int64(len(p))
		c.segs = append(c.segs, p)
	}
	if rest > 0 {
		c.segs = append(c.segs, c.tail[gap:])
	}
	err := verify(call, c.segs)
	clear(c.segs)
	return err
}

// readSealed reads the rest of a sealed frame and opens it.
func (c *Conn) readSealed(size int64) error {
	if size < smbcrypt.TransformSize+smb2msg.HeaderSize {
		return malformed("sealed frame of %d bytes", size)
	}
	c.opened = grow(c.opened[:0], int(size)+smbcrypt.TagSize)[:size] // opening needs the room behind
	copy(c.opened, c.head[:4])
	if err := c.src.full(c.opened[4:]); err != nil {
		return err
	}
	sec := c.security.Load()
	if sec.Sealer == nil {
		return malformed("sealed frame on a connection without keys")
	}
	if id := binary.LittleEndian.Uint64(c.opened[smbcrypt.TransformSize-8:]); id != sec.SessionID {
		return malformed("sealed frame of another session")
	}
	plain, err := sec.Sealer.Open(c.opened)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	for len(plain) > 0 {
		if len(plain) < smb2msg.HeaderSize {
			return malformed("sealed message of %d bytes", len(plain))
		}
		h, err := decodeHeader(plain[:smb2msg.HeaderSize])
		if err != nil {
			return err
		}
		n, err := messageSize(h, int64(len(plain)))
		if err != nil {
			return err
		}
		if err := c.openedMessage(h, plain[:n]); err != nil {
			return err
		}
		plain = plain[n:]
	}
	return nil
}

// openedMessage completes the call that an opened message answers.
func (c *Conn) openedMessage(h smb2msg.Header, b []byte) error {
	call, err := c.answered(h, int64(len(b)), true)
	if err != nil {
		return err
	}
	if call == nil {
		c.unasked(h, b)
		return nil
	}
	call.First, call.Header = time.Now(), h
	if call.Into != nil && h.Command == smb2msg.CommandRead && carriesData(h.Status) {
		var m smb2msg.ReadResponse
		r := byteio.NewReader(b)
		r.Skip(smb2msg.HeaderSize)
		if err := m.Decode(&r); err != nil {
			return c.lose(call, malformed("READ: %w", err))
		}
		if int64(len(m.Data)) > call.in {
			return c.lose(call, malformed("READ: %d bytes where %d were asked for", len(m.Data), call.in))
		}
		call.reply = append(call.reply[:0], b[:readHead]...)
		call.place(m.Data)
	} else {
		call.reply = append(call.reply[:0], b...)
	}
	c.complete(call)
	return nil
}

// answered finds the call that h, of a message of n bytes, answers and books its
// credits. It returns nil when h completes none: for a break, and for an interim
// reply, which only says that the final one may take long. See [MS-SMB2] 3.2.5.1.
func (c *Conn) answered(h smb2msg.Header, n int64, sealed bool) (*Call, error) {
	if h.MessageID == unsolicited {
		switch {
		case h.Command != smb2msg.CommandOplockBreak || n > heads:
			return nil, malformed("unasked-for %v reply of %d bytes", h.Command, n)
		case h.SessionID != 0 && c.security.Load().Seal && !sealed:
			// Leases are no session's, so that servers have no key to seal their
			// breaks with. All that these can do is take something away.
			return nil, fmt.Errorf("%w: %v not sealed", ErrSignature, h.Command)
		}
		return nil, nil
	}
	interim := h.Status == ntstatus.Pending && h.Flags&smb2msg.FlagAsync != 0
	c.mu.Lock()
	call := c.calls[h.MessageID]
	err := refuse(call, h, n, sealed, interim)
	if err == nil && !interim {
		delete(c.calls, h.MessageID)
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err // fail ends the call
	}
	charge := 0
	if !call.settled {
		call.settled, charge = true, call.charge
	}
	c.credits.answered(charge, int(h.Credits))
	if interim {
		call.asyncID.Store(h.AsyncID)
		return nil, nil
	}
	return call, nil
}

// refuse says what is wrong with a reply to call as far as its header tells.
// Whatever comes is no larger than what the request has paid for.
func refuse(call *Call, h smb2msg.Header, n int64, sealed, interim bool) error {
	switch {
	case call == nil:
		return malformed("reply to message %d, which nobody sent or which was answered already", h.MessageID)
	case h.Command != call.Command:
		return malformed("%v reply to a %v request", h.Command, call.Command)
	case call.sec.SessionID != 0 && h.SessionID != call.sec.SessionID:
		return malformed("%v reply (%v) of another session", h.Command, h.Status)
	case n > heads && (interim || n > int64(call.charge)*CreditUnit+heads):
		return malformed("%v reply (%v) of %d bytes", h.Command, h.Status, n)
	case sealed:
		return nil
	case call.sealed():
		return fmt.Errorf("%w: %v reply (%v) not sealed", ErrSignature, h.Command, h.Status)
	case call.signed() && h.Flags&smb2msg.FlagSigned == 0 && !interim:
		return fmt.Errorf("%w: %v reply (%v) not signed", ErrSignature, h.Command, h.Status)
	}
	return nil
}

// unasked takes a message that completes no call.
func (c *Conn) unasked(h smb2msg.Header, b []byte) {
	if h.MessageID == unsolicited && c.cfg.Break != nil { // else an interim reply
		c.cfg.Break(b)
	}
}

// lose ends a call that was taken off the map but can't be completed, and the
// connection before it: whose call is lost finds it dead.
func (c *Conn) lose(call *Call, err error) error {
	c.unreadable(err)
	call.finish(c.Err())
	return err
}

// verify checks the signature, if there is one, of a message that came unsealed.
// See [MS-SMB2] 3.2.5.1.3.
func verify(call *Call, segs [][]byte) error {
	s := call.sec.Signer
	if s == nil || call.Header.Flags&smb2msg.FlagSigned == 0 || s.Verify(segs...) {
		return nil
	}
	return fmt.Errorf("%w: %v reply (%v)", ErrSignature, call.Command, call.Header.Status)
}

// complete hands call its reply.
func (c *Conn) complete(call *Call) {
	call.Done = time.Now()
	c.stats.done(call)
	if call.finish(nil) && call.Late != nil {
		c.Go(func() { call.Late(call) })
	}
}
