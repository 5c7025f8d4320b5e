package smb

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

var only202 = Config{Dialects: []smb2msg.Dialect{smb2msg.SMB202}}

// TestOplocksOfOwnOpens has a second open break the first one's oplock, which the
// server waits for; what is left of both is the file's.
func TestOplocksOfOwnOpens(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	v := mount(t, srv, only202)
	c := make(told, 16)
	first := cached(t, v, "file", c)
	if first.Rights != allRights {
		t.Fatalf("the only open has rights %b", first.Rights)
	}
	opened := make(chan remote.Opened)
	go func() {
		o, err := v.Open(patient(t), remote.At{Name: "file"}, askingFor(allRights), make(told))
		if err != nil {
			t.Error(err)
		}
		opened <- o
	}()
	change := c.next(t)
	if change.Rights != remote.CacheRead || change.Ack == nil || change.Epoch <= first.Epoch {
		t.Errorf("the second open: told of %+v", change)
	}
	write(t, first, "flushed") // by a handle whose oplock is not given up yet
	select {
	case <-opened:
		t.Error("the second open did not wait for the first one's oplock")
	default:
	}
	change.Ack(nil)
	second := <-opened
	if second.Open == nil {
		return
	}
	if second.File != first.File || second.Rights != remote.CacheRead {
		t.Errorf("the second open: rights %b of file %p, want %b of %p", second.Rights, second.File, remote.CacheRead, first.File)
	}
	if err := first.Open.Close(patient(t)); err != nil {
		t.Error(err)
	}
	third := cached(t, v, "file", c)
	if third.Rights != remote.CacheRead {
		t.Errorf("with one open closed and one more: rights %b, want %b", third.Rights, remote.CacheRead)
	}
	for _, o := range []remote.Opened{second, third} {
		if err := o.Open.Close(patient(t)); err != nil {
			t.Error(err)
		}
	}
	nothingLeft(t, v)
}

// TestReadingOplock is what those get who want to keep nothing but what they read.
func TestReadingOplock(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	v, other := mount(t, srv, only202), mount(t, srv, only202)
	c := make(told, 16)
	how := remote.How{Access: remote.ForRead, Create: remote.OrNew, Rights: remote.CacheRead}
	o, err := v.Open(patient(t), remote.At{Name: "file"}, how, c)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Open.Close(context.Background())
	if o.Rights != remote.CacheRead {
		t.Errorf("rights %b, want %b", o.Rights, remote.CacheRead)
	}
	if _, err := other.WriteFile(patient(t), remote.At{Name: "file"}, remote.How{Create: remote.Existing}, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if change := c.next(t); change.Rights != 0 || change.Ack != nil {
		t.Errorf("another client writes: told of %+v", change)
	}
}

// batch grants a batch oplock to those who ask for one.
func batch(t *testing.T, after ...func(id smb2msg.FileID) []byte) func(c *creation) ([][]byte, [][]byte) {
	return func(c *creation) (before, behind [][]byte) {
		if c.CreateRequest.OplockLevel != smb2msg.OplockBatch || c.lease != nil {
			t.Errorf("asked for level %d, lease %+v", c.CreateRequest.OplockLevel, c.lease)
		}
		c.CreateResponse.OplockLevel = smb2msg.OplockBatch
		for _, f := range after {
			behind = append(behind, f(c.FileID))
		}
		return nil, behind
	}
}

func oplockBroken(id smb2msg.FileID, to smb2msg.OplockLevel) []byte {
	return notice(&smb2msg.OplockBreak{FileID: id, OplockLevel: to})
}

// TestOplockBreaks go as far as they say, and no server makes more of them.
func TestOplockBreaks(t *testing.T) {
	granting(t, smb2msg.SMB202, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		for name, c := range map[string]struct {
			to, acked smb2msg.OplockLevel
			left      remote.Rights
		}{
			"level II":     {smb2msg.OplockII, smb2msg.OplockII, remote.CacheRead},
			"none":         {smb2msg.OplockNone, smb2msg.OplockNone, 0},
			"no less":      {smb2msg.OplockBatch, smb2msg.OplockNone, 0},
			"what is none": {77, smb2msg.OplockNone, 0},
		} {
			g.grant = batch(t)
			events := make(told, 16)
			o := cached(t, v, "file", events)
			if o.Rights != allRights {
				t.Errorf("%s: rights %b at first", name, o.Rights)
			}
			id := o.Open.(*Open).id
			g.send(oplockBroken(id, c.to))
			change := events.next(t)
			if change.Rights != c.left || change.Ack == nil || change.Epoch <= o.Epoch {
				t.Errorf("%s: told of %+v, want rights %b", name, change, c.left)
			}
			g.noAck(name)
			change.Ack(nil)
			if m := g.oplockAck(); m.OplockLevel != c.acked || m.FileID != id {
				t.Errorf("%s: acknowledged %+v, want level %d of %v", name, m, c.acked, id)
			}
			// Level II is given up by hearing of it.
			g.send(oplockBroken(id, smb2msg.OplockNone))
			synctest.Wait()
			if c.left != 0 {
				if change := events.next(t); change.Rights != 0 || change.Ack != nil {
					t.Errorf("%s: then told of %+v", name, change)
				}
			}
			events.nothing(t, name)
			g.noAck(name)
			o.Open.Close(t.Context())
			g.send(oplockBroken(id, smb2msg.OplockNone))
			synctest.Wait()
			nothingLeft(t, v)
		}
	})
}

// TestOplockBreakOvertakesTheReply is for a handle of which nobody knows yet whose
// it is.
func TestOplockBreakOvertakesTheReply(t *testing.T) {
	to2 := func(id smb2msg.FileID) []byte { return oplockBroken(id, smb2msg.OplockII) }
	for name, grant := range map[string]func(t *testing.T) func(c *creation) ([][]byte, [][]byte){
		"before": func(t *testing.T) func(c *creation) ([][]byte, [][]byte) {
			return func(c *creation) (before, after [][]byte) {
				batch(t)(c)
				return [][]byte{to2(c.FileID)}, nil
			}
		},
		"behind": func(t *testing.T) func(c *creation) ([][]byte, [][]byte) { return batch(t, to2) },
	} {
		t.Run(name, func(t *testing.T) {
			granting(t, smb2msg.SMB202, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
				g.grant = grant(t)
				c := make(told, 16)
				for range 50 {
					o := cached(t, v, "file", c)
					synctest.Wait()
					rights := o.Rights
					select {
					case change := <-c:
						rights = change.Rights
						change.Ack(nil)
					default:
					}
					if rights != remote.CacheRead {
						t.Fatalf("rights %b are left, want %b", rights, remote.CacheRead)
					}
					if m := g.oplockAck(); m.OplockLevel != smb2msg.OplockII || m.FileID != o.Open.(*Open).id {
						t.Errorf("acknowledged %+v", m)
					}
					o.Open.Close(t.Context())
				}
				nothingLeft(t, v)
			})
		})
	}
}

// TestFloodOfEarlyBreaks is for more handles than can be remembered: an open
// under way gets nothing, since one of them may have been its own.
func TestFloodOfEarlyBreaks(t *testing.T) {
	granting(t, smb2msg.SMB202, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		flood := func(n int) func(c *creation) ([][]byte, [][]byte) {
			return func(c *creation) (before, after [][]byte) {
				batch(t)(c)
				for i := range n {
					before = append(before, oplockBroken(smb2msg.FileID{Persistent: 1 << 40, Volatile: uint64(i)}, smb2msg.OplockII))
				}
				return before, nil
			}
		}
		c := make(told, 16)
		g.grant = flood(mostEarly)
		first := cached(t, v, "first", c)
		g.grant = flood(mostEarly + 1)
		second := cached(t, v, "second", c)
		if first.Rights != allRights || second.Rights != 0 {
			t.Errorf("rights %b and %b, want %b and none", first.Rights, second.Rights, allRights)
		}
		if m := g.oplockAck(); m.OplockLevel != smb2msg.OplockNone || m.FileID != second.Open.(*Open).id {
			t.Errorf("acknowledged %+v", m)
		}
		c.nothing(t, "nothing was lost")
		first.Open.Close(t.Context())
		second.Open.Close(t.Context())
		nothingLeft(t, v)
	})
}
