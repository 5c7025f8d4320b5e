package byteio

import "encoding/binary"

// Append16, Append32 and Append64 append little-endian integers.
func Append16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func Append32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func Append64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// Put16 and Put32 overwrite what was appended earlier, for lengths and offsets
// that are known only later.
func Put16(b []byte, v uint16) { binary.LittleEndian.PutUint16(b, v) }
func Put32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

var zeros [64]byte

// AppendZero appends n zero bytes, n at most 64.
func AppendZero(b []byte, n int) []byte { return append(b, zeros[:n]...) }

// Pad appends zeros until b is a multiple of align beyond start.
func Pad(b []byte, start, align int) []byte {
	return AppendZero(b, (align-(len(b)-start)%align)%align)
}
