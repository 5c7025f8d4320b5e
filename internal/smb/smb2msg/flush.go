package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// FlushRequest asks for written data to reach stable storage.
// See [MS-SMB2] 2.2.17.
type FlushRequest struct{ FileID FileID }

const flushRequestSize = 24

func (m *FlushRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, flushRequestSize)
	b = byteio.AppendZero(b, 6)
	return m.FileID.append(b)
}

func (m *FlushRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(flushRequestSize)
	d.Skip(6)
	m.FileID = d.fileID()
	return d.end("FLUSH request")
}

// See [MS-SMB2] 2.2.18.
type FlushResponse struct{}

func (*FlushResponse) Append(b []byte) []byte { return appendEmpty(b) }

func (*FlushResponse) Decode(r *byteio.Reader) error { return decodeEmpty(r, "FLUSH response") }
