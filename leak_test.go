package pagewire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/smbtest"
	"go.uber.org/goleak"
)

// noLeak checks at the end of a test that it has left nothing. What it calls comes
// before.
func noLeak(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// TestDialLeavesNothing fails to connect in every way.
func TestDialLeavesNothing(t *testing.T) {
	srv := startServer(t, smbtest.Config{Dialects: []string{"3.1.1"}})
	srv.WriteFile("file", nil)
	for _, c := range []struct {
		name, url, options string
		fault              func(smbtest.Request) smbtest.Fault
		cancel             bool // when the fault comes
	}{
		{name: "not a source", url: "nfs://nas/x"},
		{name: "not an option", options: "nope"},
		{name: "refused", url: "smb://user:pass@127.0.0.1:1/share"},
		{name: "no dialect", options: "vers=2.1"},
		{name: "wrong password", url: strings.Replace(srv.URL, "pass", "wrong", 1)},
		{name: "no share", url: srv.URL + "x"},
		{name: "no folder", url: srv.URL + "/none"},
		{name: "a file", url: srv.URL + "/file"},
		{name: "cut at logon", fault: only("SESSION_SETUP", smbtest.Fault{CutAt: 10})},
		{name: "cut at the share", fault: only("TREE_CONNECT", smbtest.Fault{CutAt: 10})},
		{name: "silent at once", fault: only("NEGOTIATE", smbtest.Fault{Drop: true}), cancel: true},
		{name: "silent at logon", fault: only("SESSION_SETUP", smbtest.Fault{Drop: true}), cancel: true},
		{name: "silent at the share", fault: only("TREE_CONNECT", smbtest.Fault{Drop: true}), cancel: true},
		{name: "silent at the folder", url: srv.URL + "/none", fault: only("CREATE", smbtest.Fault{Drop: true}), cancel: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.url == "" {
				c.url = srv.URL
			}
			if c.fault != nil {
				srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
					f := c.fault(r)
					if f.Drop && c.cancel {
						cancel()
					}
					return f
				})
				defer srv.SetFaults(nil)
			}
			before := goleak.IgnoreCurrent()
			fsys, err := Dial(ctx, c.url, &Config{Options: c.options})
			if err == nil {
				fsys.Close()
				t.Fatal("succeeded")
			}
			if c.cancel && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want Canceled", err)
			}
			goleak.VerifyNone(t, before, ofServer)
		})
	}
}

// ofServer leaves it to the server how soon it is done with a connection.
var ofServer = goleak.IgnoreAnyFunction("github.com/pagewire/pagewire/internal/smb/smbserver.(*Server).Serve")

// only has a fault happen to one command.
func only(command string, f smbtest.Fault) func(smbtest.Request) smbtest.Fault {
	return func(r smbtest.Request) smbtest.Fault {
		if r.Command == command {
			return f
		}
		return smbtest.Fault{}
	}
}

// TestCloseWritesAll closes a file system whose files are open and dirty.
func TestCloseWritesAll(t *testing.T) {
	noLeak(t)
	srv := sambatest.Start(t, sambatest.Config{})
	for _, end := range []string{"FS.Close", "Client.Shutdown"} {
		c, err := Connect(t.Context(), sambaURL(srv), nil)
		if err != nil {
			t.Fatal(err)
		}
		fsys, err := c.Share(t.Context(), srv.Share)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for i := range 40 {
			name := fmt.Sprint(end, i)
			f := open(t, fsys, name, os.O_RDWR|os.O_CREATE)
			files[name] = randomBytes(i * 5000)
			f.WriteAt(files[name], 0)
			if i%3 == 0 {
				go io.Copy(io.Discard, f) // which is under way, or not
			}
		}
		if dirty := fsys.Stats().Cache.Dirty; dirty == 0 {
			t.Error("nothing is dirty")
		}
		if end == "FS.Close" {
			err = errors.Join(fsys.Close(), c.Close())
		} else {
			err = c.Shutdown(t.Context())
		}
		if err != nil {
			t.Errorf("%s: %v", end, err)
		}
		for name, want := range files {
			if got, err := os.ReadFile(srv.Dir + "/" + name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: the server has %d bytes, %v; want %d", name, len(got), err, len(want))
			}
		}
		if _, err := fsys.Stat("x"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after %s: %v", end, err)
		}
	}
}

// TestShutdownIsBounded has a server fall silent, with files open, dirty and being
// read: its context bounds how long Shutdown takes, and nothing is left.
func TestShutdownIsBounded(t *testing.T) {
	for _, patience := range []time.Duration{0, 5 * time.Second} {
		for _, command := range []string{"", "WRITE", "READ", "CLOSE", "FLUSH", "LOGOFF", "TREE_DISCONNECT"} { // "": all
			t.Run(fmt.Sprint(patience, command), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { shutsDown(t, command, patience) })
			})
		}
	}
}

func shutsDown(t *testing.T, command string, patience time.Duration) {
	srv := smbtest.NewUnstarted(smbtest.Config{})
	defer srv.Close()
	data := randomBytes(5 << 20)
	srv.WriteFile("read", data)
	c, err := Connect(t.Context(), "smb://user:pass@server/share", &Config{Options: "cachesize=8M,rsize=1M,wsize=1M", DialContext: srv.Dial})
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := c.Share(t.Context(), "share")
	if err != nil {
		t.Fatal(err)
	}
	small, large := open(t, fsys, "small", os.O_RDWR|os.O_CREATE), open(t, fsys, "large", os.O_RDWR|os.O_CREATE)
	small.WriteAt(data[:1000], 0)
	reader := open(t, fsys, "read", os.O_RDONLY)
	reader.Read(make([]byte, 1000))
	synctest.Wait()
	srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
		return smbtest.Fault{Drop: command == "" || r.Command == command}
	})
	var wg sync.WaitGroup
	wg.Go(func() { large.WriteAt(data, 0) }) // so much that it is being written, and waits for it
	wg.Go(func() { io.Copy(io.Discard, reader) })
	synctest.Wait()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	err = c.Shutdown(ctx)
	took := time.Since(start)
	if took > patience {
		t.Errorf("it took %v, want %v at most", took, patience)
	}
	silent := command != "READ" && command != "FLUSH" // which none of this waits for
	if (patience == 0 || silent) && err == nil {
		t.Error("it says that all is well")
	}
	if patience > 0 && !silent && err != nil {
		t.Errorf("it ends with %v", err)
	}
	if err == nil {
		if got, err := srv.ReadFile("small"); err != nil || !bytes.Equal(got, data[:1000]) {
			t.Errorf("the server has %d bytes, %v, though all went well", len(got), err)
		}
	}
	wg.Wait()
	if took := time.Since(start); took > patience {
		t.Errorf("who reads and writes learned of it after %v, want %v at most", took, patience)
	}
}

// TestServerIsGone has the server go away for good, with a file open and dirty.
func TestServerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{})
		var gone atomic.Bool
		fsys, err := Dial(t.Context(), "smb://user:pass@server/share", &Config{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if gone.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return srv.Dial(ctx, network, addr)
		}})
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, fsys, "file", os.O_RDWR|os.O_CREATE)
		f.WriteAt([]byte("lost"), 0)
		gone.Store(true)
		srv.Close()
		start := time.Now()
		if err := f.Close(); !errors.Is(err, ErrDisconnected) {
			t.Errorf("Close of a dirty file: %v, want ErrDisconnected", err)
		}
		fsys.Close() // of which nobody knows anything better
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("it took %v", took)
		}
		if err := fsys.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Close once more: %v, want ErrClosed", err)
		}
	})
}

// TestSilentListener is one that takes connections and says nothing.
func TestSilentListener(t *testing.T) {
	noLeak(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	dialer := net.Dialer{}
	_, err = Connect(ctx, "smb://user:pass@"+l.Addr().String(), &Config{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		defer cancel()
		return dialer.DialContext(ctx, network, addr)
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}
