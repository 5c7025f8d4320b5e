package pagecache

import "github.com/pagewire/pagewire/internal/extent"

// window is what the path and the options allow now.
type window struct {
	request int64 // bytes that one read request carries
	most    int64 // that may be read ahead of a reader
	fixed   int64 // read ahead exactly so many; 0: as many as pay off
}

const (
	maxStreams  = 4
	firstWindow = 16 << 10 // when two reads are in order, which may be chance
	maxWindow   = 32 << 20

	// When what those two had read ahead is of use, half a request is next. What is
	// cheap on this path, the size of its requests knows best.
	minStart = 128 << 10
	maxStart = 512 << 10

	// Reads that come out of order (by several threads, or a kernel's) are a few of
	// them apart. Further away is somewhere else.
	reachReads = 16
	maxReach   = 16 << 20
)

// readahead finds out what the reads of one open are about to want. It is the policy
// of reading ahead, and pure.
//
// It follows the last few readers that go forward. One that has gone on where it
// was, or has left no hole behind it, is a stream: it has its window read ahead.
// Whatever the readers' steps, what they have asked for ends at borders of requests,
// or of fractions of them as long as the window is small; so it is asked for one
// whole request at a time, and soon enough, as two or more fit into the window.
//
// What is read at random makes streams by chance, one in a few thousand reads. Such
// a one is given little, and loses its place before it is given more.
type readahead struct {
	streams [maxStreams]stream // the one that was read last first
	n       int
}

// stream is a reader that goes forward, or might.
type stream struct {
	head    int64 // where the furthest read ended
	holes   int64 // bytes before it that were passed over and might still come
	forward bool  // head has moved
	window  int64 // what is read ahead of head; 0: nothing yet
	from    int64 // what was asked for, and may be read already
	ahead   int64 // ends here
}

// access notes a read of a file of that size, and says what to read ahead for it: what
// is behind the read, and was not asked for by its stream before.
func (a *readahead) access(r extent.Range, size int64, w window) extent.Range {
	r.End = min(r.End, size)
	if r.Off < 0 || r.Empty() {
		return extent.Range{}
	}
	s := a.find(r)
	if s == nil {
		a.first(stream{head: r.End}, a.n)
		return extent.Range{}
	}
	if !s.note(r) {
		return extent.Range{}
	}
	s.grow(r.Len(), w)
	return s.extend(size, w.request)
}

// missed notes that what r begins with was asked for, but is neither here nor on its
// way any more: it failed, or had to go, as too much was read ahead. Its stream asks
// for it again.
func (a *readahead) missed(r extent.Range) {
	for i := range a.streams[:a.n] {
		s := &a.streams[i]
		if s.from <= r.Off && r.Off < s.ahead && s.head-r.Off <= reach(r) {
			s.ahead = max(s.head, r.Off)
			s.window /= 2
		}
	}
}

// reach returns how far from a stream's head a read may be that belongs to it.
func reach(r extent.Range) int64 { return min(reachReads*min(r.Len(), maxReach), maxReach) }

// find returns the stream that a read belongs to, the nearest of them, and notes that
// it was read last; nil if there is none.
func (a *readahead) find(r extent.Range) *stream {
	reach, best, at := reach(r), int64(-1), 0
	for i := range a.streams[:a.n] {
		s := &a.streams[i]
		far := max(r.Off-s.head, s.head-r.Off)
		if (far <= reach || s.head <= r.Off && r.Off < s.ahead) && (best < 0 || far < best) {
			best, at = far, i
		}
	}
	if best < 0 {
		return nil
	}
	a.first(a.streams[at], at)
	return &a.streams[0]
}

// first puts a stream in front of those that were at less than i.
func (a *readahead) first(s stream, i int) {
	i = min(i, maxStreams-1)
	a.n = max(a.n, i+1)
	copy(a.streams[1:i+1], a.streams[:i])
	a.streams[0] = s
}

// note notes a read, and reports whether it is one to read ahead for.
func (s *stream) note(r extent.Range) bool {
	reach, skipped := reach(r), r.Off-s.head
	if r.End <= s.head { // late, or backward
		s.holes = max(s.holes-r.Len(), 0)
		return s.window <= firstWindow && s.forward && s.holes == 0
	}
	s.head, s.forward = r.End, true
	if r.End > s.ahead {
		s.from, s.ahead = r.End, r.End
	}
	switch {
	case skipped > reach: // into what was read ahead, maybe by chance: let it go on first
		s.holes = 0
		return false
	case skipped == 0: // the longer that goes on, the less will holes be filled
		s.holes /= 2
		return true
	}
	s.holes += max(skipped, 0)
	if s.window > firstWindow { // no chance any more
		return s.holes <= reach/2
	}
	if s.holes > reach { // no stream
		s.holes, s.forward = 0, false
	}
	return s.forward && s.holes == 0
}

// grow doubles the window when half of it has been read, and holds it within bounds.
func (s *stream) grow(read int64, w window) {
	if w.fixed > 0 {
		s.window = min(w.fixed, w.most)
		return
	}
	read = min(read, maxWindow)
	switch {
	case s.window == 0:
		s.window = max(2*read, firstWindow)
	case s.ahead-s.head <= s.window/2:
		s.window = max(2*s.window, 2*read, min(max(w.request/2, minStart), maxStart))
	}
	s.window = max(min(s.window, maxWindow, w.most), 0)
}

// extend returns what the window has more than was asked for. It ends at a multiple of
// the request, or of what half of the window has room for, or with the file.
func (s *stream) extend(size, request int64) extent.Range {
	s.ahead = min(s.ahead, max(s.head, size)) // the file may have become shorter
	to := size
	if size-s.head > s.window {
		for request > 1 && request > s.window/2 {
			request /= 2
		}
		request = max(request, 1)
		to = (s.head + s.window) / request * request
	}
	if to <= s.ahead {
		return extent.Range{}
	}
	more := extent.Range{Off: s.ahead, End: to}
	s.ahead = to
	return more
}
