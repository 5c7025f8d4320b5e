package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// InfoType says what QUERY_INFO and SET_INFO are about.
type InfoType uint8

const (
	InfoFile       InfoType = 1
	InfoFilesystem InfoType = 2
	InfoSecurity   InfoType = 3
	InfoQuota      InfoType = 4
)

// AdditionalInformation of InfoSecurity says which parts of the descriptor.
const (
	SecurityOwner uint32 = 1
	SecurityGroup uint32 = 2
	SecurityDACL  uint32 = 4
	SecuritySACL  uint32 = 8
)

// Flags of a QueryInfoRequest for extended attributes.
const (
	QueryRestartScan       uint32 = 1
	QueryReturnSingleEntry uint32 = 2
	QueryIndexSpecified    uint32 = 4
)

// QueryInfoRequest asks for a structure of package fscc.
// See [MS-SMB2] 2.2.37.
type QueryInfoRequest struct {
	InfoType              InfoType
	FileInfoClass         fscc.Class
	OutputBufferLength    uint32
	AdditionalInformation uint32
	Flags                 uint32
	FileID                FileID
	Input                 []byte
}

const queryInfoRequestSize = 41

func (m *QueryInfoRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, queryInfoRequestSize)
	b = append(b, byte(m.InfoType), byte(m.FileInfoClass))
	b = byteio.Append32(b, m.OutputBufferLength)
	b = byteio.Append16(b, offset(queryInfoRequestSize, len(m.Input)))
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, uint32(len(m.Input)))
	b = byteio.Append32(b, m.AdditionalInformation)
	b = byteio.Append32(b, m.Flags)
	b = m.FileID.append(b)
	return appendBuffer(b, m.Input)
}

func (m *QueryInfoRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(queryInfoRequestSize)
	m.InfoType = InfoType(d.Uint8())
	m.FileInfoClass = fscc.Class(d.Uint8())
	m.OutputBufferLength = d.Uint32()
	off := d.Uint16()
	d.Skip(2)
	n := d.Uint32()
	m.AdditionalInformation = d.Uint32()
	m.Flags = d.Uint32()
	m.FileID = d.fileID()
	m.Input = d.buffer("InputBuffer", int64(off), int64(n))
	return d.end("QUERY_INFO request")
}

// See [MS-SMB2] 2.2.38.
type QueryInfoResponse struct{ Output []byte }

func (m *QueryInfoResponse) Append(b []byte) []byte { return appendOutput(b, m.Output) }

func (m *QueryInfoResponse) Decode(r *byteio.Reader) (err error) {
	m.Output, err = decodeOutput(r, "QUERY_INFO response")
	return err
}
