package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire"
)

// place is where an argument points to: on a server or on this machine.
type place struct {
	arg    string // as given; may hold a password
	name   string // for people
	remote bool
	source pagewire.Source // of a remote place
	path   string          // below the share, as fs.ValidPath has it; or a local path
}

// parsePlace tells a remote argument from a local one.
func parsePlace(arg string) (place, error) {
	if arg == "" {
		return place{}, usagef("an empty name is no place")
	}
	if !pagewire.IsSource(arg) {
		return place{arg: arg, name: arg, path: arg}, nil
	}
	s, err := pagewire.ParseSource(arg)
	if err != nil {
		return place{}, err
	}
	return place{arg: arg, name: s.String(), remote: true, source: s, path: s.Path}, nil
}

// parseRemote demands a place in a share.
func parseRemote(verb, arg string) (place, error) {
	p, err := parsePlace(arg)
	switch {
	case err != nil:
		return place{}, err
	case !p.remote:
		return place{}, usagef("%s %s: not on a server; want //host/share/path or smb://host/share/path", verb, printable(arg))
	case p.source.Share == "":
		return place{}, usagef("%s %s: names a server, but no share of it", verb, printable(p.name))
	}
	return p, nil
}

// redacted is arg as it may be shown.
func redacted(arg string) string {
	p, err := parsePlace(arg)
	var source *pagewire.SourceError
	switch {
	case err == nil:
		return printable(p.name)
	case errors.As(err, &source):
		return printable(source.Source)
	}
	return printable(arg)
}

// error wraps what went wrong at p.
func (p place) error(verb string, err error) error {
	if err == nil {
		return nil
	}
	return &placeError{verb: verb, at: p.name, path: p.path, err: err}
}

// bareError is error for operations on p under another name, or in part.
func (p place) bareError(verb string, err error) error { return p.error(verb, bare(err)) }

// bare takes the operation and the name off err.
func bare(err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}

// join is the place of name, a file or a path of several, in the folder p.
func (p place) join(name string) place {
	if !p.remote {
		p.path = filepath.Join(p.path, name)
		p.name = p.path
		return p
	}
	p.path = path.Join(p.path, name)
	p.source.Path = p.path
	p.name = p.source.String()
	return p
}

// base is the last name of p: the share's for the root of a share.
func (p place) base() string {
	switch {
	case !p.remote:
		return filepath.Base(p.path)
	case p.path == ".":
		return p.source.Share
	}
	return path.Base(p.path)
}

// server is a server and who is logged on there.
type server struct {
	host         string
	port         int
	user, domain string
}

func (p place) server() server {
	return server{strings.ToLower(p.source.Host), p.source.Port, p.source.User, p.source.Domain}
}

// sameShare reports whether p and q are in one share.
func (p place) sameShare(q place) bool {
	return p.remote && q.remote && p.server() == q.server() && strings.EqualFold(p.source.Share, q.source.Share)
}

// logon is what two places must have in common to share a connection.
type logon struct {
	server
	userinfo string // of the URL, with the password
}

func (p place) logon() logon {
	_, rest, _ := strings.Cut(p.arg, "://")
	authority, _, _ := strings.Cut(rest, "/")
	return logon{p.server(), authority[:max(strings.LastIndexByte(authority, '@'), 0)]}
}

// connection is a logon at a server, and the shares open over it.
type connection struct {
	once   sync.Once
	client *pagewire.Client
	err    error

	mu     sync.Mutex
	shares map[string]*pagewire.FS // guarded by mu
}

// config is how this run connects.
func (r *run) config() *pagewire.Config {
	cfg := &pagewire.Config{
		Credentials: r.credentials,
		Descriptor:  &r.descriptor,
		Options:     strings.Join(r.options, ","),
		Logger:      r.logger(),
	}
	if _, ok := terminal(r.stdin); ok {
		cfg.Prompt = r.prompt
	}
	return cfg
}

// connect logs on to the server of p, once in a run.
func (r *run) connect(ctx context.Context, p place) (*connection, error) {
	r.mu.Lock()
	c := r.conns[p.logon()]
	if c == nil {
		c = &connection{shares: map[string]*pagewire.FS{}}
		if r.conns == nil {
			r.conns = map[logon]*connection{}
		}
		r.conns[p.logon()] = c
	}
	r.mu.Unlock()
	c.once.Do(func() {
		c.client, c.err = pagewire.Connect(ctx, p.arg, r.config())
		c.err = bare(c.err)
	})
	return c, c.err
}

// open opens the share of p, once in a run.
func (r *run) open(ctx context.Context, p place) (*pagewire.FS, error) {
	c, err := r.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.ToLower(p.source.Share)
	if f := c.shares[key]; f != nil {
		return f, nil
	}
	f, err := c.client.Share(ctx, p.source.Share)
	if err != nil {
		return nil, bare(err)
	}
	c.shares[key] = f
	r.economize(f)
	return f, nil
}

// grace is how long is spent on an orderly end after an interruption.
const grace = 2 * time.Second

// closeAll logs off everywhere, in a moment even if ctx has ended.
func (r *run) closeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	var errs []error
	for _, c := range conns {
		if c.client == nil {
			continue
		}
		for _, f := range c.shares {
			errs = append(errs, f.Close())
		}
		if err := c.client.Shutdown(ctx); err != nil {
			c.client.Close()
		}
	}
	return errors.Join(errs...)
}
