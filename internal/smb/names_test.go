package smb

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/remote"
)

var mappings = []Mapping{MapPOSIX, MapChars, MapNone}

// TestNamesOnTheWire maps names as mount.cifs does, there and back.
func TestNamesOnTheWire(t *testing.T) {
	// What a mapping leaves out it does not change; "!" is a name it refuses.
	for local, wire := range map[string][3]string{
		"name":                      {"name", "name", "name"},
		"a:b":                       {"a\uF022b", "a\uF03Ab", "!"},
		"*":                         {"\uF021", "\uF02A", "!"},
		"?":                         {"\uF025", "\uF03F", "!"},
		"<":                         {"\uF023", "\uF03C", "!"},
		">":                         {"\uF024", "\uF03E", "!"},
		"|":                         {"\uF027", "\uF07C", "!"},
		`\`:                         {"\uF026", "\uF05C", "!"},
		`"`:                         {"\uF020", `"`, "!"},
		`a\..\b`:                    {"a\uF026..\uF026b", "a\uF05C..\uF05Cb", "!"},
		"\x01":                      {"\uF001", "\x01", "\x01"},
		"a\tb\n":                    {"a\uF009b\uF00A", "a\tb\n", "a\tb\n"},
		"\x1f":                      {"\uF01F", "\x1f", "\x1f"},
		"\x7f":                      {"\x7f", "\x7f", "\x7f"},
		"dot.":                      {"dot\uF029", "dot.", "dot."},
		"space ":                    {"space\uF028", "space ", "space "},
		"..":                        {"!", "!", "!"},
		".":                         {"!", "!", "!"},
		"":                          {"!", "!", "!"},
		"...":                       {"..\uF029", "...", "..."},
		" ":                         {"\uF028", " ", " "},
		". .":                       {". \uF029", ". .", ". ."},
		"..  ":                      {".. \uF028", "..  ", "..  "},
		".a":                        {".a", ".a", ".a"},
		" a":                        {" a", " a", " a"},
		"a. b":                      {"a. b", "a. b", "a. b"},
		"tab\t.":                    {"tab\uF009\uF029", "tab\t.", "tab\t."},
		"ü 語 😀":                     {"ü 語 😀", "ü 語 😀", "ü 語 😀"},
		"\xed\xa0\xbd":              {"\xed\xa0\xbd", "\xed\xa0\xbd", "\xed\xa0\xbd"}, // unpaired
		"\xed\xb8\x80:\xed\xa0\xbd": {"\xed\xb8\x80\uF022\xed\xa0\xbd", "\xed\xb8\x80\uF03A\xed\xa0\xbd", "!"},
	} {
		for i, m := range mappings {
			got, err := m.wire(local)
			if wire[i] == "!" {
				if !errors.Is(err, syscall.EINVAL) {
					t.Errorf("mapping %d: %q becomes %q, %v; want %v", m, local, got, err, syscall.EINVAL)
				}
				continue
			}
			if got != wire[i] || err != nil {
				t.Errorf("mapping %d: %q becomes %q, %v; want %q", m, local, got, err, wire[i])
			}
			if back, ok := m.local(got); back != local || !ok {
				t.Errorf("mapping %d: %q comes back as %q, %v", m, local, back, ok)
			}
		}
	}
}

// TestNamesFromTheWire are those that this client would not have sent.
func TestNamesFromTheWire(t *testing.T) {
	for wire, want := range map[string][3]string{ // "": no local file is called so
		"":                       {"", "", ""},
		".":                      {"", "", ""},
		"..":                     {"", "", ""},
		"a/b":                    {"", "", ""},
		`a\b`:                    {"", "", ""},
		"/":                      {"", "", ""},
		"a\x00":                  {"", "", ""},
		"\uF029":                 {"", "\uF029", "\uF029"},
		".\uF029":                {"", ".\uF029", ".\uF029"},
		"\uF029\uF029":           {"", "\uF029\uF029", "\uF029\uF029"},
		"\uF000":                 {"\uF000", "\uF000", "\uF000"},
		"\uF02F":                 {"\uF02F", "\uF02F", "\uF02F"}, // no slash
		"a\uF028b":               {"a b", "a\uF028b", "a\uF028b"},
		"a\uF029b":               {"a.b", "a\uF029b", "a\uF029b"},
		"a:b":                    {"a:b", "a:b", "a:b"},
		"trailing.":              {"trailing.", "trailing.", "trailing."},
		"\uF07F\uF100":           {"\uF07F\uF100", "\uF07F\uF100", "\uF07F\uF100"},
		"\uF05C..\uF05Cx":        {"\uF05C..\uF05Cx", `\..\x`, "\uF05C..\uF05Cx"},
		strings.Repeat("x", 255): {strings.Repeat("x", 255), strings.Repeat("x", 255), strings.Repeat("x", 255)},
		strings.Repeat("x", 256): {"", "", ""},
	} {
		for i, m := range mappings {
			got, ok := m.local(wire)
			if ok != (want[i] != "") || ok && got != want[i] {
				t.Errorf("mapping %d: %q becomes %q, %v; want %q", m, wire, got, ok, want[i])
			}
		}
	}
}

// TestNamesTooLong counts UTF-16 units, after mapping.
func TestNamesTooLong(t *testing.T) {
	for _, m := range mappings {
		for _, c := range []struct {
			name string
			ok   bool
		}{
			{strings.Repeat("n", 255), true},
			{strings.Repeat("n", 256), false},
			{strings.Repeat("語", 255), true},
			{strings.Repeat("語", 256), false},
			{strings.Repeat("😀", 127) + "n", true},
			{strings.Repeat("😀", 128), false},
			{strings.Repeat("\xed\xa0\xbd", 255), true},
			{strings.Repeat("\xed\xa0\xbd", 256), false},
			{strings.Repeat("\t", 255), true},
		} {
			_, err := m.wire(c.name)
			if c.ok != (err == nil) || err != nil && !errors.Is(err, syscall.ENAMETOOLONG) {
				t.Errorf("mapping %d: %d units: %v, want it taken: %v", m, byteio.UTF16Len(c.name), err, c.ok)
			}
		}
	}
}

// TestNamesThatAreNoText would all be the same on the wire.
func TestNamesThatAreNoText(t *testing.T) {
	for _, m := range mappings {
		for _, name := range []string{"\xff", "a\xfe", "\xc0\xaf", "\xf8\x80\x80\x80\x80", "\xed\xa0", "\xed\xa0\xbd\xed\xb8\x80"} {
			if wire, err := m.wire(name); !errors.Is(err, syscall.EILSEQ) {
				t.Errorf("mapping %d: %q becomes %q, %v; want %v", m, name, wire, err, syscall.EILSEQ)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		at   remote.At
		want string
		err  error
	}{
		{remote.At{}, "", nil},
		{remote.At{Node: `a\b`}, `a\b`, nil},
		{remote.At{Name: "a"}, "a", nil},
		{remote.At{Dir: `a\b`, Name: "c"}, `a\b\c`, nil},
		{remote.At{Dir: "a", Name: "b/c:d/e."}, "a\\b\\c\uF022d\\e\uF029", nil},
		{remote.At{Dir: "a", Node: "ignored", Name: "b"}, `a\b`, nil},
		{remote.At{Dir: "a", Name: "../b"}, "", syscall.EINVAL},
		{remote.At{Dir: "a", Name: "b//c"}, "", syscall.EINVAL},
		{remote.At{Dir: "a", Name: "/b"}, "", syscall.EINVAL},
		{remote.At{Dir: "a", Name: "b/"}, "", syscall.EINVAL},
		{remote.At{Dir: "a", Name: "b\x00c"}, "", syscall.EINVAL},
		{remote.At{Dir: "a", Name: strings.Repeat("x", 256)}, "", syscall.ENAMETOOLONG},
	} {
		got, err := MapPOSIX.path(c.at)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v is %q, %v; want %q, %v", c.at, got, err, c.want, c.err)
		}
	}
}

// FuzzNames maps any name there and back, and takes any name from a server.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"name", "a:b ", "\uF029\uF029", "..", "a/b", "a\\b", "nul\x00", "\x01.", "\xed\xa0\xbd", "\xff", "\uF05C..\uF05C"} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, s string, mapping uint8) {
		m := mappings[int(mapping)%len(mappings)]
		if name, ok := m.local(s); ok && (name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00")) {
			t.Errorf("mapping %d: %q from the wire is %q here", m, s, name)
		}
		wire, err := m.wire(s)
		if err != nil {
			return
		}
		if wire == "" || wire == "." || wire == ".." || strings.ContainsAny(wire, "\\\x00") && m != MapNone || byteio.UTF16Len(wire) > 255 {
			t.Errorf("mapping %d: %q is %q on the wire", m, s, wire)
		}
		if strings.ContainsRune(s, '/') || strings.ContainsFunc(s, func(r rune) bool { return r >= 0xF000 && r <= 0xF0FF }) {
			return // path splits at slashes, and what looks mapped comes back as what it would be
		}
		// As the server would have it, in UTF-16.
		back, ok := m.local(byteio.UTF16(byteio.AppendUTF16(nil, wire)))
		if !ok || back != s {
			t.Errorf("mapping %d: %q is %q on the wire and %q, %v here", m, s, wire, back, ok)
		}
		if !utf8.ValidString(wire) && utf8.ValidString(s) {
			t.Errorf("mapping %d: %q is %q on the wire, which is no UTF-8", m, s, wire)
		}
	})
}
