package pagewire

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

// Config is how to connect. nil and the zero value mean the defaults.
type Config struct {
	// Credentials is asked at every logon. nil: those of credentials=, then of
	// PASSWD, PASSWD_FD, PASSWD_FILE and USER in the environment, then of the URL
	// and password=, then what Prompt returns.
	Credentials func(context.Context) (Credentials, error)
	// Prompt is asked for the password of user when nothing else has one. nil: that is an error.
	Prompt func(ctx context.Context, user, host string) (password string, err error)
	// Options are those of -o: "vers=3.1.1,seal".
	Options string
	// DialContext makes the connection. nil: that of a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger hears of rare events. nil: nobody does.
	Logger *slog.Logger
}

// Dial connects to a share. ctx bounds dialling only. Closing the FS closes the
// connection. If the URL goes on below the share, that folder is the root of the FS.
func Dial(ctx context.Context, url string, cfg *Config) (*FS, error) {
	return nil, errors.ErrUnsupported
}

// Connect logs on to a server; what url says beyond it is left alone.
func Connect(ctx context.Context, url string, cfg *Config) (*Client, error) {
	return nil, errors.ErrUnsupported
}

// Client is one logon at a server, over one connection. It is safe for concurrent use.
type Client struct{}

// ShareInfo describes a share of a server.
type ShareInfo struct {
	Name    string
	Kind    ShareKind
	Hidden  bool // its name ends in $, or it is one of the server's own
	Comment string
}

// ShareKind says what a share gives access to.
type ShareKind uint8

const (
	DiskShare ShareKind = iota
	PrinterShare
	DeviceShare
	PipeShare
)

// Shares lists the server's shares.
func (c *Client) Shares(ctx context.Context) ([]ShareInfo, error) { return nil, errors.ErrUnsupported }

// Share opens a share. Closing its FS leaves the client connected.
func (c *Client) Share(ctx context.Context, name string) (*FS, error) {
	return nil, errors.ErrUnsupported
}

// Ping asks the server for a sign of life.
func (c *Client) Ping(ctx context.Context) error { return errors.ErrUnsupported }

// Stats returns what the connection does and has done.
func (c *Client) Stats() Stats { return Stats{} }

// Shutdown logs off and closes the connection.
func (c *Client) Shutdown(ctx context.Context) error { return errors.ErrUnsupported }

// Close closes the connection. Whatever still runs over it fails.
func (c *Client) Close() error { return errors.ErrUnsupported }
