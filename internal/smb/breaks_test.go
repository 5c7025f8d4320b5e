package smb

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

const (
	leaseAll = smb2msg.LeaseRead | smb2msg.LeaseWrite | smb2msg.LeaseHandle
	leaseRH  = smb2msg.LeaseRead | smb2msg.LeaseHandle
	rightsRH = remote.CacheRead | remote.CacheHandle
)

// withLeases runs test with leases of both forms.
func withLeases(t *testing.T, test func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server)) {
	for _, d := range []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB302} {
		t.Run(d.String(), func(t *testing.T) { granting(t, d, test) })
	}
}

// all grants all that a lease has.
func all(c *creation) (before, after [][]byte) {
	c.give(leaseAll, 1)
	return nil, nil
}

// TestBreakOvertakesTheReply lowers what the reply grants, whether the break comes
// before it or right behind it, when there is no file yet that could tell anybody.
func TestBreakOvertakesTheReply(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) {
			if want := leaseAll; c.lease == nil || c.lease.LeaseState != want || c.lease.V2 != (v.s.conn.Dialect >= smb2msg.SMB300) {
				t.Errorf("asked for %+v, want state %d", c.lease, want)
			}
			c.give(leaseAll, 1)
			return [][]byte{broken(c.lease.LeaseKey, 2, leaseRH)}, nil
		}
		c := make(told, 16)
		o := cached(t, v, "file", c)
		if o.Rights != rightsRH {
			t.Errorf("the open has rights %b, want %b", o.Rights, rightsRH)
		}
		if m := g.ack(); m.LeaseState != leaseRH || m.LeaseKey != key(t, v, "file") {
			t.Errorf("acknowledged %+v", m)
		}
		c.nothing(t, "there was no file")
		if err := o.Open.Close(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t, v)
	})
}

// TestBreakBehindTheReply comes in the same packet: whether the open has returned
// by then or not, the rights end where the break says.
func TestBreakBehindTheReply(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) {
			c.give(leaseAll, 1)
			return nil, [][]byte{broken(c.lease.LeaseKey, 2, leaseRH)}
		}
		for i := range 50 {
			c := make(told, 16)
			o := cached(t, v, fmt.Sprint("file", i), c)
			synctest.Wait()
			rights := o.Rights
			select {
			case change := <-c:
				if change.Epoch <= o.Epoch {
					t.Errorf("the change has epoch %d, the open before it %d", change.Epoch, o.Epoch)
				}
				rights = change.Rights
				change.Ack(nil)
			default:
			}
			if rights != rightsRH {
				t.Errorf("rights %b are left, want %b", rights, rightsRH)
			}
			g.ack()
		}
	})
}

// TestBreakWhileAnotherOpenWaits is told at once, although a CREATE under the same
// key waits for nothing else, and counts for what that CREATE is given.
func TestBreakWhileAnotherOpenWaits(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = all
		c := make(told, 16)
		first := cached(t, v, "file", c)
		g.held = make(chan struct{})
		second := make(chan remote.Opened)
		go func() {
			o, err := v.Open(t.Context(), remote.At{Name: "file"}, askingFor(allRights), c)
			if err != nil {
				t.Error(err)
			}
			second <- o
		}()
		synctest.Wait()
		g.send(broken(key(t, v, "file"), 2, smb2msg.LeaseRead))
		synctest.Wait()
		change := c.next(t)
		if change.Rights != remote.CacheRead || change.Epoch <= first.Epoch || change.Node != "file" || change.Trust != remote.Current {
			t.Errorf("told of %+v in epoch %d", change, first.Epoch)
		}
		if wait := time.Until(change.By); wait <= 0 || wait > 30*time.Second {
			t.Errorf("there are %v for it", wait)
		}
		g.noAck("before it is given up")
		change.Ack(errors.New("could not be flushed"))
		change.Ack(nil)
		if m := g.ack(); m.LeaseState != smb2msg.LeaseRead {
			t.Errorf("acknowledged %+v", m)
		}
		g.noAck("a second time")
		close(g.held)
		o := <-second
		if o.Rights != remote.CacheRead || o.File != first.File || o.Epoch != change.Epoch {
			t.Errorf("the second open has rights %b in epoch %d, want %b in %d", o.Rights, o.Epoch, remote.CacheRead, change.Epoch)
		}
		// What is asked for later may be more again.
		g.grant = func(c *creation) (before, after [][]byte) { c.give(leaseAll, 9); return nil, nil }
		third := cached(t, v, "file", c)
		if third.Rights != allRights || third.Epoch <= change.Epoch {
			t.Errorf("the third open has rights %b in epoch %d, want %b and more than %d", third.Rights, third.Epoch, allRights, change.Epoch)
		}
		c.nothing(t, "a grant is in what Open returns")
		o.Open.Close(t.Context())
	})
}

// TestBreaksOfNobody are for keys and handles there are not.
func TestBreaksOfNobody(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = all
		c := make(told, 16)
		o := cached(t, v, "file", c)
		g.send(notice(&smb2msg.LeaseBreakNotification{LeaseKey: [16]byte{1}}))
		g.send(notice(&smb2msg.OplockBreak{FileID: smb2msg.FileID{Volatile: 1}}))
		g.send(notice(&smb2msg.OplockBreak{FileID: o.Open.(*Open).id, OplockLevel: smb2msg.OplockII})) // it has no oplock
		g.noAck("nobody waits")
		g.send(broken([16]byte{2}, 7, smb2msg.LeaseRead))
		if m := g.ack(); m.LeaseKey != [16]byte{2} || m.LeaseState != smb2msg.LeaseRead {
			t.Errorf("acknowledged %+v", m)
		}
		c.nothing(t, "it is nobody's")
		if _, err := v.s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestMalformedBreaks are dropped, whatever they look like.
func TestMalformedBreaks(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = all
		c := make(told, 16)
		cached(t, v, "file", c)
		whole := broken(key(t, v, "file"), 2, 0)
		for n := smb2msg.HeaderSize; n < len(whole); n++ {
			g.send(whole[:n])
			for _, size := range []byte{0, 24, 36, 43, 45, 255} {
				b := append([]byte(nil), whole[:n]...)
				if n > smb2msg.HeaderSize {
					b[smb2msg.HeaderSize] = size
				}
				g.send(b)
			}
		}
		g.noAck("they say nothing")
		c.nothing(t, "they say nothing")
		if _, err := v.s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		g.send(whole)
		if change := c.next(t); change.Rights != 0 {
			t.Errorf("the whole one leaves %b", change.Rights)
		}
	})
}

// TestEpochs of V2 leases put breaks in order; 2.1 has none.
func TestEpochs(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) { c.give(leaseAll, 0xFFFE); return nil, nil }
		c := make(told, 16)
		cached(t, v, "file", c)
		k := key(t, v, "file")
		g.send(broken(k, 0xFFFD, 0))
		synctest.Wait()
		if v.s.conn.Dialect < smb2msg.SMB300 {
			if change := c.next(t); change.Rights != 0 {
				t.Errorf("rights %b are left", change.Rights)
			}
			return
		}
		c.nothing(t, "it is older than the grant")
		g.noAck("it is older than the grant")
		g.send(broken(k, 0xFFFF, leaseRH))
		first := c.next(t)
		g.send(broken(k, 0, smb2msg.LeaseRead))
		second := c.next(t)
		if first.Rights != rightsRH || second.Rights != remote.CacheRead || second.Epoch <= first.Epoch {
			t.Errorf("told of %+v, then of %+v", first, second)
		}
		g.send(broken(k, 0xFFFF, 0))
		synctest.Wait()
		c.nothing(t, "it is older than the last one")
		// The same once more takes nothing, but somebody may wait for it.
		g.send(broken(k, 0, smb2msg.LeaseRead))
		again := c.next(t)
		if again.Rights != second.Rights || again.Epoch != second.Epoch {
			t.Errorf("told of %+v, then again as %+v", second, again)
		}
		for _, change := range []remote.Change{first, second, again} {
			change.Ack(nil)
			g.ack()
		}
	})
}

// TestBreakThatNobodyWaitsFor has nothing to acknowledge.
func TestBreakThatNobodyWaitsFor(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) { c.give(smb2msg.LeaseRead, 1); return nil, nil }
		c := make(told, 16)
		o := cached(t, v, "file", c)
		gone := notice(&smb2msg.LeaseBreakNotification{NewEpoch: 2, LeaseKey: key(t, v, "file")})
		g.send(gone)
		if change := c.next(t); change.Rights != 0 || change.Ack != nil || change.Epoch <= o.Epoch {
			t.Errorf("told of %+v", change)
		}
		g.send(gone)
		synctest.Wait()
		c.nothing(t, "nothing was left")
		g.noAck("nobody waits")
	})
}

// TestAcknowledgmentsThatComeTooLate do no harm.
func TestAcknowledgmentsThatComeTooLate(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = all
		c := make(told, 16)
		o := cached(t, v, "file", c)
		k := key(t, v, "file")
		g.send(broken(k, 2, leaseRH))
		closed := c.next(t)
		if err := o.Open.Close(t.Context()); err != nil {
			t.Error(err)
		}
		closed.Ack(nil)
		g.ack()
		g.send(broken(k, 3, 0)) // there is nobody left to tell
		g.ack()
		c.nothing(t, "the file is closed")

		// A server that does not answer keeps nobody for ever.
		cached(t, v, "file", c)
		g.send(broken(key(t, v, "file"), 2, leaseRH))
		g.mute = true
		begin := time.Now()
		c.next(t).Ack(nil)
		if took := time.Since(begin); took != ackPatience {
			t.Errorf("an acknowledgment without an answer took %v, want %v", took, ackPatience)
		}
		g.send(broken(key(t, v, "file"), 3, 0))
		change := c.next(t)
		g.client.Close()
		<-v.s.conn.Done()
		change.Ack(nil)
	})
}

// TestAcknowledgmentsThatAreRefused come after the server has lost its patience, and
// then nothing is left. Who has closed the file meanwhile need not know.
func TestAcknowledgmentsThatAreRefused(t *testing.T) {
	for _, d := range []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB210, smb2msg.SMB302} {
		t.Run(d.String(), func(t *testing.T) {
			granting(t, d, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
				g.grant, g.late = all, ntstatus.Unsuccessful
				toII := func(o remote.Opened) []byte { return broken(key(t, v, "file"), 2, smb2msg.LeaseRead) }
				if d == smb2msg.SMB202 {
					g.grant = batch(t)
					toII = func(o remote.Opened) []byte { return oplockBroken(o.Open.(*Open).id, smb2msg.OplockII) }
				}
				c := make(told, 16)
				o := cached(t, v, "file", c)
				g.send(toII(o))
				first := c.next(t)
				first.Ack(nil)
				if second := c.next(t); first.Rights != remote.CacheRead || second.Rights != 0 || second.Epoch <= first.Epoch || second.Ack != nil {
					t.Errorf("told of %+v, then of %+v", first, second)
				}
				o.Open.Close(t.Context())

				o = cached(t, v, "file", c)
				g.send(toII(o))
				first = c.next(t)
				srv.SetFaults(slow("CLOSE")) // so that the next open has the same lease
				closed := make(chan error)
				go func() { closed <- o.Open.Close(t.Context()) }()
				synctest.Wait()
				again := cached(t, v, "file", c)
				first.Ack(nil)
				synctest.Wait()
				if d != smb2msg.SMB202 {
					g.grant = func(c *creation) (before, after [][]byte) { c.give(0, 2); return nil, nil }
				}
				third := cached(t, v, "file", c)
				if third.File != again.File || third.Rights != again.Rights {
					t.Errorf("rights %b, want %b as before", third.Rights, again.Rights)
				}
				c.nothing(t, "that file is closed")
				check(t, "Close", <-closed, nil)
				again.Open.Close(t.Context())
				third.Open.Close(t.Context())
				nothingLeft(t, v)
			})
		})
	}
}

// TestGrantBeforeTheAcknowledgment tells of what there was before the break.
func TestGrantBeforeTheAcknowledgment(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.grant = func(c *creation) (before, after [][]byte) { c.give(leaseAll, 2); return nil, nil }
		c := make(told, 16)
		cached(t, v, "file", c)
		g.send(broken(key(t, v, "file"), 2, leaseRH))
		change := c.next(t)
		if o := cached(t, v, "file", c); o.Rights != rightsRH || o.Epoch != change.Epoch {
			t.Errorf("not acknowledged yet: rights %b in epoch %d, want %b in %d", o.Rights, o.Epoch, rightsRH, change.Epoch)
		}
		change.Ack(nil)
		if o := cached(t, v, "file", c); o.Rights != allRights {
			t.Errorf("acknowledged: rights %b, want %b", o.Rights, allRights)
		}
	})
}

// TestFloodOfBreaks makes no more goroutines than are worth it.
func TestFloodOfBreaks(t *testing.T) {
	granting(t, smb2msg.SMB302, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		g.mute = true
		for i := range 10 * mostAcks {
			g.send(broken([16]byte{1, byte(i), byte(i >> 8)}, 1, 0))
		}
		synctest.Wait()
		if n := len(g.acks); n > mostAcks {
			t.Errorf("%d acknowledgments under way, want %d at most", n, mostAcks)
		}
		v.mu.Lock()
		if n := v.caching.acks; n != mostAcks {
			t.Errorf("%d are counted, want %d", n, mostAcks)
		}
		v.mu.Unlock()
		<-time.After(2 * ackPatience)
		nothingLeft(t, v)
	})
}

// TestOpenThatIsGivenUp leaves no lease behind, and breaks of what the server has
// granted meanwhile are acknowledged.
func TestOpenThatIsGivenUp(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
		keys := make(chan [16]byte, 1)
		g.held = make(chan struct{})
		g.grant = func(c *creation) (before, after [][]byte) {
			c.give(leaseAll, 1)
			keys <- c.lease.LeaseKey
			return nil, nil
		}
		c := make(told, 16)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := v.Open(ctx, remote.At{Name: "file"}, askingFor(allRights), c)
		check(t, "Open", err, context.DeadlineExceeded)
		nothingLeft(t, v)
		close(g.held)
		g.send(broken(<-keys, 2, 0))
		g.ack()
		c.nothing(t, "nobody has it open")
		nothingLeft(t, v)
	})
}

// TestGrantsThatMakeNoSense give nothing.
func TestGrantsThatMakeNoSense(t *testing.T) {
	for name, grant := range map[string]func(c *creation){
		"another key": func(c *creation) {
			c.give(leaseAll, 1)
			c.CreateResponse.Contexts[len(c.CreateResponse.Contexts)-1].Data[0]++
		},
		"a context without a lease": func(c *creation) { c.giveContext(c.lease) },
		"a lease without a context": func(c *creation) { c.CreateResponse.OplockLevel = smb2msg.OplockLease },
		"a context cut short": func(c *creation) {
			c.give(leaseAll, 1)
			last := &c.CreateResponse.Contexts[len(c.CreateResponse.Contexts)-1]
			last.Data = last.Data[:20]
		},
		"unknown states": func(c *creation) { c.give(1<<31|1<<3, 1) },
		"an oplock":      func(c *creation) { c.CreateResponse.OplockLevel = smb2msg.OplockBatch },
		"a folder":       func(c *creation) { c.give(leaseAll, 1); c.CreateResponse.FileAttributes = 0x10 },
	} {
		t.Run(name, func(t *testing.T) {
			withLeases(t, func(t *testing.T, v *Volume, g *granter, _ *smbtest.Server) {
				g.grant = func(c *creation) (before, after [][]byte) { grant(c); return nil, nil }
				o := cached(t, v, "file", make(told, 16))
				if o.Rights != 0 {
					t.Errorf("rights %b", o.Rights)
				}
				if err := o.Open.Close(t.Context()); err != nil {
					t.Error(err)
				}
				nothingLeft(t, v)
			})
		})
	}
}

// TestNothingIsAsked by who wants none, or can't be told, or opens a folder.
func TestNothingIsAsked(t *testing.T) {
	withLeases(t, func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server) {
		if err := srv.WriteFile("dir/file", nil); err != nil {
			t.Fatal(err)
		}
		g.grant = func(c *creation) (before, after [][]byte) {
			if c.CreateRequest.OplockLevel != smb2msg.OplockNone || c.lease != nil {
				t.Errorf("%s: asked for level %d, lease %+v", c.Name, c.CreateRequest.OplockLevel, c.lease)
			}
			return nil, nil
		}
		for name, c := range map[string]struct {
			at     string
			how    remote.How
			events remote.Events
		}{
			"no rights": {"dir/file", askingFor(0), make(told)},
			"nobody":    {"dir/file", askingFor(allRights), nil},
			"a folder":  {"dir", remote.How{Dir: true, Rights: allRights}, make(told)},
		} {
			o, err := v.Open(t.Context(), remote.At{Name: c.at}, c.how, c.events)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if o.Rights != 0 {
				t.Errorf("%s: rights %b", name, o.Rights)
			}
			o.Open.Close(t.Context())
		}
		nothingLeft(t, v)
	})
}
