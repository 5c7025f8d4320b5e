package srvsvc

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// A syntax is an interface or an encoding, with its version. See C706 12.6.3.1.
type syntax struct {
	uuid    [16]byte
	version uint32
}

var (
	// 4b324fc8-1670-01d3-1278-5a47bf6ee188 v3.0. See [MS-SRVS] 2.1.
	interfaceSRVS = syntax{[16]byte{0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01,
		0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88}, 3}
	// 8a885d04-1ceb-11c9-9fe8-08002b104860 v2.0. See C706 14.
	encodingNDR = syntax{[16]byte{0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11,
		0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60}, 2}
)

func (s *syntax) Append(b []byte) []byte {
	return byteio.Append32(append(b, s.uuid[:]...), s.version)
}

func (s *syntax) Decode(r *byteio.Reader) error {
	r.Copy(s.uuid[:])
	s.version = r.Uint32()
	return r.Err()
}

// Outcomes of a context in a bind. See C706 12.6.3.1.
const (
	resultAccepted = 0
	resultRejected = 2 // by the provider

	reasonInterface = 1
	reasonEncoding  = 2
)

// AppendBind asks for the Server Service. See C706 12.6.4.3.
func AppendBind(b []byte, call uint32) []byte {
	body := byteio.Append16(nil, MaxFragment)
	body = byteio.Append16(body, MaxFragment)
	body = byteio.Append32(body, 0) // a new association group
	body = append(body, 1, 0, 0, 0) // one context
	body = byteio.Append16(body, 0) // whose number is 0
	body = append(body, 1, 0)       // with one encoding
	body = interfaceSRVS.Append(body)
	body = encodingNDR.Append(body)
	return (&Message{Type: TypeBind, Call: call, Body: body}).Append(b, MaxFragment)
}

// DecodeBindAck returns how long fragments to the server may be. See C706
// 12.6.4.4.
func DecodeBindAck(m *Message, call uint32) (maxFragment int, err error) {
	if err := m.check(TypeBindAck, call); err != nil {
		return 0, err
	}
	r := byteio.NewReader(m.Body)
	r.Skip(2)
	maxFragment = int(r.Uint16())
	r.Skip(4)
	r.Skip(int64(r.Uint16())) // secondary address
	r.Skip(int64(-r.Offset() & 3))
	results := r.Uint8()
	r.Skip(3)
	result, reason := r.Uint16(), r.Uint16()
	if r.Err() != nil {
		return 0, r.Err()
	}
	if results != 1 || result != resultAccepted {
		return 0, fmt.Errorf("RPC bind refused: result %d, reason %d", result, reason)
	}
	return maxFragment, nil
}

// Bind is what a server makes of a client's wish.
type Bind struct {
	MaxFragment int // that the client takes
	contexts    []outcome
}

type outcome struct{ result, reason uint16 }

// DecodeBind reads a bind. The context with the number 0 stands if it has our
// interface and encoding. Clients that offer others, such as Windows with its
// 64-bit encoding, number those from 1 on. See C706 12.6.4.3.
func DecodeBind(m *Message) (*Bind, error) {
	if m.Type != TypeBind {
		return nil, errPDU
	}
	r := byteio.NewReader(m.Body)
	r.Skip(2)
	b := &Bind{MaxFragment: int(r.Uint16())}
	r.Skip(4)
	n := r.Uint8()
	r.Skip(3)
	for range n {
		number := r.Uint16()
		encodings := r.Uint8()
		r.Skip(1)
		var want syntax
		want.Decode(&r)
		o := outcome{resultRejected, reasonEncoding}
		for range encodings {
			var s syntax
			if s.Decode(&r); s == encodingNDR && number == 0 {
				o = outcome{resultAccepted, 0}
			}
		}
		if want != interfaceSRVS {
			o = outcome{resultRejected, reasonInterface}
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
		b.contexts = append(b.contexts, o)
	}
	return b, r.Err()
}

// AppendBindAck answers a bind. See C706 12.6.4.4.
func (bind *Bind) AppendBindAck(b []byte, call uint32) []byte {
	const address = `\pipe\` + Pipe + "\x00"
	body := byteio.Append16(nil, MaxFragment)
	body = byteio.Append16(body, MaxFragment)
	body = byteio.Append32(body, 1) // association group
	body = byteio.Append16(body, uint16(len(address)))
	body = append(body, address...)
	body = byteio.Pad(body, 0, 4)
	body = append(body, byte(len(bind.contexts)), 0, 0, 0)
	for _, c := range bind.contexts {
		body = byteio.Append16(body, c.result)
		body = byteio.Append16(body, c.reason)
		accepted := syntax{}
		if c.result == resultAccepted {
			accepted = encodingNDR
		}
		body = accepted.Append(body)
	}
	return (&Message{Type: TypeBindAck, Call: call, Body: body}).Append(b, MaxFragment)
}
