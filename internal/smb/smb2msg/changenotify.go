package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// ChangeNotifyWatchTree watches all that is below, not only direct children.
const ChangeNotifyWatchTree uint16 = 1

// CompletionFilter says which changes are of interest.
type CompletionFilter uint32

const (
	NotifyFileName    CompletionFilter = 0x001
	NotifyDirName     CompletionFilter = 0x002
	NotifyAttributes  CompletionFilter = 0x004
	NotifySize        CompletionFilter = 0x008
	NotifyLastWrite   CompletionFilter = 0x010
	NotifyLastAccess  CompletionFilter = 0x020
	NotifyCreation    CompletionFilter = 0x040
	NotifyEA          CompletionFilter = 0x080
	NotifySecurity    CompletionFilter = 0x100
	NotifyStreamName  CompletionFilter = 0x200
	NotifyStreamSize  CompletionFilter = 0x400
	NotifyStreamWrite CompletionFilter = 0x800
)

// ChangeNotifyRequest waits for changes in a directory.
// See [MS-SMB2] 2.2.35.
type ChangeNotifyRequest struct {
	Flags              uint16
	OutputBufferLength uint32
	FileID             FileID
	CompletionFilter   CompletionFilter
}

const changeNotifyRequestSize = 32

func (m *ChangeNotifyRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, changeNotifyRequestSize)
	b = byteio.Append16(b, m.Flags)
	b = byteio.Append32(b, m.OutputBufferLength)
	b = m.FileID.append(b)
	b = byteio.Append32(b, uint32(m.CompletionFilter))
	return byteio.Append32(b, 0)
}

func (m *ChangeNotifyRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(changeNotifyRequestSize)
	m.Flags = d.Uint16()
	m.OutputBufferLength = d.Uint32()
	m.FileID = d.fileID()
	m.CompletionFilter = CompletionFilter(d.Uint32())
	d.Skip(4)
	return d.end("CHANGE_NOTIFY request")
}

// ChangeNotifyResponse holds what fscc.FileNotifyInformation describes; empty
// with STATUS_NOTIFY_ENUM_DIR: too much has changed. See [MS-SMB2] 2.2.36.
type ChangeNotifyResponse struct{ Output []byte }

func (m *ChangeNotifyResponse) Append(b []byte) []byte { return appendOutput(b, m.Output) }

func (m *ChangeNotifyResponse) Decode(r *byteio.Reader) (err error) {
	m.Output, err = decodeOutput(r, "CHANGE_NOTIFY response")
	return err
}
