package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
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
	d := body{r, "ERROR response"}
	*m = ErrorResponse{}
	d.size(errorResponseSize)
	contexts := d.Uint8()
	d.Skip(1)
	data := d.Bytes(int64(d.Uint32()))
	if contexts == 0 {
		if len(data) > 0 {
			m.Data = data
		}
		return d.end()
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
	return d.end()
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
	Relative           bool   // SubstituteName is relative to the directory of the link
	SubstituteName     string
	PrintName          string
}

const (
	symlinkErrorTag     = 0x4C4D5953
	symlinkReparseTag   = 0xA000000C
	symlinkFlagRelative = 1
	symlinkErrorFixed   = 24 // from behind SymLinkLength to PathBuffer
	symlinkReparseFixed = 12 // from behind ReparseDataLength to PathBuffer
)

// Append appends the data of an ErrorResponse.
func (m *SymlinkErrorResponse) Append(b []byte) []byte {
	substitute, print := 2*byteio.UTF16Len(m.SubstituteName), 2*byteio.UTF16Len(m.PrintName)
	b = byteio.Append32(b, uint32(symlinkErrorFixed+substitute+print))
	b = byteio.Append32(b, symlinkErrorTag)
	b = byteio.Append32(b, symlinkReparseTag)
	b = byteio.Append16(b, uint16(symlinkReparseFixed+substitute+print))
	b = byteio.Append16(b, m.UnparsedPathLength)
	b = byteio.Append16(b, 0)
	b = byteio.Append16(b, uint16(substitute))
	b = byteio.Append16(b, uint16(substitute))
	b = byteio.Append16(b, uint16(print))
	if m.Relative {
		b = byteio.Append32(b, symlinkFlagRelative)
	} else {
		b = byteio.Append32(b, 0)
	}
	b = byteio.AppendUTF16(b, m.SubstituteName)
	return byteio.AppendUTF16(b, m.PrintName)
}

// Symlink reads the data of a STATUS_STOPPED_ON_SYMLINK.
func (m *ErrorResponse) Symlink() (SymlinkErrorResponse, error) {
	r := byteio.NewReader(m.detail())
	var s SymlinkErrorResponse
	err := s.Decode(&r)
	return s, err
}

// Decode reads the data of an ErrorResponse, which is all that r holds.
func (m *SymlinkErrorResponse) Decode(r *byteio.Reader) error {
	d := body{r, "symbolic link ERROR response"}
	*m = SymlinkErrorResponse{}
	d.Skip(4) // SymLinkLength, which the lengths below make redundant
	for _, want := range [...]uint32{symlinkErrorTag, symlinkReparseTag} {
		if got := d.Uint32(); got != want && d.Err() == nil {
			d.fail("tag", fmt.Errorf("is %#x, want %#x", got, want))
		}
	}
	d.Skip(2)
	m.UnparsedPathLength = d.Uint16()
	substituteOff, substituteLen := d.Uint16(), d.Uint16()
	printOff, printLen := d.Uint16(), d.Uint16()
	m.Relative = d.Uint32()&symlinkFlagRelative != 0
	names := int64(d.Offset())
	m.SubstituteName = d.text("SubstituteName", names+int64(substituteOff), int64(substituteLen))
	m.PrintName = d.text("PrintName", names+int64(printOff), int64(printLen))
	return d.end()
}
