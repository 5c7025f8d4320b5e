package smbconn

import (
	"io"
	"net"
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
			return false
		case err != nil:
			n = 0
		case n == 0:
			err = io.ErrUnexpectedEOF
		}
		c.advance(n)
		s.n, s.err = n, err
		return true
	}
}
