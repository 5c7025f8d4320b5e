// Package smb is SMB 2.0.2 to 3.1.1 as a client: sessions, shares, handles,
// names, and every operation of the seam in as few round trips as the protocol
// allows.
//
// It owns no framing, credit or signature, which are smbconn's, and caches
// nothing. Goroutines: those of its connection, one per listing under way, and
// one per handle that is closed after its caller left; Close joins them all.
// Lock order: Volume.mu is a leaf.
package smb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/flow"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// Config says how to be a client. Its zero value is the default.
type Config struct {
	Dialects    []smb2msg.Dialect // offered; nil: 2.1 and up
	Credentials auth.Credentials
	Anonymous   bool // log on as nobody
	Guest       bool // accept to be a guest
	Sign, Seal  bool // demand it
	MaxCredits  int  // to ask for; 0: the connection's default
	ReadSize    int  // the largest request, if the server allows more; 0: it decides
	WriteSize   int
	Mapping     Mapping // of reserved characters
	MFSymlinks  bool    // symbolic links are files with a certain content
	Timeout     time.Duration
	Logger      *slog.Logger
	// Redial opens a second connection, only to word a failed negotiation.
	Redial func(context.Context) (net.Conn, error)

	previous *Session // that this one takes the place of; nil: none
}

// ErrGuest says that the server took the user for a guest, which is not what
// was asked for.
var ErrGuest = errors.New("server does not know this user and let it in as a guest only")

// Session is one user on one connection. It is safe for concurrent use.
type Session struct {
	cfg    Config
	conn   *smbconn.Conn
	server string
	guid   [16]byte     // who holds this session's leases
	guest  bool         // or nobody: without keys
	began  time.Time    // when the user was logged on
	lost   atomic.Int64 // when the connection was, on our clock, in ns; 0: it is not known to be
	read   *flow.Estimator
	write  *flow.Estimator

	mu      sync.Mutex
	volumes []*Volume // that are connected; guarded by mu
}

// Dial negotiates over nc, which it owns from now on, and logs on.
func Dial(ctx context.Context, nc net.Conn, server string, cfg Config) (*Session, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{cfg: cfg, server: server, read: new(flow.Estimator), write: new(flow.Estimator)}
	if old := cfg.previous; old != nil {
		s.guid, s.read, s.write = old.guid, old.read, old.write
	} else {
		rand.Read(s.guid[:])
	}
	conn, err := smbconn.New(ctx, nc, smbconn.Config{
		Dialects:   cfg.Dialects,
		Sign:       cfg.Sign,
		Seal:       cfg.Seal,
		ServerName: server,
		ClientGUID: s.guid,
		MaxCredits: cfg.MaxCredits,
		Timeout:    cfg.Timeout,
		Logger:     cfg.Logger,
		Redial:     cfg.Redial,
		Break:      s.broken,
	})
	if err != nil {
		return nil, err
	}
	s.conn = conn
	if err := s.logOn(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("log on to %s: %w", server, err)
	}
	s.cfg.previous = nil
	return s, nil
}

// maxLegs is how many tokens a log-on may take. NTLM has two, Kerberos one or two.
const maxLegs = 8

// logOn is the dialogue of SESSION_SETUPs. See [MS-SMB2] 3.2.4.2.3 and 3.2.5.3.
func (s *Session) logOn(ctx context.Context) error {
	creds := s.cfg.Credentials
	if s.cfg.Anonymous {
		creds = auth.Credentials{}
	}
	mech, err := auth.NewInitiator(s.conn.Token, auth.NewNTLM(creds, "cifs/"+s.server))
	if err != nil {
		return err
	}
	preauth := s.conn.Preauth
	token, _, err := mech.Next(nil)
	for leg := 0; ; leg++ {
		if err != nil {
			return err
		}
		if leg == maxLegs {
			return fmt.Errorf("%w: the server is not done after %d tokens", smbconn.ErrProtocol, leg)
		}
		call := &smbconn.Call{Command: smb2msg.CommandSessionSetup, Body: &smb2msg.SessionSetupRequest{
			SecurityMode:   s.conn.Offered.SecurityMode,
			Capabilities:   s.conn.Offered.Capabilities & smb2msg.CapDFS,
			SecurityBuffer: token,
		}}
		if old := s.cfg.previous; old != nil { // the server need not wait for it any longer
			call.Body.(*smb2msg.SessionSetupRequest).PreviousSessionID = old.conn.Security().SessionID
		}
		if err := s.conn.Do(ctx, call); err != nil {
			return err
		}
		if err := verdict(call, ntstatus.MoreProcessingRequired); err != nil {
			return err
		}
		var m smb2msg.SessionSetupResponse
		if err := decode(call, &m); err != nil {
			return err
		}
		preauth.Update(call.Request())
		if call.Header.Status == ntstatus.Success {
			if len(m.SecurityBuffer) > 0 {
				if _, _, err := mech.Next(m.SecurityBuffer); err != nil {
					return err
				}
			}
			// Not all servers say that nobody is nobody.
			key := mech.SessionKey()
			if creds.Anonymous() {
				key = nil
			}
			return s.secure(call, m.SessionFlags, key, &preauth)
		}
		preauth.Update(call.Reply())
		s.conn.Secure(smbconn.Security{SessionID: call.Header.SessionID})
		token, _, err = mech.Next(m.SecurityBuffer)
	}
}

// secure derives the keys and checks the last reply with them, which is the
// first that the server could sign. See [MS-SMB2] 3.2.5.3.1.
func (s *Session) secure(last *smbconn.Call, flags smb2msg.SessionFlags, key []byte, preauth *smbcrypt.Preauth) error {
	sec := smbconn.Security{SessionID: last.Header.SessionID}
	s.guest = flags&(smb2msg.SessionFlagIsGuest|smb2msg.SessionFlagIsNull) != 0 || key == nil
	if s.guest {
		switch {
		case !s.cfg.Guest && !s.cfg.Anonymous:
			return fmt.Errorf("%w: %w", ErrGuest, ntstatus.LogonFailure)
		case s.cfg.Seal:
			return errors.New("a guest's messages cannot be sealed")
		case s.cfg.Sign:
			return errors.New("a guest's messages cannot be signed, and signing is demanded")
		}
		s.conn.Secure(sec)
		return nil
	}
	dialect := uint16(s.conn.Dialect)
	keys := smbcrypt.DeriveKeys(dialect, s.conn.Cipher, key, preauth)
	var err error
	if sec.Signer, err = smbcrypt.NewSigner(s.conn.Signing, keys.Sign); err != nil {
		return err
	}
	if s.conn.Cipher != 0 {
		if sec.Sealer, err = smbcrypt.NewSealer(s.conn.Cipher, sec.SessionID, keys.Encrypt, keys.Decrypt); err != nil {
			return err
		}
	}
	sec.Sign = s.cfg.Sign || s.conn.ServerMode&smb2msg.SigningRequired != 0
	sec.Seal = s.cfg.Seal || flags&smb2msg.SessionFlagEncryptData != 0
	if sec.Seal && sec.Sealer == nil {
		return fmt.Errorf("the server demands sealing, which %v cannot do", s.conn.Dialect)
	}
	signed := last.Header.Flags&smb2msg.FlagSigned != 0
	if !signed && (sec.Sign || s.conn.Dialect == smb2msg.SMB311) || signed && !sec.Signer.Verify(last.Reply()) {
		return fmt.Errorf("%w: %v reply", smbconn.ErrSignature, last.Command)
	}
	s.conn.Secure(sec)
	return nil
}

// mounted returns the volumes there are now.
func (s *Session) mounted() []*Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.volumes)
}

func (s *Session) unmounted(v *Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes = slices.DeleteFunc(s.volumes, func(other *Volume) bool { return other == v })
}

// Ping asks the server for a sign of life and says how long it took.
func (s *Session) Ping(ctx context.Context) (time.Duration, error) {
	call := &smbconn.Call{Command: smb2msg.CommandEcho, Body: &smb2msg.EchoRequest{}}
	if err := s.conn.Do(ctx, call); err != nil {
		return 0, err
	}
	return call.Done.Sub(call.Sent), verdict(call)
}

// Close logs off, as far as ctx allows, and ends the connection.
func (s *Session) Close(ctx context.Context) error {
	call := &smbconn.Call{Command: smb2msg.CommandLogoff, Body: &smb2msg.LogoffRequest{}}
	err := s.conn.Do(ctx, call)
	if err == nil {
		err = verdict(call)
	}
	s.conn.Close()
	return err
}

// Info is what a session agreed on with its server, and what it did.
type Info struct {
	Server      string
	Dialect     string
	Signing     string // the algorithm; empty: messages are not signed
	Cipher      string // empty: messages are not sealed
	Guest       bool
	MaxRead     int
	MaxWrite    int
	MaxTransact int
	RoundTrip   time.Duration // of the negotiation
	Stats       smbconn.Stats
}

// Info returns the state of things now.
func (s *Session) Info() Info {
	sec := s.conn.Security()
	i := Info{
		Server:      s.server,
		Dialect:     s.conn.Dialect.String(),
		Guest:       s.guest,
		MaxRead:     s.conn.MaxRead,
		MaxWrite:    s.conn.MaxWrite,
		MaxTransact: s.conn.MaxTransact,
		RoundTrip:   s.conn.RoundTrip,
		Stats:       s.conn.Stats(),
	}
	switch {
	case sec.Seal:
		i.Cipher = s.conn.Cipher.String()
	case sec.Sign:
		i.Signing = s.conn.Signing.String()
	}
	return i
}
