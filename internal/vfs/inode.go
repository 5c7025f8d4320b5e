package vfs

import (
	"container/list"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
)

// inode is an object of the volume, whatever names it has. It is known as long as a
// name for it is remembered, it is open, or its bytes are kept.
type inode struct {
	number uint64 // what faces call it
	id     uint64 // what the server calls it; 0: nothing
	kind   remote.Kind

	shaken atomic.Uint64 // the last change of its caching rights

	// guarded by FS.mu
	attr    remote.Attr // as the server had it
	asked   question    // that attr answers
	until   time.Time   // attr holds so long
	changed uint64      // the last change made here, other than by writing
	unnamed uint64      // the last time it lost a name here
	names   int         // in FS.names

	// The rest is of files that are, or were, open.
	handles []*Handle       // some may be closing
	closed  uint64          // the last time that all was written for a handle that is being closed
	stamp   time.Time       // Written as it was set while the file was open for writing
	file    *pagecache.File // nil: nothing is kept
	kept    *list.Element   // in FS.kept
}

// question is when something was asked for.
type question struct {
	seq uint64 // its number, in one row with those of changes made here
	at  time.Time

	// What was open then, and when it was last written here.
	inode   *inode
	written time.Time
}

// ask is called before a request that tells something to remember.
func (f *FS) ask() question { return question{seq: f.seq.Add(1), at: time.Now()} }

// askLocked is ask about an inode, or nil.
func (f *FS) askLocked(in *inode) question {
	return f.ask().about(in)
}

// about makes q one about an inode, or nil, as it is now. It requires FS.mu.
func (q question) about(in *inode) question {
	if in != nil && len(in.handles) > 0 {
		_, written, _ := in.file.State()
		q.inode, q.written = in, written
	}
	return q
}

// localNumbers are those made up here, apart from any that a server is likely to have.
const localNumbers = 1 << 63

// meetLocked returns the inode that an answer is about. old is what the path led to
// before, which tells something if not every answer has the server's number.
func (f *FS) meetLocked(attr remote.Attr, old *inode) *inode {
	if in := f.byID[attr.ID]; in != nil && in.kind == attr.Kind {
		return in
	}
	if old != nil && old.kind == attr.Kind && old.attr.Born.Equal(attr.Born) {
		switch {
		case attr.ID == 0:
			return old
		case old.id == 0 && f.byID[attr.ID] == nil:
			old.id = attr.ID
			f.byID[old.id] = old
			return old
		}
	}
	return f.newInodeLocked(attr)
}

// newInodeLocked returns a new inode, in the place of one that had its number before.
func (f *FS) newInodeLocked(attr remote.Attr) *inode {
	in := &inode{id: attr.ID, kind: attr.Kind, number: attr.ID}
	old := f.byID[in.id]
	switch {
	case in.id != 0 && f.cfg.ServerIno:
	case old != nil && old.kind == in.kind:
		in.number = old.number
	default:
		f.numbers++
		in.number = localNumbers | f.numbers
	}
	if old != nil {
		old.until, old.unnamed = time.Time{}, f.seq.Add(1)
		if old.kept != nil {
			f.dropLocked(old)
		}
	}
	if in.id != 0 {
		f.byID[in.id] = in
	}
	return in
}

// learnLocked remembers what the server says of an inode.
func (f *FS) learnLocked(in *inode, attr remote.Attr, q question) {
	if q.seq < in.asked.seq {
		return // a newer answer is known
	}
	if attr.Links == 0 {
		attr.Links = in.attr.Links // not every answer tells
	}
	in.attr, in.asked, in.until = attr, q, q.at.Add(f.ttl(attr.Kind))
	if len(in.handles) > 0 && q.inode == in {
		in.file.Learn(attr, q.written)
	}
}

// freshLocked reports whether what is known of an inode's attributes holds.
func (f *FS) freshLocked(in *inode, now time.Time) bool {
	if in.until.IsZero() || in.asked.seq < in.changed || in.asked.seq < in.shaken.Load() {
		return false
	}
	if now.Before(in.until) {
		return true
	}
	if len(in.handles) == 0 {
		return false
	}
	_, _, vouched := in.file.State()
	return vouched
}

// viewLocked is what faces see of attributes: the inode's number for an ID, no Node,
// since here a name is a path, and what was written here if the server does not know
// that yet.
func (f *FS) viewLocked(in *inode, attr remote.Attr) remote.Attr {
	attr.ID, attr.Node = in.number, ""
	if attr.Links == 0 {
		attr.Links = in.attr.Links
	}
	if len(in.handles) > 0 {
		if size, written, _ := in.file.State(); !written.IsZero() {
			attr.Size, attr.Written = size, written.Round(0).UTC()
			attr.Changed = attr.Written
		}
	}
	return attr
}

// touchLocked notes that an inode was changed here.
func (f *FS) touchLocked(in *inode) { in.changed = f.seq.Add(1) }

// keepLocked keeps the bytes of a file that nobody has open any more.
func (f *FS) keepLocked(in *inode) {
	in.kept = f.kept.PushBack(in)
	if f.kept.Len() > f.cfg.Kept {
		f.dropLocked(f.kept.Front().Value.(*inode))
	}
}

// unkeepLocked takes an inode out of those that are kept.
func (f *FS) unkeepLocked(in *inode) {
	if in.kept != nil {
		f.kept.Remove(in.kept)
		in.kept = nil
	}
}

// dropLocked forgets the bytes of a file without handles, and the inode if that was
// all that it was known for.
func (f *FS) dropLocked(in *inode) {
	f.unkeepLocked(in)
	in.file.Forget()
	in.file = nil
	f.releaseLocked(in)
}

// releaseLocked forgets an inode that there is no way to any more.
func (f *FS) releaseLocked(in *inode) {
	if in.names == 0 && len(in.handles) == 0 && in.kept == nil && f.byID[in.id] == in {
		delete(f.byID, in.id)
	}
}
