package smbserver

import (
	"time"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

// BreakNotification is the Command of the notice of a break, which no client has
// requested. It can be delayed, and with it those behind it, and all that can happen
// to a frame can happen to it.
const BreakNotification = "BREAK_NOTIFICATION"

// Request is what a fault can be chosen by.
type Request struct {
	Command   string // "READ", "QUERY_DIRECTORY"
	N         int    // the how manieth of its command that this server gets, from 1
	MessageID uint64
	Conn      int    // the how manieth connection it came on, from 1
	Name      string // of a CREATE and of what concerns an open file: its path, with slashes
	Offset    int64  // of READ and WRITE
	Length    int
	Compound  int  // its place in a compound, from 0
	Last      bool // it is the last of its frame
}

// Fault is what goes wrong with a request; zero fields do not. In a compound,
// Status, Short, Credits, Mutate and, unless the frame is sealed, BadSignature
// concern one request, the others the whole frame.
type Fault struct {
	// Before the request is served.

	Interim bool            // a STATUS_PENDING comes first; not in compounds
	Delay   time.Duration   // it is served this much later; until then it can be cancelled
	Status  ntstatus.Status // it is answered with this, and not served
	Short   int             // READ and WRITE take at most this many bytes

	// The reply, before it is signed and sealed.

	Credits *int                // grant so many
	Mutate  func([]byte) []byte // what to send instead, from the SMB2 header on

	// The frame that is sent.

	BadSignature bool // one bit of its signature is wrong
	Corrupt      int  // one bit of the n-th byte is wrong, from 1; negative: counting from the end
	CutAt        int  // the connection ends after so many bytes, the first four being the frame's length
	Drop         bool // it is not sent at all
	Duplicate    bool // it is sent twice
	Hold         int  // it is sent after so many later ones
}

// merge adds what g does to a frame to f.
func (f *Fault) merge(g Fault) {
	f.Interim = f.Interim || g.Interim
	f.Delay = max(f.Delay, g.Delay)
	f.BadSignature = f.BadSignature || g.BadSignature
	f.Drop = f.Drop || g.Drop
	f.Duplicate = f.Duplicate || g.Duplicate
	f.Hold = max(f.Hold, g.Hold)
	if g.Corrupt != 0 {
		f.Corrupt = g.Corrupt
	}
	if g.CutAt != 0 {
		f.CutAt = g.CutAt
	}
}
