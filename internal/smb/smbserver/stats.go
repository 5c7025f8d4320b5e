package smbserver

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// Stats counts what a server has done since it was made.
type Stats struct {
	Requests   map[string]int64 // by command: "READ", "QUERY_DIRECTORY"
	Frames     int64            // requests on the wire: a compound counts once
	Read       int64            // payload bytes
	Written    int64
	ReadSizes  map[int]int64 // how many READs had that many bytes of payload
	WriteSizes map[int]int64

	InFlight    int // frames that have arrived and are not answered
	MaxInFlight int

	// Frames from clients, and requests in them, that were protected.
	SignedRequests int64
	SealedFrames   int64

	Connections int64 // accepted so far
	Sessions    int64 // authenticated so far

	// CREATEs that got a lease, or more of one, or an oplock; breaks that clients
	// have been told of, answered, and not answered in time.
	Leases, Oplocks                  int64
	Breaks, BreakAcks, BreakTimeouts int64
}

type stats struct {
	requests       [smb2msg.CommandOplockBreak + 1]atomic.Int64
	frames         atomic.Int64
	signed, sealed atomic.Int64
	conns, logons  atomic.Int64
	inFlight, most atomic.Int64
	reads, writes  sizes

	leases, oplocks                  atomic.Int64
	breaks, breakAcks, breakTimeouts atomic.Int64
	notices                          atomic.Int64 // sent, for the choice of faults
}

// sizes is a histogram of payload sizes.
type sizes struct {
	mu    sync.Mutex
	bytes int64         // guarded by mu
	count map[int]int64 // guarded by mu
}

func (s *sizes) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[int]int64{}
	}
	s.count[n]++
	s.bytes += int64(n)
}

func (s *sizes) get() (int64, map[int]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, maps.Clone(s.count)
}

func raise(to *atomic.Int64, v int64) {
	for {
		old := to.Load()
		if old >= v || to.CompareAndSwap(old, v) {
			return
		}
	}
}

func (s *stats) arrive() {
	s.frames.Add(1)
	raise(&s.most, s.inFlight.Add(1))
}

func (s *stats) get() Stats {
	out := Stats{
		Requests:       map[string]int64{},
		Frames:         s.frames.Load(),
		InFlight:       int(s.inFlight.Load()),
		MaxInFlight:    int(s.most.Load()),
		SignedRequests: s.signed.Load(),
		SealedFrames:   s.sealed.Load(),
		Connections:    s.conns.Load(),
		Sessions:       s.logons.Load(),
		Leases:         s.leases.Load(),
		Oplocks:        s.oplocks.Load(),
		Breaks:         s.breaks.Load(),
		BreakAcks:      s.breakAcks.Load(),
		BreakTimeouts:  s.breakTimeouts.Load(),
	}
	for i := range s.requests {
		if n := s.requests[i].Load(); n > 0 {
			out.Requests[smb2msg.Command(i).String()] = n
		}
	}
	out.Read, out.ReadSizes = s.reads.get()
	out.Written, out.WriteSizes = s.writes.get()
	return out
}
