package memfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/memfs"
	"pgregory.net/rapid"
)

const chunk = 256 << 10

// TestContents compares a file with a flat byte slice.
func TestContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := memfs.New(memfs.Config{})
		n, err := f.Root().Create("f", 0o644)
		if err != nil {
			t.Fatal(err)
		}
		noise := rand.NewChaCha8([32]byte{})
		buf := make([]byte, 8*chunk)
		var want []byte
		grow := func(size int) {
			if size > len(want) {
				want = append(want, make([]byte, size-len(want))...)
			}
		}
		// Offsets cluster around the edges of chunks.
		offset := rapid.Custom(func(t *rapid.T) int {
			return max(0, rapid.IntRange(0, 2).Draw(t, "chunk")*chunk+rapid.IntRange(-9000, 9000).Draw(t, "by"))
		})
		length := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, chunk+9001))
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				off, p := offset.Draw(t, "off"), make([]byte, length.Draw(t, "len"))
				noise.Read(p)
				if _, err := n.WriteAt(p, int64(off)); err != nil {
					t.Fatal(err)
				}
				if len(p) > 0 {
					grow(off + len(p))
					copy(want[off:], p)
				}
			},
			"truncate": func(t *rapid.T) {
				size := offset.Draw(t, "size")
				if err := n.Truncate(int64(size)); err != nil {
					t.Fatal(err)
				}
				grow(size)
				want = want[:size]
			},
			"punch": func(t *rapid.T) {
				off, size := offset.Draw(t, "off"), length.Draw(t, "len")
				if err := n.Punch(int64(off), int64(size)); err != nil {
					t.Fatal(err)
				}
				if off < len(want) {
					clear(want[off:min(len(want), off+size)])
				}
			},
			"": func(t *rapid.T) {
				got := buf[:len(want)+1]
				if n, err := n.ReadAt(got, 0); n != len(want) || err != io.EOF {
					t.Fatalf("ReadAt = %d, %v; want %d, EOF", n, err, len(want))
				}
				if !bytes.Equal(got[:len(want)], want) {
					t.Fatal("contents differ")
				}
				if a := n.Attr(); a.Size != int64(len(want)) || a.Alloc < 0 || a.Alloc > 6*chunk {
					t.Fatalf("size %d, allocated %d; want %d and at most %d", a.Size, a.Alloc, len(want), 6*chunk)
				}
			},
		})
		if err := f.Root().Remove("f", false); err != nil {
			t.Fatal(err)
		}
		if s := memfs.New(memfs.Config{}).Stat(); f.Stat().Free != s.Free {
			t.Fatalf("free after removal: %d, want %d", f.Stat().Free, s.Free)
		}
	})
}

func TestLimit(t *testing.T) {
	f := memfs.New(memfs.Config{Limit: 100 << 10})
	n, err := f.Root().Create("f", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.WriteAt(make([]byte, 100<<10), 1<<40); err != nil {
		t.Fatalf("sparse write of all the space: %v", err)
	}
	if got, err := n.WriteAt([]byte{1}, 0); got != 0 || err != syscall.ENOSPC {
		t.Fatalf("write beyond the limit = %d, %v; want 0, ENOSPC", got, err)
	}
	if _, err := n.WriteAt([]byte{1}, 1<<40); err != nil {
		t.Fatalf("overwriting in a full file system: %v", err)
	}
	if err := n.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if got := f.Stat().Free; got != 100<<10 {
		t.Fatalf("free after truncation = %d, want all", got)
	}
	if _, err := n.WriteAt([]byte{1}, 1<<63-1); err != syscall.EFBIG {
		t.Fatalf("write at the largest offset: %v, want EFBIG", err)
	}
}

func TestNames(t *testing.T) {
	f := memfs.New(memfs.Config{IgnoreCase: true})
	root := f.Root()
	dir, err := root.Mkdir("Dir", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	file, err := dir.Create("Größe.TXT", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if n, name, err := dir.Lookup("gRÖßE.txt"); n != file || name != "Größe.TXT" {
		t.Errorf("Lookup = %v, %q, %v; want the file as it was spelled", n, name, err)
	}
	if up, _, err := dir.Lookup(".."); up != root || err != nil {
		t.Errorf("Lookup(..) = %v, %v; want the root", up, err)
	}
	sub, err := dir.Mkdir("sub", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Link("hard", file); err != nil {
		t.Fatal(err)
	}
	if got := file.Attr().Links; got != 2 {
		t.Errorf("links = %d, want 2", got)
	}
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"create what differs in case", second(dir.Create("GRÖßE.txt", 0)), syscall.EEXIST},
		{"slash", second(dir.Create("a/b", 0)), syscall.EINVAL},
		{"name too long", second(dir.Create(string(make([]byte, 1000)), 0)), syscall.ENAMETOOLONG},
		{"in a file", second(file.Create("a", 0)), syscall.ENOTDIR},
		{"rename, no source", dir.Rename("none", root, "x", true), syscall.ENOENT},
		{"rename over, not replacing", dir.Rename("Größe.txt", root, "DIR", false), syscall.EEXIST},
		{"rename over its other name, not replacing", dir.Rename("Größe.txt", root, "HARD", false), syscall.EEXIST},
		{"rename file over folder", dir.Rename("Größe.txt", root, "dir", true), syscall.EISDIR},
		{"rename folder over file", dir.Rename("sub", root, "hard", true), syscall.ENOTDIR},
		{"rename into itself", root.Rename("dir", sub, "x", true), syscall.EINVAL},
		{"remove a full folder", root.Remove("dir", true), syscall.ENOTEMPTY},
		{"remove a folder as a file", root.Remove("dir", false), syscall.EISDIR},
		{"remove a file as a folder", root.Remove("hard", true), syscall.ENOTDIR},
		{"link a folder", root.Link("d2", dir), syscall.EPERM},
		{"case-only rename", dir.Rename("größe.txt", dir, "größe.txt", false), nil},
		{"rename over its other name", dir.Rename("größe.txt", root, "hard", true), nil},
		{"remove", dir.Remove("SUB", true), nil},
		{"create in a removed folder", second(sub.Create("x", 0)), syscall.ENOENT},
	} {
		if !errors.Is(c.err, c.want) || (c.want == nil) != (c.err == nil) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
	if got := file.Attr().Links; got != 1 {
		t.Errorf("links after replacing the other name = %d, want 1", got)
	}
	if f.Node(sub.Attr().ID) != nil || f.Node(file.Attr().ID) != file {
		t.Error("Node finds what was removed, or not what is there")
	}
}

func second(_ *memfs.Node, err error) error { return err }

// TestReadDir removes and adds entries between the pages of a listing.
func TestReadDir(t *testing.T) {
	root := memfs.New(memfs.Config{}).Root()
	for i := range 100 {
		if _, err := root.Create(fmt.Sprint(i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	var cookie uint64
	for page := 0; ; page++ {
		entries, err := root.ReadDir(cookie, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			seen[e.Name]++
			cookie = e.Cookie
		}
		if page < 10 {
			// The last one seen goes, cookie and all; so does one not seen yet.
			for _, name := range []string{entries[len(entries)-1].Name, fmt.Sprint(99 - page)} {
				if err := root.Remove(name, false); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i := range 90 {
		if got := seen[fmt.Sprint(i)]; got != 1 {
			t.Errorf("entry %d was seen %d times, want once", i, got)
		}
	}
}

func TestSymlink(t *testing.T) {
	root := memfs.New(memfs.Config{}).Root()
	file, err := root.Create("f", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	before := file.Attr().Change
	if err := file.SetTarget("../a"); err != nil {
		t.Fatal(err)
	}
	a := file.Attr()
	if got, err := file.Target(); got != "../a" || err != nil || a.Mode != fs.ModeSymlink|0o600 || a.Size != 4 || a.Change <= before {
		t.Errorf("link = %q, %v, %+v; want ../a of 4 bytes, changed", got, err, a)
	}
	if _, err := file.WriteAt([]byte{1}, 0); err != syscall.EINVAL {
		t.Errorf("write to a link: %v, want EINVAL", err)
	}
	if err := file.SetTarget(""); err != nil || !file.Attr().Mode.IsRegular() {
		t.Errorf("link to file: %v, mode %v", err, file.Attr().Mode)
	}
	if _, err := file.Append([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := file.SetTarget("y"); err != syscall.ENOTEMPTY {
		t.Errorf("a file with contents to a link: %v, want ENOTEMPTY", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	f := memfs.New(memfs.Config{Limit: 64 << 20})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				path := fmt.Sprintf("d%d/f%d", (g+i)%3, i%5)
				_ = f.WriteFile(path, make([]byte, i*100))
				_, _ = f.ReadFile(path)
				if d, err := f.Find(fmt.Sprintf("d%d", i%3)); err == nil {
					_, _ = d.ReadDir(0, 0)
					_ = d.Rename(fmt.Sprint("f", i%5), f.Root(), "x", true)
					_ = f.Root().Remove("x", false)
				}
			}
		})
	}
	wg.Wait()
	for d := range 3 {
		dir, err := f.Find(fmt.Sprint("d", d))
		if err != nil {
			t.Fatal(err)
		}
		entries, err := dir.ReadDir(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := dir.Remove(e.Name, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := f.Stat(); got.Free != got.Total {
		t.Errorf("%d bytes are free of %d with no file left", got.Free, got.Total)
	}
}
