package smb

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// lastingFile is a File that outlives the connection. When that is lost, each open
// finds a handle again at its next use, by the path that the file has now, and never
// makes or empties anything. It has to be the same object; whether it is unchanged,
// too, the first open to come back decides for all: see knowledge.
//
//   - Whoever keeps bytes of the file is told at once that the rights are gone and
//     nothing is sure, and, when it is open again, of the new rights and the verdict.
//   - Reads are asked again. A WRITE that was not answered is sent again, once, if the
//     file is unchanged, and else fails with ESTALE: it must not land on the bytes of
//     somebody else.
//   - Later writes go on: they know of the change.
type lastingFile struct {
	sh     *Share
	coming chan struct{} // full while an open comes back

	telling sync.Mutex // orders what events are told

	mu sync.Mutex
	// guarded by mu
	events  remote.Events
	id      uint64
	born    time.Time
	path    string
	s       *Session // that it was open under last
	file    *File    // what it is there
	seen    uint64   // the epoch of what that told last
	unsure  bool     // s is lost, and events know
	rights  remote.Rights
	kept    remote.Rights // those there were when s was lost
	epoch   uint64
	known   knowledge
	touches uint64 // of the share, when that was learned
	flying  int    // WRITEs
	sent    uint64 // WRITEs and SetSizes begun
	opens   map[*lastingOpen]bool
	strange int   // how often it came back and was not what we had left
	missing error // what to say of the last time
}

var (
	errReplaced = fmt.Errorf("the file is gone or another one since the connection was lost: %w", syscall.ESTALE)
	errForeign  = fmt.Errorf("the file was changed on the server while the connection was lost: %w", syscall.ESTALE)
	errUndone   = fmt.Errorf("the server has lost what it had written before the connection was lost: %w", syscall.EIO)
)

// listener hears of one object's rights under one session. Until an open of that has
// found its lastingFile, it keeps what it hears.
type listener struct {
	s *Session

	mu    sync.Mutex
	f     *lastingFile    // guarded by mu, as is early
	early []remote.Change // heard without f
}

// Rights hears of a change.
func (l *listener) Rights(ch remote.Change) {
	l.mu.Lock()
	f := l.f
	if f == nil {
		l.early = append(l.early, ch)
	}
	l.mu.Unlock()
	if f != nil {
		f.changed(l.s, ch)
	}
}

// of lets f hear what was heard so far, and all that comes.
func (l *listener) of(f *lastingFile) {
	l.mu.Lock()
	early := l.early
	l.f, l.early = f, nil
	l.mu.Unlock()
	for _, ch := range early {
		f.changed(l.s, ch)
	}
}

// changed tells of a change under a session. Where nobody keeps anything any more,
// or not yet again, the server has its way at once.
func (f *lastingFile) changed(s *Session, ch remote.Change) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	if f.s != s || f.unsure || len(f.opens) == 0 || f.events == nil {
		f.mu.Unlock()
		if ch.Ack != nil {
			s.conn.Go(func() { ch.Ack(nil) })
		}
		return
	}
	if ch.Epoch > f.seen {
		f.seen, f.rights = ch.Epoch, ch.Rights
	} else {
		f.rights &= ch.Rights
	}
	f.epoch++
	ch.Node, ch.Rights, ch.Epoch = remote.Node(f.path), f.rights, f.epoch
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
}

// lost tells that a session is, unless the file is known to a later one, and reports
// whether somebody wants to hear how it goes on.
func (f *lastingFile) lost(s *Session) bool {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	if f.s != s || f.unsure || len(f.opens) == 0 || f.events == nil {
		f.mu.Unlock()
		return false
	}
	f.unsure, f.kept = true, f.rights
	ch := f.changeLocked(remote.Unsure, 0)
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
	return true
}

// changeLocked makes a change of rights.
func (f *lastingFile) changeLocked(trust remote.Trust, rights remote.Rights) remote.Change {
	f.rights = rights
	f.epoch++
	return remote.Change{Node: remote.Node(f.path), Rights: rights, Epoch: f.epoch, Trust: trust}
}

// back notes that the file is open again under a session, and tells what it has turned
// out to be, if that was not known yet. touches is the share's count from before.
func (f *lastingFile) back(s *Session, opened remote.Opened, touches uint64) {
	f.telling.Lock()
	defer f.telling.Unlock()
	f.mu.Lock()
	first, trust, rights := f.s != s, remote.Current, f.rights
	if first {
		switch f.judgeLocked(s, opened) {
		case changed:
			trust, f.missing = remote.Outdated, errForeign
		case undone:
			trust, f.missing = remote.Undone, errUndone
		}
		if trust != remote.Current {
			f.strange++
		}
		if f.flying == 0 || trust != remote.Current {
			f.known = knowledge{}
			f.learnLocked(opened.Attr, touches)
		}
	}
	f.underLocked(s, opened.File.(*File))
	if !first && f.rights == rights || len(f.opens) == 0 || f.events == nil {
		f.mu.Unlock()
		return
	}
	ch := f.changeLocked(trust, f.rights)
	events := f.events
	f.mu.Unlock()
	events.Rights(ch)
}

// judgeLocked compares what is known with what the server of a new session has.
func (f *lastingFile) judgeLocked(s *Session, opened remote.Opened) fate {
	k, lost, logon := f.known, f.s.lostAt(), time.Time{}
	if f.touches != f.sh.touches.Load() {
		k.ours, k.heard = true, time.Time{} // times may have been set, to any
	}
	if at := f.s.conn.Arrived(); f.flying == 0 && at.Before(lost) {
		lost = at // later, the way may have been cut without anybody noticing
	}
	if !k.heard.IsZero() {
		k.heard = s.serverTime(k.heard)
	}
	if f.heldOn(s, lost, opened) {
		logon = s.serverTime(s.began)
	}
	return k.judge(opened.Attr, s.serverTime(lost), logon)
}

// heldOn says whether nobody else can have changed the file while the server had not
// noticed that the connection is lost: we had the right to write later, nobody has
// waited for that for too long, and it is ours again.
func (f *lastingFile) heldOn(s *Session, lost time.Time, opened remote.Opened) bool {
	kept := f.rights
	if f.unsure {
		kept = f.kept
	}
	rights, _ := opened.File.(*File).granted()
	return kept&remote.CacheWrite != 0 && rights&remote.CacheWrite != 0 && s.began.Sub(lost) < breakPatience
}

// underLocked notes what the file is under a session, and what may be kept of it.
func (f *lastingFile) underLocked(s *Session, file *File) {
	if f.file != file {
		f.s, f.file, f.seen, f.rights, f.unsure = s, file, 0, 0, false
	}
	if rights, epoch := file.granted(); epoch > f.seen {
		f.seen, f.rights = epoch, rights
		f.epoch++
	}
}

// granted is what may be kept of a file now, which changes that are on their way up
// say, too.
func (f *File) granted() (remote.Rights, uint64) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	return f.rights, f.epoch
}

// learnLocked notes what the server tells while nothing is under way.
func (f *lastingFile) learnLocked(attr remote.Attr, touches uint64) {
	k := &f.known
	k.size, k.end, k.written, k.changed = attr.Size, 0, attr.Written, attr.Changed
	k.ours = k.ours || f.touches != f.sh.touches.Load()
	f.touches = touches
}

// moved follows what this client has renamed.
func (f *lastingFile) moved(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, _ = moved(f.path, from, to)
}

// sending is something under way that changes the file.
type sending struct {
	at      time.Time
	strange int
	n       uint64 // of those before
	quiet   bool   // no WRITE is under way
}

// begin notes that something is sent which changes the file up to end.
func (f *lastingFile) begin(end int64) sending {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := sending{at: time.Now(), strange: f.strange, n: f.sent, quiet: f.flying == 0}
	f.sent++
	f.flying++
	f.known.ours = true
	f.known.end = max(f.known.end, end)
	return b
}

// ended notes how that went.
func (f *lastingFile) ended(b sending, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying--
	if err == nil && b.at.After(f.known.heard) {
		f.known.heard = b.at
	}
}

// strangeSince says why what was sent when the file had been strange so often must not
// be sent again.
func (f *lastingFile) strangeSince(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.strange != n {
		return f.missing
	}
	return nil
}

func (f *lastingFile) strangeness() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.strange
}
