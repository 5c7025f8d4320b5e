package fscc

import "github.com/pagewire/pagewire/internal/byteio"

// FileBasicInformation has times and attributes. In a request, zero fields are
// left alone. See [MS-FSCC] 2.4.7.
type FileBasicInformation struct {
	CreationTime   Filetime
	LastAccessTime Filetime
	LastWriteTime  Filetime
	ChangeTime     Filetime
	FileAttributes FileAttributes
}

func (m *FileBasicInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, uint64(m.CreationTime))
	b = byteio.Append64(b, uint64(m.LastAccessTime))
	b = byteio.Append64(b, uint64(m.LastWriteTime))
	b = byteio.Append64(b, uint64(m.ChangeTime))
	b = byteio.Append32(b, uint32(m.FileAttributes))
	return byteio.Append32(b, 0)
}

func (m *FileBasicInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.CreationTime = f.filetime()
	m.LastAccessTime = f.filetime()
	m.LastWriteTime = f.filetime()
	m.ChangeTime = f.filetime()
	m.FileAttributes = FileAttributes(f.Uint32())
	f.Skip(4)
	return f.end("FileBasicInformation")
}

// FileStandardInformation has sizes and links. See [MS-FSCC] 2.4.47.
type FileStandardInformation struct {
	AllocationSize uint64
	EndOfFile      uint64
	NumberOfLinks  uint32
	DeletePending  bool
	Directory      bool
}

func (m *FileStandardInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, m.AllocationSize)
	b = byteio.Append64(b, m.EndOfFile)
	b = byteio.Append32(b, m.NumberOfLinks)
	b = appendBool(b, m.DeletePending)
	b = appendBool(b, m.Directory)
	return byteio.Append16(b, 0)
}

func (m *FileStandardInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.AllocationSize = f.Uint64()
	m.EndOfFile = f.Uint64()
	m.NumberOfLinks = f.Uint32()
	m.DeletePending = f.bool()
	m.Directory = f.bool()
	f.Skip(2)
	return f.end("FileStandardInformation")
}

// FileInternalInformation numbers a file in its volume. See [MS-FSCC] 2.4.27.
type FileInternalInformation struct{ IndexNumber uint64 }

func (m *FileInternalInformation) Append(b []byte) []byte { return byteio.Append64(b, m.IndexNumber) }

func (m *FileInternalInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.IndexNumber = f.Uint64()
	return f.end("FileInternalInformation")
}

// FileEaInformation says how large the extended attributes are.
// See [MS-FSCC] 2.4.13.
type FileEaInformation struct{ EaSize uint32 }

func (m *FileEaInformation) Append(b []byte) []byte { return byteio.Append32(b, m.EaSize) }

func (m *FileEaInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.EaSize = f.Uint32()
	return f.end("FileEaInformation")
}

// FilePositionInformation is a position in a file that the server keeps and
// SMB2 never uses. See [MS-FSCC] 2.4.40.
type FilePositionInformation struct{ CurrentByteOffset uint64 }

func (m *FilePositionInformation) Append(b []byte) []byte {
	return byteio.Append64(b, m.CurrentByteOffset)
}

func (m *FilePositionInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.CurrentByteOffset = f.Uint64()
	return f.end("FilePositionInformation")
}

// FileNameInformation is what FileAlternateNameInformation and
// FileNormalizedNameInformation are, too. See [MS-FSCC] 2.1.7.
type FileNameInformation struct{ FileName string }

func (m *FileNameInformation) Append(b []byte) []byte { return appendText(b, m.FileName) }

func (m *FileNameInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.FileName = f.text("FileName", f.Uint32())
	return f.end("FileNameInformation")
}

// FileAllInformation is many in one. A server that has less room for the name
// than it needs cuts it and answers STATUS_BUFFER_OVERFLOW; that is malformed
// here, so ask with room for it. See [MS-FSCC] 2.4.2.
type FileAllInformation struct {
	Basic                FileBasicInformation
	Standard             FileStandardInformation
	Internal             FileInternalInformation
	Ea                   FileEaInformation
	AccessFlags          uint32
	Position             FilePositionInformation
	Mode                 uint32
	AlignmentRequirement uint32
	Name                 FileNameInformation
}

func (m *FileAllInformation) Append(b []byte) []byte {
	b = m.Basic.Append(b)
	b = m.Standard.Append(b)
	b = m.Internal.Append(b)
	b = m.Ea.Append(b)
	b = byteio.Append32(b, m.AccessFlags)
	b = m.Position.Append(b)
	b = byteio.Append32(b, m.Mode)
	b = byteio.Append32(b, m.AlignmentRequirement)
	return m.Name.Append(b)
}

// Decode relies on failures that stick: the last part reports those of all.
func (m *FileAllInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.Basic.Decode(r)
	m.Standard.Decode(r)
	m.Internal.Decode(r)
	m.Ea.Decode(r)
	m.AccessFlags = f.Uint32()
	m.Position.Decode(r)
	m.Mode = f.Uint32()
	m.AlignmentRequirement = f.Uint32()
	m.Name.Decode(r)
	return f.end("FileAllInformation")
}

// FileNetworkOpenInformation is what a stat needs. See [MS-FSCC] 2.4.34.
type FileNetworkOpenInformation struct {
	CreationTime   Filetime
	LastAccessTime Filetime
	LastWriteTime  Filetime
	ChangeTime     Filetime
	AllocationSize uint64
	EndOfFile      uint64
	FileAttributes FileAttributes
}

func (m *FileNetworkOpenInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, uint64(m.CreationTime))
	b = byteio.Append64(b, uint64(m.LastAccessTime))
	b = byteio.Append64(b, uint64(m.LastWriteTime))
	b = byteio.Append64(b, uint64(m.ChangeTime))
	b = byteio.Append64(b, m.AllocationSize)
	b = byteio.Append64(b, m.EndOfFile)
	b = byteio.Append32(b, uint32(m.FileAttributes))
	return byteio.Append32(b, 0)
}

func (m *FileNetworkOpenInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.CreationTime = f.filetime()
	m.LastAccessTime = f.filetime()
	m.LastWriteTime = f.filetime()
	m.ChangeTime = f.filetime()
	m.AllocationSize = f.Uint64()
	m.EndOfFile = f.Uint64()
	m.FileAttributes = FileAttributes(f.Uint32())
	f.Skip(4)
	return f.end("FileNetworkOpenInformation")
}

// FileAttributeTagInformation says what kind of reparse point a file is.
// See [MS-FSCC] 2.4.6.
type FileAttributeTagInformation struct {
	FileAttributes FileAttributes
	ReparseTag     ReparseTag
}

func (m *FileAttributeTagInformation) Append(b []byte) []byte {
	return byteio.Append32(byteio.Append32(b, uint32(m.FileAttributes)), uint32(m.ReparseTag))
}

func (m *FileAttributeTagInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.FileAttributes = FileAttributes(f.Uint32())
	m.ReparseTag = ReparseTag(f.Uint32())
	return f.end("FileAttributeTagInformation")
}

// FileIDInformation numbers a file for good. See [MS-FSCC] 2.4.26.
type FileIDInformation struct {
	VolumeSerialNumber uint64
	FileID             [16]byte
}

func (m *FileIDInformation) Append(b []byte) []byte {
	return append(byteio.Append64(b, m.VolumeSerialNumber), m.FileID[:]...)
}

func (m *FileIDInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.VolumeSerialNumber = f.Uint64()
	f.Copy(m.FileID[:])
	return f.end("FileIdInformation")
}
