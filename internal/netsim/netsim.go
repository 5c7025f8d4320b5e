// Package netsim simulates links: so many bits a second each way, so much
// delay, a queue that fills up, and faults, under real connections.
//
// A Link carries any number of connections, which share it fairly. Pipe makes
// them in memory on the clock of the time package, so that inside a
// testing/synctest bubble a transfer takes exactly as long as the link says and
// costs no real time. Proxy puts the same link in front of a TCP server, in
// real time.
//
// It owns when bytes move. It knows nothing of what they mean, and does not
// imitate TCP: there is no loss, no slow start and no header overhead.
//
// Link.mu is the only mutex. In-memory connections start no goroutine: time is
// accounted for when somebody looks, and who waits for bytes has a timer.
package netsim

import (
	"sync"
	"syscall"
	"time"
)

// Direction is one of the two ways across a Link.
type Direction int

const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

// Config describes a link. The zero value is a perfect one.
type Config struct {
	Up, Down int64         // bits a second; 0: no limit
	RTT      time.Duration // half of it each way

	// Queue is how many bytes of each connection wait in each direction before
	// its sender blocks. 0: the bandwidth-delay product, at least 256 KiB.
	Queue int64
}

const (
	minQueue = 256 << 10
	// slack is what a receiver buffers beyond what the link holds.
	slack = 1 << 20
	// unlimited stands in for the rate where a link has none and a buffer needs
	// a size all the same.
	unlimited = 16e9
)

// Link is a simulated link. Inside a synctest bubble, make it there.
type Link struct {
	epoch time.Time

	mu       sync.Mutex
	lanes    [2]lane               // guarded by mu
	circuits map[*circuit]struct{} // open connections, guarded by mu
	cutNext  [2]int64              // CutAfter for the next connection, guarded by mu; 0: none
	free     [][]byte              // blocks for fifos, guarded by mu
}

// New returns a link as cfg describes it.
func New(cfg Config) *Link {
	l := &Link{epoch: time.Now(), circuits: map[*circuit]struct{}{}}
	l.configure(cfg)
	return l
}

// Change makes the link another one from now on. What is on its way arrives
// when it would have; what is still queued leaves at the new rate.
func (l *Link) Change(cfg Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	l.configure(cfg)
	l.wakeAll()
}

func (l *Link) configure(cfg Config) {
	l.lanes[Up].configure(cfg.Up, cfg.RTT/2, cfg.RTT, cfg.Queue)
	l.lanes[Down].configure(cfg.Down, cfg.RTT-cfg.RTT/2, cfg.RTT, cfg.Queue)
}

// Stall stops one direction: nothing leaves the queue until Resume.
func (l *Link) Stall(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	l.lanes[d].stalled = true
	l.wakeAll()
}

// Blackhole makes one direction swallow whatever is written from now on: for
// good on connections that are open, until Resume on later ones. A sender
// blocks, as TCP's does without an answer, once its queue is full.
func (l *Link) Blackhole(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes[d].hole = true
	for c := range l.circuits {
		c.flows[d].hole = true
	}
	l.wakeAll()
}

// Resume ends Stall and Blackhole.
func (l *Link) Resume(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	l.lanes[d].stalled, l.lanes[d].hole = false, false
	l.wakeAll()
}

// Cut resets every connection at once. What has arrived can still be read.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for c := range l.circuits {
		c.kill(now, syscall.ECONNRESET)
	}
}

// CutAfter resets every open connection, or the next one if none is open, as
// soon as n > 0 more bytes written to it in direction d have arrived.
func (l *Link) CutAfter(d Direction, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.circuits) == 0 {
		l.cutNext[d] = n
	}
	for c := range l.circuits {
		f := &c.flows[d]
		f.cut = f.written + n
	}
}

func (l *Link) now() time.Duration { return time.Since(l.epoch) }

// settle accounts for everything up to now, before a lane changes.
func (l *Link) settle() {
	now := l.now()
	for d := range l.lanes {
		l.lanes[d].advance(now)
		l.lanes[d].settle(now)
	}
}

func (l *Link) wakeAll() {
	for c := range l.circuits {
		c.wake()
	}
}

// circuit is one connection across the link: a flow each way. Guarded by Link.mu.
type circuit struct {
	link  *Link
	flows [2]flow
	err   error  // why it died
	wake  func() // makes whoever waits look again; called with Link.mu held
}

func (l *Link) openLocked(wake func()) *circuit {
	c := &circuit{link: l, wake: wake}
	for d := range c.flows {
		f := &c.flows[d]
		f.lane, f.link = &l.lanes[d], l
		f.hole = f.lane.hole
		f.cut, l.cutNext[d] = l.cutNext[d], 0
	}
	l.circuits[c] = struct{}{}
	return c
}

// update accounts for both flows up to now and lets a cut take effect.
func (c *circuit) update(now time.Duration) {
	for d := range c.flows {
		f := &c.flows[d]
		f.lane.advance(now)
		f.arrive(now)
		if f.cut > 0 && f.arrived >= f.cut {
			c.kill(now, syscall.ECONNRESET)
		}
	}
}

// dies returns when a cut will take effect, as far as one can tell now.
func (c *circuit) dies() time.Duration {
	at := never
	for d := range c.flows {
		if f := &c.flows[d]; f.cut > 0 && f.written >= f.cut {
			at = min(at, f.arrival(f.cut))
		}
	}
	return at
}

// kill ends the connection. Bytes that have not arrived never will.
func (c *circuit) kill(now time.Duration, err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for d := range c.flows {
		f := &c.flows[d]
		f.lane.advance(now)
		f.arrive(now)
		f.lane.drop(f, now)
	}
	delete(c.link.circuits, c)
	c.wake()
}
