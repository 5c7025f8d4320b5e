package pagewire

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/smbtest"
)

// everyServer runs a test against a real server and one in this process. read reads a
// file behind the client's back.
func everyServer(t *testing.T, test func(t *testing.T, url string, read func(name string) ([]byte, error))) {
	t.Run("samba", func(t *testing.T) {
		srv := sambatest.Start(t, sambatest.Config{})
		test(t, sambaURL(srv), func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(srv.Dir, name)) })
	})
	t.Run("smbtest", func(t *testing.T) {
		srv := startServer(t, smbtest.Config{})
		test(t, srv.URL, srv.ReadFile)
	})
}

// dialWith connects with a cache that is not the connection's own.
func dialWith(t *testing.T, url, options string, cache *Cache) *FS {
	t.Helper()
	fsys, err := Dial(t.Context(), url, &Config{Options: options, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

// TestSharedCache has two file systems share the memory for their bytes.
func TestSharedCache(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, _ func(string) ([]byte, error)) {
		const size = 16 << 20
		cache, err := NewCache(CacheConfig{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		one, two := dialWith(t, url, "rsize=1M,wsize=1M", cache), dialWith(t, url, "rsize=1M,wsize=1M", cache)
		data := randomBytes(12 << 20)
		files := []*File{open(t, one, "one", os.O_RDWR|os.O_CREATE), open(t, two, "two", os.O_RDWR|os.O_CREATE)}
		most := int64(0)
		for _, f := range files {
			granted(t, f)
			for off := 0; off < len(data); off += 1 << 20 {
				f.WriteAt(data[off:off+1<<20], int64(off))
				most = max(most, cache.Stats().Cached)
			}
			if err := f.Sync(); err != nil {
				t.Error(err)
			}
		}
		for _, f := range files {
			got := make([]byte, len(data))
			if n, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: read %d bytes, %v", f.Name(), n, err)
			}
			most = max(most, cache.Stats().Cached)
		}
		s := cache.Stats()
		if one.Stats().Cache != s || two.Stats().Cache != s {
			t.Errorf("statistics of one cache differ: %+v, %+v, %+v", s, one.Stats().Cache, two.Stats().Cache)
		}
		if s.Size != size || most > size || most < size*3/4 || s.Evicted < 2*int64(len(data))-size {
			t.Errorf("%d bytes at most in %+v", most, s)
		}
		// Each file system has its own requests. What one does makes room for the other.
		if w := one.Stats().Write.Bytes; w != int64(len(data)) {
			t.Errorf("one file system has written %d bytes, want %d", w, len(data))
		}
		shut(t, files...)
		if err := errors.Join(one.Close(), two.Close()); err != nil {
			t.Error(err)
		}
		if s := cache.Stats(); s.Cached != 0 || s.Dirty != 0 {
			t.Errorf("after all is closed: %+v", s)
		}
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOpensOfOneFile see each other's writes at once, in every mode, whatever is
// opened past the cache, and what describes the file agrees with them.
func TestOpensOfOneFile(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		for _, mode := range []string{"strict", "none", "loose", "singleclient", "strict,vers=2.0.2"} {
			t.Run(mode, func(t *testing.T) {
				fsys := dial(t, url, "cache="+mode)
				name := "file " + mode
				var model []byte
				files := []*File{
					open(t, fsys, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC), open(t, fsys, name, os.O_RDWR), open(t, fsys, name, os.O_RDWR|O_DIRECT), open(t, fsys, name, os.O_RDWR|os.O_APPEND), open(t, fsys, name, os.O_RDWR|os.O_SYNC),
				}
				agree := func(what string) {
					t.Helper()
					for i, f := range files {
						reads(t, fmt.Sprint(what, ", open ", i), f, model)
					}
					if info, err := fsys.Stat(name); err != nil || info.Size() != int64(len(model)) {
						t.Errorf("%s: Stat: %v, %v; want size %d", what, info, err, len(model))
					}
					if got, err := fsys.ReadFile(name); err != nil || !bytes.Equal(got, model) {
						t.Errorf("%s: ReadFile: %d bytes, %v; want %d", what, len(got), err, len(model))
					}
				}
				for i, f := range files {
					p := []byte(strings.Repeat(fmt.Sprint(i), 5000))
					if i == 3 {
						if _, err := f.Write(p); err != nil {
							t.Error(err)
						}
						model = append(model, p...)
					} else {
						if _, err := f.WriteAt(p, int64(3000*i)); err != nil {
							t.Error(err)
						}
						model = append(model[:max(3000*i, 0)], append(p, model[min(3000*i+5000, len(model)):]...)...)
					}
					agree(fmt.Sprint("written by open ", i))
				}
				for i, size := range []int{7000, 100, 20_000, 19_999, 0} {
					if err := files[i].Truncate(int64(size)); err != nil {
						t.Error(err)
					}
					model = append(model[:min(size, len(model))], make([]byte, max(size-len(model), 0))...)
					agree(fmt.Sprint("cut by open ", i))
				}
				shut(t, files...)
				if got, err := read(name); err != nil || !bytes.Equal(got, model) {
					t.Errorf("the server has %d bytes, %v; want %d", len(got), err, len(model))
				}
			})
		}
	})
}

// TestDirect reads and writes past the cache, and leaves nothing there.
func TestDirect(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		fsys := dial(t, url, "")
		f := open(t, fsys, "direct", os.O_RDWR|os.O_CREATE|O_DIRECT)
		data := randomBytes(3<<20 + 5)
		if n := costs(fsys, func() { f.WriteAt(data[:100], 0); f.WriteAt(data, 0) }); n < 2 {
			t.Errorf("two writes took %d requests", n)
		}
		if got, err := read("direct"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the server has %d bytes, %v; want %d", len(got), err, len(data))
		}
		got := make([]byte, 1000)
		if n := costs(fsys, func() { f.ReadAt(got, 1); f.ReadAt(got, 1) }); n != 2 || !bytes.Equal(got, data[1:1001]) {
			t.Errorf("two reads took %d requests", n)
		}
		if s := fsys.Stats().Cache; s.Cached != 0 || s.Hits+s.Misses != 0 {
			t.Errorf("the cache has %+v", s)
		}
		shut(t, f)
	})
}

// TestAppending has many append to a file at once, and then two clients in turn, since
// servers have no appending of their own: what each writes stays together, and nothing
// is lost.
func TestAppending(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		for _, options := range []string{"cache=strict", "vers=2.0.2", "cache=none"} {
			const opens, records = 4, 30
			here, there := dial(t, url, options), dial(t, url, options)
			name := "log " + options
			record := func(client string, i, n int) string { return fmt.Sprintf("%s, open %d, record %d\n", client, i, n) }
			files := func(fsys *FS) (all []*File) {
				for range opens {
					all = append(all, open(t, fsys, name, os.O_WRONLY|os.O_APPEND|os.O_CREATE))
				}
				return all
			}
			write := func(f *File, record string) {
				if n, err := f.Write([]byte(record)); n != len(record) || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
			}
			var want []string
			var wg sync.WaitGroup
			mine := files(here)
			for i, f := range mine {
				for n := range records {
					want = append(want, record("here", i, n))
				}
				wg.Go(func() {
					for n := range records {
						write(f, record("here", i, n))
					}
				})
			}
			wg.Wait()
			slices.Sort(want)
			theirs := files(there)
			inTurn := ""
			for n := range records {
				for i := range opens {
					for client, f := range map[string]*File{"here again": mine[i], "there": theirs[i]} {
						write(f, record(client, i, n))
						inTurn += record(client, i, n)
					}
				}
			}
			shut(t, append(mine, theirs...)...)
			data, err := read(name)
			begin, found := strings.CutSuffix(string(data), inTurn)
			got := slices.Sorted(strings.Lines(begin))
			if err != nil || !found || !slices.Equal(got, want) {
				t.Errorf("%q: %d records of those written at once, %v, want %d; those written in turn are there: %v", options, len(got), err, len(want), found)
			}
		}
	})
}

// TestNamesOfOpenFiles are taken away and given to others, as programs for Unix do.
func TestNamesOfOpenFiles(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		for _, options := range []string{"", "vers=2.0.2", "cache=none", "cache=singleclient"} {
			t.Run(options, func(t *testing.T) {
				fsys, ctx := dial(t, url, options), t.Context()
				if err := fsys.MkdirAll(ctx, "dir", 0o777); err != nil {
					t.Fatal(err)
				}
				names := func(want ...string) {
					t.Helper()
					var got []string
					entries, err := fsys.ReadDir("dir")
					for _, e := range entries {
						got = append(got, e.Name())
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("the folder has %q, %v; want %q", got, err, want)
					}
				}
				goesOn := func(f *File, model []byte) {
					t.Helper()
					reads(t, "without its name", f, model)
					if _, err := f.WriteAt([]byte("on and on"), int64(len(model))); err != nil {
						t.Error(err)
					}
					reads(t, "without its name", f, append(slices.Clip(model), "on and on"...))
					if err := errors.Join(f.Sync(), f.Truncate(3)); err != nil {
						t.Error(err)
					}
					reads(t, "without its name", f, model[:3])
				}

				removed := open(t, fsys, "dir/a", os.O_RDWR|os.O_CREATE)
				removed.WriteAt([]byte("removed"), 0)
				if err := fsys.Remove(ctx, "dir/a"); err != nil {
					t.Fatal(err)
				}
				if _, err := fsys.Stat("dir/a"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("Stat of what was removed: %v", err)
				}
				names()
				goesOn(removed, []byte("removed"))

				put(t, fsys, "dir/a", "another")
				replaced := open(t, fsys, "dir/a", os.O_RDWR)
				has(t, replaced, "another")
				put(t, fsys, "dir/b", "in its place")
				if err := fsys.Rename(ctx, "dir/b", "dir/a"); err != nil {
					t.Fatal(err)
				}
				names("a")
				if got, err := fsys.ReadFile("dir/a"); string(got) != "in its place" || err != nil {
					t.Errorf("what was renamed reads %q, %v", got, err)
				}
				goesOn(replaced, []byte("another"))

				moved := open(t, fsys, "dir/a", os.O_RDWR)
				moved.WriteAt([]byte("IN"), 0)
				if err := fsys.Rename(ctx, "dir/a", "dir/c"); err != nil {
					t.Fatal(err)
				}
				names("c")
				has(t, moved, "IN its place")
				shut(t, removed, replaced, moved)
				if got, err := read("dir/c"); string(got) != "IN its place" || err != nil {
					t.Errorf("the server has %q, %v", got, err)
				}
				names("c")
				if err := fsys.RemoveAll(ctx, "dir"); err != nil { // so nothing is left there that nobody sees
					t.Error(err)
				}
				if err := fsys.Mkdir(ctx, "dir", 0o777); err != nil {
					t.Errorf("the folder is still there: %v", err)
				}
				if err := fsys.Remove(ctx, "dir"); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
