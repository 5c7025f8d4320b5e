package smbserver

import (
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// leases are what clients may cache of files. There are leases proper, which all
// opens of a client that name the same key share, and oplocks, which are leases of
// a single open. See [MS-SMB2] 3.3.1.4, 3.3.1.11 and 3.3.1.12.
type leases struct {
	srv      *Server
	expiring sync.WaitGroup // timers that are running

	mu    sync.Mutex
	byKey map[leaseKey]*lease // guarded by mu
}

// leaseKey names a lease proper: clients choose keys without regard to others.
type leaseKey struct{ client, key [16]byte }

// lease is guarded by leases.mu, but for key, in and oplock, which do not change.
type lease struct {
	key    leaseKey
	in     *inode
	oplock bool

	opens []*open // that share it, the oldest first
	state smb2msg.LeaseState

	// What V2 adds.
	v2        bool
	epoch     uint16
	parent    [16]byte
	hasParent bool

	// While an acknowledgment is awaited: keep is what the client was told it
	// may keep, need is what it has to come down to by now.
	breaking   bool
	keep, need smb2msg.LeaseState
	timer      *time.Timer
	via        *conn // where the notification went

	// The client hears of a break after it has heard of the grant: replies are
	// those that tell of the lease and are not yet sent, and late is what has to
	// wait for them.
	replies int
	late    []notice
}

const (
	leaseRead   = smb2msg.LeaseRead
	leaseWrite  = smb2msg.LeaseWrite
	leaseHandle = smb2msg.LeaseHandle
	leaseAll    = leaseRead | leaseWrite | leaseHandle
)

// legal leaves out what means nothing: without the right to cache what is read
// there is no other.
func legal(state smb2msg.LeaseState) smb2msg.LeaseState {
	if state&leaseRead == 0 {
		return 0
	}
	return state & leaseAll
}

// rights are what a CREATE asks to cache, and then what it gets.
type rights struct {
	level smb2msg.OplockLevel
	key   leaseKey // of OplockLease, as what follows
	lease smb2msg.Lease
}

// rights reads what a CREATE asks to cache, as far as there is any such thing here.
// See [MS-SMB2] 3.3.5.9, 3.3.5.9.8 and 3.3.5.9.11.
func (r *request) rights(m *smb2msg.CreateRequest) (rights, ntstatus.Status) {
	t := r.x.c.terms.Load()
	w := rights{level: m.OplockLevel}
	switch m.OplockLevel {
	case smb2msg.OplockII, smb2msg.OplockExclusive, smb2msg.OplockBatch:
		if !r.x.c.srv.cfg.NoOplocks {
			return w, ntstatus.Success
		}
	case smb2msg.OplockLease:
		rd, there := smb2msg.FindContext(m.Contexts, smb2msg.ContextRqLs)
		if !there || t.capabilities&smb2msg.CapLeasing == 0 {
			break
		}
		if w.lease.Decode(&rd) != nil {
			return rights{}, ntstatus.InvalidParameter
		}
		if w.lease.V2 && t.dialect < smb2msg.SMB300 {
			break
		}
		w.key = leaseKey{t.client.ClientGUID, w.lease.LeaseKey}
		return w, ntstatus.Success
	}
	return rights{}, ntstatus.Success
}

// describe says in a reply what was granted.
func (w *rights) describe(reply *smb2msg.CreateResponse) {
	reply.OplockLevel = w.level
	if w.level == smb2msg.OplockLease {
		reply.Contexts = append(reply.Contexts, smb2msg.NewCreateContext(smb2msg.ContextRqLs, &w.lease))
	}
}

// find returns the lease that a CREATE names, nil if there is none yet.
func (ls *leases) find(w *rights) *lease {
	if w.level != smb2msg.OplockLease {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byKey[w.key]
}

// stateOf is the lease that an oplock is, and levelOf the other way round.
func stateOf(level smb2msg.OplockLevel) smb2msg.LeaseState {
	switch level {
	case smb2msg.OplockII:
		return leaseRead
	case smb2msg.OplockExclusive:
		return leaseRead | leaseWrite
	case smb2msg.OplockBatch:
		return leaseAll
	}
	return 0
}

func levelOf(state smb2msg.LeaseState) smb2msg.OplockLevel {
	switch {
	case state == leaseAll:
		return smb2msg.OplockBatch
	case state&leaseWrite != 0:
		return smb2msg.OplockExclusive
	case state&leaseRead != 0:
		return smb2msg.OplockII
	}
	return smb2msg.OplockNone
}

// grantLocked gives an open what w asks for, as far as others leave it, and makes
// w what that is. The caller holds the share's mutex.
func (r *request) grantLocked(o *open, w *rights) {
	ls := &r.x.c.srv.leases
	asked := *w
	*w = rights{}
	if asked.level == smb2msg.OplockNone || o.isDir {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var l *lease
	if asked.level != smb2msg.OplockLease {
		l = &lease{in: o.inode, oplock: true}
		if l.state = stateOf(levelOf(ls.roomLocked(o, l, stateOf(asked.level)))); l.state == 0 {
			return
		}
		w.level = levelOf(l.state)
		ls.srv.stats.oplocks.Add(1)
	} else {
		if l = ls.shareLocked(o, &asked); l == nil {
			return
		}
		*w = asked
		w.lease = l.describe()
	}
	ls.joinLocked(l, o)
	r.x.tellLocked(l)
}

// shareLocked returns the lease that an open asks for by its key, nil if somebody
// has just taken that key for another file.
func (ls *leases) shareLocked(o *open, asked *rights) *lease {
	l := ls.byKey[asked.key]
	switch {
	case l == nil:
		l = &lease{
			key: asked.key, in: o.inode, v2: asked.lease.V2, epoch: asked.lease.Epoch + 1,
			parent: asked.lease.ParentLeaseKey, hasParent: asked.lease.LeaseFlags&smb2msg.LeaseFlagParentLeaseKeySet != 0,
		}
		if l.state = ls.roomLocked(o, l, asked.lease.LeaseState); l.state != 0 {
			ls.srv.stats.leases.Add(1)
		}
		ls.byKey[l.key] = l
	case l.in != o.inode:
		return nil
	default:
		ls.upgradeLocked(l, o, asked.lease.LeaseState)
	}
	return l
}

// upgradeLocked gives a lease more, if more was asked for and nobody minds. Less is
// never taken from it.
func (ls *leases) upgradeLocked(l *lease, o *open, want smb2msg.LeaseState) {
	if l.breaking || l.state&^want != 0 || l.state == want || ls.roomLocked(o, l, want) != want {
		return
	}
	l.state = want
	l.epoch++
	ls.srv.stats.leases.Add(1)
}

// roomLocked is how much of what is wanted others leave to mine, of which o is the
// newest open.
func (ls *leases) roomLocked(o *open, mine *lease, want smb2msg.LeaseState) smb2msg.LeaseState {
	want = legal(want)
	if ls.srv.cfg.NoWrites {
		want &^= leaseWrite
	}
	for _, other := range o.inode.opens {
		if other != o && other.lease != mine && other.access&^accessStat != 0 {
			want &^= leaseWrite
		}
	}
	for _, l := range o.inode.leases {
		switch {
		case l == mine, l.state == 0:
			continue
		case l.state&leaseWrite != 0, mine.oplock && l.state&leaseHandle != 0:
			return 0
		case l.oplock:
			want &^= leaseHandle
		}
		want &^= leaseWrite
	}
	if want&leaseWrite == 0 && o.inode.locks.count.Load() > 0 {
		return 0
	}
	return want
}

// joinLocked makes an open one of those that share a lease.
func (ls *leases) joinLocked(l *lease, o *open) {
	if len(l.opens) == 0 {
		l.in.leases = append(l.in.leases, l)
		l.in.leased.Add(1)
	}
	l.opens = append(l.opens, o)
	o.lease = l
}

// leave takes an open that ends out of the lease that it shares, which ends with
// its last open. Whoever waits for something about the file looks again.
func (ls *leases) leave(o *open) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	o.inode.wakeLocked()
	l := o.lease
	if l == nil {
		return
	}
	l.opens = slices.DeleteFunc(l.opens, func(other *open) bool { return other == o })
	if len(l.opens) > 0 {
		return
	}
	ls.stopLocked(l)
	l.late = nil
	l.in.leases = slices.DeleteFunc(l.in.leases, func(other *lease) bool { return other == l })
	l.in.leased.Add(-1)
	if !l.oplock {
		delete(ls.byKey, l.key)
	}
}

// describe is what the reply to a CREATE says of a lease: in the form in which it was
// asked for at first, as Windows does.
func (l *lease) describe() smb2msg.Lease {
	m := smb2msg.Lease{LeaseKey: l.key.key, LeaseState: l.state, V2: l.v2}
	if l.breaking {
		m.LeaseFlags |= smb2msg.LeaseFlagBreakInProgress
	}
	if l.v2 {
		m.Epoch = l.epoch
		if l.hasParent {
			m.ParentLeaseKey = l.parent
			m.LeaseFlags |= smb2msg.LeaseFlagParentLeaseKeySet
		}
	}
	return m
}

// path is where the file of a lease is, with slashes.
func (ls *leases) path(key leaseKey) string {
	ls.mu.Lock()
	l := ls.byKey[key]
	var o *open
	if l != nil {
		o = l.opens[0]
	}
	ls.mu.Unlock()
	if o == nil {
		return ""
	}
	return o.path()
}
