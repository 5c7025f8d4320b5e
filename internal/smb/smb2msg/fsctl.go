package smb2msg

import (
	"net/netip"

	"github.com/pagewire/pagewire/internal/byteio"
)

// ValidateNegotiateInfoRequest repeats a NEGOTIATE request under the session's
// signature, against somebody who changed it on the way.
// See [MS-SMB2] 2.2.31.4.
type ValidateNegotiateInfoRequest struct {
	Capabilities Capabilities
	GUID         [16]byte
	SecurityMode SecurityMode
	Dialects     []Dialect
}

func (m *ValidateNegotiateInfoRequest) Append(b []byte) []byte {
	b = byteio.Append32(b, uint32(m.Capabilities))
	b = append(b, m.GUID[:]...)
	b = byteio.Append16(b, uint16(m.SecurityMode))
	b = byteio.Append16(b, uint16(len(m.Dialects)))
	for _, d := range m.Dialects {
		b = byteio.Append16(b, uint16(d))
	}
	return b
}

func (m *ValidateNegotiateInfoRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Capabilities = Capabilities(d.Uint32())
	m.GUID = d.array16()
	m.SecurityMode = SecurityMode(d.Uint16())
	m.Dialects = nil
	for n := d.Uint16(); n > 0 && d.Err() == nil; n-- {
		m.Dialects = append(m.Dialects, Dialect(d.Uint16()))
	}
	return d.end("VALIDATE_NEGOTIATE_INFO request")
}

// ValidateNegotiateInfoResponse repeats the NEGOTIATE response.
// See [MS-SMB2] 2.2.32.6.
type ValidateNegotiateInfoResponse struct {
	Capabilities Capabilities
	GUID         [16]byte
	SecurityMode SecurityMode
	Dialect      Dialect
}

func (m *ValidateNegotiateInfoResponse) Append(b []byte) []byte {
	b = byteio.Append32(b, uint32(m.Capabilities))
	b = append(b, m.GUID[:]...)
	b = byteio.Append16(b, uint16(m.SecurityMode))
	return byteio.Append16(b, uint16(m.Dialect))
}

func (m *ValidateNegotiateInfoResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Capabilities = Capabilities(d.Uint32())
	m.GUID = d.array16()
	m.SecurityMode = SecurityMode(d.Uint16())
	m.Dialect = Dialect(d.Uint16())
	return d.end("VALIDATE_NEGOTIATE_INFO response")
}

// NetworkInterface is an address at which a server can be reached.
type NetworkInterface struct {
	IfIndex    uint32
	Capability uint32
	LinkSpeed  uint64 // bits a second
	Address    netip.AddrPort
}

const (
	InterfaceRSSCapable  uint32 = 1
	InterfaceRDMACapable uint32 = 2
)

const (
	networkInterfaceSize = 152
	familyInet           = 0x0002
	familyInet6          = 0x0017
)

// NetworkInterfaceInfo answers FsctlQueryNetworkInterfaceInfo. Addresses of
// unknown families are skipped; a server may have none to tell. See [MS-SMB2] 2.2.32.5.
type NetworkInterfaceInfo struct{ Interfaces []NetworkInterface }

func (m *NetworkInterfaceInfo) Append(b []byte) []byte {
	for i, f := range m.Interfaces {
		start := len(b)
		if i < len(m.Interfaces)-1 {
			b = byteio.Append32(b, networkInterfaceSize)
		} else {
			b = byteio.Append32(b, 0)
		}
		b = byteio.Append32(b, f.IfIndex)
		b = byteio.Append32(b, f.Capability)
		b = byteio.Append32(b, 0)
		b = byteio.Append64(b, f.LinkSpeed)
		b = appendSockaddr(b, f.Address)
		for len(b) < start+networkInterfaceSize {
			b = append(b, 0)
		}
	}
	return b
}

// appendSockaddr writes the port in network order, alone among all numbers.
func appendSockaddr(b []byte, a netip.AddrPort) []byte {
	port, addr := a.Port(), a.Addr().Unmap()
	if addr.Is4() {
		b = byteio.Append16(b, familyInet)
		b = append(b, byte(port>>8), byte(port))
	} else {
		b = byteio.Append16(b, familyInet6)
		b = append(b, byte(port>>8), byte(port))
		b = byteio.Append32(b, 0)
	}
	return append(b, addr.AsSlice()...)
}

func (m *NetworkInterfaceInfo) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Interfaces = nil
	for more := d.Len() > 0; more && d.Err() == nil; {
		next := int64(d.Uint32())
		if more = next != 0; !more {
			next = networkInterfaceSize
		}
		if next < networkInterfaceSize {
			d.fail("Next", errPlace)
		}
		e := byteio.NewReader(d.Bytes(next - 4))
		f := NetworkInterface{IfIndex: e.Uint32(), Capability: e.Uint32()}
		e.Skip(4)
		f.LinkSpeed = e.Uint64()
		if f.Address = sockaddr(&e); f.Address.IsValid() {
			m.Interfaces = append(m.Interfaces, f)
		}
	}
	return d.end("NETWORK_INTERFACE_INFO")
}

// sockaddr returns the zero AddrPort for an unknown family.
func sockaddr(r *byteio.Reader) netip.AddrPort {
	family := r.Uint16()
	port := uint16(r.Uint8())<<8 | uint16(r.Uint8())
	var addr netip.Addr
	switch family {
	case familyInet:
		addr, _ = netip.AddrFromSlice(r.Bytes(4))
	case familyInet6:
		r.Skip(4)
		addr, _ = netip.AddrFromSlice(r.Bytes(16))
	}
	return netip.AddrPortFrom(addr.Unmap(), port)
}

// ResumeKey names an open file as the source of a server-side copy.
// See [MS-SMB2] 2.2.32.3.
type ResumeKey [24]byte

func (k *ResumeKey) Append(b []byte) []byte {
	return byteio.AppendZero(append(b, k[:]...), 8) // no context, in the space for a short one
}

func (k *ResumeKey) Decode(r *byteio.Reader) error {
	d := body{r}
	d.Copy(k[:])
	d.Skip(4)
	return d.end("SRV_REQUEST_RESUME_KEY response")
}

// Copychunk is one range of a server-side copy.
type Copychunk struct {
	SourceOffset uint64
	TargetOffset uint64
	Length       uint32
}

// CopychunkRequest copies from the file of SourceKey to that of the IOCTL.
// See [MS-SMB2] 2.2.31.1.
type CopychunkRequest struct {
	SourceKey ResumeKey
	Chunks    []Copychunk
}

func (m *CopychunkRequest) Append(b []byte) []byte {
	b = append(b, m.SourceKey[:]...)
	b = byteio.Append32(b, uint32(len(m.Chunks)))
	b = byteio.Append32(b, 0)
	for _, c := range m.Chunks {
		b = byteio.Append64(b, c.SourceOffset)
		b = byteio.Append64(b, c.TargetOffset)
		b = byteio.Append32(b, c.Length)
		b = byteio.Append32(b, 0)
	}
	return b
}

func (m *CopychunkRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.Copy(m.SourceKey[:])
	n := d.Uint32()
	d.Skip(4)
	m.Chunks = nil
	for ; n > 0 && d.Err() == nil; n-- {
		c := Copychunk{d.Uint64(), d.Uint64(), d.Uint32()}
		d.Skip(4)
		m.Chunks = append(m.Chunks, c)
	}
	return d.end("SRV_COPYCHUNK request")
}

// CopychunkResponse says how much was copied or, with
// STATUS_INVALID_PARAMETER, what the server's limits are: most chunks, bytes a
// chunk and bytes in all. See [MS-SMB2] 2.2.32.1.
type CopychunkResponse struct{ ChunksWritten, ChunkBytesWritten, TotalBytesWritten uint32 }

func (m *CopychunkResponse) Append(b []byte) []byte {
	b = byteio.Append32(b, m.ChunksWritten)
	b = byteio.Append32(b, m.ChunkBytesWritten)
	return byteio.Append32(b, m.TotalBytesWritten)
}

func (m *CopychunkResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	m.ChunksWritten = d.Uint32()
	m.ChunkBytesWritten = d.Uint32()
	m.TotalBytesWritten = d.Uint32()
	return d.end("SRV_COPYCHUNK response")
}
