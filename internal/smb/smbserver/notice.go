package smbserver

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// notice is a message that no request has asked for: of a break.
type notice struct {
	body interface{ Append([]byte) []byte }
	open *open // that it is about
	seal bool  // as the session of that open does
}

// maxNotices is how many notices may wait for a client to read them.
const maxNotices = 1024

// notification says that a client is to keep no more of a lease than keep. See
// [MS-SMB2] 2.2.23.
func (l *lease) notification(keep smb2msg.LeaseState, answers bool) notice {
	if l.oplock {
		o := l.opens[0]
		return notice{body: &smb2msg.OplockBreak{
			OplockLevel: levelOf(keep), FileID: smb2msg.FileID{Persistent: o.id, Volatile: o.id},
		}}
	}
	m := &smb2msg.LeaseBreakNotification{LeaseKey: l.key.key, CurrentLeaseState: l.state, NewLeaseState: keep}
	if answers {
		m.Flags = smb2msg.LeaseBreakAckRequired
	}
	if l.v2 {
		m.NewEpoch = l.epoch
	}
	return notice{body: m}
}

// notifyLocked sends a notice to the owner of a lease. If it cannot be reached, there
// is nobody left who has cached anything.
func (ls *leases) notifyLocked(l *lease, n notice) {
	if l.replies > 0 {
		l.late = append(l.late, n)
		return
	}
	n.seal = l.opens[0].sealed()
	for _, way := range ls.waysLocked(l, n.seal) {
		n.open, l.via = way.open, way.conn
		if l.via.notify(n) {
			return
		}
	}
	ls.stopLocked(l)
	l.breaking, l.state = false, 0
	l.in.wakeLocked()
}

// lost looks for another way to tell a client of what it may not have heard by a
// connection that is over.
func (ls *leases) lost(c *conn) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byKey {
		if l.breaking && l.via == c {
			ls.notifyLocked(l, l.notification(l.keep, true))
		}
	}
}

// way is how a notice gets to a client: by a connection, and in the session of an
// open as far as that matters.
type way struct {
	conn *conn
	open *open
}

// waysLocked returns the ways to the owner of a lease, the best one first. A lease
// belongs to a client, and like Windows and Samba the server tells it by its oldest
// connection, whichever the file was opened by. But a seal is that of a session, and
// an oplock belongs to one, too.
func (ls *leases) waysLocked(l *lease, seal bool) (ways []way) {
	if l.oplock || seal {
		for _, o := range l.opens {
			ways = append(ways, way{o.session.c, o})
		}
		return ways
	}
	for _, c := range ls.srv.connsOf(l.key.client) {
		ways = append(ways, way{c, l.opens[0]})
	}
	return ways
}

// connsOf returns a client's connections, the oldest one first.
func (s *Server) connsOf(client [16]byte) (list []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if t := c.terms.Load(); t != nil && t.client.ClientGUID == client {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
	return list
}

// tellLocked notes that the reply under way tells of a lease. Only when it has been
// sent does the client hear of the lease's break. The caller holds the leases' mutex.
func (x *exchange) tellLocked(l *lease) {
	l.replies++
	x.tells = append(x.tells, l)
}

// told lets the notices go that the reply has held up.
func (x *exchange) told() {
	if len(x.tells) == 0 {
		return
	}
	ls := &x.c.srv.leases
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range x.tells {
		if l.replies--; l.replies > 0 {
			continue
		}
		late := l.late
		l.late = nil
		for _, n := range late {
			ls.notifyLocked(l, n)
		}
	}
	x.tells = x.tells[:0]
}

// over reports whether nothing can be sent any longer.
func (c *conn) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// notify leaves a notice to the goroutine that sends them, and reports whether it
// can be sent at all. Whoever does not read what comes is cut off.
func (c *conn) notify(n notice) bool {
	if c.over() {
		return false
	}
	select {
	case c.notices <- n:
		return true
	default:
		c.nc.Close()
		return false
	}
}

// sendNotices sends notices one after the other. A client that reads nothing thus
// holds up nobody else.
func (c *conn) sendNotices() {
	for {
		select {
		case n := <-c.notices:
			if err := c.sendNotice(&n); err != nil {
				c.abort(err)
			}
		case <-c.done:
			return
		}
	}
}

// sendNotice sends a notice, which is not signed, and belongs to no session as far
// as its header says. See [MS-SMB2] 3.3.4.1 and 3.3.4.6.
func (c *conn) sendNotice(n *notice) error {
	var f Fault
	if faults := c.srv.faults.Load(); faults != nil {
		f = (*faults)(Request{
			Command: BreakNotification, N: int(c.srv.stats.notices.Add(1)), MessageID: math.MaxUint64,
			Conn: c.number, Name: n.open.path(), Last: true,
		})
	}
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.done:
			return nil
		}
	}
	h := smb2msg.Header{Command: smb2msg.CommandOplockBreak, Flags: smb2msg.FlagServerToRedir, MessageID: math.MaxUint64}
	b := n.body.Append(h.Append(make([]byte, headroom)))
	if f.Mutate != nil {
		b = append(b[:headroom:headroom], f.Mutate(b[headroom:])...)
	}
	frame := b[headroom-lengthSize:]
	if n.seal {
		frame = b
		n.open.session.sealer.Seal(frame[lengthSize:])
		if f.BadSignature {
			f.Corrupt = sealSignature
		}
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthSize))
	return c.send(frame, &f)
}

// sealed reports whether what concerns an open is sealed unless the client asks for
// it otherwise.
func (o *open) sealed() bool {
	s := o.session
	return s.sealer != nil && !s.c.srv.cfg.PlainNotices && (s.seal || o.tree.share.Seal || s.seals.Load())
}
