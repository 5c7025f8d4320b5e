package netsim

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// never is an instant that does not come.
const never time.Duration = math.MaxInt64

// lane is one direction of a link. Flows that have something to send share its
// rate equally, as a fluid: each sends at rate/len(busy) from since on. The
// pieces of a flow between two changes of that share are straight lines, so
// when a byte arrives is a division, whoever asks and however rarely.
//
// Instants are durations since the link's epoch. Guarded by Link.mu.
type lane struct {
	rate    int64 // bits a second; 0: no limit
	delay   time.Duration
	queue   int64 // bytes of a flow that may wait to be sent
	window  int64 // bytes of a flow that may be sent and not yet read
	grain   int64 // bytes that may arrive before a reader hears of the first
	stalled bool
	hole    bool // new flows swallow

	busy  []*flow
	since time.Duration
}

func (l *lane) configure(rate int64, delay, rtt time.Duration, queue int64) {
	l.rate, l.delay = rate, delay
	if rate == 0 {
		rate = unlimited
	}
	bdp, _ := mulDiv(rate, int64(rtt), 8e9)
	l.queue = queue
	if queue == 0 {
		l.queue = max(bdp, minQueue)
	}
	l.window = bdp + l.queue + slack
	l.grain = min(max(rate/8/2000, 1460), 1<<20) // half a millisecond
}

// share returns what each busy flow sends in d.
func (l *lane) share(d time.Duration) int64 {
	switch {
	case l.stalled:
		return 0
	case l.rate == 0:
		return math.MaxInt64 / 2
	}
	n, _ := mulDiv(l.rate, int64(d), 8e9*int64(len(l.busy)))
	return n
}

// need returns how long each busy flow takes to send n bytes.
func (l *lane) need(n int64) time.Duration {
	switch {
	case l.stalled:
		return never
	case l.rate == 0:
		return 0
	}
	d, rest := mulDiv(n, 8e9*int64(len(l.busy)), l.rate)
	if rest && d < math.MaxInt64 {
		d++
	}
	return time.Duration(d)
}

// next returns when a busy flow will have sent all it has, which gives the
// others a larger share.
func (l *lane) next() time.Duration {
	least := int64(math.MaxInt64)
	for _, f := range l.busy {
		least = min(least, f.written-f.base)
	}
	if len(l.busy) == 0 {
		return never
	}
	return after(l.since, l.need(least))
}

// advance accounts for what happened until now.
func (l *lane) advance(now time.Duration) {
	for at := l.next(); at <= now; at = l.next() {
		l.settle(at)
	}
}

// settle ends the current piece of every busy flow at t and begins the next.
func (l *lane) settle(t time.Duration) {
	sent := l.share(t - l.since)
	for _, f := range l.busy {
		to := f.base + min(sent, f.written-f.base)
		f.piece(l.since+l.delay, t+l.delay, to)
		f.base = to
	}
	l.busy = slices.DeleteFunc(l.busy, func(f *flow) bool { return f.base == f.written })
	l.since = t
}

// drop takes a flow off the lane, with all that has not arrived.
func (l *lane) drop(f *flow, now time.Duration) {
	l.settle(now)
	l.busy = slices.DeleteFunc(l.busy, func(b *flow) bool { return b == f })
	f.written, f.base = f.arrived, f.arrived
	f.pieces = queue[piece]{}
	f.marks = queue[int64]{}
}

// flow is the bytes of one connection in one direction. Counters are totals
// since it was opened: read <= arrived <= base <= written. Guarded by Link.mu.
type flow struct {
	link *Link
	lane *lane
	fifo

	written int64 // taken from the sender
	base    int64 // sent, as of lane.since; equals written unless the flow is busy
	arrived int64 // as of the last call of arrive
	read    int64 // given to the receiver
	lost    int64 // taken from the sender on top and swallowed; fills its queue for good

	pieces queue[piece] // sent, not yet wholly arrived
	last   time.Duration
	marks  queue[int64] // where writes ended

	hole  bool
	cut   int64         // the circuit dies when this many bytes have arrived; 0: it does not
	eof   bool          // the sender has closed
	fin   time.Duration // when the receiver may hear of that
	gone  bool          // the receiver has closed
	reset time.Duration // when the sender hears of that
}

// piece is bytes that arrive evenly between start and end, up to a total of to.
type piece struct {
	start, end time.Duration
	from, to   int64
}

func (f *flow) piece(start, end time.Duration, to int64) {
	if to == f.base {
		return
	}
	// A shorter delay does not let bytes overtake earlier ones.
	start = max(start, f.last)
	end = max(end, start)
	f.last = end
	f.pieces.push(piece{start, end, f.base, to})
}

// isBusy reports whether the flow has something to send.
func (f *flow) isBusy() bool { return f.base < f.written }

// push takes n bytes, which are in the fifo already, at now.
func (f *flow) push(n int64, now time.Duration) {
	l := f.lane
	if !f.isBusy() {
		l.settle(now)
		l.busy = append(l.busy, f)
	}
	f.written += n
	f.marks.push(f.written)
	l.advance(now)
}

// arrive brings arrived up to now. The lane has advanced.
func (f *flow) arrive(now time.Duration) {
	for ; f.pieces.len() > 0; f.pieces.pop() {
		p := f.pieces.front()
		if p.end > now {
			if now > p.start {
				n, _ := mulDiv(p.to-p.from, int64(now-p.start), int64(p.end-p.start))
				f.arrived = p.from + n
			}
			return
		}
		f.arrived = p.to
	}
	if start := f.liveStart(); f.isBusy() && now > start {
		f.arrived = f.base + min(f.lane.share(now-start), f.written-f.base)
	}
}

// arrival returns when a total of n bytes will have arrived, if the lane stays
// as it is; 0 means that they have.
func (f *flow) arrival(n int64) time.Duration {
	if n <= f.arrived {
		return 0
	}
	for _, p := range f.pieces.all() {
		if n <= p.to {
			d, rest := mulDiv(n-p.from, int64(p.end-p.start), p.to-p.from)
			if rest {
				d++
			}
			return p.start + time.Duration(d)
		}
	}
	if n > f.written {
		return never
	}
	return after(f.liveStart(), f.lane.need(n-f.base))
}

// liveStart is when the bytes being sent now begin to arrive.
func (f *flow) liveStart() time.Duration { return max(f.lane.since+f.lane.delay, f.last) }

// due returns when a receiver that wants up to n bytes should look: when they
// are there, or a write's last byte, or as much as it pays to wake up for.
func (f *flow) due(n int64) time.Duration {
	for f.marks.len() > 0 && f.marks.front() <= f.read {
		f.marks.pop()
	}
	if f.marks.len() == 0 {
		return never
	}
	at := f.arrival(min(f.read+min(n, f.lane.grain), f.marks.front()))
	if f.isBusy() && len(f.lane.busy) > 1 {
		at = min(at, after(f.lane.next(), f.lane.delay))
	}
	return at
}

// room returns how many bytes the sender may write now.
func (f *flow) room(now time.Duration) int64 {
	sent := f.written
	if f.isBusy() {
		sent = min(f.base+f.lane.share(now-f.lane.since), f.written)
	}
	return max(0, min(f.lane.queue-(f.written-sent), f.lane.window-(f.written-f.read))-f.lost)
}

// roomAt returns when the sender may write n bytes as far as the lane is
// concerned; never, if that depends on the receiver.
func (f *flow) roomAt(n int64) time.Duration {
	if !f.isBusy() || f.written+f.lost+n-f.read > f.lane.window {
		return never
	}
	at := after(f.lane.since, f.lane.need(f.written+f.lost+n-f.lane.queue-f.base))
	if len(f.lane.busy) > 1 {
		at = min(at, f.lane.next())
	}
	return at
}

func after(t, d time.Duration) time.Duration {
	if t == never || d == never {
		return never
	}
	return t + d
}

// mulDiv returns a*b/c for numbers that are not negative, and whether there is
// a remainder. What is too large is MaxInt64.
func mulDiv(a, b, c int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi >= uint64(c) {
		return math.MaxInt64, false
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return int64(q), r != 0
}
