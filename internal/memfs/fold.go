package memfs

import (
	"unicode"
	"unicode/utf8"
)

// key is what a name is found by.
func (f *FS) key(text string) string {
	if !f.cfg.IgnoreCase {
		return text
	}
	return Fold(text)
}

// Fold maps a name to upper case, rune by rune as Windows does, so that ß stays
// ß. Bytes that are no UTF-8 stay as they are.
func Fold(text string) string {
	i := 0
	for i < len(text) && text[i] < utf8.RuneSelf && (text[i] < 'a' || text[i] > 'z') {
		i++
	}
	if i == len(text) {
		return text
	}
	b := make([]byte, i, len(text)+4)
	copy(b, text)
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, text[i])
		} else {
			b = utf8.AppendRune(b, unicode.ToUpper(r))
		}
		i += n
	}
	return string(b)
}
