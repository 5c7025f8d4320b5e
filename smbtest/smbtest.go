// Package smbtest provides an SMB server for tests, as net/http/httptest does
// for HTTP: SMB 2.0.2 to 3.1.1, in this process, over files in memory or a
// folder, and with faults where a test wants them.
//
//	srv := smbtest.NewServer(smbtest.Config{})
//	defer srv.Close()
//	// srv.URL is smb://user:pass@127.0.0.1:PORT/share
//
// The server keeps no secret from anybody and lets every user do everything. It
// grants leases and oplocks of files, and breaks them when another client's doings
// or a test's Break want it, but neither leases of folders nor durable handles. What
// a test does to files by other means breaks nothing.
//
// Inside a testing/synctest bubble use NewUnstarted and Dial, which need no
// socket, and close the server before the bubble ends.
package smbtest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/smb/smbserver"
)

// Config says what a server is like. The zero value is a healthy server with
// every dialect, the user "user" with the password "pass", and one share "share"
// in memory.
type Config struct {
	// Dialects to speak, of "2.0.2", "2.1", "3.0", "3.0.2" and "3.1.1"; nil: all.
	Dialects []string

	// The largest payloads in bytes, up to 15 MiB; 0: 8 MiB. Dialect 2.0.2 has
	// 64 KiB at most.
	MaxRead, MaxWrite, MaxTransact int

	// Credits is the most that one connection gets, those in use included; 0: 8192.
	Credits int
	Grant   Grant

	RequireSigning bool
	RequireSealing bool

	// Ciphers and Signings of 3.1.1, the best first; nil: all. 3.0 and 3.0.2
	// seal if "AES-128-CCM" is among the Ciphers, and sign as they must.
	Ciphers  []string // of "AES-128-GCM", "AES-128-CCM", "AES-256-GCM", "AES-256-CCM"
	Signings []string // of "AES-GMAC", "AES-CMAC", "HMAC-SHA256"

	Users     map[string]string // passwords by name; nil: "user" has "pass"
	Guest     bool              // unknown users are let in as guests
	Anonymous bool              // so is who gives no name

	Shares []Share // nil: one, in memory, named "share"

	NoLeases       bool // no lease is granted, and none announced
	NoOplocks      bool // no oplock is granted
	NoWriteCaching bool // leases go without W, oplocks stop at level II

	// BreakTimeout is how long a client may take to answer the break of a lease
	// or oplock until it has lost it anyway; 0: 35 seconds.
	BreakTimeout time.Duration

	// PlainNotifications sends notifications of breaks unsealed in sealed sessions
	// too, as Samba does.
	PlainNotifications bool

	// Delay is how long the server takes for a request. It delays all alike,
	// and serves no fewer of them at once.
	Delay time.Duration

	// RTT and Rate, in bits a second each way, simulate a link to the server.
	RTT  time.Duration
	Rate int64

	// Faults says what goes wrong with a request. Many goroutines call it at
	// once. See also SetFaults.
	Faults func(Request) Fault

	Logger *slog.Logger // for what ends connections; nil: discard
}

// Share is a share of a server.
type Share struct {
	Name          string
	Comment       string
	Dir           string // a folder to show; "": memory
	Limit         int64  // space in memory, in bytes; 0: no limit
	CaseSensitive bool
	ReadOnly      bool
	Seal          bool // only for sealed requests
}

// Grant says how credits are handed out.
type Grant = smbserver.Grant

// Policies for granting credits. Setting up a session always gets what it asks for.
const (
	GrantAsked   = smbserver.GrantAsked   // what the client asks for
	GrantAll     = smbserver.GrantAll     // everything at the first occasion
	GrantCharged = smbserver.GrantCharged // what the request was charged
	GrantOne     = smbserver.GrantOne     // one a reply
)

// Request is what a fault can be chosen by:
//
//	Command   string // "READ", "QUERY_DIRECTORY", or BreakNotification
//	N         int    // the how manieth of its command at this server, from 1
//	MessageID uint64
//	Conn      int    // the how manieth connection it came on, from 1
//	Name      string // the path of the file it is about, with slashes
//	Offset    int64  // of READ and WRITE
//	Length    int
//	Compound  int    // its place in a compound, from 0
//	Last      bool   // it is the last of its frame
type Request = smbserver.Request

// BreakNotification is the Command of what no client has requested: the notification
// that a lease or oplock is broken. Interim, Status, Short and Credits mean nothing
// to it. Delay holds back all those for the same connection, as it keeps their order.
const BreakNotification = smbserver.BreakNotification

// Fault is what goes wrong with a request; zero fields do not. In a compound,
// Status, Short, Credits and Mutate concern one request, the others all.
//
//	Interim      bool                // a STATUS_PENDING comes first; not in compounds
//	Delay        time.Duration       // serve it this much later, unless it is cancelled
//	Status       ntstatus.Status     // answer with this NTSTATUS, do nothing
//	Short        int                 // READ and WRITE take at most so many bytes
//	Credits      *int                // grant so many
//	Mutate       func([]byte) []byte // the reply from its SMB2 header on, not yet signed
//	BadSignature bool                // one bit of the signature is wrong
//	Corrupt      int                 // so is one of the n-th byte, from 1; negative: from the end
//	CutAt        int                 // the connection ends after so many bytes of the frame
//	Drop         bool                // no reply
//	Duplicate    bool                // two of them
//	Hold         int                 // it is sent after so many later ones
type Fault = smbserver.Fault

// Stats counts what a server has done:
//
//	Requests                   map[string]int64 // by command, as Request has it
//	Frames                     int64            // a compound counts once
//	Read, Written              int64            // payload bytes
//	ReadSizes, WriteSizes      map[int]int64    // requests by their payload
//	InFlight, MaxInFlight      int              // frames without an answer
//	SignedRequests             int64            // verified
//	SealedFrames               int64            // opened
//	Connections, Sessions      int64            // accepted, authenticated
//	Leases, Oplocks            int64            // CREATEs that got any, or more of one
//	Breaks, BreakAcks          int64            // told to clients, answered by them
//	BreakTimeouts              int64            // not answered in time
type Stats = smbserver.Stats

// Server is a running server. Its goroutines are one that accepts, one more for
// each connection, and those of package smbserver; Close joins them all.
type Server struct {
	// URL of the first share, with a user who may log on. It and Addr are empty
	// until the server is started.
	URL  string
	Addr string // host:port

	cfg     Config
	server  *smbserver.Server
	shares  []*shared
	link    *netsim.Link
	listen  net.Listener
	proxy   *netsim.Proxy
	serving sync.WaitGroup
}

type shared struct {
	Share
	memory *memfs.FS
	folder *smbserver.Folder
}

// NewServer starts a server on a free port of 127.0.0.1. It panics if that or
// the Config is no good, as do the other constructors.
func NewServer(cfg Config) *Server {
	s := NewUnstarted(cfg)
	s.Start()
	return s
}

// NewUnstarted returns a server that only Dial reaches, until Start.
func NewUnstarted(cfg Config) *Server {
	if cfg.Users == nil {
		cfg.Users = map[string]string{"user": "pass"}
	}
	if cfg.Shares == nil {
		cfg.Shares = []Share{{Name: "share"}}
	}
	s := &Server{cfg: cfg, link: netsim.New(netsim.Config{Up: cfg.Rate, Down: cfg.Rate, RTT: cfg.RTT})}
	c := smbserver.Config{
		MaxRead: cfg.MaxRead, MaxWrite: cfg.MaxWrite, MaxTransact: cfg.MaxTransact,
		Credits: cfg.Credits, Grant: cfg.Grant,
		RequireSigning: cfg.RequireSigning, RequireSealing: cfg.RequireSealing,
		Users: cfg.Users, Guest: cfg.Guest, Anonymous: cfg.Anonymous,
		NoLeases: cfg.NoLeases, NoOplocks: cfg.NoOplocks, NoWrites: cfg.NoWriteCaching,
		BreakTimeout: cfg.BreakTimeout, PlainNotices: cfg.PlainNotifications,
		Delay: cfg.Delay, Logger: cfg.Logger,
	}
	var err, err2, err3 error
	c.Dialects, err = smbserver.ParseDialects(cfg.Dialects)
	c.Ciphers, err2 = smbserver.ParseCiphers(cfg.Ciphers)
	c.Signings, err3 = smbserver.ParseSignings(cfg.Signings)
	check(errors.Join(err, err2, err3))
	for _, sh := range cfg.Shares {
		c.Shares = append(c.Shares, s.share(sh))
	}
	s.server = smbserver.New(c)
	s.server.SetFaults(cfg.Faults)
	return s
}

func check(err error) {
	if err != nil {
		panic("smbtest: " + err.Error())
	}
}

func (s *Server) share(sh Share) smbserver.Share {
	out := smbserver.Share{Name: sh.Name, Comment: sh.Comment, ReadOnly: sh.ReadOnly, Seal: sh.Seal}
	mine := &shared{Share: sh}
	if sh.Dir != "" {
		var err error
		mine.folder, err = smbserver.OpenFolder(sh.Dir, !sh.CaseSensitive)
		check(err)
		out.Tree = mine.folder
	} else {
		mine.memory = memfs.New(memfs.Config{IgnoreCase: !sh.CaseSensitive, Limit: sh.Limit})
		out.Tree = smbserver.Memory(mine.memory)
	}
	s.shares = append(s.shares, mine)
	return out
}

// Start listens on a free port of 127.0.0.1.
func (s *Server) Start() {
	if s.listen != nil {
		panic("smbtest: server has been started already")
	}
	var err error
	s.listen, err = net.Listen("tcp4", "127.0.0.1:0")
	check(err)
	s.serving.Go(s.accept)
	s.Addr = s.listen.Addr().String()
	if s.cfg.RTT > 0 || s.cfg.Rate > 0 {
		s.proxy, err = s.link.Proxy(s.Addr)
		check(err)
		s.Addr = s.proxy.Addr()
	}
	u := url.URL{Scheme: "smb", Host: s.Addr, Path: "/"}
	if len(s.cfg.Shares) > 0 {
		u.Path += s.cfg.Shares[0].Name
	}
	if names := slices.Sorted(maps.Keys(s.cfg.Users)); len(names) > 0 {
		u.User = url.UserPassword(names[0], s.cfg.Users[names[0]])
	}
	s.URL = u.String()
}

func (s *Server) accept() {
	for {
		conn, err := s.listen.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.server.Serve(conn) })
	}
}

// Dial connects to the server in memory, over the simulated link if there is one.
// The network and address, there for the sake of net.Dialer, do not matter.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := s.link.Pipe()
	s.serving.Go(func() { s.server.Serve(server) })
	return client, nil
}

// Close ends all connections and waits until nothing of the server runs.
func (s *Server) Close() {
	if s.listen != nil {
		s.listen.Close()
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	s.server.Close()
	s.serving.Wait()
	for _, sh := range s.shares {
		if sh.folder != nil {
			sh.folder.Close()
		}
	}
}

// CloseClientConnections ends all connections. Clients may connect anew.
func (s *Server) CloseClientConnections() { s.server.CloseConnections() }

// SetFaults makes requests from now on fail as f says, nil: not at all.
func (s *Server) SetFaults(f func(Request) Fault) { s.server.SetFaults(f) }

// Break takes rights to cache a file of the first share away from all who have any,
// as if another client wanted to use it. Its path has slashes; to is what they may
// keep: "RWH", "RH", "RW", "R" or "". A batch or exclusive oplock is broken to level
// II, or to none if to is "". Break returns how many leases and oplocks it has broken,
// and does not wait for the clients.
func (s *Server) Break(path, to string) int {
	state, err := smbserver.ParseLease(to)
	check(err)
	return s.server.Break(s.shares[0].Name, path, state)
}

// Stats returns what the server has counted so far.
func (s *Server) Stats() Stats { return s.server.Stats() }

// Link returns the simulated link, which can fail, too.
func (s *Server) Link() *netsim.Link { return s.link }

// FS returns the file system of a share in memory, nil if it is not there. It has
// ReadFile, WriteFile, MkdirAll and Find, whose paths have slashes.
func (s *Server) FS(share string) *memfs.FS {
	for _, sh := range s.shares {
		if sh.Name == share {
			return sh.memory
		}
	}
	return nil
}

// ReadFile returns the contents of a file of the first share. Its path has slashes.
func (s *Server) ReadFile(path string) ([]byte, error) {
	if sh := s.shares[0]; sh.memory == nil {
		return os.ReadFile(filepath.Join(sh.Dir, filepath.FromSlash(path)))
	}
	return s.shares[0].memory.ReadFile(path)
}

// WriteFile makes data the contents of a file of the first share. It makes the
// file and the folders above it if they are not there.
func (s *Server) WriteFile(path string, data []byte) error {
	sh := s.shares[0]
	if sh.memory != nil {
		return sh.memory.WriteFile(path, data)
	}
	path = filepath.Join(sh.Dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
