package remotetest

import (
	"fmt"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

var attrTests = []test{
	{"GetAttrByNodeAndByName", testGetAttr},
	{"GetAttrOfTheRoot", testRoot},
	{"IDsTellFilesApart", testIDs},
	{"WritingMovesTheTime", testWrittenMoves},
	{"SetAttrChangesOnlyWhatItIsTold", testSetAttr},
	{"ReadOnlyFilesAreNotWritten", testReadOnly},
	{"StatFSIsPlausible", testStatFS},
	{"FullVolumeSaysSo", testFull},
}

func testGetAttr(b *bed) {
	b.put("file", make([]byte, 1234))
	b.mkdir("dir")
	b.put("dir/below", make([]byte, 5))
	for _, c := range []struct {
		name string
		kind remote.Kind
		size int64
	}{{"file", remote.Regular, 1234}, {"dir", remote.Dir, -1}, {"dir/below", remote.Regular, 5}} {
		a := b.attr(c.name)
		if a.Kind != c.kind || c.size >= 0 && a.Size != c.size {
			b.Errorf("%s: kind %d, size %d, want %d, %d", c.name, a.Kind, a.Size, c.kind, c.size)
		}
		if age := time.Since(a.Written).Abs(); age > 24*time.Hour {
			b.Errorf("%s: written %v ago, want just now", c.name, age)
		}
		if a.Size > 0 && a.Alloc < 0 {
			b.Errorf("%s: takes %d bytes", c.name, a.Alloc)
		}
		byNode, err := b.vol.GetAttr(b.ctx, remote.At{Node: a.Node})
		b.ok(err, "GetAttr of the node of %s", c.name)
		b.same(c.name+" by node", byNode, a)
		o, err := b.vol.Open(b.ctx, remote.At{Node: a.Node}, remote.How{Access: remote.ForRead, Dir: c.kind == remote.Dir}, nil)
		b.ok(err, "Open of the node of %s", c.name)
		byOpen, err := o.File.GetAttr(b.ctx, o.Open)
		b.ok(err, "GetAttr of %s, which is open", c.name)
		b.same(c.name+" by handle", byOpen, a)
		b.same(c.name+" by Open", o.Attr, a)
		b.ok(o.Open.Close(b.ctx), "Close")
	}
	b.gone("missing")
	b.gone("dir/missing")
	_, err := b.vol.SetAttr(b.ctx, b.at("missing"), remote.SetAttr{Written: time.Now()})
	b.fails(err, missing(), "SetAttr of nothing")
}

func testRoot(b *bed) {
	a, err := b.vol.GetAttr(b.ctx, remote.At{})
	b.ok(err, "GetAttr of the root")
	if a.Kind != remote.Dir || a.Node != "" {
		b.Errorf("the root: kind %d, node %q, want %d and no node", a.Kind, a.Node, remote.Dir)
	}
	if names := b.names(""); len(names) == 0 {
		b.Error("the root has nothing in it, want at least the tests' folder")
	}
}

func testIDs(b *bed) {
	one, two, dir := b.put("one", nil), b.put("two", nil), b.mkdir("dir")
	if one.ID == 0 {
		b.Skip("the peer has no IDs")
	}
	if one.ID == two.ID || one.ID == dir.ID {
		b.Errorf("IDs of three objects are %d, %d, %d, want three", one.ID, two.ID, dir.ID)
	}
	node, err := b.vol.Rename(b.ctx, b.at("one"), b.at("dir/three"), false)
	b.ok(err, "Rename")
	if a, err := b.vol.GetAttr(b.ctx, remote.At{Node: node}); err != nil || a.ID != one.ID {
		b.Errorf("after a rename: ID %d, %v, want still %d", a.ID, err, one.ID)
	}
}

func testWrittenMoves(b *bed) {
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	b.put("file", []byte("old"))
	_, err := b.vol.SetAttr(b.ctx, b.at("file"), remote.SetAttr{Written: past})
	b.ok(err, "SetAttr")
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	h.read(0, 3)
	h.close()
	if a := b.attr("file"); !a.Written.Equal(past) {
		b.Errorf("after a read: written %v, want still %v", a.Written, past)
	}
	h = b.open("file", remote.ForWrite, remote.Existing)
	h.write(0, []byte("new"))
	h.close()
	if a := b.attr("file"); !a.Written.After(past.AddDate(1, 0, 0)) {
		b.Errorf("after a write: written %v, want now", a.Written)
	}
}

// testSetAttr sets one thing after the other, and looks whether the others stay.
func testSetAttr(b *bed) {
	want := b.put("file", make([]byte, 100))
	times := []struct {
		name string
		set  func(time.Time) remote.SetAttr
		of   func(*remote.Attr) *time.Time
	}{
		{"Written", func(t time.Time) remote.SetAttr { return remote.SetAttr{Written: t} }, func(a *remote.Attr) *time.Time { return &a.Written }},
		{"Accessed", func(t time.Time) remote.SetAttr { return remote.SetAttr{Accessed: t} }, func(a *remote.Attr) *time.Time { return &a.Accessed }},
		{"Born", func(t time.Time) remote.SetAttr { return remote.SetAttr{Born: t} }, func(a *remote.Attr) *time.Time { return &a.Born }},
	}
	const dosBits = dosReadOnly | dosHidden
	check := func(what string, got remote.Attr) {
		b.Helper()
		for _, t := range times {
			if g, w := *t.of(&got), *t.of(&want); !g.Equal(w) && (b.Caps.DOS || t.name != "Born") {
				b.Errorf("%s: %s is %v, want %v", what, t.name, g.UTC(), w.UTC())
			}
		}
		if got.Size != want.Size || got.DOS&dosBits != want.DOS&dosBits {
			b.Errorf("%s: size %d, DOS %#x, want %d, %#x", what, got.Size, got.DOS&dosBits, want.Size, want.DOS&dosBits)
		}
	}
	set := func(what string, s remote.SetAttr) {
		b.Helper()
		got, err := b.vol.SetAttr(b.ctx, b.at("file"), s)
		b.ok(err, "SetAttr of %s", what)
		check("SetAttr of "+what, got)
		check("GetAttr after SetAttr of "+what, b.attr("file"))
	}

	set("nothing", remote.SetAttr{})
	for i, t := range times {
		if t.name == "Born" && !b.Caps.DOS {
			continue
		}
		for _, to := range []time.Time{
			time.Date(2040+i, 5, 6, 7, 8, 9, 123_456_700, time.UTC),
			time.Date(1980+i, 1, 2, 3, 4, 5, 100, time.FixedZone("far", 3600*9)),
		} {
			*t.of(&want) = to
			set(fmt.Sprintf("%s to %v", t.name, to), t.set(to))
		}
	}
	all := remote.SetAttr{Written: time.Unix(1e9, 500), Accessed: time.Unix(1.1e9, 0)}
	want.Written, want.Accessed = all.Written, all.Accessed
	set("two times", all)
	if b.Caps.DOS {
		for _, bits := range []uint32{dosHidden, dosReadOnly, dosReadOnly | dosHidden, 0} {
			want.DOS = bits
			set(fmt.Sprintf("DOS to %#x", bits), remote.SetAttr{DOS: &bits})
		}
	}

	odd := time.Date(2020, 1, 1, 0, 0, 0, 123_456_789, time.UTC)
	if a, err := b.vol.SetAttr(b.ctx, b.at("file"), remote.SetAttr{Written: odd}); err != nil || a.Written.Sub(odd).Abs() >= 100*time.Nanosecond {
		b.Errorf("SetAttr of %v: %v, %v, want less than 100 ns beside it", odd, a.Written, err)
	}
	b.mkdir("dir")
	b.put("dir/file", nil)
	if a, err := b.vol.SetAttr(b.ctx, b.at("dir"), remote.SetAttr{Written: all.Written}); err != nil || !a.Written.Equal(all.Written) {
		b.Errorf("SetAttr of a folder: %v, %v, want %v", a.Written, err, all.Written)
	}
}

func testReadOnly(b *bed) {
	if !b.Caps.DOS {
		b.Skip("the peer keeps no DOS attributes")
	}
	b.put("file", []byte("precious"))
	set := func(bits uint32) {
		_, err := b.vol.SetAttr(b.ctx, b.at("file"), remote.SetAttr{DOS: &bits})
		b.ok(err, "SetAttr of DOS to %#x", bits)
	}
	set(dosReadOnly)
	for _, create := range []remote.Create{remote.Existing, remote.OrNew, remote.Truncate, remote.TruncateNew} {
		_, err := b.vol.Open(b.ctx, b.at("file"), remote.How{Access: remote.ForWrite, Create: create}, nil)
		b.fails(err, forbidden(), "Open of a read-only file for writing with Create %d", create)
	}
	b.has("file", []byte("precious"))
	set(0)
	h := b.open("file", remote.ForWrite, remote.Existing)
	h.write(0, []byte("P"))
	h.close()
	b.has("file", []byte("Precious"))
}

func testStatFS(b *bed) {
	st, err := b.vol.StatFS(b.ctx)
	b.ok(err, "StatFS")
	if st.Block <= 0 || st.Total <= 0 || st.Free < 0 || st.Free > st.Total || st.Avail < 0 || st.Avail > st.Total {
		b.Errorf("StatFS is %+v, want sizes that fit into one another", st)
	}
}

func testFull(b *bed) {
	if b.Caps.Fill == nil {
		b.Skip("the peer's volume cannot be filled up")
	}
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	want := noise(1, 64<<10)
	h.write(0, want)
	b.Caps.Fill(b.T, 32<<10)
	defer b.Caps.Fill(b.T, -1)
	big := make([]byte, min(1<<20, h.File.Limits().Write))
	var err error
	for off := int64(len(want)); err == nil && off < 8<<20; off += int64(len(big)) {
		_, _, err = h.File.WriteAt(b.ctx, h.req(off), remote.Write{Data: [][]byte{big}})
	}
	b.fails(err, noSpace(), "WriteAt of more than there is room for")
	_, err = b.vol.WriteFile(b.ctx, b.at("another"), remote.How{Access: remote.ForWrite, Create: remote.New}, big)
	b.fails(err, noSpace(), "WriteFile of more than there is room for")
	if got := h.read(0, len(want)); string(got) != string(want) {
		b.Errorf("what was written before: %s", differ(got, want))
	}
	b.Caps.Fill(b.T, -1)
	h.write(0, big)
}
