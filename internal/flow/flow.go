// Package flow estimates how much to keep in flight on a path to a server, so
// that the path is full and its queue is not.
//
// It owns the arithmetic and nothing else: it has no clock, is told of finished
// requests and asked for a window. An Estimator serves one direction of one
// path and is safe for concurrent use; it neither allocates nor starts
// goroutines.
package flow

import (
	"cmp"
	"math"
	"sync"
	"time"
)

// Sample is a finished request.
type Sample struct {
	Bytes int
	// FirstByte is when the reply began. Where it equals Done, Bytes travelled
	// within the time from Sent to Done: writes, or reads nobody watched.
	Sent, FirstByte, Done time.Time
	// AppLimited says that more could have been in flight, had anybody asked.
	// The estimator also sees that by itself.
	AppLimited bool
}

// Limits is what others allow now.
type Limits struct {
	MaxSize     int // bytes in one request
	MaxInFlight int // bytes in flight, by credits, slots or memory
	FastSize    int // bytes in one request on a path as fast as memory; 0: 2 MiB
}

// Window is Requests requests of Size bytes each.
type Window struct{ Requests, Size int }

const (
	minSize     = 64 << 10
	usualSize   = 1 << 20
	fastSize    = 2 << 20
	largeSize   = 4 << 20
	largeWindow = 32 << 20 // from here on requests are large

	minRequests   = 2
	firstRequests = 4
	// fastRequests of fastSize keep a server busy whose work on one takes longer
	// than the path to it: one on the same machine, above fastRate.
	fastRequests = 4
	fastRate     = 1.3e9

	// gain is how much of the path's capacity to keep in flight. What is more
	// than 1 finds out whether the path has become faster.
	gain = 1.25
	// growth is what doubling must bring for the next doubling.
	growth = 1.12
	// flatRounds without growth end the doubling.
	flatRounds = 2
	// rateRounds and rateTime are how long a rate is believed, at least; at most
	// twice that.
	rateRounds = 8
	rateTime   = 250 * time.Millisecond
	// delayAge is how long a delay is believed before the queue is let run dry
	// to measure it anew.
	delayAge = 10 * time.Second

	// requestTime is what a request may cost in time that others wait for,
	// unless it is as small as requests get.
	requestTime = 8e-3
	// slack is the time a window covers on any path, for servers that think
	// longer now and then.
	slack = 1.5e-3
)

// Estimator turns samples into windows. The rate of a path is the largest
// number of bytes seen to arrive in the time that a request took, its delay the
// shortest time to a first byte. The zero value is ready for use.
type Estimator struct {
	mu       sync.Mutex // guards everything below
	epoch    time.Time
	progress progress

	round   round
	rate    [2]float64    // largest of recent rounds and of those before; bytes a second
	age     int           // rounds in rate[0]
	renewed time.Duration // when they began
	wait    wait          // shortest
	seen    time.Duration // when that was last confirmed

	grown  bool    // the doubling is over
	double float64 // the window until then
	start  float64 // the rate to outgrow
	flat   int     // rounds without growth; later, rounds much too slow

	draining bool          // the queue is being let run dry
	since    time.Duration // from then on
	dry      int           // requests finished that were sent since
	fallback int64         // the window before

	allowed int64 // last window, in bytes
	why     Bound
}

// wait is a time to a first byte, during which own bytes of the request itself
// travelled.
type wait struct {
	d   time.Duration
	own int64
}

const never time.Duration = math.MaxInt64

// at returns the wait without its own bytes at a rate, in seconds.
func (w wait) at(rate float64) float64 {
	s := w.d.Seconds()
	if w.own > 0 && rate > 0 {
		s -= float64(w.own) / rate
	}
	return s
}

// round is the time in which a window's worth of bytes arrives.
type round struct {
	end  int64   // total of bytes that ends it
	full bool    // the window was in use
	rate float64 // largest
}

// Sample accounts for a finished request.
func (e *Estimator) Sample(s Sample) {
	if s.Bytes <= 0 || !s.Sent.Before(s.Done) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.epoch.IsZero() {
		e.epoch, e.wait.d = s.Sent, never
	}
	sent, first, done := s.Sent.Sub(e.epoch), s.FirstByte.Sub(e.epoch), s.Done.Sub(e.epoch)
	bytes, took, all := e.progress.add(int64(s.Bytes), sent, done)

	// In a full pipeline about a window arrives while a request is under way.
	if !s.AppLimited && (bytes >= e.allowed/2 || !all) {
		e.round.full = true
	}
	rate := float64(bytes) / took.Seconds()
	e.round.rate = max(e.round.rate, rate)
	e.rate[0] = max(e.rate[0], rate)

	w := wait{d: first - sent}
	if first >= done {
		w = wait{d: done - sent, own: int64(s.Bytes)}
	}
	switch rate = e.bestRate(); {
	case e.draining && sent >= e.since:
		e.drained(w, rate, done)
	case e.draining:
	case w.at(rate) <= e.wait.at(rate):
		e.wait, e.seen = w, done
	}
	if e.progress.total >= e.round.end && !e.draining {
		e.endRound(done)
	}
}

// endRound decides what the round has taught.
func (e *Estimator) endRound(now time.Duration) {
	r := e.round
	best := e.bestRate()
	e.round = round{end: e.progress.total + e.allowed}
	switch {
	case !r.full: // it only raised the rate, if that
	case !e.grown && best >= growth*e.start && !e.ample(best):
		e.double, e.start, e.flat = float64(2*e.allowed), best, 0
		e.round.end += e.allowed // when all of the new window has arrived
	case !e.grown:
		e.flat++
		e.grown = e.flat == flatRounds
	default:
		e.flat++
		if r.rate > best/2 {
			e.flat = 0
		}
		if e.flat == flatRounds { // a slower path or a longer one
			e.rate, e.age, e.renewed = [2]float64{r.rate}, 0, now
			e.drain(now)
			return
		}
		if e.age++; e.age >= rateRounds && now-e.renewed >= rateTime {
			e.rate, e.age, e.renewed = [2]float64{0, e.rate[0]}, 0, now
		}
		if now-e.seen > delayAge || e.bestRate() < 0.8*best {
			e.drain(now)
		}
	}
}

// ample says that the window is several times what the path holds, so that a
// rate that still grows has other reasons.
func (e *Estimator) ample(rate float64) bool {
	const times, enough = 4, 8 << 20
	return e.allowed > enough && float64(e.allowed) > times*rate*e.wait.at(rate)
}

// drain lets the queue run dry, to measure the delay without it.
func (e *Estimator) drain(now time.Duration) {
	e.draining, e.since, e.dry = true, now, 0
	e.fallback = e.allowed
}

// drained takes a request into account that was sent since.
func (e *Estimator) drained(w wait, rate float64, now time.Duration) {
	// The first found one other request ahead of it, the second an empty path.
	if e.dry++; e.dry < minRequests {
		return
	}
	old, least := e.wait.at(rate), w.at(rate)-minSize/rate // on a slow path it still waited for the first
	if least > gain*old {                                  // the window may be far too small
		e.grown, e.double, e.start, e.flat = false, float64(e.fallback), rate, 0
	}
	if least > old || w.at(rate) < old {
		e.wait = w
	}
	e.seen, e.draining = now, false
	e.round = round{end: e.progress.total + e.fallback}
}

func (e *Estimator) bestRate() float64 { return max(e.rate[0], e.rate[1]) }

func (e *Estimator) doubling() float64 { return max(e.double, firstRequests*usualSize) }

// Window says what to keep in flight within limits. A second request is always
// worth having, even if it has to wait for credits.
func (e *Estimator) Window(l Limits) Window {
	e.mu.Lock()
	defer e.mu.Unlock()
	rate, spare := e.bestRate(), minRequests
	want, size := e.doubling(), usualSize
	e.why = Growth
	if e.grown {
		want = gain * rate * max(e.wait.at(rate), 0)
		size = min(max(nearestPower(rate*requestTime), minSize), usualSize)
		e.why = Path
		if rate > fastRate {
			size = cmp.Or(l.FastSize, fastSize)
			spare = max(fastRequests, fastRequests*fastSize/size)
		}
	}
	switch {
	case e.draining:
		want, size = 0, minSize
	case want >= largeWindow:
		size = largeSize
	}
	if most := max(l.MaxInFlight/firstRequests, minSize); size > most {
		size, e.why = most, InFlight
	}
	if most := max(l.MaxSize, 1); size > most {
		size, e.why = most, Size
	}
	if e.grown && !e.draining {
		want = max(want+float64(spare*size), rate*slack)
	}
	requests := int(math.Ceil(want / float64(size)))
	if most := l.MaxInFlight / size; requests > most {
		requests, e.why = most, InFlight
	}
	w := Window{Requests: max(requests, minRequests), Size: size}
	e.allowed = int64(w.Requests) * int64(w.Size)
	return w
}

// Path returns what the estimator knows of the path: bytes a second and the
// delay, the server's part in it included. Both are 0 before the first sample.
func (e *Estimator) Path() (rate float64, delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rate = e.bestRate()
	if rate == 0 || e.wait.d == never {
		return rate, 0
	}
	return rate, time.Duration(max(e.wait.at(rate), 0) * float64(time.Second))
}

// Why says what bound the last window.
func (e *Estimator) Why() Bound {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// Bound is what keeps a window from being larger.
type Bound uint8

const (
	Growth   Bound = iota // nothing yet: it still doubles
	Path                  // rate × delay
	InFlight              // Limits.MaxInFlight
	Size                  // Limits.MaxSize
)

func (b Bound) String() string {
	return [...]string{"still growing", "rate × delay", "bytes allowed in flight", "request size"}[b]
}

// nearestPower returns the power of two that is nearest in proportion.
func nearestPower(f float64) int {
	return 1 << int(math.Round(math.Log2(max(f, 1))))
}
