package remotetest

import (
	"bytes"
	"math"
	"sync"

	"github.com/pagewire/pagewire/internal/remote"
)

var dataTests = []test{
	{"ReadAtAnyOffsetAndSize", testReadSizes},
	{"ReadAtBeyondTheEnd", testReadBeyond},
	{"ReadAtFillsBuffersInOrder", testScatter},
	{"WriteAtAnyOffsetAndSize", testWriteSizes},
	{"WriteAtTakesBuffersInOrder", testGather},
	{"WriteAtLeavesHolesOfZeros", testHoles},
	{"OneRequestCarriesWhatLimitsSays", testLimits},
	{"FlowLeavesRoomForARequest", testFlow},
	{"AppendGoesToTheEnd", testAppend},
	{"CommitOfWhatWasWritten", testCommit},
	{"SetSizeCutsAndFillsWithZeros", testSetSize},
}

// sizes are where implementations go wrong: around pages, 64 KiB credits and nothing.
var sizes = []int{0, 1, 7, 4095, 4096, 4097, 65535, 65536, 65537}

func testReadSizes(b *bed) {
	want := noise(1, 200_003)
	b.put("file", nil)
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	h.write(0, want)
	for _, off := range sizes {
		for _, n := range sizes {
			if got := h.read(int64(off), n); !bytes.Equal(got, want[off:off+n]) {
				b.Errorf("%d bytes at %d: %s", n, off, differ(got, want[off:off+n]))
			}
		}
	}
}

func testReadBeyond(b *bed) {
	want := noise(1, 4096)
	b.put("file", want)
	b.put("empty", nil)
	h := b.open("file", remote.ForRead, remote.Existing)
	for _, c := range []struct {
		off  int64
		n    int
		want int
	}{{4096, 1, 0}, {4096, 70_000, 0}, {4095, 1, 1}, {4095, 2, 1}, {4000, 70_000, 96}, {0, 4097, 4096}, {1 << 40, 10, 0}} {
		got := h.read(c.off, c.n) // stops at the end, which must therefore be told
		if !bytes.Equal(got, want[min(c.off, 4096):][:c.want]) {
			b.Errorf("%d bytes at %d: %d bytes, want %d", c.n, c.off, len(got), c.want)
		}
	}
	for _, n := range []int{1, 4094, 4095} {
		if got, eof, err := h.File.ReadAt(b.ctx, h.req(0), [][]byte{make([]byte, n)}); eof || err != nil {
			b.Errorf("ReadAt of %d bytes of 4096: %d, end of file %v, %v, want more to come", n, got, eof, err)
		}
	}
	e := b.open("empty", remote.ForRead, remote.Existing)
	if n, eof, err := e.File.ReadAt(b.ctx, e.req(0), [][]byte{make([]byte, 10)}); n != 0 || !eof || err != nil {
		b.Errorf("ReadAt of an empty file: %d, %v, %v, want 0, true, nil", n, eof, err)
	}
	if n, _, err := h.File.ReadAt(b.ctx, h.req(0), nil); n != 0 || err != nil {
		b.Errorf("ReadAt of nothing: %d, %v, want 0, nil", n, err)
	}
	if n, _, err := h.File.ReadAt(b.ctx, h.req(-1), [][]byte{make([]byte, 10)}); err == nil {
		b.Errorf("ReadAt -1 returned %d bytes, want an error", n)
	}
	if n, _, err := h.File.ReadAt(b.ctx, h.req(math.MaxInt64-5), [][]byte{make([]byte, 10)}); n != 0 {
		b.Errorf("ReadAt of the last offset there is: %d, %v, want nothing", n, err)
	}
}

// testScatter reads into buffers that lie between bytes which must stay.
func testScatter(b *bed) {
	want := noise(1, 150_000)
	b.put("file", nil)
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	h.write(0, want)
	uneven := make([]int, 0, 2000)
	for n := range 2000 { // more than one system call takes
		uneven = append(uneven, n%5)
	}
	for _, lens := range [][]int{{0, 1, 0}, {3, 4095, 1}, {1, 65536, 0, 70_000}, {149_000, 2000, 10}, uneven} {
		total := 0
		for _, n := range lens {
			total += n + 1
		}
		room := bytes.Repeat([]byte{0xEE}, total)
		var into [][]byte
		at := 0
		for _, n := range lens {
			into, at = append(into, room[at:at+n:at+n]), at+n+1
		}
		n := h.readInto(11, into)
		if all := min(size(into), len(want)-11); n != all {
			b.Errorf("%d buffers: read %d bytes, want %d", len(into), n, all)
		}
		if got := bytes.Join(into, nil)[:n]; !bytes.Equal(got, want[11:11+n]) {
			b.Errorf("%d buffers: %s", len(into), differ(got, want[11:11+n]))
		}
		at = -1
		for i, n := range lens {
			if at += n + 1; room[at] != 0xEE {
				b.Errorf("the byte behind buffer %d of %d was overwritten", i, len(into))
			}
		}
	}
}

func testWriteSizes(b *bed) {
	var want []byte
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	for i, off := range sizes {
		for j, n := range sizes {
			data := noise(uint64(i*len(sizes)+j), n)
			h.write(int64(off), data)
			if n > 0 && len(want) < off+n {
				want = append(want, make([]byte, off+n-len(want))...)
			}
			copy(want[min(off, len(want)):], data)
		}
	}
	if n, _, err := h.File.WriteAt(b.ctx, h.req(1<<20), remote.Write{}); n != 0 || err != nil {
		b.Errorf("WriteAt of nothing: %d, %v, want 0, nil", n, err)
	}
	if got := h.read(0, len(want)+1); !bytes.Equal(got, want) {
		b.Error(differ(got, want))
	}
	_, _, err := h.File.WriteAt(b.ctx, h.req(-1), remote.Write{Data: [][]byte{want}})
	b.fails(err, anyError(), "WriteAt -1")
	h.close()
	b.has("file", want)
}

func testGather(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	want := noise(1, 150_001)
	h.write(0, split(want)...)
	var tiny [][]byte
	for i := range 2000 { // more than one system call takes
		tiny = append(tiny, want[3*i:3*i+3])
	}
	h.write(int64(len(want)), tiny...)
	want = append(want, want[:6000]...)
	if got := h.read(0, len(want)+1); !bytes.Equal(got, want) {
		b.Error(differ(got, want))
	}
}

func testHoles(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	const off = 1 << 20
	h.write(off, []byte("far"))
	h.write(1, []byte("near"))
	want := make([]byte, off+3)
	copy(want[off:], "far")
	copy(want[1:], "near")
	if got := h.read(0, off+10); !bytes.Equal(got, want) {
		b.Error(differ(got, want))
	}
	if a, err := h.File.GetAttr(b.ctx, h.Open); err != nil || a.Size != off+3 {
		b.Errorf("GetAttr: size %d, %v, want %d", a.Size, err, off+3)
	}
}

// testLimits sends requests of one byte less, exactly and one more than allowed.
func testLimits(b *bed) {
	l := b.vol.Limits()
	if l.Read <= 0 || l.Write <= 0 || l.Block < 0 {
		b.Fatalf("Limits are %+v, want some room", l)
	}
	around := func(limit int) []int {
		if limit > 1<<20 { // it takes too long to send these thrice
			return []int{limit + 1}
		}
		return []int{limit - 1, limit, limit + 1}
	}
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	for i, n := range around(l.Write) {
		want := noise(uint64(i), n)
		h.write(3, want[:n/2], want[n/2:])
		if got := h.read(3, n); !bytes.Equal(got, want) {
			b.Errorf("%d bytes, %d allowed: %s", n, l.Write, differ(got, want))
		}
	}
	for i, n := range around(l.Read) {
		want := noise(uint64(i), n)
		h.write(5, want)
		if got := h.read(5, n); !bytes.Equal(got, want) {
			b.Errorf("%d bytes, %d allowed: %s", n, l.Read, differ(got, want))
		}
	}
}

func testFlow(b *bed) {
	for _, d := range []remote.Direction{remote.Reading, remote.Writing} {
		if w := b.vol.Flow().Window(d); w.Requests < 1 || w.Size < 1 {
			b.Errorf("the window of direction %d is %+v, want at least one request", d, w)
		}
	}
}

// testAppend has two opens append at once. No record may be lost or torn.
func testAppend(b *bed) {
	const writers, records, length = 4, 8, 1000
	b.put("file", []byte("head"))
	opens := []*handle{
		b.open("file", remote.ForRead|remote.ForWrite, remote.Existing),
		b.open("file", remote.ForRead|remote.ForWrite, remote.Existing),
	}
	var mu sync.Mutex
	where := map[int64]byte{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range records {
				mark := byte(1 + w*records + r)
				p := bytes.Repeat([]byte{mark}, length)
				off, n, err := opens[w%2].Open.Append(b.ctx, split(p))
				if err != nil || n != length {
					b.Errorf("Append: %d, %v, want %d", n, err, length)
					return
				}
				mu.Lock()
				where[off] = mark
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := []byte("head")
	for range writers * records {
		mark, ok := where[int64(len(want))]
		if !ok {
			b.Fatalf("nothing was appended at %d", len(want))
		}
		want = append(want, bytes.Repeat([]byte{mark}, length)...)
	}
	if got := opens[0].read(0, len(want)+1); !bytes.Equal(got, want) {
		b.Error(differ(got, want))
	}
}

func testCommit(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	want := noise(1, 100_000)
	h.write(0, want)
	for _, spans := range [][]remote.Span{{{Off: 0, Len: 1000}, {Off: 4096, Len: 95_904}}, nil} {
		if redo, err := h.File.Commit(b.ctx, h.Open, spans); err != nil || len(redo) > 0 {
			b.Errorf("Commit: %v, %v, want nothing to redo", redo, err)
		}
	}
	w := remote.Write{Data: [][]byte{want[:10]}, Stable: true}
	if n, stable, err := h.File.WriteAt(b.ctx, h.req(20), w); n != 10 || !stable || err != nil {
		b.Errorf("stable WriteAt: %d, %v, %v, want 10, true, nil", n, stable, err)
	}
	copy(want[20:], want[:10])
	if b.Second != nil {
		b = b.second()
	}
	b.has("file", want)
}

func testSetSize(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	want := noise(1, 10_000)
	h.write(0, want)
	set := func(what string, to int64, attr remote.Attr, err error) {
		b.Helper()
		b.ok(err, "%s to %d", what, to)
		want = append(want[:min(to, int64(len(want)))], make([]byte, max(0, to-int64(len(want))))...)
		if attr.Size != to {
			b.Errorf("%s to %d: size %d", what, to, attr.Size)
		}
		if got := h.read(0, int(to)+100); !bytes.Equal(got, want) {
			b.Errorf("%s to %d: %s", what, to, differ(got, want))
		}
	}
	for _, to := range []int64{9999, 4097, 4097, 70_000, 0, 1, 5000} {
		attr, err := h.File.SetSize(b.ctx, h.Open, to)
		set("SetSize", to, attr, err)
	}
	for _, to := range []int64{6000, 10, 4096, 0, 8192} { // while it is open
		attr, err := b.vol.SetAttr(b.ctx, b.at("file"), remote.SetAttr{Size: &to})
		set("SetAttr", to, attr, err)
	}
	_, err := h.File.SetSize(b.ctx, h.Open, -1)
	b.fails(err, anyError(), "SetSize to -1")
	h.close()
	b.has("file", want)
	b.mkdir("dir")
	to := int64(5)
	for name, want := range map[string][]error{"dir": isDir(), "missing": missing()} {
		_, err := b.vol.SetAttr(b.ctx, b.at(name), remote.SetAttr{Size: &to})
		b.fails(err, want, "SetAttr of the size of %q", name)
	}
}
