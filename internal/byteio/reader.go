// Package byteio reads and appends the integers, byte strings and UTF-16
// strings that wire formats are made of.
//
// It owns bounds checking: nothing else indexes a peer's bytes. It knows no
// message and does no I/O. It has no lock; a Reader belongs to one goroutine.
package byteio

import (
	"encoding/binary"
	"errors"
)

// ErrShort says that a message ended before what it promised.
var ErrShort = errors.New("message too short")

// Reader walks over a message. The first failure sticks: every later call
// returns zero values and Err reports it, so a decoder checks once, at its end.
// Slices it returns alias the message.
type Reader struct {
	b   []byte
	off int
	err error
}

// NewReader returns a Reader at the start of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first failure, or nil.
func (r *Reader) Err() error { return r.err }

// Fail makes err stick, unless a failure already does, and returns what sticks.
func (r *Reader) Fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// Offset returns how far the Reader has come from the start of the message.
func (r *Reader) Offset() int { return r.off }

// Len returns how many bytes lie ahead; none after a failure.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b) - r.off
}

// Bytes takes the next n bytes. n comes from the peer, hence its width.
func (r *Reader) Bytes(n int64) []byte {
	if n < 0 || n > int64(r.Len()) {
		r.Fail(ErrShort)
		return nil
	}
	p := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return p
}

// Rest takes all bytes that lie ahead.
func (r *Reader) Rest() []byte { return r.Bytes(int64(r.Len())) }

// Skip passes over n bytes.
func (r *Reader) Skip(n int64) { r.Bytes(n) }

// At returns n bytes at an offset from the start of the message, wherever the
// Reader stands, and does not move it. No bytes may lie at any offset, since
// peers send arbitrary offsets with empty buffers.
func (r *Reader) At(off, n int64) []byte {
	if r.err != nil || n == 0 {
		return nil
	}
	if off < 0 || n < 0 || off > int64(len(r.b)) || n > int64(len(r.b))-off {
		r.Fail(ErrShort)
		return nil
	}
	return r.b[off : off+n : off+n]
}

// Uint8 takes one byte.
func (r *Reader) Uint8() uint8 {
	if p := r.Bytes(1); p != nil {
		return p[0]
	}
	return 0
}

// Uint16 takes a little-endian integer, as do Uint32 and Uint64.
func (r *Reader) Uint16() uint16 {
	if p := r.Bytes(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (r *Reader) Uint32() uint32 {
	if p := r.Bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (r *Reader) Uint64() uint64 {
	if p := r.Bytes(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// Copy fills dst with the next len(dst) bytes.
func (r *Reader) Copy(dst []byte) { copy(dst, r.Bytes(int64(len(dst)))) }
