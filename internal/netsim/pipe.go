package netsim

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Pipe returns the two ends of a connection across the link, in memory.
func (l *Link) Pipe() (client, server *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client, server = newConn(l, "client"), newConn(l, "server")
	client.peer, server.peer = server, client
	c := l.openLocked(func() {
		client.wakeLocked()
		server.wakeLocked()
	})
	client.circuit, client.out, client.in = c, &c.flows[Up], &c.flows[Down]
	server.circuit, server.out, server.in = c, &c.flows[Down], &c.flows[Up]
	return client, server
}

// Conn is an end of an in-memory connection. It is a net.Conn; calls of Read
// wait for each other, and so do calls of Write.
type Conn struct {
	link    *Link
	peer    *Conn
	circuit *circuit
	in, out *flow
	name    addr
	closed  bool // guarded by link.mu

	reader, writer waiter
}

var _ net.Conn = (*Conn)(nil)

func newConn(l *Link, name addr) *Conn {
	return &Conn{link: l, name: name, reader: newWaiter(), writer: newWaiter()}
}

// waiter is whoever is inside Read or Write. The fields but turn are guarded by
// Link.mu, except while waiting in wait.
type waiter struct {
	turn     chan struct{} // a mutex that counts as idle in a synctest bubble
	poke     chan struct{}
	timer    *time.Timer
	idle     bool // waiting, and not for an instant
	deadline time.Time
}

func newWaiter() waiter {
	t := time.NewTimer(never)
	t.Stop()
	return waiter{turn: make(chan struct{}, 1), poke: make(chan struct{}, 1), timer: t}
}

// wait lets go of the link until at, or until woken.
func (w *waiter) wait(l *Link, now, at time.Duration) {
	if !w.deadline.IsZero() {
		at = min(at, w.deadline.Sub(l.epoch))
	}
	w.idle = at == never
	if !w.idle {
		w.timer.Reset(at - now)
	}
	l.mu.Unlock()
	select {
	case <-w.timer.C:
	case <-w.poke:
	}
	l.mu.Lock()
	w.idle = false
	w.timer.Stop()
}

// wake makes the waiter look again, now.
func (w *waiter) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// wakeAt makes an idle waiter look again at an instant, without running before.
func (w *waiter) wakeAt(now, at time.Duration) {
	switch {
	case !w.idle || at == never:
	case at <= now:
		w.wake()
	default:
		w.timer.Reset(at - now)
	}
}

func (w *waiter) expired() bool { return !w.deadline.IsZero() && !time.Now().Before(w.deadline) }

func (c *Conn) wakeLocked() {
	c.reader.wake()
	c.writer.wake()
}

// Read implements net.Conn. It waits for as much of p as arrives within half a
// millisecond or was written at once, so that few calls move large data.
func (c *Conn) Read(p []byte) (int, error) {
	c.reader.turn <- struct{}{}
	defer func() { <-c.reader.turn }()
	l, f := c.link, c.in
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := l.now()
		c.circuit.update(now)
		at := f.due(int64(len(p)))
		switch {
		case c.closed:
			return 0, c.fail("read", net.ErrClosed)
		case c.reader.expired():
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		case len(p) == 0:
			return 0, nil
		case f.arrived > f.read && (at <= now || at == never):
			return c.take(p, now), nil
		case c.circuit.err != nil:
			return 0, c.fail("read", c.circuit.err)
		case f.eof && f.read == f.written && now >= f.fin:
			return 0, io.EOF
		case f.eof && f.read == f.written:
			at = f.fin
		}
		c.reader.wait(l, now, min(at, c.circuit.dies()))
	}
}

// take copies what has arrived into p.
func (c *Conn) take(p []byte, now time.Duration) (n int) {
	l, f := c.link, c.in
	for n < len(p) && f.read < f.arrived {
		m := copy(p[n:], f.data(f.arrived-f.read))
		f.shrink(l, m)
		f.read += int64(m)
		n += m
	}
	// A sender waits either for the lane or for this.
	if w := &c.peer.writer; w.idle && f.room(now) >= f.lane.queue/4 {
		w.wake()
	}
	return n
}

// Write implements net.Conn. It returns when all of p is in the link's queue.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writer.turn <- struct{}{}
	defer func() { <-c.writer.turn }()
	l, f := c.link, c.out
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := l.now()
		c.circuit.update(now)
		at := never
		switch {
		case c.closed || f.eof:
			return n, c.fail("write", net.ErrClosed)
		case c.writer.expired():
			return n, c.fail("write", os.ErrDeadlineExceeded)
		case c.circuit.err != nil:
			return n, c.fail("write", c.circuit.err)
		case f.gone && now >= f.reset:
			return n, c.fail("write", syscall.EPIPE)
		case n == len(p):
			return n, nil
		case f.gone:
			at = f.reset
		}
		// Some room is not worth a call unless it takes all that is left.
		want := min(int64(len(p)-n), f.lane.queue/4)
		if room := f.room(now); room >= want {
			n += c.put(p[n:min(int64(len(p)), int64(n)+room)], now)
			continue
		}
		c.writer.wait(l, now, min(at, f.roomAt(want), c.circuit.dies()))
	}
}

// put takes p into the flow, or as much of it as does not get lost.
func (c *Conn) put(p []byte, now time.Duration) int {
	l, f := c.link, c.out
	n := len(p)
	if f.cut > 0 {
		p = p[:min(int64(n), f.cut-f.written)]
	}
	if f.hole || f.gone {
		p = nil
	}
	f.lost += int64(n - len(p))
	if len(p) == 0 {
		return n
	}
	for rest := p; len(rest) > 0; {
		m := copy(f.space(l), rest)
		f.grow(m)
		rest = rest[m:]
	}
	f.push(int64(len(p)), now)
	f.arrive(now)
	if f.cut > 0 && f.written == f.cut {
		c.circuit.wake() // the end can be foreseen
	}
	c.peer.reader.wakeAt(now, f.due(never.Nanoseconds()))
	return n
}

// CloseWrite lets the peer read what was written and then the end of the file.
func (c *Conn) CloseWrite() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.finish(c.link.now())
	return nil
}

func (c *Conn) finish(now time.Duration) {
	f := c.out
	if !f.eof {
		f.eof, f.fin = true, now+f.lane.delay
		c.peer.reader.wake()
		c.writer.wake()
	}
}

// Close implements net.Conn. What was written still arrives; what the peer
// writes after it has heard of this fails.
func (c *Conn) Close() error {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	now := l.now()
	c.closed = true
	c.finish(now)
	c.in.gone, c.in.reset = true, now+c.out.lane.delay
	c.in.lane.advance(now)
	c.in.lane.drop(c.in, now)
	c.in.clear(l)
	if c.peer.closed {
		c.out.clear(l)
		delete(l.circuits, c.circuit)
	}
	c.wakeLocked()
	c.peer.writer.wake()
	return nil
}

// Cut resets the connection at once, as Link.Cut does.
func (c *Conn) Cut() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.circuit.kill(c.link.now(), syscall.ECONNRESET)
}

func (c *Conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "netsim", Source: c.name, Addr: c.peer.name, Err: err}
}

func (c *Conn) LocalAddr() net.Addr  { return c.name }
func (c *Conn) RemoteAddr() net.Addr { return c.peer.name }

// SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.reader, &c.writer)
}

func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.reader) }

func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writer) }

func (c *Conn) setDeadlines(t time.Time, waiters ...*waiter) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	for _, w := range waiters {
		w.deadline = t
		w.wake()
	}
	return nil
}

// addr names an end.
type addr string

func (addr) Network() string  { return "netsim" }
func (a addr) String() string { return string(a) }
