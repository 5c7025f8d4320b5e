package smbserver

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// state is what letters stand for.
func state(letters string) smb2msg.LeaseState {
	s, err := ParseLease(letters)
	if err != nil {
		panic(err)
	}
	return s
}

// leasing is opening with a V2 lease asked for.
func leasing(name string, key byte, rights string) *smb2msg.CreateRequest {
	m := opening(name)
	m.CreateDisposition = smb2msg.OpenIf
	m.OplockLevel = smb2msg.OplockLease
	lease := smb2msg.Lease{LeaseKey: [16]byte{key}, LeaseState: state(rights), V2: true, Epoch: 10}
	m.Contexts = []smb2msg.CreateContext{smb2msg.NewCreateContext(smb2msg.ContextRqLs, &lease)}
	return m
}

// v1 makes the lease that m asks for one of the older form.
func v1(m *smb2msg.CreateRequest) *smb2msg.CreateRequest {
	rd := byteio.NewReader(m.Contexts[0].Data)
	var lease smb2msg.Lease
	if err := lease.Decode(&rd); err != nil {
		panic(err)
	}
	lease.V2, lease.Epoch = false, 0
	m.Contexts[0] = smb2msg.NewCreateContext(smb2msg.ContextRqLs, &lease)
	return m
}

func overwriting(name string) *smb2msg.CreateRequest {
	m := opening(name)
	m.CreateDisposition = smb2msg.OverwriteIf
	return m
}

// oplocking is opening with an oplock asked for.
func oplocking(name string, level smb2msg.OplockLevel) *smb2msg.CreateRequest {
	m := opening(name)
	m.OplockLevel = level
	return m
}

// granted is what a CREATE has got; of no lease, the key is zero.
func (c *client) granted(r reply) (smb2msg.CreateResponse, smb2msg.Lease) {
	c.t.Helper()
	if r.Command != smb2msg.CommandCreate || r.Status != ntstatus.Success {
		c.t.Fatalf("got %v, %v; want a successful CREATE", r.Command, r.Status)
	}
	var resp smb2msg.CreateResponse
	c.body(r, &resp)
	var lease smb2msg.Lease
	if rd, ok := smb2msg.FindContext(resp.Contexts, smb2msg.ContextRqLs); ok {
		if err := lease.Decode(&rd); err != nil {
			c.t.Fatal(err)
		}
		if resp.OplockLevel != smb2msg.OplockLease {
			c.t.Errorf("a lease comes with oplock level %#x", resp.OplockLevel)
		}
	}
	return resp, lease
}

// lease opens a file with a lease, and checks what it gets.
func (c *client) lease(m *smb2msg.CreateRequest, want string) smb2msg.FileID {
	c.t.Helper()
	resp, lease := c.granted(c.do(smb2msg.CommandCreate, m))
	if lease.LeaseState != state(want) || lease.LeaseKey == [16]byte{} {
		c.t.Errorf("got %+v of %q, want %s", lease, m.Name, want)
	}
	return resp.FileID
}

// notified reads the notification of a lease's break.
func (c *client) notified() smb2msg.LeaseBreakNotification {
	c.t.Helper()
	r := c.unasked()
	if !smb2msg.IsLeaseBreak(r.msg) {
		c.t.Fatal("told of an oplock, want a lease")
	}
	var m smb2msg.LeaseBreakNotification
	c.body(r, &m)
	return m
}

func (c *client) unasked() reply {
	c.t.Helper()
	r := c.receive()[0]
	if r.Command != smb2msg.CommandOplockBreak || r.MessageID != math.MaxUint64 {
		c.t.Fatalf("got %v (%v) for message %d, want a notification", r.Command, r.Status, r.MessageID)
	}
	if r.Flags != smb2msg.FlagServerToRedir || r.SessionID != 0 || r.TreeID != 0 || r.Status != 0 || r.Credits != 0 {
		c.t.Errorf("the notification's header is %+v", r.Header)
	}
	return r
}

// among reads messages up to the one with this MessageId.
func (c *client) among(id uint64) reply {
	for {
		if r := c.receive()[0]; r.MessageID == id {
			return r
		}
	}
}

// untold fails the test if there is a notification.
func (c *client) untold() {
	c.t.Helper()
	synctest.Wait()
	if r := c.do(smb2msg.CommandEcho, &smb2msg.EchoRequest{}); r.Command != smb2msg.CommandEcho {
		c.t.Fatalf("got %v of %d bytes, want no notification", r.Command, len(r.msg))
	}
}

// keep answers a break.
func (c *client) keep(key byte, rights string) ntstatus.Status {
	c.t.Helper()
	r := c.do(smb2msg.CommandOplockBreak, &smb2msg.LeaseBreak{LeaseKey: [16]byte{key}, LeaseState: state(rights)})
	if r.Status == ntstatus.Success {
		var m smb2msg.LeaseBreak
		c.body(r, &m)
		if m.LeaseKey != [16]byte{key} || m.LeaseState != state(rights) {
			c.t.Errorf("acknowledging %s is answered by %+v", rights, m)
		}
	}
	return r.Status
}

// ask sends a request whose reply may take its time.
func (c *client) ask(cmd smb2msg.Command, body appender) {
	c.t.Helper()
	c.send(message{hdr: smb2msg.Header{Command: cmd, Credits: 4}, body: body})
}

// pending reads an interim reply, which every request that waits gets at once.
func (c *client) pending() reply {
	c.t.Helper()
	r := c.receive()[0]
	if r.Status != ntstatus.Pending || r.AsyncID == 0 || r.Credits == 0 {
		c.t.Fatalf("got %v, %v with %d credits; want an interim reply", r.Command, r.Status, r.Credits)
	}
	return r
}

// TestLeases has one client break the lease of another, under every dialect and
// protection.
func TestLeases(t *testing.T) {
	for _, dialect := range []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311} {
		for _, mode := range []string{"plain", "signed", "sealed", "sealed by choice", "sealed, but notifications"} {
			if mode[:2] == "se" && dialect == smb2msg.SMB210 {
				continue
			}
			t.Run(fmt.Sprint(dialect, "/", mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { leaseUnder(t, dialect, mode) })
			})
		}
	}
}

func leaseUnder(t *testing.T, dialect smb2msg.Dialect, mode string) {
	s := start(t, Config{
		RequireSealing: mode == "sealed" || mode == "sealed, but notifications",
		PlainNotices:   mode == "sealed, but notifications",
	}, "file")
	a, b := logOnAs(t, s, 1, dialect), logOnAs(t, s, 2, dialect)
	for _, c := range []*client{a, b} {
		c.sign, c.seal = mode == "signed", c.seal || mode == "sealed by choice"
	}
	form := func(m *smb2msg.CreateRequest) *smb2msg.CreateRequest {
		if dialect == smb2msg.SMB210 {
			return v1(m)
		}
		return m
	}
	first := form(leasing("file", 1, "RWH"))
	_, lease := a.granted(a.do(smb2msg.CommandCreate, first))
	epoch := lease.Epoch
	if want := dialect != smb2msg.SMB210; lease.LeaseState != leaseAll || lease.V2 != want || (epoch == 11) != want {
		t.Errorf("granted %+v", lease)
	}
	b.ask(smb2msg.CommandCreate, form(leasing("file", 1, "RWH"))) // by chance the same key
	b.pending()
	a.seal = a.seal && mode != "sealed, but notifications"
	got := a.notified()
	want := smb2msg.LeaseBreakNotification{
		Flags: smb2msg.LeaseBreakAckRequired, LeaseKey: [16]byte{1},
		CurrentLeaseState: leaseAll, NewLeaseState: leaseRead | leaseHandle,
	}
	if dialect != smb2msg.SMB210 {
		want.NewEpoch = epoch + 1
	}
	if got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
	a.seal = a.seal || mode == "sealed, but notifications"
	// The owner still may do what it likes, and is told that it has to hurry.
	if _, lease := a.granted(a.do(smb2msg.CommandCreate, first)); lease.LeaseState != leaseAll || lease.LeaseFlags != smb2msg.LeaseFlagBreakInProgress {
		t.Errorf("while it breaks, the lease is %+v", lease)
	}
	if got := a.keep(1, "RH"); got != ntstatus.Success {
		t.Errorf("the acknowledgment: %v", got)
	}
	if _, lease := b.granted(b.receive()[0]); lease.LeaseState != leaseRead|leaseHandle {
		t.Errorf("then granted %+v, want RH", lease)
	}
	a.untold()
	st := s.Stats()
	if st.Leases != 2 || st.Oplocks != 0 || st.Breaks != 1 || st.BreakAcks != 1 || st.BreakTimeouts != 0 {
		t.Errorf("counted %+v", st)
	}
}

// TestOplocks has one client break the oplock of another, under every dialect.
func TestOplocks(t *testing.T) {
	for _, dialect := range []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311} {
		for _, level := range []smb2msg.OplockLevel{smb2msg.OplockII, smb2msg.OplockExclusive, smb2msg.OplockBatch} {
			t.Run(fmt.Sprintf("%v/%#x", dialect, level), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := start(t, Config{}, "file")
					a, b := logOnAs(t, s, 1, dialect), logOnAs(t, s, 2, dialect)
					resp, _ := a.granted(a.do(smb2msg.CommandCreate, oplocking("file", level)))
					if resp.OplockLevel != level {
						t.Fatalf("granted %#x", resp.OplockLevel)
					}
					b.ask(smb2msg.CommandCreate, oplocking("file", smb2msg.OplockBatch))
					if level > smb2msg.OplockII {
						b.pending()
						m := smb2msg.OplockBreak{OplockLevel: smb2msg.OplockII, FileID: resp.FileID}
						var got smb2msg.OplockBreak
						if a.body(a.unasked(), &got); got != m {
							t.Errorf("told %+v, want %+v", got, m)
						}
						if a.body(a.do(smb2msg.CommandOplockBreak, &m), &got); got != m {
							t.Errorf("the acknowledgment is answered by %+v", got)
						}
					}
					theirs, _ := b.granted(b.receive()[0])
					if theirs.OplockLevel != smb2msg.OplockII {
						t.Errorf("then granted %#x, want level II", theirs.OplockLevel)
					}
					// Of level II, not even the own one outlives a write.
					b.ask(smb2msg.CommandWrite, &smb2msg.WriteRequest{FileID: theirs.FileID})
					for _, c := range []struct {
						*client
						id smb2msg.FileID
					}{{a, resp.FileID}, {b, theirs.FileID}} {
						var got smb2msg.OplockBreak
						c.body(c.among(math.MaxUint64), &got)
						if want := (smb2msg.OplockBreak{FileID: c.id}); got != want {
							t.Errorf("told %+v, want %+v", got, want)
						}
					}
					if st := s.Stats(); st.Oplocks != 2 || st.Leases != 0 || st.Breaks < 2 || st.BreakAcks != st.Breaks-2 {
						t.Errorf("counted %+v", st)
					}
				})
			})
		}
	}
}

// TestOplockBreaks breaks oplocks where they are other than leases.
func TestOplockBreaks(t *testing.T) {
	const kept = 0xEE
	for _, c := range []struct {
		what   string
		held   smb2msg.OplockLevel
		left   smb2msg.OplockLevel
		status ntstatus.Status
	}{
		{"stat", smb2msg.OplockBatch, kept, 0},
		{"open for rights alone", smb2msg.OplockExclusive, smb2msg.OplockII, 0},
		{"open for rights alone", smb2msg.OplockBatch, smb2msg.OplockII, 0},
		{"overwrite", smb2msg.OplockExclusive, smb2msg.OplockNone, 0},
		{"overwrite", smb2msg.OplockBatch, smb2msg.OplockNone, 0},
		{"overwrite", smb2msg.OplockII, smb2msg.OplockNone, 0},
		{"open alone", smb2msg.OplockBatch, smb2msg.OplockII, ntstatus.SharingViolation},
		{"open alone", smb2msg.OplockExclusive, kept, ntstatus.SharingViolation},
		{"delete on close", smb2msg.OplockBatch, smb2msg.OplockII, 0},
	} {
		t.Run(fmt.Sprintf("%s/%#x", c.what, c.held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{}, "dir/file")
				a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
				id := a.create(oplocking(`dir\file`, c.held))
				how := conflicts[c.what]
				b.ask(how.cmd, how.body(b, smb2msg.FileID{}))
				waits := c.left != kept && c.held > smb2msg.OplockII
				if waits {
					b.pending()
				}
				if c.left == kept {
					a.untold()
				} else {
					var got smb2msg.OplockBreak
					if a.body(a.unasked(), &got); got.OplockLevel != c.left || got.FileID != id {
						t.Errorf("told %+v, want level %#x", got, c.left)
					}
				}
				if waits {
					a.do(smb2msg.CommandOplockBreak, &smb2msg.OplockBreak{FileID: id, OplockLevel: c.left})
				}
				if got := b.receive()[0].Status; got != c.status {
					t.Errorf("got %v, want %v", got, c.status)
				}
				a.untold()
			})
		})
	}
}
