package fscc

import (
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
)

// DirEntry is an entry of a directory. What a class does not have is zero.
type DirEntry struct {
	FileIndex      uint32
	CreationTime   Filetime
	LastAccessTime Filetime
	LastWriteTime  Filetime
	ChangeTime     Filetime
	EndOfFile      uint64
	AllocationSize uint64
	FileAttributes FileAttributes
	EaSize         uint32     // of what is no reparse point
	ReparseTag     ReparseTag // of a reparse point; most classes have it in EaSize
	FileID         uint64     // zero or all ones if the file system has none
	FileIDHigh     uint64     // FileIDExtdDirectory only
	ShortName      []byte     // in UTF-16LE, at most 24 bytes; aliases the buffer
	FileName       string
}

// What an entry of a class has between FileIndex and FileName. The lengths of
// the fixed parts differ by padding, too: see dirFixed.
const (
	dirAttributes = 1 << iota // times, sizes, attributes
	dirEaSize
	dirShortName
	dirFileID
	dirFileID128
)

// dirParts returns 0 and false if class lists no directories.
// See [MS-FSCC] 2.4.8, 2.4.10 and the other sections named like the classes.
func dirParts(class Class) (parts int, ok bool) {
	switch class {
	case ClassFileNames:
		return 0, true
	case ClassFileDirectory:
		return dirAttributes, true
	case ClassFileFullDirectory:
		return dirAttributes | dirEaSize, true
	case ClassFileBothDirectory:
		return dirAttributes | dirEaSize | dirShortName, true
	case ClassFileIDFullDirectory:
		return dirAttributes | dirEaSize | dirFileID, true
	case ClassFileIDBothDirectory:
		return dirAttributes | dirEaSize | dirShortName | dirFileID, true
	case ClassFileIDExtdDirectory:
		return dirAttributes | dirEaSize | dirFileID128, true
	}
	return 0, false
}

const shortNameSize = 24

// DirReader walks over the entries of a QUERY_DIRECTORY response.
type DirReader struct {
	parts int
	rest  []byte
	err   error
}

// NewDirReader returns a DirReader for a buffer of entries of a class.
func NewDirReader(class Class, buf []byte) DirReader {
	parts, ok := dirParts(class)
	if !ok {
		return DirReader{err: fmt.Errorf("class %d lists no directories", class)}
	}
	return DirReader{parts: parts, rest: buf}
}

// Next fills e with the next entry. It allocates for FileName only. When it
// returns false, Err says whether that was the end.
func (d *DirReader) Next(e *DirEntry) bool {
	if len(d.rest) == 0 || d.err != nil {
		return false
	}
	f, rest, err := nextEntry("directory entry", d.rest)
	if err == nil {
		err = e.decode(fields{&f}, d.parts)
	}
	d.rest, d.err = rest, err
	return err == nil
}

// Err returns what is wrong with the buffer, or nil.
func (d *DirReader) Err() error { return d.err }

func (e *DirEntry) decode(f fields, parts int) error {
	*e = DirEntry{FileIndex: f.Uint32()}
	if parts&dirAttributes != 0 {
		e.CreationTime = f.filetime()
		e.LastAccessTime = f.filetime()
		e.LastWriteTime = f.filetime()
		e.ChangeTime = f.filetime()
		e.EndOfFile = f.Uint64()
		e.AllocationSize = f.Uint64()
		e.FileAttributes = FileAttributes(f.Uint32())
	}
	n := f.Uint32()
	if parts&dirEaSize != 0 {
		e.EaSize = f.Uint32()
	}
	switch {
	case parts&dirFileID128 != 0:
		e.ReparseTag = ReparseTag(f.Uint32())
	case e.FileAttributes&AttributeReparsePoint != 0:
		e.ReparseTag, e.EaSize = ReparseTag(e.EaSize), 0
	}
	if parts&dirShortName != 0 {
		size := f.Uint8()
		f.Skip(1)
		if size > shortNameSize || size%2 != 0 {
			f.fail("ShortNameLength", fmt.Errorf("is %d", size))
		}
		e.ShortName = f.Bytes(int64(size))
		f.Skip(shortNameSize - int64(size))
	}
	switch {
	case parts&dirFileID128 != 0:
		e.FileID, e.FileIDHigh = f.Uint64(), f.Uint64()
	case parts&dirFileID != 0:
		f.Skip(dirIDPadding(parts))
		e.FileID = f.Uint64()
	}
	e.FileName = f.text("FileName", n)
	return f.end("directory entry")
}

// dirIDPadding aligns a 64-bit FileId.
func dirIDPadding(parts int) int64 {
	if parts&dirShortName != 0 {
		return 2
	}
	return 4
}

// DirWriter collects the entries of a QUERY_DIRECTORY response.
type DirWriter struct {
	parts int
	max   int
	start int // of the entries in b
	last  int // entry in b, whose NextEntryOffset is to be set; -1 if none
	b     []byte
}

// NewDirWriter returns a DirWriter that appends at most max bytes of entries to
// b. The class must list directories.
func NewDirWriter(b []byte, class Class, max int) *DirWriter {
	parts, ok := dirParts(class)
	if !ok {
		panic(fmt.Sprintf("class %d lists no directories", class))
	}
	return &DirWriter{parts: parts, max: max, start: len(b), last: -1, b: b}
}

// Bytes returns what NewDirWriter was given and the entries.
func (w *DirWriter) Bytes() []byte { return w.b }

// Append appends an entry, or returns false if there is no room for it.
func (w *DirWriter) Append(e *DirEntry) bool {
	end := len(w.b)
	w.b = byteio.Pad(w.b, w.start, 8)
	here := len(w.b)
	w.b = e.append(w.b, w.parts)
	if len(w.b)-w.start > w.max {
		w.b = w.b[:end]
		return false
	}
	if w.last >= 0 {
		byteio.Put32(w.b[w.last:], uint32(here-w.last))
	}
	w.last = here
	return true
}

func (e *DirEntry) append(b []byte, parts int) []byte {
	b = byteio.Append32(b, 0)
	b = byteio.Append32(b, e.FileIndex)
	if parts&dirAttributes != 0 {
		b = byteio.Append64(b, uint64(e.CreationTime))
		b = byteio.Append64(b, uint64(e.LastAccessTime))
		b = byteio.Append64(b, uint64(e.LastWriteTime))
		b = byteio.Append64(b, uint64(e.ChangeTime))
		b = byteio.Append64(b, e.EndOfFile)
		b = byteio.Append64(b, e.AllocationSize)
		b = byteio.Append32(b, uint32(e.FileAttributes))
	}
	b = byteio.Append32(b, uint32(2*byteio.UTF16Len(e.FileName)))
	switch {
	case parts&dirFileID128 != 0:
		b = byteio.Append32(b, e.EaSize)
		b = byteio.Append32(b, uint32(e.ReparseTag))
	case parts&dirEaSize == 0:
	case e.FileAttributes&AttributeReparsePoint != 0:
		b = byteio.Append32(b, uint32(e.ReparseTag))
	default:
		b = byteio.Append32(b, e.EaSize)
	}
	if parts&dirShortName != 0 {
		n := min(len(e.ShortName), shortNameSize)
		b = append(b, byte(n), 0)
		b = append(b, e.ShortName[:n]...)
		b = byteio.AppendZero(b, shortNameSize-n)
	}
	switch {
	case parts&dirFileID128 != 0:
		b = byteio.Append64(byteio.Append64(b, e.FileID), e.FileIDHigh)
	case parts&dirFileID != 0:
		b = byteio.AppendZero(b, int(dirIDPadding(parts)))
		b = byteio.Append64(b, e.FileID)
	}
	return byteio.AppendUTF16(b, e.FileName)
}
