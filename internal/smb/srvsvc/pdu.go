// Package srvsvc asks a server for its shares, and answers: the messages of the
// Server Service that do so, in connection-oriented DCE/RPC, without
// authentication of its own.
//
// It owns the bytes that go through the named pipe of that name. It refuses to
// know pipes: the caller writes and reads them. An Assembler belongs to one
// goroutine; nothing else has a state.
package srvsvc

import (
	"errors"
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// Pipe is the name to open on IPC$.
const Pipe = "srvsvc"

// MaxFragment is the longest fragment that either side of ours takes, Samba's and
// Windows' own choice.
const MaxFragment = 4280

// Type is a PDU type. See C706 12.6.3.
type Type uint8

const (
	TypeRequest  Type = 0
	TypeResponse Type = 2
	TypeFault    Type = 3
	TypeBind     Type = 11
	TypeBindAck  Type = 12
	TypeBindNak  Type = 13
)

const (
	headerSize = 16 // of every PDU
	callSize   = 24 // of a request, response or fault, up to its stub

	flagFirst = 0x01
	flagLast  = 0x02

	// drepLittle is the data representation of nearly everybody: little-endian,
	// ASCII, IEEE floating point. See C706 14.1.
	drepLittle = 0x00000010

	// maxMessage bounds what fragments add up to: 50,000 shares or so.
	maxMessage = 16 << 20
)

var (
	errPDU     = errors.New("malformed RPC message")
	errTooLong = errors.New("RPC message too long")
)

// A Message is a bind or call, or the answer, put together from its fragments.
type Message struct {
	Type   Type
	Call   uint32 // tells which call is answered
	Opnum  uint16 // of a request
	Status uint32 // of a fault
	Body   []byte
}

// appendHeader appends what every PDU begins with; its length is filled in by
// finish. See C706 12.6.3.1.
func appendHeader(b []byte, typ Type, flags byte, call uint32) []byte {
	b = append(b, 5, 0, byte(typ), flags)
	b = byteio.Append32(b, drepLittle)
	b = byteio.Append32(b, 0) // lengths of the fragment and of the authentication
	return byteio.Append32(b, call)
}

func finish(b []byte, start int) []byte {
	byteio.Put16(b[start+8:], uint16(len(b)-start))
	return b
}

// Append appends m in fragments of up to maxFragment bytes, if m is of a type
// that may come in several. See C706 12.6.4.9 and 12.6.4.10.
func (m *Message) Append(b []byte, maxFragment int) []byte {
	start := len(b)
	switch m.Type {
	case TypeRequest, TypeResponse:
	case TypeFault:
		b = appendHeader(b, m.Type, flagFirst|flagLast, m.Call)
		b = byteio.AppendZero(b, callSize-headerSize)
		b = byteio.Append32(b, m.Status)
		return finish(byteio.Append32(b, 0), start)
	default:
		b = appendHeader(b, m.Type, flagFirst|flagLast, m.Call)
		return finish(append(b, m.Body...), start)
	}
	size := (max(maxFragment, 2*callSize) - callSize) &^ 7
	flags := byte(flagFirst)
	for body := m.Body; ; flags = 0 {
		n := min(size, len(body))
		if n == len(body) {
			flags |= flagLast
		}
		start = len(b)
		b = appendHeader(b, m.Type, flags, m.Call)
		b = byteio.Append32(b, uint32(len(body))) // alloc_hint
		b = byteio.Append16(b, 0)                 // the context that AppendBind made
		b = byteio.Append16(b, m.Opnum)
		b = finish(append(b, body[:n]...), start)
		if body = body[n:]; len(body) == 0 {
			return b
		}
	}
}

// An Assembler makes messages from what a pipe yields, wherever that is cut.
type Assembler struct {
	raw []byte // of the fragment under way
	msg Message
	mid bool // fragments of msg have come
}

// Add takes bytes in. It returns a message, to be had until the next Add, when
// its last fragment is whole; bytes behind it are an error, since neither side
// sends before it has an answer. After an error the pipe is worth nothing.
func (a *Assembler) Add(p []byte) (*Message, error) {
	a.raw = append(a.raw, p...)
	for len(a.raw) >= headerSize {
		r := byteio.NewReader(a.raw)
		version := r.Uint16() & 0xFF // the minor one is 0 or 1
		r.Skip(2)
		drep, size := r.Uint32(), int(r.Uint16())
		if version != 5 || drep != drepLittle || size < headerSize {
			return nil, errPDU
		}
		if len(a.raw) < size {
			break
		}
		last, err := a.fragment(a.raw[:size])
		if err != nil {
			return nil, err
		}
		rest := len(a.raw) - size
		if last && rest > 0 {
			return nil, errPDU
		}
		a.raw = a.raw[:copy(a.raw, a.raw[size:])]
		if last {
			a.mid = false
			return &a.msg, nil
		}
	}
	return nil, nil
}

// fragment takes in one PDU.
func (a *Assembler) fragment(pdu []byte) (last bool, err error) {
	r := byteio.NewReader(pdu)
	var m Message
	r.Skip(2)
	m.Type = Type(r.Uint8())
	flags := r.Uint8()
	r.Skip(6)
	if r.Uint16() != 0 { // authentication
		return false, errPDU
	}
	m.Call = r.Uint32()
	switch m.Type {
	case TypeRequest, TypeResponse, TypeFault:
		r.Skip(6)
		m.Opnum = r.Uint16()
		if m.Type == TypeFault {
			m.Opnum, m.Status = 0, r.Uint32()
		} else if m.Type == TypeResponse {
			m.Opnum = 0 // cancel_count
		}
	}
	body := r.Rest()
	switch first := flags&flagFirst != 0; {
	case r.Err() != nil:
		return false, r.Err()
	case first == a.mid:
		return false, errPDU
	case first:
		m.Body = a.msg.Body[:0]
		a.msg = m
	case m.Type != a.msg.Type || m.Call != a.msg.Call:
		return false, errPDU
	}
	if len(a.msg.Body)+len(body) > maxMessage {
		return false, errTooLong
	}
	a.mid = true
	a.msg.Body = append(a.msg.Body, body...)
	return flags&flagLast != 0, nil
}

// check says whether m answers a call in the way it should.
func (m *Message) check(want Type, call uint32) error {
	switch {
	case m.Call != call:
		return errPDU
	case m.Type == want:
		return nil
	case m.Type == TypeFault:
		return fmt.Errorf("RPC fault %#08x", m.Status)
	case m.Type == TypeBindNak:
		return errors.New("RPC bind refused")
	default:
		return errPDU
	}
}
