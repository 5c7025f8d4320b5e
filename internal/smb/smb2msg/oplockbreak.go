package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// Oplocks and leases break in messages of one command, which only their
// StructureSize tells apart.
const (
	oplockBreakSize            = 24
	leaseBreakNotificationSize = 44
	leaseBreakSize             = 36
)

// IsLeaseBreak says whether an OPLOCK_BREAK message, header included, is about
// a lease.
func IsLeaseBreak(message []byte) bool {
	r := byteio.NewReader(message)
	r.Skip(HeaderSize)
	size := r.Uint16()
	return size == leaseBreakNotificationSize || size == leaseBreakSize
}

// OplockBreak is the notification, its acknowledgment and the response to
// that, which look alike. See [MS-SMB2] 2.2.23.1, 2.2.24.1 and 2.2.25.1.
type OplockBreak struct {
	OplockLevel OplockLevel
	FileID      FileID
}

func (m *OplockBreak) Append(b []byte) []byte {
	b = byteio.Append16(b, oplockBreakSize)
	b = append(b, byte(m.OplockLevel), 0)
	b = byteio.Append32(b, 0)
	return m.FileID.append(b)
}

func (m *OplockBreak) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(oplockBreakSize)
	m.OplockLevel = OplockLevel(d.Uint8())
	d.Skip(5)
	m.FileID = d.fileID()
	return d.end("oplock break")
}

// LeaseBreakAckRequired in a LeaseBreakNotification: the server waits for a
// LeaseBreak.
const LeaseBreakAckRequired uint32 = 1

// LeaseBreakNotification takes rights away. See [MS-SMB2] 2.2.23.2.
type LeaseBreakNotification struct {
	NewEpoch          uint16 // for V2 leases
	Flags             uint32
	LeaseKey          [16]byte
	CurrentLeaseState LeaseState
	NewLeaseState     LeaseState
}

func (m *LeaseBreakNotification) Append(b []byte) []byte {
	b = byteio.Append16(b, leaseBreakNotificationSize)
	b = byteio.Append16(b, m.NewEpoch)
	b = byteio.Append32(b, m.Flags)
	b = append(b, m.LeaseKey[:]...)
	b = byteio.Append32(b, uint32(m.CurrentLeaseState))
	b = byteio.Append32(b, uint32(m.NewLeaseState))
	return byteio.AppendZero(b, 12)
}

func (m *LeaseBreakNotification) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(leaseBreakNotificationSize)
	m.NewEpoch = d.Uint16()
	m.Flags = d.Uint32()
	m.LeaseKey = d.array16()
	m.CurrentLeaseState = LeaseState(d.Uint32())
	m.NewLeaseState = LeaseState(d.Uint32())
	d.Skip(12)
	return d.end("lease break notification")
}

// LeaseBreak is the acknowledgment and the response to that, which look alike.
// See [MS-SMB2] 2.2.24.2 and 2.2.25.2.
type LeaseBreak struct {
	LeaseKey   [16]byte
	LeaseState LeaseState
}

func (m *LeaseBreak) Append(b []byte) []byte {
	b = byteio.Append16(b, leaseBreakSize)
	b = byteio.AppendZero(b, 6)
	b = append(b, m.LeaseKey[:]...)
	b = byteio.Append32(b, uint32(m.LeaseState))
	return byteio.Append64(b, 0)
}

func (m *LeaseBreak) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(leaseBreakSize)
	d.Skip(6)
	m.LeaseKey = d.array16()
	m.LeaseState = LeaseState(d.Uint32())
	d.Skip(8)
	return d.end("lease break")
}
