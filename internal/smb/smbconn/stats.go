package smbconn

import (
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// Stats counts what a connection did, and says what it may do now.
type Stats struct {
	Requests            map[smb2msg.Command]int64
	Read, Written       int64 // payload bytes
	MaxRead, MaxWrite   int64 // the largest payload of one request
	MaxInFlight         int64 // requests without a reply at one time
	Signed, Sealed      int64 // requests signed, frames sealed
	Credits, MaxCredits int   // now, and the most there were
}

type counters struct {
	requests          [smb2msg.CommandOplockBreak + 1]atomic.Int64
	read, written     atomic.Int64
	maxRead, maxWrite atomic.Int64
	maxInFlight       atomic.Int64
	signed, sealed    atomic.Int64
}

// sent books calls that go out, with inFlight of them waiting altogether.
// Conn.mu is held.
func (s *counters) sent(calls []*Call, inFlight int) {
	for _, call := range calls {
		s.requests[call.Command].Add(1)
	}
	raise(&s.maxInFlight, int64(inFlight))
}

// done books the payload of a finished call. Only the reader goroutine calls it.
func (s *counters) done(call *Call) {
	switch {
	case call.Command == smb2msg.CommandRead:
		s.read.Add(int64(call.N))
		raise(&s.maxRead, int64(call.N))
	case call.Command == smb2msg.CommandWrite && call.Header.Status == ntstatus.Success:
		s.written.Add(call.out)
		raise(&s.maxWrite, call.out)
	}
}

// raise makes v at least n. Its callers don't race with each other.
func raise(v *atomic.Int64, n int64) {
	if n > v.Load() {
		v.Store(n)
	}
}

func total(bufs [][]byte) int64 {
	n := int64(0)
	for _, p := range bufs {
		n += int64(len(p))
	}
	return n
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	s := &c.stats
	st := Stats{
		Requests: make(map[smb2msg.Command]int64),
		Read:     s.read.Load(), Written: s.written.Load(),
		MaxRead: s.maxRead.Load(), MaxWrite: s.maxWrite.Load(),
		MaxInFlight: s.maxInFlight.Load(),
		Signed:      s.signed.Load(), Sealed: s.sealed.Load(),
	}
	for cmd := range s.requests {
		if n := s.requests[cmd].Load(); n > 0 {
			st.Requests[smb2msg.Command(cmd)] = n
		}
	}
	st.Credits, st.MaxCredits = c.credits.held()
	return st
}
