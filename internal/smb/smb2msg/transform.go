package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

const (
	// TransformHeaderSize is the length of a TransformHeader.
	TransformHeaderSize = 52

	// TransformAADOffset is where the bytes start that are authenticated though
	// not encrypted: all of the header behind the signature.
	TransformAADOffset = 20

	// TransformEncrypted is the only flag there is. In 3.0 and 3.0.2 the field
	// is EncryptionAlgorithm and the same number means AES-128-CCM.
	TransformEncrypted uint16 = 1
)

// TransformHeader comes before sealed messages. See [MS-SMB2] 2.2.41.
type TransformHeader struct {
	Signature           [16]byte
	Nonce               [16]byte
	OriginalMessageSize uint32
	Flags               uint16
	SessionID           uint64
}

func (h *TransformHeader) Append(b []byte) []byte {
	b = byteio.Append32(b, uint32(ProtocolTransform))
	b = append(b, h.Signature[:]...)
	b = append(b, h.Nonce[:]...)
	b = byteio.Append32(b, h.OriginalMessageSize)
	b = byteio.Append16(b, 0)
	b = byteio.Append16(b, h.Flags)
	return byteio.Append64(b, h.SessionID)
}

// Decode reads the header that r stands at. Whether OriginalMessageSize is
// true is for the one to say who has the frame.
func (h *TransformHeader) Decode(r *byteio.Reader) error {
	d := body{r}
	if p := Protocol(d.Uint32()); p != ProtocolTransform && d.Err() == nil {
		d.fail("ProtocolId", fmt.Errorf("is %v", p))
	}
	d.Copy(h.Signature[:])
	d.Copy(h.Nonce[:])
	h.OriginalMessageSize = d.Uint32()
	d.Skip(2)
	if h.Flags = d.Uint16(); h.Flags != TransformEncrypted && d.Err() == nil {
		d.fail("Flags", fmt.Errorf("is %#x, want %#x", h.Flags, TransformEncrypted))
	}
	h.SessionID = d.Uint64()
	return d.end("TRANSFORM_HEADER")
}
