package smb2msg

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// LeaseState is what a lease lets its owner cache.
type LeaseState uint32

const (
	LeaseRead   LeaseState = 1
	LeaseHandle LeaseState = 2
	LeaseWrite  LeaseState = 4
)

// LeaseFlags of a Lease.
type LeaseFlags uint32

const (
	LeaseFlagBreakInProgress   LeaseFlags = 2
	LeaseFlagParentLeaseKeySet LeaseFlags = 4 // V2 only
)

// Lease asks for a lease or grants one. V2 comes with 3.0; its form must be
// that of the request. See [MS-SMB2] 2.2.13.2.8, 2.2.13.2.10, 2.2.14.2.10 and
// 2.2.14.2.11.
type Lease struct {
	LeaseKey       [16]byte
	LeaseState     LeaseState
	LeaseFlags     LeaseFlags
	V2             bool
	ParentLeaseKey [16]byte // V2 only
	Epoch          uint16   // V2 only
}

const (
	leaseSize   = 32
	leaseV2Size = 52
)

func (m *Lease) Append(b []byte) []byte {
	b = append(b, m.LeaseKey[:]...)
	b = byteio.Append32(b, uint32(m.LeaseState))
	b = byteio.Append32(b, uint32(m.LeaseFlags))
	b = byteio.Append64(b, 0)
	if m.V2 {
		b = append(b, m.ParentLeaseKey[:]...)
		b = byteio.Append16(b, m.Epoch)
		b = byteio.Append16(b, 0)
	}
	return b
}

func (m *Lease) Decode(r *byteio.Reader) error {
	d := body{r}
	*m = Lease{}
	switch n := d.Len(); n {
	case leaseSize:
	case leaseV2Size:
		m.V2 = true
	default:
		d.fail("DataLength", fmt.Errorf("is %d, want %d or %d", n, leaseSize, leaseV2Size))
	}
	m.LeaseKey = d.array16()
	m.LeaseState = LeaseState(d.Uint32())
	m.LeaseFlags = LeaseFlags(d.Uint32())
	d.Skip(8)
	if m.V2 {
		m.ParentLeaseKey = d.array16()
		m.Epoch = d.Uint16()
		d.Skip(2)
	}
	return d.end(ContextRqLs)
}
