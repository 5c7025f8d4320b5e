package smb

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

// acking is Events that give up rights at once, as somebody with nothing cached.
type acking struct{ told }

func (a acking) Rights(change remote.Change) {
	if change.Ack != nil {
		go change.Ack(nil)
	}
	a.told.Rights(change)
}

// TestTwoNamesOfOneFile opens it by both, and by one name in another case.
func TestTwoNamesOfOneFile(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		v := mount(t, srv, cfg)
		name := "name " + t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		c := acking{make(told, 16)}
		first := cached(t, v, name, c)
		if err := v.Link(patient(t), remote.At{Name: name}, remote.At{Name: "link of " + name}); err != nil {
			t.Fatal(err)
		}
		last := first.Epoch
		for _, other := range []string{"link of " + name, strings.ToUpper(name)} {
			o := cached(t, v, other, make(told))
			if o.File != first.File {
				t.Fatalf("%q is another file than %q", other, name)
			}
			if o.Rights&remote.CacheWrite != 0 || o.Rights&remote.CacheRead == 0 {
				t.Errorf("opened as %q: rights %b", other, o.Rights)
			}
			last = max(last, o.Epoch)
			defer o.Open.Close(context.Background())
		}
		if change := c.next(t); change.Rights&remote.CacheWrite != 0 || change.Epoch <= first.Epoch || change.Epoch > last {
			t.Errorf("told of %+v between epochs %d and %d", change, first.Epoch, last)
		}
	})
}

// TestPathThatNamesAnotherFile has another client move a file away that is open
// here, and put a new one there.
func TestPathThatNamesAnotherFile(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		v, other := mount(t, srv, cfg), mount(t, srv, cfg)
		name := "path " + t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		old := cached(t, v, name, acking{make(told, 16)})
		write(t, old, "old")
		if _, err := other.Rename(patient(t), remote.At{Name: name}, remote.At{Name: "moved " + name}, false); err != nil {
			t.Fatal(err)
		}
		if _, err := other.WriteFile(patient(t), remote.At{Name: name}, remote.How{Create: remote.New}, []byte("new")); err != nil {
			t.Fatal(err)
		}
		new := cached(t, v, name, make(told, 16))
		if new.File == old.File || new.Rights != allRights {
			t.Errorf("what is there now has rights %b", new.Rights)
		}
		for want, o := range map[string]remote.Opened{"old": old, "new": new} {
			p := make([]byte, 10)
			if n, _, err := o.File.ReadAt(patient(t), remote.Req{Open: o.Open}, [][]byte{p}); string(p[:n]) != want || err != nil {
				t.Errorf("read %q, %v, want %q", p[:n], err, want)
			}
			if err := o.Open.Close(patient(t)); err != nil {
				t.Error(err)
			}
		}
		nothingLeft(t, v)
	})
}

// TestRefusedLease is asked for once more, under another key, only if the first
// key was not new.
func TestRefusedLease(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
		count := &counted{n: map[string]int{}, fault: refuse("CREATE", ntstatus.InvalidParameter)}
		srv.SetFaults(count.faults)
		_, err := v.Open(t.Context(), remote.At{Name: "file"}, askingFor(allRights), make(told))
		check(t, "Open", err, ntstatus.InvalidParameter)
		if n := count.of("CREATE"); n != 1 {
			t.Errorf("asked %d times", n)
		}
		nothingLeft(t, v)
		count.fault = nil
		g.grant = all
		o := cached(t, v, "file", make(told, 16))
		before := key(t, v, "file")
		count.fault = refuse("CREATE", ntstatus.InvalidParameter)
		_, err = v.Open(t.Context(), remote.At{Name: "file"}, askingFor(allRights), make(told))
		check(t, "Open", err, ntstatus.InvalidParameter)
		if n := count.of("CREATE"); n != 1+1+2 {
			t.Errorf("asked %d times in all", n)
		}
		count.fault = nil
		again := cached(t, v, "file", make(told, 16))
		if after := key(t, v, "file"); after == before || again.File != o.File {
			t.Errorf("the same key again, or file %p, want %p", again.File, o.File)
		}
		again.Open.Close(t.Context())
		o.Open.Close(t.Context())
		nothingLeft(t, v)
	})
}

// TestSeveralLeasesOfAFile allow what each of them allows, and no more.
func TestSeveralLeasesOfAFile(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
		if err := srv.WriteFile("one", nil); err != nil {
			t.Fatal(err)
		}
		if err := v.Link(t.Context(), remote.At{Name: "one"}, remote.At{Name: "two"}); err != nil {
			t.Fatal(err)
		}
		c := make(told, 16)
		g.grant = all
		one := cached(t, v, "one", c)
		g.grant = func(c *creation) (before, after [][]byte) { c.give(leaseRH, 1); return nil, nil }
		two := cached(t, v, "two", c)
		if change := c.next(t); two.File != one.File || two.Rights != rightsRH || change.Rights != rightsRH ||
			change.Epoch != two.Epoch || change.Ack != nil {
			t.Errorf("with another lease: rights %b in epoch %d, told of %+v", two.Rights, two.Epoch, change)
		}
		g.send(broken(key(t, v, "one"), 2, smb2msg.LeaseRead))
		if change := c.next(t); change.Rights != remote.CacheRead {
			t.Errorf("one is broken: %+v", change)
		}
		g.send(broken(key(t, v, "two"), 2, 0))
		if change := c.next(t); change.Rights != 0 || change.Node != "one" {
			t.Errorf("both are broken: %+v", change)
		}
		two.Open.Close(t.Context())
		g.grant = nil
		third, err := v.Open(t.Context(), remote.At{Name: "two"}, askingFor(0), nil)
		if err != nil {
			t.Fatal(err)
		}
		if third.Rights != remote.CacheRead {
			t.Errorf("with one closed: rights %b, want %b", third.Rights, remote.CacheRead)
		}
		one.Open.Close(t.Context())
		synctest.Wait()
		if change := c.next(t); change.Rights != 0 {
			t.Errorf("the last one is closed: %+v", change)
		}
		third.Open.Close(t.Context())
		nothingLeft(t, v)
	})
}

// TestFileWithoutAnID is one file by its lease, as far as anybody can know.
func TestFileWithoutAnID(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) {
			c.CreateResponse.Contexts = nil
			c.give(leaseAll, 1)
			return nil, nil
		}
		c := make(told, 16)
		a, b, other := cached(t, v, "file", c), cached(t, v, "file", c), cached(t, v, "other", c)
		if a.File != b.File || b.Rights != allRights || a.File == other.File {
			t.Errorf("files %p, %p, rights %b, and %p", a.File, b.File, b.Rights, other.File)
		}
		a.Open.Close(t.Context())
		g.send(broken(key(t, v, "file"), 2, leaseRH))
		if change := c.next(t); change.Rights != rightsRH || change.Node != "file" {
			t.Errorf("told of %+v", change)
		}
		b.Open.Close(t.Context())
		other.Open.Close(t.Context())
		nothingLeft(t, v)
	})
}

// TestOpenWhileTheLastOneCloses has the same key as long as the server knows it, but
// what the last open had is gone.
func TestOpenWhileTheLastOneCloses(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) { c.give(leaseAll, 9); return nil, nil }
		c := make(told, 16)
		first := cached(t, v, "file", c)
		before := key(t, v, "file")
		srv.SetFaults(slow("CLOSE"))
		closed := make(chan error)
		go func() { closed <- first.Open.Close(t.Context()) }()
		synctest.Wait()
		g.send(broken(before, 10, leaseRH))
		g.ack() // nobody has anything
		g.grant = func(c *creation) (before, after [][]byte) { c.give(smb2msg.LeaseRead, 1); return nil, nil }
		second := cached(t, v, "file", c)
		if second.File == first.File || second.Rights != remote.CacheRead || key(t, v, "file") != before {
			t.Errorf("rights %b by key %x, want %b by %x", second.Rights, key(t, v, "file"), remote.CacheRead, before)
		}
		check(t, "Close", <-closed, nil)
		c.nothing(t, "the first file is closed")
		g.send(broken(before, 2, 0))
		if change := c.next(t); change.Rights != 0 {
			t.Errorf("told of %+v", change)
		}
		srv.SetFaults(nil)
		second.Open.Close(t.Context())
		nothingLeft(t, v)
	})
}

// TestRenamesMoveLeases with what is open, and below it, and forget what was
// replaced.
func TestRenamesMoveLeases(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
		g.grant = all
		c := make(told, 16)
		if err := srv.WriteFile("dir/file", nil); err != nil {
			t.Fatal(err)
		}
		inDir, a, b := cached(t, v, "dir/file", c), cached(t, v, "a", c), cached(t, v, "b", c)
		keys := [][16]byte{key(t, v, `dir\file`), key(t, v, "a")}
		v.renamed("dir", `new\dir`) // which servers allow only while nothing in it is open
		v.renamed("di", "x")
		v.renamed("a", "b")
		if inDir := key(t, v, `new\dir\file`); inDir != keys[0] || key(t, v, "b") != keys[1] || len(v.caching.paths) != 2 {
			t.Errorf("paths %v", v.caching.paths)
		}
		g.send(broken(keys[0], 2, 0), broken(keys[1], 2, 0))
		for _, want := range []remote.Node{`new\dir\file`, "b"} {
			if change := c.next(t); change.Node != want {
				t.Errorf("told of %q, want %q", change.Node, want)
			}
		}
		for _, o := range []remote.Opened{inDir, a, b} {
			o.Open.Close(t.Context())
		}
		nothingLeft(t, v)
	})
}
