package smb2msg

import (
	"fmt"
	"slices"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// Dialect is a version of the protocol.
type Dialect uint16

const (
	SMB202   Dialect = 0x0202
	SMB210   Dialect = 0x0210
	SMB300   Dialect = 0x0300
	SMB302   Dialect = 0x0302
	SMB311   Dialect = 0x0311
	Wildcard Dialect = 0x02FF // answers an SMB1 NEGOTIATE: some SMB2, ask again
)

func (d Dialect) String() string {
	switch d {
	case SMB202:
		return "2.0.2"
	case SMB210:
		return "2.1"
	case SMB300:
		return "3.0"
	case SMB302:
		return "3.0.2"
	case SMB311:
		return "3.1.1"
	case Wildcard:
		return "2.???"
	}
	return fmt.Sprintf("%#x", uint16(d))
}

// SecurityMode says what its sender thinks of signing. It has two bytes here
// and one in SESSION_SETUP.
type SecurityMode uint16

const (
	SigningEnabled  SecurityMode = 1
	SigningRequired SecurityMode = 2
)

// Capabilities of a client or a server. See [MS-SMB2] 2.2.3.
type Capabilities uint32

const (
	CapDFS               Capabilities = 0x01
	CapLeasing           Capabilities = 0x02
	CapLargeMTU          Capabilities = 0x04
	CapMultiChannel      Capabilities = 0x08
	CapPersistentHandles Capabilities = 0x10
	CapDirectoryLeasing  Capabilities = 0x20
	CapEncryption        Capabilities = 0x40
	CapNotifications     Capabilities = 0x80
)

// NegotiateRequest opens a connection. Contexts travel only if Dialects holds
// SMB311. See [MS-SMB2] 2.2.3.
type NegotiateRequest struct {
	SecurityMode SecurityMode
	Capabilities Capabilities
	ClientGUID   [16]byte
	Dialects     []Dialect
	Contexts     NegotiateContexts
}

const (
	negotiateRequestSize  = 36
	negotiateResponseSize = 65
)

func (m *NegotiateRequest) Append(b []byte) []byte {
	start := len(b) - HeaderSize
	b = byteio.Append16(b, negotiateRequestSize)
	b = byteio.Append16(b, uint16(len(m.Dialects)))
	b = byteio.Append16(b, uint16(m.SecurityMode))
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, uint32(m.Capabilities))
	b = append(b, m.ClientGUID[:]...)
	contexts := len(b)
	b = byteio.AppendZero(b, 8)
	for _, d := range m.Dialects {
		b = byteio.Append16(b, uint16(d))
	}
	if slices.Contains(m.Dialects, SMB311) {
		b = byteio.Pad(b, start, 8)
		byteio.Put32(b[contexts:], uint32(len(b)-start))
		var n int
		b, n = m.Contexts.append(b, start)
		byteio.Put16(b[contexts+4:], uint16(n))
	}
	return b
}

func (m *NegotiateRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	*m = NegotiateRequest{}
	d.size(negotiateRequestSize)
	dialects := d.Uint16()
	m.SecurityMode = SecurityMode(d.Uint16())
	d.Skip(2)
	m.Capabilities = Capabilities(d.Uint32())
	m.ClientGUID = d.array16()
	off, count := d.Uint32(), d.Uint16()
	d.Skip(2)
	if dialects == 0 {
		d.fail("DialectCount", errNone)
	}
	for range dialects {
		if d.Err() != nil {
			break
		}
		m.Dialects = append(m.Dialects, Dialect(d.Uint16()))
	}
	if slices.Contains(m.Dialects, SMB311) {
		m.Contexts.decode(d, int64(off), int(count))
	}
	return d.end("NEGOTIATE request")
}

// NegotiateResponse settles the dialect. Contexts travel only with SMB311.
// See [MS-SMB2] 2.2.4.
type NegotiateResponse struct {
	SecurityMode    SecurityMode
	Dialect         Dialect
	ServerGUID      [16]byte
	Capabilities    Capabilities
	MaxTransactSize uint32
	MaxReadSize     uint32
	MaxWriteSize    uint32
	SystemTime      fscc.Filetime
	ServerStartTime fscc.Filetime
	SecurityBuffer  []byte
	Contexts        NegotiateContexts
}

func (m *NegotiateResponse) Append(b []byte) []byte {
	start := len(b) - HeaderSize
	b = byteio.Append16(b, negotiateResponseSize)
	b = byteio.Append16(b, uint16(m.SecurityMode))
	b = byteio.Append16(b, uint16(m.Dialect))
	count := len(b)
	b = byteio.Append16(b, 0)
	b = append(b, m.ServerGUID[:]...)
	b = byteio.Append32(b, uint32(m.Capabilities))
	b = byteio.Append32(b, m.MaxTransactSize)
	b = byteio.Append32(b, m.MaxReadSize)
	b = byteio.Append32(b, m.MaxWriteSize)
	b = byteio.Append64(b, uint64(m.SystemTime))
	b = byteio.Append64(b, uint64(m.ServerStartTime))
	b = byteio.Append16(b, HeaderSize+negotiateResponseSize-1)
	b = byteio.Append16(b, uint16(len(m.SecurityBuffer)))
	contexts := len(b)
	b = byteio.Append32(b, 0)
	b = append(b, m.SecurityBuffer...)
	if m.Dialect == SMB311 {
		b = byteio.Pad(b, start, 8)
		byteio.Put32(b[contexts:], uint32(len(b)-start))
		var n int
		b, n = m.Contexts.append(b, start)
		byteio.Put16(b[count:], uint16(n))
	}
	return b
}

// Decode also refuses contexts that choose more than one algorithm.
func (m *NegotiateResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	*m = NegotiateResponse{}
	d.size(negotiateResponseSize)
	m.SecurityMode = SecurityMode(d.Uint16())
	m.Dialect = Dialect(d.Uint16())
	count := d.Uint16()
	m.ServerGUID = d.array16()
	m.Capabilities = Capabilities(d.Uint32())
	m.MaxTransactSize = d.Uint32()
	m.MaxReadSize = d.Uint32()
	m.MaxWriteSize = d.Uint32()
	m.SystemTime = d.filetime()
	m.ServerStartTime = d.filetime()
	off, n := d.Uint16(), d.Uint16()
	contexts := d.Uint32()
	m.SecurityBuffer = d.buffer("SecurityBuffer", int64(off), int64(n))
	if m.Dialect == SMB311 {
		m.Contexts.decode(d, int64(contexts), int(count))
		for _, c := range [][]uint16{m.Contexts.HashAlgorithms, m.Contexts.Ciphers, m.Contexts.SigningAlgorithms} {
			if len(c) > 1 {
				d.fail("NegotiateContextList", errAmbiguous)
			}
		}
	}
	return d.end("NEGOTIATE response")
}
