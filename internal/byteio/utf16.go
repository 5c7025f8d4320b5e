package byteio

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Names on a Windows disk are any 16-bit units, unpaired surrogates included.
// Here they become WTF-8: UTF-8 in which an unpaired surrogate has the three
// bytes that its number would have. Every name survives the way there and back.

const (
	surrMin, surrLow, surrMax = 0xD800, 0xDC00, 0xE000
)

// AppendUTF16 appends s, which is WTF-8, in UTF-16LE. Other bytes that are no
// UTF-8 become U+FFFD.
func AppendUTF16(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			if u, ok := surrogate(s[i:]); ok {
				r, n = u, 3
			}
		}
		i += n
		if r < 0x10000 {
			b = binary.LittleEndian.AppendUint16(b, uint16(r))
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		b = binary.LittleEndian.AppendUint16(b, uint16(hi))
		b = binary.LittleEndian.AppendUint16(b, uint16(lo))
	}
	return b
}

// surrogate decodes the three bytes of an unpaired surrogate.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}

// UTF16Len returns how many 16-bit units s has on the wire.
func UTF16Len(s string) int {
	n := 0
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && w == 1 {
			if _, ok := surrogate(s[i:]); ok {
				w = 3
			}
		}
		if i += w; r >= 0x10000 {
			n++
		}
		n++
	}
	return n
}

// UTF16 turns UTF-16LE bytes into WTF-8. A last odd byte is ignored.
func UTF16(p []byte) string {
	b := make([]byte, 0, len(p)/2+8)
	for len(p) >= 2 {
		u := rune(binary.LittleEndian.Uint16(p))
		p = p[2:]
		if u >= surrMin && u < surrLow && len(p) >= 2 {
			if r := utf16.DecodeRune(u, rune(binary.LittleEndian.Uint16(p))); r != utf8.RuneError {
				b, p = utf8.AppendRune(b, r), p[2:]
				continue
			}
		}
		if u >= surrMin && u < surrMax {
			b = append(b, 0xED, 0x80|byte(u>>6&0x3F), 0x80|byte(u&0x3F))
			continue
		}
		b = utf8.AppendRune(b, u)
	}
	return string(b)
}
