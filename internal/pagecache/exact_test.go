package pagecache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// hold has the next answer of one kind wait until the returned gate is closed.
func (r *rig) hold(call string) gate {
	g, held := make(gate), false
	r.late = func(got string, _ int64) {
		if got == call && !held {
			held = true
			<-g
		}
	}
	return g
}

// whole is file of n bytes, of which those in r are p.
func whole(n int, off int, p []byte) []byte {
	data := noise(n)
	copy(data[off:], p)
	return data
}

func TestFillsDoNotOverwriteWhatIsNewer(t *testing.T) {
	newer := bytes.Repeat([]byte{1}, 5000)
	for _, c := range []struct {
		name string
		do   func(r *rig, o *Open)
	}{
		{"dirty", func(*rig, *Open) {}},
		{"written back", func(r *rig, o *Open) { must(r.t, o.Sync(ctx)) }},
		{"written back and evicted", func(r *rig, o *Open) {
			must(r.t, o.Sync(ctx))
			for r.c.evict(1 << 20) {
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(64<<10))
				g := r.hold("ReadAt")
				o := r.open()
				old := make(chan []byte)
				go func() { old <- r.read(o, 0, 64<<10) }()
				synctest.Wait() // the old bytes are in memory that nobody sees
				r.write(o, 10_000, newer)
				c.do(r, o)
				close(g)
				r.same("a read meanwhile", <-old, whole(64<<10, 10_000, newer))
				r.same("a read after that", r.read(o, 0, 64<<10), whole(64<<10, 10_000, newer))
				must(t, o.Close(ctx))
				r.same("the server", r.bytes(), whole(64<<10, 10_000, newer))
			})
		})
	}
}

func TestDirectWritesAgainstFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer := bytes.Repeat([]byte{1}, 5000)
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(64<<10))
		g := r.hold("ReadAt")
		o, stable := r.open(), r.openStable()
		old := make(chan []byte)
		go func() { old <- r.read(o, 0, 64<<10) }()
		synctest.Wait()
		r.write(stable, 10_000, newer)
		r.same("the server", r.bytes(), whole(64<<10, 10_000, newer))
		close(g)
		<-old
		r.same("a read after that", r.read(o, 0, 64<<10), whole(64<<10, 10_000, newer))
		must(t, o.Close(ctx))
		must(t, stable.Close(ctx))
	})
}

// What a fill brings for bytes that were cut off meanwhile is of another file.
func TestTruncationsAgainstFills(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int64
	}{
		{"down", []int64{20_000}},
		{"up", []int64{100_000}},
		{"to nothing", []int64{0}},
		{"the same", []int64{64 << 10}},
		{"down and up", []int64{20_000, 64 << 10}},
		{"down, up and down", []int64{5, 90_000, 50_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(64<<10))
				g := r.hold("ReadAt")
				o := r.open()
				old := make(chan []byte)
				go func() { old <- r.read(o, 0, 64<<10) }()
				synctest.Wait()
				want := noise(64 << 10)
				for _, size := range c.sizes {
					must(t, o.Truncate(ctx, size))
					want = append(want[:min(len(want), int(size))], make([]byte, max(int(size)-len(want), 0))...)
				}
				close(g)
				<-old
				r.same("a read after that", r.read(o, 0, 200_000), want)
				if size := r.f.Size(); size != int64(len(want)) {
					t.Errorf("size %d, want %d", size, len(want))
				}
				must(t, o.Close(ctx))
				r.same("the server", r.bytes(), want)
			})
		})
	}
}

func TestTruncationsOfDirtyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		data := noise(100_000)
		r.write(o, 0, data)
		must(t, o.Truncate(ctx, 40_000))
		if r.writes() != 0 || r.c.Stats().Dirty != 40_000 {
			t.Errorf("%d writes, %d bytes dirty, want none and 40000", r.writes(), r.c.Stats().Dirty)
		}
		r.same("cut", r.read(o, 0, 200_000), data[:40_000])
		must(t, o.Truncate(ctx, 50_000))
		want := append(slices.Clone(data[:40_000]), make([]byte, 10_000)...)
		r.same("longer again", r.read(o, 0, 200_000), want)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), want)
	})
}

// A truncation waits for writes under way behind the new end, and those that come
// later for it.
func TestTruncationsAgainstWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		r.write(o, 0, noise(100_000))
		g := r.stop("WriteAt")
		synced := make(chan error)
		go func() { synced <- o.Sync(ctx) }()
		synctest.Wait()
		cut := make(chan error)
		go func() { cut <- o.Truncate(ctx, 30_000) }()
		synctest.Wait()
		if r.fake.Count("SetSize") != 0 {
			t.Error("cut off while bytes there were being written")
		}
		wrote := make(chan bool)
		late := bytes.Repeat([]byte{7}, 1000)
		go func() {
			r.write(o, 80_000, late)
			close(wrote)
		}()
		synctest.Wait()
		close(g)
		must(t, <-cut)
		must(t, <-synced)
		<-wrote
		want := make([]byte, 81_000)
		copy(want, noise(100_000)[:30_000])
		copy(want[80_000:], late)
		r.same("bytes", r.read(o, 0, 200_000), want)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), want)
	})
}

// Sync is not done with bytes that a truncation would have cut off, had it not failed.
func TestSyncWhileATruncationFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		data := noise(10_000)
		r.write(o, 0, data)
		g := make(gate)
		r.hook(func(ctx context.Context, op remotetest.Op) error {
			if op.Call == "SetSize" {
				return errors.Join(g.pass(ctx), syscall.EACCES)
			}
			return nil
		})
		cut := make(chan error)
		go func() { cut <- o.Truncate(ctx, 1000) }()
		synctest.Wait()
		synced := make(chan error)
		go func() { synced <- o.Sync(ctx) }()
		synctest.Wait()
		close(g)
		if err := <-cut; !errors.Is(err, syscall.EACCES) {
			t.Errorf("Truncate: %v, want EACCES", err)
		}
		must(t, <-synced)
		r.same("the server", r.bytes(), data)
		must(t, o.Close(ctx))
	})
}

func TestHolesAreZeros(t *testing.T) {
	for _, mode := range []Mode{Strict, None, Loose, ReadOnly} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: mode}, remotetest.Config{}, noise(5000))
		o := r.open()
		end := []byte("the end")
		r.write(o, 100_000, end)
		want := make([]byte, 100_007)
		copy(want, noise(5000))
		copy(want[100_000:], end)
		r.same("before it is written", r.read(o, 0, 200_000), want)
		must(t, o.Sync(ctx))
		r.same("after that", r.read(o, 0, 200_000), want)
		r.f.Forget()
		r.same("read anew", r.read(o, 0, 200_000), want)
		must(t, o.Truncate(ctx, 200_000))
		want = append(want, make([]byte, 99_993)...)
		r.same("made longer", r.read(o, 0, 300_000), want)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), want)
	}
}

// The server ends the file where it does not know yet that it is longer.
func TestFillsDoNotShortenWhatGrewHere(t *testing.T) {
	for _, flush := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
			g := r.hold("ReadAt")
			o := r.open()
			tail := noise(1000)
			r.write(o, 50_000, tail)
			hole := make(chan []byte)
			go func() { hole <- r.read(o, 0, 4096) }()
			synctest.Wait()
			if flush {
				must(t, o.Sync(ctx))
			}
			close(g)
			r.same("the hole", <-hole, make([]byte, 4096))
			if size := r.f.Size(); size != 51_000 {
				t.Errorf("size %d, want 51000", size)
			}
			r.same("the tail", r.read(o, 50_000, 1000), tail)
			must(t, o.Close(ctx))
		})
	}
}

// What has no room in the cache is read from a server that does not know of the tail.
func TestDirectReadsOfWhatGrewHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100))
		o := r.open()
		r.write(o, 50_000, noise(1000))
		g := r.stop("WriteAt")
		r.f.Rights(remote.Change{Epoch: 100}) // all gone
		synctest.Wait()
		r.same("the hole", r.read(o, 0, 4096), append(noise(100), make([]byte, 3996)...))
		if n, err := o.ReadAt(ctx, make([]byte, 10), 60_000); n != 0 || err != io.EOF {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		close(g)
		must(t, o.Close(ctx))
	})
}

func TestAFileThatShrankOnTheServer(t *testing.T) {
	for _, mode := range []Mode{Loose, ReadOnly} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: mode}, remotetest.Config{}, noise(100_000))
		o := r.open()
		r.read(o, 0, 4096)
		r.fake.Put(name, noise(50_000))
		r.same("bytes", r.read(o, 40_000, 30_000), noise(50_000)[40_000:])
		if size := r.f.Size(); size != 50_000 {
			t.Errorf("mode %d: size %d, want 50000", mode, size)
		}
		must(t, o.Close(ctx))
	}
}

// What was written here is not lost because somebody else has cut it off.
func TestDirtyBytesOfAFileThatShrank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: Loose}, remotetest.Config{}, noise(100_000))
		o := r.open()
		mine := bytes.Repeat([]byte{7}, 1000)
		r.write(o, 80_000, mine)
		r.fake.Put(name, noise(50_000))
		want := make([]byte, 81_000)
		copy(want, noise(50_000))
		copy(want[80_000:], mine)
		r.same("bytes", r.read(o, 40_000, 60_000), want[40_000:])
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), want)
	})
}

// Bytes behind the end are gone, also if the end comes back.
func TestBytesBehindTheEnd(t *testing.T) {
	r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100_000))
	o := r.open()
	r.read(o, 0, 100_000)
	shorter := remote.Attr{Size: 50_000}
	_, touched, _ := r.f.State()
	r.f.Learn(shorter, touched)
	r.fake.Put(name, noise(100_000)[:50_000])
	r.write(o, 90_000, []byte("x"))
	want := append(noise(100_000)[:50_000], make([]byte, 40_001)...)
	want[90_000] = 'x'
	r.same("bytes", r.read(o, 0, 200_000), want)
	must(t, o.Close(ctx))
}

func TestHostileSizes(t *testing.T) {
	for _, size := range []int64{-1, -1 << 63, 1<<63 - 1, maxFile + 1} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100))
		opened, err := r.fake.Open(ctx, remote.At{Name: name}, remote.How{Access: remote.ForRead | remote.ForWrite, Rights: r.f.Wants()}, r.f)
		must(t, err)
		opened.Attr.Size = size
		o := r.attach(opened, remote.ForRead|remote.ForWrite, false)
		for _, off := range []int64{0, 1 << 40, maxFile - 1, maxFile, 1<<63 - 11} {
			n, err := o.ReadAt(ctx, make([]byte, 10), off)
			if size < 0 || off >= maxFile {
				if n != 0 || err != io.EOF {
					t.Errorf("size %d: read at %d: %d, %v, want EOF", size, off, n, err)
				}
			}
		}
		if got := r.f.Size(); got < 0 || got > maxFile {
			t.Errorf("size %d is taken for %d", size, got)
		}
		must(t, o.Close(ctx))
	}
}

func TestPartialPages(t *testing.T) {
	for _, page := range []int{4 << 10, 64 << 10, 1 << 20} {
		data := noise(3<<20 + 5)
		r := newRig(t, Config{PageSize: page, Budget: 16 << 20}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		for i := range 300 {
			off := int64(i) * 7919 * 13 % int64(len(data)-3000)
			p := bytes.Repeat([]byte{byte(i)}, 1+i*17%3000)
			r.write(o, off, p)
			copy(data[off:], p)
			if i%7 == 0 {
				at := off &^ 4095
				r.same("bytes around it", r.read(o, at, 10_000), data[at:min(at+10_000, int64(len(data)))])
			}
		}
		if n := r.reads(); n > 300 {
			t.Errorf("pages of %d: %d reads, although a write reads nothing", page, n)
		}
		r.same("all", r.read(o, 0, len(data)), data)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), data)
	}
}

func TestWritesAtTheEdges(t *testing.T) {
	const most = 1<<63 - 1
	for _, mode := range []Mode{Strict, None} {
		r := newRig(t, Config{}, FileConfig{Mode: mode}, remotetest.Config{}, noise(100))
		o := r.open()
		for _, c := range []struct {
			off int64
			n   int
			err error
		}{
			{0, 0, nil}, {most, 0, syscall.EFBIG}, {-1, 1, syscall.EINVAL}, {most, 1, syscall.EINVAL}, {most - 10, 4096, syscall.EINVAL},
			{maxFile, 1, syscall.EFBIG}, {maxFile - 1, 2, syscall.EFBIG},
		} {
			if n, err := o.WriteAt(ctx, make([]byte, c.n), c.off); n != 0 || err != c.err {
				t.Errorf("mode %d: %d bytes at %d: %d, %v, want %v", mode, c.n, c.off, n, err, c.err)
			}
		}
		for _, c := range []struct {
			size int64
			err  error
		}{{-1, syscall.EINVAL}, {most, syscall.EFBIG}, {100, nil}} {
			if err := o.Truncate(ctx, c.size); err != c.err {
				t.Errorf("mode %d: Truncate(%d): %v, want %v", mode, c.size, err, c.err)
			}
		}
		if off, n, err := o.Append(ctx, nil); off != 100 || n != 0 || err != nil {
			t.Errorf("mode %d: Append of nothing: %d, %d, %v", mode, off, n, err)
		}
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), noise(100))
	}
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, nil)
	o := r.open()
	r.hook(func(_ context.Context, op remotetest.Op) error {
		if op.Call == "WriteAt" {
			return syscall.EFBIG // what the server says of the last byte that there can be
		}
		return nil
	})
	r.write(o, maxFile-1, []byte{1})
	if _, _, err := o.Append(ctx, []byte{1}); err != syscall.EFBIG {
		t.Errorf("Append to the largest file: %v, want EFBIG", err)
	}
	if err := o.Close(ctx); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("Close: %v, want EFBIG", err)
	}
}
