package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// NegotiateContexts are what 3.1.1 negotiates beyond the fixed fields. A zero
// field is an absent context. Compression, RDMA and unknown contexts are
// skipped. See [MS-SMB2] 2.2.3.1 and 2.2.4.1.
type NegotiateContexts struct {
	HashAlgorithms    []uint16 // of the preauthentication integrity hash, preferred first
	Salt              []byte   // goes with HashAlgorithms
	Ciphers           []uint16 // preferred first; a server that shares none may answer with CipherNone
	SigningAlgorithms []uint16 // preferred first
	NetName           string
	TransportFlags    uint32
}

const (
	HashSHA512 uint16 = 1

	CipherNone      uint16 = 0
	CipherAES128CCM uint16 = 1
	CipherAES128GCM uint16 = 2
	CipherAES256CCM uint16 = 3
	CipherAES256GCM uint16 = 4

	SigningHMACSHA256 uint16 = 0
	SigningAESCMAC    uint16 = 1
	SigningAESGMAC    uint16 = 2

	AcceptTransportLevelSecurity uint32 = 1
)

const (
	contextPreauthIntegrity uint16 = 1
	contextEncryption       uint16 = 2
	contextNetName          uint16 = 5
	contextTransport        uint16 = 6
	contextSigning          uint16 = 8

	contextHeaderSize = 8
)

// append returns how many contexts it appended.
func (c *NegotiateContexts) append(b []byte, start int) (_ []byte, n int) {
	if len(c.HashAlgorithms) > 0 {
		b, n = appendContextHeader(b, start, contextPreauthIntegrity, 4+2*len(c.HashAlgorithms)+len(c.Salt)), n+1
		b = byteio.Append16(b, uint16(len(c.HashAlgorithms)))
		b = byteio.Append16(b, uint16(len(c.Salt)))
		b = appendAlgorithms(b, c.HashAlgorithms)
		b = append(b, c.Salt...)
	}
	if len(c.Ciphers) > 0 {
		b, n = appendContextHeader(b, start, contextEncryption, 2+2*len(c.Ciphers)), n+1
		b = byteio.Append16(b, uint16(len(c.Ciphers)))
		b = appendAlgorithms(b, c.Ciphers)
	}
	if len(c.SigningAlgorithms) > 0 {
		b, n = appendContextHeader(b, start, contextSigning, 2+2*len(c.SigningAlgorithms)), n+1
		b = byteio.Append16(b, uint16(len(c.SigningAlgorithms)))
		b = appendAlgorithms(b, c.SigningAlgorithms)
	}
	if c.NetName != "" {
		b, n = appendContextHeader(b, start, contextNetName, 2*byteio.UTF16Len(c.NetName)), n+1
		b = byteio.AppendUTF16(b, c.NetName)
	}
	if c.TransportFlags != 0 {
		b, n = appendContextHeader(b, start, contextTransport, 4), n+1
		b = byteio.Append32(b, c.TransportFlags)
	}
	return b, n
}

func appendContextHeader(b []byte, start int, kind uint16, n int) []byte {
	b = byteio.Pad(b, start, 8)
	b = byteio.Append16(b, kind)
	b = byteio.Append16(b, uint16(n))
	return byteio.Append32(b, 0)
}

func appendAlgorithms(b []byte, list []uint16) []byte {
	for _, v := range list {
		b = byteio.Append16(b, v)
	}
	return b
}

func (c *NegotiateContexts) decode(d body, off int64, count int) {
	seen := uint32(0)
	for ; count > 0 && d.Err() == nil; count-- {
		off = (off + 7) &^ 7
		h := byteio.NewReader(d.buffer("NegotiateContextList", off, contextHeaderSize))
		kind, n := h.Uint16(), int64(h.Uint16())
		data := byteio.NewReader(d.buffer("NegotiateContextList", off+contextHeaderSize, n))
		off += contextHeaderSize + n
		if kind < 32 {
			if seen&(1<<kind) != 0 {
				d.fail("NegotiateContextList", errTwice)
			}
			seen |= 1 << kind
		}
		c.decodeOne(kind, body{&data})
		if err := data.Err(); err != nil && d.Err() == nil {
			d.fail("NegotiateContextList", err)
		}
	}
}

func (c *NegotiateContexts) decodeOne(kind uint16, d body) {
	switch kind {
	case contextPreauthIntegrity:
		hashes, salt := d.Uint16(), d.Uint16()
		c.HashAlgorithms = d.algorithms(hashes)
		c.Salt = d.Bytes(int64(salt))
	case contextEncryption:
		c.Ciphers = d.algorithms(d.Uint16())
	case contextSigning:
		c.SigningAlgorithms = d.algorithms(d.Uint16())
	case contextNetName:
		c.NetName = byteio.UTF16(d.Rest())
	case contextTransport:
		c.TransportFlags = d.Uint32()
	}
}

func (d body) algorithms(n uint16) []uint16 {
	if n == 0 {
		d.Fail(errNone)
	}
	var list []uint16
	for ; n > 0 && d.Err() == nil; n-- {
		list = append(list, d.Uint16())
	}
	return list
}
