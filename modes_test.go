package pagewire

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/smbtest"
)

// costs returns how many requests for bytes something takes.
func costs(fsys *FS, do func()) int64 {
	before := fsys.Stats()
	do()
	now := fsys.Stats()
	return now.Read.Requests + now.Write.Requests - before.Read.Requests - before.Write.Requests
}

// has checks what a file has.
func has(t *testing.T, f *File, want string) {
	t.Helper()
	p := make([]byte, len(want)+1)
	if n, _ := f.ReadAt(p, 0); string(p[:n]) != want {
		t.Errorf("read %q, want %q", p[:n], want)
	}
}

// put writes a file, by a client that is not the tested one.
func put(t *testing.T, fsys *FS, name, data string) {
	t.Helper()
	if err := fsys.WriteFile(t.Context(), name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestCacheModes has each mode of caching keep what it promises, and no more.
func TestCacheModes(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	other := dial(t, sambaURL(srv), "cache=none,actimeo=0")
	tested := func(t *testing.T, options string) *FS {
		fsys := dial(t, sambaURL(srv), options)
		put(t, other, "file", "before")
		return fsys
	}
	cached := func(t *testing.T, f *File, wantReads, wantWrites bool) {
		t.Helper()
		if reads, writes := f.Cached(); reads != wantReads || writes != wantWrites {
			t.Errorf("kept: %v, %v; want %v, %v", reads, writes, wantReads, wantWrites)
		}
	}

	t.Run("none", func(t *testing.T) {
		fsys := tested(t, "cache=none,actimeo=0")
		f := open(t, fsys, "file", os.O_RDWR)
		cached(t, f, false, false)
		if n := costs(fsys, func() { has(t, f, "before"); has(t, f, "before") }); n != 2 {
			t.Errorf("reading twice took %d requests", n)
		}
		if n := costs(fsys, func() { f.WriteAt([]byte("after "), 0) }); n != 1 {
			t.Errorf("writing took %d requests", n)
		}
		if got, err := other.ReadFile("file"); string(got) != "after " || err != nil {
			t.Errorf("the other client reads %q, %v", got, err)
		}
		put(t, other, "file", "a longer one")
		has(t, f, "a longer one")
		if info, err := f.Stat(); err != nil || info.Size() != 12 {
			t.Errorf("Stat: %v, %v", info, err)
		}
		if s := fsys.Stats().Cache; s.Cached != 0 || s.Hits+s.Misses != 0 {
			t.Errorf("the cache has %+v", s)
		}
		shut(t, f)
	})
	t.Run("loose", func(t *testing.T) {
		fsys := tested(t, "cache=loose,actimeo=3600")
		f := open(t, fsys, "file", os.O_RDWR)
		cached(t, f, true, true)
		has(t, f, "before")
		put(t, other, "file", "behind")
		if n := costs(fsys, func() { has(t, f, "before"); f.WriteAt([]byte("X"), 0) }); n != 0 {
			t.Errorf("what is kept took %d requests", n)
		}
		shut(t, f)
		if got, err := other.ReadFile("file"); string(got) != "Xehind" || err != nil {
			t.Errorf("the other client reads %q, %v; want what was written here, and no more", got, err)
		}
		// Whoever opens it sees what the server has.
		put(t, other, "file", "longer than that")
		f = open(t, fsys, "file", os.O_RDWR)
		has(t, f, "longer than that")
		shut(t, f)
	})
	t.Run("ro", func(t *testing.T) {
		fsys := tested(t, "cache=ro,actimeo=3600")
		f := open(t, fsys, "file", os.O_RDONLY)
		cached(t, f, true, false)
		has(t, f, "before")
		put(t, other, "file", "behind")
		if n := costs(fsys, func() { has(t, f, "before") }); n != 0 {
			t.Errorf("what is kept took %d requests", n)
		}
		shut(t, f)
		if _, err := fsys.OpenFile(t.Context(), "file", os.O_RDWR, 0); !errors.Is(err, syscall.EROFS) {
			t.Errorf("opening to write: %v, want EROFS", err)
		}
		if err := fsys.Remove(t.Context(), "file"); !errors.Is(err, syscall.EROFS) {
			t.Errorf("removing: %v, want EROFS", err)
		}
	})
	t.Run("singleclient", func(t *testing.T) {
		fsys := tested(t, "cache=singleclient,actimeo=3600")
		f := open(t, fsys, "file", os.O_RDWR)
		cached(t, f, true, true)
		holder := open(t, other, "file", os.O_RDONLY) // which takes any right
		has(t, f, "before")
		if n := costs(fsys, func() { f.WriteAt([]byte("after and more"), 0); has(t, f, "after and more") }); n != 0 {
			t.Errorf("writing and reading took %d requests", n)
		}
		has(t, holder, "before")
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
		has(t, holder, "after and more")
		f.WriteAt([]byte("A"), 0)
		shut(t, holder, f)
		if got, err := os.ReadFile(filepath.Join(srv.Dir, "file")); string(got) != "After and more" || err != nil {
			t.Errorf("the server has %q, %v", got, err)
		}
	})
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if c, err := srv.Profile(t.Context()); c["smb2_break_count"] != 0 || err != nil {
		t.Errorf("%d breaks, %v, of rights that nobody asked for", c["smb2_break_count"], err)
	}
}

// TestNoRightsAreGranted has strict mode on a server that grants none be as good as
// cache=none.
func TestNoRightsAreGranted(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{Share: []string{"oplocks = no"}})
	a, b := dial(t, sambaURL(srv), "actimeo=0"), dial(t, sambaURL(srv), "actimeo=0")
	put(t, b, "file", "before")
	f := open(t, a, "file", os.O_RDWR)
	if n := costs(a, func() { has(t, f, "before"); has(t, f, "before") }); n != 2 {
		t.Errorf("reading twice took %d requests", n)
	}
	put(t, b, "file", "at once")
	has(t, f, "at once")
	f.WriteAt([]byte("AT"), 0)
	if got, err := b.ReadFile("file"); string(got) != "AT once" || err != nil {
		t.Errorf("the other client reads %q, %v", got, err)
	}
	if s := a.Stats().Cache; s.Cached != 0 || s.Dirty != 0 {
		t.Errorf("the cache has %+v", s)
	}
	shut(t, f)
}

// TestLooseIsBounded has bytes that are kept without a right to it be no staler than
// the attributes.
func TestLooseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{})
		defer srv.Close()
		srv.WriteFile("file", []byte("before"))
		fsys, err := Dial(t.Context(), "smb://user:pass@server/share", &Config{Options: "cache=loose,actimeo=10", DialContext: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer fsys.Close()
		f := open(t, fsys, "file", os.O_RDONLY)
		has(t, f, "before")
		<-time.After(time.Second)
		srv.WriteFile("file", []byte("behind"))
		if info, err := f.Stat(); err != nil || info.Size() != 6 {
			t.Errorf("Stat: %v, %v", info, err)
		}
		has(t, f, "before")
		<-time.After(10 * time.Second)
		if info, err := f.Stat(); err != nil || info.Size() != 6 {
			t.Errorf("Stat: %v, %v", info, err)
		}
		has(t, f, "behind")
		shut(t, f)
	})
}
