package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// Protocol is what the first four bytes of a frame say that the rest is.
type Protocol uint32

const (
	ProtocolSMB1        Protocol = 0x424D53FF
	ProtocolSMB2        Protocol = 0x424D53FE
	ProtocolTransform   Protocol = 0x424D53FD // sealed: see TransformHeader
	ProtocolCompression Protocol = 0x424D53FC // never agreed to, so never legal
)

func (p Protocol) String() string {
	switch p {
	case ProtocolSMB1:
		return "SMB1"
	case ProtocolSMB2:
		return "SMB2"
	case ProtocolTransform:
		return "sealed SMB2"
	case ProtocolCompression:
		return "compressed SMB2"
	}
	return fmt.Sprintf("unknown protocol %#x", uint32(p))
}

// ProtocolOf looks at the start of a frame; 0 if it is shorter than four bytes.
func ProtocolOf(frame []byte) Protocol {
	r := byteio.NewReader(frame)
	return Protocol(r.Uint32())
}

// Next cuts the first message off a frame, which holds one message or a
// compound. The message keeps the padding before its follower, since its
// signature covers that; rest is empty behind the last one.
// See [MS-SMB2] 3.2.4.1.4.
func Next(frame []byte) (message, rest []byte, err error) {
	r := byteio.NewReader(frame)
	d := body{&r}
	d.Skip(nextCommandOffset)
	next := int64(d.Uint32())
	d.Skip(HeaderSize - nextCommandOffset - 4)
	if d.Err() != nil {
		return nil, nil, d.end("compound")
	}
	if next == 0 {
		return frame, nil, nil
	}
	if next < HeaderSize || next%8 != 0 {
		d.fail("NextCommand", errPlace)
		return nil, nil, d.end("compound")
	}
	if next >= int64(len(frame)) {
		d.fail("NextCommand", byteio.ErrShort)
		return nil, nil, d.end("compound")
	}
	return d.At(0, next), d.At(next, int64(len(frame))-next), nil
}

// PutNextCommand pads the message that starts at b[start:] to a multiple of
// eight bytes and points it to a follower, which is to be appended next.
func PutNextCommand(b []byte, start int) []byte {
	b = byteio.Pad(b, start, 8)
	byteio.Put32(b[start+nextCommandOffset:], uint32(len(b)-start))
	return b
}
