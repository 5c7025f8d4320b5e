package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

// CreateContext is an extra of a CREATE request or response; its Name says
// what Data holds. See [MS-SMB2] 2.2.13.2 and 2.2.14.2.
type CreateContext struct {
	Name string
	Data []byte
}

// Names of create contexts, and what their Data is in requests and responses.
const (
	ContextExtA = "ExtA" // extended attributes, none
	ContextSecD = "SecD" // a security descriptor, none
	ContextDHnQ = "DHnQ" // DurableHandleRequest, DurableHandleResponse
	ContextDHnC = "DHnC" // DurableHandleReconnect, DurableHandleResponse
	ContextDH2Q = "DH2Q" // DurableHandleRequestV2, DurableHandleResponseV2
	ContextDH2C = "DH2C" // DurableHandleReconnectV2, DurableHandleResponseV2
	ContextAlSi = "AlSi" // AllocationSize, none
	ContextMxAc = "MxAc" // QueryMaximalAccessRequest, QueryMaximalAccessResponse
	ContextTWrp = "TWrp" // TimewarpToken, none
	ContextQFid = "QFid" // empty, QueryOnDiskIDResponse
	ContextRqLs = "RqLs" // Lease, Lease
)

// NewCreateContext makes a context out of its structure; nil is no data.
func NewCreateContext(name string, data interface{ Append([]byte) []byte }) CreateContext {
	c := CreateContext{Name: name}
	if data != nil {
		c.Data = data.Append(nil)
	}
	return c
}

// FindContext returns a Reader over the data of the first context with a name.
func FindContext(contexts []CreateContext, name string) (byteio.Reader, bool) {
	for i := range contexts {
		if contexts[i].Name == name {
			return byteio.NewReader(contexts[i].Data), true
		}
	}
	return byteio.Reader{}, false
}

const createContextHeader = 16

// appendCreateContexts appends a list and puts its offset and length at
// b[field:].
func appendCreateContexts(b []byte, start, field int, list []CreateContext) []byte {
	if len(list) == 0 {
		return b
	}
	b = byteio.Pad(b, start, 8)
	first := len(b)
	for i, c := range list {
		here := len(b)
		b = byteio.Append32(b, 0)
		b = byteio.Append16(b, createContextHeader)
		b = byteio.Append16(b, uint16(len(c.Name)))
		b = byteio.Append16(b, 0)
		data := len(b)
		b = byteio.AppendZero(b, 6)
		b = append(b, c.Name...)
		b = byteio.Pad(b, here, 8)
		if len(c.Data) > 0 {
			byteio.Put16(b[data:], uint16(len(b)-here))
			byteio.Put32(b[data+2:], uint32(len(c.Data)))
			b = append(b, c.Data...)
		}
		if i < len(list)-1 {
			b = byteio.Pad(b, here, 8)
			byteio.Put32(b[here:], uint32(len(b)-here))
		}
	}
	byteio.Put32(b[field:], uint32(first-start))
	byteio.Put32(b[field+4:], uint32(len(b)-first))
	return b
}

func (d body) createContexts(off, length int64) []CreateContext {
	const field = "CreateContexts"
	var list []CreateContext
	for length > 0 && d.Err() == nil {
		r := byteio.NewReader(d.buffer(field, off, length))
		size := length
		next := int64(r.Uint32())
		if next != 0 {
			if next < createContextHeader || next%8 != 0 || next >= length {
				d.fail(field, errPlace)
				break
			}
			size = next
		}
		c := byteio.NewReader(r.At(0, size))
		c.Skip(4)
		nameOff, nameLen := c.Uint16(), c.Uint16()
		c.Skip(2)
		dataOff, dataLen := c.Uint16(), c.Uint32()
		name, data := c.At(int64(nameOff), int64(nameLen)), c.At(int64(dataOff), int64(dataLen))
		if err := c.Err(); err != nil && d.Err() == nil {
			d.fail(field, err)
			break
		}
		list = append(list, CreateContext{string(name), data})
		if next == 0 {
			break
		}
		off, length = off+next, length-next
	}
	return list
}

// QueryMaximalAccessRequest asks what the user may do, unless nothing has
// changed since Timestamp. Zero leaves that out. See [MS-SMB2] 2.2.13.2.5.
type QueryMaximalAccessRequest struct{ Timestamp fscc.Filetime }

func (m *QueryMaximalAccessRequest) Append(b []byte) []byte {
	if m.Timestamp == 0 {
		return b
	}
	return byteio.Append64(b, uint64(m.Timestamp))
}

func (m *QueryMaximalAccessRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Timestamp = 0
	if d.Len() > 0 {
		m.Timestamp = d.filetime()
	}
	return d.end(ContextMxAc)
}

// See [MS-SMB2] 2.2.14.2.5.
type QueryMaximalAccessResponse struct {
	QueryStatus   ntstatus.Status
	MaximalAccess AccessMask // if QueryStatus is success
}

func (m *QueryMaximalAccessResponse) Append(b []byte) []byte {
	return byteio.Append32(byteio.Append32(b, uint32(m.QueryStatus)), uint32(m.MaximalAccess))
}

func (m *QueryMaximalAccessResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	m.QueryStatus = ntstatus.Status(d.Uint32())
	m.MaximalAccess = AccessMask(d.Uint32())
	return d.end(ContextMxAc)
}

// QueryOnDiskIDResponse identifies a file. See [MS-SMB2] 2.2.14.2.9.
type QueryOnDiskIDResponse struct{ DiskFileID, VolumeID uint64 }

func (m *QueryOnDiskIDResponse) Append(b []byte) []byte {
	b = byteio.Append64(b, m.DiskFileID)
	b = byteio.Append64(b, m.VolumeID)
	return byteio.AppendZero(b, 16)
}

func (m *QueryOnDiskIDResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	m.DiskFileID, m.VolumeID = d.Uint64(), d.Uint64()
	d.Skip(16)
	return d.end(ContextQFid)
}

// AllocationSize is the space to reserve. See [MS-SMB2] 2.2.13.2.6.
type AllocationSize struct{ AllocationSize uint64 }

func (m *AllocationSize) Append(b []byte) []byte { return byteio.Append64(b, m.AllocationSize) }

func (m *AllocationSize) Decode(r *byteio.Reader) error {
	d := body{r}
	m.AllocationSize = d.Uint64()
	return d.end(ContextAlSi)
}

// TimewarpToken names a snapshot by its time. See [MS-SMB2] 2.2.13.2.7.
type TimewarpToken struct{ Timestamp fscc.Filetime }

func (m *TimewarpToken) Append(b []byte) []byte { return byteio.Append64(b, uint64(m.Timestamp)) }

func (m *TimewarpToken) Decode(r *byteio.Reader) error {
	d := body{r}
	m.Timestamp = d.filetime()
	return d.end(ContextTWrp)
}
