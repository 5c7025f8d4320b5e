package remotetest

import (
	"fmt"
	"strings"

	"github.com/pagewire/pagewire/internal/remote"
)

var changeTests = []test{
	{"MakeFolders", testMakeDir},
	{"MakeSymlinks", testSymlink},
	{"RenameFiles", testRenameFile},
	{"RenameReplacesOnlyIfTold", testRenameReplace},
	{"RenameFolders", testRenameDir},
	{"RenameToAnotherCase", testRenameCase},
	{"RenameOntoItself", testRenameItself},
	{"RenameIntoItself", testRenameInto},
	{"RenameOpenFiles", testRenameOpen},
	{"LinkIsAnotherNameOfAFile", testLink},
	{"RemoveOnlyTheKindItIsTold", testRemove},
	{"RemoveOpenFiles", testRemoveOpen},
}

func testMakeDir(b *bed) {
	a := b.mkdir("dir")
	if a.Kind != remote.Dir {
		b.Errorf("Make of a folder made kind %d", a.Kind)
	}
	b.same("dir", a, b.attr("dir"))
	b.put("file", nil)
	for _, name := range []string{"dir", "file"} {
		_, err := b.vol.Make(b.ctx, b.at(name), remote.Make{Kind: remote.Dir})
		b.fails(err, exists(), "Make folder %q, which is there", name)
	}
	deep := "dir"
	for i := range 10 {
		deep += fmt.Sprint("/", i)
		b.mkdir(deep)
	}
	b.put(deep+"/file", []byte("deep"))
	b.has(deep+"/file", []byte("deep"))
}

func testSymlink(b *bed) {
	if !b.Caps.Symlinks {
		b.Skip("the peer has no symbolic links")
	}
	b.put("file", []byte("full"))
	for i, target := range []string{"file", "missing", "../dir/a b", "ü/名前", strings.Repeat("long/", 60) + "x"} {
		name := fmt.Sprint("link", i)
		m := remote.Make{Kind: remote.Symlink, Target: target}
		a, err := b.vol.Make(b.ctx, b.at(name), m)
		b.ok(err, "Make symlink to %q", target)
		if a.Kind != remote.Symlink {
			b.Errorf("Make of a symlink made kind %d", a.Kind)
		}
		if a := b.attr(name); a.Kind != remote.Symlink {
			b.Errorf("GetAttr of a symlink to %q: kind %d", target, a.Kind)
		}
		if got, err := b.vol.ReadLink(b.ctx, b.at(name)); got != target || err != nil {
			b.Errorf("ReadLink: %q, %v, want %q", got, err, target)
		}
		_, err = b.vol.Make(b.ctx, b.at(name), m)
		b.fails(err, exists(), "Make symlink %q, which is there", name)
	}
	for page, err := range b.vol.ReadDir(b.ctx, remote.At{Node: b.dir}) {
		b.ok(err, "ReadDir")
		for _, e := range page {
			if want := strings.HasPrefix(e.Name, "link"); want != (e.Attr.Kind == remote.Symlink) {
				b.Errorf("entry %s has kind %d", e.Name, e.Attr.Kind)
			}
		}
	}
	_, err := b.vol.ReadLink(b.ctx, b.at("file"))
	b.fails(err, anyError(), "ReadLink of a file")
	_, err = b.vol.ReadLink(b.ctx, b.at("missing"))
	b.fails(err, missing(), "ReadLink of nothing")
	_, err = b.vol.Rename(b.ctx, b.at("link0"), b.at("moved"), false)
	b.ok(err, "Rename of a symlink")
	if got, err := b.vol.ReadLink(b.ctx, b.at("moved")); got != "file" || err != nil {
		b.Errorf("ReadLink after a rename: %q, %v, want %q", got, err, "file")
	}
	b.ok(b.vol.Remove(b.ctx, b.at("moved"), false), "Remove of a symlink")
	b.gone("moved")
	b.has("file", []byte("full"))
}

// rename renames, and looks that the node it returns is the one there now.
func (b *bed) rename(from, to string, replace bool) {
	b.Helper()
	node, err := b.vol.Rename(b.ctx, b.at(from), b.at(to), replace)
	b.ok(err, "Rename %q to %q", from, to)
	a, err := b.vol.GetAttr(b.ctx, remote.At{Node: node})
	b.ok(err, "GetAttr of the node that %q has as %q", from, to)
	b.same("the node of "+to, a, b.attr(to))
}

func testRenameFile(b *bed) {
	b.mkdir("dir")
	b.put("one", []byte("1"))
	b.rename("one", "two", false)
	b.gone("one")
	b.has("two", []byte("1"))
	b.rename("two", "dir/three", true)
	b.gone("two")
	b.has("dir/three", []byte("1"))
	for _, c := range []struct {
		from, to string
		want     []error
	}{{"missing", "x", missing()}, {"dir/three", "missing/x", noSuchDir()}, {"dir/three", "dir/three/x", noSuchDir()}} {
		_, err := b.vol.Rename(b.ctx, b.at(c.from), b.at(c.to), false)
		b.fails(err, c.want, "Rename %q to %q", c.from, c.to)
	}
	b.has("dir/three", []byte("1"))
	b.holds("dir")
}

func testRenameReplace(b *bed) {
	b.put("one", []byte("1"))
	b.put("two", []byte("22"))
	b.mkdir("dir")
	_, err := b.vol.Rename(b.ctx, b.at("one"), b.at("two"), false)
	b.fails(err, exists(), "Rename onto a file")
	b.has("one", []byte("1"))
	b.has("two", []byte("22"))
	for _, replace := range []bool{false, true} {
		_, err = b.vol.Rename(b.ctx, b.at("one"), b.at("dir"), replace)
		b.fails(err, anyError(), "Rename of a file onto a folder, replace %v", replace)
	}
	b.has("one", []byte("1"))
	b.rename("one", "two", true)
	b.has("two", []byte("1"))
	b.holds("dir", "two")
}

func testRenameDir(b *bed) {
	b.mkdir("one")
	b.mkdir("one/sub")
	b.put("one/sub/file", []byte("kept"))
	b.mkdir("two")
	b.mkdir("two/sub")
	b.rename("one", "three", false)
	b.has("three/sub/file", []byte("kept"))
	b.rename("three/sub", "two/moved", false)
	b.has("two/moved/file", []byte("kept"))
	_, err := b.vol.Rename(b.ctx, b.at("three"), b.at("two"), false)
	b.fails(err, exists(), "Rename of a folder onto a folder")
	_, err = b.vol.Rename(b.ctx, b.at("three"), b.at("two"), true)
	b.fails(err, anyError(), "Rename of a folder onto one that is not empty")
	b.has("two/moved/file", []byte("kept"))
	b.gone("one")
	b.holds("three", "two")
}

func testRenameCase(b *bed) {
	b.put("Name", []byte("kept"))
	b.mkdir("Dir")
	b.put("Dir/file", []byte("below"))
	b.rename("Name", "nAME", false)
	b.rename("Dir", "dIR", false)
	b.holds("dIR", "nAME")
	b.has("nAME", []byte("kept"))
	b.has("dIR/file", []byte("below"))
}

func testRenameItself(b *bed) {
	b.put("file", []byte("kept"))
	b.mkdir("dir")
	for _, replace := range []bool{false, true} {
		b.rename("file", "file", replace)
	}
	b.holds("dir", "file")
	b.has("file", []byte("kept"))
}

func testRenameInto(b *bed) {
	b.mkdir("dir")
	b.mkdir("dir/sub")
	b.put("dir/sub/file", []byte("kept"))
	for _, to := range []string{"dir/x", "dir/sub/x", "dir/sub"} {
		_, err := b.vol.Rename(b.ctx, b.at("dir"), b.at(to), false)
		b.fails(err, anyError(), "Rename %q to %q", "dir", to)
	}
	b.has("dir/sub/file", []byte("kept"))
	b.holds("dir")
}

func testRenameOpen(b *bed) {
	h := b.open("one", remote.ForRead|remote.ForWrite, remote.New)
	h.write(0, []byte("before"))
	b.rename("one", "two", false)
	h.write(6, []byte(" after"))
	if got := h.read(0, 20); string(got) != "before after" {
		b.Errorf("the open file has %q, want %q", got, "before after")
	}
	if a, err := h.File.GetAttr(b.ctx, h.Open); err != nil || a.Size != 12 {
		b.Errorf("GetAttr of the open file: size %d, %v, want 12", a.Size, err)
	}
	// Another file takes the old name, and is not the open one.
	b.put("one", []byte("other"))
	if got := h.read(0, 20); string(got) != "before after" {
		b.Errorf("the open file has %q once another has its old name, want %q", got, "before after")
	}
	b.has("one", []byte("other"))
	h.close()
	b.has("two", []byte("before after"))
}

func testLink(b *bed) {
	if !b.Caps.Links {
		b.Skip("the peer has no hard links")
	}
	b.put("one", []byte("first"))
	b.mkdir("dir")
	b.ok(b.vol.Link(b.ctx, b.at("one"), b.at("dir/two")), "Link")
	b.has("dir/two", []byte("first"))
	one, two := b.attr("one"), b.attr("dir/two")
	if one.ID != two.ID || one.Links != 0 && one.Links != 2 {
		b.Errorf("two names: IDs %d and %d, %d links, want one ID and 2", one.ID, two.ID, one.Links)
	}
	h := b.open("dir/two", remote.ForWrite, remote.Truncate)
	h.write(0, []byte("second"))
	h.close()
	b.has("one", []byte("second"))
	b.fails(b.vol.Link(b.ctx, b.at("one"), b.at("dir/two")), exists(), "Link to a name that is there")
	b.fails(b.vol.Link(b.ctx, b.at("missing"), b.at("three")), missing(), "Link of nothing")
	b.ok(b.vol.Remove(b.ctx, b.at("one"), false), "Remove of one name")
	b.has("dir/two", []byte("second"))
}

func testRemove(b *bed) {
	b.put("file", nil)
	b.mkdir("dir")
	b.put("dir/file", []byte("kept"))
	remove := func(name string, dir bool) error { return b.vol.Remove(b.ctx, b.at(name), dir) }
	b.fails(remove("file", true), notDir(), "Remove of a file as a folder")
	b.fails(remove("dir", false), isDir(), "Remove of a folder as a file")
	b.fails(remove("dir", true), notEmpty(), "Remove of a folder with something in it")
	b.has("dir/file", []byte("kept"))
	b.holds("dir", "file")
	for _, dir := range []bool{false, true} {
		b.fails(remove("missing", dir), missing(), "Remove of nothing, dir %v", dir)
		b.fails(remove("missing/file", dir), noSuchDir(), "Remove in no folder, dir %v", dir)
	}
	b.ok(remove("file", false), "Remove of a file")
	b.ok(remove("dir/file", false), "Remove of a file")
	b.ok(remove("dir", true), "Remove of an empty folder")
	b.fails(remove("dir", true), missing(), "Remove of what is gone")
	b.holds()
}

// testRemoveOpen leaves open when the name goes: at once, or with the last open.
func testRemoveOpen(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	h.write(0, []byte("still here"))
	b.ok(b.vol.Remove(b.ctx, b.at("file"), false), "Remove of an open file")
	if got := h.read(0, 20); string(got) != "still here" {
		b.Errorf("an open file that was removed has %q, want %q", got, "still here")
	}
	h.close()
	b.gone("file")
	b.put("file", []byte("new"))
	b.has("file", []byte("new"))
}
