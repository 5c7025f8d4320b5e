package smbserver

import (
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// TestRoom asks for leases and oplocks of a file that others have open or cache.
func TestRoom(t *testing.T) {
	oplocks := map[string]smb2msg.OplockLevel{"II": smb2msg.OplockII, "exclusive": smb2msg.OplockExclusive, "batch": smb2msg.OplockBatch}
	for _, c := range []struct{ others, asked, want string }{
		{"", "RWH", "RWH"},
		{"", "RW", "RW"},
		{"", "RH", "RH"},
		{"", "R", "R"},
		{"", "", ""},
		{"stat", "RWH", "RWH"},
		{"open", "RWH", "RH"},
		{"open", "RW", "R"},
		{"open", "RH", "RH"},
		{"rights", "RWH", "RH"},
		{"R", "RWH", "RH"},
		{"RH", "RWH", "RH"},
		{"RH", "RW", "R"},
		{"stat R", "RWH", "RH"},     // nobody else may cache next to W
		{"stat RWH, stat", "R", ""}, // even if that has not been broken
		{"II", "RWH", "R"},
		{"stat II", "RWH", "R"},
		{"stat batch, stat", "RWH", ""},
		{"lock", "RH", ""},
		{"stat", "batch", "batch"},
		{"stat", "exclusive", "exclusive"},
		{"", "II", "II"},
		{"open", "batch", "II"},
		{"open", "exclusive", "II"},
		{"R", "batch", "II"},
		{"RH", "batch", "none"},
		{"RH", "II", "none"},
		{"II", "batch", "II"},
	} {
		t.Run(c.others+"/"+c.asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, Config{}, "file")
				a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
				theirs := opening("file")
				var mine *smb2msg.CreateRequest
				if level, ok := oplocks[c.asked]; ok {
					mine = oplocking("file", level)
				} else {
					mine = leasing("file", 1, c.asked)
				}
				switch c.others {
				case "":
				case "open":
					a.create(theirs)
				case "stat":
					theirs.DesiredAccess = smb2msg.AccessReadAttributes | smb2msg.AccessWriteAttributes | smb2msg.AccessSynchronize
					a.create(theirs)
				case "rights":
					theirs.DesiredAccess = smb2msg.AccessReadControl
					a.create(theirs)
				case "lock":
					id := a.create(theirs)
					a.do(smb2msg.CommandLock, &smb2msg.LockRequest{FileID: id, Locks: []smb2msg.LockElement{{Length: 1, Flags: smb2msg.LockShared}}})
				case "II":
					a.create(oplocking("file", smb2msg.OplockII))
				case "stat II":
					theirs.DesiredAccess, theirs.OplockLevel = smb2msg.AccessReadAttributes, smb2msg.OplockII
					a.create(theirs)
				case "stat batch, stat":
					theirs.DesiredAccess, theirs.OplockLevel = smb2msg.AccessReadAttributes, smb2msg.OplockBatch
					a.create(theirs)
					mine.DesiredAccess = smb2msg.AccessReadAttributes
				case "stat R":
					theirs = leasing("file", 1, "R")
					theirs.DesiredAccess = smb2msg.AccessReadAttributes
					a.create(theirs)
				case "stat RWH, stat":
					theirs = leasing("file", 1, "RWH")
					theirs.DesiredAccess = smb2msg.AccessReadAttributes
					a.create(theirs)
					mine.DesiredAccess = smb2msg.AccessReadAttributes
				default:
					a.lease(leasing("file", 1, c.others), c.others)
				}
				resp, lease := b.granted(b.do(smb2msg.CommandCreate, mine))
				if mine.OplockLevel == smb2msg.OplockLease {
					if resp.OplockLevel != smb2msg.OplockLease || lease.LeaseState != state(c.want) || lease.LeaseFlags != 0 {
						t.Errorf("got %+v", lease)
					}
				} else if resp.OplockLevel != oplocks[c.want] {
					t.Errorf("got oplock level %#x", resp.OplockLevel)
				}
				a.untold()
			})
		})
	}
}

// TestOddLeases asks for leases as nobody should.
func TestOddLeases(t *testing.T) {
	s := start(t, Config{}, "file", "dir/sub")
	for _, c := range []struct {
		what    string
		dialect smb2msg.Dialect
		change  func(m *smb2msg.CreateRequest)
		status  ntstatus.Status
		level   smb2msg.OplockLevel
	}{
		{"on 2.0.2", smb2msg.SMB202, func(m *smb2msg.CreateRequest) { v1(m) }, 0, smb2msg.OplockNone},
		{"V2 on 2.1", smb2msg.SMB210, func(*smb2msg.CreateRequest) {}, 0, smb2msg.OplockNone},
		{"V1 on 3.1.1", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { v1(m) }, 0, smb2msg.OplockLease},
		{"no context", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.Contexts = nil }, 0, smb2msg.OplockNone},
		{"context alone", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.OplockLevel = smb2msg.OplockBatch }, 0, smb2msg.OplockBatch},
		{"unknown level", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.OplockLevel = 5 }, 0, smb2msg.OplockNone},
		{"broken context", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.Contexts[0].Data = m.Contexts[0].Data[:40] }, ntstatus.InvalidParameter, 0},
		{"folder", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.Name = "dir" }, 0, smb2msg.OplockNone},
		{"folder, oplock", smb2msg.SMB311, func(m *smb2msg.CreateRequest) { m.Name, m.OplockLevel = "dir", smb2msg.OplockBatch }, 0, smb2msg.OplockNone},
	} {
		t.Run(c.what, func(t *testing.T) {
			a := logOn(t, s, c.dialect)
			m := leasing("file", 1, "RWH")
			c.change(m)
			r := a.do(smb2msg.CommandCreate, m)
			if r.Status != c.status {
				t.Fatalf("got %v", r.Status)
			}
			if r.Status == ntstatus.Success {
				resp, lease := a.granted(r)
				if resp.OplockLevel != c.level || (lease.LeaseKey != [16]byte{}) != (c.level == smb2msg.OplockLease) {
					t.Errorf("got level %#x and %+v", resp.OplockLevel, lease)
				}
				a.close(resp.FileID)
			}
		})
	}
	a := logOn(t, s)
	for _, odd := range []smb2msg.LeaseState{leaseWrite, leaseHandle, leaseWrite | leaseHandle, 1 << 5} {
		m := leasing("file", 1, "")
		m.Contexts[0] = smb2msg.NewCreateContext(smb2msg.ContextRqLs, &smb2msg.Lease{LeaseKey: [16]byte{1}, LeaseState: odd, V2: true})
		a.close(a.lease(m, ""))
	}
}

// TestSharedLease opens a file more than once with one lease.
func TestSharedLease(t *testing.T) {
	s := start(t, Config{}, "file", "other")
	a := logOn(t, s)
	key := func(m *smb2msg.CreateRequest) smb2msg.Lease {
		_, lease := a.granted(a.do(smb2msg.CommandCreate, m))
		return lease
	}
	parent := leasing("file", 1, "R")
	parent.Contexts[0] = smb2msg.NewCreateContext(smb2msg.ContextRqLs, &smb2msg.Lease{
		LeaseKey: [16]byte{1}, LeaseState: leaseRead, V2: true, Epoch: 7,
		LeaseFlags: smb2msg.LeaseFlagParentLeaseKeySet, ParentLeaseKey: [16]byte{2},
	})
	want := smb2msg.Lease{
		LeaseKey: [16]byte{1}, LeaseState: leaseRead, V2: true, Epoch: 8,
		LeaseFlags: smb2msg.LeaseFlagParentLeaseKeySet, ParentLeaseKey: [16]byte{2},
	}
	if got := key(parent); got != want {
		t.Errorf("first got %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		asked, want string
		epoch       uint16
	}{
		{"", "R", 8}, {"RH", "RH", 9}, {"RW", "RH", 9}, {"R", "RH", 9}, {"RWH", "RWH", 10}, {"RH", "RWH", 10},
	} {
		got := key(leasing("file", 1, c.asked))
		if got.LeaseState != state(c.want) || got.Epoch != c.epoch || got.ParentLeaseKey != [16]byte{2} {
			t.Errorf("asked for %s: %+v, want %s in epoch %d", c.asked, got, c.want, c.epoch)
		}
	}
	// The form is that of the first request.
	if got := key(v1(leasing("file", 1, "RWH"))); !got.V2 {
		t.Errorf("in the older form: %+v", got)
	}
	// A key is for one file.
	if got := a.do(smb2msg.CommandCreate, leasing("other", 1, "R")).Status; got != ntstatus.InvalidParameter {
		t.Errorf("its key for another file: %v, want INVALID_PARAMETER", got)
	}
	if got := a.do(smb2msg.CommandCreate, leasing("new", 1, "R")).Status; got != ntstatus.InvalidParameter {
		t.Errorf("its key for a new file: %v, want INVALID_PARAMETER", got)
	}
	if got := a.do(smb2msg.CommandCreate, opening("new")).Status; got != ntstatus.ObjectNameNotFound {
		t.Errorf("a file that could not be made: %v", got)
	}
	logOnAs(t, s, 2).lease(leasing("other", 1, "RWH"), "RWH") // for another client it means nothing
}

// TestCachingRefused asks servers that do not grant everything.
func TestCachingRefused(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		cap   smb2msg.Capabilities
		lease string // "-": none
		level smb2msg.OplockLevel
	}{
		{Config{}, smb2msg.CapLeasing, "RWH", smb2msg.OplockBatch},
		{Config{NoLeases: true}, 0, "-", smb2msg.OplockBatch},
		{Config{NoOplocks: true}, smb2msg.CapLeasing, "RWH", smb2msg.OplockNone},
		{Config{NoWrites: true}, smb2msg.CapLeasing, "RH", smb2msg.OplockII},
	} {
		s := start(t, c.cfg, "file", "other")
		a := connect(t, s)
		if got := a.negotiate(smb2msg.SMB302); got.Capabilities&smb2msg.CapLeasing != c.cap {
			t.Errorf("%+v: capabilities %v", c.cfg, got.Capabilities)
		}
		a = logOn(t, s)
		resp, lease := a.granted(a.do(smb2msg.CommandCreate, leasing("file", 1, "RWH")))
		if c.lease == "-" && resp.OplockLevel != smb2msg.OplockNone || c.lease != "-" && lease.LeaseState != state(c.lease) {
			t.Errorf("%+v: level %#x, lease %+v", c.cfg, resp.OplockLevel, lease)
		}
		resp, _ = a.granted(a.do(smb2msg.CommandCreate, oplocking("other", smb2msg.OplockBatch)))
		if resp.OplockLevel != c.level {
			t.Errorf("%+v: oplock %#x", c.cfg, resp.OplockLevel)
		}
	}
}

// TestAcknowledgments acknowledges what is not there to be acknowledged.
func TestAcknowledgments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		ack := func(id smb2msg.FileID, level smb2msg.OplockLevel) ntstatus.Status {
			t.Helper()
			return a.do(smb2msg.CommandOplockBreak, &smb2msg.OplockBreak{FileID: id, OplockLevel: level}).Status
		}
		if got := a.keep(9, "R"); got != ntstatus.ObjectNameNotFound {
			t.Errorf("unknown lease: %v", got)
		}
		id := a.lease(leasing("file", 1, "RWH"), "RWH")
		if got := a.keep(1, "R"); got != ntstatus.Unsuccessful {
			t.Errorf("not breaking: %v", got)
		}
		if got := b.keep(1, "R"); got != ntstatus.ObjectNameNotFound {
			t.Errorf("another client's lease: %v", got)
		}
		if got := ack(id, smb2msg.OplockII); got != ntstatus.InvalidOplockProtocol {
			t.Errorf("a lease as an oplock: %v", got)
		}
		if got := ack(smb2msg.FileID{Persistent: 99, Volatile: 99}, smb2msg.OplockII); got != ntstatus.FileClosed {
			t.Errorf("unknown open: %v", got)
		}
		if got := a.do(smb2msg.CommandOplockBreak, raw{24, 0, 1}).Status; got != ntstatus.InvalidParameter {
			t.Errorf("cut short: %v", got)
		}
		a.close(id)
		for _, c := range []struct {
			to     smb2msg.LeaseState
			level  smb2msg.OplockLevel
			status ntstatus.Status
			left   smb2msg.OplockLevel
		}{
			{leaseRead, smb2msg.OplockII, 0, smb2msg.OplockII},
			{leaseRead, smb2msg.OplockNone, 0, smb2msg.OplockNone},
			{0, smb2msg.OplockII, 0, smb2msg.OplockNone},
			{leaseRead, smb2msg.OplockLease, ntstatus.InvalidParameter, 0},
			{leaseRead, smb2msg.OplockExclusive, ntstatus.InvalidOplockProtocol, 0},
			{leaseRead, smb2msg.OplockBatch, ntstatus.InvalidOplockProtocol, 0},
		} {
			id := a.create(oplocking("file", smb2msg.OplockBatch))
			if got := ack(id, smb2msg.OplockNone); got != ntstatus.InvalidOplockProtocol {
				t.Errorf("not breaking: %v", got)
			}
			if n := s.Break("share", "FILE", c.to); n != 1 {
				t.Errorf("%d have been told", n)
			}
			a.unasked()
			r := a.do(smb2msg.CommandOplockBreak, &smb2msg.OplockBreak{FileID: id, OplockLevel: c.level})
			if r.Status != c.status {
				t.Errorf("%+v: got %v", c, r.Status)
			}
			if r.Status == ntstatus.Success {
				var m smb2msg.OplockBreak
				if a.body(r, &m); m.OplockLevel != c.left || m.FileID != id {
					t.Errorf("%+v: got %+v", c, m)
				}
			}
			// What is left is what the next break finds.
			if got, want := s.Break("share", "file", 0), int(c.left); got != want {
				t.Errorf("%+v: then %d breaks, want %d", c, got, want)
			}
			if c.left != smb2msg.OplockNone {
				a.unasked()
			}
			a.close(id)
		}
	})
}

// TestBreakByHand takes leases away for no reason.
func TestBreakByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "dir/file", "other")
		a, b := logOnAs(t, s, 1), logOnAs(t, s, 2)
		a.lease(leasing(`dir\file`, 1, "RWH"), "RWH")
		a.lease(leasing("other", 2, "RWH"), "RWH")
		for _, c := range []struct {
			share, path, to string
			want            int
		}{
			{"none", "dir/file", "", 0},
			{"share", "dir/none", "", 0},
			{"share", "dir", "", 0},
			{"share", "dir/file", "RWH", 0},
			{"SHARE", "Dir/FILE", "RH", 1},
			{"share", "dir/file", "R", 0}, // it is breaking
		} {
			if got := s.Break(c.share, c.path, state(c.to)); got != c.want {
				t.Errorf("%+v: %d have been told", c, got)
			}
		}
		if got := a.notified(); got.NewLeaseState != state("RH") || got.LeaseKey != [16]byte{1} {
			t.Errorf("told %+v", got)
		}
		if got := a.keep(1, "RH"); got != ntstatus.Success {
			t.Error(got)
		}
		if got := a.notified(); got.NewLeaseState != state("R") {
			t.Errorf("told %+v", got)
		}
		// While it is breaking it does not become more.
		if _, lease := a.granted(a.do(smb2msg.CommandCreate, leasing(`dir\file`, 1, "RWH"))); lease.LeaseState != state("RH") {
			t.Errorf("while it breaks, it became %+v", lease)
		}
		a.keep(1, "R")
		// Two who have it are told, each of its own.
		b.lease(leasing(`dir\file`, 1, "RH"), "RH")
		if got := s.Break("share", "dir/file", 0); got != 2 {
			t.Errorf("%d have been told, want 2", got)
		}
		a.notified()
		b.notified()
		a.untold()
		for _, bad := range []string{"W", "H", "r", "RX", "-"} {
			if got, err := ParseLease(bad); err == nil {
				t.Errorf("%q is a lease: %v", bad, got)
			}
		}
	})
}
