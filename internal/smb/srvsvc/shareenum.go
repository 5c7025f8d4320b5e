package srvsvc

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pagewire/pagewire/internal/byteio"
)

// Share is a share of a server. See [MS-SRVS] 2.2.4.23.
type Share struct {
	Name    string
	Type    uint32
	Comment string
}

// Types of shares, and what may be added to them. See [MS-SRVS] 2.2.2.4.
const (
	ShareDisk    = 0
	SharePrinter = 1
	ShareDevice  = 2
	ShareIPC     = 3
	ShareMask    = 0x0FFFFFFF

	ShareTemporary = 0x40000000
	ShareSpecial   = 0x80000000 // for administrators, with a "$" at the end of its name
)

// Win32Error is what a server's function returned. See [MS-ERREF] 2.2.
type Win32Error uint32

const (
	ErrorAccessDenied Win32Error = 5
	ErrorMoreData     Win32Error = 234
	ErrorInvalidLevel Win32Error = 124
)

func (e Win32Error) Error() string { return fmt.Sprintf("Windows error %d", uint32(e)) }

func (e Win32Error) Is(target error) bool {
	return e == ErrorAccessDenied && target == fs.ErrPermission
}

const (
	// OpShareEnum is the number of NetrShareEnum. See [MS-SRVS] 3.1.4.
	OpShareEnum = 15
	// FaultOpRange is the fault for other numbers. See C706 E.2.
	FaultOpRange = 0x1C010002

	level1 = 1 // name, type and comment
)

// Pointers need values that differ, no more; these are everybody's. An answer
// goes on where its question left off. See C706 14.3.12.
const (
	refFirst  = 0x00020000
	refAnswer = 0x0002000C
	refStep   = 4
)

// ShareEnumRequest is NetrShareEnum's input. See [MS-SRVS] 3.1.4.8.
type ShareEnumRequest struct {
	Server    string
	Level     uint32
	MaxLength uint32 // that the client would like
	Resume    uint32 // 0, or where the answer before left off
}

// Append appends the stub.
func (m *ShareEnumRequest) Append(b []byte) []byte {
	start := len(b)
	b = byteio.Append32(b, refFirst)
	b = appendString(b, start, m.Server)
	b = byteio.Append32(b, m.Level)
	b = byteio.Append32(b, m.Level)
	b = byteio.Append32(b, refFirst+refStep)
	b = byteio.AppendZero(b, 8) // no shares
	b = byteio.Append32(b, m.MaxLength)
	b = byteio.Append32(b, refFirst+2*refStep)
	return byteio.Append32(b, m.Resume)
}

// Decode reads the stub, which r has from its start.
func (m *ShareEnumRequest) Decode(r *byteio.Reader) error {
	if r.Uint32() != 0 {
		m.Server = readString(r)
	}
	m.Level = r.Uint32()
	if r.Uint32() != m.Level {
		return r.Fail(errPDU)
	}
	if r.Uint32() != 0 {
		if count, array := r.Uint32(), r.Uint32(); count != 0 || array != 0 {
			return r.Fail(errPDU) // shares, in a question for them
		}
	}
	m.MaxLength = r.Uint32()
	if r.Uint32() != 0 {
		m.Resume = r.Uint32()
	}
	return r.Err()
}

// AppendShareEnum asks for the shares from where an answer left off, or from the
// start with 0. server is the name that the client has for it.
func AppendShareEnum(b []byte, call uint32, server string, resume uint32) []byte {
	stub := (&ShareEnumRequest{Server: server, Level: level1, MaxLength: 0xFFFFFFFF, Resume: resume}).Append(nil)
	return (&Message{Type: TypeRequest, Call: call, Opnum: OpShareEnum, Body: stub}).Append(b, MaxFragment)
}

// ShareEnumResponse is NetrShareEnum's output. Shares are sent and understood at
// level 1 only. See [MS-SRVS] 3.1.4.8.
type ShareEnumResponse struct {
	Level  uint32
	Shares []Share
	Total  uint32 // shares that there are, those before and behind included
	Resume uint32
	Status Win32Error
}

// Append appends the stub.
func (m *ShareEnumResponse) Append(b []byte) []byte {
	start, ref := len(b), uint32(refAnswer)
	pointer := func() {
		b = byteio.Append32(b, ref)
		ref += refStep
	}
	b = byteio.Append32(b, m.Level)
	b = byteio.Append32(b, m.Level)
	if m.Level == level1 {
		pointer()
		b = byteio.Append32(b, uint32(len(m.Shares)))
		pointer()
		b = byteio.Append32(b, uint32(len(m.Shares)))
		for _, s := range m.Shares {
			pointer()
			b = byteio.Append32(b, s.Type)
			pointer()
		}
		for _, s := range m.Shares {
			b = appendString(b, start, s.Name)
			b = appendString(b, start, s.Comment)
		}
	} else {
		b = byteio.Append32(b, 0)
	}
	b = byteio.Append32(b, m.Total)
	pointer()
	b = byteio.Append32(b, m.Resume)
	return byteio.Append32(b, uint32(m.Status))
}

// Decode reads the stub, which r has from its start.
func (m *ShareEnumResponse) Decode(r *byteio.Reader) error {
	m.Level = r.Uint32()
	if r.Uint32() != m.Level {
		return r.Fail(errPDU)
	}
	if r.Uint32() != 0 {
		if m.Level != level1 {
			return r.Fail(errPDU)
		}
		m.decodeShares(r)
	}
	m.Total = r.Uint32()
	if r.Uint32() != 0 {
		m.Resume = r.Uint32()
	}
	m.Status = Win32Error(r.Uint32())
	return r.Err()
}

// decodeShares reads an array of structures, and behind it what they point to.
// See [MS-SRVS] 2.2.4.33 and C706 14.3.12.
func (m *ShareEnumResponse) decodeShares(r *byteio.Reader) error {
	count, array := r.Uint32(), r.Uint32()
	if array == 0 {
		return r.Err()
	}
	if r.Uint32() != count {
		return r.Fail(errPDU)
	}
	const size = 12
	fixed := r.Bytes(int64(count) * size)
	if r.Err() != nil {
		return r.Err()
	}
	m.Shares = make([]Share, count)
	f := byteio.NewReader(fixed)
	for i := range m.Shares {
		s := &m.Shares[i]
		name := f.Uint32()
		s.Type = f.Uint32()
		comment := f.Uint32()
		if name != 0 {
			s.Name = readString(r)
		}
		if comment != 0 {
			s.Comment = readString(r)
		}
		if r.Err() != nil {
			return r.Err()
		}
	}
	return nil
}

// DecodeShareEnum reads the answer to a call. more says that there are further
// shares, from resume on.
func DecodeShareEnum(m *Message, call uint32) (shares []Share, resume uint32, more bool, err error) {
	if err := m.check(TypeResponse, call); err != nil {
		return nil, 0, false, err
	}
	var resp ShareEnumResponse
	r := byteio.NewReader(m.Body)
	if err := resp.Decode(&r); err != nil {
		return nil, 0, false, err
	}
	switch resp.Status {
	case 0:
		return resp.Shares, 0, false, nil
	case ErrorMoreData:
		if len(resp.Shares) == 0 || resp.Resume == 0 {
			return nil, 0, false, errors.New("the server has more shares, but says none")
		}
		return resp.Shares, resp.Resume, true, nil
	default:
		return nil, 0, false, resp.Status
	}
}

// appendString appends what a pointer to a string points to: a conformant and
// varying array of UTF-16 with a NUL at its end, aligned within a stub that
// began at start. See C706 14.3.4.2.
func appendString(b []byte, start int, s string) []byte {
	n := uint32(byteio.UTF16Len(s) + 1)
	b = byteio.Append32(b, n)
	b = byteio.Append32(b, 0)
	b = byteio.Append32(b, n)
	b = byteio.AppendUTF16(b, s)
	b = byteio.Append16(b, 0)
	return byteio.Pad(b, start, 4)
}

// readString also takes strings without their NUL.
func readString(r *byteio.Reader) string {
	size, off, n := r.Uint32(), r.Uint32(), r.Uint32()
	if off != 0 || n > size {
		r.Fail(errPDU)
		return ""
	}
	s := byteio.UTF16(r.Bytes(int64(n) * 2))
	r.Skip(int64(-r.Offset() & 3))
	return strings.TrimSuffix(s, "\x00")
}
