package pagecache

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// rig is a file of a volume in memory, with a cache before it.
type rig struct {
	t    *testing.T
	fake *remotetest.Fake
	c    *Cache
	f    *File
}

const name = "file"

func newRig(t *testing.T, cache Config, file FileConfig, cfg remotetest.Config, data []byte) *rig {
	t.Helper()
	if cfg.Rights == 0 {
		cfg.Rights = remote.CacheRead | remote.CacheWrite | remote.CacheHandle
	}
	cfg.Check = t.Errorf
	cache.Heap = true
	c, err := New(cache)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, fake: remotetest.New(cfg), c: c}
	t.Cleanup(func() { c.Close() })
	r.fake.Put(name, data)
	r.f = c.NewFile(file)
	return r
}

// open opens the file for reading and writing.
func (r *rig) open() *Open { return r.openFor(remote.ForRead | remote.ForWrite) }

func (r *rig) openFor(access remote.Access) *Open {
	r.t.Helper()
	opened, err := r.fake.Open(context.Background(), remote.At{Name: name}, remote.How{Access: access, Rights: r.f.Wants()}, r.f)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.f.Attach(opened, access, false)
}

func (r *rig) bytes() []byte {
	r.t.Helper()
	data, ok := r.fake.Bytes(name)
	if !ok {
		r.t.Fatal("the file is gone")
	}
	return data
}

func noise(n int) []byte {
	p := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := 0; i < n; i += 8 {
		v := rng.Uint64()
		for j := i; j < min(i+8, n); j++ {
			p[j] = byte(v)
			v >>= 8
		}
	}
	return p
}

var ctx = context.Background()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadsAreKept(t *testing.T) {
	data := noise(3<<20 + 123)
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, data)
	o := r.open()
	p := make([]byte, len(data)+10)
	for range 2 {
		if n, err := o.ReadAt(ctx, p, 0); n != len(data) || err == nil || !bytes.Equal(p[:n], data) {
			t.Fatalf("read %d bytes, %v", n, err)
		}
	}
	if n := r.fake.Count("ReadAt"); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	must(t, o.Close(ctx))
}

func TestSmallReadsOfAStreamAreFewRequests(t *testing.T) {
	data := noise(64 << 20)
	r := newRig(t, Config{Budget: 32 << 20}, FileConfig{}, remotetest.Config{}, data)
	o := r.open()
	p := make([]byte, 4096)
	for off := 0; off < len(data); off += len(p) {
		if n, err := o.ReadAt(ctx, p, int64(off)); n != len(p) || err != nil || !bytes.Equal(p, data[off:off+n]) {
			t.Fatalf("at %d: %d, %v", off, n, err)
		}
	}
	if n := r.fake.Count("ReadAt"); n > 64*105/100 {
		t.Errorf("%d requests for 64 MiB", n)
	}
	must(t, o.Close(ctx))
}

func TestSmallWritesOfAStreamAreFewRequests(t *testing.T) {
	data := noise(64 << 20)
	r := newRig(t, Config{Budget: 32 << 20}, FileConfig{}, remotetest.Config{}, nil)
	o := r.open()
	for off := 0; off < len(data); off += 4096 {
		if n, err := o.WriteAt(ctx, data[off:off+4096], int64(off)); n != 4096 || err != nil {
			t.Fatalf("at %d: %d, %v", off, n, err)
		}
	}
	must(t, o.Sync(ctx))
	if n := r.fake.Count("WriteAt"); n > 64*105/100 {
		t.Errorf("%d requests for 64 MiB", n)
	}
	if !bytes.Equal(r.bytes(), data) {
		t.Error("the server has other bytes")
	}
	must(t, o.Close(ctx))
}
