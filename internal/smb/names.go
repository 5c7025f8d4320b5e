package smb

import (
	"fmt"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/remote"
)

// Mapping says how characters that Windows reserves travel: moved to a private
// area of Unicode, in one of the two ways in use, or not at all.
type Mapping uint8

const (
	MapPOSIX Mapping = iota // as macOS does and mount.cifs's mapposix
	MapChars                // as Services for Unix does and mount.cifs's mapchars
	MapNone
)

// The two alphabets. In the first, a space or dot is mapped only at the end of
// a name, where Windows drops it; control characters move by 0xF000.
var (
	posixMap = strings.NewReplacer(`"`, "\uF020", "*", "\uF021", ":", "\uF022", "<", "\uF023",
		">", "\uF024", "?", "\uF025", `\`, "\uF026", "|", "\uF027")
	posixUnmap = strings.NewReplacer("\uF020", `"`, "\uF021", "*", "\uF022", ":", "\uF023", "<",
		"\uF024", ">", "\uF025", "?", "\uF026", `\`, "\uF027", "|", "\uF028", " ", "\uF029", ".")
	charsMap = strings.NewReplacer("*", "\uF02A", ":", "\uF03A", "<", "\uF03C",
		">", "\uF03E", "?", "\uF03F", `\`, "\uF05C", "|", "\uF07C")
	charsUnmap = strings.NewReplacer("\uF02A", "*", "\uF03A", ":", "\uF03C", "<",
		"\uF03E", ">", "\uF03F", "?", "\uF05C", `\`, "\uF07C", "|")
)

// maxName is the longest name in UTF-16 units. See [MS-FSCC] 2.1.5.
const maxName = 255

// wire turns one local name into what goes to the server.
func (m Mapping) wire(name string) (string, error) {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("name %q: %w", name, syscall.EINVAL)
	case m == MapPOSIX:
		name = mapControls(posixMap.Replace(name))
		switch last := len(name) - 1; name[last] {
		case ' ':
			name = name[:last] + "\uF028"
		case '.':
			name = name[:last] + "\uF029"
		}
	case m == MapChars:
		name = charsMap.Replace(name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return "", fmt.Errorf("name %q: reserved characters, and no mapping is set: %w", name, syscall.EINVAL)
	}
	if !utf8.ValidString(name) && byteio.UTF16(byteio.AppendUTF16(nil, name)) != name {
		// Sent as U+FFFD, it would be the same name as others.
		return "", fmt.Errorf("name %q: %w", name, syscall.EILSEQ)
	}
	if byteio.UTF16Len(name) > maxName {
		return "", fmt.Errorf("name of %d characters: %w", byteio.UTF16Len(name), syscall.ENAMETOOLONG)
	}
	return name, nil
}

func mapControls(name string) string {
	if strings.IndexFunc(name, isControl) < 0 {
		return name
	}
	b := make([]byte, 0, len(name)+8)
	for i := 0; i < len(name); i++ { // bytes, since not all of WTF-8 is UTF-8
		if isControl(rune(name[i])) {
			b = utf8.AppendRune(b, 0xF000+rune(name[i]))
		} else {
			b = append(b, name[i])
		}
	}
	return string(b)
}

func isControl(r rune) bool { return r > 0 && r < 0x20 }

// local turns a name from the server into a local one. It refuses what no
// local file could be called: a name that is a path, or that would be one.
func (m Mapping) local(wire string) (name string, ok bool) {
	if strings.ContainsAny(wire, "/\\\x00") {
		return "", false
	}
	if byteio.UTF16Len(wire) > maxName {
		return "", false
	}
	name = wire
	switch m {
	case MapPOSIX:
		name = posixUnmap.Replace(wire)
		if strings.Contains(name, "\xEF\x80") { // U+F000 to U+F03F
			name = unmapControls(name)
		}
	case MapChars:
		name = charsUnmap.Replace(wire)
	}
	return name, name != "" && name != "." && name != ".."
}

func unmapControls(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if strings.HasPrefix(name[i:], "\xEF\x80") && i+2 < len(name) && isControl(rune(name[i+2]-0x80)) {
			b.WriteByte(name[i+2] - 0x80)
			i += 2
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// path turns at into a path on the share, which is what a Node is here.
func (m Mapping) path(at remote.At) (string, error) {
	if at.Name == "" {
		return string(at.Node), fitting(string(at.Node))
	}
	path := string(at.Dir)
	for name := range strings.SplitSeq(at.Name, "/") {
		w, err := m.wire(name)
		if err != nil {
			return "", err
		}
		path = join(path, w)
	}
	return path, fitting(path)
}

// maxPath is how many UTF-16 units of a path the 16-bit lengths of requests can
// say, with room for one more name.
const maxPath = 1<<15 - 1 - (1 + maxName)

// fitting refuses what would name another file once its length is cut.
func fitting(path string) error {
	if len(path) > maxPath && byteio.UTF16Len(path) > maxPath {
		return fmt.Errorf("path of %d characters: %w", byteio.UTF16Len(path), syscall.ENAMETOOLONG)
	}
	return nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + `\` + name
}
