package smb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// noise is n bytes that no other place in the file has.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// as logs on to a real server as its user, or ends the test.
func as(t *testing.T, srv *sambatest.Server, cfg Config) *Session {
	t.Helper()
	cfg.Credentials = auth.Credentials{User: srv.User, Password: srv.Password}
	s, err := logOn(t, srv, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSharesThatMayNotBeMounted(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{Share: []string{
		"[closed]\npath = /tmp\nvalid users = root",
		"[gone]\npath = /nonexistent",
	}})
	everyDialect(t, func(t *testing.T, cfg Config) {
		s := as(t, srv, cfg)
		for share, want := range map[string]error{
			"none":                     ntstatus.BadNetworkName,
			"closed":                   ntstatus.AccessDenied,
			"gone":                     ntstatus.BadNetworkName,
			"IPC$":                     ntstatus.BadDeviceType,
			strings.Repeat("x", 300):   nil,
			strings.Repeat("x", 40000): nil,
			"":                         nil,
		} {
			v, err := s.Mount(patient(t), share)
			if err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%.20q: %v, %v; want %v", share, v, err, want)
			}
		}
		use(t, s, srv) // the session is none the worse
	})
}

func TestFilesThatMayNotBeOpened(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	for name, mode := range map[string]os.FileMode{"closed": 0, "readable": 0o444, "open": 0o666} {
		path := filepath.Join(srv.Dir, name)
		if err := os.WriteFile(path, []byte("content"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	everyDialect(t, func(t *testing.T, cfg Config) {
		v := mount(t, srv, cfg)
		for _, c := range []struct {
			name   string
			access remote.Access
			create remote.Create
			want   error
		}{
			{"closed", remote.ForRead, remote.Existing, ntstatus.AccessDenied},
			{"closed", remote.ForRead | remote.ForWrite, remote.TruncateNew, ntstatus.AccessDenied},
			{"readable", remote.ForRead, remote.Existing, nil},
			{"readable", remote.ForWrite, remote.Existing, fs.ErrPermission},
			{"open", remote.ForWrite, remote.New, ntstatus.ObjectNameCollision},
			{"none", remote.ForRead, remote.Existing, ntstatus.ObjectNameNotFound},
			{"none/none", remote.ForRead, remote.Existing, ntstatus.ObjectPathNotFound},
			{"open/none", remote.ForRead, remote.Existing, fs.ErrNotExist},
		} {
			o, err := v.Open(patient(t), remote.At{Name: c.name}, remote.How{Access: c.access, Create: c.create}, nil)
			if !errors.Is(err, c.want) {
				t.Errorf("%s for %d, %d: %v, want %v", c.name, c.access, c.create, err, c.want)
			}
			if err == nil {
				o.Open.Close(patient(t))
			}
		}
	})
}

// TestReferralIsNotFollowed is about a path that leads to another server.
func TestReferralIsNotFollowed(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{Global: []string{"host msdfs = yes"}, Share: []string{"msdfs root = yes"}})
	if err := os.Symlink(`msdfs:elsewhere\share`, filepath.Join(srv.Dir, "away")); err != nil {
		t.Fatal(err)
	}
	v := mount(t, srv, Config{})
	_, err := v.GetAttr(patient(t), remote.At{Name: "away/file"})
	check(t, "GetAttr", err, ntstatus.PathNotCovered)
}

// TestServerEndsInMidRead ends the server under many READs.
func TestServerEndsInMidRead(t *testing.T) {
	sambatest.Need(t)
	for _, p := range protections {
		t.Run(p.name, func(t *testing.T) {
			srv, err := sambatest.Run(t.Context(), sambatest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			end := sync.OnceFunc(func() { srv.Close() })
			defer end()
			v := mount(t, srv, p.cfg)
			o := open(t, srv, v, "file", 64<<20)
			errs := make(chan error)
			started := make(chan struct{}, 1)
			for range 8 {
				go func() {
					buf := [][]byte{make([]byte, 1<<20)}
					for {
						if _, _, err := o.File.ReadAt(patient(t), remote.Req{Open: o.Open}, buf); err != nil {
							errs <- err
							return
						}
						select {
						case started <- struct{}{}:
						default:
						}
					}
				}()
			}
			<-started
			end()
			for range 8 {
				check(t, "ReadAt", <-errs, smbconn.ErrDisconnected)
			}
			_, err = v.GetAttr(patient(t), remote.At{})
			check(t, "GetAttr", err, smbconn.ErrDisconnected)
			check(t, "Close", o.Open.Close(patient(t)), smbconn.ErrDisconnected)
			check(t, "log off", v.s.Close(patient(t)), smbconn.ErrDisconnected)
		})
	}
}

// TestFewCredits moves more than all the credits pay for, in requests as large as
// the server takes, and several at a time.
func TestFewCredits(t *testing.T) {
	for _, credits := range []int{1, 3, 128} {
		t.Run(fmt.Sprint(credits), func(t *testing.T) {
			srv := sambatest.Start(t, sambatest.Config{Global: []string{fmt.Sprintf("smb2 max credits = %d", credits)}})
			for _, d := range []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB311} {
				v := mount(t, srv, Config{Dialects: []smb2msg.Dialect{d}})
				o := open(t, srv, v, "file "+d.String(), 0)
				const size, streams = 8 << 20, 4
				want := noise(size * streams)
				got := make([]byte, len(want))
				var wg sync.WaitGroup
				for i := range streams {
					wg.Go(func() {
						each(t, size, func(off int) (int, error) {
							n, _, err := o.File.WriteAt(patient(t), remote.Req{Open: o.Open, Off: int64(i*size + off)},
								remote.Write{Data: [][]byte{want[i*size+off : (i+1)*size]}})
							return n, err
						})
						each(t, size, func(off int) (int, error) {
							n, _, err := o.File.ReadAt(patient(t), remote.Req{Open: o.Open, Off: int64(i*size + off)},
								[][]byte{got[i*size+off : (i+1)*size]})
							return n, err
						})
					})
				}
				wg.Wait()
				if !bytes.Equal(got, want) {
					t.Error("what was read is not what was written")
				}
				if _, err := names(patient(t), v); err != nil {
					t.Errorf("ReadDir: %v", err)
				}
				if _, err := v.GetAttr(patient(t), remote.At{}); err != nil {
					t.Errorf("GetAttr: %v", err)
				}
			}
		})
	}
}

// each calls do until it has moved n bytes.
func each(t *testing.T, n int, do func(off int) (int, error)) {
	for off := 0; off < n; {
		moved, err := do(off)
		if err != nil {
			t.Errorf("at %d of %d bytes: %v", off, n, err)
			return
		}
		off += moved
	}
}

// TestServersThatDemandProtection are obeyed, by the dialects that can.
func TestServersThatDemandProtection(t *testing.T) {
	type want struct {
		signed, sealed bool // the session
		share          bool // only the share is sealed
		err            error
	}
	for name, c := range map[string]struct {
		conf sambatest.Config
		want func(d smb2msg.Dialect) want
	}{
		"signing": {sambatest.Config{Global: []string{"server signing = mandatory"}},
			func(smb2msg.Dialect) want { return want{signed: true} }},
		"sealing": {sambatest.Config{Global: []string{"smb encrypt = required"}}, func(d smb2msg.Dialect) want {
			if d < smb2msg.SMB300 {
				return want{err: ntstatus.AccessDenied}
			}
			return want{sealed: true}
		}},
		"sealing of the share": {sambatest.Config{Share: []string{"smb encrypt = required"}}, func(d smb2msg.Dialect) want {
			if d < smb2msg.SMB300 {
				return want{err: ntstatus.AccessDenied}
			}
			return want{share: true}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := sambatest.Start(t, c.conf)
			everyDialect(t, func(t *testing.T, cfg Config) {
				want := c.want(cfg.Dialects[0])
				cfg.Credentials = auth.Credentials{User: srv.User, Password: srv.Password}
				s, err := logOn(t, srv, cfg)
				if err == nil && want.err != nil {
					_, err = s.Mount(patient(t), srv.Share)
				}
				if !errors.Is(err, want.err) {
					t.Fatalf("%v, want %v", err, want.err)
				}
				if err != nil {
					return
				}
				v := use(t, s, srv)
				if i := s.Info(); (i.Signing != "") != want.signed || (i.Cipher != "") != want.sealed || v.Sealed() != (want.sealed || want.share) {
					t.Errorf("signing %q, cipher %q, share sealed %v; want %+v", i.Signing, i.Cipher, v.Sealed(), want)
				}
				st := s.Info().Stats
				if (st.Signed > 3) != want.signed || (st.Sealed > 0) != (want.sealed || want.share) {
					t.Errorf("%d requests signed, %d frames sealed; want %+v", st.Signed, st.Sealed, want)
				}
			})
		})
	}
}

// TestGivenUpInTheNegotiation gives up on a server that takes the connection and says nothing
// as soon as the caller does.
func TestGivenUpInTheNegotiation(t *testing.T) {
	inner, cancel := context.WithCancel(t.Context())
	l := listen(t)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		nc.Read(make([]byte, 1))
		cancel()
		<-t.Context().Done()
	}()
	nc := dialTCP(t, l.Addr().String())
	_, err := Dial(inner, nc, "127.0.0.1", Config{})
	check(t, "Dial", err, context.Canceled)
}
