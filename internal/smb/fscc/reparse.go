package fscc

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// ReparseTag says what kind of reparse point a file is.
type ReparseTag uint32

// See [MS-FSCC] 2.1.2.1.
const (
	ReparseTagMountPoint  ReparseTag = 0xA0000003
	ReparseTagDFS         ReparseTag = 0x8000000A
	ReparseTagSymlink     ReparseTag = 0xA000000C
	ReparseTagDFSR        ReparseTag = 0x80000012
	ReparseTagDedup       ReparseTag = 0x80000013
	ReparseTagNFS         ReparseTag = 0x80000014
	ReparseTagAppExecLink ReparseTag = 0x8000001B
	ReparseTagLXSymlink   ReparseTag = 0xA000001D
	ReparseTagAFUnix      ReparseTag = 0x80000023
	ReparseTagLXFIFO      ReparseTag = 0x80000024
	ReparseTagLXChr       ReparseTag = 0x80000025
	ReparseTagLXBlk       ReparseTag = 0x80000026

	reparseTagMicrosoft ReparseTag = 0x80000000
)

// ReparsePoint is what FSCTL_GET_REPARSE_POINT returns and
// FSCTL_SET_REPARSE_POINT takes; FSCTL_DELETE_REPARSE_POINT takes one without
// data. What Data holds depends on Tag: see the types below.
// See [MS-FSCC] 2.1.2.2 and 2.1.2.3.
type ReparsePoint struct {
	Tag  ReparseTag
	GUID [16]byte // of tags that are not Microsoft's
	Data []byte
}

// NewReparsePoint makes a reparse point out of the structure of its tag.
func NewReparsePoint(tag ReparseTag, data interface{ Append([]byte) []byte }) ReparsePoint {
	return ReparsePoint{Tag: tag, Data: data.Append(nil)}
}

func (m *ReparsePoint) Append(b []byte) []byte {
	b = byteio.Append32(b, uint32(m.Tag))
	b = byteio.Append16(b, uint16(len(m.Data)))
	b = byteio.Append16(b, 0)
	if m.Tag&reparseTagMicrosoft == 0 {
		b = append(b, m.GUID[:]...)
	}
	return append(b, m.Data...)
}

func (m *ReparsePoint) Decode(r *byteio.Reader) error {
	f := fields{r}
	*m = ReparsePoint{Tag: ReparseTag(f.Uint32())}
	n := f.Uint16()
	f.Skip(2)
	if m.Tag&reparseTagMicrosoft == 0 {
		f.Copy(m.GUID[:])
	}
	m.Data = f.Bytes(int64(n))
	return f.end("reparse data buffer")
}

// SymbolicLinkReparseData is the data of ReparseTagSymlink. SubstituteName is
// what counts: relative to the directory of the link if Relative, else with
// \??\ in front. See [MS-FSCC] 2.1.2.4.
type SymbolicLinkReparseData struct {
	SubstituteName string
	PrintName      string
	Relative       bool
}

const symlinkFlagRelative = 1

func (m *SymbolicLinkReparseData) Append(b []byte) []byte {
	substitute, print := 2*byteio.UTF16Len(m.SubstituteName), 2*byteio.UTF16Len(m.PrintName)
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

func (m *SymbolicLinkReparseData) Decode(r *byteio.Reader) error {
	f := fields{r}
	substitute, print := f.span(), f.span()
	m.Relative = f.Uint32()&symlinkFlagRelative != 0
	m.SubstituteName, m.PrintName = f.names(substitute, print)
	return f.end("symbolic link")
}

// MountPointReparseData is the data of ReparseTagMountPoint, a directory
// junction. See [MS-FSCC] 2.1.2.5.
type MountPointReparseData struct {
	SubstituteName string
	PrintName      string
}

// Append ends both names with a NUL, which counts for their places only.
func (m *MountPointReparseData) Append(b []byte) []byte {
	substitute, print := 2*byteio.UTF16Len(m.SubstituteName), 2*byteio.UTF16Len(m.PrintName)
	b = byteio.Append16(b, 0)
	b = byteio.Append16(b, uint16(substitute))
	b = byteio.Append16(b, uint16(substitute+2))
	b = byteio.Append16(b, uint16(print))
	b = byteio.Append16(byteio.AppendUTF16(b, m.SubstituteName), 0)
	return byteio.Append16(byteio.AppendUTF16(b, m.PrintName), 0)
}

func (m *MountPointReparseData) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.SubstituteName, m.PrintName = f.names(f.span(), f.span())
	return f.end("mount point")
}

// span is where in a PathBuffer a name lies.
type span struct{ off, n uint16 }

func (f fields) span() span { return span{f.Uint16(), f.Uint16()} }

// names takes a PathBuffer, which is all that lies ahead.
func (f fields) names(substitute, print span) (string, string) {
	buf := byteio.NewReader(f.Rest())
	name := func(field string, s span) string {
		if s.n%2 != 0 {
			f.fail(field, errOdd)
		}
		p := buf.At(int64(s.off), int64(s.n))
		if buf.Err() != nil {
			f.fail(field, buf.Err())
		}
		return byteio.UTF16(p)
	}
	return name("SubstituteName", substitute), name("PrintName", print)
}

// NFSType says what kind of special file ReparseTagNFS stands for.
type NFSType uint64

const (
	NFSTypeLnk  NFSType = 0x014B4E4C
	NFSTypeChr  NFSType = 0x00524843
	NFSTypeBlk  NFSType = 0x004B4C42
	NFSTypeFifo NFSType = 0x4F464946
	NFSTypeSock NFSType = 0x4B434F53
)

// NFSReparseData is the data of ReparseTagNFS, which Unix servers and clients
// have for special files. See [MS-FSCC] 2.1.2.6.
type NFSReparseData struct {
	Type         NFSType
	Target       string // NFSTypeLnk
	Major, Minor uint32 // NFSTypeChr and NFSTypeBlk
}

func (m *NFSReparseData) Append(b []byte) []byte {
	b = byteio.Append64(b, uint64(m.Type))
	switch m.Type {
	case NFSTypeLnk:
		b = byteio.AppendUTF16(b, m.Target)
	case NFSTypeChr, NFSTypeBlk:
		b = byteio.Append32(byteio.Append32(b, m.Major), m.Minor)
	}
	return b
}

// Decode takes all that lies ahead.
func (m *NFSReparseData) Decode(r *byteio.Reader) error {
	f := fields{r}
	*m = NFSReparseData{Type: NFSType(f.Uint64())}
	switch m.Type {
	case NFSTypeLnk:
		m.Target = f.text("DataBuffer", uint32(f.Len()))
	case NFSTypeChr, NFSTypeBlk:
		m.Major, m.Minor = f.Uint32(), f.Uint32()
	case NFSTypeFifo, NFSTypeSock:
	default:
		f.fail("Type", fmt.Errorf("is %#x", uint64(m.Type)))
	}
	return f.end("NFS reparse point")
}

// LXSymlinkReparseData is the data of ReparseTagLXSymlink, the symbolic link of
// the Windows Subsystem for Linux. Its other tags have no data; their devices
// are in extended attributes.
type LXSymlinkReparseData struct{ Target string }

// lxSymlinkVersion comes before a target in UTF-8.
const lxSymlinkVersion = 2

func (m *LXSymlinkReparseData) Append(b []byte) []byte {
	return append(byteio.Append32(b, lxSymlinkVersion), m.Target...)
}

// Decode takes all that lies ahead.
func (m *LXSymlinkReparseData) Decode(r *byteio.Reader) error {
	f := fields{r}
	if v := f.Uint32(); v != lxSymlinkVersion && f.Err() == nil {
		f.fail("Version", fmt.Errorf("is %d, want %d", v, lxSymlinkVersion))
	}
	m.Target = string(f.Rest())
	return f.end("LX symbolic link")
}
