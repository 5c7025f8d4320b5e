package pagecache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestReadsWithoutMemoryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(64 << 10)
		r := newRig(t, Config{Budget: 16 << 10}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		var taken []*run
		for m := r.c.memory(r.f, extent.Range{End: MinPage}); m != nil; m = r.c.memory(r.f, extent.Range{End: MinPage}) {
			taken = append(taken, m)
		}
		p := make([]byte, 100)
		if n, err := o.ReadAt(ctx, p, 1000); n != len(p) || err != nil || !bytes.Equal(p, data[1000:1100]) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		for _, m := range taken {
			r.c.unpin(m)
		}
		must(t, o.Close(ctx))
	})
}

// A stream is much longer than the cache. What it is shown does not change, whatever
// is evicted meanwhile.
func TestPinsKeepMemory(t *testing.T) {
	for _, heap := range []bool{true, false} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(1<<20))
		if !heap {
			c, err := New(Config{Budget: 4 << 20})
			must(t, err)
			defer c.Close()
			r.c, r.f = c, c.NewFile(FileConfig{})
		}
		o := r.open()
		other := r.another("other", noise(8<<20))
		data, at := noise(1<<20), 0
		if _, _, err := o.Stream(ctx, 0, func(p []byte) error {
			evicted := r.c.Stats().Evicted
			r.read(other, 0, 8<<20)
			if r.c.Stats().Evicted-evicted < 4<<20 {
				t.Error("nothing was evicted")
			}
			r.same("what is shown", p, data[at:at+len(p)])
			at += len(p)
			return nil
		}); err != nil || at != len(data) {
			t.Errorf("streamed %d bytes, %v", at, err)
		}
		must(t, o.Close(ctx))
		must(t, other.Close(ctx))
	}
}

func TestStreamsEndWithTheirTaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(3<<20))
		o := r.open()
		enough := errors.New("enough")
		calls := 0
		if n, kept, err := o.Stream(ctx, 1000, func([]byte) error {
			if calls++; calls == 2 {
				return enough
			}
			return nil
		}); n == 0 || !kept || err != enough || calls != 2 {
			t.Errorf("streamed %d bytes in %d calls, %v, %v", n, calls, kept, err)
		}
		synctest.Wait()
		for r.c.evict(1 << 20) {
		}
		if n := r.c.Stats().Cached; n != 0 {
			t.Errorf("%d bytes are still pinned", n)
		}
		must(t, o.Close(ctx))
	})
}

func TestMemoryGoesBack(t *testing.T) {
	c, err := New(Config{Budget: 64 << 20})
	must(t, err)
	defer c.Close()
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, noise(48<<20))
	r.fake.Set(func(c *remotetest.Config) { c.Check = nil })
	r.c, r.f = c, c.NewFile(FileConfig{})
	o := r.open()
	r.read(o, 0, 48<<20)
	if n := c.Stats().Cached; n != 48<<20 {
		t.Errorf("%d bytes in use, want all", n)
	}
	r.f.Forget()
	if n := c.Stats().Cached; n != 0 {
		t.Errorf("%d bytes in use, want none", n)
	}
	touched := 0
	for _, is := range c.arena.touched {
		if is {
			touched++
		}
	}
	if c.arena.idle != maxIdle || touched != maxIdle {
		t.Errorf("%d pieces are idle, %d have memory, want %d", c.arena.idle, touched, maxIdle)
	}
	r.same("read anew", r.read(o, 40<<20, 1<<20), noise(48 << 20)[40<<20:41<<20])
	must(t, o.Close(ctx))
}

// Large blocks are given up on before all of the cache is evicted for one of them.
func TestAStreamAmongScatteredPages(t *testing.T) {
	const size = 32 << 20
	r := newRig(t, Config{Budget: 8 << 20}, FileConfig{}, remotetest.Config{}, noise(size))
	o := r.open()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 4000 {
		r.read(o, rng.Int64N(size/4096)*4096, 4096)
	}
	evicted := r.c.Stats().Evicted
	other := r.another("other", noise(1<<20))
	r.read(other, 0, 1<<20)
	if n := r.c.Stats().Evicted - evicted; n > 6<<20 {
		t.Errorf("%d bytes evicted for a megabyte", n)
	}
	must(t, o.Close(ctx))
	must(t, other.Close(ctx))
}

// Whoever still looks at memory when the cache is closed sees it unchanged, and has it
// given back.
func TestClosingWhileMemoryIsInUse(t *testing.T) {
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, noise(1<<20))
	c, err := New(Config{Budget: 4 << 20})
	must(t, err)
	r.f = c.NewFile(FileConfig{})
	o := r.open()
	r.same("bytes", r.read(o, 0, 1<<20), noise(1<<20))
	data, at := noise(1<<20), 0
	if _, _, err := o.Stream(ctx, 0, func(p []byte) error {
		must(t, c.Close())
		r.same("what is shown", p, data[at:at+len(p)])
		if at == 0 && c.arena.memory == nil {
			t.Error("the memory is gone")
		}
		at += len(p)
		return nil
	}); at != 1<<20 || err != nil {
		t.Errorf("streamed %d bytes, %v", at, err)
	}
	if c.arena.memory != nil {
		t.Error("the memory is still there")
	}
	r.same("a read after that", r.read(o, 5, 10), data[5:15])
	r.write(o, 2<<20, data[:10])
	must(t, o.Close(ctx))
	must(t, c.Close())
}

// A file that is larger than the cache does not push the others out, and takes no
// memory that was never used once it has its share.
func TestLargeStreamsLeaveOthersAlone(t *testing.T) {
	c, err := New(Config{Budget: 16 << 20, Heap: true})
	must(t, err)
	defer c.Close()
	fake := remotetest.New(remotetest.Config{Rights: remote.CacheRead | remote.CacheWrite})
	fake.Put("small", noise(4<<20))
	fake.Put("large", noise(64<<20))
	open := func(name string) *Open {
		f := c.NewFile(FileConfig{})
		opened, err := fake.Open(ctx, remote.At{Name: name}, remote.How{Access: remote.ForRead | remote.ForWrite, Rights: f.Wants()}, f)
		must(t, err)
		return f.Attach(opened, remote.ForRead|remote.ForWrite, false)
	}
	small, large := open("small"), open("large")
	p := make([]byte, 1<<20)
	pass := func(o *Open, size int64) {
		for off := int64(0); off < size; off += int64(len(p)) {
			n, err := o.ReadAt(ctx, p, off)
			if n != len(p) || err != nil {
				t.Fatalf("at %d: %d, %v", off, n, err)
			}
		}
	}
	pass(small, 4<<20)
	pass(large, 64<<20)
	before := fake.Count("ReadAt")
	pass(small, 4<<20)
	if n := fake.Count("ReadAt") - before; n != 0 {
		t.Errorf("%d requests for what was in the cache before a large file was read", n)
	}
	must(t, small.Close(ctx))
	must(t, large.Close(ctx))
}
