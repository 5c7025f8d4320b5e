package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// Flags of a WriteRequest.
const (
	WriteThrough    uint32 = 1
	WriteUnbuffered uint32 = 2
)

// WriteRequest comes before the data. See [MS-SMB2] 2.2.21.
type WriteRequest struct {
	DataOffset     uint16 // from the header; Append ignores it and writes WriteDataOffset
	Length         uint32
	Offset         uint64
	FileID         FileID
	Channel        uint32
	RemainingBytes uint32
	Flags          uint32
	Data           []byte // set by Decode only
}

const (
	writeRequestSize  = 49
	writeResponseSize = 17

	// WriteDataOffset is where data starts in a request at the earliest, and
	// in ours.
	WriteDataOffset = HeaderSize + writeRequestSize - 1
)

// Append appends the fixed part: Length bytes are to follow it.
func (m *WriteRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, writeRequestSize)
	b = byteio.Append16(b, WriteDataOffset)
	b = byteio.Append32(b, m.Length)
	b = byteio.Append64(b, m.Offset)
	b = m.FileID.append(b)
	b = byteio.Append32(b, m.Channel)
	b = byteio.Append32(b, m.RemainingBytes)
	b = byteio.Append32(b, 0) // WriteChannelInfo, which only RDMA has
	return byteio.Append32(b, m.Flags)
}

// DecodeHead reads the fixed part and leaves Data, which need not be there yet,
// alone. The data starts DataOffset-WriteDataOffset bytes behind where r stands
// then, which is never negative if there is any.
func (m *WriteRequest) DecodeHead(r *byteio.Reader) error {
	d := body{r}
	d.size(writeRequestSize)
	m.DataOffset = d.Uint16()
	m.Length = d.Uint32()
	m.Offset = d.Uint64()
	m.FileID = d.fileID()
	m.Channel = d.Uint32()
	m.RemainingBytes = d.Uint32()
	d.Skip(4)
	m.Flags = d.Uint32()
	if m.Length > 0 && m.DataOffset < WriteDataOffset {
		d.fail("DataOffset", errOverlap)
	}
	return d.end("WRITE request")
}

// Decode is for messages that are wholly in memory.
func (m *WriteRequest) Decode(r *byteio.Reader) error {
	m.Data = nil
	if err := m.DecodeHead(r); err != nil {
		return err
	}
	d := body{r}
	m.Data = d.buffer("Data", int64(m.DataOffset), int64(m.Length))
	return d.end("WRITE request")
}

// See [MS-SMB2] 2.2.22.
type WriteResponse struct{ Count, Remaining uint32 }

func (m *WriteResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, writeResponseSize)
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, m.Count)
	b = byteio.Append32(b, m.Remaining)
	return byteio.Append32(b, 0)
}

func (m *WriteResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(writeResponseSize)
	d.Skip(2)
	m.Count = d.Uint32()
	m.Remaining = d.Uint32()
	d.Skip(4)
	return d.end("WRITE response")
}
