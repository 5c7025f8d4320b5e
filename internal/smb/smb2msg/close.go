package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// ClosePostQueryAttrib asks for the attributes after the close; a response
// repeats it if it has them.
const ClosePostQueryAttrib uint16 = 1

// See [MS-SMB2] 2.2.15.
type CloseRequest struct {
	Flags  uint16
	FileID FileID
}

const (
	closeRequestSize  = 24
	closeResponseSize = 60
)

func (m *CloseRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, closeRequestSize)
	b = byteio.Append16(b, m.Flags)
	b = byteio.Append32(b, 0)
	return m.FileID.append(b)
}

func (m *CloseRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(closeRequestSize)
	m.Flags = d.Uint16()
	d.Skip(4)
	m.FileID = d.fileID()
	return d.end("CLOSE request")
}

// See [MS-SMB2] 2.2.16.
type CloseResponse struct {
	Flags          uint16
	CreationTime   fscc.Filetime
	LastAccessTime fscc.Filetime
	LastWriteTime  fscc.Filetime
	ChangeTime     fscc.Filetime
	AllocationSize uint64
	EndOfFile      uint64
	FileAttributes fscc.FileAttributes
}

func (m *CloseResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, closeResponseSize)
	b = byteio.Append16(b, m.Flags)
	b = byteio.Append32(b, 0)
	b = byteio.Append64(b, uint64(m.CreationTime))
	b = byteio.Append64(b, uint64(m.LastAccessTime))
	b = byteio.Append64(b, uint64(m.LastWriteTime))
	b = byteio.Append64(b, uint64(m.ChangeTime))
	b = byteio.Append64(b, m.AllocationSize)
	b = byteio.Append64(b, m.EndOfFile)
	return byteio.Append32(b, uint32(m.FileAttributes))
}

func (m *CloseResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(closeResponseSize)
	m.Flags = d.Uint16()
	d.Skip(4)
	m.CreationTime = d.filetime()
	m.LastAccessTime = d.filetime()
	m.LastWriteTime = d.filetime()
	m.ChangeTime = d.filetime()
	m.AllocationSize = d.Uint64()
	m.EndOfFile = d.Uint64()
	m.FileAttributes = fscc.FileAttributes(d.Uint32())
	return d.end("CLOSE response")
}
