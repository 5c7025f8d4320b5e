package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// Flags of a ReadRequest.
const (
	ReadUnbuffered        uint8 = 1
	ReadRequestCompressed uint8 = 2
)

// ReadRequest reads from a file or a pipe. Padding is where the client would
// like the data to start in the response. See [MS-SMB2] 2.2.19.
type ReadRequest struct {
	Padding        uint8
	Flags          uint8
	Length         uint32
	Offset         uint64
	FileID         FileID
	MinimumCount   uint32
	Channel        uint32
	RemainingBytes uint32
}

const (
	readRequestSize  = 49
	readResponseSize = 17

	// ReadDataOffset is where data starts in a response at the earliest, and
	// in ours.
	ReadDataOffset = HeaderSize + readResponseSize - 1
)

func (m *ReadRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, readRequestSize)
	b = append(b, m.Padding, m.Flags)
	b = byteio.Append32(b, m.Length)
	b = byteio.Append64(b, m.Offset)
	b = m.FileID.append(b)
	b = byteio.Append32(b, m.MinimumCount)
	b = byteio.Append32(b, m.Channel)
	b = byteio.Append32(b, m.RemainingBytes)
	return byteio.AppendZero(b, 5) // ReadChannelInfo, which only RDMA has
}

func (m *ReadRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(readRequestSize)
	m.Padding = d.Uint8()
	m.Flags = d.Uint8()
	m.Length = d.Uint32()
	m.Offset = d.Uint64()
	m.FileID = d.fileID()
	m.MinimumCount = d.Uint32()
	m.Channel = d.Uint32()
	m.RemainingBytes = d.Uint32()
	d.Skip(4)
	return d.end("READ request")
}

// ReadResponse comes before the data. See [MS-SMB2] 2.2.20.
type ReadResponse struct {
	DataOffset    uint8 // from the header; Append ignores it and writes ReadDataOffset
	DataLength    uint32
	DataRemaining uint32
	Flags         uint32
	Data          []byte // set by Decode only
}

// Append appends the fixed part: DataLength bytes are to follow it.
func (m *ReadResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, readResponseSize)
	b = append(b, ReadDataOffset, 0)
	b = byteio.Append32(b, m.DataLength)
	b = byteio.Append32(b, m.DataRemaining)
	return byteio.Append32(b, m.Flags)
}

// DecodeHead reads the fixed part and leaves Data, which need not be there yet,
// alone. The data starts DataOffset-ReadDataOffset bytes behind where r stands
// then, which is never negative if there is any.
func (m *ReadResponse) DecodeHead(r *byteio.Reader) error {
	d := body{r}
	d.size(readResponseSize)
	m.DataOffset = d.Uint8()
	d.Skip(1)
	m.DataLength = d.Uint32()
	m.DataRemaining = d.Uint32()
	m.Flags = d.Uint32()
	if m.DataLength > 0 && m.DataOffset < ReadDataOffset {
		d.fail("DataOffset", errOverlap)
	}
	return d.end("READ response")
}

// Decode is for messages that are wholly in memory.
func (m *ReadResponse) Decode(r *byteio.Reader) error {
	m.Data = nil
	if err := m.DecodeHead(r); err != nil {
		return err
	}
	d := body{r}
	m.Data = d.buffer("Data", int64(m.DataOffset), int64(m.DataLength))
	return d.end("READ response")
}
