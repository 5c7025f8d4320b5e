package smb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// TestServerGoneForGood fails what waits when patience ends, and no later. The next
// operation tries again.
func TestServerGoneForGood(t *testing.T) {
	const bound = 20 * time.Second
	for what, do := range map[string]func(ctx context.Context, l *lab, o remote.Opened) error{
		"ReadAt":  func(ctx context.Context, l *lab, o remote.Opened) error { return readAt(ctx, o, 0, []byte("content")) },
		"WriteAt": func(ctx context.Context, l *lab, o remote.Opened) error { return writeAt(ctx, o, 0, []byte("content")) },
		"GetAttr": func(ctx context.Context, l *lab, o remote.Opened) error {
			_, err := l.sh.GetAttr(ctx, remote.At{Name: "file"})
			return err
		},
		"ReadDir": func(ctx context.Context, l *lab, o remote.Opened) error { _, err := lists(ctx, l.sh, ""); return err },
		"mkdir": func(ctx context.Context, l *lab, o remote.Opened) error {
			_, err := l.sh.Make(ctx, remote.At{Name: "dir"}, remote.Make{Kind: remote.Dir})
			return err
		},
		"Ping": func(ctx context.Context, l *lab, o remote.Opened) error { _, err := l.c.Ping(ctx); return err },
	} {
		t.Run(what, func(t *testing.T) {
			lasting(t, smbtest.Config{}, ClientConfig{Patience: bound}, func(t *testing.T, l *lab) {
				l.write(t, "file", []byte("content"))
				o := l.open(t, "file", 0, nil)
				l.cutOff()
				for range 3 {
					begin := time.Now()
					err := do(t.Context(), l, o)
					check(t, what, err, smbconn.ErrDisconnected)
					check(t, what, err, syscall.ECONNREFUSED)
					if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
						t.Errorf("%v is taken for the caller's own end", err)
					}
					if took := time.Since(begin); took != bound {
						t.Errorf("took %v, want %v", took, bound)
					}
				}
				l.block(nil)
				if err := do(t.Context(), l, o); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestServerComesBack is not kept waiting for by more than the longest pause.
func TestServerComesBack(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.cutOff()
		dials := l.dialed()
		time.AfterFunc(20*time.Second, func() { l.block(nil) })
		begin := time.Now()
		if _, err := l.sh.StatFS(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 20*time.Second+maxPause {
			t.Errorf("took %v", took)
		}
		if n := l.dialed() - dials; n > 20 {
			t.Errorf("%d tries", n)
		}
	})
}

// TestServerThatSaysNothing takes connections and is silent.
func TestServerThatSaysNothing(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.cut()
		l.srv.Link().Blackhole(netsim.Up)
		begin := time.Now()
		_, err := l.sh.StatFS(t.Context())
		check(t, "StatFS", err, smbconn.ErrDisconnected)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is taken for the caller's own end", err)
		}
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		l.srv.Link().Resume(netsim.Up)
	})
}

// TestLogonRefused is told at once, and for a while without another try: more of them
// lock accounts.
func TestLogonRefused(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		c := make(told, 64)
		o := l.open(t, "file", 0, nil)
		l.open(t, "cached", allRights, c)
		l.password.Store(new("wrong"))
		l.cut()
		c.trusts(t, remote.Unsure)
		for what, do := range map[string]func() error{
			"ReadAt": func() error { return readAt(t.Context(), o, 0, []byte("content")) },
			"StatFS": func() error { _, err := l.sh.StatFS(t.Context()); return err },
			"Open": func() error {
				_, err := l.sh.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead}, nil)
				return err
			},
		} {
			<-time.After(maxHold)
			begin, dials := time.Now(), l.dialed()
			for range 20 {
				err := do()
				check(t, what, err, ntstatus.LogonFailure)
				check(t, what, err, smbconn.ErrDisconnected)
			}
			if took, n := time.Since(begin), l.dialed()-dials; took != 0 || n != 1 {
				t.Errorf("%s: %d tries in %v, want one at once", what, n, took)
			}
		}
		l.password.Store(new("pass"))
		<-time.After(maxHold)
		if err := readAt(t.Context(), o, 0, []byte("content")); err != nil {
			t.Errorf("with the right password: %v", err)
		}
		c.trusts(t, remote.Current)
	})
}

// TestNoWeaker refuses a server that protects less than it did.
func TestNoWeaker(t *testing.T) {
	sealed := []smbtest.Share{{Name: "share", Seal: true}}
	for what, c := range map[string]struct {
		before, after smbtest.Config
		client        Config
	}{
		"dialect":      {smbtest.Config{}, smbtest.Config{Dialects: []string{"2.0.2", "2.1", "3.0"}}, Config{}},
		"sealing":      {smbtest.Config{RequireSealing: true}, smbtest.Config{}, Config{}},
		"signing":      {smbtest.Config{RequireSigning: true}, smbtest.Config{}, Config{}},
		"user":         {smbtest.Config{}, smbtest.Config{Users: map[string]string{}, Guest: true}, Config{Guest: true}},
		"user at all":  {smbtest.Config{}, smbtest.Config{Users: map[string]string{}, Guest: true}, Config{}},
		"sealed share": {smbtest.Config{Shares: sealed}, smbtest.Config{}, Config{}},
		"share":        {smbtest.Config{}, smbtest.Config{Shares: []smbtest.Share{{Name: "other"}}}, Config{}},
	} {
		t.Run(what, func(t *testing.T) {
			lasting(t, c.before, ClientConfig{Config: c.client}, func(t *testing.T, l *lab) {
				after := smbtest.NewUnstarted(c.after)
				defer after.Close()
				l.cut()
				l.mu.Lock()
				l.next = func() *smbtest.Server { return after }
				l.mu.Unlock()
				begin := time.Now()
				if _, err := l.sh.StatFS(t.Context()); err == nil {
					t.Error("the server is taken for as good")
				} else {
					t.Log(err)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("took %v", took)
				}
				l.mu.Lock()
				l.next = nil
				l.mu.Unlock()
				<-time.After(maxHold)
				if _, err := l.sh.StatFS(t.Context()); what != "sealed share" && what != "share" && err != nil {
					t.Errorf("the old server: %v", err)
				}
			})
		})
	}
}

// TestWaitersEndAlone gives up on one operation, and others go on waiting.
func TestWaitersEndAlone(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		o := l.open(t, "file", 0, nil)
		l.cutOff()
		ctx, cancel := context.WithCancel(t.Context())
		ended, goes := make(chan error, 10), make(chan error, 10)
		do := func(ctx context.Context, errs chan error) {
			go func() { errs <- readAt(ctx, o, 0, []byte("content")) }()
			go func() { errs <- writeAt(ctx, o, 0, []byte("content")) }()
			go func() { _, err := l.sh.GetAttr(ctx, remote.At{}); errs <- err }()
			go func() { _, err := l.c.Ping(ctx); errs <- err }()
		}
		do(ctx, ended) // they are the first, who begin the reconnection
		synctest.Wait()
		do(t.Context(), goes)
		<-time.After(time.Second)
		cancel()
		begin := time.Now()
		for range 4 {
			check(t, "what was given up", <-ended, context.Canceled)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if len(goes) > 0 {
			t.Errorf("others have ended, too: %v", <-goes)
		}
		l.block(nil)
		for range 4 {
			if err := <-goes; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestCloseEndsAReconnection at once, whatever that waits for.
func TestCloseEndsAReconnection(t *testing.T) {
	for what, prepare := range map[string]func(l *lab){
		"pausing": func(l *lab) { l.cutOff() },
		"silent":  func(l *lab) { l.cut(); l.srv.Link().Blackhole(netsim.Up) },
		"slow log-on": func(l *lab) {
			l.faults(slow("SESSION_SETUP"))
			l.cut()
		},
		"slow mount": func(l *lab) {
			l.faults(slow("TREE_CONNECT"))
			l.cut()
		},
		"slow open": func(l *lab) {
			l.faults(slow("CREATE"))
			l.cut()
		},
	} {
		t.Run(what, func(t *testing.T) {
			lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
				c := make(told, 64)
				o := l.open(t, "file", allRights, c)
				prepare(l)
				waits := make(chan error, 2)
				go func() { waits <- readAt(t.Context(), o, 0, []byte("content")) }()
				go func() { _, err := l.sh.GetAttr(t.Context(), remote.At{}); waits <- err }()
				synctest.Wait()
				<-time.After(time.Second)
				begin := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				l.c.Close(ctx)
				for range 2 {
					check(t, "what waits", <-waits, smbconn.ErrDisconnected)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("took %v", took)
				}
				_, err := l.sh.GetAttr(t.Context(), remote.At{})
				check(t, "GetAttr after it", err, net.ErrClosed)
				l.srv.Link().Resume(netsim.Up)
			})
		})
	}
}

// TestCutsOfTheReconnection itself are no end of it.
func TestCutsOfTheReconnection(t *testing.T) {
	for _, command := range []string{"NEGOTIATE", "SESSION_SETUP", "TREE_CONNECT", "IOCTL", "CREATE"} {
		for _, at := range []int{1, 40, 70} {
			for _, d := range []smb2msg.Dialect{smb2msg.SMB302, smb2msg.SMB311} {
				t.Run(fmt.Sprint(command, at, d), func(t *testing.T) {
					lasting(t, smbtest.Config{}, ClientConfig{Config: Config{Dialects: []smb2msg.Dialect{smb2msg.SMB210, d}}}, func(t *testing.T, l *lab) {
						l.write(t, "file", []byte("content"))
						o := l.open(t, "file", 0, nil)
						l.cutReply(command, at)
						l.cut()
						if err := readAt(t.Context(), o, 0, []byte("content")); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// TestListings that are cut: one that had not begun starts over, one that had is an
// error; none is short.
func TestListings(t *testing.T) {
	lasting(t, smbtest.Config{MaxTransact: 64 << 10}, ClientConfig{}, func(t *testing.T, l *lab) {
		const files = 3000
		for i := range files {
			l.write(t, fmt.Sprint("dir/a file with quite a long name ", i), nil)
		}
		if n, err := lists(t.Context(), l.sh, "dir"); n != files || err != nil {
			t.Fatalf("%d entries, %v", n, err)
		}
		whole, broken := 0, 0
		for nth := range 12 {
			for _, at := range []int{1, 1000, 60_000} {
				var mu sync.Mutex
				n := 0
				l.faults(func(r smbtest.Request) smbtest.Fault {
					mu.Lock()
					defer mu.Unlock()
					if r.Command == "QUERY_DIRECTORY" {
						if n++; n == nth+1 {
							return smbtest.Fault{CutAt: at}
						}
					}
					return smbtest.Fault{}
				})
				switch n, err := lists(t.Context(), l.sh, "dir"); {
				case err == nil && n == files:
					whole++
				case errors.Is(err, smbconn.ErrDisconnected) && n > 0:
					broken++
				default:
					t.Errorf("cut in the %d. QUERY_DIRECTORY at %d: %d entries, %v", nth, at, n, err)
				}
			}
		}
		if whole == 0 || broken == 0 {
			t.Errorf("%d listings were whole, %d broken; want some of each", whole, broken)
		}
	})
}

// TestRandomCuts reads and writes in many places while the connection is cut at random,
// and compares with what a slice of bytes would hold.
func TestRandomCuts(t *testing.T) {
	for seed := range uint64(2) {
		for _, cfg := range []smbtest.Config{{}, {RequireSigning: true}, {RequireSealing: true}} {
			cfg.RTT = time.Millisecond
			t.Run(fmt.Sprint(seed, cfg.RequireSigning, cfg.RequireSealing), func(t *testing.T) {
				lasting(t, cfg, ClientConfig{}, func(t *testing.T, l *lab) { randomCuts(t, l, seed) })
			})
		}
	}
}

func randomCuts(t *testing.T, l *lab, seed uint64) {
	const workers, size = 8, 100_000
	model := noise(workers * size)
	l.write(t, "file", model)
	c := make(told, 4096)
	opens := []remote.Opened{l.open(t, "file", allRights, obliging{c}), l.open(t, "file", allRights, obliging{c})}
	r := rand.New(rand.NewPCG(seed, 0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range 12 {
			<-time.After(time.Duration(r.IntN(30)) * time.Millisecond)
			switch s := l.last(); r.IntN(3) {
			case 0:
				s.cut()
			case 1:
				s.left.Store(int64(r.IntN(150_000)))
			case 2:
				l.srv.Link().CutAfter(netsim.Down, int64(1+r.IntN(150_000)))
			}
		}
	})
	lostOps := 0
	var mu sync.Mutex
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(1+w)))
			mine := model[w*size : (w+1)*size]
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				off := r.IntN(size)
				n := 1 + r.IntN(min(60_000, size-off))
				o := opens[r.IntN(len(opens))]
				at := int64(w*size + off)
				var err error
				if r.IntN(2) == 0 {
					err = readAt(t.Context(), o, at, mine[off:off+n])
				} else {
					p := bytes.Repeat([]byte{byte(w), byte(i), byte(i >> 8), 0xA5}, n/4+1)[:n]
					for err = writeAt(t.Context(), o, at, p); errors.Is(err, smbconn.ErrDisconnected); {
						mu.Lock() // twice in a row is too much for one operation
						lostOps++
						mu.Unlock()
						err = writeAt(t.Context(), o, at, p)
					}
					copy(mine[off:], p)
				}
				if err != nil && !errors.Is(err, smbconn.ErrDisconnected) {
					t.Errorf("%d bytes at %d: %v", n, at, err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := opens[0].File.Commit(t.Context(), opens[0].Open, nil); err != nil {
		t.Error(err)
	}
	l.has(t, "file", model)
	for _, ch := range c.caught(t) {
		if ch.Trust == remote.Outdated {
			t.Errorf("told of %+v", ch)
		}
	}
	if n := l.dialed(); n < 5 {
		t.Errorf("%d connections, want more", n)
	}
	t.Logf("%d connections, %d WRITEs lost twice", l.dialed(), lostOps)
}

// TestStatsLast adds up what all connections did.
func TestStatsLast(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		o := l.open(t, "file", 0, nil)
		for i := range 4 {
			if err := writeAt(t.Context(), o, 0, make([]byte, 1000)); err != nil {
				t.Error(err)
			}
			if err := readAt(t.Context(), o, 0, make([]byte, 500)); err != nil {
				t.Error(err)
			}
			i := int64(i + 1)
			st := l.c.Info().Stats
			if st.Written != 1000*i || st.Read != 500*i || st.Requests[smb2msg.CommandWrite] != i || st.Requests[smb2msg.CommandSessionSetup] != 2*i {
				t.Errorf("after %d connections: %+v", i, st)
			}
			l.cut()
			if again := l.c.Info().Stats; again.Written != st.Written || !maps.Equal(again.Requests, st.Requests) {
				t.Errorf("%+v after the connection was lost, %+v before", again, st)
			}
		}
		if i := l.c.Info(); i.Dialect != "3.1.1" || i.Server != "server" {
			t.Errorf("%+v", i)
		}
		if n := l.dialed(); n != 4 {
			t.Errorf("asked %d times how to connect, want 4", n)
		}
	})
}

// TestCredentialsAreAskedFor anew with each connection: they may be others by then.
func TestCredentialsAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{Users: map[string]string{"a": "1", "b": "2"}})
		defer srv.Close()
		creds := []auth.Credentials{{User: "a", Password: "1"}, {User: "b", Password: "2"}, {}}
		asked := 0
		errNone := errors.New("there are no credentials")
		c, err := NewClient(t.Context(), ClientConfig{Server: "server", Connect: func(ctx context.Context) (net.Conn, auth.Credentials, error) {
			if asked++; asked > 2 {
				return nil, auth.Credentials{}, errNone
			}
			nc, err := srv.Dial(ctx, "", "")
			return nc, creds[asked-1], err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		for _, want := range []error{nil, nil, errNone, errNone} {
			_, err := c.Ping(t.Context())
			check(t, "Ping", err, want)
			srv.CloseClientConnections()
			<-time.After(maxHold)
		}
		if asked != 4 {
			t.Errorf("asked %d times, want 4", asked)
		}
	})
}
