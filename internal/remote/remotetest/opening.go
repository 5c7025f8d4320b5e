package remotetest

import (
	"bytes"
	"fmt"

	"github.com/pagewire/pagewire/internal/remote"
)

var openTests = []test{
	{"OpenMakesEmptiesOrRefuses", testOpenCreate},
	{"OpenOfAFolder", testOpenDir},
	{"OpenGivesTheAccessAskedFor", testOpenAccess},
	{"OpenWalksAPath", testOpenPath},
	{"OpensShareAFile", testOpensShare},
	{"OpensOutliveOneAnother", testOpensOutlive},
	{"ReadFileIsOpenReadClose", testReadFile},
	{"WriteFileIsOpenWriteClose", testWriteFile},
}

// creates says what each Create does with what is there: how it fails, if it
// does, and what a file that was "full" has then.
var creates = []struct {
	create             remote.Create
	missing, file, dir []error
	has                string
}{
	{create: remote.Existing, missing: missing(), dir: isDir(), has: "full"},
	{create: remote.OrNew, dir: isDir(), has: "full"},
	{create: remote.New, file: exists(), dir: isDirThere(), has: "full"},
	{create: remote.Truncate, missing: missing(), dir: isDirThere()},
	{create: remote.TruncateNew, dir: isDirThere()},
}

func testOpenCreate(b *bed) {
	for _, c := range creates {
		how := remote.How{Access: remote.ForRead | remote.ForWrite, Create: c.create}
		try := func(what, name string, want []error, size int) {
			o, err := b.vol.Open(b.ctx, b.at(name), how, nil)
			if want != nil {
				b.fails(err, want, "Create %d of what is %s", c.create, what)
				return
			}
			b.ok(err, "Create %d of what is %s", c.create, what)
			if o.Attr.Size != int64(size) || o.Attr.Kind != remote.Regular {
				b.Errorf("Create %d of what is %s: size %d, kind %d, want %d and a file", c.create, what, o.Attr.Size, o.Attr.Kind, size)
			}
			if o.Rights != 0 {
				b.Errorf("Open gave rights %b to who asked for none", o.Rights)
			}
			b.ok(o.Open.Close(b.ctx), "Close")
			after := b.attr(name)
			if c.create >= remote.Truncate { // when that was, servers know later
				after.Written = o.Attr.Written
			}
			b.same(what, o.Attr, after)
		}
		n := fmt.Sprint(c.create)
		b.put("file"+n, []byte("full"))
		b.mkdir("dir" + n)
		try("missing", "missing"+n, c.missing, 0)
		try("a file", "file"+n, c.file, len(c.has))
		try("a folder", "dir"+n, c.dir, 0)
		b.has("file"+n, []byte(c.has))
		if c.missing != nil {
			b.gone("missing" + n)
		}
	}
}

func testOpenDir(b *bed) {
	b.put("file", []byte("full"))
	b.mkdir("dir")
	for _, c := range []struct {
		name   string
		create remote.Create
		want   []error
	}{
		{"dir", remote.Existing, nil},
		{"dir", remote.OrNew, nil},
		{"dir", remote.New, exists()},
		{"file", remote.Existing, notDir()},
		{"missing", remote.Existing, missing()},
	} {
		o, err := b.vol.Open(b.ctx, b.at(c.name), remote.How{Access: remote.ForRead, Create: c.create, Dir: true}, nil)
		if c.want != nil {
			b.fails(err, c.want, "Create %d of the folder %q", c.create, c.name)
			continue
		}
		b.ok(err, "Create %d of the folder %q", c.create, c.name)
		if o.Attr.Kind != remote.Dir {
			b.Errorf("kind of an open folder is %d, want %d", o.Attr.Kind, remote.Dir)
		}
		if a, err := o.File.GetAttr(b.ctx, o.Open); err != nil || a.Kind != remote.Dir {
			b.Errorf("GetAttr of an open folder: kind %d, %v, want %d", a.Kind, err, remote.Dir)
		}
		b.ok(o.Open.Close(b.ctx), "Close")
	}
	b.holds("dir", "file")
}

func testOpenAccess(b *bed) {
	b.put("file", []byte("full"))
	r := b.open("file", remote.ForRead, remote.Existing)
	_, _, err := r.File.WriteAt(b.ctx, r.req(0), remote.Write{Data: [][]byte{[]byte("nope")}})
	b.fails(err, forbidden(), "WriteAt of what is open for reading")
	_, _, err = r.Open.Append(b.ctx, [][]byte{[]byte("nope")})
	b.fails(err, forbidden(), "Append to what is open for reading")
	_, err = r.File.SetSize(b.ctx, r.Open, 1)
	b.fails(err, forbidden(), "SetSize of what is open for reading")
	if got := r.read(0, 10); string(got) != "full" {
		b.Errorf("after writes that failed: %q, want %q", got, "full")
	}
	r.close()

	w := b.open("file", remote.ForWrite, remote.Existing)
	_, _, err = w.File.ReadAt(b.ctx, w.req(0), [][]byte{make([]byte, 4)})
	b.fails(err, forbidden(), "ReadAt of what is open for writing")
	w.write(1, []byte("oo"))
	w.close()
	b.has("file", []byte("fool"))
}

func testOpenPath(b *bed) {
	b.mkdir("a")
	b.mkdir("a/b")
	b.put("a/b/file", []byte("deep"))
	h := b.open("a/b/file", remote.ForRead, remote.Existing)
	if got := h.read(0, 10); string(got) != "deep" {
		b.Errorf("a/b/file has %q, want %q", got, "deep")
	}
	ab := b.attr("a/b")
	below := remote.At{Dir: ab.Node, Name: "file"}
	if a, err := b.vol.GetAttr(b.ctx, below); err != nil || a.Size != 4 {
		b.Errorf("GetAttr of file in the node of a/b: size %d, %v, want 4", a.Size, err)
	}
	for _, name := range []string{"no/file", "a/no/file", "a/b/file/no", "a/b/file/no/no"} {
		for _, create := range []remote.Create{remote.Existing, remote.OrNew, remote.New} {
			_, err := b.vol.Open(b.ctx, b.at(name), remote.How{Access: remote.ForRead | remote.ForWrite, Create: create}, nil)
			b.fails(err, noSuchDir(), "Open of %q with Create %d", name, create)
		}
		_, err := b.vol.Make(b.ctx, b.at(name), remote.Make{Kind: remote.Dir})
		b.fails(err, noSuchDir(), "Make of %q", name)
		_, err = b.vol.GetAttr(b.ctx, b.at(name))
		b.fails(err, noSuchDir(), "GetAttr of %q", name)
	}
	b.holds("a")
}

func testOpensShare(b *bed) {
	one := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	two := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	if one.File != two.File {
		b.Error("two opens of one file have two Files, want one")
	}
	one.write(0, []byte("shared"))
	if got := two.read(0, 10); string(got) != "shared" {
		b.Errorf("the other open reads %q, want %q", got, "shared")
	}
	if _, err := one.File.SetSize(b.ctx, two.Open, 3); err != nil {
		b.Errorf("SetSize by the other open: %v", err)
	}
	if a, err := two.File.GetAttr(b.ctx, one.Open); err != nil || a.Size != 3 {
		b.Errorf("GetAttr: size %d, %v, want 3", a.Size, err)
	}
}

func testOpensOutlive(b *bed) {
	one := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	one.write(0, []byte("still here"))
	two := b.open("file", remote.ForRead, remote.Existing)
	one.close()
	if got := two.read(0, 20); string(got) != "still here" {
		b.Errorf("after the first open was closed: %q, want %q", got, "still here")
	}
	p := make([]byte, 4)
	if n, _, err := one.File.ReadAt(b.ctx, one.req(0), [][]byte{p}); err == nil {
		b.Errorf("ReadAt by a closed open returned %d bytes, want an error", n)
	}
	two.close()
	three := b.open("file", remote.ForRead, remote.Existing)
	if got := three.read(6, 20); string(got) != "here" {
		b.Errorf("opened again: %q, want %q", got, "here")
	}
}

func testReadFile(b *bed) {
	want := noise(1, 5000)
	b.put("file", want)
	b.put("empty", nil)
	b.mkdir("dir")
	for _, n := range []int{0, 1, 4096, 4999, 5000, 5001, 100_000} {
		// Bytes on either side show what is written outside.
		room := bytes.Repeat([]byte{0xEE}, n+16)
		got, attr, err := b.vol.ReadFile(b.ctx, b.at("file"), room[8:8+n:8+n])
		b.ok(err, "ReadFile of %d bytes", n)
		all := min(n, len(want), b.vol.Limits().Read)
		if got != all || attr.Size != int64(len(want)) || attr.Kind != remote.Regular {
			b.Errorf("ReadFile into %d bytes: %d, size %d, kind %d, want %d of %d", n, got, attr.Size, attr.Kind, all, len(want))
		}
		if !bytes.Equal(room[8:8+got], want[:got]) {
			b.Errorf("ReadFile into %d bytes: %s", n, differ(room[8:8+got], want[:got]))
		}
		if !bytes.Equal(slicesEnds(room, 8), bytes.Repeat([]byte{0xEE}, 16)) {
			b.Errorf("ReadFile into %d bytes wrote outside of them", n)
		}
	}
	p := make([]byte, 10)
	if n, attr, err := b.vol.ReadFile(b.ctx, b.at("empty"), p); n != 0 || attr.Size != 0 || err != nil {
		b.Errorf("ReadFile of an empty file: %d, size %d, %v, want 0, 0, nil", n, attr.Size, err)
	}
	_, _, err := b.vol.ReadFile(b.ctx, b.at("missing"), p)
	b.fails(err, missing(), "ReadFile of nothing")
	_, _, err = b.vol.ReadFile(b.ctx, b.at("dir"), p)
	b.fails(err, isDir(), "ReadFile of a folder")
}

// slicesEnds returns the first and last n bytes of p.
func slicesEnds(p []byte, n int) []byte {
	return append(bytes.Clone(p[:n]), p[len(p)-n:]...)
}

func testWriteFile(b *bed) {
	b.mkdir("dir")
	short, long := []byte("short"), noise(2, 5000)
	for _, c := range creates {
		how := remote.How{Access: remote.ForWrite, Create: c.create, Stable: c.create == remote.New}
		n := fmt.Sprint(c.create)
		b.put("file"+n, long)
		after := short
		if c.has != "" { // what was there stays where nothing is written
			after = append(bytes.Clone(short), long[len(short):]...)
		}
		if c.file != nil {
			after = long
		}
		for _, f := range []struct {
			name string
			want []error
			has  []byte
		}{{"missing" + n, c.missing, short}, {"file" + n, c.file, after}} {
			attr, err := b.vol.WriteFile(b.ctx, b.at(f.name), how, short)
			if f.want != nil {
				b.fails(err, f.want, "WriteFile of %s", f.name)
			} else {
				b.ok(err, "WriteFile of %s", f.name)
				if attr.Size != int64(len(f.has)) {
					b.Errorf("WriteFile of %s: size %d, want %d", f.name, attr.Size, len(f.has))
				}
				b.same(f.name, attr, b.attr(f.name))
			}
			if f.name == "missing"+n && f.want != nil {
				b.gone(f.name)
			} else {
				b.has(f.name, f.has)
			}
		}
		_, err := b.vol.WriteFile(b.ctx, b.at("dir"), how, short)
		b.fails(err, isDirThere(), "WriteFile of a folder with Create %d", c.create)
	}
	largest := noise(3, b.vol.Limits().Write)
	b.put("largest", largest)
	b.has("largest", largest)
}
