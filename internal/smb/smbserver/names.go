package smbserver

import (
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

// maxComponent is the longest name, in UTF-16 units.
const maxComponent = 255

// split cuts a path of the wire into its components, of which the root has none.
// See [MS-FSCC] 2.1.5 and [MS-SMB2] 3.3.5.9.
func split(path string) ([]string, ntstatus.Status) {
	if path == "" {
		return nil, ntstatus.Success
	}
	if path[0] == '\\' {
		return nil, ntstatus.InvalidParameter
	}
	parts := strings.Split(path, `\`)
	for _, p := range parts {
		if !validName(p) {
			return nil, ntstatus.ObjectNameInvalid
		}
	}
	return parts, ntstatus.Success
}

// validName reports whether something can have this name. A trailing space or
// dot is nothing special: only Win32 thinks so. Streams are not there, so a colon
// is not either.
func validName(name string) bool {
	if name == "" || name == "." || name == ".." || byteio.UTF16Len(name) > maxComponent {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x20 || r < utf8.RuneSelf && strings.ContainsRune(`"\/:|<>*?`, r)
	})
}

// The wildcards that Windows makes of * and ? next to dots.
// See [MS-FSA] 2.1.4.4.
const (
	dosStar = '<' // as *, but leaves an extension alone
	dosQM   = '>' // as ?, but also matches nothing at a dot or the end
	dosDot  = '"' // as ., but also matches nothing at the end
)

// matches reports whether a name matches a pattern. See [MS-FSA] 2.1.4.4.
func matches(pattern, name string, ignoreCase bool) bool {
	if pattern == "*" {
		return true
	}
	if ignoreCase {
		pattern, name = memfs.Fold(pattern), memfs.Fold(name)
	}
	return match([]rune(pattern), []rune(name))
}

// match steps through the name with the set of places in the pattern that what
// it has seen can lead to, so that no pattern takes long.
func match(pattern, name []rune) bool {
	at := make([]bool, len(pattern)+1)
	next := make([]bool, len(pattern)+1)
	lastDot := -1
	for i, r := range name {
		if r == '.' {
			lastDot = i
		}
	}
	at[0] = true
	for i := range len(name) + 1 {
		end := i == len(name)
		// What matches nothing leads on without a rune.
		for j, p := range pattern {
			if at[j] && (p == '*' || p == dosStar || p == dosQM && (end || name[i] == '.') || p == dosDot && end) {
				at[j+1] = true
			}
		}
		if end {
			break
		}
		clear(next)
		for j, p := range pattern {
			if !at[j] {
				continue
			}
			switch p {
			case '*':
				next[j] = true
			case dosStar:
				next[j] = next[j] || name[i] != '.' || i != lastDot
			case '?':
				next[j+1] = true
			case dosQM:
				next[j+1] = next[j+1] || name[i] != '.'
			case dosDot:
				next[j+1] = next[j+1] || name[i] == '.'
			default:
				next[j+1] = next[j+1] || p == name[i]
			}
		}
		at, next = next, at
	}
	return at[len(pattern)]
}
