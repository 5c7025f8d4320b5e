package smb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// lab is a client that lasts, its test server, and what cuts them apart.
type lab struct {
	t   *testing.T
	srv *smbtest.Server
	c   *Client
	sh  *Share

	fault    atomic.Pointer[func(smbtest.Request) smbtest.Fault]
	counts   *counted
	password atomic.Pointer[string]

	mu    sync.Mutex
	dials int        // guarded by mu, as are the next three
	conns []*severed // all there have been
	down  error      // why nobody gets through; nil: the way is free
	next  func() *smbtest.Server
}

// severed is a connection whose client end can be cut in mid-request.
type severed struct {
	net.Conn
	left atomic.Int64 // bytes that may still be sent; negative: all
}

func (s *severed) cut() { s.Conn.(*netsim.Conn).Cut() }

func (s *severed) Write(p []byte) (n int, err error) {
	left := s.left.Load()
	if left < 0 || int64(len(p)) <= left {
		if left >= 0 {
			s.left.Add(-int64(len(p)))
		}
		return s.Conn.Write(p)
	}
	n, _ = s.Conn.Write(p[:left])
	s.cut()
	return n, syscall.EPIPE
}

var errDown error = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

func (l *lab) connect(ctx context.Context) (net.Conn, auth.Credentials, error) {
	creds := auth.Credentials{User: "user", Password: *l.password.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	if l.down != nil {
		return nil, creds, l.down
	}
	srv := l.srv
	if l.next != nil {
		srv = l.next()
	}
	nc, err := srv.Dial(ctx, "", "")
	if err != nil {
		return nil, creds, err
	}
	s := &severed{Conn: nc}
	s.left.Store(-1)
	l.conns = append(l.conns, s)
	return s, creds, nil
}

// lasting runs test with a client that lasts, in virtual time, and checks that
// nothing of it is left.
func lasting(t *testing.T, server smbtest.Config, client ClientConfig, test func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(server)
		defer srv.Close()
		l := &lab{t: t, srv: srv, counts: &counted{n: map[string]int{}}}
		l.password.Store(new("pass"))
		l.counts.fault = func(r smbtest.Request) smbtest.Fault {
			if f := l.fault.Load(); f != nil {
				return (*f)(r)
			}
			return smbtest.Fault{}
		}
		srv.SetFaults(l.counts.faults)
		client.Server, client.Connect = "server", l.connect
		var err error
		if l.c, err = NewClient(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		defer l.close(t)
		if l.sh, err = l.c.Mount(t.Context(), "share"); err != nil {
			t.Fatal(err)
		}
		test(t, l)
	})
}

func (l *lab) close(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := l.c.Close(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("Client.Close: %v", err)
	}
}

// faults makes requests fail.
func (l *lab) faults(f func(smbtest.Request) smbtest.Fault) { l.fault.Store(&f) }

// cutReply ends the connection after so many bytes of the next reply to a command.
func (l *lab) cutReply(command string, at int) {
	var done atomic.Bool
	l.faults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == command && !done.Swap(true) {
			return smbtest.Fault{CutAt: at}
		}
		return smbtest.Fault{}
	})
}

// cutRequest ends the connection after so many more bytes from the client.
func (l *lab) cutRequest(after int) { l.last().left.Store(int64(after)) }

func (l *lab) last() *severed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[len(l.conns)-1]
}

// cut ends the connection, and waits until everybody has heard of it.
func (l *lab) cut() {
	l.last().cut()
	synctest.Wait()
}

// block lets no new connection through until it is called with nil.
func (l *lab) block(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

// cutOff ends the connection and lets none through.
func (l *lab) cutOff() {
	l.block(errDown)
	l.cut()
}

func (l *lab) dialed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// open opens a file for reading and writing, which is made if it is not there.
func (l *lab) open(t *testing.T, name string, rights remote.Rights, events remote.Events) remote.Opened {
	t.Helper()
	how := remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew, Rights: rights}
	o, err := l.sh.Open(t.Context(), remote.At{Name: name}, how, events)
	if err != nil {
		t.Fatalf("Open %s: %v", name, err)
	}
	return o
}

// write makes a file on the server by other means.
func (l *lab) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := l.srv.WriteFile(name, content); err != nil {
		t.Fatal(err)
	}
}

// has checks what a file on the server holds.
func (l *lab) has(t *testing.T, name string, want []byte) {
	t.Helper()
	if got, err := l.srv.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes, %v; want other %d", name, len(got), err, len(want))
	}
}

func readAt(ctx context.Context, o remote.Opened, off int64, want []byte) error {
	buf := make([]byte, len(want))
	for n := 0; n < len(buf); {
		m, eof, err := o.File.ReadAt(ctx, remote.Req{Open: o.Open, Off: off + int64(n)}, [][]byte{buf[n:]})
		if err != nil || eof {
			return errors.Join(err, map[bool]error{true: errors.New("end of file")}[eof])
		}
		n += m
	}
	if !bytes.Equal(buf, want) {
		return errors.New("wrong bytes")
	}
	return nil
}

func writeAt(ctx context.Context, o remote.Opened, off int64, p []byte) error {
	for len(p) > 0 {
		n, _, err := o.File.WriteAt(ctx, remote.Req{Open: o.Open, Off: off}, remote.Write{Data: [][]byte{p}})
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// lists lists a folder, and says how far that came.
func lists(ctx context.Context, v remote.Volume, name string) (n int, err error) {
	for page, err := range v.ReadDir(ctx, remote.At{Name: name}) {
		if err != nil {
			return n, err
		}
		n += len(page)
	}
	return n, nil
}

// cuts are what may end a connection under a request.
var cuts = []struct {
	name   string
	writes int // how often a WRITE of 100,000 bytes arrives
	cut    func(l *lab, command string)
}{
	{"before it", 1, func(l *lab, _ string) { l.cutRequest(0) }},
	{"in its prefix", 1, func(l *lab, _ string) { l.cutRequest(3) }},
	{"in its header", 1, func(l *lab, _ string) { l.cutRequest(30) }},
	{"in its payload", 1, func(l *lab, _ string) { l.cutRequest(50_000) }}, // others are sent
	{"with it unanswered", 2, func(l *lab, command string) { l.cutReply(command, 1) }},
	{"in the header of the reply", 2, func(l *lab, command string) { l.cutReply(command, 30) }},
	{"in the body of the reply", 2, func(l *lab, command string) { l.cutReply(command, 70) }},
	{"between the replies of a compound", 1, func(l *lab, command string) { l.cutReply(command, 4+64+88+8) }},
	{"in the payload of the reply", 1, func(l *lab, command string) { l.cutReply(command, 40_000) }},
	{"idle", 1, func(l *lab, _ string) { l.cut() }},
	{"unnoticed", 1, func(l *lab, _ string) { l.last().cut() }},
}

// TestCuts does everything there is while the connection is lost at any place: what
// only asks goes on, and so does what writes, what changes names is an error.
func TestCuts(t *testing.T) {
	content := noise(100_000)
	other := bytes.Repeat([]byte("new "), 25_000)
	file := remote.At{Name: "file"}
	for _, op := range []struct {
		name, command string
		once          bool // it is not tried again
		do            func(ctx context.Context, l *lab, o remote.Opened) error
	}{
		{"ReadAt", "READ", false, func(ctx context.Context, l *lab, o remote.Opened) error {
			return readAt(ctx, o, 0, content)
		}},
		{"WriteAt", "WRITE", false, func(ctx context.Context, l *lab, o remote.Opened) error {
			defer l.has(t, "file", other)
			return writeAt(ctx, o, 0, other)
		}},
		{"Commit", "FLUSH", false, func(ctx context.Context, l *lab, o remote.Opened) error {
			_, err := o.File.Commit(ctx, o.Open, nil)
			return err
		}},
		{"File.GetAttr", "QUERY_INFO", false, func(ctx context.Context, l *lab, o remote.Opened) error {
			attr, err := o.File.GetAttr(ctx, o.Open)
			if err == nil && attr.Size != int64(len(content)) {
				err = fmt.Errorf("size %d", attr.Size)
			}
			return err
		}},
		{"SetSize", "SET_INFO", false, func(ctx context.Context, l *lab, o remote.Opened) error {
			attr, err := o.File.SetSize(ctx, o.Open, 77)
			if err == nil && attr.Size != 77 {
				err = fmt.Errorf("size %d", attr.Size)
			}
			l.has(t, "file", content[:77])
			return err
		}},
		{"Append", "WRITE", true, func(ctx context.Context, l *lab, o remote.Opened) error {
			_, _, err := o.Open.Append(ctx, [][]byte{other})
			return err
		}},
		{"Open", "CREATE", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			o, err := l.sh.Open(ctx, file, remote.How{Access: remote.ForRead}, nil)
			if err != nil {
				return err
			}
			return errors.Join(readAt(ctx, o, 0, content), o.Open.Close(ctx))
		}},
		{"Open anew", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.Open(ctx, remote.At{Name: "new"}, remote.How{Access: remote.ForRead, Create: remote.New}, nil)
			return err
		}},
		{"GetAttr", "CREATE", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			attr, err := l.sh.GetAttr(ctx, file)
			if err == nil && attr.Size != int64(len(content)) {
				err = fmt.Errorf("size %d", attr.Size)
			}
			return err
		}},
		{"ReadFile", "CREATE", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			buf := make([]byte, len(content))
			n, _, err := l.sh.ReadFile(ctx, file, buf)
			if err == nil && !bytes.Equal(buf[:n], content) {
				err = errors.New("wrong bytes")
			}
			return err
		}},
		{"WriteFile", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.WriteFile(ctx, remote.At{Name: "small"}, remote.How{Create: remote.New}, other)
			return err
		}},
		{"ReadDir", "CREATE", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			n, err := lists(ctx, l.sh, "dir")
			switch {
			case err == nil && n != 10:
				err = fmt.Errorf("%d entries", n)
			case n > 0 && errors.Is(err, smbconn.ErrDisconnected): // it had begun
				err = nil
			}
			return err
		}},
		{"mkdir", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.Make(ctx, remote.At{Name: "folder"}, remote.Make{Kind: remote.Dir})
			return err
		}},
		{"Remove", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			return l.sh.Remove(ctx, remote.At{Name: "dir/0"}, false)
		}},
		{"Rename", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.Rename(ctx, remote.At{Name: "dir/0"}, remote.At{Name: "moved"}, false)
			return err
		}},
		{"Link", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			return l.sh.Link(ctx, remote.At{Name: "dir/0"}, remote.At{Name: "linked"})
		}},
		{"SetAttr", "CREATE", true, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.SetAttr(ctx, remote.At{Name: "dir/0"}, remote.SetAttr{Written: time.Unix(1, 0)})
			return err
		}},
		{"StatFS", "CREATE", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.sh.StatFS(ctx)
			return err
		}},
		{"Ping", "ECHO", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.c.Ping(ctx)
			return err
		}},
		{"Shares", "IOCTL", false, func(ctx context.Context, l *lab, _ remote.Opened) error {
			_, err := l.c.Shares(ctx)
			return err
		}},
	} {
		for _, c := range cuts {
			t.Run(op.name+"/"+c.name, func(t *testing.T) {
				lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
					l.write(t, "file", content)
					for i := range 10 {
						l.write(t, fmt.Sprint("dir/", i), nil)
					}
					o := l.open(t, "file", 0, nil)
					c.cut(l, op.command)
					dials := l.dialed()
					err := op.do(t.Context(), l, o)
					if err != nil && (!op.once || !errors.Is(err, smbconn.ErrDisconnected)) {
						t.Errorf("%v", err)
					}
					if n := l.counts.of("WRITE"); op.name == "WriteAt" && n != c.writes {
						t.Errorf("%d WRITEs have arrived, want %d", n, c.writes)
					}
					if _, err := l.sh.GetAttr(t.Context(), file); err != nil {
						t.Errorf("the next operation: %v", err)
					}
					if n := l.dialed() - dials; n > 1 {
						t.Errorf("%d new connections for one that was lost", n)
					}
					if err := o.Open.Close(t.Context()); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
			})
		}
	}
}
