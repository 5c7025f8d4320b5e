package smbserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// conflict is what another client does to a file that is leased, perhaps with an
// open of its own.
type conflict struct {
	cmd    smb2msg.Command
	opened bool
	body   func(b *client, id smb2msg.FileID) appender
}

func creating(change func(m *smb2msg.CreateRequest)) conflict {
	return conflict{smb2msg.CommandCreate, false, func(*client, smb2msg.FileID) appender {
		m := opening("dir\\file")
		change(m)
		return m
	}}
}

func setting(class fscc.Class, m appender) conflict {
	return conflict{smb2msg.CommandSetInfo, true, func(_ *client, id smb2msg.FileID) appender {
		return &smb2msg.SetInfoRequest{InfoType: smb2msg.InfoFile, FileInfoClass: class, FileID: id, Buffer: m.Append(nil)}
	}}
}

var conflicts = map[string]conflict{
	"open": creating(func(*smb2msg.CreateRequest) {}),
	"stat": creating(func(m *smb2msg.CreateRequest) { m.DesiredAccess = smb2msg.AccessReadAttributes }),
	"open for rights alone": creating(func(m *smb2msg.CreateRequest) {
		m.DesiredAccess = smb2msg.AccessReadControl | smb2msg.AccessSynchronize
	}),
	"overwrite": creating(func(m *smb2msg.CreateRequest) { m.CreateDisposition = smb2msg.Overwrite }),
	"supersede with stat": creating(func(m *smb2msg.CreateRequest) {
		m.DesiredAccess, m.CreateDisposition = smb2msg.AccessReadAttributes, smb2msg.Supersede
	}),
	"open alone":      creating(func(m *smb2msg.CreateRequest) { m.ShareAccess = 0 }),
	"delete on close": creating(func(m *smb2msg.CreateRequest) { m.CreateOptions = smb2msg.OptionDeleteOnClose }),
	"create":          creating(func(m *smb2msg.CreateRequest) { m.CreateDisposition = smb2msg.Create }),
	"read": {smb2msg.CommandRead, true, func(_ *client, id smb2msg.FileID) appender {
		return &smb2msg.ReadRequest{FileID: id, Length: 1}
	}},
	"write": {smb2msg.CommandWrite, true, func(_ *client, id smb2msg.FileID) appender {
		return &smb2msg.WriteRequest{FileID: id}
	}},
	"lock": {smb2msg.CommandLock, true, func(_ *client, id smb2msg.FileID) appender {
		return &smb2msg.LockRequest{FileID: id, Locks: []smb2msg.LockElement{{Length: 1, Flags: smb2msg.LockShared}}}
	}},
	"zero": {smb2msg.CommandIoctl, true, func(_ *client, id smb2msg.FileID) appender {
		return &smb2msg.IoctlRequest{FileID: id, Flags: smb2msg.IoctlIsFsctl, CtlCode: smb2msg.FsctlSetZeroData, Input: make([]byte, 16)}
	}},
	"copy": {smb2msg.CommandIoctl, true, func(b *client, id smb2msg.FileID) appender {
		m := smb2msg.CopychunkRequest{Chunks: []smb2msg.Copychunk{{Length: 1}}}
		r := b.do(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{FileID: id, Flags: smb2msg.IoctlIsFsctl, CtlCode: smb2msg.FsctlSrvRequestResumeKey, MaxOutputResponse: 64})
		var key smb2msg.IoctlResponse
		b.body(r, &key)
		copy(m.SourceKey[:], key.Output)
		return &smb2msg.IoctlRequest{FileID: id, Flags: smb2msg.IoctlIsFsctl, CtlCode: smb2msg.FsctlSrvCopychunk, Input: m.Append(nil), MaxOutputResponse: 12}
	}},
	"resize":  setting(fscc.ClassFileEndOfFile, &fscc.FileEndOfFileInformation{EndOfFile: 3}),
	"reserve": setting(fscc.ClassFileAllocation, &fscc.FileAllocationInformation{AllocationSize: 1 << 20}),
	"touch":   setting(fscc.ClassFileBasic, &fscc.FileBasicInformation{FileAttributes: fscc.AttributeNormal}),
	"rename":  setting(fscc.ClassFileRename, &fscc.FileRenameInformation{FileName: "new"}),
	"link":    setting(fscc.ClassFileLink, &fscc.FileLinkInformation{FileName: "new"}),
	"remove":  setting(fscc.ClassFileDisposition, &fscc.FileDispositionInformation{DeletePending: true}),
	"stay":    setting(fscc.ClassFileDisposition, &fscc.FileDispositionInformation{}),
	"rename the folder": {smb2msg.CommandSetInfo, false, func(b *client, _ smb2msg.FileID) appender {
		dir := opening("dir")
		return &smb2msg.SetInfoRequest{
			InfoType: smb2msg.InfoFile, FileInfoClass: fscc.ClassFileRename, FileID: b.create(dir),
			Buffer: (&fscc.FileRenameInformation{FileName: "folder"}).Append(nil),
		}
	}},
	"rename something over it": {smb2msg.CommandSetInfo, false, func(b *client, _ smb2msg.FileID) appender {
		return &smb2msg.SetInfoRequest{
			InfoType: smb2msg.InfoFile, FileInfoClass: fscc.ClassFileRename, FileID: b.create(opening("other")),
			Buffer: (&fscc.FileRenameInformation{FileName: `dir\file`, ReplaceIfExists: true}).Append(nil),
		}
	}},
}

// TestBreaks has one client break the lease of another in every way.
func TestBreaks(t *testing.T) {
	const none = "-"
	for _, c := range []struct {
		what, held, left string // none: it is not broken
		waits            bool
		status           ntstatus.Status
	}{
		{"open", "RWH", "RH", true, 0},
		{"open", "RW", "R", true, 0},
		{"open", "RH", none, false, 0},
		{"open", "R", none, false, 0},
		{"stat", "RWH", none, false, 0},
		{"open for rights alone", "RWH", none, false, 0},
		{"overwrite", "RWH", "", true, 0},
		{"overwrite", "RW", "", true, 0},
		{"overwrite", "RH", "", false, 0},
		{"overwrite", "R", "", false, 0},
		{"supersede with stat", "RWH", "", true, 0},
		{"open alone", "RWH", "RW", true, ntstatus.SharingViolation},
		{"open alone", "RH", "R", true, ntstatus.SharingViolation},
		{"open alone", "RW", none, false, ntstatus.SharingViolation},
		{"delete on close", "RWH", "R", true, 0},
		{"delete on close", "RH", "R", true, 0},
		{"delete on close", "R", none, false, 0},
		{"create", "RWH", none, false, ntstatus.ObjectNameCollision},
		{"rename the folder", "RWH", "RW", true, ntstatus.AccessDenied},
		{"rename the folder", "R", none, false, ntstatus.AccessDenied},
		{"rename something over it", "RWH", "RW", true, ntstatus.AccessDenied},
		{"rename something over it", "R", none, false, ntstatus.AccessDenied},
		{"read", "RH", none, false, 0},
		{"write", "RH", "", false, 0},
		{"write", "R", "", false, 0},
		{"lock", "RH", "", false, 0},
		{"lock", "R", "", false, 0},
		{"zero", "RH", "", false, 0},
		{"copy", "RH", "", false, 0},
		{"resize", "RH", "", false, 0},
		{"reserve", "RH", "", false, 0},
		{"touch", "RH", none, false, 0},
		{"rename", "RH", "R", true, 0},
		{"rename", "R", none, false, 0},
		{"link", "RH", "R", true, 0},
		{"remove", "RH", "R", true, 0},
		{"stay", "RH", none, false, 0},
	} {
		t.Run(c.what+"/"+c.held, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{}, "dir/file", "other")
				a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
				how := conflicts[c.what]
				var id smb2msg.FileID
				if how.opened {
					id = b.create(opening("dir\\file"))
				}
				a.lease(leasing("dir\\file", 1, c.held), c.held)
				b.ask(how.cmd, how.body(b, id))
				if c.waits {
					b.pending()
				}
				if c.left == none {
					a.untold()
				} else {
					got := a.notified()
					want := smb2msg.LeaseBreakNotification{
						NewEpoch: 12, LeaseKey: [16]byte{1}, CurrentLeaseState: state(c.held), NewLeaseState: state(c.left),
					}
					if c.held != "R" {
						want.Flags = smb2msg.LeaseBreakAckRequired
					}
					if got != want {
						t.Errorf("told %+v, want %+v", got, want)
					}
				}
				if !c.waits {
					if got := b.receive()[0].Status; got != c.status {
						t.Errorf("got %v, want %v", got, c.status)
					}
				}
				switch {
				case c.left == none:
				case c.held == "R":
					if got := a.keep(1, ""); got != ntstatus.Unsuccessful {
						t.Errorf("acknowledging what needs no answer: %v", got)
					}
				default:
					if got := a.keep(1, c.left); got != ntstatus.Success {
						t.Errorf("the acknowledgment: %v", got)
					}
				}
				if c.waits {
					if got := b.receive()[0].Status; got != c.status {
						t.Errorf("then got %v, want %v", got, c.status)
					}
				}
				a.untold()
				b.untold()
			})
		})
	}
}

// TestHandleGivenUp closes a file instead of just acknowledging that it is not kept
// open for the sake of a cache. Then nothing is in the way.
func TestHandleGivenUp(t *testing.T) {
	for _, what := range []string{"open alone", "rename the folder", "rename something over it", "delete on close"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{}, "dir/file", "other")
				a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
				id := a.lease(leasing(`dir\file`, 1, "RWH"), "RWH")
				how := conflicts[what]
				b.ask(how.cmd, how.body(b, smb2msg.FileID{}))
				b.pending()
				a.notified()
				a.close(id)
				if got := b.receive()[0].Status; got != ntstatus.Success {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// TestOwnLease does all of that by opens of the lease that it would break.
func TestOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, how := range conflicts {
			s := start(t, Config{}, "dir/file", "other")
			a := logOn(t, s)
			id := a.lease(leasing("dir\\file", 1, "RWH"), "RWH")
			if what == "rename the folder" || what == "rename something over it" {
				continue // is about other files
			}
			body := how.body(a, id)
			if m, ok := body.(*smb2msg.CreateRequest); ok {
				wish := leasing("dir\\file", 1, "")
				m.OplockLevel, m.Contexts = wish.OplockLevel, wish.Contexts
			}
			r := a.do(how.cmd, body)
			if r.Command != how.cmd || r.Status == ntstatus.Success && r.MessageID != a.next-1 {
				t.Errorf("%s: got %v, %v", what, r.Command, r.Status)
			}
			a.untold()
			if n := s.Stats().Breaks; n != 0 {
				t.Errorf("%s: %d breaks", what, n)
			}
		}
	})
}

// waiting has b wait for a's RWH lease of a file.
func waiting(t *testing.T, cfg Config, test func(s *Server, a, b *client, id smb2msg.FileID)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, cfg, "file", "other")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		id := a.lease(leasing("file", 1, "RWH"), "RWH")
		b.ask(smb2msg.CommandCreate, opening("file"))
		a.notified()
		test(s, a, b, id)
	})
}

// TestBreakTimeout lets a client answer too late.
func TestBreakTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 35 * time.Second, time.Minute: time.Minute} {
		waiting(t, Config{BreakTimeout: timeout}, func(s *Server, a, b *client, id smb2msg.FileID) {
			from := time.Now()
			b.pending()
			if got := b.receive()[0].Status; got != ntstatus.Success || time.Since(from) != want {
				t.Errorf("got %v after %v, want success after %v", got, time.Since(from), want)
			}
			if got := a.keep(1, "RH"); got != ntstatus.Unsuccessful {
				t.Errorf("acknowledging too late: %v", got)
			}
			a.lease(leasing("file", 1, ""), "")
			if got := a.write(id, 0, "x"); got != ntstatus.Success {
				t.Errorf("the handle is no good any longer: %v", got)
			}
			if st := s.Stats(); st.BreakTimeouts != 1 || st.BreakAcks != 0 {
				t.Errorf("counted %+v", st)
			}
		})
	}
}

// TestBreakEnds lets a lease end in other ways than by an answer.
func TestBreakEnds(t *testing.T) {
	for name, end := range map[string]func(s *Server, a *client, id smb2msg.FileID){
		"close":  func(_ *Server, a *client, id smb2msg.FileID) { a.close(id) },
		"logoff": func(_ *Server, a *client, _ smb2msg.FileID) { a.do(smb2msg.CommandLogoff, &smb2msg.LogoffRequest{}) },
		"tree disconnect": func(_ *Server, a *client, _ smb2msg.FileID) {
			a.do(smb2msg.CommandTreeDisconnect, &smb2msg.TreeDisconnectRequest{})
		},
		"disconnect": func(_ *Server, a *client, _ smb2msg.FileID) { a.nc.Close() },
		"new session": func(s *Server, a *client, _ smb2msg.FileID) {
			c := connect(a.t, s)
			c.negotiate()
			c.setUpAfter("user", "pass", a.session)
		},
	} {
		t.Run(name, func(t *testing.T) {
			waiting(t, Config{}, func(s *Server, a, b *client, id smb2msg.FileID) {
				from := time.Now()
				b.pending()
				end(s, a, id)
				if got := b.receive()[0].Status; got != ntstatus.Success || time.Since(from) != 0 {
					t.Errorf("got %v after %v, want success at once", got, time.Since(from))
				}
				synctest.Wait()
				s.leases.mu.Lock()
				defer s.leases.mu.Unlock()
				if n := len(s.leases.byKey); n != 0 {
					t.Errorf("%d leases are left", n)
				}
			})
		})
	}
}

// TestWaitEnds ends the wait for a lease in other ways than by its break.
func TestWaitEnds(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
			r := b.pending()
			b.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandCancel, Flags: smb2msg.FlagAsync, AsyncID: r.AsyncID}, body: &smb2msg.CancelRequest{}})
			got := b.receive()[0]
			if got.Status != ntstatus.Cancelled || got.MessageID != r.MessageID || got.AsyncID != r.AsyncID || got.Credits != 0 {
				t.Errorf("got %+v", got.Header)
			}
			// The break goes on without it.
			if got := a.keep(1, "RH"); got != ntstatus.Success {
				t.Errorf("the acknowledgment: %v", got)
			}
			b.untold()
		})
	})
	t.Run("logged off", func(t *testing.T) {
		waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
			r := b.pending()
			b.ask(smb2msg.CommandLogoff, &smb2msg.LogoffRequest{})
			if got := b.among(r.MessageID).Status; got != ntstatus.UserSessionDeleted {
				t.Errorf("got %v, want USER_SESSION_DELETED", got)
			}
		})
	})
	t.Run("disconnected", func(t *testing.T) {
		waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
			b.nc.Close()
			synctest.Wait()
			if got := a.keep(1, "RH"); got != ntstatus.Success {
				t.Errorf("the acknowledgment: %v", got)
			}
			a.lease(leasing("file", 1, "RWH"), "RWH") // nobody else has it open
		})
	})
	t.Run("server closed", func(t *testing.T) {
		waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
			from := time.Now()
			s.Close()
			if took := time.Since(from); took != 0 {
				t.Errorf("closing took %v", took)
			}
		})
	})
}

// TestWaitersHoldUpNobody has more requests wait than there are workers, and more
// than may wait.
func TestWaitersHoldUpNobody(t *testing.T) {
	waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
		b.pending()
		for range maxWaiting - 1 {
			b.ask(smb2msg.CommandCreate, opening("file"))
			b.pending()
		}
		if got := b.do(smb2msg.CommandCreate, opening("file")).Status; got != ntstatus.InsufficientResources {
			t.Errorf("one too many waits: %v", got)
		}
		id := b.create(opening("other"))
		if data, status := b.read(id, 0, 8); string(data) != "contents" {
			t.Errorf("meanwhile READ = %q, %v", data, status)
		}
		a.keep(1, "RH")
		for range maxWaiting {
			if got := b.receive()[0].Status; got != ntstatus.Success {
				t.Fatal(got)
			}
		}
		if n := s.Stats().Breaks; n != 1 {
			t.Errorf("%d breaks, want one for all", n)
		}
	})
}

// TestFurtherBreaks breaks a lease that is breaking: in steps, with one epoch.
func TestFurtherBreaks(t *testing.T) {
	waiting(t, Config{}, func(s *Server, a, b *client, _ smb2msg.FileID) {
		c := logOnAs(a.t, s, 3)
		b.pending()
		c.ask(smb2msg.CommandCreate, overwriting("file"))
		c.pending()
		a.untold()
		for _, step := range []struct{ now, keep, next string }{{"RWH", "RH", "R"}, {"RH", "R", ""}} {
			if got := a.keep(1, "RWH"); got != ntstatus.RequestNotAccepted {
				t.Errorf("keeping more than that: %v", got)
			}
			if got := a.keep(1, step.keep); got != ntstatus.Success {
				t.Errorf("keeping %s: %v", step.keep, got)
			}
			if got := a.notified(); got.CurrentLeaseState != state(step.keep) || got.NewLeaseState != state(step.next) || got.NewEpoch != 12 {
				t.Errorf("told %+v, want %s to %q", got, step.keep, step.next)
			}
			if step.next != "" {
				b.untold() // nor answered
				c.untold()
			}
		}
		if got := [2]ntstatus.Status{b.receive()[0].Status, c.receive()[0].Status}; got != [2]ntstatus.Status{} {
			t.Errorf("then got %v", got)
		}
		a.untold()
	})
}

// TestCompoundWaits has a request in the middle of a compound wait.
func TestCompoundWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file", "other")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		a.lease(leasing("file", 1, "RWH"), "RWH")
		b.sign = true
		b.send(
			message{hdr: smb2msg.Header{Command: smb2msg.CommandEcho, Credits: 2}, body: &smb2msg.EchoRequest{}},
			message{hdr: smb2msg.Header{Command: smb2msg.CommandCreate, Credits: 2}, body: opening("file")},
			chained(smb2msg.CommandRead, &smb2msg.ReadRequest{FileID: smb2msg.RelatedFileID, Length: 8}),
			chained(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: smb2msg.RelatedFileID}),
		)
		interim := b.pending()
		a.notified()
		a.keep(1, "RH")
		replies := b.receive()
		wantStatuses(t, replies, 0, 0, 0, 0)
		if h := replies[1].Header; h.AsyncID != interim.AsyncID || h.MessageID != interim.MessageID || h.Credits != 0 || h.Flags&smb2msg.FlagAsync == 0 {
			t.Errorf("the reply of what has waited has the header %+v", h)
		}
		var data smb2msg.ReadResponse
		if b.body(replies[2], &data); string(data.Data) != "contents" {
			t.Errorf("READ = %q", data.Data)
		}

		// What waits fails alone, and with it what needs it.
		a.lease(leasing("file", 1, "RWH"), "RWH")
		b.send(
			message{hdr: smb2msg.Header{Command: smb2msg.CommandCreate, Credits: 2}, body: opening("file")},
			chained(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: smb2msg.RelatedFileID}),
			message{hdr: smb2msg.Header{Command: smb2msg.CommandEcho}, body: &smb2msg.EchoRequest{}},
		)
		interim = b.pending()
		b.sign = false
		b.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandCancel, Flags: smb2msg.FlagAsync, AsyncID: interim.AsyncID}, body: &smb2msg.CancelRequest{}})
		wantStatuses(t, b.receive(), ntstatus.Cancelled, ntstatus.Cancelled, 0)

		// A compound that is in its own way hears of that before it is answered.
		first := message{hdr: smb2msg.Header{Command: smb2msg.CommandCreate, Credits: 2}, body: leasing("other", 9, "RWH")}
		second := message{hdr: smb2msg.Header{Command: smb2msg.CommandCreate, Credits: 2}, body: opening("other")}
		b.send(first, second)
		b.pending()
		if got := b.notified(); got.LeaseKey != [16]byte{9} {
			t.Errorf("told %+v", got)
		}
		b.ask(smb2msg.CommandOplockBreak, &smb2msg.LeaseBreak{LeaseKey: [16]byte{9}, LeaseState: state("RH")})
		for range 2 {
			if r := b.receive(); r[0].Command == smb2msg.CommandCreate {
				wantStatuses(t, r, 0, 0)
			}
		}
	})
}
