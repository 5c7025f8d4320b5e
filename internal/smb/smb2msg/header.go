package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

const (
	// HeaderSize is the length of every message's header.
	HeaderSize = 64

	// SignatureOffset is where the 16 bytes of the signature lie in a header.
	SignatureOffset = 48

	nextCommandOffset = 20
)

// Command says what a message asks for.
type Command uint16

// See [MS-SMB2] 2.2.1.
const (
	CommandNegotiate Command = iota
	CommandSessionSetup
	CommandLogoff
	CommandTreeConnect
	CommandTreeDisconnect
	CommandCreate
	CommandClose
	CommandFlush
	CommandRead
	CommandWrite
	CommandLock
	CommandIoctl
	CommandCancel
	CommandEcho
	CommandQueryDirectory
	CommandChangeNotify
	CommandQueryInfo
	CommandSetInfo
	CommandOplockBreak
)

var commandNames = [...]string{
	"NEGOTIATE", "SESSION_SETUP", "LOGOFF", "TREE_CONNECT", "TREE_DISCONNECT", "CREATE", "CLOSE", "FLUSH", "READ", "WRITE",
	"LOCK", "IOCTL", "CANCEL", "ECHO", "QUERY_DIRECTORY", "CHANGE_NOTIFY", "QUERY_INFO", "SET_INFO", "OPLOCK_BREAK",
}

func (c Command) String() string {
	if int(c) < len(commandNames) {
		return commandNames[c]
	}
	return fmt.Sprintf("command %#x", uint16(c))
}

// Flags of a header.
type Flags uint32

const (
	FlagServerToRedir Flags = 0x00000001 // a reply
	FlagAsync         Flags = 0x00000002
	FlagRelated       Flags = 0x00000004
	FlagSigned        Flags = 0x00000008
	FlagPriorityMask  Flags = 0x00000070
	FlagDFS           Flags = 0x10000000
	FlagReplay        Flags = 0x20000000
)

// Header starts every message. See [MS-SMB2] 2.2.1.1 (async) and 2.2.1.2
// (sync): FlagAsync says which of AsyncID and TreeID is there.
type Header struct {
	CreditCharge uint16
	Status       ntstatus.Status // in a request, its low half is the ChannelSequence
	Command      Command
	Credits      uint16 // asked for or granted
	Flags        Flags
	NextCommand  uint32
	MessageID    uint64
	AsyncID      uint64
	TreeID       uint32
	SessionID    uint64
	Signature    [16]byte
}

func (h *Header) Append(b []byte) []byte {
	b = byteio.Append32(b, uint32(ProtocolSMB2))
	b = byteio.Append16(b, HeaderSize)
	b = byteio.Append16(b, h.CreditCharge)
	b = byteio.Append32(b, uint32(h.Status))
	b = byteio.Append16(b, uint16(h.Command))
	b = byteio.Append16(b, h.Credits)
	b = byteio.Append32(b, uint32(h.Flags))
	b = byteio.Append32(b, h.NextCommand)
	b = byteio.Append64(b, h.MessageID)
	if h.Flags&FlagAsync != 0 {
		b = byteio.Append64(b, h.AsyncID)
	} else {
		b = byteio.Append32(b, 0)
		b = byteio.Append32(b, h.TreeID)
	}
	b = byteio.Append64(b, h.SessionID)
	return append(b, h.Signature[:]...)
}

// Decode reads the header that r stands at.
func (h *Header) Decode(r *byteio.Reader) error {
	d := body{r}
	if p := Protocol(d.Uint32()); p != ProtocolSMB2 && d.Err() == nil {
		d.fail("ProtocolId", fmt.Errorf("is %v", p))
	}
	d.size(HeaderSize)
	h.CreditCharge = d.Uint16()
	h.Status = ntstatus.Status(d.Uint32())
	h.Command = Command(d.Uint16())
	h.Credits = d.Uint16()
	h.Flags = Flags(d.Uint32())
	h.NextCommand = d.Uint32()
	h.MessageID = d.Uint64()
	h.AsyncID, h.TreeID = 0, 0
	if h.Flags&FlagAsync != 0 {
		h.AsyncID = d.Uint64()
	} else {
		d.Skip(4)
		h.TreeID = d.Uint32()
	}
	h.SessionID = d.Uint64()
	d.Copy(h.Signature[:])
	return d.end("header")
}
