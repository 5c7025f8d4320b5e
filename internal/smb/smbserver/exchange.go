package smbserver

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// exchange is a frame of one or more requests, and the frame that answers it.
// One goroutine at a time has it.
type exchange struct {
	c       *conn
	in      *buffer
	frame   []byte   // in in
	sealer  *session // whose seal the frame was under, nil: none
	reqs    []request
	at      int       // the request that is served
	due     time.Time // when to serve it, if the server delays
	fault   Fault     // of the frame
	counted bool      // in stats.inFlight
	waits   *pending  // the last request is not finished when the frame is
	tells   []*lease  // that the reply tells of
	fatal   error     // ends the connection instead of answering

	out *buffer
	b   []byte // the reply: headroom, then messages; starts in out

	// What requests of a related compound take over from the one before.
	// See [MS-SMB2] 3.3.5.2.7.2.
	related related
}

type related struct {
	session uint64
	tree    uint32
	file    smb2msg.FileID
	status  ntstatus.Status // of the CREATE that was to open file
}

// request is one message of an exchange.
type request struct {
	x       *exchange
	hdr     smb2msg.Header
	msg     []byte
	number  int // of its command, from 1
	charge  int // credits that the reply has to give back
	fault   Fault
	session *session
	tree    *tree
	asyncID uint64 // once there was an interim reply

	// A request that waits for others' leases is served again from its start,
	// which has changed nothing, once block is closed.
	block <-chan struct{}
	again bool
	ended ntstatus.Status // why it is not

	start  int    // of the reply in x.b
	sign   bool   // the reply
	detail []byte // of an error
	after  func(reply []byte)
}

// headroom is what may come before the messages of a reply: the frame's length
// and, if it is sealed, a header for that.
const (
	lengthSize = 4
	headroom   = lengthSize + smbcrypt.TransformSize
	// Where a seal's signature is, for Fault.Corrupt: behind four bytes of ProtocolId.
	sealSignature = 5
)

var (
	errSealed   = errors.New("sealed frame that does not open")
	errWindow   = errors.New("MessageId that is not in the window")
	errReply    = errors.New("reply from a client")
	errFirst    = errors.New("request before NEGOTIATE")
	errSessions = errors.New("sealed for another session")
)

func (c *conn) newExchange(in *buffer) *exchange {
	x, ok := c.srv.spare.Get().(*exchange)
	if !ok {
		x = new(exchange)
	}
	*x = exchange{c: c, in: in, reqs: x.reqs[:0]}
	return x
}

// release gives an exchange back when nothing needs it any longer.
func (x *exchange) release() {
	x.uncount()
	x.told()
	x.in.free()
	x.out.free()
	clear(x.reqs)
	x.c.srv.spare.Put(x)
}

// parse opens the frame if it is sealed, cuts it into requests and uses their
// MessageIds. An error ends the connection. See [MS-SMB2] 3.3.5.2.
func (x *exchange) parse() error {
	rest := x.frame
	if smb2msg.ProtocolOf(rest) == smb2msg.ProtocolTransform {
		id, _ := smbcrypt.SealedFor(x.frame)
		s := x.c.session(id)
		if s == nil || !s.ready.Load() || s.sealer == nil {
			return errSealed
		}
		var err error
		if rest, err = s.sealer.Open(x.frame); err != nil {
			return err
		}
		x.sealer = s
		s.seals.Store(true)
		x.c.srv.stats.sealed.Add(1)
	}
	terms := x.c.terms.Load()
	for more := true; more; {
		msg, next, err := smb2msg.Next(rest)
		if err != nil {
			return err
		}
		rest, more = next, len(next) > 0
		r := request{x: x, msg: msg}
		rd := byteio.NewReader(msg)
		switch err := r.hdr.Decode(&rd); {
		case err != nil:
			return err
		case r.hdr.Flags&smb2msg.FlagServerToRedir != 0:
			return errReply
		case r.hdr.Command == smb2msg.CommandCancel:
			x.c.srv.stats.requests[smb2msg.CommandCancel].Add(1)
			x.c.cancel(&r.hdr)
			continue
		}
		r.charge = terms.charge(&r.hdr)
		if !x.c.window.take(r.hdr.MessageID, r.charge) {
			return errWindow
		}
		x.c.arrived(r.hdr.MessageID)
		if int(r.hdr.Command) < len(x.c.srv.stats.requests) {
			r.number = int(x.c.srv.stats.requests[r.hdr.Command].Add(1))
		}
		x.reqs = append(x.reqs, r)
	}
	return nil
}

// serve does what the frame asks for. It is the workers' job.
func (x *exchange) serve() error {
	if len(x.reqs) == 0 {
		if err := x.parse(); err != nil {
			return err
		}
		if len(x.reqs) == 0 {
			x.release()
			return nil
		}
	}
	if faults := x.c.srv.faults.Load(); faults != nil && x.prepare(*faults) {
		return nil
	}
	return x.run()
}

// run serves the requests one after the other, and sends the reply.
func (x *exchange) run() error {
	x.begin()
	return x.resume()
}

// resume goes on with the requests from where they have come to.
func (x *exchange) resume() error {
	for ; x.at < len(x.reqs); x.at++ {
		r := &x.reqs[x.at]
		x.startReply(r)
		status := r.serve()
		if x.fatal != nil {
			x.uncount()
			x.told()
			return x.fatal
		}
		if r.block != nil {
			x.b = x.b[:r.start]
			x.suspend(r)
			return nil
		}
		x.endReply(r, status, x.at == len(x.reqs)-1)
	}
	return x.finish()
}

// begin makes room for a reply.
func (x *exchange) begin() {
	x.out = x.c.srv.pool.get(headroom)
	x.b = x.out.b[:headroom]
}

// reserve makes room for n more bytes of reply in memory of the pool.
func (x *exchange) reserve(n int) {
	// Behind the reply, sealing needs some bytes.
	if need := len(x.b) + n + smbcrypt.TagSize; need > cap(x.b) {
		old := x.out
		x.out = x.c.srv.pool.get(need)
		x.b = x.out.b[:copy(x.out.b, x.b)]
		old.free()
	}
}

// startReply leaves room for the header of the reply to r.
func (x *exchange) startReply(r *request) {
	r.start = len(x.b)
	x.b = byteio.AppendZero(x.b, smb2msg.HeaderSize)
}

// empty reports whether r's reply has no body yet.
func (r *request) empty() bool { return len(r.x.b) == r.start+smb2msg.HeaderSize }

// endReply completes the reply to r, whose body is there unless the status
// explains its absence. See [MS-SMB2] 3.3.4.1.
func (x *exchange) endReply(r *request, status ntstatus.Status, last bool) {
	if r.empty() {
		x.b = r.failure().Append(x.b)
	}
	h := smb2msg.Header{
		CreditCharge: r.hdr.CreditCharge,
		Status:       status,
		Command:      r.hdr.Command,
		Flags:        smb2msg.FlagServerToRedir | r.hdr.Flags&(smb2msg.FlagRelated|smb2msg.FlagPriorityMask),
		MessageID:    r.hdr.MessageID,
		TreeID:       r.hdr.TreeID,
		SessionID:    r.hdr.SessionID,
	}
	if r.charge > 0 {
		h.Credits = uint16(x.credits(r))
		r.charge = 0
	}
	if r.asyncID != 0 {
		h.Flags |= smb2msg.FlagAsync
		h.AsyncID = r.asyncID
	}
	// An interim reply has no signature: none would be checked.
	sign := r.sign && x.sealer == nil && status != ntstatus.Pending
	if sign {
		h.Flags |= smb2msg.FlagSigned
	}
	h.Append(x.b[r.start:r.start])
	if r.fault.Mutate != nil && status != ntstatus.Pending {
		reply := append([]byte(nil), x.b[r.start:]...)
		x.b = append(x.b[:r.start], r.fault.Mutate(reply)...)
	}
	if len(x.b) < r.start+smb2msg.HeaderSize {
		return // somebody wanted it so
	}
	if !last {
		x.b = smb2msg.PutNextCommand(x.b, r.start)
	}
	if sign {
		r.session.signer.Sign(x.b[r.start:])
	}
	if r.fault.BadSignature {
		x.b[r.start+smb2msg.SignatureOffset] ^= 1
	}
	if r.after != nil {
		r.after(x.b[r.start:])
		r.after = nil
	}
	if status != ntstatus.Pending {
		x.c.answered(r.hdr.MessageID)
	}
}

// failure is the body of a reply without one. From 3.1.1 on the details of an
// error are in a context.
func (r *request) failure() *smb2msg.ErrorResponse {
	if t := r.x.c.terms.Load(); len(r.detail) > 0 && t.dialect == smb2msg.SMB311 {
		return &smb2msg.ErrorResponse{Contexts: []smb2msg.ErrorContext{{ID: smb2msg.ErrorIDDefault, Data: r.detail}}}
	}
	return &smb2msg.ErrorResponse{Data: r.detail}
}

// credits decides how many credits the reply grants.
func (x *exchange) credits(r *request) int {
	if n := r.fault.Credits; n != nil {
		return x.c.window.force(*n, r.charge)
	}
	setUp := r.hdr.Command <= smb2msg.CommandSessionSetup
	return x.c.window.give(int(r.hdr.Credits), r.charge, setUp)
}

// finish sends the reply and lets go of the exchange, unless a request waits.
func (x *exchange) finish() error {
	frame := x.b[headroom-lengthSize:]
	if x.sealer != nil {
		frame = x.b
		x.sealer.sealer.Seal(frame[lengthSize:])
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthSize))
	if x.waits == nil {
		// The client may know that it is answered as soon as it is sent.
		x.uncount()
		err := x.c.send(frame, &x.fault)
		x.release()
		return err
	}
	p := x.waits
	x.waits = nil
	err := x.c.send(frame, &Fault{})
	x.told()
	x.out.free()
	x.out = nil
	close(p.told)
	return err
}

func (x *exchange) uncount() {
	if x.counted {
		x.counted = false
		x.c.srv.stats.inFlight.Add(-1)
	}
}

// pend makes the last request of an exchange wait until it is cancelled or the
// file it is about is closed. Others cannot wait.
func (r *request) pend(o *open) ntstatus.Status {
	x, c := r.x, r.x.c
	if c.crowded() {
		return ntstatus.InsufficientResources
	}
	p := &pending{asyncID: c.srv.nextID(), open: o, told: make(chan struct{})}
	p.finish = func(status ntstatus.Status) {
		go func() {
			defer c.bg.Done()
			<-p.told
			x.begin()
			x.startReply(r)
			x.endReply(r, status, true)
			if err := x.finish(); err != nil {
				c.abort(err) // x is somebody else's by now
			}
		}()
	}
	o.watched.Store(true) // before anybody can close it
	if r != &x.reqs[len(x.reqs)-1] || !c.wait(r.hdr.MessageID, p) {
		return ntstatus.Cancelled
	}
	x.waits, r.asyncID = p, p.asyncID
	return ntstatus.Pending
}

// prepare asks for the faults of all requests, and reports whether the exchange
// now waits for its time. Then a goroutine of its own goes on with it.
func (x *exchange) prepare(choose func(Request) Fault) bool {
	for i := range x.reqs {
		r := &x.reqs[i]
		r.fault = choose(r.describe(i))
		x.fault.merge(r.fault)
	}
	if x.sealer != nil && x.fault.BadSignature {
		x.fault.Corrupt = sealSignature
	}
	r := &x.reqs[0]
	single := len(x.reqs) == 1
	interim := x.fault.Interim && single
	if interim {
		r.asyncID = x.c.srv.nextID()
	}
	if x.fault.Delay == 0 {
		if interim {
			x.interim(r)
		}
		return false
	}
	// It can be cancelled from before the client knows that it may.
	gone := make(chan struct{})
	end := func(status ntstatus.Status) {
		r.fault.Status = status
		close(gone)
	}
	c := x.c // whoever ends the wait has lost the exchange by that
	p := &pending{asyncID: r.asyncID}
	p.finish = func(status ntstatus.Status) {
		end(status)
		c.bg.Done()
	}
	if single && !c.wait(r.hdr.MessageID, p) {
		end(ntstatus.Cancelled)
	}
	done := c.done
	if single {
		done = nil // whoever ends the connection finishes what waits
	}
	if interim {
		x.interim(r)
	}
	c.bg.Go(func() {
		t := time.NewTimer(x.fault.Delay)
		defer t.Stop()
		select {
		case <-done:
			x.release()
			return
		case <-gone:
		case <-t.C:
			if c.take(func(_ uint64, q *pending) bool { return p == q }) != nil {
				c.bg.Done()
			} else if single {
				<-gone // somebody has been faster
			}
		}
		if err := x.run(); err != nil {
			c.abort(err)
		}
	})
	return true
}

// interim tells the client that r takes its time, which gives back its credits.
func (x *exchange) interim(r *request) {
	x.begin()
	x.startReply(r)
	x.endReply(r, ntstatus.Pending, true)
	x.waits = &pending{told: make(chan struct{})}
	if err := x.finish(); err != nil {
		x.c.abort(err)
	}
}
