package pagewire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// link is what all file systems of one connection share.
type link struct {
	options Options
	server  string       // host:port
	about   func(*Stats) // adds what the connection knows; nil: nothing
	buffers buffers      // of transfers
	vectors sync.Pool    // of *[1][]byte, for requests of others
	traffic [2]traffic   // by direction
	crowd   [2]crowd     // by direction
	trip    atomic.Int64 // the shortest round trip, in ns; 0: none yet
}

// crowd is who shares a window: transfers and, together, their workers.
type crowd struct{ transfers, workers atomic.Int32 }

// share is one volume over a link.
type share struct {
	*link
	vol     remote.Volume
	name    string                      // //host/share, as a link may spell it
	release func(context.Context) error // gives up the connection too, if it is the share's own
}

func (s *share) close() error {
	ctx := context.Background() // which the protocol ends if the server is silent
	err := s.vol.Close(ctx)
	if s.release != nil {
		if releaseErr := s.release(ctx); err == nil {
			err = releaseErr
		}
	}
	return pathError("close", s.name, ctx, err)
}

func (l *link) vector() *[1][]byte {
	if v, ok := l.vectors.Get().(*[1][]byte); ok {
		return v
	}
	return new([1][]byte)
}

// giveBack keeps a vector, but not what it points to.
func (l *link) giveBack(v *[1][]byte) {
	v[0] = nil
	l.vectors.Put(v)
}

// traffic counts the requests for bytes of files in one direction.
type traffic struct {
	requests, bytes       atomic.Int64
	flying, peak, largest atomic.Int64
}

func (t *traffic) begin() {
	raise(&t.peak, t.flying.Add(1))
}

func (t *traffic) done(n int) {
	t.flying.Add(-1)
	t.add(n)
}

func (t *traffic) add(n int) {
	t.requests.Add(1)
	t.bytes.Add(int64(n))
	raise(&t.largest, int64(n))
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// Stats is a snapshot of what a connection is and has done, for all that use it.
type Stats struct {
	Server  string // host:port
	Dialect string // "3.1.1"
	Signing string // "AES-GMAC"; "": not signed
	Cipher  string // "AES-128-GCM"; "": not sealed
	Guest   bool   // the server does not know the user

	RTT time.Duration // the shortest round trip of an idle connection

	MaxRead, MaxWrite, MaxTransact int // bytes in one request, as the server allows

	Credits    int // that the connection has now, those in use included
	MaxCredits int // and the most it had

	Requests    int64 // of every kind
	MaxInFlight int   // of every kind at one time

	Read, Write Traffic
}

// Traffic is what went on in one direction with the bytes of files.
type Traffic struct {
	Requests, Bytes       int64
	InFlight, MaxInFlight int // requests
	Largest               int // bytes that one request carried

	// Window is how many requests are best in flight, by what was measured, and
	// Size how large they are.
	Window, Size int
}

func (t *traffic) snapshot() Traffic {
	return Traffic{
		Requests: t.requests.Load(), Bytes: t.bytes.Load(),
		InFlight: int(t.flying.Load()), MaxInFlight: int(t.peak.Load()),
		Largest: int(t.largest.Load()),
	}
}

// tripTook keeps the shortest round trip.
func (l *link) tripTook(d time.Duration) {
	for old := l.trip.Load(); (old == 0 || int64(d) < old) && !l.trip.CompareAndSwap(old, int64(d)); old = l.trip.Load() {
	}
}

func (l *link) stats() Stats {
	s := Stats{Server: l.server, RTT: time.Duration(l.trip.Load())}
	if l.about != nil {
		l.about(&s)
	}
	s.Read, s.Write = l.traffic[remote.Reading].snapshot(), l.traffic[remote.Writing].snapshot()
	return s
}

func (s *share) stats() Stats {
	st := s.link.stats()
	for _, way := range []struct {
		direction remote.Direction
		traffic   *Traffic
	}{{remote.Reading, &st.Read}, {remote.Writing, &st.Write}} {
		w := s.vol.Flow().Window(way.direction)
		way.traffic.Window, way.traffic.Size = w.Requests, w.Size
	}
	return st
}
