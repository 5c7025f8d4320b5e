package smbserver

import (
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// claim is what somebody who is about to use a file cannot leave to others.
type claim struct {
	mine    *lease             // is not in the way, or nil
	take    smb2msg.LeaseState // the rights that others lose
	wait    smb2msg.LeaseState // those that have to be back before it goes on
	again   bool               // it has waited before
	oplocks bool               // leases are not in the way
}

// contend takes from others what they cannot keep. If there is something to wait for,
// it returns that, and the caller has to look again after it. Whoever does so waits
// for all breaks that are under way, as in Windows. See [MS-FSA] 2.1.4.12.
func (ls *leases) contend(in *inode, c claim) <-chan struct{} {
	if in.leased.Load() == 0 {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	out := false
	for _, l := range in.leases {
		if l != c.mine && (l.oplock || !c.oplocks) {
			ls.breakLocked(l, l.state&^c.take)
			out = out || l.state&c.wait != 0 || c.again && l.breaking
		}
	}
	if !out {
		return nil
	}
	if in.changed == nil {
		in.changed = make(chan struct{})
	}
	return in.changed
}

// wakeLocked lets those who wait for something about a file look again. The caller
// holds the leases' mutex.
func (in *inode) wakeLocked() {
	if in.changed != nil {
		close(in.changed)
		in.changed = nil
	}
}

// spoil takes away what others have cached of a file's contents, which have just
// been changed by way of o. There is nothing to wait for: whoever may write to the
// file has waited, when it was opened, until nobody else cached writes. Coming after
// the change, it also reaches those who got their rights while that was under way.
func (o *open) spoil() {
	in, ls := o.inode, o.tree.share.leases
	if in.leased.Load() == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range in.leases {
		// A level II oplock does not even outlive writes of its owner.
		if l != o.lease || l.oplock && l.state == leaseRead {
			ls.breakLocked(l, 0)
		}
	}
}

// breakLocked takes rights away from a lease, so that to is the most that is left.
func (ls *leases) breakLocked(l *lease, to smb2msg.LeaseState) {
	to = legal(l.state & to)
	if l.oplock && to != l.state {
		to &= leaseRead // level II or none
	}
	switch {
	case l.breaking:
		l.need &= to
	case to != l.state:
		l.epoch++
		ls.startLocked(l, to, to)
	}
}

// startLocked tells a client that it is to keep no more than keep, and later no
// more than need. Who only has cached what it has read has nothing to do for that,
// so its answer is not waited for. See [MS-SMB2] 3.3.4.6 and 3.3.4.7.
func (ls *leases) startLocked(l *lease, keep, need smb2msg.LeaseState) {
	answers := l.state != leaseRead
	n := l.notification(keep, answers)
	if answers {
		l.breaking, l.keep, l.need = true, keep, need
		ls.armLocked(l)
	} else {
		l.state = 0
	}
	ls.srv.stats.breaks.Add(1)
	ls.notifyLocked(l, n)
}

// endLocked ends a break: the client has kept no more than state.
func (ls *leases) endLocked(l *lease, state smb2msg.LeaseState) {
	ls.stopLocked(l)
	l.breaking, l.state = false, state
	if need := l.need; state&^need != 0 {
		// Others have asked for more meanwhile. As in Windows, that goes one
		// step at a time and does not change the epoch.
		keep := need
		if state != leaseRead {
			keep |= leaseRead
		}
		ls.startLocked(l, keep, need)
	}
	l.in.wakeLocked()
}

// armLocked starts the timer of a break. See [MS-SMB2] 3.3.2.1 and 3.3.2.5.
func (ls *leases) armLocked(l *lease) {
	ls.expiring.Add(1)
	var t *time.Timer
	t = time.AfterFunc(ls.srv.cfg.BreakTimeout, func() {
		defer ls.expiring.Done()
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if l.timer == t {
			ls.srv.stats.breakTimeouts.Add(1)
			l.need = 0
			ls.endLocked(l, 0)
		}
	})
	l.timer = t
}

func (ls *leases) stopLocked(l *lease) {
	if l.timer != nil && l.timer.Stop() {
		ls.expiring.Done()
	}
	l.timer = nil
}

// oplockBreak takes a client's answer to a break, which tells what it keeps.
// See [MS-SMB2] 3.3.5.22.
func (r *request) oplockBreak() ntstatus.Status {
	if smb2msg.IsLeaseBreak(r.msg) {
		return r.leaseBreak()
	}
	var m smb2msg.OplockBreak
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	l, ls := o.lease, &r.x.c.srv.leases
	if l == nil || !l.oplock {
		return ntstatus.InvalidOplockProtocol
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !l.breaking {
		// So say Windows and Samba, other than the specification.
		return ntstatus.InvalidOplockProtocol
	}
	kept := stateOf(m.OplockLevel)
	switch {
	case m.OplockLevel == smb2msg.OplockLease:
		status, kept = ntstatus.InvalidParameter, 0
	case m.OplockLevel > smb2msg.OplockII:
		status, kept = ntstatus.InvalidOplockProtocol, 0
	}
	r.x.tellLocked(l)
	ls.srv.stats.breakAcks.Add(1)
	ls.endLocked(l, kept&l.keep)
	if status != ntstatus.Success {
		return status
	}
	m.OplockLevel = levelOf(kept & l.keep)
	return r.reply(&m)
}

// leaseBreak is oplockBreak for a lease. See [MS-SMB2] 3.3.5.22.2.
func (r *request) leaseBreak() ntstatus.Status {
	var m smb2msg.LeaseBreak
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	ls := &r.x.c.srv.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byKey[leaseKey{r.x.c.terms.Load().client.ClientGUID, m.LeaseKey}]
	switch {
	case l == nil:
		return ntstatus.ObjectNameNotFound
	case !l.breaking:
		return ntstatus.Unsuccessful
	case m.LeaseState&^l.keep != 0:
		return ntstatus.RequestNotAccepted
	}
	r.x.tellLocked(l)
	ls.srv.stats.breakAcks.Add(1)
	ls.endLocked(l, legal(m.LeaseState))
	return r.reply(&m)
}

// Break takes rights to cache the file at a path away from all who have any, so
// that no more than to is left to each. It returns how many clients have been told,
// or are yet to be told, and does not wait for their answers. Paths have slashes.
func (s *Server) Break(share, path string, to smb2msg.LeaseState) int {
	sh := s.share(share)
	if sh == nil {
		return 0
	}
	if sh.ignoreCase {
		path = memfs.Fold(path)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := 0
	for _, in := range sh.inodes {
		for _, o := range in.opens {
			at := strings.Join(o.parts, "/")
			if at == path || sh.ignoreCase && memfs.Fold(at) == path {
				n += s.leases.breakAll(in, to)
				break
			}
		}
	}
	return n
}

func (ls *leases) breakAll(in *inode, to smb2msg.LeaseState) (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range in.leases {
		before := ls.srv.stats.breaks.Load()
		ls.breakLocked(l, to)
		n += int(ls.srv.stats.breaks.Load() - before)
	}
	return n
}
