package fscc

import "github.com/pagewire/pagewire/internal/byteio"

// FileEndOfFileInformation sets the size. See [MS-FSCC] 2.4.14.
type FileEndOfFileInformation struct{ EndOfFile uint64 }

func (m *FileEndOfFileInformation) Append(b []byte) []byte { return byteio.Append64(b, m.EndOfFile) }

func (m *FileEndOfFileInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.EndOfFile = f.Uint64()
	return f.end("FileEndOfFileInformation")
}

// FileAllocationInformation reserves space. See [MS-FSCC] 2.4.4.
type FileAllocationInformation struct{ AllocationSize uint64 }

func (m *FileAllocationInformation) Append(b []byte) []byte {
	return byteio.Append64(b, m.AllocationSize)
}

func (m *FileAllocationInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.AllocationSize = f.Uint64()
	return f.end("FileAllocationInformation")
}

// FileDispositionInformation says whether the last close deletes the file.
// See [MS-FSCC] 2.4.11.
type FileDispositionInformation struct{ DeletePending bool }

func (m *FileDispositionInformation) Append(b []byte) []byte { return appendBool(b, m.DeletePending) }

func (m *FileDispositionInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.DeletePending = f.bool()
	return f.end("FileDispositionInformation")
}

// Flags of a FileDispositionInformationEx.
const (
	DispositionDelete                  uint32 = 0x01
	DispositionPosixSemantics          uint32 = 0x02
	DispositionForceImageSectionCheck  uint32 = 0x04
	DispositionOnClose                 uint32 = 0x08
	DispositionIgnoreReadonlyAttribute uint32 = 0x10
)

// FileDispositionInformationEx can also unlink at once. See [MS-FSCC] 2.4.12.
type FileDispositionInformationEx struct{ Flags uint32 }

func (m *FileDispositionInformationEx) Append(b []byte) []byte { return byteio.Append32(b, m.Flags) }

func (m *FileDispositionInformationEx) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.Flags = f.Uint32()
	return f.end("FileDispositionInformationEx")
}

// FileRenameInformation renames a file, in the form that SMB2 has. FileName is
// relative to the share. See [MS-FSCC] 2.4.42.2.
type FileRenameInformation struct {
	ReplaceIfExists bool
	FileName        string
}

func (m *FileRenameInformation) Append(b []byte) []byte {
	return appendNewName(appendBool(b, m.ReplaceIfExists), 7, m.FileName)
}

func (m *FileRenameInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.ReplaceIfExists = f.bool()
	m.FileName = f.newName(7)
	return f.end("FileRenameInformation")
}

// FileLinkInformation gives a file one more name. See [MS-FSCC] 2.4.28.2.
type FileLinkInformation struct {
	ReplaceIfExists bool
	FileName        string
}

func (m *FileLinkInformation) Append(b []byte) []byte {
	return appendNewName(appendBool(b, m.ReplaceIfExists), 7, m.FileName)
}

func (m *FileLinkInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.ReplaceIfExists = f.bool()
	m.FileName = f.newName(7)
	return f.end("FileLinkInformation")
}

// Flags of a FileRenameInformationEx.
const (
	RenameReplaceIfExists         uint32 = 0x01
	RenamePosixSemantics          uint32 = 0x02
	RenameSuppressPinInheritance  uint32 = 0x04
	RenameIgnoreReadonlyAttribute uint32 = 0x40
)

// FileRenameInformationEx can also replace a file that is open.
// See [MS-FSCC] 2.4.43.
type FileRenameInformationEx struct {
	Flags    uint32
	FileName string
}

func (m *FileRenameInformationEx) Append(b []byte) []byte {
	return appendNewName(byteio.Append32(b, m.Flags), 4, m.FileName)
}

func (m *FileRenameInformationEx) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.Flags = f.Uint32()
	m.FileName = f.newName(4)
	return f.end("FileRenameInformationEx")
}

// appendNewName appends all that follows the flags: reserved bytes, a root
// directory that SMB2 doesn't use, and the name. Windows refuses less than 24
// bytes in all, which is where its own structure ends.
func appendNewName(b []byte, reserved int, name string) []byte {
	b = byteio.AppendZero(b, reserved+8)
	b = appendText(b, name)
	if n := 2 * byteio.UTF16Len(name); n < 4 {
		b = byteio.AppendZero(b, 4-n)
	}
	return b
}

func (f fields) newName(reserved int64) string {
	f.Skip(reserved + 8)
	return f.text("FileName", f.Uint32())
}
