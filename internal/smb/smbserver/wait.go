package smbserver

import "github.com/pagewire/pagewire/internal/smb/ntstatus"

// await makes a request wait until ready is closed. It is then served once more,
// and until then nothing of it may have been done.
func (r *request) await(ready <-chan struct{}) ntstatus.Status {
	if r.asyncID == 0 && r.x.c.crowded() {
		return ntstatus.InsufficientResources
	}
	r.block = ready
	return ntstatus.Pending
}

// suspend lets an exchange wait, in a goroutine of its own, for what its request r
// is blocked by. The client hears of that in an interim reply, even if others of the
// same compound have been served already: their replies come with that to r. It may
// cancel r, which then fails, while those behind it are served.
func (x *exchange) suspend(r *request) {
	ready := r.block
	r.block, r.again = nil, true
	first := r.asyncID == 0
	if first {
		r.asyncID = x.c.srv.nextID()
	}
	gone := make(chan struct{})
	end := func(status ntstatus.Status) {
		r.ended = status
		close(gone)
	}
	c := x.c // whoever ends the wait has lost the exchange by that
	p := &pending{asyncID: r.asyncID, session: r.session}
	p.finish = func(status ntstatus.Status) {
		end(status)
		c.bg.Done()
	}
	// It can be cancelled from before the client knows that it may.
	if !c.wait(r.hdr.MessageID, p) {
		end(ntstatus.Cancelled)
	}
	if first {
		// With it go the notices that the reply has held up: what the compound
		// has been granted so far may have to be given up for r to go on.
		out, b := x.out, x.b
		x.interim(r)
		x.out, x.b = out, b
	}
	c.bg.Go(func() {
		select {
		case <-gone:
		case <-ready:
			if c.take(func(_ uint64, q *pending) bool { return p == q }) != nil {
				c.bg.Done()
			} else {
				<-gone // somebody has been faster
			}
		}
		if err := x.resume(); err != nil {
			c.abort(err)
		}
	})
}
