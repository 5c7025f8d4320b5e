// Package smbconn is one SMB2 connection: framing, negotiation, credits and
// MessageIds, signing and sealing, cancellation, and the path of READ and WRITE
// payloads between the socket and the caller's memory.
//
// It knows neither sessions' set-up nor shares nor files; those are package
// smb's. It never retries.
//
// Goroutines: one reader, one watchdog, and one short-lived sender per
// cancelled request; Close joins them all. Lock order: Conn.send → Conn.mu →
// Call.mu; credits.mu is a leaf.
package smbconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

var (
	// ErrDisconnected is what calls end with when the connection is lost.
	ErrDisconnected = errors.New("connection to the server lost")
	// ErrSignature says that a reply was not what the server signed or sealed.
	// The connection ends with it.
	ErrSignature = errors.New("bad signature on the server's reply")
	// ErrProtocol says that the server's bytes make no sense. The connection
	// ends with it.
	ErrProtocol = errors.New("malformed reply from the server")
	// ErrTimeout says that the server stopped answering.
	ErrTimeout = errors.New("server stopped answering")
)

// Config says how to connect. Its zero value is the default.
type Config struct {
	Dialects   []smb2msg.Dialect // offered; nil: 2.1 and up
	Sign       bool              // demand signed messages
	Seal       bool              // demand sealed messages
	Ciphers    []smbcrypt.Cipher // offered, the best first; nil: all
	Signings   []smbcrypt.Signing
	ServerName string // for the NETNAME context
	// ClientGUID is who holds leases, on whatever connection. Zero: a random one.
	ClientGUID [16]byte
	MaxCredits int // to ask for; 0: 4096
	// Timeout is how long the server may keep calls waiting without a sign of
	// life; halfway it is asked for one. One that gives some may keep a call that
	// it does not say is pending for twice as long. 0: a minute.
	Timeout time.Duration
	Logger  *slog.Logger // nil: discard
	// Redial opens a second connection after a failed negotiation, only to
	// tell what the server does speak. Nil: it is not told.
	Redial func(context.Context) (net.Conn, error)
	// Break hears of oplock and lease breaks. It must not block, nor keep the
	// bytes. Nil: ignored.
	Break func(notification []byte)
}

// Conn is one connection. It is safe for concurrent use.
type Conn struct {
	cfg     Config
	nc      net.Conn
	src     *source
	credits credits

	Negotiated // set by the negotiation, before New returns

	security atomic.Pointer[Security]

	send     chan struct{} // full from a frame's first byte to its last; guards the next three
	prefix   [prefixSize]byte
	bufs     net.Buffers
	consumed net.Buffers    // what writev eats of bufs
	sealBufs chan []byte    // sealed frames are built in these
	head     [readHead]byte // owned by the reader goroutine, as are the next three
	segs     [][]byte       // of the message being verified
	tail     []byte         // bytes of it that are nobody's payload
	opened   []byte         // the sealed frame being read
	started  time.Time      // when the connection began; the clock's zero
	heard    atomic.Int64   // the last sign of life, in ns since started
	echoed   atomic.Int64   // when the last answered ECHO was sent
	arrived  atomic.Int64   // when bytes last came, in ns since started
	inFrame  atomic.Bool    // a frame is not yet whole
	largest  atomic.Int64   // payload of a reply; 0 before the negotiation
	stats    counters
	done     chan struct{}  // closed when the connection is dead
	bg       sync.WaitGroup // counts only while dead is nil, so that Close can wait

	mu    sync.Mutex
	calls map[uint64]*Call // by MessageId; guarded by mu, as is dead
	dead  error
}

// Security is how messages of the connection's SMB session are protected.
type Security struct {
	SessionID uint64
	Signer    *smbcrypt.Signer // nil: neither side signs
	Sealer    *smbcrypt.Sealer // nil: sealing is not possible
	Sign      bool             // sign every request, refuse unsigned replies
	Seal      bool             // seal every request, refuse unsealed replies
}

// New negotiates over nc, which it owns from now on.
func New(ctx context.Context, nc net.Conn, cfg Config) (*Conn, error) {
	c := newConn(nc, cfg)
	c.start()
	if err := c.negotiate(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newConn(nc net.Conn, cfg Config) *Conn {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.MaxCredits == 0 {
		cfg.MaxCredits = 4096
	}
	c := &Conn{
		cfg: cfg, nc: nc,
		credits:  credits{balance: 1, peak: 1, target: cfg.MaxCredits},
		send:     make(chan struct{}, 1),
		sealBufs: make(chan []byte, sealedAtOnce),
		started:  time.Now(),
		done:     make(chan struct{}),
		calls:    make(map[uint64]*Call),
	}
	c.src = newSource(nc, c.alive)
	for range sealedAtOnce {
		c.sealBufs <- nil // grown when first used
	}
	c.security.Store(&Security{})
	return c
}

func (c *Conn) start() {
	c.bg.Go(c.read)
	c.bg.Go(c.watch)
}

// Secure protects all messages from now on as s says.
func (c *Conn) Secure(s Security) { c.security.Store(&s) }

// Security is how messages are protected now.
func (c *Conn) Security() Security { return *c.security.Load() }

// Close ends the connection at once and waits for its goroutines.
func (c *Conn) Close() {
	c.fail(net.ErrClosed)
	c.bg.Wait()
}

// Done is closed when the connection is dead; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection is dead, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// fail ends the connection and every call on it. The first reason counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return
	}
	if !errors.Is(err, ErrDisconnected) {
		err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	c.dead = err
	calls := c.calls
	c.calls = nil
	close(c.done)
	c.mu.Unlock()

	c.nc.Close()
	c.credits.fail(err)
	for _, call := range calls {
		call.finish(err)
	}
}

// Do sends calls as one compound and waits for their replies. Later calls are
// related to the first: they work on the handle it opens. An error means that
// there is no reply; the server's verdict is in each Call's Header.
//
// When ctx ends first, the server is asked to cancel, the buffers are the
// caller's again, and the credits stay with the connection until the answer.
func (c *Conn) Do(ctx context.Context, calls ...*Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	want := 0
	for _, call := range calls {
		call.reset()
		want += call.Charge
	}
	_, first, err := c.credits.take(ctx, want, want)
	if err != nil {
		return err
	}
	return c.exchange(ctx, calls, first)
}

// DoUpTo is Do for a single call whose charge, less than call.Charge when the
// connection has few credits, is told to plan before the request is encoded.
func (c *Conn) DoUpTo(ctx context.Context, call *Call, plan func(charge int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	call.reset()
	got, first, err := c.credits.take(ctx, call.Charge, 1)
	if err != nil {
		return err
	}
	if got < call.Charge {
		call.Charge = got
		plan(got)
	}
	call.self[0] = call
	return c.exchange(ctx, call.self[:], first)
}

// exchange sends calls under MessageIds from first on, and waits.
func (c *Conn) exchange(ctx context.Context, calls []*Call, first uint64) error {
	switch err := c.transmit(ctx, calls, first); {
	case err == errLeft:
		c.abandon(ctx, calls, 0)
		return ctx.Err()
	case err != nil:
		return err
	}
	for i, call := range calls {
		left, err := call.wait(ctx)
		if left {
			c.abandon(ctx, calls, i)
			c.Go(func() { c.cancel(call) })
			return err
		}
		if err != nil {
			// The connection is dead, but its reader may not know yet: it may be
			// in the buffers of a call that it answers.
			for _, call := range calls[i+1:] {
				<-call.signal
			}
			return err
		}
	}
	return nil
}

// abandon gives up on calls, of which those before the i-th are answered.
func (c *Conn) abandon(ctx context.Context, calls []*Call, i int) {
	for _, call := range calls[:i] {
		if call.Late != nil {
			c.Go(func() { call.Late(call) })
		}
	}
	for _, call := range calls[i:] {
		if left, _ := call.wait(ctx); !left && call.Late != nil { // ctx has ended: this does not block
			c.Go(func() { call.Late(call) })
		}
	}
}

// Go runs f in a goroutine that Close waits for, unless the connection is dead,
// and says whether it does.
func (c *Conn) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return false
	}
	c.bg.Go(f)
	return true
}

// Credits is how many credits the server lets the connection have.
func (c *Conn) Credits() int {
	now, _ := c.credits.held()
	return now
}

// alive notes a sign of life.
func (c *Conn) alive() {
	now := int64(time.Since(c.started))
	c.heard.Store(now)
	c.arrived.Store(now)
}

// Arrived is when the server's last bytes came.
func (c *Conn) Arrived() time.Time { return c.started.Add(time.Duration(c.arrived.Load())) }

// watch ends a connection whose server stopped answering: it is silent although
// calls wait or a frame is not whole, or it answers whether it lives but has lost
// a call. A call that it says is pending may take as long as it likes.
func (c *Conn) watch() {
	timeout := c.cfg.Timeout
	tick := time.NewTicker(max(timeout/8, time.Millisecond))
	defer tick.Stop()
	asked := time.Duration(-1) // when it was last asked for a sign of life
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		waiting, oldest := c.unanswered()
		now, heard := time.Since(c.started), time.Duration(c.heard.Load())
		if !waiting {
			c.heard.CompareAndSwap(int64(heard), int64(now))
			continue
		}
		silence, age := now-heard, now-oldest
		switch {
		case silence >= timeout, age >= 2*timeout && time.Duration(c.echoed.Load()) >= oldest+timeout:
			c.fail(ErrTimeout)
			return
		case c.largest.Load() == 0: // there is no dialect to ask in
		case silence >= timeout/2 && asked <= heard, age >= timeout && asked < oldest+timeout:
			asked = now
			c.Go(c.echo)
		case silence >= timeout/8:
			c.src.relax()
		}
	}
}

// unanswered says whether the server owes anything, and when the oldest call was
// sent, on the connection's clock, of which it has not said that it is pending.
func (c *Conn) unanswered() (waiting bool, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest = math.MaxInt64
	for _, call := range c.calls {
		if call.asyncID.Load() == 0 {
			oldest = min(oldest, call.Sent.Sub(c.started))
		}
	}
	return len(c.calls) > 0 || c.inFrame.Load(), oldest
}

// echo asks the server for a sign of life.
func (c *Conn) echo() {
	ctx, stop := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer stop()
	call := &Call{Command: smb2msg.CommandEcho, Body: &smb2msg.EchoRequest{}}
	if c.Do(ctx, call) == nil {
		c.echoed.Store(int64(call.Sent.Sub(c.started)))
	}
}
