package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// LockFlags of a LockElement.
type LockFlags uint32

const (
	LockShared          LockFlags = 0x01
	LockExclusive       LockFlags = 0x02
	LockUnlock          LockFlags = 0x04
	LockFailImmediately LockFlags = 0x10
)

// LockElement is one range of a LockRequest. See [MS-SMB2] 2.2.26.1.
type LockElement struct {
	Offset uint64
	Length uint64
	Flags  LockFlags
}

// LockRequest locks or unlocks byte ranges. See [MS-SMB2] 2.2.26.
type LockRequest struct {
	LockSequence uint32 // its low four bits are the number, the others the index
	FileID       FileID
	Locks        []LockElement
}

const lockRequestSize = 48

func (m *LockRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, lockRequestSize)
	b = byteio.Append16(b, uint16(len(m.Locks)))
	b = byteio.Append32(b, m.LockSequence)
	b = m.FileID.append(b)
	for _, l := range m.Locks {
		b = byteio.Append64(b, l.Offset)
		b = byteio.Append64(b, l.Length)
		b = byteio.Append32(b, uint32(l.Flags))
		b = byteio.Append32(b, 0)
	}
	return b
}

func (m *LockRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(lockRequestSize)
	count := d.Uint16()
	m.LockSequence = d.Uint32()
	m.FileID = d.fileID()
	m.Locks = nil
	if count == 0 {
		d.fail("LockCount", errNone)
	}
	for ; count > 0 && d.Err() == nil; count-- {
		l := LockElement{d.Uint64(), d.Uint64(), LockFlags(d.Uint32())}
		d.Skip(4)
		m.Locks = append(m.Locks, l)
	}
	return d.end("LOCK request")
}

// See [MS-SMB2] 2.2.27.
type LockResponse struct{}

func (*LockResponse) Append(b []byte) []byte { return appendEmpty(b) }

func (*LockResponse) Decode(r *byteio.Reader) error { return decodeEmpty(r, "LOCK response") }
