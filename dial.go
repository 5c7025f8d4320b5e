package pagewire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/smb"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// Config is how to connect. nil and the zero value mean the defaults.
type Config struct {
	// Credentials is asked at every logon. nil: those of credentials=, then of
	// PASSWD, PASSWD_FD, PASSWD_FILE and USER in the environment, then of the URL
	// and password=, then what Prompt returns.
	Credentials func(context.Context) (Credentials, error)
	// Prompt is asked for a password when nothing else has one. nil: that is an error.
	Prompt func(ctx context.Context, user, host string) (password string, err error)
	// Descriptor keeps what PASSWD_FD had, for those who connect more than once in a
	// process. nil: it is read for each connection.
	Descriptor *Descriptor
	// Options are those of -o: "vers=3.1.1,seal".
	Options string
	// Cache keeps the bytes of files. nil: each connection has one of its own, as large
	// as the options say.
	Cache *Cache
	// DialContext makes the connection. nil: that of a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger hears of rare events. nil: nobody does.
	Logger *slog.Logger
}

const (
	defaultPort = 445
	// connectTimeout is less patient than TCP.
	connectTimeout = 30 * time.Second
)

// dialer is a Config made ready for one source.
type dialer struct {
	source  Source
	options Options
	address string
	cfg     Config
}

func newDialer(url string, cfg *Config) (*dialer, error) {
	d := &dialer{}
	if cfg != nil {
		d.cfg = *cfg
	}
	var err error
	if d.source, err = ParseSource(url); err != nil {
		return nil, err
	}
	if d.options, err = ParseOptions(d.cfg.Options); err != nil {
		return nil, err
	}
	if d.source.Port != 0 && d.options.Port != 0 && d.source.Port != d.options.Port {
		return nil, &OptionError{"port", fmt.Sprintf("port=%d and the port of the URL, %d, contradict each other", d.options.Port, d.source.Port)}
	}
	host, port := first(d.options.IP, d.source.Host), max(d.options.Port, d.source.Port)
	if port == 0 {
		port = defaultPort
	}
	d.address = net.JoinHostPort(host, strconv.Itoa(port))
	if d.cfg.DialContext == nil {
		d.cfg.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	if d.cfg.Logger == nil {
		d.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if d.cfg.Credentials == nil {
		l := &login{source: d.source, options: d.options, lookupEnv: os.LookupEnv, prompt: d.cfg.Prompt, logger: d.cfg.Logger, descriptor: cmp.Or(d.cfg.Descriptor, new(Descriptor))}
		d.cfg.Credentials = l.credentials
	}
	return d, nil
}

func (d *dialer) connect(ctx context.Context) (*Client, error) {
	session, err := smb.NewClient(ctx, smb.ClientConfig{Config: d.smb(), Server: d.source.Host, Connect: d.logon})
	if err != nil {
		if e, ok := errors.AsType[*credentialsError](err); ok {
			return nil, e.error
		}
		return nil, d.fail(ctx, err)
	}
	info := session.Info()
	d.cfg.Logger.DebugContext(ctx, "connected", "server", d.address, "dialect", info.Dialect, "signing", info.Signing, "cipher", info.Cipher)
	l, err := newLink(d.options, d.cfg.Cache)
	if err != nil {
		session.Close(ctx)
		return nil, err
	}
	l.server, l.logger = d.address, d.cfg.Logger
	l.tripTook(info.RoundTrip)
	l.about = func(s *Stats) { describe(s, session.Info()) }
	return &Client{session: session, link: l, host: d.source.Host}, nil
}

// credentialsError keeps that there are no credentials apart from what a server says.
type credentialsError struct{ error }

func (e *credentialsError) Unwrap() error { return e.error }

// logon makes a connection, and says who logs on over it.
func (d *dialer) logon(ctx context.Context) (net.Conn, auth.Credentials, error) {
	credentials, err := d.cfg.Credentials(ctx)
	if err != nil {
		return nil, auth.Credentials{}, &credentialsError{err}
	}
	password, _ := credentials.Password.get()
	nc, err := d.cfg.DialContext(ctx, "tcp", d.address)
	return nc, auth.Credentials{User: credentials.User, Password: password, Domain: credentials.Domain}, err
}

func (d *dialer) smb() smb.Config {
	cfg := d.options.smb()
	cfg.Logger = d.cfg.Logger
	cfg.Redial = func(ctx context.Context) (net.Conn, error) { return d.cfg.DialContext(ctx, "tcp", d.address) }
	return cfg
}

// fail makes public why there is no connection.
func (d *dialer) fail(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*smbconn.NegotiateError](err); ok {
		err = &NegotiateError{Offered: e.Offered, Server: e.Server}
	} else if errors.Is(err, auth.ErrLogon) {
		err = fmt.Errorf("%w: %w", ErrAuth, err)
	} else {
		err = public(opLogon, ctx, err)
	}
	return &fs.PathError{Op: "connect", Path: d.source.String(), Err: err}
}

// smb says in SMB's words what the options demand.
func (o *Options) smb() smb.Config {
	cfg := smb.Config{
		Anonymous:  o.Security == "none",
		Guest:      o.Guest,
		Sign:       o.Sign || o.Security == "ntlmsspi",
		Seal:       o.Seal,
		MaxCredits: o.MaxCredits,
		ReadSize:   o.ReadSize,
		WriteSize:  o.WriteSize,
		MFSymlinks: o.MFSymlinks,
		Timeout:    2 * o.EchoInterval, // halfway, an echo is asked for
	}
	switch {
	case o.MapChars:
		cfg.Mapping = smb.MapChars
	case o.MapNone:
		cfg.Mapping = smb.MapNone
	}
	switch o.Version { // See [MS-SMB2] 2.2.3.
	case "2.0.2":
		cfg.Dialects = append(cfg.Dialects, 0x0202)
	case "2.1":
		cfg.Dialects = append(cfg.Dialects, 0x0210)
	case "3.0":
		cfg.Dialects = append(cfg.Dialects, 0x0300)
	case "3.0.2":
		cfg.Dialects = append(cfg.Dialects, 0x0302)
	case "3.1.1":
		cfg.Dialects = append(cfg.Dialects, 0x0311)
	case "3":
		cfg.Dialects = append(cfg.Dialects, 0x0300, 0x0302, 0x0311)
	}
	return cfg
}

// describe adds to s what a session knows.
func describe(s *Stats, i smb.Info) {
	s.Dialect, s.Signing, s.Cipher, s.Guest = i.Dialect, i.Signing, i.Cipher, i.Guest
	s.MaxRead, s.MaxWrite, s.MaxTransact = i.MaxRead, i.MaxWrite, i.MaxTransact
	s.Credits, s.MaxCredits = i.Stats.Credits, i.Stats.MaxCredits
	s.MaxInFlight = int(i.Stats.MaxInFlight)
	for _, n := range i.Stats.Requests {
		s.Requests += n
	}
}
