package smb

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

const (
	// breakPatience is how long rights may take to be given up. Samba waits for
	// thirty seconds, Windows for a little more.
	breakPatience = 25 * time.Second
	// ackPatience bounds how long an acknowledgment may take.
	ackPatience = 10 * time.Second
	// mostAcks is how many breaks are acknowledged at a time that no file is
	// concerned by. For more than that the server may wait.
	mostAcks = 64
	// mostEarly is how many breaks are kept whose handles are not known yet.
	// With more, all opens under way get no rights.
	mostEarly = 256
)

// broken hears of each break, in the connection's reader goroutine, which it
// never keeps: neither for a CREATE under way, since the break may be what that
// waits for, nor for an acknowledgment.
func (s *Session) broken(notification []byte) {
	r := byteio.NewReader(notification)
	r.Skip(smb2msg.HeaderSize)
	var err error
	if smb2msg.IsLeaseBreak(notification) {
		var m smb2msg.LeaseBreakNotification
		if err = m.Decode(&r); err == nil {
			err = s.leaseBroken(&m)
		}
	} else {
		var m smb2msg.OplockBreak
		if err = m.Decode(&r); err == nil {
			err = s.oplockBroken(&m)
		}
	}
	if err != nil {
		s.cfg.Logger.Debug("break dropped", "err", err)
	}
}

var (
	errNobodys = errors.New("nobody has these rights")
	errStale   = errors.New("older than what is known")
)

// leaseBroken finds the lease. One that is gone by now, or not there yet since
// the CREATE was given up, is acknowledged: somebody may be waiting.
func (s *Session) leaseBroken(m *smb2msg.LeaseBreakNotification) error {
	all := s.mounted()
	for _, v := range all {
		if known, err := v.leaseBroken(m); known {
			return err
		}
	}
	if m.Flags&smb2msg.LeaseBreakAckRequired != 0 && len(all) > 0 {
		all[0].answer(func() {
			all[0].acknowledge(&smb2msg.LeaseBreak{LeaseKey: m.LeaseKey, LeaseState: m.NewLeaseState})
		})
	}
	return errNobodys
}

// leaseBroken lowers what a lease allows, now and in the replies still to come.
// See [MS-SMB2] 3.2.5.19.2.
func (v *Volume) leaseBroken(m *smb2msg.LeaseBreakNotification) (known bool, err error) {
	v.mu.Lock()
	l := v.caching.leases[m.LeaseKey]
	if l == nil {
		v.mu.Unlock()
		return false, nil
	}
	if v.s.conn.Dialect >= smb2msg.SMB300 {
		if l.file != nil && newer(l.epoch, m.NewEpoch) {
			v.mu.Unlock()
			return true, errStale
		}
		l.epoch = m.NewEpoch
	}
	left := rightsOf(m.NewLeaseState)
	for a := range v.caching.asking {
		if a.lease == l {
			a.left &= left
		}
	}
	l.rights &= left
	var ack func()
	if m.Flags&smb2msg.LeaseBreakAckRequired != 0 {
		l.unsaid++
		f, body := l.file, &smb2msg.LeaseBreak{LeaseKey: l.key, LeaseState: m.NewLeaseState}
		ack = func() { v.leaseAcknowledged(l, f, v.acknowledge(body)) }
	}
	tell := v.lowered(l.file, ack)
	v.mu.Unlock()
	tell()
	return true, nil
}

// leaseAcknowledged hears what the server said to the acknowledgment of a break
// that f was told of. If it has lost its patience meanwhile, nothing is left; who
// is told so may be who acknowledges, in whatever state.
func (v *Volume) leaseAcknowledged(l *lease, f *File, err error) {
	v.mu.Lock()
	l.unsaid--
	tell := func() {}
	if refused(err) && l.file == f {
		l.rights = 0
		tell = v.lowered(f, nil)
	}
	v.mu.Unlock()
	v.s.conn.Go(tell)
}

// refused says whether err is the server's and not the connection's.
func refused(err error) bool { return errors.As(err, new(ntstatus.Status)) }

// oplockBroken finds the handle, or who may be about to learn that it is his.
func (s *Session) oplockBroken(m *smb2msg.OplockBreak) error {
	kept := false
	for _, v := range s.mounted() {
		known, early := v.oplockBroken(m)
		if known {
			return nil
		}
		kept = kept || early
	}
	if !kept {
		return errNobodys
	}
	return nil
}

// oplockBroken lowers what a handle's oplock allows. If there is no such handle, it
// may be one whose CREATE is answered but not dealt with yet: the break is kept for
// that. See [MS-SMB2] 3.2.5.19.1.
func (v *Volume) oplockBroken(m *smb2msg.OplockBreak) (known, kept bool) {
	to := brokenTo(m.OplockLevel)
	v.mu.Lock()
	o := v.caching.oplocks[m.FileID]
	if o == nil {
		defer v.mu.Unlock()
		return false, v.caching.keep(m.FileID, to)
	}
	var ack func()
	if o.level > smb2msg.OplockII {
		ack = func() { v.giveUp(o.id, to) }
	}
	o.level = min(o.level, to)
	tell := v.lowered(o.f, ack)
	v.mu.Unlock()
	tell()
	return true, false
}

// keep keeps a break for the CREATEs under way that ask for an oplock, if any do.
func (c *caching) keep(id smb2msg.FileID, to smb2msg.OplockLevel) (kept bool) {
	full := len(c.early) == mostEarly
	for a := range c.asking {
		if a.lease != nil {
			continue
		}
		kept = true
		if full {
			a.left = 0
		}
	}
	if kept && !full {
		c.early[id] = to
	}
	return kept
}

// giveUp acknowledges a break. If the server has lost its patience meanwhile,
// nothing is left.
func (v *Volume) giveUp(id smb2msg.FileID, to smb2msg.OplockLevel) {
	if refused(v.acknowledge(&smb2msg.OplockBreak{OplockLevel: to, FileID: id})) {
		v.s.conn.Go(func() { v.oplockBroken(&smb2msg.OplockBreak{OplockLevel: smb2msg.OplockNone, FileID: id}) })
	}
}

// weigh sees what a file's leases and oplocks allow together, and says whether
// that is less than before. v.mu is held.
func (f *File) weigh() (less bool) {
	rights := remote.Rights(0)
	for _, o := range f.oplocks {
		rights |= oplockRights(o.level)
	}
	if len(f.leases) > 0 {
		rights = allRights
	}
	for _, l := range f.leases {
		rights &= l.rights
	}
	if rights == f.rights {
		return false
	}
	less = f.rights&^rights != 0
	f.rights = rights
	f.epoch++
	return less
}

// lowered returns what tells of rights that f may have lost, to be called
// without locks. ack says what the server waits for, nil if it does not; nobody
// has to give up anything for it where there is no file. v.mu is held.
func (v *Volume) lowered(f *File, ack func()) (tell func()) {
	switch {
	case f != nil && f.events != nil && f.opens > 0:
	case ack != nil:
		return func() { v.answer(ack) }
	default:
		return func() {}
	}
	if less := f.weigh(); !less && ack == nil {
		return func() {}
	}
	events := f.events
	c := remote.Change{Node: remote.Node(f.path), Rights: f.rights, Epoch: f.epoch}
	if ack != nil {
		c.By = time.Now().Add(breakPatience)
		once := sync.OnceFunc(ack)
		c.Ack = func(error) { once() }
	}
	return func() { events.Rights(c) }
}

// acknowledge tells the server that rights are given up. It may have stopped
// waiting, or the handle may be closed by now.
func (v *Volume) acknowledge(body smbconn.Body) error {
	ctx, stop := context.WithTimeout(context.Background(), ackPatience)
	defer stop()
	call := v.newCall(smb2msg.CommandOplockBreak, body)
	err := v.s.conn.Do(ctx, call)
	if err == nil {
		err = verdict(call)
	}
	if err != nil {
		v.s.cfg.Logger.Debug("break not acknowledged", "share", v.share, "err", err)
	}
	return err
}

// answer acknowledges a break that takes nothing from anybody, without making
// anybody wait.
func (v *Volume) answer(ack func()) {
	v.mu.Lock()
	full := v.caching.acks == mostAcks
	if !full {
		v.caching.acks++
	}
	v.mu.Unlock()
	if full {
		return
	}
	done := func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.caching.acks--
	}
	if !v.s.conn.Go(func() { ack(); done() }) {
		done()
	}
}
