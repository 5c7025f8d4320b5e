package smbconn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// errSMB1 says that the server answered in the protocol before this one.
var errSMB1 = errors.New("the server answers in SMB1")

// disagrees says whether a negotiation failed since the server has none of the
// dialects: those that want none of it may just hang up.
func disagrees(err error) bool {
	return err == ntstatus.NotSupported || errors.Is(err, errSMB1) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// probePatience bounds the second connection, which only words an error.
const probePatience = 10 * time.Second

// disagreement words a failed negotiation: what was offered and, if a second
// connection can find out, what the server speaks.
func (c *Conn) disagreement(ctx context.Context, answer error) error {
	e := &NegotiateError{Err: answer}
	for _, d := range c.Offered.Dialects {
		e.Offered = append(e.Offered, d.String())
	}
	if c.cfg.Redial == nil {
		return e
	}
	ctx, stop := context.WithTimeout(ctx, probePatience)
	defer stop()
	nc, err := c.cfg.Redial(ctx)
	if err == nil {
		defer nc.Close()
		defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()
		e.Server, err = probe(nc)
	}
	if err == nil {
		return e
	}
	c.cfg.Logger.Debug("probe for dialects", "err", err)
	e.Server = nil
	if errors.Is(answer, ErrDisconnected) && !errors.Is(answer, errSMB1) {
		// It hung up on every word, so it need not be the dialects it dislikes.
		return fmt.Errorf("negotiate: %w", answer)
	}
	return e
}

// probe asks what a server speaks by the one message that every one of them
// understands: an SMB1 NEGOTIATE with SMB2's names among its dialects. See
// [MS-SMB2] 3.2.4.2.2.1. Nothing else of SMB1 is ever sent.
func probe(nc net.Conn) ([]string, error) {
	reply, err := ask(nc, multiProtocolNegotiate())
	if err != nil {
		return nil, err
	}
	if smb2msg.ProtocolOf(reply) == smb2msg.ProtocolSMB1 {
		const wordCountAt = 32
		r := byteio.NewReader(reply)
		r.Skip(wordCountAt)
		if words := r.Uint8(); words == 0 || r.Uint16() == 0xFFFF {
			return nil, r.Err()
		}
		return []string{"1.0 (NT LM 0.12)"}, r.Err()
	}
	dialect, err := chosen(reply)
	if err != nil || dialect != smb2msg.Wildcard {
		return []string{dialect.String()}, err
	}
	// "Some SMB2": the same connection goes on with an SMB2 NEGOTIATE, which
	// names the server's newest.
	all := Config{Dialects: append([]smb2msg.Dialect{smb2msg.SMB202}, DefaultDialects()...)}
	offer := all.offer()
	h := smb2msg.Header{Command: smb2msg.CommandNegotiate, Credits: 1, MessageID: 1}
	if reply, err = ask(nc, offer.Append(h.Append(nil))); err != nil {
		return nil, err
	}
	if dialect, err = chosen(reply); err != nil {
		return nil, err
	}
	return []string{dialect.String() + " at the newest"}, nil
}

// chosen is the dialect in a NEGOTIATE response.
func chosen(reply []byte) (smb2msg.Dialect, error) {
	r := byteio.NewReader(reply)
	var h smb2msg.Header
	if err := h.Decode(&r); err != nil {
		return 0, err
	}
	if h.Status.IsError() {
		return 0, h.Status
	}
	var m smb2msg.NegotiateResponse
	err := m.Decode(&r)
	return m.Dialect, err
}

// ask sends one frame and returns the next one, which is small.
func ask(nc net.Conn, message []byte) ([]byte, error) {
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	if _, err := nc.Write(frame); err != nil {
		return nil, err
	}
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(nc, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if n > 64<<10 {
		return nil, malformed("frame of %d bytes", n)
	}
	reply := make([]byte, n)
	_, err := io.ReadFull(nc, reply)
	return reply, err
}

// multiProtocolNegotiate is an SMB_COM_NEGOTIATE. See [MS-CIFS] 2.2.4.52.1.
func multiProtocolNegotiate() []byte {
	const (
		command = 0x72
		flags   = 0x18   // paths are canonical and caseless
		flags2  = 0xC853 // Unicode, NT status codes, extended security, long names
	)
	b := byteio.Append32(nil, uint32(smb2msg.ProtocolSMB1))
	b = append(b, command, 0, 0, 0, 0, flags)
	b = byteio.Append16(b, flags2)
	b = byteio.AppendZero(b, 12)   // PIDHigh, SecurityFeatures, Reserved
	b = byteio.Append16(b, 0xFFFF) // TID
	b = byteio.AppendZero(b, 7)    // PIDLow, UID, MID, WordCount
	count := len(b)
	b = byteio.Append16(b, 0)
	for _, name := range []string{"NT LM 0.12", "SMB 2.002", "SMB 2.???"} {
		b = append(append(append(b, 0x02), name...), 0)
	}
	byteio.Put16(b[count:], uint16(len(b)-count-2))
	return b
}
