package pagewire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// wrote writes to a file, and to the model of it. There have to be rights to keep what
// is written if kept says so.
func wrote(t *testing.T, f *File, model []byte, off int, p []byte, kept bool) []byte {
	t.Helper()
	before := f.share.stats()
	if n, err := f.WriteAt(p, int64(off)); n != len(p) || err != nil {
		t.Fatalf("WriteAt: %d, %v", n, err)
	}
	now := f.share.stats()
	if isKept := now.Write.Requests == before.Write.Requests && now.Cache.Dirty > 0; isKept != kept {
		t.Errorf("%d bytes at %d: kept here: %v, want %v", len(p), off, isKept, kept)
	}
	if grown := off + len(p) - len(model); grown > 0 {
		model = append(model, make([]byte, grown)...)
	}
	copy(model[off:], p)
	return model
}

// reads checks that a file reads as its model does, whatever part of it is asked for.
func reads(t *testing.T, who string, f *File, model []byte) {
	t.Helper()
	got := make([]byte, len(model)+10)
	if n, err := f.ReadAt(got, 0); n != len(model) || err != io.EOF || !bytes.Equal(got[:n], model) {
		t.Errorf("%s: read %d bytes, %v, which differ at %d; want %d", who, n, err, differ(got[:n], model), len(model))
	}
	if len(model) > 0 {
		off := rand.IntN(len(model))
		p := got[:1+rand.IntN(len(model)-off)]
		if n, err := f.ReadAt(p, int64(off)); n != len(p) || err != nil || !bytes.Equal(p, model[off:off+n]) {
			t.Errorf("%s: read %d of %d bytes at %d, %v, which differ at %d", who, n, len(p), off, err, differ(p[:n], model[off:]))
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(model)) {
		t.Errorf("%s: Stat: %v, %v; want size %d", who, info, err, len(model))
	}
}

// differ returns where two slices differ first.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// bytesOf returns n random bytes.
func bytesOf(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], r.Uint64())
	rand.NewChaCha8(seed).Read(p)
	return p
}

// TestCoherence has a file read and written by two clients in turn.
func TestCoherence(t *testing.T) {
	eachWay(t, func(t *testing.T, srv *sambatest.Server, w way) {
		r := rand.New(rand.NewPCG(1, 2))
		before, err := srv.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := "turns " + w.String()
		a, b := dial(t, sambaURL(srv), w.options()), dial(t, sambaURL(srv), w.options())
		w.check(t, a)
		w.check(t, b)
		shut(t, open(t, a, name, os.O_CREATE|os.O_RDWR))
		var model []byte
		const rounds = 8
		for i := range rounds {
			af := open(t, a, name, os.O_RDWR)
			granted(t, af)
			model = wrote(t, af, model, r.IntN(len(model)+20_000), bytesOf(r, 1+r.IntN(100_000)), true)
			model = wrote(t, af, model, r.IntN(len(model)), bytesOf(r, 1+r.IntN(10_000)), true)
			reads(t, "a, of what it wrote", af, model)
			requests := a.Stats().Requests
			hits := a.Stats().Cache.Hits
			reads(t, "a, once more", af, model)
			if s := a.Stats(); s.Requests != requests || s.Cache.Hits != hits+2 {
				t.Errorf("reading and describing what is kept took %d requests, and %d hits", s.Requests-requests, s.Cache.Hits-hits)
			}

			bf := open(t, b, name, os.O_RDWR) // which the break has to come before
			if _, writes := af.Cached(); writes || a.Stats().Cache.Dirty != 0 {
				t.Error("a may still keep what it writes, and b has opened the file")
			}
			reads(t, "b, of what a wrote", bf, model)
			model = wrote(t, bf, model, r.IntN(len(model)), bytesOf(r, 1+r.IntN(100_000)), false)
			told(t, af)
			reads(t, "a, of what b wrote", af, model)
			model = wrote(t, af, model, r.IntN(len(model)), bytesOf(r, 1+r.IntN(10_000)), false)
			told(t, bf)
			reads(t, "b, of what a wrote meanwhile", bf, model)

			size := r.IntN(len(model)) + r.IntN(2)*len(model)
			if err := bf.Truncate(int64(size)); err != nil {
				t.Error(err)
			}
			model = append(model[:min(size, len(model))], make([]byte, max(size-len(model), 0))...)
			reads(t, "a, of what b cut", af, model)
			if info, err := a.Stat(name); err != nil || info.Size() != int64(size) {
				t.Errorf("a describes what b cut: %v, %v; want size %d", info, err, size)
			}
			if i%2 == 0 { // either may be the last
				shut(t, bf, af)
			} else {
				shut(t, af, bf)
			}
		}
		if got, err := os.ReadFile(filepath.Join(srv.Dir, name)); err != nil || !bytes.Equal(got, model) {
			t.Errorf("the server has %d bytes which differ at %d, %v; want %d", len(got), differ(got, model), err, len(model))
		}
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
		after, err := srv.Profile(t.Context())
		if n := after.Since(before)["smb2_break_count"]; n < rounds || err != nil {
			t.Errorf("%d breaks were acknowledged, %v; want one a round at least", n, err)
		}
	})
}

// TestCoherenceAtRandom has two clients open, close, read, write, append to, cut and
// describe a file in any order.
func TestCoherenceAtRandom(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		for _, w := range everyWay {
			t.Run(w.String(), func(t *testing.T) { atRandom(t, w, url, read) })
		}
	})
}

func atRandom(t *testing.T, w way, url string, read func(string) ([]byte, error)) {
	c := &couple{t: t, name: "random " + w.String(), r: rand.New(rand.NewPCG(3, 4))}
	for i := range c.sides {
		c.sides[i] = &side{name: string('a' + rune(i)), fs: dial(t, url, w.options())}
		w.check(t, c.sides[i].fs)
	}
	if err := c.sides[0].fs.WriteFile(t.Context(), c.name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		c.step()
		if t.Failed() {
			t.Fatal("after: ", strings.Join(c.log[max(0, len(c.log)-20):], "; "))
		}
	}
	for _, s := range c.sides {
		shut(t, s.files...)
		if hits := s.fs.Stats().Cache.Hits; s.kept == 0 || hits == 0 || s.lost == 0 {
			t.Errorf("%s kept %d writes, hit %d times, lost rights %d times", s.name, s.kept, hits, s.lost)
		}
	}
	if got, err := read(c.name); err != nil || !bytes.Equal(got, c.model) {
		t.Errorf("the server has %d bytes which differ at %d, %v; want %d", len(got), differ(got, c.model), err, len(c.model))
	}
}

// couple is two clients of a file, which ought to be as the model is.
type couple struct {
	t     *testing.T
	name  string
	r     *rand.Rand
	sides [2]*side
	model []byte
	log   []string
}

type side struct {
	name       string
	fs         *FS
	files      []*File // the last of them may be opened to append
	kept, lost int
}

// step does something on either side.
func (c *couple) step() {
	i := c.r.IntN(2)
	s, other := c.sides[i], c.sides[1-i]
	had := s.rights()
	defer func() {
		if s.rights() < had {
			s.lost++
		}
	}()
	if len(s.files) == 0 || len(s.files) < 3 && c.r.IntN(12) == 0 {
		if len(other.files) > 0 && c.r.IntN(3) > 0 {
			return
		}
		flag := os.O_RDWR
		if c.r.IntN(3) == 0 {
			flag |= os.O_APPEND
		}
		c.note(s, "open", flag, len(s.files))
		s.files = append(s.files, open(c.t, s.fs, c.name, flag))
		return
	}
	n := c.r.IntN(len(s.files))
	f := s.files[n]
	switch what := c.r.IntN(20); {
	case what < 2:
		c.note(s, "close", n, 0)
		shut(c.t, f)
		s.files = slices.Delete(s.files, n, n+1)
	case what < 3:
		c.note(s, "all close", 0, 0) // so that there are rights to be had
		for _, s := range c.sides {
			shut(c.t, s.files...)
			s.files = nil
		}
	case what < 9:
		c.note(s, "read", n, len(c.model))
		reads(c.t, s.name, f, c.model)
	case what < 14:
		c.write(s, f, n)
	case what < 15:
		size := c.r.IntN(50_000)
		c.note(s, "truncate", n, size)
		if err := f.Truncate(int64(size)); err != nil {
			c.t.Error(err)
		}
		c.model = append(c.model[:min(size, len(c.model))], make([]byte, max(size-len(c.model), 0))...)
		told(c.t, other.files...)
	case what < 16:
		c.note(s, "sync", n, 0)
		if err := f.Sync(); err != nil {
			c.t.Error(err)
		}
	case what < 18:
		c.note(s, "read file", 0, 0)
		if got, err := s.fs.ReadFile(c.name); err != nil || !bytes.Equal(got, c.model) {
			c.t.Errorf("%s: ReadFile: %d bytes which differ at %d, %v; want %d", s.name, len(got), differ(got, c.model), err, len(c.model))
		}
	case what < 19:
		c.note(s, "stat", 0, 0)
		if info, err := s.fs.Stat(c.name); err != nil || info.Size() != int64(len(c.model)) {
			c.t.Errorf("%s: Stat: %v, %v; want size %d", s.name, info, err, len(c.model))
		}
	default:
		c.model = bytesOf(c.r, c.r.IntN(30_000))
		c.note(s, "write file", len(c.model), 0)
		if err := s.fs.WriteFile(c.t.Context(), c.name, c.model, 0o666); err != nil {
			c.t.Error(err)
		}
		told(c.t, other.files...)
	}
}

// write writes somewhere, or at the end.
func (c *couple) write(s *side, f *File, n int) {
	p := bytesOf(c.r, 1+c.r.IntN(5000))
	requests := s.fs.Stats().Write.Requests
	if f.appends {
		c.note(s, "append", n, len(p))
		if n, err := f.Write(p); n != len(p) || err != nil {
			c.t.Errorf("%s: Write: %d, %v", s.name, n, err)
		}
		c.model = append(c.model, p...)
	} else {
		off := c.r.IntN(len(c.model) + 5000)
		c.note(s, "write", off, len(p))
		if n, err := f.WriteAt(p, int64(off)); n != len(p) || err != nil {
			c.t.Errorf("%s: WriteAt: %d, %v", s.name, n, err)
		}
		c.model = append(c.model, make([]byte, max(off+len(p)-len(c.model), 0))...)
		copy(c.model[off:], p)
	}
	if s.fs.Stats().Write.Requests == requests {
		s.kept++
	}
	for _, other := range c.sides {
		if other != s {
			told(c.t, other.files...)
		}
	}
}

func (c *couple) note(s *side, what string, i, n int) {
	c.log = append(c.log, fmt.Sprint(s.name, " ", what, " ", i, " ", n))
}

// rights says how much may be kept: 0 nothing, 1 reads, 2 writes as well.
func (s *side) rights() (n int) {
	for _, f := range s.files {
		reads, writes := f.Cached()
		if reads {
			n = max(n, 1)
		}
		if writes {
			n = 2
		}
	}
	return n
}

// TestCoherenceAtOnce has several goroutines write a file here, each its own part, and
// see each byte there and back, while the other client comes and takes the rights.
func TestCoherenceAtOnce(t *testing.T) {
	eachWay(t, func(t *testing.T, srv *sambatest.Server, w way) {
		const parts, part = 4, 50_000
		name := "at once " + w.String()
		cache, err := NewCache(CacheConfig{Size: 16 << 20, OnHeap: true}) // where the race detector sees it
		if err != nil {
			t.Fatal(err)
		}
		a, b := dialWith(t, sambaURL(srv), w.options(), cache), dialWith(t, sambaURL(srv), w.options(), cache)
		w.check(t, a)
		model := randomBytes(parts * part)
		if err := a.WriteFile(t.Context(), name, model, 0o666); err != nil {
			t.Fatal(err)
		}
		kept := false
		for round := range 3 {
			af := open(t, a, name, os.O_RDWR)
			granted(t, af)
			var bf atomic.Pointer[File]
			var wg sync.WaitGroup
			started := make(chan struct{}, parts)
			for i := range parts {
				wg.Go(func() {
					o := owner{t: t, r: rand.New(rand.NewPCG(uint64(round), uint64(i))), off: i * part, model: model[i*part : (i+1)*part]}
					there := 0
					for n := 0; there < 6 && !t.Failed(); n++ {
						other := bf.Load()
						o.write(af)
						o.read("a", af)
						if n == 5 {
							started <- struct{}{}
						}
						if other == nil {
							if other = bf.Load(); other != nil { // which the bytes had to come before
								o.read("b", other)
							}
							continue
						}
						there++
						told(t, other)
						o.read("b", other)
						o.write(other)
						told(t, af)
						o.read("a, of b,", af)
					}
				})
			}
			for range parts {
				<-started
			}
			kept = kept || a.Stats().Cache.Dirty > 0
			other := open(t, b, name, os.O_RDWR)
			bf.Store(other)
			wg.Wait()
			reads(t, "a", af, model)
			reads(t, "b", other, model)
			shut(t, af, other)
		}
		if !kept {
			t.Error("nothing that a wrote was kept")
		}
	})
}

// owner is who alone writes a part of a file.
type owner struct {
	t     *testing.T
	r     *rand.Rand
	off   int
	model []byte
}

func (o *owner) span() (off, n int) {
	off = o.r.IntN(len(o.model))
	return off, 1 + o.r.IntN(min(len(o.model)-off, 20_000))
}

func (o *owner) write(f *File) {
	off, n := o.span()
	copy(o.model[off:off+n], bytesOf(o.r, n))
	if _, err := f.WriteAt(o.model[off:off+n], int64(o.off+off)); err != nil {
		o.t.Error(err)
	}
}

func (o *owner) read(who string, f *File) {
	off, n := o.span()
	if o.r.IntN(2) == 0 {
		off, n = 0, len(o.model)
	}
	p := make([]byte, n)
	if _, err := f.ReadAt(p, int64(o.off+off)); err != nil || !bytes.Equal(p, o.model[off:off+n]) {
		o.t.Errorf("%s read %d bytes at %d, %v, which differ at %d", who, n, o.off+off, err, differ(p, o.model[off:]))
	}
}

// TestCoherenceWithSmbclient has Samba's own client read, replace, rename and remove
// what is open here.
func TestCoherenceWithSmbclient(t *testing.T) {
	eachWay(t, func(t *testing.T, srv *sambatest.Server, w way) {
		dir := t.TempDir()
		local := func(name string) string { return filepath.Join(dir, name) }
		name := strings.ReplaceAll("foreign "+w.String(), " ", "_")
		a := dial(t, sambaURL(srv), w.options())
		w.check(t, a)
		af := open(t, a, name, os.O_CREATE|os.O_RDWR)
		granted(t, af)
		model := wrote(t, af, nil, 0, randomBytes(300_000), true)
		model = wrote(t, af, model, 299_990, []byte("and some more"), true)

		smbclient(t, srv, w, "get "+name+" "+local("back"))
		if got, _ := os.ReadFile(local("back")); !bytes.Equal(got, model) {
			t.Errorf("smbclient got %d bytes which differ at %d, want %d", len(got), differ(got, model), len(model))
		}
		if _, writes := af.Cached(); writes {
			t.Error("the right to keep what is written is still there")
		}
		shut(t, af)

		af = open(t, a, name, os.O_RDWR)
		granted(t, af)
		reads(t, "a", af, model)
		model = wrote(t, af, model, 1000, []byte("lost when the file is replaced"), true)
		model = model[:123_456]
		for i := range model {
			model[i] ^= 0x55
		}
		if err := os.WriteFile(local("new"), model, 0o666); err != nil {
			t.Fatal(err)
		}
		smbclient(t, srv, w, "put "+local("new")+" "+name)
		told(t, af)
		reads(t, "a, of what was put", af, model)
		shut(t, af)

		af = open(t, a, name, os.O_RDWR)
		granted(t, af)
		model = wrote(t, af, model, len(model), []byte("more"), true)
		if err := af.Sync(); err != nil {
			t.Error(err)
		}
		if out := smbclient(t, srv, w, "allinfo "+name); !strings.Contains(out, "stream: [::$DATA], "+fmt.Sprint(len(model))+" bytes") {
			t.Errorf("smbclient says\n%s, want a size of %d", out, len(model))
		}
		shut(t, af)

		af = open(t, a, name, os.O_RDWR)
		granted(t, af)
		model = wrote(t, af, model, 5, []byte("renamed"), true)
		smbclient(t, srv, w, "rename "+name+" moved_"+name)
		if _, err := a.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Stat of what was renamed: %v", err)
		}
		reads(t, "a, of what was renamed", af, model)
		if err := af.Sync(); err != nil {
			t.Errorf("Sync of what was renamed: %v", err)
		}
		if got, err := os.ReadFile(filepath.Join(srv.Dir, "moved_"+name)); err != nil || !bytes.Equal(got, model) {
			t.Errorf("renamed, the server has %d bytes which differ at %d, %v; want %d", len(got), differ(got, model), err, len(model))
		}
		smbclient(t, srv, w, "del moved_"+name)
		reads(t, "a, of what was removed", af, model)
		shut(t, af)
		if _, err := a.Stat("moved_" + name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Stat of what was removed: %v", err)
		}
	})
}
