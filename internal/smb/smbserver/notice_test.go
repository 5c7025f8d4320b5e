package smbserver

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// TestGrantComesFirst breaks a lease before the reply that grants it has been sent.
func TestGrantComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		hold := make(chan struct{})
		s.SetFaults(func(r Request) Fault {
			if r.Conn != 1 || r.Command == "ECHO" || r.Command == BreakNotification {
				return Fault{}
			}
			return Fault{Mutate: func(reply []byte) []byte {
				<-hold
				return reply
			}}
		})
		a.ask(smb2msg.CommandCreate, leasing("file", 1, "RWH"))
		synctest.Wait()
		b.ask(smb2msg.CommandCreate, opening("file"))
		b.pending()
		a.untold()
		hold <- struct{}{}
		if _, lease := a.granted(a.receive()[0]); lease.LeaseState != leaseAll || lease.LeaseFlags != 0 {
			t.Errorf("granted %+v", lease)
		}
		a.notified()
		// Neither does the next break come before the answer to an acknowledgment.
		s.Break("share", "file", 0)
		a.ask(smb2msg.CommandOplockBreak, &smb2msg.LeaseBreak{LeaseKey: [16]byte{1}, LeaseState: state("RH")})
		synctest.Wait()
		a.untold()
		hold <- struct{}{}
		if r := a.receive()[0]; r.MessageID == math.MaxUint64 || r.Command != smb2msg.CommandOplockBreak {
			t.Errorf("got %v for %d, want the answer to the acknowledgment", r.Command, r.MessageID)
		}
		if got := a.notified(); got.NewLeaseState != leaseRead {
			t.Errorf("then told %+v", got)
		}
	})
}

// TestNotificationOvertakes lets a notification come before the reply that grants
// the lease, if the test wants it so.
func TestNotificationOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		s.SetFaults(func(r Request) Fault {
			if r.Command == "CREATE" && r.N == 1 {
				return Fault{Hold: 1}
			}
			return Fault{}
		})
		a.ask(smb2msg.CommandCreate, leasing("file", 1, "RWH"))
		synctest.Wait()
		b.ask(smb2msg.CommandCreate, opening("file"))
		if got := a.notified(); got.NewEpoch != 12 {
			t.Errorf("told %+v", got)
		}
		if _, lease := a.granted(a.receive()[0]); lease.LeaseState != leaseAll || lease.Epoch != 11 {
			t.Errorf("granted %+v", lease)
		}
	})
}

// TestNotificationFaults does to notifications what can be done to replies.
func TestNotificationFaults(t *testing.T) {
	for name, f := range map[string]Fault{
		"none": {}, "drop": {Drop: true}, "delay": {Delay: time.Second}, "duplicate": {Duplicate: true},
		"mutate": {Mutate: func(b []byte) []byte { b[smb2msg.HeaderSize+2]++; return b }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{}, "dir/file")
				var seen Request
				s.SetFaults(func(r Request) Fault {
					if r.Command == BreakNotification {
						seen = r
						return f
					}
					if r.Command == "OPLOCK_BREAK" && r.Name != "dir/file" {
						t.Errorf("the acknowledgment is about %q", r.Name)
					}
					return Fault{}
				})
				a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
				a.lease(leasing(`dir\file`, 1, "RWH"), "RWH")
				from := time.Now()
				b.ask(smb2msg.CommandCreate, opening(`dir\file`))
				b.pending()
				if name == "drop" {
					a.untold()
					b.receive()
					if took := time.Since(from); took != defaultTimeout {
						t.Errorf("the wait took %v", took)
					}
				} else {
					got := a.notified()
					if took := time.Since(from); took != f.Delay {
						t.Errorf("it came after %v", took)
					}
					if name == "duplicate" && a.notified() != got {
						t.Error("the second one differs")
					}
					if want := uint16(12); name != "mutate" && got.NewEpoch != want || name == "mutate" && got.NewEpoch != want+1 {
						t.Errorf("told %+v", got)
					}
					a.keep(1, "")
				}
				a.untold()
				want := Request{Command: BreakNotification, N: 1, MessageID: math.MaxUint64, Conn: 1, Name: "dir/file", Last: true}
				if seen != want {
					t.Errorf("chosen by %+v, want %+v", seen, want)
				}
			})
		})
	}
}

// TestTwoConnections has a client share a lease between its connections.
func TestTwoConnections(t *testing.T) {
	for _, mode := range []string{"plain", "sealed"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{RequireSealing: mode == "sealed"}, "file")
				first, second, b := logOn(t, s), logOn(t, s), logOnAs(t, s, 2)
				id := second.lease(leasing("file", 1, "RWH"), "RWH")
				teller := first // what is not sealed comes by the oldest connection
				if mode == "sealed" {
					teller = second
				}
				if n := s.Break("share", "file", leaseRead|leaseWrite); n != 1 {
					t.Fatalf("%d breaks", n)
				}
				teller.notified()
				// It does not matter by which one the answer comes.
				if got := first.keep(1, "RW"); got != ntstatus.Success {
					t.Errorf("the acknowledgment: %v", got)
				}
				first.lease(leasing("file", 1, "RWH"), "RWH")
				if mode == "sealed" {
					second.close(id)
					second.lease(leasing("file", 1, ""), "RWH")
				}
				// What may have got lost with a connection is said once more.
				b.ask(smb2msg.CommandCreate, opening("file"))
				b.pending()
				synctest.Wait()
				first.nc.Close()
				if got := second.notified(); got.CurrentLeaseState != leaseAll || got.NewLeaseState != state("RH") {
					t.Errorf("told %+v", got)
				}
				if got := second.keep(1, "R"); got != ntstatus.Success {
					t.Errorf("the acknowledgment: %v", got)
				}
				b.receive()
				// The other one is the oldest by now.
				s.Break("share", "file", 0)
				second.notified()
			})
		})
	}
}

// TestDeafClient cuts off a client that does not take what it is told.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		s.SetFaults(func(r Request) Fault {
			if r.Command == BreakNotification {
				return Fault{Delay: time.Hour}
			}
			return Fault{}
		})
		id := b.create(opening("file"))
		for i := range maxNotices + 1 {
			a.lease(leasing("file", 1, "R"), "R")
			if got := b.write(id, 0, "x"); got != ntstatus.Success {
				t.Fatal(got)
			}
			if i == 0 {
				synctest.Wait() // the first one is being sent
			}
		}
		a.lease(leasing("file", 1, "R"), "R")
		b.write(id, 0, "x")
		a.ended()
		b.untold()
	})
}

// storming is a client that answers every break at once, whatever it is doing.
type storming struct {
	*client
	mu      sync.Mutex // over sending
	replies chan reply
}

func (c *storming) listen() {
	defer close(c.replies)
	for {
		frame, err := c.readFrame()
		if err != nil {
			return
		}
		r := reply{msg: frame}
		rd := byteio.NewReader(frame)
		if err := r.Decode(&rd); err != nil {
			c.t.Error(err)
			return
		}
		switch {
		case r.Command == smb2msg.CommandOplockBreak && r.MessageID != math.MaxUint64, r.Status == ntstatus.Pending:
		case r.Command != smb2msg.CommandOplockBreak:
			c.replies <- r
		case smb2msg.IsLeaseBreak(r.msg):
			var m smb2msg.LeaseBreakNotification
			if c.body(r, &m); m.Flags != 0 {
				c.post(smb2msg.CommandOplockBreak, &smb2msg.LeaseBreak{LeaseKey: m.LeaseKey, LeaseState: m.NewLeaseState})
			}
		default:
			var m smb2msg.OplockBreak
			c.body(r, &m) // an answer that is not wanted is refused
			c.post(smb2msg.CommandOplockBreak, &m)
		}
	}
}

func (c *storming) post(cmd smb2msg.Command, body appender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc.Write(c.frame(message{hdr: smb2msg.Header{Command: cmd, Credits: 8}, body: body}))
}

func (c *storming) call(cmd smb2msg.Command, body appender) reply {
	c.post(cmd, body)
	return <-c.replies
}

// storm does what breaks leases.
func (c *storming) storm(rnd *rand.Rand, rounds int) {
	rights := []string{"", "R", "RH", "RW", "RWH"}
	var ids []smb2msg.FileID
	for range rounds {
		name := []string{`dir\a`, `dir\b`, `dir\c`}[rnd.IntN(3)]
		var m *smb2msg.CreateRequest
		switch rnd.IntN(5) {
		case 0:
			m = overwriting(name)
		case 1:
			m = oplocking(name, []smb2msg.OplockLevel{smb2msg.OplockII, smb2msg.OplockExclusive, smb2msg.OplockBatch}[rnd.IntN(3)])
		default:
			m = leasing(name, name[4], rights[rnd.IntN(len(rights))])
		}
		if rnd.IntN(6) == 0 {
			m.ShareAccess = smb2msg.ShareRead
		}
		if rnd.IntN(8) == 0 {
			m.CreateOptions = smb2msg.OptionDeleteOnClose
		}
		if r := c.call(smb2msg.CommandCreate, m); r.Status == ntstatus.Success && r.Command == smb2msg.CommandCreate {
			var resp smb2msg.CreateResponse
			c.body(r, &resp)
			ids = append(ids, resp.FileID)
		}
		for len(ids) > rnd.IntN(4) {
			i := rnd.IntN(len(ids))
			switch rnd.IntN(4) {
			case 0:
				c.call(smb2msg.CommandWrite, &smb2msg.WriteRequest{FileID: ids[i]})
				continue
			case 1:
				c.call(smb2msg.CommandSetInfo, &smb2msg.SetInfoRequest{
					InfoType: smb2msg.InfoFile, FileInfoClass: fscc.ClassFileRename, FileID: ids[i],
					Buffer: (&fscc.FileRenameInformation{FileName: name, ReplaceIfExists: true}).Append(nil),
				})
			}
			c.call(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: ids[i]})
			ids = append(ids[:i], ids[i+1:]...)
		}
	}
	for _, id := range ids {
		c.call(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: id})
	}
}

// check looks for rights that cannot be at the same time.
func (s *Server) check(t *testing.T) {
	sh := s.shares[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	for _, in := range sh.inodes {
		for _, l := range in.leases {
			if l.state != legal(l.state) || len(l.opens) == 0 {
				t.Errorf("a lease of %d opens is %#x", len(l.opens), l.state)
			}
			if l.state&leaseWrite == 0 {
				continue
			}
			for _, other := range in.leases {
				if other != l && other.state != 0 {
					t.Errorf("there is %#x next to %#x", other.state, l.state)
				}
			}
			for _, o := range in.opens {
				if o.lease != l && o.access&^accessStat != 0 {
					t.Errorf("open for %#x next to %#x", o.access, l.state)
				}
			}
		}
	}
}

// TestStorm has clients break each other's leases and oplocks. None of them is ever
// left waiting, nor do two have what only one can.
func TestStorm(t *testing.T) {
	s := start(t, Config{}, "dir/a", "dir/b", "dir/c")
	var clients []*storming
	var working, listening sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		c := &storming{client: logOnAs(t, s, byte(i%3)+1), replies: make(chan reply)}
		clients = append(clients, c)
		listening.Go(c.listen)
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		working.Go(func() { c.storm(rnd, 150) })
	}
	listening.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				s.check(t)
			}
		}
	})
	working.Wait()
	close(done)
	for _, c := range clients {
		c.nc.Close()
	}
	listening.Wait()
	s.Close()
	if st := s.Stats(); st.BreakTimeouts != 0 || st.Breaks == 0 || len(s.leases.byKey) != 0 {
		t.Errorf("%d breaks, of which %d took too long; %d leases are left", st.Breaks, st.BreakTimeouts, len(s.leases.byKey))
	}
}
