package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/internal/byteio"
)

// message is one SMB2 message, header included. Fields past its end read as
// zero: what is cut short gets a wrong name at worst. The codecs under test
// have no say here.
type message []byte

func (m message) at(off, n int) []byte {
	r := byteio.NewReader(m)
	return r.At(int64(off), int64(n))
}

func (m message) u16(off int) int {
	r := byteio.NewReader(m.at(off, 2))
	return int(r.Uint16())
}

func (m message) u32(off int) int {
	r := byteio.NewReader(m.at(off, 4))
	return int(r.Uint32())
}

// header is where bodies start, and what their offsets count from the start of.
const header = 64

// See [MS-SMB2] 2.2.1.
func (m message) command() int      { return m.u16(12) }
func (m message) status() int       { return m.u32(8) }
func (m message) async() bool       { return m.u32(16)&2 != 0 }
func (m message) next() int         { return m.u32(20) }
func (m message) messageID() string { return string(m.at(24, 8)) }

// split cuts a frame into the messages compounded in it.
func split(frame []byte) []message {
	var ms []message
	for m := message(frame); ; {
		n := m.next()
		if n < header || n >= len(m) {
			return append(ms, m)
		}
		ms = append(ms, m[:n])
		m = m[n:]
	}
}

var commands = []string{
	"negotiate", "session_setup", "logoff", "tree_connect", "tree_disconnect",
	"create", "close", "flush", "read", "write", "lock", "ioctl", "cancel", "echo",
	"query_directory", "change_notify", "query_info", "set_info", "oplock_break",
}

// unknown names what the specifications don't.
const unknown = "unknown"

const (
	negotiate      = 0
	sessionSetup   = 1
	treeConnect    = 3
	create         = 5
	lock           = 10
	ioctl          = 11
	queryDirectory = 14
	changeNotify   = 15
	queryInfo      = 16
	setInfo        = 17
	oplockBreak    = 18
)

func (m message) commandName() string {
	if c := m.command(); c < len(commands) {
		return commands[c]
	}
	return unknown
}

const (
	statusPending        = 0x00000103
	statusNoMoreFiles    = 0x80000006
	statusMoreProcessing = 0xc0000016
)

// isError reports whether a reply is an error response, see [MS-SMB2] 2.2.2 and
// 3.3.4.4, or an interim one, which has its form.
func (m message) isError() bool {
	s := m.status()
	if m.u16(header) != 9 || s == statusMoreProcessing {
		return false
	}
	return s == statusPending || s == statusNoMoreFiles || s>>30 == 3
}

// variant tells requests of one command apart, and with it their replies.
func (m message) variant() string {
	switch m.command() {
	case negotiate:
		// The last dialect offered.
		n := m.u16(header + 2)
		return fmt.Sprintf("%04x", m.u16(header+36+2*(n-1)))
	case sessionSetup:
		return m.ntlmVariant()
	case create:
		return contextNames(m, m.u32(header+48), m.u32(header+52))
	case lock:
		return fmt.Sprintf("%02x", m.u32(header+24+16))
	case ioctl:
		return strings.ToLower(fsctlName(m.u32(header + 4)))
	case queryInfo, setInfo:
		return className(int(m[header+2]), int(m[header+3]))
	case queryDirectory:
		if name := className(infoFile, int(m[header+2])); strings.HasSuffix(name, "DirectoryInformation") || name == "FileNamesInformation" {
			return name
		}
		return unknown
	case oplockBreak:
		if m.u16(header) == 36 {
			return "lease"
		}
	}
	if m.async() {
		return "async"
	}
	return ""
}

// replyVariant is variant for the reply to request, which may be nil.
func (m message) replyVariant(request message) string {
	var v string
	switch m.command() {
	case negotiate:
		v = fmt.Sprintf("%04x", m.u16(header+4))
	case sessionSetup:
		v = [...]string{"ok", "guest", "null", "", "encrypt", "", "", ""}[m.u16(header+2)&7]
		if m.status() == statusMoreProcessing {
			v = m.ntlmVariant()
		}
	case treeConnect:
		v = [...]string{"", "disk", "pipe", "print"}[m[header+2]&3]
	case create:
		v = contextNames(m, m.u32(header+80), m.u32(header+84))
	case oplockBreak:
		if m.u16(header) == 36 {
			v = "lease"
		}
	case ioctl, queryInfo, queryDirectory:
		if request != nil {
			v = request.variant()
		}
	}
	if s := m.status(); s != 0 && s != statusMoreProcessing {
		v += fmt.Sprintf("_%08x", s)
	}
	return strings.TrimPrefix(v, "_")
}

// ntlmVariant names the leg of NTLM a security buffer carries.
func (m message) ntlmVariant() string {
	_, ntlm, ok := bytes.Cut(m, []byte("NTLMSSP\x00"))
	if !ok || len(ntlm) == 0 {
		return "spnego"
	}
	return [...]string{"", "negotiate", "challenge", "authenticate"}[ntlm[0]&3]
}

// contextNames joins the names of create contexts, see [MS-SMB2] 2.2.13.2.
func contextNames(m message, off, length int) string {
	var names []string
	for c := message(m.at(off, length)); len(c) > 0; {
		name := c.at(c.u16(4), c.u16(6))
		switch {
		case len(name) != 4:
			names = append(names, "guid")
		case string(name) == "RqLs" && c.u32(12) > 32:
			names = append(names, "rqls2")
		default:
			names = append(names, strings.ToLower(string(name)))
		}
		n := c.u32(0)
		if n == 0 || n > len(c) {
			break
		}
		c = c[n:]
	}
	if names == nil {
		return "plain"
	}
	slices.Sort(names)
	return strings.Join(names, "_")
}

// payload returns the part of a message that an information class or FSCTL
// defines, and that class's name; request is nil for a request.
func (m message) payload(request message) (string, []byte) {
	switch m.command() {
	case queryInfo:
		if request != nil {
			return request.variant(), m.at(m.u16(header+2), m.u32(header+4))
		}
	case queryDirectory:
		if request != nil {
			return request.variant(), m.at(m.u16(header+2), m.u32(header+4))
		}
	case changeNotify:
		if request != nil {
			return "FileNotifyInformation", m.at(m.u16(header+2), m.u32(header+4))
		}
	case setInfo:
		if request == nil {
			return m.variant() + "_set", m.at(m.u16(header+8), m.u32(header+4))
		}
	case ioctl:
		name := "FSCTL_" + fsctlName(m.u32(header+4))
		if request == nil {
			return name + "_request", m.at(m.u32(header+24), m.u32(header+28))
		}
		return name + "_response", m.at(m.u32(header+32), m.u32(header+36))
	}
	return "", nil
}

const (
	infoFile       = 1
	infoFilesystem = 2
	infoSecurity   = 3
	infoQuota      = 4
)

// className names an information class, see [MS-FSCC] 2.4 and 2.5.
func className(infoType, class int) string {
	names := fileClasses
	switch infoType {
	case infoFilesystem:
		names = fsClasses
	case infoSecurity:
		return "SecurityDescriptor"
	case infoQuota:
		return "FileQuotaInformation"
	}
	if name := names[class]; name != "" {
		return name
	}
	return unknown
}

var fileClasses = map[int]string{
	1: "FileDirectoryInformation", 2: "FileFullDirectoryInformation", 3: "FileBothDirectoryInformation",
	4: "FileBasicInformation", 5: "FileStandardInformation", 6: "FileInternalInformation",
	7: "FileEaInformation", 8: "FileAccessInformation", 9: "FileNameInformation",
	10: "FileRenameInformation", 11: "FileLinkInformation", 12: "FileNamesInformation",
	13: "FileDispositionInformation", 14: "FilePositionInformation", 15: "FileFullEaInformation",
	16: "FileModeInformation", 17: "FileAlignmentInformation", 18: "FileAllInformation",
	19: "FileAllocationInformation", 20: "FileEndOfFileInformation", 21: "FileAlternateNameInformation",
	22: "FileStreamInformation", 23: "FilePipeInformation", 24: "FilePipeLocalInformation",
	25: "FilePipeRemoteInformation", 28: "FileCompressionInformation", 34: "FileNetworkOpenInformation",
	35: "FileAttributeTagInformation", 37: "FileIdBothDirectoryInformation", 38: "FileIdFullDirectoryInformation",
	39: "FileValidDataLengthInformation", 40: "FileShortNameInformation", 48: "FileNormalizedNameInformation",
	60: "FileIdExtdDirectoryInformation", 64: "FileDispositionInformationEx", 65: "FileRenameInformationEx",
}

var fsClasses = map[int]string{
	1: "FileFsVolumeInformation", 2: "FileFsLabelInformation", 3: "FileFsSizeInformation",
	4: "FileFsDeviceInformation", 5: "FileFsAttributeInformation", 6: "FileFsControlInformation",
	7: "FileFsFullSizeInformation", 8: "FileFsObjectIdInformation", 11: "FileFsSectorSizeInformation",
}

// fsctlName names a control code, see [MS-SMB2] 2.2.31 and [MS-FSCC] 2.3.
func fsctlName(code int) string {
	if name := fsctls[code]; name != "" {
		return name
	}
	return unknown
}

var fsctls = map[int]string{
	0x00060194: "DFS_GET_REFERRALS", 0x0009009c: "GET_OBJECT_ID", 0x000900a4: "SET_REPARSE_POINT",
	0x000900a8: "GET_REPARSE_POINT", 0x000900ac: "DELETE_REPARSE_POINT", 0x000900c0: "CREATE_OR_GET_OBJECT_ID",
	0x000900c4: "SET_SPARSE", 0x0009003c: "GET_COMPRESSION", 0x0009c040: "SET_COMPRESSION",
	0x000940cf: "QUERY_ALLOCATED_RANGES", 0x000980c8: "SET_ZERO_DATA", 0x00098208: "FILE_LEVEL_TRIM",
	0x00098344: "DUPLICATE_EXTENTS_TO_FILE", 0x0011400c: "PIPE_PEEK", 0x0011c017: "PIPE_TRANSCEIVE",
	0x00110018: "PIPE_WAIT", 0x00140078: "SRV_REQUEST_RESUME_KEY", 0x001401fc: "QUERY_NETWORK_INTERFACE_INFO",
	0x00140204: "VALIDATE_NEGOTIATE_INFO", 0x00144064: "SRV_ENUMERATE_SNAPSHOTS", 0x001440f2: "SRV_COPYCHUNK",
	0x001480f2: "SRV_COPYCHUNK_WRITE",
}
