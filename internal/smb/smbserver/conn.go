package smbserver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// conn is one connection. See [MS-SMB2] 3.3.1.7.
type conn struct {
	srv    *Server
	nc     net.Conn
	number int // from 1
	window *window

	queue   chan *exchange // from the reader to the workers
	late    chan *exchange // to the goroutine that delays, nil if there is none
	notices chan notice    // to the goroutine that sends them
	running int            // workers, owned by the reader
	done    chan struct{}  // closed when no more can be read
	bg      sync.WaitGroup

	// terms is what was negotiated, nil before.
	terms atomic.Pointer[terms]

	sending chan struct{} // has one element; whoever took it may send and owns these
	held    []heldFrame
	cut     bool // nothing more is sent

	mu       sync.Mutex
	sessions map[uint64]*session // guarded by mu
	// requests without a final reply, by MessageId: nil unless they wait, or
	// early if they have been cancelled before they did. Guarded by mu; nil
	// once nothing may wait any longer.
	requests map[uint64]*pending
	early    *pending
}

// heldFrame is a reply that goes out after so many others.
type heldFrame struct {
	frame []byte
	after int
}

// pending is a request that waits for something. Whoever takes it out calls
// finish, which so happens once.
type pending struct {
	asyncID uint64
	session *session              // whose end ends the wait, or nil
	open    *open                 // whose CLOSE ends the wait, or nil
	told    chan struct{}         // closed when the interim reply has been sent
	finish  func(ntstatus.Status) // ends in conn.bg.Done, or sees to that
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		srv: s, nc: nc, window: newWindow(s.cfg.Credits, s.cfg.Grant),
		queue:    make(chan *exchange, s.cfg.Credits),
		notices:  make(chan notice, maxNotices),
		done:     make(chan struct{}),
		sending:  make(chan struct{}, 1),
		sessions: map[uint64]*session{},
		requests: map[uint64]*pending{},
		early:    new(pending),
	}
	c.sending <- struct{}{}
	return c
}

// smallFrame is up to which size the reader opens sealed frames, so that their
// requests are known in the order in which they came: a CANCEL finds what it is
// meant for. Larger frames are WRITEs, which nobody waits for long.
const smallFrame = 64 << 10

// serve reads until the connection ends. It returns when nothing of it is left.
func (c *conn) serve() error {
	if c.srv.cfg.Delay > 0 {
		c.late = make(chan *exchange, c.srv.cfg.Credits)
		c.bg.Go(c.delay)
	}
	c.bg.Go(c.sendNotices)
	err := c.read()
	close(c.done)
	c.nc.Close()
	c.endWaits()
	if c.late == nil {
		close(c.queue)
	} else {
		close(c.late)
	}
	c.bg.Wait()
	c.srv.leases.lost(c)
	c.mu.Lock()
	sessions := c.sessions
	c.sessions = nil
	c.mu.Unlock()
	for _, s := range sessions {
		s.end()
	}
	return err
}

func (c *conn) read() error {
	br := bufio.NewReaderSize(c.nc, 16<<10)
	limit := max(c.srv.cfg.MaxWrite, c.srv.cfg.MaxTransact) + smallFrame
	var prefix [4]byte
	for {
		if _, err := io.ReadFull(br, prefix[:]); err != nil {
			return err
		}
		// See [MS-SMB2] 2.1: the first byte is zero for messages.
		n := int(binary.BigEndian.Uint32(prefix[:]))
		if n > limit {
			return fmt.Errorf("frame of %#x bytes", n)
		}
		x := c.newExchange(c.srv.pool.get(n + smbcrypt.TagSize))
		x.frame = x.in.b[:n]
		if _, err := io.ReadFull(br, x.frame); err != nil {
			return err
		}
		if err := c.accept(x); err != nil {
			return err
		}
	}
}

// accept takes a frame as far as the order of frames matters and hands it on.
func (c *conn) accept(x *exchange) error {
	switch smb2msg.ProtocolOf(x.frame) {
	case smb2msg.ProtocolSMB1:
		defer x.release()
		return c.negotiateSMB1(x.frame)
	case smb2msg.ProtocolTransform:
		if len(x.frame) > smallFrame {
			break
		}
		fallthrough
	default:
		if err := x.parse(); err != nil {
			return err
		}
		if len(x.reqs) == 0 {
			x.release()
			return nil // it was a CANCEL
		}
	}
	x.counted = true
	c.srv.stats.arrive()
	if c.late != nil {
		x.due = time.Now().Add(c.srv.cfg.Delay)
		c.late <- x
		return nil
	}
	c.enqueue(x)
	return nil
}

// enqueue is called by the reader, or by the one that delays, if there is one.
func (c *conn) enqueue(x *exchange) {
	c.queue <- x
	if c.running < workers() && len(c.queue) > 0 {
		c.running++
		c.bg.Go(c.work)
	}
}

func (c *conn) work() {
	for x := range c.queue {
		if err := x.serve(); err != nil {
			c.abort(err)
		}
	}
}

// delay holds every frame back for the same time.
func (c *conn) delay() {
	defer close(c.queue)
	for x := range c.late {
		t := time.NewTimer(time.Until(x.due))
		select {
		case <-t.C:
			c.enqueue(x)
		case <-c.done:
			t.Stop()
			x.release()
		}
	}
}

// abort ends the connection.
func (c *conn) abort(err error) {
	if !errors.Is(err, net.ErrClosed) {
		c.srv.cfg.Logger.Debug("ending connection", "conn", c.number, "err", err)
	}
	c.nc.Close()
}

// send sends a frame, its length before it, with what is wrong about it.
func (c *conn) send(frame []byte, f *Fault) error {
	if f.Drop {
		return nil
	}
	if f.Corrupt > 0 {
		frame[min(lengthSize+f.Corrupt-1, len(frame)-1)] ^= 1
	} else if f.Corrupt < 0 {
		frame[max(len(frame)+f.Corrupt, lengthSize)] ^= 1
	}
	<-c.sending
	defer func() { c.sending <- struct{}{} }()
	switch {
	case c.cut:
		return nil
	case f.Hold > 0:
		c.held = append(c.held, heldFrame{append([]byte(nil), frame...), f.Hold})
		return nil
	case f.CutAt > 0:
		c.cut = true
		c.nc.Write(frame[:min(f.CutAt, len(frame))])
		// Closing while the client still sends could take back what it has
		// not read yet.
		if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
			return half.CloseWrite()
		}
		return net.ErrClosed
	}
	_, err := c.nc.Write(frame)
	if f.Duplicate && err == nil {
		_, err = c.nc.Write(frame)
	}
	for i := 0; i < len(c.held) && err == nil; {
		if c.held[i].after--; c.held[i].after > 0 {
			i++
			continue
		}
		_, err = c.nc.Write(c.held[i].frame)
		c.held = append(c.held[:i], c.held[i+1:]...)
	}
	return err
}

// arrived and answered note that a request is there, and no longer.
func (c *conn) arrived(messageID uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests != nil {
		c.requests[messageID] = nil
	}
}

func (c *conn) answered(messageID uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, messageID)
}

// maxWaiting is how many requests of a connection may wait with an interim reply,
// which has given their credits back. Samba allows as many.
const maxWaiting = 512

// crowded reports whether no more requests may wait.
func (c *conn) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.requests {
		if p != nil && p != c.early {
			n++
		}
	}
	return n >= maxWaiting
}

// wait makes a request one that waits, unless it has already been cancelled.
func (c *conn) wait(messageID uint64, p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil || c.requests[messageID] == c.early {
		return false
	}
	c.requests[messageID] = p
	return true
}

// endWaits ends all waits, and lets none begin.
func (c *conn) endWaits() {
	c.mu.Lock()
	requests := c.requests
	c.requests = nil
	for _, p := range requests {
		if p != nil && p != c.early {
			c.bg.Add(1)
		}
	}
	c.mu.Unlock()
	for _, p := range requests {
		if p != nil && p != c.early {
			p.finish(ntstatus.Cancelled)
		}
	}
}

// take ends the wait of a request that match chooses, which only looks. The
// connection is not over before its finish is.
func (c *conn) take(match func(id uint64, p *pending) bool) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeLocked(match)
}

func (c *conn) takeLocked(match func(id uint64, p *pending) bool) *pending {
	for id, p := range c.requests {
		if p != nil && p != c.early && match(id, p) {
			c.requests[id] = nil
			c.bg.Add(1)
			return p
		}
	}
	return nil
}

// cancel ends a request's wait, or sees to it that it will not begin. There is no
// reply to a CANCEL itself. See [MS-SMB2] 3.3.5.16.
func (c *conn) cancel(h *smb2msg.Header) {
	async := h.Flags&smb2msg.FlagAsync != 0
	c.mu.Lock()
	p := c.takeLocked(func(id uint64, p *pending) bool {
		if async {
			return p.asyncID == h.AsyncID
		}
		return id == h.MessageID
	})
	if waiting, there := c.requests[h.MessageID]; p == nil && !async && there && waiting == nil {
		c.requests[h.MessageID] = c.early
	}
	c.mu.Unlock()
	if p != nil {
		p.finish(ntstatus.Cancelled)
	}
}

// closing ends the waits for an open that is being closed.
func (c *conn) closing(o *open) {
	for o.watched.Load() {
		p := c.take(func(_ uint64, p *pending) bool { return p.open == o })
		if p == nil {
			return
		}
		p.finish(ntstatus.NotifyCleanup)
	}
}

// abandon ends the waits of a session that is over.
func (c *conn) abandon(s *session) {
	for {
		p := c.take(func(_ uint64, p *pending) bool { return p.session == s })
		if p == nil {
			return
		}
		p.finish(ntstatus.UserSessionDeleted)
	}
}

func (c *conn) session(id uint64) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// terms is what NEGOTIATE settled. See [MS-SMB2] 3.3.1.7.
type terms struct {
	dialect      smb2msg.Dialect
	multiCredit  bool
	transact     int
	read, write  int
	cipher       smbcrypt.Cipher // 0: none
	signing      smbcrypt.Signing
	capabilities smb2msg.Capabilities
	security     smb2msg.SecurityMode // the server's
	client       smb2msg.NegotiateRequest
	preauth      smbcrypt.Preauth
}

// charge is how many credits h costs.
func (t *terms) charge(h *smb2msg.Header) int {
	if t == nil || !t.multiCredit {
		return 1
	}
	return max(1, int(h.CreditCharge))
}

// pays reports whether a request's credits are enough for n bytes of payload.
// See [MS-SMB2] 3.3.5.2.5.
func (t *terms) pays(h *smb2msg.Header, n int) bool {
	return !t.multiCredit || (max(n, 1)-1)/65536+1 <= max(1, int(h.CreditCharge))
}

var errNotSMB = errors.New("not an SMB2 message")

// negotiateSMB1 answers the NEGOTIATE of a client that also speaks SMB1, and
// ends the connection if SMB2 is not among what it speaks. See [MS-SMB2] 3.3.5.3.1.
func (c *conn) negotiateSMB1(frame []byte) error {
	const headerSize, negotiate = 32, 0x72
	rd := byteio.NewReader(frame)
	rd.Skip(4)
	command := rd.Uint8()
	rd.Skip(headerSize - 5)
	rd.Skip(2 * int64(rd.Uint8()))
	names := string(rd.Bytes(int64(rd.Uint16())))
	if rd.Err() != nil || command != negotiate || c.terms.Load() != nil || !c.window.take(0, 1) {
		return errNotSMB
	}
	dialect := c.srv.multiProtocol(names)
	if dialect == 0 {
		return errors.New("the client speaks no SMB2")
	}
	x := c.newExchange(nil)
	x.reqs = append(x.reqs, request{x: x, charge: 1, hdr: smb2msg.Header{Credits: 1}})
	r := &x.reqs[0]
	x.begin()
	x.startReply(r)
	t := c.srv.settle(dialect, &smb2msg.NegotiateRequest{Dialects: []smb2msg.Dialect{dialect}})
	if dialect != smb2msg.Wildcard {
		c.terms.Store(t)
	}
	x.endReply(r, r.replyNegotiate(t), true)
	return x.finish()
}
