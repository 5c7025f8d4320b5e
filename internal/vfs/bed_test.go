package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// bed is a test of an FS over a Fake, in virtual time.
type bed struct {
	*testing.T
	ctx  context.Context
	fake *remotetest.Fake
	fs   *FS
}

func inBubble(t *testing.T, fake remotetest.Config, cfg Config, test func(b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		fake.Check = t.Errorf
		b := &bed{T: t, ctx: t.Context(), fake: remotetest.New(fake)}
		cache, err := pagecache.New(pagecache.Config{Budget: 1 << 20, Heap: true})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		b.fs = New(b.fake, cache, cfg)
		defer b.fs.Close()
		test(b)
	})
}

// leases are all rights that there are.
const leases = remote.CacheRead | remote.CacheWrite | remote.CacheHandle

func (b *bed) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) fails(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("error %v, want %v", err, want)
	}
}

// costs checks how many requests of a method do makes.
func (b *bed) costs(call string, want int, do func()) {
	b.Helper()
	before := b.fake.Count(call)
	do()
	if got := b.fake.Count(call) - before; got != want {
		b.Errorf("%d requests of %s, want %d", got, call, want)
	}
}

// stats checks what is at a path, and that it costs so many requests.
func (b *bed) stats(path string, want int, size int64) remote.Attr {
	b.Helper()
	var attr remote.Attr
	b.costs("GetAttr", want, func() {
		b.Helper()
		var err error
		attr, err = b.fs.GetAttr(b.ctx, path)
		b.ok(err)
	})
	if attr.Size != size {
		b.Errorf("size of %s is %d, want %d", path, attr.Size, size)
	}
	return attr
}

// lacks checks that nothing is at a path, and that it costs so many requests to know.
func (b *bed) lacks(path string, want int) {
	b.Helper()
	b.costs("GetAttr", want, func() {
		b.Helper()
		_, err := b.fs.GetAttr(b.ctx, path)
		b.fails(err, fs.ErrNotExist)
	})
}

func (b *bed) open(path string, access remote.Access, create remote.Create) *Handle {
	b.Helper()
	h, err := b.fs.Open(b.ctx, path, remote.How{Access: access, Create: create})
	b.ok(err)
	return h
}

func (b *bed) close(h *Handle) {
	b.Helper()
	b.ok(h.Close(b.ctx))
}

func (b *bed) write(h *Handle, off int64, data string) {
	b.Helper()
	n, err := h.WriteAt(b.ctx, []byte(data), off)
	b.ok(err)
	if n != len(data) {
		b.Fatalf("wrote %d bytes of %d", n, len(data))
	}
}

// reads checks what a handle reads.
func (b *bed) reads(h *Handle, want string) {
	b.Helper()
	p := make([]byte, len(want)+1)
	n, err := h.ReadAt(b.ctx, p, 0)
	if err != io.EOF || string(p[:n]) != want {
		b.Errorf("read %q, %v, want %q and EOF", p[:n], err, want)
	}
}

// has checks what the server has.
func (b *bed) has(path, want string) {
	b.Helper()
	if got, ok := b.fake.Bytes(path); !ok || string(got) != want {
		b.Errorf("the server has %q (%v) in %s, want %q", got, ok, path, want)
	}
}

// lists returns the names in a folder, as a listing has them.
func (b *bed) lists(path string) (names []string) {
	b.Helper()
	for page, err := range b.fs.ReadDir(b.ctx, path) {
		b.ok(err)
		for _, e := range page {
			names = append(names, e.Name)
		}
	}
	return names
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }
