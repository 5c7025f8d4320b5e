package smbconn

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// source reads frames from the transport. Heads come through a small buffer,
// so that a small reply costs one system call; payloads go past it, straight
// into the caller's memory. It belongs to the reader goroutine.
type source struct {
	nc    net.Conn
	raw   syscall.RawConn // nil: no system socket, payloads take a detour
	alive func()          // called whenever bytes arrive
	buf   []byte
	r, w  int

	// What readable works on; fields, so that the closure is made once.
	readable func(fd uintptr) bool
	sink     *Call
	left     int64
	low      sync.Mutex
	lowat    int64 // guarded by low; see wakeAt; 0: as the system has it
	n        int
	err      error
	waste    []byte // for payloads nobody waits for any more
	drop     [1][]byte
}

func newSource(nc net.Conn, alive func()) *source {
	s := &source{nc: nc, alive: alive, buf: make([]byte, 16<<10), waste: make([]byte, 64<<10)}
	if sc, ok := nc.(syscall.Conn); ok && canReadv {
		s.raw, _ = sc.SyscallConn()
	}
	s.readable = s.readNow
	return s
}

// full fills p.
func (s *source) full(p []byte) error {
	for len(p) > 0 {
		if s.r == s.w {
			dst := s.buf
			if len(p) >= len(dst) {
				dst = p
			}
			n, err := s.nc.Read(dst)
			if n == 0 && err != nil {
				return err
			}
			s.alive()
			if len(p) >= len(s.buf) {
				p = p[n:]
				continue
			}
			s.r, s.w = 0, n
		}
		n := copy(p, s.buf[s.r:s.w])
		s.r += n
		p = p[n:]
	}
	return nil
}

// payload moves n bytes into call's buffers, as long as its caller waits for
// them. The call's lock is held only while bytes that are here are moved.
func (s *source) payload(call *Call, n int64) error {
	for n > 0 && s.r < s.w {
		p := s.buf[s.r:min(s.w, s.r+int(min(n, int64(s.w-s.r))))]
		call.place(p)
		s.r += len(p)
		n -= int64(len(p))
	}
	for n > 0 && s.raw == nil {
		got, err := s.nc.Read(s.buf[:min(n, int64(len(s.buf)))])
		if got == 0 && err != nil {
			return err
		}
		s.alive()
		call.place(s.buf[:got])
		n -= int64(got)
	}
	for n > 0 {
		s.sink, s.left, s.n, s.err = call, n, 0, nil
		if err := s.raw.Read(s.readable); err != nil {
			return err
		}
		if s.err != nil {
			return s.err
		}
		s.alive()
		n -= int64(s.n)
	}
	return nil
}

// readNow reads without blocking; false waits until the socket is readable.
func (s *source) readNow(fd uintptr) bool {
	c := s.sink
	c.mu.Lock()
	defer c.mu.Unlock()
	dst := c.room(s.left)
	if dst == nil {
		s.drop[0] = s.waste[:min(s.left, int64(len(s.waste)))]
		dst = s.drop[:]
	}
	for {
		n, err := readv(int(fd), dst)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if s.left >= wakeLeast {
				s.wakeAt(int(fd), min(s.left, wakeMost))
			}
			return false
		case err != nil:
			n = 0
		case n == 0:
			err = io.ErrUnexpectedEOF
		}
		c.advance(n)
		s.n, s.err = n, err
		s.left -= int64(n)
		s.relaxAbove(int(fd), s.left)
		return true
	}
}

// wakeMost is how much of a payload may gather in the socket before it wakes the
// reader: fewer wakes, each for more, cost less than many. A socket without room
// for so much wakes it all the same.
const wakeLeast, wakeMost = 128 << 10, 1 << 20

// wakeAt makes the socket wake its reader when n bytes are there.
func (s *source) wakeAt(fd int, n int64) {
	s.low.Lock()
	defer s.low.Unlock()
	if s.lowat != n {
		s.lowat = n
		setLowWater(fd, int(n))
	}
}

// relaxAbove makes it wake him for any byte, if it would wait for more than n.
func (s *source) relaxAbove(fd int, n int64) {
	s.low.Lock()
	defer s.low.Unlock()
	if s.lowat > n {
		s.lowat = 1
		setLowWater(fd, 1)
	}
}

// relax does so in any case, lest what a slow link brings look like silence. Any
// goroutine may call it.
func (s *source) relax() {
	if s.raw != nil {
		s.raw.Control(func(fd uintptr) { s.relaxAbove(int(fd), 1) })
	}
}
