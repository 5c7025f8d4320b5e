// Package smb2msg turns the messages of [MS-SMB2] 2.2 into structs and back,
// in both directions: the client and the test server share it.
//
// Append puts a body right behind its header, which is the last HeaderSize
// bytes of the slice, since offsets in a message count from its header. Decode
// wants a Reader made over one whole message, header included, that stands
// behind the header. Decoded slices alias the message.
//
// The package owns bytes alone: no I/O, no keys, no judgement about names or
// states. It has no lock.
package smb2msg

import (
	"errors"
	"fmt"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// MalformedError names the message and the field that make no sense. It wraps
// byteio.ErrShort if a message ends before what it promises.
type MalformedError = fscc.MalformedError

var (
	errOdd       = errors.New("odd length of a UTF-16 string")
	errOverlap   = errors.New("buffer lies in the fixed part")
	errPlace     = errors.New("misplaced")
	errTwice     = errors.New("appears twice")
	errNone      = errors.New("empty")
	errAmbiguous = errors.New("more than one answer")
)

// FileID names an open file. See [MS-SMB2] 2.2.14.1.
type FileID struct{ Persistent, Volatile uint64 }

// RelatedFileID stands for the file that the message before in a related
// compound opened.
var RelatedFileID = FileID{1<<64 - 1, 1<<64 - 1}

func (id FileID) append(b []byte) []byte {
	return byteio.Append64(byteio.Append64(b, id.Persistent), id.Volatile)
}

// body reads the body of one message and words its failures. It does not hold
// the name of the message: an error that keeps a part of a body would move its
// Reader to the heap.
type body struct{ *byteio.Reader }

func (d body) fail(field string, err error) {
	d.Fail(&MalformedError{Field: field, Err: err})
}

// size takes StructureSize, which counts one byte of a variable part too.
func (d body) size(want uint16) {
	if got := d.Uint16(); got != want && d.Err() == nil {
		d.fail("StructureSize", fmt.Errorf("is %d, want %d", got, want))
	}
}

// buffer returns n bytes at an offset from the header. They must lie behind
// the part that has been read.
func (d body) buffer(field string, off, n int64) []byte {
	if n == 0 || d.Err() != nil {
		return nil
	}
	here := int64(d.Offset())
	if off < here {
		d.fail(field, errOverlap)
		return nil
	}
	if off-here > int64(d.Len()) || n > int64(d.Len())-(off-here) {
		d.fail(field, byteio.ErrShort)
		return nil
	}
	return d.At(off, n)
}

// text returns a buffer as a string.
func (d body) text(field string, off, n int64) string {
	if n%2 != 0 {
		d.fail(field, errOdd)
		return ""
	}
	return byteio.UTF16(d.buffer(field, off, n))
}

func (d body) fileID() FileID          { return FileID{d.Uint64(), d.Uint64()} }
func (d body) filetime() fscc.Filetime { return fscc.Filetime(d.Uint64()) }
func (d body) array16() (a [16]byte)   { d.Copy(a[:]); return a }

// end returns what stopped the decoder of a message.
func (d body) end(message string) error {
	err := d.Err()
	if err == nil {
		return nil
	}
	if m, ok := err.(*MalformedError); ok {
		if m.Message == "" {
			m.Message = message
		}
		return err
	}
	return &MalformedError{Message: message, Err: err}
}

// offset returns where a variable part of n bytes starts, behind a fixed one of
// size-1. No bytes are nowhere: that is what servers send, and like to see.
func offset(size uint16, n int) uint16 {
	if n == 0 {
		return 0
	}
	return HeaderSize + size - 1
}

// appendBuffer appends the variable part p of a message whose StructureSize
// counts a byte of it; servers insist on that byte even if p is empty.
func appendBuffer(b, p []byte) []byte {
	if len(p) == 0 {
		return append(b, 0)
	}
	return append(b, p...)
}

// Some bodies are nothing but their StructureSize.
const emptySize = 4

func appendEmpty(b []byte) []byte { return byteio.Append32(b, emptySize) }

func decodeEmpty(r *byteio.Reader, name string) error {
	d := body{r}
	d.size(emptySize)
	d.Skip(2)
	return d.end(name)
}
