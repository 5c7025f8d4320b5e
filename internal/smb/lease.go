package smb

import (
	"crypto/rand"
	"slices"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// caching is what a volume may keep of its files without asking, and what it
// takes to hear that it no longer may. Volume.mu guards all of it.
type caching struct {
	asking  map[*asking]struct{}
	leases  map[[16]byte]*lease                    // by key
	paths   map[string]*lease                      // by the path that the next CREATE would name
	oplocks map[smb2msg.FileID]*Open               // of handles that have one
	early   map[smb2msg.FileID]smb2msg.OplockLevel // see oplockBroken
	acks    int                                    // sent unasked and not answered yet
}

// asking is a CREATE under way that asks for rights. A break may overtake its
// reply, so that what it is given counts only as far as breaks have left it.
type asking struct {
	lease *lease // nil: it asks for an oplock
	left  remote.Rights
}

// lease is what all handles have in common that were opened under one key: one
// path's, so that its opens do not break each other's rights. Two paths of one
// object have two, since servers allow one name per key.
type lease struct {
	key  [16]byte
	path string // changes with renames by this client

	users   int // CREATEs under way and handles, until they are closed
	handles int // those that nobody has closed yet

	file   *File         // nil while no handle has rights
	rights remote.Rights // granted and not broken
	epoch  uint16        // of their last change, as the server counts; V2 only
	unsaid int           // breaks that are not acknowledged yet
}

const allRights = remote.CacheRead | remote.CacheWrite | remote.CacheHandle

var leaseRights = []struct {
	state smb2msg.LeaseState
	right remote.Rights
}{
	{smb2msg.LeaseRead, remote.CacheRead},
	{smb2msg.LeaseWrite, remote.CacheWrite},
	{smb2msg.LeaseHandle, remote.CacheHandle},
}

func rightsOf(s smb2msg.LeaseState) (r remote.Rights) {
	for _, m := range leaseRights {
		if s&m.state != 0 {
			r |= m.right
		}
	}
	return r
}

// leaseState asks for rights. Without reading there is no other: servers refuse
// such a lease.
func leaseState(r remote.Rights) smb2msg.LeaseState {
	s := smb2msg.LeaseRead
	for _, m := range leaseRights {
		if r&m.right != 0 {
			s |= m.state
		}
	}
	return s
}

// newer says whether one epoch comes after another; they wrap around.
func newer(a, b uint16) bool { return int16(a-b) > 0 }

// leasing says whether the server gives leases, which 2.0.2 does not know.
func (v *Volume) leasing() bool {
	n := &v.s.conn.Negotiated
	return n.Dialect > smb2msg.SMB202 && n.Capabilities&smb2msg.CapLeasing != 0
}

// ask puts into a CREATE which rights are wanted, and returns nil if none are.
// Whoever calls it calls asked when the reply has been dealt with.
func (v *Volume) ask(m *smb2msg.CreateRequest, how remote.How, events remote.Events) *asking {
	if how.Rights&allRights == 0 || events == nil || how.Dir {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &v.caching
	if c.asking == nil {
		*c = caching{
			asking:  make(map[*asking]struct{}),
			leases:  make(map[[16]byte]*lease),
			paths:   make(map[string]*lease),
			oplocks: make(map[smb2msg.FileID]*Open),
			early:   make(map[smb2msg.FileID]smb2msg.OplockLevel),
		}
	}
	a := &asking{left: allRights}
	c.asking[a] = struct{}{}
	if !v.leasing() {
		m.OplockLevel = oplockLevel(how.Rights)
		return a
	}
	l := c.paths[m.Name]
	if l == nil {
		l = &lease{path: m.Name}
		rand.Read(l.key[:])
		c.leases[l.key], c.paths[l.path] = l, l
	}
	if l.unsaid > 0 {
		a.left = l.rights // the server still tells of what there was before
	}
	l.users++
	a.lease = l
	v.under(l, m, leaseState(how.Rights))
	return a
}

// asked ends what ask began. The reply of a CREATE whose caller has left is
// still to come, but the handle it brings is closed at once: nobody has rights
// by it, and breaks of a lease that is no more are acknowledged as they come.
func (v *Volume) asked(a *asking) {
	if a == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.caching.asking, a)
	if a.lease != nil {
		v.caching.leave(a.lease)
	}
	if len(v.caching.asking) == 0 {
		clear(v.caching.early)
	}
}

// closedUnder ends a handle's use of its lease once it is closed. Until then the
// server may ask for the lease.
func (v *Volume) closedUnder(l *lease) {
	if l == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.caching.leave(l)
}

// leave ends one use of a lease, and with the last one the lease.
func (c *caching) leave(l *lease) {
	if l.users--; l.users > 0 {
		return
	}
	delete(c.leases, l.key)
	if c.paths[l.path] == l {
		delete(c.paths, l.path)
	}
}

// outgrown says whether a CREATE may have failed since its lease's path has come
// to name another object, behind this client's back: then the next one has
// another key.
func (v *Volume) outgrown(a *asking) bool {
	if a == nil || a.lease == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	l := a.lease
	if l.users == 1 { // a new one
		return false
	}
	if v.caching.paths[l.path] == l {
		delete(v.caching.paths, l.path)
	}
	return true
}

// lend opens under the lease of the path, if there is one, which another CREATE
// would break. It asks for no rights.
func (v *Volume) lend(m *smb2msg.CreateRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l := v.caching.paths[m.Name]; l != nil {
		v.under(l, m, 0)
	}
}

// under puts a lease into a CREATE. v.mu is held.
func (v *Volume) under(l *lease, m *smb2msg.CreateRequest, state smb2msg.LeaseState) {
	m.OplockLevel = smb2msg.OplockLease
	m.Contexts = append(m.Contexts, smb2msg.NewCreateContext(smb2msg.ContextRqLs, &smb2msg.Lease{
		LeaseKey:   l.key,
		LeaseState: state,
		V2:         v.s.conn.Dialect >= smb2msg.SMB300,
		Epoch:      l.epoch,
	}))
}

// renamed follows what this client has renamed, and what is below it.
func (v *Volume) renamed(from, to string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if from == to {
		return
	}
	for _, f := range v.files {
		f.path, _ = moved(f.path, from, to)
	}
	c := &v.caching
	delete(c.paths, to) // it was replaced
	var all []*lease
	for path, l := range c.paths {
		if to, ok := moved(path, from, to); ok {
			l.path = to
			all = append(all, l)
			delete(c.paths, path)
		}
	}
	for _, l := range all {
		c.paths[l.path] = l
	}
}

// moved is what becomes of a path when one that it may lie below is renamed.
func moved(path, from, to string) (string, bool) {
	if path == from {
		return to, true
	}
	if n := len(from); len(path) > n && path[:n] == from && path[n] == '\\' {
		return to + path[n:], true
	}
	return path, false
}

// takeLease lets a handle have what its CREATE was given under its lease's key.
// v.mu is held.
func (o *Open) takeLease(a *asking, m *smb2msg.CreateResponse) {
	l, f := a.lease, o.f
	o.lease = l
	l.users++
	l.handles++
	r, ok := smb2msg.FindContext(m.Contexts, smb2msg.ContextRqLs)
	if !ok || m.OplockLevel != smb2msg.OplockLease {
		return
	}
	var given smb2msg.Lease
	if given.Decode(&r) != nil || given.LeaseKey != l.key {
		return
	}
	switch {
	case l.file == nil: // what an earlier file may have had is gone
		l.file, l.rights, l.epoch = f, 0, given.Epoch
		f.leases = append(f.leases, l)
	case l.file != f:
		return // the path has another object now, and its rights are not this one's
	case newer(given.Epoch, l.epoch):
		l.epoch = given.Epoch
	}
	// The server never takes by a reply: that it gives less than there is means
	// that the replies to two CREATEs have overtaken each other.
	l.rights |= rightsOf(given.LeaseState) & a.left
}

// dropLease takes a handle off its lease before it is closed. v.mu is held.
func (o *Open) dropLease() {
	l := o.lease
	if l == nil {
		return
	}
	if l.handles--; l.handles > 0 || l.file == nil {
		return
	}
	f := l.file
	f.leases = slices.DeleteFunc(f.leases, func(other *lease) bool { return other == l })
	l.file = nil
}
