package smb

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// patient bounds what a test waits for.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// logOn dials a real server as cfg says, credentials included.
func logOn(t *testing.T, srv *sambatest.Server, cfg Config) (*Session, error) {
	t.Helper()
	redial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Addr)
	}
	nc, err := redial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Redial = redial
	s, err := Dial(patient(t), nc, "127.0.0.1", cfg)
	if err == nil {
		t.Cleanup(func() { s.Close(context.Background()) })
	}
	return s, err
}

// everyDialect runs test with each dialect alone.
func everyDialect(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, d := range append([]smb2msg.Dialect{smb2msg.SMB202}, smbconn.DefaultDialects()...) {
		t.Run(d.String(), func(t *testing.T) { test(t, Config{Dialects: []smb2msg.Dialect{d}}) })
	}
}

func TestLogOnRefused(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		for name, creds := range map[string]auth.Credentials{
			"wrong password": {User: srv.User, Password: srv.Password + "x"},
			"no password":    {User: srv.User},
			"unknown user":   {User: "mallory", Password: srv.Password},
		} {
			for _, guest := range []bool{false, true} {
				cfg.Credentials, cfg.Guest = creds, guest
				s, err := logOn(t, srv, cfg)
				if !errors.Is(err, ntstatus.LogonFailure) {
					t.Errorf("%s: %v, %v; want %v", name, s, err, ntstatus.LogonFailure)
				}
				if err != nil && strings.Contains(err.Error(), srv.Password) {
					t.Errorf("%s: the password is in %q", name, err)
				}
			}
		}
	})
}

// openToAll starts a server on which guests and nobody may write, too: who they
// are to its file system depends on who else has been there.
func openToAll(t *testing.T) *sambatest.Server {
	t.Helper()
	srv := sambatest.Start(t, sambatest.Config{Guest: true})
	if err := os.Chmod(srv.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return srv
}

// TestLogOnAsGuest is about a server that takes users for guests whom it does not
// know: only who asked for that gets in so.
func TestLogOnAsGuest(t *testing.T) {
	srv := openToAll(t)
	everyDialect(t, func(t *testing.T, cfg Config) {
		cfg.Credentials = auth.Credentials{User: "mallory", Password: "x"}
		if _, err := logOn(t, srv, cfg); !errors.Is(err, ErrGuest) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a guest who did not want to be one: %v, want %v", err, ErrGuest)
		}
		asked := cfg
		asked.Guest = true
		s, err := logOn(t, srv, asked)
		if err != nil {
			t.Fatal(err)
		}
		use(t, s, srv)
		if i := s.Info(); !i.Guest || i.Signing != "" || i.Cipher != "" {
			t.Errorf("guest %v, signing %q, cipher %q; want a guest without either", i.Guest, i.Signing, i.Cipher)
		}
		for name, demand := range map[string]func(*Config){
			"signing": func(c *Config) { c.Sign = true },
			"sealing": func(c *Config) { c.Seal = true },
		} {
			cfg := asked
			demand(&cfg)
			if s, err := logOn(t, srv, cfg); err == nil {
				t.Errorf("a guest got in although %s was demanded: %+v", name, s.Info())
			}
		}
		// Who has an account is no guest, asked or not.
		asked.Credentials = auth.Credentials{User: srv.User, Password: srv.Password}
		if s, err := logOn(t, srv, asked); err != nil || s.Info().Guest {
			t.Errorf("a known user: %v", err)
		}
	})
}

func TestLogOnAsNobody(t *testing.T) {
	srv := openToAll(t)
	everyDialect(t, func(t *testing.T, cfg Config) {
		cfg.Anonymous = true
		cfg.Credentials = auth.Credentials{User: srv.User, Password: srv.Password} // not to be used
		s, err := logOn(t, srv, cfg)
		if err != nil {
			t.Fatal(err)
		}
		use(t, s, srv)
		if _, err := s.Shares(patient(t)); err != nil {
			t.Errorf("Shares: %v", err)
		}
		if !s.Info().Guest {
			t.Error("nobody is somebody")
		}
	})
}

// TestLogOnAsNobodyRefused has no guests on the server: nobody may get in, but not
// to a share.
func TestLogOnAsNobodyRefused(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	everyDialect(t, func(t *testing.T, cfg Config) {
		cfg.Anonymous = true
		s, err := logOn(t, srv, cfg)
		if err == nil {
			_, err = s.Mount(patient(t), srv.Share)
		}
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, want %v", err, fs.ErrPermission)
		}
	})
}

// use does something on the share.
func use(t *testing.T, s *Session, srv *sambatest.Server) *Volume {
	t.Helper()
	v, err := s.Mount(patient(t), srv.Share)
	if err != nil {
		t.Fatal("Mount: ", err)
	}
	at := remote.At{Name: strings.ReplaceAll(t.Name(), "/", " ")}
	if _, err := v.WriteFile(patient(t), at, remote.How{Create: remote.TruncateNew}, []byte("content")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if n, _, err := v.ReadFile(patient(t), at, p); string(p[:n]) != "content" || err != nil {
		t.Fatalf("%q, %v", p[:n], err)
	}
	return v
}

// TestNoCommonDialect meets servers that are too old or too new.
func TestNoCommonDialect(t *testing.T) {
	for _, c := range []struct {
		name     string
		global   []string
		dialects []smb2msg.Dialect
		offered  []string
		server   []string
	}{
		{"2.0.2 only", []string{"server max protocol = SMB2_02"}, nil,
			[]string{"2.1", "3.0", "3.0.2", "3.1.1"}, []string{"2.0.2"}},
		{"2.1 at most", []string{"server max protocol = SMB2_10"}, []smb2msg.Dialect{smb2msg.SMB300, smb2msg.SMB311},
			[]string{"3.0", "3.1.1"}, []string{"2.1 at the newest"}},
		{"3.0 at least", []string{"server min protocol = SMB3_00"}, []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB210},
			[]string{"2.0.2", "2.1"}, []string{"3.1.1 at the newest"}},
		{"SMB1 only", []string{"server min protocol = NT1", "server max protocol = NT1"}, nil,
			[]string{"2.1", "3.0", "3.0.2", "3.1.1"}, []string{"1.0 (NT LM 0.12)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := sambatest.Start(t, sambatest.Config{Global: c.global})
			_, err := logOn(t, srv, Config{Dialects: c.dialects, Credentials: auth.Credentials{User: srv.User, Password: srv.Password}})
			var none *smbconn.NegotiateError
			if !errors.As(err, &none) {
				t.Fatalf("%v, want a *NegotiateError", err)
			}
			if !slices.Equal(none.Offered, c.offered) || !slices.Equal(none.Server, c.server) {
				t.Errorf("offered %q, the server has %q; want %q, %q", none.Offered, none.Server, c.offered, c.server)
			}
			for _, name := range append(c.offered, c.server...) {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %s", err, name)
				}
			}
		})
	}
}
