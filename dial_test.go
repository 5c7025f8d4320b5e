package pagewire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/smbtest"
)

func startServer(t *testing.T, cfg smbtest.Config) *smbtest.Server {
	t.Helper()
	srv := smbtest.NewServer(cfg)
	t.Cleanup(srv.Close)
	return srv
}

func dial(t *testing.T, url, options string) *FS {
	t.Helper()
	fsys, err := Dial(t.Context(), url, &Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

func TestDial(t *testing.T) {
	srv := startServer(t, smbtest.Config{MaxRead: 1 << 20})
	srv.WriteFile("dir/a", []byte("hello"))
	srv.WriteFile("dir/sub/b", bytes.Repeat([]byte("x"), 500))
	fsys := dial(t, srv.URL, "vers=3.0")
	if err := fstest.TestFS(fsys, "dir/a", "dir/sub/b"); err != nil {
		t.Error(err)
	}
	s := fsys.Stats()
	if s.Server != srv.Addr || s.Dialect != "3.0" || s.MaxRead != 1<<20 || s.Credits == 0 || s.RTT == 0 || s.Requests == 0 || s.Read.Bytes == 0 || s.Read.Window == 0 {
		t.Errorf("stats: %+v", s)
	}

	below := dial(t, srv.URL+"/dir/sub", "")
	if data, err := below.ReadFile("b"); len(data) != 500 || err != nil {
		t.Errorf("below the share: %d bytes, %v", len(data), err)
	}
	if err := below.Close(); err != nil {
		t.Error(err)
	}
	if _, err := below.Stat("b"); !errors.Is(err, ErrDisconnected) && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Stat after Close: %v, want ErrDisconnected or ErrClosed", err)
	}
	for path, want := range map[string]error{"/dir/a": syscall.ENOTDIR, "/missing": fs.ErrNotExist} {
		if _, err := Dial(t.Context(), srv.URL+path, nil); !errors.Is(err, want) {
			t.Errorf("Dial of %s: %v, want %v", path, err, want)
		}
	}
	if _, err := Dial(t.Context(), strings.TrimSuffix(srv.URL, "/share"), nil); !strings.Contains(fmt.Sprint(err), "no share") {
		t.Errorf("Dial without a share: %v", err)
	}
}

func TestClient(t *testing.T) {
	srv := startServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share"}, {Name: "more", Comment: "and more"}, {Name: "hidden$"}}})
	c, err := Connect(t.Context(), srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	shares, err := c.Shares(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []ShareInfo{
		{Name: "share"}, {Name: "more", Comment: "and more"}, {Name: "hidden$", Hidden: true},
	} {
		if !slices.Contains(shares, want) {
			t.Errorf("shares: %+v, want %+v among them", shares, want)
		}
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	var pe *fs.PathError
	_, err = c.Share(t.Context(), "nope")
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pe) || pe.Path != "//127.0.0.1/nope" || !strings.Contains(err.Error(), "no such share (STATUS_BAD_NETWORK_NAME)") {
		t.Errorf("unknown share: %v", err)
	}
	one, err := c.Share(t.Context(), "share")
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.Share(t.Context(), "more")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if err := two.WriteFile(t.Context(), "a", []byte("x"), 0o666); err != nil {
		t.Errorf("one share after another was closed: %v", err)
	}
	if n := srv.Stats().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := two.Stat("a"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Shutdown: %v, want fs.ErrClosed", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close after Shutdown: %v", err)
	}
}

func TestDialErrors(t *testing.T) {
	t.Setenv("USER", "user")
	srv := startServer(t, smbtest.Config{Dialects: []string{"2.1"}})
	address := "smb://" + srv.Addr + "/share"
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	_, gonePort, _ := net.SplitHostPort(gone.Addr().String())

	for _, c := range []struct {
		name, url, options string
		password           string
		is                 error
		text               string
	}{
		{name: "wrong password", url: address, password: "hunter2", is: ErrAuth, text: "wrong user name or password (STATUS_LOGON_FAILURE)"},
		{name: "no password", url: address, is: ErrAuth, text: "no password for user"},
		{name: "nobody", url: address, options: "sec=none", is: ErrAuth},
		{name: "not a guest", url: address, options: "guest", is: ErrAuth},
		{name: "no file", url: address, options: "credentials=/none", is: fs.ErrNotExist, text: "credentials from /none"},
		{name: "old server", url: address, options: "vers=3", password: "pass", text: "offered 3.0, 3.0.2, 3.1.1; the server has 2.1"},
		{name: "no sealing", url: address, options: "seal", password: "pass"},
		{name: "refused", url: "smb://127.0.0.1/share", options: "port=" + gonePort, password: "pass", is: syscall.ECONNREFUSED},
		{name: "option", url: address, options: "rsise=1M", text: "did you mean rsize?"},
		{name: "ports", url: address, options: "port=1", text: "port=1 and the port of the URL, "},
		{name: "source", url: "nfs://nas/x", text: "unsupported protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.password != "" {
				t.Setenv("PASSWD", c.password)
			}
			fsys, err := Dial(t.Context(), c.url, &Config{Options: c.options})
			if err == nil {
				fsys.Close()
				t.Fatal("succeeded")
			}
			if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %v: %q", err, c.is, c.text)
			}
		})
	}
	t.Run("negotiate", func(t *testing.T) {
		_, err := Dial(t.Context(), srv.URL, &Config{Options: "vers=3.1.1"})
		var ne *NegotiateError
		if !errors.As(err, &ne) || !slices.Equal(ne.Offered, []string{"3.1.1"}) || !strings.HasPrefix(strings.Join(ne.Server, ""), "2.1") {
			t.Errorf("got %v, want a *NegotiateError with both sides' dialects", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		srv.SetFaults(func(smbtest.Request) smbtest.Fault { cancel(); return smbtest.Fault{Drop: true} })
		defer srv.SetFaults(nil)
		if _, err := Dial(ctx, srv.URL, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
}

func TestCredentialsOfConfig(t *testing.T) {
	srv := startServer(t, smbtest.Config{Users: map[string]string{"bob": "builder"}, Guest: true, Anonymous: true})
	address := "smb://" + srv.Addr + "/share"
	connect := func(cfg Config) error {
		fsys, err := Dial(t.Context(), address, &cfg)
		if err != nil {
			return err
		}
		return fsys.Close()
	}
	if err := connect(Config{Credentials: func(context.Context) (Credentials, error) {
		return Credentials{User: "bob", Password: NewSecret("builder")}, nil
	}}); err != nil {
		t.Errorf("Credentials: %v", err)
	}
	if err := connect(Config{Options: "user=bob", Prompt: func(_ context.Context, user, host string) (string, error) {
		return "builder", nil
	}}); err != nil {
		t.Errorf("Prompt: %v", err)
	}
	why := errors.New("the vault is shut")
	if err := connect(Config{Credentials: func(context.Context) (Credentials, error) { return Credentials{}, why }}); !errors.Is(err, why) {
		t.Errorf("failing Credentials: %v", err)
	}
	for _, options := range []string{"guest", "sec=none"} {
		fsys, err := Dial(t.Context(), address, &Config{Options: options})
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		if s := fsys.Stats(); !s.Guest || s.Signing != "" {
			t.Errorf("%s: stats %+v", options, s)
		}
		fsys.Close()
	}
	// Who has a name does not want to be anybody's guest.
	if err := connect(Config{Credentials: func(context.Context) (Credentials, error) {
		return Credentials{User: "eve", Password: NewSecret("x")}, nil
	}}); !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "guest") {
		t.Errorf("unknown user: %v, want ErrAuth and why", err)
	}
}

func TestServerFaults(t *testing.T) {
	data := randomBytes(8 << 20)
	srv := startServer(t, smbtest.Config{MaxRead: 64 << 10, MaxWrite: 64 << 10})
	srv.WriteFile("a", data)
	onRead := func(n int, f smbtest.Fault) func(smbtest.Request) smbtest.Fault {
		return func(r smbtest.Request) smbtest.Fault {
			if r.Command == "READ" && r.Offset >= int64(n) {
				return f
			}
			return smbtest.Fault{}
		}
	}
	for _, c := range []struct {
		name    string
		options string
		fault   smbtest.Fault
		want    error
	}{
		{"connection lost", "", smbtest.Fault{CutAt: 1000}, ErrDisconnected},
		{"bad signature", "sign", smbtest.Fault{BadSignature: true}, ErrSignature},
		{"bad seal", "seal", smbtest.Fault{Corrupt: -1}, ErrSignature},
		{"handle gone", "", smbtest.Fault{Status: ntstatus.FileClosed}, ErrStale},
		{"denied", "", smbtest.Fault{Status: ntstatus.AccessDenied}, fs.ErrPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv.SetFaults(nil)
			fsys := dial(t, srv.URL, c.options)
			f, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			srv.SetFaults(onRead(3<<20, c.fault))
			local, err := os.Create(filepath.Join(t.TempDir(), "a"))
			if err != nil {
				t.Fatal(err)
			}
			defer local.Close()
			n, err := f.WriteTo(local)
			got, _ := os.ReadFile(local.Name())
			if !errors.Is(err, c.want) || n > 3<<20 || !bytes.Equal(got[:n], data[:n]) {
				t.Errorf("n %d, err %v, want no more than %d good bytes and %v", n, err, 3<<20, c.want)
			}
			f.Close() // which ends what is being read ahead
			idle(t, fsys)
		})
	}
	t.Run("short replies", func(t *testing.T) {
		srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
			if r.Command == "READ" || r.Command == "WRITE" {
				return smbtest.Fault{Short: 10000 + r.N%7, Delay: time.Duration(r.N%3) * time.Millisecond}
			}
			return smbtest.Fault{}
		})
		fsys := dial(t, srv.URL, "")
		if got, err := fsys.ReadFile("a"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("ReadFile: %d bytes, %v", len(got), err)
		}
		if err := fsys.WriteFile(t.Context(), "b", data, 0o666); err != nil {
			t.Error(err)
		}
		if got, err := srv.ReadFile("b"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("WriteFile: %d bytes, %v", len(got), err)
		}
		idle(t, fsys)
	})
}

// protections are the ways in which a connection can be protected.
var protections = map[string]string{"plain": "", "signed": "sign", "sealed": "seal"}

func TestTransfersOverSMB(t *testing.T) {
	srv := startServer(t, smbtest.Config{MaxRead: 1 << 20, MaxWrite: 1 << 20})
	want := randomBytes(20<<20 + 7)
	srv.WriteFile("a", want)
	for name, options := range protections {
		t.Run(name, func(t *testing.T) {
			transfers(t, dial(t, srv.URL, options), want, func(name string) ([]byte, error) { return srv.ReadFile(name) })
		})
	}
}

// transfers copies in every way from a, which has what is wanted, and to b.
func transfers(t *testing.T, fsys *FS, want []byte, read func(string) ([]byte, error)) {
	for _, way := range bothWays {
		a, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, n, err := way.out(a, t.TempDir()); err != nil || n != int64(len(want)) || !bytes.Equal(got, want) {
			t.Errorf("%s, out: n %d, err %v, %d bytes which are right: %v", way.name, n, err, len(got), bytes.Equal(got, want))
		}
		b, err := fsys.Create(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		n, err := way.in(b, want, t.TempDir())
		if err := errors.Join(err, b.Sync(), a.Close(), b.Close()); err != nil || n != int64(len(want)) {
			t.Errorf("%s, in: n %d, err %v", way.name, n, err)
		}
		if got, err := read("b"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s, in: the server has %d bytes which are right: %v, %v", way.name, len(got), bytes.Equal(got, want), err)
		}
	}
	idle(t, fsys)
}

// sambaURL is where a Samba server's share is, for its user.
func sambaURL(srv *sambatest.Server) string {
	return fmt.Sprintf("smb://%s:%s@%s/%s", srv.User, srv.Password, srv.Addr, srv.Share)
}

func TestSamba(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	want := randomBytes(20<<20 + 7)
	put := func(name string, data []byte) {
		t.Helper()
		name = filepath.Join(srv.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	put("a", want)
	put("dir/b", want[:500]) // which TestFS reads byte by byte
	put("dir/empty", nil)
	os.Chmod(filepath.Join(srv.Dir, "dir"), 0o777)
	odd := strings.Repeat("ü", 100) + `: * 😀. ` // which Windows has no place for
	for name, options := range protections {
		t.Run(name, func(t *testing.T) {
			fsys := dial(t, sambaURL(srv), options)
			transfers(t, fsys, want, func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(srv.Dir, name)) })
			if err := fsys.WriteFile(t.Context(), "dir/"+odd, want[:1], 0o666); err != nil {
				t.Error(err)
			}
			sub, err := fsys.Sub("dir")
			if err != nil {
				t.Fatal(err)
			}
			if err := fstest.TestFS(sub, "b", "empty", odd); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("changes", func(t *testing.T) {
		fsys, ctx := dial(t, sambaURL(srv), "mfsymlinks"), t.Context()
		for name, err := range map[string]error{
			"MkdirAll":  fsys.MkdirAll(ctx, "x/y/z", 0o777),
			"again":     fsys.MkdirAll(ctx, "x/y/z", 0o777),
			"WriteFile": fsys.WriteFile(ctx, "x/y/f", []byte("data"), 0o666),
			"Symlink":   errors.Join(fsys.Symlink(ctx, "y/f", "x/link"), fsys.Symlink(ctx, "y", "x/dirlink")),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, name := range []string{"x/link", "x/dirlink/f", "x/y/f"} {
			if data, err := fsys.ReadFile(name); string(data) != "data" || err != nil {
				t.Errorf("ReadFile(%s): %q, %v", name, data, err)
			}
		}
		if err := fsys.WriteFile(ctx, "x/link", []byte("new"), 0o666); err != nil {
			t.Errorf("WriteFile through a link: %v", err)
		}
		if target, err := fsys.ReadLink("x/link"); target != "y/f" || err != nil {
			t.Errorf("ReadLink: %q, %v", target, err)
		}
		if info, err := fsys.Lstat("x/link"); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("Lstat of a link: %v, %v", info, err)
		}
		if err := fsys.Rename(ctx, "x/y/f", "x/y/F"); err != nil {
			t.Errorf("Rename to another case: %v", err)
		}
		when := time.Date(2020, 2, 29, 12, 0, 0, 100, time.UTC)
		if err := errors.Join(fsys.Chtimes(ctx, "x/y/F", time.Time{}, when), fsys.Chmod(ctx, "x/y/F", 0o444)); err != nil {
			t.Error(err)
		}
		if info, err := fsys.Stat("x/y/F"); err != nil || !info.ModTime().Equal(when) || info.Mode() != 0o555 || info.Size() != 3 {
			t.Errorf("Stat: %v, %v", info, err)
		}
		if u, err := fsys.Usage(ctx); err != nil || u.Total == 0 || u.Free > u.Total || u.Block == 0 {
			t.Errorf("Usage: %+v, %v", u, err)
		}
		if err := fsys.RemoveAll(ctx, "x"); err != nil {
			t.Errorf("RemoveAll, of what is read-only, too: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(srv.Dir, "x")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after RemoveAll: %v", err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		url := sambaURL(srv)
		if _, err := Dial(t.Context(), strings.Replace(url, srv.Password, "wrong", 1), nil); !errors.Is(err, ErrAuth) {
			t.Errorf("wrong password: %v, want ErrAuth", err)
		}
		if _, err := Dial(t.Context(), url+"nope", nil); !strings.Contains(fmt.Sprint(err), "no such share") {
			t.Errorf("no such share: %v", err)
		}
	})
}

func TestLogs(t *testing.T) {
	srv := startServer(t, smbtest.Config{Users: map[string]string{"user": "hunter2"}})
	var log bytes.Buffer
	fsys, err := Dial(t.Context(), srv.URL, &Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log shows the password: %s", &log)
	}
	if !strings.Contains(log.String(), "can be seen by others") {
		t.Errorf("no warning about the password in the URL: %s", &log)
	}
	leaks(t, fsys, "hunter2")
}
