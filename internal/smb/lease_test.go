package smb

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

// told is Events that a test hears.
type told chan remote.Change

func (c told) Rights(change remote.Change) { c <- change }

// next is the next change, which has to come.
func (c told) next(t *testing.T) remote.Change {
	t.Helper()
	select {
	case change := <-c:
		return change
	case <-patient(t).Done():
		t.Fatal("no change of rights was told")
		panic("unreachable")
	}
}

// nothing complains if there was a change.
func (c told) nothing(t *testing.T, when string) {
	t.Helper()
	select {
	case change := <-c:
		t.Errorf("%s: told of %+v", when, change)
	default:
	}
}

// cached opens a file for caching.
func cached(t *testing.T, v *Volume, name string, events remote.Events) remote.Opened {
	t.Helper()
	how := remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew, Rights: allRights}
	o, err := v.Open(patient(t), remote.At{Name: name}, how, events)
	if err != nil {
		t.Fatalf("Open %s: %v", name, err)
	}
	t.Cleanup(func() { o.Open.Close(context.Background()) })
	return o
}

func write(t *testing.T, o remote.Opened, content string) {
	t.Helper()
	if _, _, err := o.File.WriteAt(patient(t), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{[]byte(content)}}); err != nil {
		t.Fatalf("WriteAt: %v", err)
	}
}

// TestRightsOnARealServer has what one client caches read and written by another.
func TestRightsOnARealServer(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	eachProtection(t, func(t *testing.T, cfg Config, _ Info) {
		name := strings.ReplaceAll(t.Name(), "/", " ")
		mine, theirs := mount(t, srv, cfg), mount(t, srv, cfg)
		c := make(told, 16)
		o := cached(t, mine, name, c)
		if o.Rights != allRights || o.Epoch == 0 {
			t.Errorf("the only client has rights %b in epoch %d, want %b", o.Rights, o.Epoch, allRights)
		}

		opened := make(chan remote.Opened, 1)
		go func() {
			other, err := theirs.Open(patient(t), remote.At{Name: name}, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
			if err != nil {
				t.Errorf("the second client's Open: %v", err)
			}
			opened <- other
		}()
		first := c.next(t)
		if first.Rights&remote.CacheWrite != 0 || first.Rights&remote.CacheRead == 0 || first.Epoch <= o.Epoch || first.Ack == nil {
			t.Errorf("another client opens it: %+v in epoch %d, want to keep the right to read, and to acknowledge", first, o.Epoch)
		}
		write(t, o, "flushed")
		select {
		case <-opened:
			t.Error("the second client was let in before the first one had given up its rights")
		default:
		}
		first.Ack(nil)
		other := <-opened
		if other.Open == nil {
			return
		}
		defer other.Open.Close(context.Background())
		if other.Rights != 0 {
			t.Errorf("who asks for no rights has %b", other.Rights)
		}
		p := make([]byte, 10)
		if n, _, err := other.File.ReadAt(patient(t), remote.Req{Open: other.Open}, [][]byte{p}); string(p[:n]) != "flushed" || err != nil {
			t.Errorf("the second client reads %q, %v", p[:n], err)
		}

		write(t, other, "changed")
		second := c.next(t)
		if second.Rights&(remote.CacheRead|remote.CacheWrite) != 0 || second.Epoch <= first.Epoch {
			t.Errorf("another client writes: %+v, was %+v", second, first)
		}
		if second.Ack != nil {
			second.Ack(nil)
		}
		first.Ack(nil) // once more
	})
}

// TestSessionsAreClientsOfTheirOwn to the server, which keeps leases apart by that.
func TestSessionsAreClientsOfTheirOwn(t *testing.T) {
	srv := smbtest.NewUnstarted(smbtest.Config{})
	defer srv.Close()
	a, b := dialTest(t, srv, Config{}).s, dialTest(t, srv, Config{}).s
	if a.guid == b.guid || a.guid == ([16]byte{}) || a.conn.Offered.ClientGUID != a.guid {
		t.Errorf("clients %x and %x; the first one said it was %x", a.guid, b.guid, a.conn.Offered.ClientGUID)
	}
}

// TestOwnOpensShareALease opens, closes and renames, which nobody else notices.
func TestOwnOpensShareALease(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		if cfg.Dialects[0] == smb2msg.SMB202 {
			t.Skip("it has no leases")
		}
		name := "own " + t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		v := mount(t, srv, cfg)
		c := make(told, 16)
		a, b := cached(t, v, name, c), cached(t, v, name, make(told))
		if a.File != b.File || b.Rights != allRights {
			t.Errorf("the second open has rights %b of file %p, want %b of %p", b.Rights, b.File, allRights, a.File)
		}
		write(t, b, "content")
		if _, err := v.Rename(patient(t), remote.At{Name: name}, remote.At{Name: name + "x"}, false); err != nil {
			t.Fatal(err)
		}
		again := cached(t, v, name+"x", c)
		if again.File != a.File || again.Rights != allRights || again.Epoch != b.Epoch {
			t.Errorf("after a rename: rights %b in epoch %d, want %b in %d", again.Rights, again.Epoch, allRights, b.Epoch)
		}
		if attr, err := a.File.GetAttr(patient(t), a.Open); err != nil || attr.Node != remote.Node(name+"x") {
			t.Errorf("after a rename it is %q, %v", attr.Node, err)
		}
		// A new file has the old name.
		new := cached(t, v, name, c)
		if new.File == a.File || new.Rights != allRights {
			t.Errorf("a new file under the old name: rights %b, want %b of its own", new.Rights, allRights)
		}
		c.nothing(t, "nobody else was there")
		for _, o := range []remote.Opened{a, b, again, new} {
			if err := o.Open.Close(patient(t)); err != nil {
				t.Error(err)
			}
		}
		if n := len(v.caching.leases) + len(v.caching.paths) + len(v.caching.asking); n != 0 {
			t.Errorf("%+v is left", v.caching)
		}
	})
}

// TestRightsAgainstAForeignClient has smbclient read what is flushed for it.
func TestRightsAgainstAForeignClient(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		name := "foreign " + t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		v := mount(t, srv, cfg)
		c := make(told, 16)
		o := cached(t, v, name, c)
		out := make(chan string)
		go func() {
			cmd := exec.CommandContext(patient(t), "smbclient", "-s", srv.Conf, "-p", fmt.Sprint(srv.Port), "-U", srv.User+"%"+srv.Password,
				"//127.0.0.1/"+srv.Share, "-c", fmt.Sprintf("get \"%s\" -", name))
			b, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("smbclient: %v\n%s", err, b)
			}
			out <- string(b)
		}()
		change := c.next(t)
		write(t, o, "far files, near\n")
		change.Ack(nil)
		if got := <-out; !strings.Contains(got, "far files, near\n") {
			t.Errorf("smbclient got %q", got)
		}
	})
}
