package smb

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// someProtections runs test on an old dialect and a new one, plain and sealed.
func someProtections(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Run("2.1", func(t *testing.T) { test(t, Config{Dialects: []smb2msg.Dialect{smb2msg.SMB210}}) })
	t.Run("3.1.1", func(t *testing.T) { test(t, Config{Dialects: []smb2msg.Dialect{smb2msg.SMB311}}) })
	t.Run("3.1.1 sealed", func(t *testing.T) { test(t, Config{Dialects: []smb2msg.Dialect{smb2msg.SMB311}, Seal: true}) })
}

// lastingVolume mounts a share with a client that lasts until the test ends.
func lastingVolume(t testing.TB, cfg Config, share string, connect func(context.Context) (net.Conn, auth.Credentials, error)) *Share {
	t.Helper()
	c, err := NewClient(context.Background(), ClientConfig{Config: cfg, Server: "127.0.0.1", Connect: connect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	sh, err := c.Mount(context.Background(), share)
	if err != nil {
		t.Fatal(err)
	}
	return sh
}

// TestLastingOnTestServer runs the suite that every volume passes.
func TestLastingOnTestServer(t *testing.T) {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()
	connect := func(ctx context.Context) (net.Conn, auth.Credentials, error) {
		nc, err := srv.Dial(ctx, "", "")
		return nc, auth.Credentials{User: "user", Password: "pass"}, err
	}
	someProtections(t, func(t *testing.T, cfg Config) {
		remotetest.Run(t, func(t *testing.T) remotetest.Target {
			return remotetest.Target{
				Volume: lastingVolume(t, cfg, "share", connect),
				Second: lastingVolume(t, cfg, "share", connect),
				Caps: remotetest.Caps{
					Symlinks:       true,
					Links:          true,
					DOS:            true,
					FoldCase:       true,
					Reserved:       true,
					LoneSurrogates: true,
					Rights:         allRights,
				},
			}
		})
	})
}

// TestLasting runs it on a real server.
func TestLasting(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	someProtections(t, func(t *testing.T, cfg Config) {
		cfg.MFSymlinks = true
		remotetest.Run(t, func(t *testing.T) remotetest.Target {
			return remotetest.Target{
				Volume: lastingVolume(t, cfg, srv.Share, dialing(srv, srv.Addr)),
				Second: lastingVolume(t, cfg, srv.Share, dialing(srv, srv.Addr)),
				Caps: remotetest.Caps{
					Symlinks:     true,
					Links:        true,
					DOS:          true,
					FoldCase:     true,
					Reserved:     true,
					MaxNameBytes: 255,
					Rights:       allRights,
				},
			}
		})
	})
}

// dialing connects to a real server by an address.
func dialing(srv *sambatest.Server, addr string) func(context.Context) (net.Conn, auth.Credentials, error) {
	return func(ctx context.Context) (net.Conn, auth.Credentials, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return nc, auth.Credentials{User: srv.User, Password: srv.Password}, err
	}
}

// TestLastingHotPathAllocatesNothing counts what READs and WRITEs allocate.
func TestLastingHotPathAllocatesNothing(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	sh := lastingVolume(t, Config{}, srv.Share, dialing(srv, srv.Addr))
	o, err := sh.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.New}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	buf := [][]byte{make([]byte, 64<<10)}
	req := remote.Req{Open: o.Open}
	for _, do := range []struct {
		name string
		once func() (int, error)
	}{
		{"WRITE", func() (int, error) { n, _, err := o.File.WriteAt(ctx, req, remote.Write{Data: buf}); return n, err }},
		{"READ", func() (int, error) { n, _, err := o.File.ReadAt(ctx, req, buf); return n, err }},
	} {
		allocs := testing.AllocsPerRun(200, func() {
			if n, err := do.once(); n != 64<<10 || err != nil {
				t.Fatalf("%s: %d bytes, %v", do.name, n, err)
			}
		})
		if allocs > 0 {
			t.Errorf("%s allocates %v times", do.name, allocs)
		}
	}
}

// killed is a real server that is killed and started anew, over the same folder.
type killed struct {
	t   *testing.T
	dir string
	srv atomic.Pointer[sambatest.Server]
}

func newKilled(t *testing.T) *killed {
	sambatest.Need(t)
	k := &killed{t: t, dir: t.TempDir()}
	for dir := k.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o777)
	}
	k.start()
	t.Cleanup(func() { k.srv.Load().Close() })
	return k
}

func (k *killed) start() {
	k.t.Helper()
	srv, err := sambatest.Run(context.Background(), sambatest.Config{Dir: k.dir})
	if err != nil {
		k.t.Error(err)
		return
	}
	k.srv.Store(srv)
}

// kill kills smbd and what it has forked, as a crash would, and starts another.
func (k *killed) kill() {
	k.t.Helper()
	srv := k.srv.Load()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(srv.Conf), "pid", "smbd.pid"))
	if err != nil {
		k.t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		k.t.Errorf("smbd is process %d, %v", pid, err)
		return
	}
	syscall.Kill(-pid, syscall.SIGKILL) // the group that sambatest has made for it
	srv.Close()
	k.start()
}

func (k *killed) connect(ctx context.Context) (net.Conn, auth.Credentials, error) {
	srv := k.srv.Load()
	return dialing(srv, srv.Addr)(ctx)
}

// load reads and writes a file of a real server in many places until ctx ends, and
// checks every byte.
func load(t *testing.T, ctx context.Context, sh *Share, path string, cut func(r *rand.Rand)) {
	const workers, size = 4, 400_000
	model := noise(workers * size)
	c := make(told, 4096)
	how := remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew, Rights: allRights}
	o, err := sh.Open(t.Context(), remote.At{Name: filepath.Base(path)}, how, obliging{c})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAt(t.Context(), o, 0, model); err != nil {
		t.Error(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		cut(rand.New(rand.NewPCG(1, 99)))
	})
	var ops atomic.Int64
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			mine := model[w*size : (w+1)*size]
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				ops.Add(1)
				off := r.IntN(size)
				n := 1 + r.IntN(min(200_000, size-off))
				at := int64(w*size + off)
				var err error
				if r.IntN(2) == 0 {
					err = readAt(ctx, o, at, mine[off:off+n])
				} else {
					p := bytes.Repeat([]byte{byte(w), byte(i), byte(i >> 8), 0xA5}, n/4+1)[:n]
					for err = writeAt(ctx, o, at, p); errors.Is(err, smbconn.ErrDisconnected); {
						err = writeAt(ctx, o, at, p)
					}
					copy(mine[off:], p)
				}
				if err != nil && !errors.Is(err, smbconn.ErrDisconnected) {
					t.Errorf("%d bytes at %d: %v", n, at, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if _, err := o.File.Commit(ctx, o.Open, nil); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, model) {
		t.Errorf("the file holds %d bytes that differ, %v", len(got), err)
	}
	if err := o.Open.Close(ctx); err != nil {
		t.Error(err)
	}
	last := remote.Change{Trust: remote.Current, Rights: allRights}
	for len(c) > 0 {
		if last = <-c; last.Trust == remote.Outdated {
			t.Errorf("told of %+v", last)
		}
	}
	if last.Trust != remote.Current || last.Rights != allRights {
		t.Errorf("told of %+v in the end", last)
	}
	t.Logf("%d operations", ops.Load())
}

// TestServerIsKilled under load, and comes back.
func TestServerIsKilled(t *testing.T) {
	someProtections(t, func(t *testing.T, cfg Config) {
		k := newKilled(t)
		sh := lastingVolume(t, cfg, k.srv.Load().Share, k.connect)
		load(t, t.Context(), sh, filepath.Join(k.dir, "file"), func(r *rand.Rand) {
			for range 3 {
				<-time.After(time.Duration(r.IntN(300)) * time.Millisecond)
				k.kill()
				sh.c.Ping(t.Context())
			}
		})
	})
}

// TestRealConnectionsAreCut at random moments, while the server lives: it has to let
// go of what the session before had.
func TestRealConnectionsAreCut(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	someProtections(t, func(t *testing.T, cfg Config) {
		link := netsim.New(netsim.Config{})
		p, err := link.Proxy(srv.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		sh := lastingVolume(t, cfg, srv.Share, dialing(srv, p.Addr()))
		load(t, t.Context(), sh, filepath.Join(srv.Dir, strings.ReplaceAll(t.Name(), "/", " ")), func(r *rand.Rand) {
			for i := range 12 {
				<-time.After(time.Duration(r.IntN(100)) * time.Millisecond)
				switch i % 3 {
				case 0:
					link.Cut()
				case 1:
					link.CutAfter(netsim.Up, int64(1+r.IntN(300_000)))
				case 2:
					link.CutAfter(netsim.Down, int64(1+r.IntN(300_000)))
				}
				sh.c.Ping(t.Context())
			}
		})
	})
}

// halfDying mounts a share over connections whose end the server does not notice. kill
// ends the latest, and gives the next one time until it is there.
func halfDying(t *testing.T, cfg Config, srv *sambatest.Server) (sh *Share, kill func(wait time.Duration)) {
	var mu sync.Mutex
	var conns []*halfDead
	var wait time.Duration
	sh = lastingVolume(t, cfg, srv.Share, func(ctx context.Context) (net.Conn, auth.Credentials, error) {
		mu.Lock()
		defer mu.Unlock()
		<-time.After(wait)
		nc, creds, err := dialing(srv, srv.Addr)(ctx)
		if err != nil {
			return nil, creds, err
		}
		h := &halfDead{Conn: nc, dead: make(chan struct{})}
		conns = append(conns, h)
		return h, creds, nil
	})
	t.Cleanup(func() {
		for _, h := range conns {
			h.Conn.Close()
		}
	})
	return sh, func(d time.Duration) {
		mu.Lock()
		wait = d
		h := conns[len(conns)-1]
		mu.Unlock()
		h.die()
	}
}

// comesBack checks that a file turns out to be as it was, and gets its rights back.
func comesBack(t *testing.T, what string, c told) {
	t.Helper()
	for _, want := range []remote.Change{{Trust: remote.Unsure}, {Trust: remote.Current, Rights: allRights}} {
		if ch := c.next(t); ch.Trust != want.Trust || ch.Rights != want.Rights {
			t.Errorf("%s: told of %+v, want trust %v and rights %b", what, ch, want.Trust, want.Rights)
		}
	}
	c.nothing(t, what)
}

// TestOldRightsAreLetGo by a server that has not noticed the end of the connection
// before: with all rights at once, nothing has been broken and waited for.
func TestOldRightsAreLetGo(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	someProtections(t, func(t *testing.T, cfg Config) {
		sh, kill := halfDying(t, cfg, srv)
		mine := strings.ReplaceAll(t.Name(), "/", " ")
		others := mine + " other" // made on the server, without what Samba keeps of a file
		if err := os.WriteFile(filepath.Join(srv.Dir, others), []byte("content"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(srv.Dir, others), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{mine, others} {
			for _, what := range []string{"read", "written", "written and asked about"} {
				c := make(told, 64)
				o := lastingOn(t, sh, name, c)
				if what != "read" {
					if err := writeAt(t.Context(), o, 0, []byte("CONTENT")); err != nil {
						t.Error(err)
					}
				}
				if what == "written and asked about" {
					if _, err := o.File.GetAttr(t.Context(), o.Open); err != nil {
						t.Error(err)
					}
				}
				kill(0)
				comesBack(t, name+" "+what, c)
				if err := o.Open.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// lastingOn opens a file of a real server with all rights.
func lastingOn(t *testing.T, sh *Share, name string, c told) remote.Opened {
	t.Helper()
	how := remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew, Rights: allRights}
	o, err := sh.Open(t.Context(), remote.At{Name: name}, how, obliging{c})
	if err != nil || o.Rights != allRights {
		t.Fatalf("rights %b, %v", o.Rights, err)
	}
	return o
}

// TestServerNotesLate what we had written: when it closes our handles, which it does
// once we have logged on anew, long after the connection was lost.
func TestServerNotesLate(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	sh, kill := halfDying(t, Config{}, srv)
	written, asked, closed := make(told, 64), make(told, 64), make(told, 64)
	files := map[string]told{"written": written, "asked about": asked, "closed once": closed}
	for name, c := range files {
		o := lastingOn(t, sh, name, c)
		if name == "closed once" {
			o = lastingOn(t, sh, name, c)
		}
		if err := writeAt(t.Context(), o, 0, []byte("content")); err != nil {
			t.Error(err)
		}
		if name != "written" {
			if _, err := o.File.GetAttr(t.Context(), o.Open); err != nil {
				t.Error(err)
			}
		}
		if name == "closed once" {
			if err := o.Open.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	kill(putOff + 3*slack/2)
	for name, c := range files {
		comesBack(t, name, c)
	}
}

// halfDead is a connection whose end only the client sees.
type halfDead struct {
	net.Conn
	dead chan struct{}
	once sync.Once
}

func (h *halfDead) die() {
	h.once.Do(func() { close(h.dead) })
	h.Conn.SetDeadline(time.Unix(1, 0))
}

func (h *halfDead) Close() error { h.die(); return nil }

func (h *halfDead) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	select {
	case <-h.dead:
		return 0, syscall.ECONNRESET
	default:
		return n, err
	}
}
