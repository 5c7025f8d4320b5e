package pagecache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a file of a volume in memory, with a cache before it.
type rig struct {
	t    *testing.T
	fake *remotetest.Fake
	c    *Cache
	f    *File

	late func(call string, off int64) // is told when an answer is there, before the cache is
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
	return r.attach(opened, access, false)
}

// openStable opens the file for writes that have to reach the disk at once.
func (r *rig) openStable() *Open {
	r.t.Helper()
	access := remote.ForRead | remote.ForWrite
	opened, err := r.fake.Open(context.Background(), remote.At{Name: name}, remote.How{Access: access, Stable: true, Rights: r.f.Wants()}, r.f)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.attach(opened, access, true)
}

func (r *rig) attach(opened remote.Opened, access remote.Access, stable bool) *Open {
	if r.late != nil {
		opened.File = lateFile{opened.File, r}
	}
	return r.f.Attach(opened, access, stable)
}

// lateFile holds answers back.
type lateFile struct {
	remote.File
	r *rig
}

func (l lateFile) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (int, bool, error) {
	n, eof, err := l.File.ReadAt(ctx, req, into)
	l.r.late("ReadAt", req.Off)
	return n, eof, err
}

func (l lateFile) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (int, bool, error) {
	n, stable, err := l.File.WriteAt(ctx, req, w)
	l.r.late("WriteAt", req.Off)
	return n, stable, err
}

func (l lateFile) SetSize(ctx context.Context, o remote.Open, size int64) (remote.Attr, error) {
	attr, err := l.File.SetSize(ctx, o, size)
	l.r.late("SetSize", size)
	return attr, err
}

func (l lateFile) GetAttr(ctx context.Context, o remote.Open) (remote.Attr, error) {
	attr, err := l.File.GetAttr(ctx, o)
	l.r.late("GetAttr", 0)
	return attr, err
}

// hook has every request go through h first; nil ends that.
func (r *rig) hook(h func(ctx context.Context, op remotetest.Op) error) {
	r.fake.Set(func(c *remotetest.Config) { c.Hook = h })
}

// gate stops who passes until it is closed.
type gate chan struct{}

func (g gate) pass(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop has requests of one kind wait for a gate.
func (r *rig) stop(call string) gate {
	g := make(gate)
	r.hook(func(ctx context.Context, op remotetest.Op) error {
		if op.Call == call {
			return g.pass(ctx)
		}
		return nil
	})
	return g
}

// read reads n bytes at off, or as many as there are.
func (r *rig) read(o *Open, off int64, n int) []byte {
	r.t.Helper()
	p := make([]byte, n)
	got, err := o.ReadAt(ctx, p, off)
	if err != nil && !(errors.Is(err, io.EOF) && got < n) || err == nil && got < n {
		r.t.Errorf("read %d of %d bytes at %d, %v", got, n, off, err)
	}
	return p[:got]
}

func (r *rig) write(o *Open, off int64, p []byte) {
	r.t.Helper()
	if n, err := o.WriteAt(ctx, p, off); n != len(p) || err != nil {
		r.t.Errorf("wrote %d of %d bytes at %d, %v", n, len(p), off, err)
	}
}

func (r *rig) same(what string, got, want []byte) {
	r.t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	r.t.Errorf("%s: %d bytes, want %d; they differ from %d on", what, len(got), len(want), at)
}

// reads, writes say how many requests there were.
func (r *rig) reads() int  { return r.fake.Count("ReadAt") }
func (r *rig) writes() int { return r.fake.Count("WriteAt") }

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
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}).Read(p)
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
	data := noise(24 << 20)
	r := newRig(t, Config{Budget: 32 << 20}, FileConfig{}, remotetest.Config{}, data)
	o := r.open()
	p := make([]byte, 4096)
	for off := 0; off < len(data); off += len(p) {
		if n, err := o.ReadAt(ctx, p, int64(off)); n != len(p) || err != nil || !bytes.Equal(p, data[off:off+n]) {
			t.Fatalf("at %d: %d, %v", off, n, err)
		}
	}
	if n := r.fake.Count("ReadAt"); n > 24+4 {
		t.Errorf("%d requests for 24 MiB", n)
	}
	must(t, o.Close(ctx))
}

func TestSmallWritesOfAStreamAreFewRequests(t *testing.T) {
	data := noise(24 << 20)
	r := newRig(t, Config{Budget: 32 << 20}, FileConfig{}, remotetest.Config{}, nil)
	o := r.open()
	for off := 0; off < len(data); off += 4096 {
		if n, err := o.WriteAt(ctx, data[off:off+4096], int64(off)); n != 4096 || err != nil {
			t.Fatalf("at %d: %d, %v", off, n, err)
		}
	}
	must(t, o.Sync(ctx))
	if n := r.fake.Count("WriteAt"); n > 24+4 {
		t.Errorf("%d requests for 24 MiB", n)
	}
	if !bytes.Equal(r.bytes(), data) {
		t.Error("the server has other bytes")
	}
	must(t, o.Close(ctx))
}
