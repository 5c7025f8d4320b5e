// Package fscc holds the structures of [MS-FSCC] that travel inside SMB
// messages: file and volume information, directory entries, change
// notifications and reparse points.
//
// It owns their bytes alone. It knows no message that carries them, does no
// I/O, and does not judge names. It has no lock.
//
// The subsections of [MS-FSCC] 2.4 are renumbered whenever a class is added;
// where a number here misleads, the name does not.
package fscc

import (
	"errors"
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// MalformedError says what in a peer's message makes no sense.
type MalformedError struct {
	Message string // the message or structure
	Field   string // the field; empty if the message ends too early to say
	Err     error  // byteio.ErrShort, or what else is wrong
}

func (e *MalformedError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("malformed %s: %v", e.Message, e.Err)
	}
	return fmt.Sprintf("malformed %s: %s: %v", e.Message, e.Field, e.Err)
}

func (e *MalformedError) Unwrap() error { return e.Err }

// Class is the number of a file information class or, in a different number
// space, of a volume information class.
type Class uint8

// See [MS-FSCC] 2.4.
const (
	ClassFileDirectory       Class = 1
	ClassFileFullDirectory   Class = 2
	ClassFileBothDirectory   Class = 3
	ClassFileBasic           Class = 4
	ClassFileStandard        Class = 5
	ClassFileInternal        Class = 6
	ClassFileEa              Class = 7
	ClassFileAccess          Class = 8
	ClassFileRename          Class = 10
	ClassFileLink            Class = 11
	ClassFileNames           Class = 12
	ClassFileDisposition     Class = 13
	ClassFilePosition        Class = 14
	ClassFileFullEa          Class = 15
	ClassFileMode            Class = 16
	ClassFileAlignment       Class = 17
	ClassFileAll             Class = 18
	ClassFileAllocation      Class = 19
	ClassFileEndOfFile       Class = 20
	ClassFileAlternateName   Class = 21
	ClassFileStream          Class = 22
	ClassFileCompression     Class = 28
	ClassFileNetworkOpen     Class = 34
	ClassFileAttributeTag    Class = 35
	ClassFileIDBothDirectory Class = 37
	ClassFileIDFullDirectory Class = 38
	ClassFileNormalizedName  Class = 48
	ClassFileID              Class = 59
	ClassFileIDExtdDirectory Class = 60
	ClassFileDispositionEx   Class = 64
	ClassFileRenameEx        Class = 65
)

// See [MS-FSCC] 2.5.
const (
	ClassFileFsVolume     Class = 1
	ClassFileFsSize       Class = 3
	ClassFileFsDevice     Class = 4
	ClassFileFsAttribute  Class = 5
	ClassFileFsFullSize   Class = 7
	ClassFileFsSectorSize Class = 11
)

// FileAttributes are the DOS attributes. See [MS-FSCC] 2.6.
type FileAttributes uint32

const (
	AttributeReadonly          FileAttributes = 0x00000001
	AttributeHidden            FileAttributes = 0x00000002
	AttributeSystem            FileAttributes = 0x00000004
	AttributeDirectory         FileAttributes = 0x00000010
	AttributeArchive           FileAttributes = 0x00000020
	AttributeNormal            FileAttributes = 0x00000080
	AttributeTemporary         FileAttributes = 0x00000100
	AttributeSparseFile        FileAttributes = 0x00000200
	AttributeReparsePoint      FileAttributes = 0x00000400
	AttributeCompressed        FileAttributes = 0x00000800
	AttributeOffline           FileAttributes = 0x00001000
	AttributeNotContentIndexed FileAttributes = 0x00002000
	AttributeEncrypted         FileAttributes = 0x00004000
	AttributeIntegrityStream   FileAttributes = 0x00008000
	AttributeNoScrubData       FileAttributes = 0x00020000
	AttributeRecallOnOpen      FileAttributes = 0x00040000
	AttributePinned            FileAttributes = 0x00080000
	AttributeUnpinned          FileAttributes = 0x00100000
	AttributeRecallOnData      FileAttributes = 0x00400000
)

// fields reads one structure and words its failures. It does not hold the name
// of the structure: an error that keeps a part of it would move its Reader to
// the heap.
type fields struct{ *byteio.Reader }

func (f fields) fail(field string, err error) {
	f.Fail(&MalformedError{Field: field, Err: err})
}

// end returns what stopped the decoder of a structure.
func (f fields) end(structure string) error {
	err := f.Err()
	if err == nil {
		return nil
	}
	if m, ok := err.(*MalformedError); ok {
		if m.Message == "" {
			m.Message = structure
		}
		return err
	}
	return &MalformedError{Message: structure, Err: err}
}

// text takes the next n bytes as a string.
func (f fields) text(field string, n uint32) string {
	if n%2 != 0 {
		f.fail(field, errOdd)
		return ""
	}
	p := f.Bytes(int64(n))
	if len(p) == 0 {
		return ""
	}
	return byteio.UTF16(p)
}

func (f fields) bool() bool         { return f.Uint8() != 0 }
func (f fields) filetime() Filetime { return Filetime(f.Uint64()) }

// appendText appends a string behind its length.
func appendText(b []byte, s string) []byte {
	b = byteio.Append32(b, uint32(2*byteio.UTF16Len(s)))
	return byteio.AppendUTF16(b, s)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

var (
	errOdd       = errors.New("odd length of a UTF-16 string")
	errNextEntry = errors.New("next entry misplaced")
)
