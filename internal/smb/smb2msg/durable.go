package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// DurableHandleRequest asks for a handle that survives a lost connection.
// See [MS-SMB2] 2.2.13.2.3.
type DurableHandleRequest struct{}

func (*DurableHandleRequest) Append(b []byte) []byte { return byteio.AppendZero(b, 16) }

func (*DurableHandleRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.Skip(16)
	return d.end(ContextDHnQ)
}

// DurableHandleReconnect takes a durable handle up again.
// See [MS-SMB2] 2.2.13.2.4.
type DurableHandleReconnect struct{ FileID FileID }

func (m *DurableHandleReconnect) Append(b []byte) []byte { return m.FileID.append(b) }

func (m *DurableHandleReconnect) Decode(r *byteio.Reader) error {
	d := body{r}
	m.FileID = d.fileID()
	return d.end(ContextDHnC)
}

// DurableHandleResponse grants one. See [MS-SMB2] 2.2.14.2.3.
type DurableHandleResponse struct{}

func (*DurableHandleResponse) Append(b []byte) []byte { return byteio.AppendZero(b, 8) }

func (*DurableHandleResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.Skip(8)
	return d.end(ContextDHnQ)
}

// DurablePersistent in the flags of a V2 context: survives the server, too.
const DurablePersistent uint32 = 2

// DurableHandleRequestV2 is what 3.0 has instead. Timeout is in milliseconds.
// See [MS-SMB2] 2.2.13.2.11.
type DurableHandleRequestV2 struct {
	Timeout    uint32
	Flags      uint32
	CreateGUID [16]byte
}

func (m *DurableHandleRequestV2) Append(b []byte) []byte {
	b = byteio.Append32(b, m.Timeout)
	b = byteio.Append32(b, m.Flags)
	b = byteio.Append64(b, 0)
	return append(b, m.CreateGUID[:]...)
}

func (m *DurableHandleRequestV2) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Timeout, m.Flags = d.Uint32(), d.Uint32()
	d.Skip(8)
	m.CreateGUID = d.array16()
	return d.end(ContextDH2Q)
}

// See [MS-SMB2] 2.2.13.2.12.
type DurableHandleReconnectV2 struct {
	FileID     FileID
	CreateGUID [16]byte
	Flags      uint32
}

func (m *DurableHandleReconnectV2) Append(b []byte) []byte {
	b = m.FileID.append(b)
	b = append(b, m.CreateGUID[:]...)
	return byteio.Append32(b, m.Flags)
}

func (m *DurableHandleReconnectV2) Decode(r *byteio.Reader) error {
	d := body{r}
	m.FileID = d.fileID()
	m.CreateGUID = d.array16()
	m.Flags = d.Uint32()
	return d.end(ContextDH2C)
}

// See [MS-SMB2] 2.2.14.2.12.
type DurableHandleResponseV2 struct{ Timeout, Flags uint32 }

func (m *DurableHandleResponseV2) Append(b []byte) []byte {
	return byteio.Append32(byteio.Append32(b, m.Timeout), m.Flags)
}

func (m *DurableHandleResponseV2) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Timeout, m.Flags = d.Uint32(), d.Uint32()
	return d.end(ContextDH2Q)
}
