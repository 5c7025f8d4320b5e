package remotetest

import (
	"fmt"
	"strings"

	"github.com/pagewire/pagewire/internal/remote"
)

var nameTests = []test{
	{"NamesInAnyScript", testNamesUnicode},
	{"NamesWithDotsAndSpaces", testNamesDots},
	{"NamesThatWindowsReserves", testNamesReserved},
	{"NamesWithLoneSurrogates", testNamesSurrogates},
	{"NamesAsLongAsTheyMayBe", testNamesLong},
	{"NamesThatAreNone", testNamesBad},
	{"NamesThatDifferInCase", testNamesCase},
}

// survive makes a file and a folder of each name, and finds them again: by
// name, by node and in the listing, each with its own content.
func (b *bed) survive(names ...string) {
	b.Helper()
	b.mkdir("dirs")
	for i, name := range names {
		b.put(name, []byte(fmt.Sprint("content ", i)))
		b.mkdir("dirs/" + name)
		b.put("dirs/"+name+"/"+name, nil)
	}
	for i, name := range names {
		b.has(name, []byte(fmt.Sprint("content ", i)))
		if a, err := b.vol.GetAttr(b.ctx, remote.At{Node: b.attr("dirs/" + name).Node}); err != nil || a.Kind != remote.Dir {
			b.Errorf("GetAttr of the node of folder %q: kind %d, %v", name, a.Kind, err)
		}
		if got := b.names(b.attr("dirs/" + name).Node); len(got) != 1 || got[0] != name {
			b.Errorf("folder %q has %q in it, want its own name", name, got)
		}
	}
	b.holds(append([]string{"dirs"}, names...)...)
	for _, name := range names {
		b.rename(name, "x", false)
		b.rename("x", name, false)
		b.ok(b.vol.Remove(b.ctx, b.at(name), false), "Remove %q", name)
	}
	b.holds("dirs")
}

func testNamesUnicode(b *bed) {
	b.survive("ascii", "Größe", "Ελληνικά", "日本語のファイル", "кириллица", "한국어", "عربى",
		"\u00e9", "e\u0301", // composed and not
		"\U0001F4BE", "a\U0001F600\U0001F600b", "𐐷") // surrogate pairs on the wire
}

func testNamesDots(b *bed) {
	b.survive(".hidden", "..two", " space before", "a b", "a.b.c", "~", "-rf", "#%&+,;=@[]^{}'`$!()", "con fusion")
}

func testNamesReserved(b *bed) {
	if !b.Caps.Reserved {
		b.Skip("the peer's names are Windows's")
	}
	b.survive("a:b", "*", "w?", `"quoted"`, "<", "a>b", "|", `back\slash`, `\\`, "a:$DATA",
		"space after ", "dot after.", "...", "two spaces  ", " ", "mixed. ")
}

func testNamesSurrogates(b *bed) {
	if !b.Caps.LoneSurrogates {
		b.Skip("the peer's names are Unicode's")
	}
	// WTF-8: the three bytes that U+D83D and U+DE00 would have.
	b.survive("high \xed\xa0\xbd", "\xed\xb8\x80 low", "\xed\xa0\xbdx\xed\xb8\x80")
}

func testNamesLong(b *bed) {
	units := b.Caps.MaxName
	if units == 0 {
		units = 255
	}
	bytes := b.Caps.MaxNameBytes
	if bytes == 0 {
		bytes = 3 * units
	}
	names := []string{
		strings.Repeat("n", min(units, bytes)),
		strings.Repeat("ü", min(units, bytes/2)),
		strings.Repeat("語", min(units, bytes/3)),
		strings.Repeat("\U0001F600", min(units/2, bytes/4)),
	}
	b.survive(names...)
	for _, name := range []string{strings.Repeat("n", units+1), strings.Repeat("n", 5000), strings.Repeat("\U0001F600", units/2+1)} {
		_, err := b.vol.WriteFile(b.ctx, b.at(name), remote.How{Access: remote.ForWrite, Create: remote.New}, nil)
		b.fails(err, anyError(), "WriteFile of a name of %d bytes", len(name))
		_, err = b.vol.Make(b.ctx, b.at(name), remote.Make{Kind: remote.Dir})
		b.fails(err, anyError(), "Make of a name of %d bytes", len(name))
	}
	b.holds("dirs")
}

func testNamesBad(b *bed) {
	b.put("file", []byte("kept"))
	b.mkdir("dir")
	inDir := remote.At{Dir: b.attr("dir").Node}
	for _, name := range []string{".", "..", "../file", "x/../file", "./x", "a//b", "/x", "x/", "nul\x00", "\x00"} {
		at := inDir
		at.Name = name
		_, err := b.vol.GetAttr(b.ctx, at)
		b.fails(err, anyError(), "GetAttr of %q", name)
		_, err = b.vol.Open(b.ctx, at, remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew}, nil)
		b.fails(err, anyError(), "Open of %q", name)
		_, err = b.vol.Make(b.ctx, at, remote.Make{Kind: remote.Dir})
		b.fails(err, anyError(), "Make of %q", name)
		_, err = b.vol.Rename(b.ctx, b.at("file"), at, true)
		b.fails(err, anyError(), "Rename to %q", name)
		b.fails(b.vol.Remove(b.ctx, at, false), anyError(), "Remove of %q", name)
	}
	b.holds("dir", "file")
	if got := b.names(inDir.Dir); len(got) > 0 {
		b.Errorf("bad names made %q", got)
	}
	b.has("file", []byte("kept"))
}

func testNamesCase(b *bed) {
	b.put("Name", []byte("first"))
	how := remote.How{Access: remote.ForWrite, Create: remote.New}
	_, err := b.vol.WriteFile(b.ctx, b.at("nAME"), how, []byte("second"))
	if !b.Caps.FoldCase {
		b.ok(err, "WriteFile of a name that differs in case")
		b.holds("Name", "nAME")
		b.has("Name", []byte("first"))
		b.has("nAME", []byte("second"))
		return
	}
	b.fails(err, exists(), "WriteFile of a name that differs in case")
	b.has("NAME", []byte("first"))
	b.put("nAME", []byte("third"))
	b.has("Name", []byte("third"))
	b.holds("Name")
	b.ok(b.vol.Remove(b.ctx, b.at("name"), false), "Remove of a name that differs in case")
	b.holds()
}
