// Package smbserver is an SMB server inside the process: SMB 2.0.2 to 3.1.1 in
// front of trees in memory or on disk. Tests, the demo and benchmarks run it.
//
// It keeps [MS-SMB2] 3.3 as far as one server without a cluster goes. It grants
// oplocks and leases of files, none of folders and no durable handles, binds no
// second channel to a session and speaks SMB1 only to the extent of being asked for
// SMB2. It is no server for the world: every user may do everything.
//
// Goroutines: Serve reads a connection and starts a bounded number of workers, one
// that sends notices of breaks, one that delays if there is a Delay, and one for
// each request that is delayed or waits for a break. It joins them all before it
// returns. Timers of breaks, which run for as long as the connection of a lease's
// owner does, are joined by Close.
//
// Lock order: session.mu, share.mu, leases.mu, conn.mu and Server.mu are each held
// alone or in this order, and never while anything is sent. A connection's right to
// send is a channel, so that those who wait for it do not stop a synctest bubble.
package smbserver

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// Config says what a server is like. Its zero value has no shares and no users.
type Config struct {
	Name     string            // of the server; "": "PAGEWIRE"
	Dialects []smb2msg.Dialect // nil: all

	// The largest payloads, up to 15 MiB; 0: 8 MiB. Dialect 2.0.2 has 64 KiB.
	MaxRead, MaxWrite, MaxTransact int

	Credits int // most that one connection gets; 0: 8192
	Grant   Grant

	RequireSigning bool
	RequireSealing bool
	Ciphers        []smbcrypt.Cipher  // of 3.1.1, in the order of preference; nil: all; 3.0 has AES-128-CCM
	Signings       []smbcrypt.Signing // of 3.1.1, as Ciphers

	Users     map[string]string // passwords by name
	Guest     bool              // whoever is unknown is a guest
	Anonymous bool              // nobody is welcome too

	Shares []Share

	NoLeases     bool          // are granted, or announced
	NoOplocks    bool          // are granted
	NoWrites     bool          // are cached: neither W leases nor oplocks above level II
	BreakTimeout time.Duration // for the answer to a break; 0: 35 s
	PlainNotices bool          // of breaks are sent without a seal, whatever the session is like

	Delay  time.Duration // before a request is served
	Logger *slog.Logger  // nil: discard
}

// Share is a tree that has a name.
type Share struct {
	Name     string
	Comment  string
	Tree     Tree
	ReadOnly bool
	Seal     bool // only for sealed requests
}

const (
	defaultSize    = 8 << 20
	largestSize    = 15 << 20
	defaultCredits = 8192
	defaultTimeout = 35 * time.Second // see [MS-SMB2] 3.3.2.5
)

// Server serves connections. It is safe for concurrent use.
type Server struct {
	cfg     Config // set by New, as what follows
	guid    [16]byte
	started time.Time
	shares  []*share
	leases  leases
	pool    buffers
	spare   sync.Pool // of *exchange
	stats   stats
	faults  atomic.Pointer[func(Request) Fault]

	mu       sync.Mutex
	closed   bool                // guarded by mu, as what follows
	conns    map[*conn]struct{}  //
	sessions map[uint64]*session // also those being set up
	lastID   uint64              // of anything
	serving  sync.WaitGroup
}

// New returns a server.
func New(cfg Config) *Server {
	s := &Server{
		started:  time.Now(),
		conns:    map[*conn]struct{}{},
		sessions: map[uint64]*session{},
	}
	rand.Read(s.guid[:])
	if cfg.Name == "" {
		cfg.Name = "PAGEWIRE"
	}
	if cfg.Dialects == nil {
		cfg.Dialects = []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311}
	}
	for _, size := range []*int{&cfg.MaxRead, &cfg.MaxWrite, &cfg.MaxTransact} {
		if *size <= 0 {
			*size = defaultSize
		}
		*size = min(*size, largestSize)
	}
	if cfg.Credits <= 0 {
		cfg.Credits = defaultCredits
	}
	if cfg.Ciphers == nil {
		cfg.Ciphers = []smbcrypt.Cipher{smbcrypt.AES128GCM, smbcrypt.AES128CCM, smbcrypt.AES256GCM, smbcrypt.AES256CCM}
	}
	if cfg.Signings == nil {
		cfg.Signings = []smbcrypt.Signing{smbcrypt.AESGMAC, smbcrypt.AESCMAC, smbcrypt.HMACSHA256}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.BreakTimeout <= 0 {
		cfg.BreakTimeout = defaultTimeout
	}
	s.cfg = cfg
	s.leases.srv, s.leases.byKey = s, map[leaseKey]*lease{}
	for _, sh := range cfg.Shares {
		s.shares = append(s.shares, newShare(sh, &s.leases))
	}
	s.shares = append(s.shares, newShare(Share{Name: "IPC$", Comment: "IPC Service"}, &s.leases))
	return s
}

// share finds a share by name, which has no case.
func (s *Server) share(name string) *share {
	i := slices.IndexFunc(s.shares, func(sh *share) bool { return strings.EqualFold(sh.Name, name) })
	if i < 0 {
		return nil
	}
	return s.shares[i]
}

// nextID returns a number that nothing of this server has had.
func (s *Server) nextID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	return s.lastID
}

// SetFaults makes requests from now on fail as f says, which many goroutines ask
// at once; nil ends that.
func (s *Server) SetFaults(f func(Request) Fault) {
	if f == nil {
		s.faults.Store(nil)
		return
	}
	s.faults.Store(&f)
}

// Stats returns what has been counted so far.
func (s *Server) Stats() Stats { return s.stats.get() }

// Serve serves a connection, which it owns, until it ends.
func (s *Server) Serve(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()

	c.number = int(s.stats.conns.Add(1))
	err := c.serve()
	if err != io.EOF {
		s.cfg.Logger.Debug("connection ended", "conn", c.number, "err", err)
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// CloseConnections ends all connections.
func (s *Server) CloseConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.nc.Close()
	}
}

// Close ends all connections, takes no more and waits until nothing runs.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.CloseConnections()
	s.serving.Wait()
	s.leases.expiring.Wait()
}

// workers is how many requests of one connection are worked on at once. Those
// that wait for something have no worker.
func workers() int { return max(4, 2*runtime.GOMAXPROCS(0)) }
