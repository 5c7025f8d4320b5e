package smb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/internal/smb/srvsvc"
)

// ClientConfig says how to be a client that lasts.
type ClientConfig struct {
	Config        // of each session, but for Credentials
	Server string // its name
	// Connect makes a connection and says who logs on over it.
	Connect func(context.Context) (net.Conn, auth.Credentials, error)
	// Patience is how long a lost connection is tried to be made anew before the
	// operations that wait for it fail. The next one tries again. 0: half a minute.
	Patience time.Duration
}

// Client is a session that outlives its connection. When that is lost, the next
// operation makes a new one, and files that are open find their handles again:
// see lastingFile. It is safe for concurrent use.
//
// Goroutines: one per connection, which waits for its end, one that brings cached files
// back to it, and one that makes a new one; Close joins them. Lock order:
// lastingFile.telling → Share.mu → lastingFile.mu → Volume.mu; Client.mu and
// listener.mu are leaves.
type Client struct {
	cfg ClientConfig
	ctx context.Context // of what goes on in the background
	end context.CancelFunc
	bg  sync.WaitGroup

	mu sync.Mutex
	// guarded by mu
	session *Session // may be dead
	remake  *remake  // nil: nobody makes a new one
	shares  map[*Share]bool
	past    smbconn.Stats // of the sessions before

	// When the server has refused the last new session:
	refusal      error
	refusedUntil time.Time
	hold         time.Duration // 0: it has not

	closed bool
}

// remake is a reconnection under way.
type remake struct {
	done chan struct{}
	s    *Session // set before done is closed, as is err
	err  error
}

// NewClient connects and logs on.
func NewClient(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	c := &Client{cfg: cfg, shares: map[*Share]bool{}}
	c.ctx, c.end = context.WithCancel(context.Background())
	s, err := c.dial(ctx, nil)
	if err != nil {
		c.end()
		return nil, err
	}
	c.use(s)
	return c, nil
}

func (c *Client) dial(ctx context.Context, old *Session) (*Session, error) {
	nc, creds, err := c.cfg.Connect(ctx)
	if err != nil {
		return nil, err
	}
	cfg := c.cfg.Config
	cfg.Credentials, cfg.previous = creds, old
	s, err := Dial(ctx, nc, c.cfg.Server, cfg)
	if err != nil {
		return nil, err
	}
	s.began = time.Now()
	if old == nil {
		return s, nil
	}
	if err := noWeaker(old.Info(), s.Info()); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

var errUnsealed = errors.New("the server no longer seals messages")

// noWeaker refuses a connection that protects less than the one before it.
func noWeaker(old, now Info) error {
	switch {
	case now.Dialect != old.Dialect:
		return fmt.Errorf("the server now speaks SMB %s instead of %s", now.Dialect, old.Dialect)
	case old.Cipher != "" && now.Cipher == "":
		return errUnsealed
	case old.Cipher != "" && now.Cipher != old.Cipher:
		return fmt.Errorf("the server now seals messages with %s instead of %s", now.Cipher, old.Cipher)
	case old.Signing != "" && now.Signing == "" && now.Cipher == "":
		return errors.New("the server no longer signs messages")
	case now.Guest && !old.Guest:
		return ErrGuest
	}
	return nil
}

// use makes s the session, and waits in the background for its end.
func (c *Client) use(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.session; old != nil {
		c.past = sum(c.past, old.conn.Stats())
	}
	c.session, c.hold = s, 0
	if !c.closed {
		c.bg.Go(func() { c.watch(s) })
		c.bg.Go(func() { c.restore(s) })
	}
}

// watch hears of the end of a session, and tells the files that were cached under it.
// These get their rights back as soon as that is possible, without anybody asking.
func (c *Client) watch(s *Session) {
	<-s.conn.Done()
	s.lost.Store(time.Now().UnixNano())
	s.conn.Close() // for its goroutines
	if c.ctx.Err() != nil {
		return
	}
	c.cfg.Logger.Info("connection lost", "server", c.cfg.Server, "err", s.conn.Err())
	cached := false
	for _, sh := range c.mounted() {
		for _, f := range sh.open() {
			if f.lost(s) {
				cached = true
			}
		}
	}
	if !cached {
		return
	}
	if next, err := c.live(c.ctx); err == nil {
		c.restore(next) // it may have missed files that were told only now
	}
}

// restore brings files back that were cached under earlier sessions.
func (c *Client) restore(s *Session) {
	for _, sh := range c.mounted() {
		for _, f := range sh.open() {
			if !s.alive() {
				return
			}
			if err := f.restore(c.ctx); err != nil {
				c.cfg.Logger.Debug("file not opened again", "err", err)
			}
		}
	}
}

func (c *Client) mounted() []*Share {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.shares))
}

// live returns a session whose connection is not known to be dead; it makes one, or
// waits for who does.
func (c *Client) live(ctx context.Context) (*Session, error) {
	c.mu.Lock()
	s, r := c.session, c.remake
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", smbconn.ErrDisconnected, net.ErrClosed)
	case s.alive():
		c.mu.Unlock()
		return s, nil
	case r == nil && time.Now().Before(c.refusedUntil):
		err := c.refusal
		c.mu.Unlock()
		return nil, err
	case r == nil:
		r = &remake{done: make(chan struct{})}
		c.remake = r
		c.bg.Go(func() { c.reconnect(s, r) })
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.s, r.err // which may be lost again by now
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// alive says that the connection is not known to be dead.
func (s *Session) alive() bool {
	select {
	case <-s.conn.Done():
		return false
	default:
		return true
	}
}

// lostAt is when the session was lost, which is now if nobody has noticed yet.
func (s *Session) lostAt() time.Time {
	if at := s.lost.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}

// serverTime is what the server's clock said at a moment of ours.
func (s *Session) serverTime(t time.Time) time.Time { return t.Add(s.conn.Clock) }

// How long to wait before a new connection is tried again.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

// reconnect makes a new session in the place of old.
func (c *Client) reconnect(old *Session, r *remake) {
	s, err := c.redial(old)
	if err == nil {
		c.cfg.Logger.Info("connected anew", "server", c.cfg.Server)
		c.use(s)
	} else {
		refused := !passing(err)
		err = fmt.Errorf("%w, and %w: %w", smbconn.ErrDisconnected, errNoOther, err)
		if refused {
			c.holdOff(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.s, r.err = s, err
	c.remake = nil
	close(r.done)
}

// How long a refusal holds: a server locks an account that logs on in vain too often.
const (
	firstHold = 5 * time.Second
	maxHold   = 5 * time.Minute
)

// holdOff has operations fail with err for a while, longer each time.
func (c *Client) holdOff(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = min(max(2*c.hold, firstHold), maxHold)
	c.refusal, c.refusedUntil = err, time.Now().Add(c.hold)
}

// errNoOther says that there was no other connection to be had, as far as patience
// went: that is no reason to ask for one at once.
var errNoOther = errors.New("there is no other")

// redial dials until that succeeds, or is of no use, or patience ends.
func (c *Client) redial(old *Session) (*Session, error) {
	ctx, stop := context.WithTimeout(c.ctx, c.cfg.Patience)
	defer stop()
	why := smbconn.ErrTimeout
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		s, err := c.dial(ctx, old)
		if ctx.Err() == nil {
			why = err
		}
		if err == nil || !passing(err) {
			return s, err
		}
		c.cfg.Logger.Debug("no new connection yet", "server", c.cfg.Server, "err", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil, why
		}
	}
}

// passing says that another try may do: the server or the way to it was not there.
func passing(err error) bool {
	if errors.Is(err, smbconn.ErrSignature) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, smbconn.ErrDisconnected) || errors.Is(err, smbconn.ErrTimeout)
}

// lost says that err is the end of a connection, which another may make good. That
// the server sent what it should not have is none.
func lost(err error) bool {
	return errors.Is(err, smbconn.ErrDisconnected) && !errors.Is(err, errNoOther) &&
		!errors.Is(err, smbconn.ErrSignature) && !errors.Is(err, smbconn.ErrProtocol) && !errors.Is(err, net.ErrClosed)
}

// again runs do with a live session, and once more with a new one if the connection
// is lost meanwhile.
func (c *Client) again(ctx context.Context, do func(*Session) error) error {
	for first := true; ; first = false {
		s, err := c.live(ctx)
		if err == nil {
			err = do(s)
		}
		if !first || !lost(err) || ctx.Err() != nil {
			return err
		}
	}
}

// Shares asks the server what shares it has.
func (c *Client) Shares(ctx context.Context) (shares []srvsvc.Share, err error) {
	err = c.again(ctx, func(s *Session) (err error) {
		shares, err = s.Shares(ctx)
		return err
	})
	return shares, err
}

// Ping asks the server for a sign of life and says how long it took.
func (c *Client) Ping(ctx context.Context) (took time.Duration, err error) {
	err = c.again(ctx, func(s *Session) (err error) {
		took, err = s.Ping(ctx)
		return err
	})
	return took, err
}

// Info is that of the session, with the counts of those before.
func (c *Client) Info() Info {
	c.mu.Lock()
	s, past := c.session, c.past
	c.mu.Unlock()
	i := s.Info()
	i.Stats = sum(past, i.Stats)
	return i
}

// sum adds what two connections did; what holds now is that of the later one.
func sum(past, now smbconn.Stats) smbconn.Stats {
	all := maps.Clone(past.Requests)
	if all == nil {
		return now
	}
	for command, n := range now.Requests {
		all[command] += n
	}
	now.Requests = all
	now.Read += past.Read
	now.Written += past.Written
	now.MaxRead = max(now.MaxRead, past.MaxRead)
	now.MaxWrite = max(now.MaxWrite, past.MaxWrite)
	now.MaxInFlight = max(now.MaxInFlight, past.MaxInFlight)
	now.Signed += past.Signed
	now.Sealed += past.Sealed
	now.MaxCredits = max(now.MaxCredits, past.MaxCredits)
	return now
}

// Close logs off, as far as ctx allows, and ends the connection.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	s := c.session
	c.mu.Unlock()
	c.end()
	err := s.Close(ctx)
	c.bg.Wait()
	c.mu.Lock()
	last := c.session
	c.mu.Unlock()
	if last != s { // it came while we were closing
		err = last.Close(ctx)
	}
	if lost(err) { // then there is nothing to log off from
		err = nil
	}
	return err
}
