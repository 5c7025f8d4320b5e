package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// SetInfoRequest changes what a structure of package fscc says, which is in
// Buffer. See [MS-SMB2] 2.2.39.
type SetInfoRequest struct {
	InfoType              InfoType
	FileInfoClass         fscc.Class
	AdditionalInformation uint32
	FileID                FileID
	Buffer                []byte
}

const (
	setInfoRequestSize  = 33
	setInfoResponseSize = 2
)

func (m *SetInfoRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, setInfoRequestSize)
	b = append(b, byte(m.InfoType), byte(m.FileInfoClass))
	b = byteio.Append32(b, uint32(len(m.Buffer)))
	b = byteio.Append16(b, HeaderSize+setInfoRequestSize-1)
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, m.AdditionalInformation)
	b = m.FileID.append(b)
	return appendBuffer(b, m.Buffer)
}

func (m *SetInfoRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(setInfoRequestSize)
	m.InfoType = InfoType(d.Uint8())
	m.FileInfoClass = fscc.Class(d.Uint8())
	n, off := d.Uint32(), d.Uint16()
	d.Skip(2)
	m.AdditionalInformation = d.Uint32()
	m.FileID = d.fileID()
	m.Buffer = d.buffer("Buffer", int64(off), int64(n))
	return d.end("SET_INFO request")
}

// See [MS-SMB2] 2.2.40.
type SetInfoResponse struct{}

func (*SetInfoResponse) Append(b []byte) []byte { return byteio.Append16(b, setInfoResponseSize) }

func (*SetInfoResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(setInfoResponseSize)
	return d.end("SET_INFO response")
}
