package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// ErrorContext is a part of an ErrorResponse of 3.1.1. See [MS-SMB2] 2.2.2.1.
type ErrorContext struct {
	ID   uint32
	Data []byte
}

const (
	ErrorIDDefault       uint32 = 0
	ErrorIDShareRedirect uint32 = 0x72645253
)

// ErrorResponse answers any command that failed. It has Data or Contexts, or
// neither. See [MS-SMB2] 2.2.2.
type ErrorResponse struct {
	Data     []byte
	Contexts []ErrorContext
}

const errorResponseSize = 9

func (m *ErrorResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, errorResponseSize)
	b = append(b, byte(len(m.Contexts)), 0)
	count := len(b)
	b = byteio.Append32(b, 0)
	first := len(b)
	for _, c := range m.Contexts {
		b = byteio.Pad(b, first, 8)
		b = byteio.Append32(b, uint32(len(c.Data)))
		b = byteio.Append32(b, c.ID)
		b = append(b, c.Data...)
	}
	if len(m.Contexts) == 0 {
		b = append(b, m.Data...)
	}
	byteio.Put32(b[count:], uint32(len(b)-first))
	if len(b) == first {
		b = append(b, 0) // there is always a byte, and it does not count
	}
	return b
}

func (m *ErrorResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	*m = ErrorResponse{}
	d.size(errorResponseSize)
	contexts := d.Uint8()
	d.Skip(1)
	data := d.Bytes(int64(d.Uint32()))
	if contexts == 0 {
		if len(data) > 0 {
			m.Data = data
		}
		return d.end("ERROR response")
	}
	c := byteio.NewReader(data)
	for ; contexts > 0 && d.Err() == nil; contexts-- {
		c.Skip(int64(-c.Offset() & 7))
		n, id := c.Uint32(), c.Uint32()
		m.Contexts = append(m.Contexts, ErrorContext{id, c.Bytes(int64(n))})
		if err := c.Err(); err != nil {
			d.fail("ErrorData", err)
		}
	}
	return d.end("ERROR response")
}

// detail returns the data, from wherever the dialect has it.
func (m *ErrorResponse) detail() []byte {
	for _, c := range m.Contexts {
		if c.ID == ErrorIDDefault {
			return c.Data
		}
	}
	return m.Data
}

// RequiredLength returns how large an output buffer must be, as said with
// STATUS_BUFFER_TOO_SMALL.
func (m *ErrorResponse) RequiredLength() (uint32, bool) {
	r := byteio.NewReader(m.detail())
	n := r.Uint32()
	return n, r.Err() == nil
}

// SymlinkErrorResponse says where a path runs into a symbolic link, with
// STATUS_STOPPED_ON_SYMLINK. See [MS-SMB2] 2.2.2.2.1.
type SymlinkErrorResponse struct {
	UnparsedPathLength uint16 // bytes of the path, in UTF-16, that come after the link
	fscc.SymbolicLinkReparseData
}

const symlinkErrorTag = 0x4C4D5953

// Append appends the data of an ErrorResponse.
func (m *SymlinkErrorResponse) Append(b []byte) []byte {
	start := len(b)
	b = byteio.Append32(b, 0)
	b = byteio.Append32(b, symlinkErrorTag)
	b = byteio.Append32(b, uint32(fscc.ReparseTagSymlink))
	b = byteio.Append16(b, 0)
	b = byteio.Append16(b, m.UnparsedPathLength)
	link := len(b)
	b = m.SymbolicLinkReparseData.Append(b)
	byteio.Put32(b[start:], uint32(len(b)-start-4))
	byteio.Put16(b[link-4:], uint16(len(b)-link))
	return b
}

// Decode reads the data of an ErrorResponse, which is all that r holds. It
// trusts no length but those of the names.
func (m *SymlinkErrorResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.Skip(4)
	for _, want := range [...]uint32{symlinkErrorTag, uint32(fscc.ReparseTagSymlink)} {
		if got := d.Uint32(); got != want && d.Err() == nil {
			d.fail("tag", fmt.Errorf("is %#x, want %#x", got, want))
		}
	}
	d.Skip(2)
	m.UnparsedPathLength = d.Uint16()
	if d.Err() != nil {
		return d.end("symbolic link ERROR response")
	}
	return m.SymbolicLinkReparseData.Decode(r)
}

// Symlink reads the data of a STATUS_STOPPED_ON_SYMLINK.
func (m *ErrorResponse) Symlink() (SymlinkErrorResponse, error) {
	r := byteio.NewReader(m.detail())
	var s SymlinkErrorResponse
	err := s.Decode(&r)
	return s, err
}
