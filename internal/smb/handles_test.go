package smb

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// counted counts the requests of a server by their command.
type counted struct {
	fault func(smbtest.Request) smbtest.Fault

	mu sync.Mutex
	n  map[string]int // guarded by mu
}

func (c *counted) faults(r smbtest.Request) smbtest.Fault {
	c.mu.Lock()
	c.n[r.Command]++
	c.mu.Unlock()
	if c.fault == nil {
		return smbtest.Fault{}
	}
	return c.fault(r)
}

// of returns a count.
func (c *counted) of(command string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[command]
}

// inBubble runs test against a test server in virtual time. What it counts
// starts when the share is mounted.
func inBubble(t *testing.T, cfg smbtest.Config, client Config, test func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted)) {
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(cfg)
		defer srv.Close()
		v := dialTest(t, srv, client)
		c := &counted{n: map[string]int{}}
		srv.SetFaults(c.faults)
		test(t, srv, v, c)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		v.s.Close(ctx)
	})
}

// slow delays requests of one command.
func slow(command string) func(smbtest.Request) smbtest.Fault {
	return func(r smbtest.Request) smbtest.Fault {
		if r.Command == command {
			return smbtest.Fault{Delay: 10 * time.Second}
		}
		return smbtest.Fault{}
	}
}

// hold keeps back the answers to one command, until another is sent.
func hold(command string) func(smbtest.Request) smbtest.Fault {
	return func(r smbtest.Request) smbtest.Fault {
		if r.Command == command {
			return smbtest.Fault{Hold: 1}
		}
		return smbtest.Fault{}
	}
}

// refuse answers requests of one command with a status.
func refuse(command string, status ntstatus.Status) func(smbtest.Request) smbtest.Fault {
	return func(r smbtest.Request) smbtest.Fault {
		if r.Command == command {
			return smbtest.Fault{Status: status}
		}
		return smbtest.Fault{}
	}
}

// TestCloseEndsInTime logs off from a server that takes nothing any more.
func TestCloseEndsInTime(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForWrite, Create: remote.New}, nil)
		if err != nil {
			t.Fatal(err)
		}
		srv.Link().Blackhole(netsim.Up)
		writing := make(chan error)
		go func() {
			_, _, err := o.File.WriteAt(t.Context(), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{make([]byte, 4<<20)}})
			writing <- err
		}()
		synctest.Wait() // the write fills the wire
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check(t, "Open.Close", o.Open.Close(ctx), context.DeadlineExceeded)
		check(t, "Volume.Close", v.Close(ctx), context.DeadlineExceeded)
		check(t, "Session.Close", v.s.Close(ctx), context.DeadlineExceeded)
		check(t, "WriteAt", <-writing, smbconn.ErrDisconnected)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestNoHandleIsLeft does what opens something, in ways that go wrong, and counts
// whether all that was opened is closed.
func TestNoHandleIsLeft(t *testing.T) {
	soon := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	file, dir := remote.At{Name: "file"}, remote.At{Name: "dir"}
	list := func(ctx context.Context, v *Volume) error {
		for _, err := range v.ReadDir(ctx, dir) {
			return err
		}
		return errors.New("no page")
	}
	for name, c := range map[string]struct {
		credits int
		fault   func(smbtest.Request) smbtest.Fault
		do      func(t *testing.T, v *Volume) error
		opens   int
		want    error // nil: any or none
	}{
		"an open that is given up": {0, hold("CREATE"), func(t *testing.T, v *Volume) error {
			_, err := v.Open(soon(t), file, remote.How{Access: remote.ForRead}, nil)
			return err
		}, 1, context.DeadlineExceeded},
		"a close that comes too late": {0, nil, func(t *testing.T, v *Volume) error {
			o, err := v.Open(t.Context(), file, remote.How{Access: remote.ForRead}, nil)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return o.Open.Close(ctx)
		}, 1, context.Canceled},
		"a close that is given up": {0, slow("CLOSE"), func(t *testing.T, v *Volume) error {
			o, err := v.Open(t.Context(), file, remote.How{Access: remote.ForRead}, nil)
			if err != nil {
				return err
			}
			return o.Open.Close(soon(t))
		}, 1, context.DeadlineExceeded},
		"a question that is given up": {0, slow("QUERY_INFO"), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(soon(t), file)
			return err
		}, 1, context.DeadlineExceeded},
		"a question that is given up, one by one": {1, slow("QUERY_INFO"), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(soon(t), file)
			return err
		}, 1, context.DeadlineExceeded},
		"a close that is given up, one by one": {1, slow("CLOSE"), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(soon(t), file)
			return err
		}, 1, context.DeadlineExceeded},
		"an open that is given up, one by one": {2, hold("CREATE"), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(soon(t), file)
			return err
		}, 1, context.DeadlineExceeded},
		"a question that fails": {0, refuse("QUERY_INFO", ntstatus.AccessDenied), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(t.Context(), file)
			return err
		}, 1, ntstatus.AccessDenied},
		"a question that fails, one by one": {1, refuse("QUERY_INFO", ntstatus.AccessDenied), func(t *testing.T, v *Volume) error {
			_, err := v.GetAttr(t.Context(), file)
			return err
		}, 1, ntstatus.AccessDenied},
		"a listing": {0, nil, func(t *testing.T, v *Volume) error {
			for _, err := range v.ReadDir(t.Context(), dir) {
				if err != nil {
					return err
				}
			}
			return nil
		}, 1, nil},
		"a listing that ends early":              {0, nil, func(t *testing.T, v *Volume) error { return list(t.Context(), v) }, 1, nil},
		"a listing that is given up":             {0, slow("QUERY_DIRECTORY"), func(t *testing.T, v *Volume) error { return list(soon(t), v) }, 1, context.DeadlineExceeded},
		"a listing that is given up, one by one": {1, slow("QUERY_DIRECTORY"), func(t *testing.T, v *Volume) error { return list(soon(t), v) }, 1, context.DeadlineExceeded},
		"a listing whose open is given up":       {0, hold("CREATE"), func(t *testing.T, v *Volume) error { return list(soon(t), v) }, 1, context.DeadlineExceeded},
		"a listing that is refused":              {0, refuse("QUERY_DIRECTORY", ntstatus.AccessDenied), func(t *testing.T, v *Volume) error { return list(t.Context(), v) }, 1, ntstatus.AccessDenied},
		"a listing that is refused, one by one":  {1, refuse("QUERY_DIRECTORY", ntstatus.AccessDenied), func(t *testing.T, v *Volume) error { return list(t.Context(), v) }, 1, ntstatus.AccessDenied},
		"shares that are not told":               {0, refuse("IOCTL", ntstatus.AccessDenied), func(t *testing.T, v *Volume) error { _, err := v.s.Shares(t.Context()); return err }, 1, ntstatus.AccessDenied},
		"shares that are given up":               {0, slow("IOCTL"), func(t *testing.T, v *Volume) error { _, err := v.s.Shares(soon(t)); return err }, 1, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, smbtest.Config{Credits: c.credits}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, n *counted) {
				n.fault = c.fault
				for _, path := range []string{"file", "dir/file"} {
					if err := srv.WriteFile(path, []byte("content")); err != nil {
						t.Fatal(err)
					}
				}
				err := c.do(t, v)
				if c.want != nil && !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("%v, want %v", err, c.want)
				}
				v.s.Ping(t.Context())
				<-time.After(2 * time.Minute) // for what goes on in the background
				if opens, closes := n.of("CREATE"), n.of("CLOSE"); opens != c.opens || closes != opens {
					t.Errorf("%d opens, %d closes; want %d of each", opens, closes, c.opens)
				}
			})
		})
	}
}
