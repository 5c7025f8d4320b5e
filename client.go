package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/pagewire/pagewire/internal/smb"
)

// Client is one logon at a server, over one connection, which is made anew when it is
// lost. It is safe for concurrent use.
type Client struct {
	session *smb.Client
	link    *link
	host    string
	once    sync.Once // for what ends it
}

// Connect logs on to a server. What url says beyond that is left alone.
func Connect(ctx context.Context, url string, cfg *Config) (*Client, error) {
	d, err := newDialer(url, cfg)
	if err != nil {
		return nil, err
	}
	return d.connect(ctx)
}

// Dial connects to a share. ctx bounds dialling only. If the URL goes on below the
// share, the folder there is the root of the FS. Closing the FS closes the
// connection.
func Dial(ctx context.Context, url string, cfg *Config) (*FS, error) {
	d, err := newDialer(url, cfg)
	if err != nil {
		return nil, err
	}
	if d.source.Share == "" {
		return nil, &SourceError{Source: d.source.String(), Reason: "no share, as in //host/share"}
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	fsys, err := c.Share(ctx, d.source.Share)
	if err != nil {
		c.abort()
		return nil, err
	}
	fsys.share.release = c.Shutdown
	if d.source.Path == "." {
		return fsys, nil
	}
	info, err := fs.Stat(fsys.WithContext(ctx), d.source.Path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "dial", Path: d.source.Path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		c.abort()
		return nil, err
	}
	return &FS{share: fsys.share, dir: d.source.Path}, nil
}

// Share opens a share. Closing its FS leaves the client connected.
func (c *Client) Share(ctx context.Context, name string) (*FS, error) {
	spelled := "//" + c.host + "/" + name
	if name == "" || strings.ContainsAny(name, "/\\\x00") {
		return nil, &fs.PathError{Op: "mount", Path: spelled, Err: fs.ErrInvalid}
	}
	vol, err := c.session.Mount(ctx, name)
	if err != nil {
		return nil, pathError("mount", spelled, ctx, err)
	}
	return &FS{share: newShare(c.link, vol, spelled), dir: "."}, nil
}

// ShareInfo describes a share of a server.
type ShareInfo struct {
	Name    string
	Kind    ShareKind
	Hidden  bool // it is the server's own, or its name ends in $
	Comment string
}

// ShareKind says what a share gives access to. See [MS-SRVS] 2.2.2.4.
type ShareKind uint8

const (
	DiskShare ShareKind = iota
	PrinterShare
	DeviceShare
	PipeShare
)

// The bits of a share's type.
const (
	shareKind    = 0x000000FF
	shareSpecial = 0x80000000
)

// Shares lists the server's shares.
func (c *Client) Shares(ctx context.Context) ([]ShareInfo, error) {
	found, err := c.session.Shares(ctx)
	if err != nil {
		return nil, pathError("list shares", "//"+c.host, ctx, err)
	}
	shares := make([]ShareInfo, len(found))
	for i, s := range found {
		shares[i] = ShareInfo{
			Name:    s.Name,
			Kind:    ShareKind(s.Type & shareKind),
			Hidden:  s.Type&shareSpecial != 0 || strings.HasSuffix(s.Name, "$"),
			Comment: s.Comment,
		}
	}
	return shares, nil
}

// Ping asks the server for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	took, err := c.session.Ping(ctx)
	if err != nil {
		return pathError("ping", "//"+c.host, ctx, err)
	}
	c.link.tripTook(took)
	return nil
}

// Stats returns what the connection is and has done.
func (c *Client) Stats() Stats { return c.link.stats() }

// Shutdown closes all file systems of the client, which writes what is not yet on the
// server, logs off, as far as ctx allows, and closes the connection.
func (c *Client) Shutdown(ctx context.Context) error {
	var failed error
	for _, s := range c.link.shares() {
		if err := s.close(ctx); !errors.Is(err, fs.ErrClosed) {
			failed = errors.Join(failed, err)
		}
	}
	var err error
	c.once.Do(func() {
		err = c.session.Close(ctx)
		if c.link.private {
			c.link.cache.Close() // which cannot fail where nothing is open
		}
	})
	return errors.Join(failed, pathError("log off", "//"+c.host, ctx, err))
}

// Close is Shutdown for as long as it takes. That has an end: a server that does not
// answer is given up on.
func (c *Client) Close() error { return c.Shutdown(context.Background()) }

// abort gives up a client that was never used.
func (c *Client) abort() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c.Shutdown(over) // whose error says that it was cut short
}
