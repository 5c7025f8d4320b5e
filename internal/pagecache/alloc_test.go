package pagecache

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
)

// fiction is a file of any size, whose bytes are made up where they are read. It takes
// what is written, and forgets it.
type fiction struct{ size int64 }

func (f fiction) ReadAt(_ context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	for _, p := range into {
		p = p[:max(min(int64(len(p)), f.size-req.Off-int64(n)), 0)]
		for i := 0; i < len(p); i += 4096 {
			p[i] = byte(req.Off >> 12)
		}
		n += len(p)
	}
	return n, req.Off+int64(n) == f.size, nil
}

func (fiction) WriteAt(_ context.Context, _ remote.Req, w remote.Write) (n int, stable bool, err error) {
	for _, p := range w.Data {
		n += len(p)
	}
	return n, true, nil
}

func (fiction) Commit(context.Context, remote.Open, []remote.Span) ([]remote.Span, error) {
	return nil, nil
}
func (f fiction) GetAttr(context.Context, remote.Open) (remote.Attr, error) {
	return remote.Attr{Size: f.size}, nil
}
func (f fiction) SetSize(context.Context, remote.Open, int64) (remote.Attr, error) {
	return remote.Attr{Size: f.size}, nil
}
func (fiction) Limits() remote.Limits { return remote.Limits{Read: 1 << 20, Write: 1 << 20} }
func (fiction) Flow() remote.Flow     { return fictionFlow{} }

type fictionFlow struct{}

func (fictionFlow) Window(remote.Direction) remote.Window {
	return remote.Window{Requests: 4, Size: 1 << 20}
}

type fictionOpen struct{}

func (fictionOpen) Append(context.Context, [][]byte) (int64, int, error) { return 0, 0, nil }
func (fictionOpen) Close(context.Context) error                          { return nil }

// openFiction opens a new file of that size.
func openFiction(c *Cache, size int64) *Open {
	rights := remote.CacheRead | remote.CacheWrite | remote.CacheHandle
	return c.NewFile(FileConfig{}).Attach(remote.Opened{
		File: fiction{size}, Open: fictionOpen{}, Attr: remote.Attr{Size: size}, Rights: rights, Epoch: 1,
	}, remote.ForRead|remote.ForWrite, false)
}

func TestHitsDoNotAlloc(t *testing.T) {
	for _, size := range []int64{1 << 20, 64 << 30} {
		c, err := New(Config{Budget: 64 << 20})
		must(t, err)
		o := openFiction(c, size)
		p := make([]byte, 64<<10)
		for _, n := range []int{1, 4096, len(p)} {
			i := int64(0)
			o.ReadAt(ctx, p, 0)
			if allocs := testing.AllocsPerRun(1000, func() {
				i = (i + 7) % 13
				if got, err := o.ReadAt(ctx, p[:n], i*int64(len(p)-n)/13); got != n || err != nil {
					t.Errorf("read %d bytes, %v", got, err)
				}
			}); allocs != 0 {
				t.Errorf("a hit of %d bytes makes %v allocations", n, allocs)
			}
		}
		must(t, o.Close(ctx))
		must(t, c.Close())
	}
}

func TestWritesDoNotAlloc(t *testing.T) {
	c, err := New(Config{Budget: 256 << 20})
	must(t, err)
	o := openFiction(c, 8<<20)
	p := make([]byte, 4096)
	for off := int64(0); off < 8<<20; off += 4096 { // less than what is written at once
		if _, err := o.WriteAt(ctx, p, off); err != nil {
			t.Fatal(err)
		}
	}
	i := int64(0)
	if allocs := testing.AllocsPerRun(1000, func() {
		i = (i + 7) % (8 << 20 / 4096)
		if n, err := o.WriteAt(ctx, p, i*4096); n != len(p) || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
	}); allocs != 0 {
		t.Errorf("a write makes %v allocations", allocs)
	}
	must(t, o.Close(ctx))
	must(t, c.Close())
}

// What is kept is not on Go's heap, nor is there much for each page.
func TestStreamsDoNotAllocHeap(t *testing.T) {
	const size = 256 << 20
	c, err := New(Config{Budget: size})
	must(t, err)
	o := openFiction(c, size)
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	if n, _, err := o.Stream(ctx, 0, func([]byte) error { return nil }); n != size || err != nil {
		t.Errorf("streamed %d bytes, %v", n, err)
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes for %d in the cache", grown, c.Stats().Cached)
	}
	if n := c.Stats().Cached; n < 200<<20 {
		t.Errorf("only %d bytes in the cache", n)
	}
	must(t, o.Close(ctx))
	must(t, c.Close())
}

// A hit costs the same whatever there is besides.
func BenchmarkHit(b *testing.B) {
	hit := func(b *testing.B, o *Open) {
		p := make([]byte, 4096)
		for i := range int64(256) {
			o.ReadAt(ctx, p, i*4096)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; b.Loop(); i++ {
			if _, err := o.ReadAt(ctx, p, int64(i*37%256)*4096); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, size := range []int64{1 << 20, 64 << 20, 1 << 30, 64 << 30} {
		b.Run(fmt.Sprintf("size=%dMiB", size>>20), func(b *testing.B) {
			c, err := New(Config{Budget: 256 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			o := openFiction(c, size)
			defer o.Close(ctx)
			p := make([]byte, 4096)
			for i := range int64(10_000) { // what is kept is scattered over all of it
				o.ReadAt(ctx, p, i*7919*4096%size)
			}
			hit(b, o)
		})
	}
	for _, files := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			c, err := New(Config{Budget: 256 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			p := make([]byte, 4096)
			var o *Open
			for range files {
				o = openFiction(c, 1<<20)
				defer o.Close(ctx)
				o.ReadAt(ctx, p, 0)
			}
			hit(b, o)
		})
	}
}

func BenchmarkRead1MiB(b *testing.B) {
	c, err := New(Config{Budget: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	o := openFiction(c, 64<<20)
	defer o.Close(ctx)
	p := make([]byte, 1<<20)
	for off := int64(0); off < 64<<20; off += 1 << 20 {
		o.ReadAt(ctx, p, off)
	}
	b.Run("hit", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for i := 0; b.Loop(); i++ {
			o.ReadAt(ctx, p, int64(i%64)<<20)
		}
	})
	b.Run("memmove", func(b *testing.B) {
		b.SetBytes(1 << 20)
		from := make([]byte, 64<<20)
		for i := range from {
			from[i] = byte(i)
		}
		for i := 0; b.Loop(); i++ {
			copy(p, from[i%64<<20:])
		}
	})
}

func BenchmarkWrite4KiB(b *testing.B) {
	for _, order := range []string{"stream", "random"} {
		b.Run(order, func(b *testing.B) {
			c, err := New(Config{Budget: 256 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			const size = 1 << 30
			o := openFiction(c, size)
			defer o.Close(ctx)
			p := make([]byte, 4096)
			b.SetBytes(4096)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				off := i * 4096 % size
				if order == "random" {
					off = i * 7919 * 4096 % size
				}
				o.WriteAt(ctx, p, off)
			}
		})
	}
}
