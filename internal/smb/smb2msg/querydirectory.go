package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// Flags of a QueryDirectoryRequest.
const (
	QueryDirectoryRestartScans      uint8 = 0x01
	QueryDirectoryReturnSingleEntry uint8 = 0x02
	QueryDirectoryIndexSpecified    uint8 = 0x04
	QueryDirectoryReopen            uint8 = 0x10
)

// QueryDirectoryRequest lists a directory; FileName is a pattern.
// See [MS-SMB2] 2.2.33.
type QueryDirectoryRequest struct {
	FileInformationClass fscc.Class
	Flags                uint8
	FileIndex            uint32
	FileID               FileID
	OutputBufferLength   uint32
	FileName             string
}

const (
	queryDirectoryRequestSize  = 33
	queryDirectoryResponseSize = 9
)

func (m *QueryDirectoryRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, queryDirectoryRequestSize)
	b = append(b, byte(m.FileInformationClass), m.Flags)
	b = byteio.Append32(b, m.FileIndex)
	b = m.FileID.append(b)
	b = byteio.Append16(b, HeaderSize+queryDirectoryRequestSize-1)
	b = byteio.Append16(b, uint16(2*byteio.UTF16Len(m.FileName)))
	b = byteio.Append32(b, m.OutputBufferLength)
	if m.FileName == "" {
		return append(b, 0)
	}
	return byteio.AppendUTF16(b, m.FileName)
}

func (m *QueryDirectoryRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(queryDirectoryRequestSize)
	m.FileInformationClass = fscc.Class(d.Uint8())
	m.Flags = d.Uint8()
	m.FileIndex = d.Uint32()
	m.FileID = d.fileID()
	off, n := d.Uint16(), d.Uint16()
	m.OutputBufferLength = d.Uint32()
	m.FileName = d.text("FileName", int64(off), int64(n))
	return d.end("QUERY_DIRECTORY request")
}

// QueryDirectoryResponse holds entries for an fscc.DirReader.
// See [MS-SMB2] 2.2.34.
type QueryDirectoryResponse struct{ Output []byte }

func (m *QueryDirectoryResponse) Append(b []byte) []byte { return appendOutput(b, m.Output) }

func (m *QueryDirectoryResponse) Decode(r *byteio.Reader) (err error) {
	m.Output, err = decodeOutput(r, "QUERY_DIRECTORY response")
	return err
}

// appendOutput appends the body that the responses to QUERY_DIRECTORY,
// QUERY_INFO and CHANGE_NOTIFY share.
func appendOutput(b, output []byte) []byte {
	b = byteio.Append16(b, queryDirectoryResponseSize)
	b = byteio.Append16(b, offset(queryDirectoryResponseSize, len(output)))
	b = byteio.Append32(b, uint32(len(output)))
	return appendBuffer(b, output)
}

func decodeOutput(r *byteio.Reader, name string) ([]byte, error) {
	d := body{r}
	d.size(queryDirectoryResponseSize)
	off, n := d.Uint16(), d.Uint32()
	output := d.buffer("OutputBuffer", int64(off), int64(n))
	return output, d.end(name)
}
