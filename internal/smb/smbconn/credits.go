package smbconn

import (
	"context"
	"errors"
	"sync"
)

// ErrCredits says that all the credits there are do not pay for a request.
// Nothing of it was sent.
var ErrCredits = errors.New("server granted too few credits")

// credits is the one accountant of a connection: it hands out credits together
// with the MessageIds they pay for. See [MS-SMB2] 3.2.4.1.2 to 3.2.4.1.6.
//
// A grant is final: whoever holds MessageIds must send them, for the server
// waits for each. Requests queue in order, so a large one is not starved by
// small ones. Nobody waits for credits that may never come: when all credits
// there are do not pay for a request, it gets what there is, or ErrCredits.
type credits struct {
	mu      sync.Mutex
	balance int // may be spent now; guarded by mu, like all below
	out     int // spent on requests the server has not answered
	next    uint64
	queue   []*claim
	dead    error
	peak    int // the most that balance and out ever were together
	target  int // how many the client would like to hold
}

// claim is a request for credits: want, or at least need.
type claim struct {
	want, need int
	got        int
	first      uint64
	err        error
	ready      chan struct{}
}

// take waits for credits: want of them, or at least need when the connection
// has no more. It returns how many it got and the first MessageId they pay for.
func (c *credits) take(ctx context.Context, want, need int) (got int, first uint64, err error) {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return 0, 0, c.dead
	}
	if len(c.queue) == 0 {
		if got, first, ok := c.grantLocked(want, need); ok {
			c.mu.Unlock()
			return got, first, nil
		}
	}
	w := &claim{want: want, need: need, ready: make(chan struct{})}
	c.queue = append(c.queue, w)
	c.wakeLocked() // what cannot be paid for ends at once
	c.mu.Unlock()

	select {
	case <-w.ready:
		return w.got, w.first, w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, q := range c.queue {
		if q == w {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			c.wakeLocked() // the next may fit where this one did not
			return 0, 0, ctx.Err()
		}
	}
	return w.got, w.first, w.err // granted meanwhile: the MessageIds must be used
}

// grantLocked spends credits if there are enough.
func (c *credits) grantLocked(want, need int) (int, uint64, bool) {
	if total := c.balance + c.out; want > total {
		want = max(need, total)
	}
	if c.balance < want {
		return 0, 0, false
	}
	first := c.next
	c.next += uint64(want)
	c.balance -= want
	c.out += want
	return want, first, true
}

// wakeLocked serves the queue in order as far as the balance goes.
func (c *credits) wakeLocked() {
	for len(c.queue) > 0 {
		w := c.queue[0]
		got, first, ok := c.grantLocked(w.want, w.need)
		if !ok {
			if w.need <= c.balance+c.out {
				return
			}
			w.err = ErrCredits
		}
		w.got, w.first = got, first
		c.queue = c.queue[1:]
		close(w.ready)
	}
}

// answered books a reply: granted credits come in, and the charge of the
// request, which the first reply to it settles, is no longer out.
func (c *credits) answered(charge, granted int) {
	c.mu.Lock()
	c.out -= charge
	c.balance += granted
	c.peak = max(c.peak, c.balance+c.out)
	c.wakeLocked()
	c.mu.Unlock()
}

// request says how many credits to ask for in a request that costs charge: as
// many back, and what is missing to the target.
func (c *credits) request(charge int) uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint16(min(charge+max(0, c.target-c.balance-c.out), 0xFFFF))
}

// held is how many credits the connection has, and the most it ever had.
func (c *credits) held() (now, peak int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.balance + c.out, c.peak
}

// fail ends every wait with err, now and later.
func (c *credits) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = err
	for _, w := range c.queue {
		w.err = err
		close(w.ready)
	}
	c.queue = nil
}
