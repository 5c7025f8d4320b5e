package smbconn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// Body is a request's body: what follows its header.
type Body interface{ Append([]byte) []byte }

// Call is one request and its reply. The caller sets the upper fields, Do
// fills the lower ones. After Do returned without an error the Call may be
// used again; after an error it is the connection's and must be dropped, but
// for Sent, which is zero if the server will never see the request.
type Call struct {
	Command smb2msg.Command
	TreeID  uint32
	Body    Body
	Out     [][]byte    // bytes after the body: the payload of a WRITE
	Into    [][]byte    // where the payload of a READ goes
	Charge  int         // credits; 0 counts as 1
	Seal    bool        // the share demands it
	Sign    bool        // sign even where the connection does not need it
	Late    func(*Call) // told of a reply that came after the caller gave up

	Header smb2msg.Header // of the reply
	N      int            // payload bytes placed in Into

	// When the request went out, the first byte of its reply came, and the last.
	Sent, First, Done time.Time

	frame []byte // the request as sent, without Out
	pad   []byte // what follows Out before the next of a compound
	reply []byte // the reply from its header on, without what went to Into

	self    [1]*Call // the compound of this call alone
	mid     uint64
	asyncID atomic.Uint64
	charge  int       // as paid for
	sec     *Security // how the request was protected, and so how its reply must be
	in, out int64     // lengths of Into and Out, which are the caller's again when he leaves
	settled bool      // the charge is booked; owned by the reader goroutine

	mu     sync.Mutex
	gone   bool // the caller has given up; guarded by mu, like all below
	ready  bool
	err    error
	seg    int // Into[seg][off:] is what comes next
	off    int
	iov    [8][]byte
	signal chan struct{}
}

// Reply is the reply from its header on. A READ's payload is not in it when it
// went to Into. It is valid until the Call is used again.
func (c *Call) Reply() []byte { return c.reply }

// Request is the request as sent, from its header on, for the hashes that
// bind a negotiation together.
func (c *Call) Request() []byte { return c.frame }

// reset makes a Call ready to be sent.
func (c *Call) reset() {
	if c.signal == nil {
		c.signal = make(chan struct{}, 1)
	}
	c.Charge = max(c.Charge, 1)
	c.N, c.seg, c.off = 0, 0, 0
	c.gone, c.ready, c.settled, c.err = false, false, false, nil
	c.Sent = time.Time{}
	c.asyncID.Store(0)
}

// sealed says that both the request and its reply travel sealed.
func (c *Call) sealed() bool { return c.sec.Seal || c.Seal && c.sec.Sealer != nil }

// signed says that both travel signed, unless they are sealed.
func (c *Call) signed() bool { return c.sec.Signer != nil && (c.sec.Sign || c.Sign) }

// room returns buffers for the next n bytes at most, nil when the caller has
// them back. mu is held.
func (c *Call) room(n int64) [][]byte {
	if c.gone {
		return nil
	}
	iov, off := c.iov[:0], c.off
	for _, p := range c.Into[c.seg:] {
		if n == 0 || len(iov) == cap(iov) {
			break
		}
		p = p[off:]
		p = p[:min(int64(len(p)), n)]
		n -= int64(len(p))
		off = 0
		if len(p) > 0 {
			iov = append(iov, p)
		}
	}
	return iov
}

// advance records that n bytes arrived in room's buffers. mu is held.
func (c *Call) advance(n int) {
	c.N += n
	for n > 0 && c.seg < len(c.Into) {
		step := min(n, len(c.Into[c.seg])-c.off)
		c.off += step
		n -= step
		if c.off == len(c.Into[c.seg]) {
			c.seg, c.off = c.seg+1, 0
		}
	}
}

// place copies bytes that arrived elsewhere.
func (c *Call) place(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		dst := c.room(int64(len(p)))
		if len(dst) == 0 {
			return
		}
		for _, d := range dst {
			n := copy(d, p)
			c.advance(n)
			p = p[n:]
		}
	}
}

// finish hands the Call back to its caller; late says that he has left.
func (c *Call) finish(err error) (late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return true
	}
	c.ready, c.err = true, err
	c.signal <- struct{}{}
	return false
}

// wait waits for the reply. When ctx ends first the buffers are the caller's
// again at once, and left says that the reply is still to come.
func (c *Call) wait(ctx context.Context) (left bool, err error) {
	select {
	case <-c.signal:
		return false, c.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		<-c.signal
		return false, c.err
	}
	c.gone = true
	return true, ctx.Err()
}
