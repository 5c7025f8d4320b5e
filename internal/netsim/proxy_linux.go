package netsim

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Proxy is a TCP server on loopback that forwards every connection to another
// server across the link, in real time. It has two goroutines: one accepts and
// dials, the other is bound to a thread of its own, where it moves all bytes
// and waits for their instants with a kernel timer, which is finer than the
// runtime's. Connecting is not delayed, only bytes are. Close ends both.
type Proxy struct {
	link     *Link
	target   string
	listener net.Listener
	poller   poller
	done     sync.WaitGroup

	opened chan [2]int // descriptors of client and server, for the mover

	// Guarded by link.mu.
	closing bool
	report  Report

	pairs map[*pair]struct{} // owned by the mover
}

// Report says what a Proxy achieved.
type Report struct {
	Carried [2]int64         // bytes delivered in each direction
	Span    [2]time.Duration // from the first of them to the last
	// Late is how much later than due bytes were moved, on average and at worst,
	// on top of the delay of the link.
	Late, Latest time.Duration
	wakes        int64
	first        [2]time.Duration
}

func (r *Report) carry(d Direction, n int, now time.Duration) {
	if r.Carried[d] == 0 {
		r.first[d] = now
	}
	r.Carried[d] += int64(n)
	r.Span[d] = now - r.first[d]
}

// Rate returns the bits a second that were delivered in a direction.
func (r Report) Rate(d Direction) float64 {
	return 8 * float64(r.Carried[d]) / max(r.Span[d], 1).Seconds()
}

// Proxy starts a proxy in front of the TCP server at target.
func (l *Link) Proxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	poller, err := newPoller()
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("netsim: %w", err)
	}
	p := &Proxy{
		link:     l,
		target:   target,
		listener: listener,
		poller:   poller,
		opened:   make(chan [2]int, 16),
		pairs:    map[*pair]struct{}{},
	}
	p.done.Go(p.accept)
	p.done.Go(p.move)
	return p, nil
}

// Addr returns the address to connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Report returns what was achieved so far.
func (p *Proxy) Report() Report {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	r := p.report
	r.Late /= time.Duration(max(r.wakes, 1))
	return r
}

// Close resets all connections and waits for the goroutines.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.link.mu.Lock()
	p.closing = true
	p.link.mu.Unlock()
	p.poller.wake()
	p.done.Wait()
	p.poller.close()
	return err
}

func (p *Proxy) accept() {
	defer close(p.opened)
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.limit(Up, client)
		p.limit(Down, server)
		var fds [2]int
		if fds[0], err = detach(client); err == nil {
			if fds[1], err = detach(server); err == nil {
				p.opened <- fds
				p.poller.wake()
			} else {
				syscall.Close(fds[0])
			}
		}
	}
}

// limit keeps the kernel from adding much of a queue of its own to a link that
// has a rate.
func (p *Proxy) limit(d Direction, src net.Conn) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if p.link.lanes[d].rate > 0 {
		src.(*net.TCPConn).SetReadBuffer(minQueue)
	}
}

// detach takes a connection's socket away from the runtime's poller, which
// would otherwise wake up for it as well.
func detach(c net.Conn) (fd int, err error) {
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(old uintptr) {
		var errno syscall.Errno
		var n uintptr
		if n, _, errno = syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0); errno != 0 {
			err = errno
		}
		fd = int(n)
	})
	if cerr != nil {
		return 0, cerr
	}
	return fd, err
}

// pair is a connection through the proxy. Owned by the mover.
type pair struct {
	circuit *circuit
	socks   [2]sock // the client's, the server's
}

// sock is one socket, readiness being what the last call has left to try.
type sock struct {
	fd                 int
	readable, writable bool
	shut               bool // nothing more will be written
}

// move is the mover: it sleeps until an instant or an event and moves what can
// be moved.
func (p *Proxy) move() {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	byFD := map[int]*pair{}
	events := make([]syscall.EpollEvent, 64)
	for at := never; ; {
		for _, e := range p.poller.wait(events, at, p.link) {
			pr := byFD[int(e.Fd)]
			if pr == nil {
				continue
			}
			for i := range pr.socks {
				if s := &pr.socks[i]; s.fd == int(e.Fd) {
					s.readable = s.readable || e.Events&^syscall.EPOLLOUT != 0
					s.writable = s.writable || e.Events&^(syscall.EPOLLIN|syscall.EPOLLRDHUP) != 0
				}
			}
		}
		p.late(at)
		p.adopt(byFD)
		at = never
		closing := p.isClosing()
		for pr := range p.pairs {
			if closing {
				pr.kill(syscall.ECONNRESET)
			}
			next, open := p.turn(pr)
			at = min(at, next)
			if closing && open {
				pr.close()
			}
			if closing || !open {
				for _, s := range pr.socks {
					delete(byFD, s.fd)
				}
				delete(p.pairs, pr)
			}
		}
		if closing {
			for fds := range p.opened {
				syscall.Close(fds[0])
				syscall.Close(fds[1])
			}
			return
		}
	}
}

func (p *Proxy) isClosing() bool {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	return p.closing
}

// late notes how late it is for what was to happen at an instant.
func (p *Proxy) late(at time.Duration) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	if d := p.link.now() - at; d >= 0 && at > 0 {
		p.report.wakes++
		p.report.Late += d
		p.report.Latest = max(p.report.Latest, d)
	}
}

// adopt takes over the connections that were accepted since.
func (p *Proxy) adopt(byFD map[int]*pair) {
	for {
		select {
		case fds, ok := <-p.opened:
			if !ok {
				return
			}
			pr := &pair{socks: [2]sock{{fd: fds[0]}, {fd: fds[1]}}}
			p.link.mu.Lock()
			pr.circuit = p.link.openLocked(p.poller.wake)
			p.link.mu.Unlock()
			p.pairs[pr] = struct{}{}
			for _, fd := range fds {
				byFD[fd] = pr
				if err := p.poller.add(fd); err != nil {
					pr.kill(err)
				}
			}
		default:
			return
		}
	}
}

// turn moves what a connection can move now. It returns when to look again, and
// whether the connection still exists.
func (p *Proxy) turn(pr *pair) (at time.Duration, open bool) {
	at = never
	for d := range pr.circuit.flows {
		src, dst := &pr.socks[d], &pr.socks[1-d]
		p.fill(pr, Direction(d), src)
		p.drain(pr, Direction(d), dst)
	}
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := pr.circuit
	c.update(now)
	at = c.dies()
	for d := range c.flows {
		f, src, dst := &c.flows[d], &pr.socks[d], &pr.socks[1-d]
		switch {
		case f.read == f.written && f.eof && !dst.shut:
			at = min(at, f.fin)
		case f.read < f.written && dst.writable:
			at = min(at, f.due(f.lane.grain))
		}
		switch {
		case !src.readable || f.eof || f.cut > 0 && f.written == f.cut:
		case f.intake(now) > 0:
			at = 0
		default:
			at = min(at, f.roomAt(f.want()))
		}
	}
	dead := c.err != nil && c.flows[Up].read == c.flows[Up].arrived && c.flows[Down].read == c.flows[Down].arrived
	stuck := c.err != nil && !(pr.socks[0].writable && pr.socks[1].writable)
	if dead || stuck || pr.socks[0].shut && pr.socks[1].shut {
		pr.close()
		return never, false
	}
	if c.err != nil {
		at = 0
	}
	return at, true
}

// want is the room for which reading from a socket is worth a call.
func (f *flow) want() int64 { return min(f.lane.queue/4, blockSize) }

// intake returns how much to read from the socket now.
func (f *flow) intake(now time.Duration) int64 {
	room := f.room(now)
	if f.cut > 0 && f.written+room >= f.cut {
		return f.cut - f.written
	}
	if room < f.want() {
		return 0
	}
	return room
}

// fill reads from a socket into its flow.
func (p *Proxy) fill(pr *pair, d Direction, src *sock) {
	l, c := p.link, pr.circuit
	f := &c.flows[d]
	// What other connections and this one's other direction have due must not
	// wait for more than a few calls.
	for range 4 {
		l.mu.Lock()
		now := l.now()
		c.update(now)
		room := f.intake(now)
		if !src.readable || f.eof || c.err != nil || room == 0 {
			l.mu.Unlock()
			return
		}
		buf := f.space(l)
		l.mu.Unlock()

		n, err := syscall.Read(src.fd, buf[:min(int64(len(buf)), room)])

		l.mu.Lock()
		now = l.now()
		f.lane.advance(now)
		switch {
		case n > 0 && f.hole:
			f.lost += int64(n)
		case n > 0:
			f.grow(n)
			f.push(int64(n), now)
		case n == 0:
			f.eof, f.fin = true, now+f.lane.delay
		case err == syscall.EAGAIN:
			src.readable = false
		case err != syscall.EINTR:
			c.kill(now, err)
		}
		l.mu.Unlock()
		if n <= 0 {
			return
		}
	}
}

// drain writes what has arrived from a flow to its socket, if that is worth it
// yet.
func (p *Proxy) drain(pr *pair, d Direction, dst *sock) {
	l, c := p.link, pr.circuit
	f := &c.flows[d]
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c.update(now)
	if at := f.due(f.lane.grain); now < at && at < never {
		return
	}
	for end := f.arrived; f.read < end && dst.writable && !dst.shut; {
		buf := f.data(end - f.read)
		l.mu.Unlock()
		n, err := syscall.Write(dst.fd, buf)
		l.mu.Lock()
		switch {
		case n > 0:
			f.shrink(l, n)
			f.read += int64(n)
			p.report.carry(d, n, l.now())
		case err == syscall.EAGAIN:
			dst.writable = false
		case err != syscall.EINTR:
			c.kill(now, err)
			f.read = f.arrived // nobody is there to take it
			return
		}
	}
	if f.eof && f.read == f.written && now >= f.fin && c.err == nil && !dst.shut {
		syscall.Shutdown(dst.fd, syscall.SHUT_WR)
		dst.shut = true
	}
}

func (pr *pair) kill(err error) {
	l := pr.circuit.link
	l.mu.Lock()
	defer l.mu.Unlock()
	pr.circuit.kill(l.now(), err)
}

// close lets go of the sockets, with a reset if the connection was killed.
// Link.mu is held.
func (pr *pair) close() {
	c := pr.circuit
	for _, s := range pr.socks {
		if c.err != nil {
			syscall.SetsockoptLinger(s.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		}
		syscall.Close(s.fd)
	}
	for d := range c.flows {
		c.flows[d].clear(c.link)
	}
	delete(c.link.circuits, c)
}

// poller waits for sockets, an instant or a call of wake, whichever is first.
type poller struct{ epoll, timer, event int }

func newPoller() (poller, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return poller{}, err
	}
	const monotonic = 1 // CLOCK_MONOTONIC
	timer, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		syscall.Close(epoll)
		return poller{}, errno
	}
	event, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		syscall.Close(epoll)
		syscall.Close(int(timer))
		return poller{}, errno
	}
	p := poller{epoll, int(timer), int(event)}
	for _, fd := range []int{p.timer, p.event} {
		if err := p.add(fd); err != nil {
			p.close()
			return poller{}, err
		}
	}
	return p, nil
}

// add reports a descriptor each time it becomes ready, not as long as it is.
func (p poller) add(fd int) error {
	const edge = 1 << 31 // EPOLLET, which package syscall has as a negative number
	return syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{
		Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edge,
		Fd:     int32(fd),
	})
}

func (p poller) close() {
	syscall.Close(p.epoll)
	syscall.Close(p.timer)
	syscall.Close(p.event)
}

func (p poller) wake() { syscall.Write(p.event, []byte{7: 1}) }

// spin is how long before an instant waiting in the kernel is no longer worth
// it: waking up takes about as long.
const spin = 20 * time.Microsecond

// wait returns what has become ready.
func (p poller) wait(events []syscall.EpollEvent, at time.Duration, l *Link) []syscall.EpollEvent {
	timeout := -1
	if at != never {
		d := at - l.now()
		if d > spin {
			// interval, value: one shot, relative
			value := [2]syscall.Timespec{1: syscall.NsecToTimespec((d - spin).Nanoseconds())}
			syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, uintptr(p.timer), 0, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
		} else {
			timeout = 0
		}
	}
	n, _ := syscall.EpollWait(p.epoll, events, timeout)
	if n == 1 && int(events[0].Fd) == p.timer {
		n = 0
	}
	for d := at - l.now(); n == 0 && 0 < d && d <= spin; d = at - l.now() {
	}
	return events[:max(n, 0)]
}
