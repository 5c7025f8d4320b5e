package smb

import (
	"context"
	"testing"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

// eachProtection runs test on every dialect, plain, signed and sealed.
func eachProtection(t *testing.T, test func(t *testing.T, cfg Config, want Info)) {
	for _, d := range append([]smb2msg.Dialect{smb2msg.SMB202}, smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311) {
		signing := map[bool]string{true: "HMAC-SHA256", false: "AES-CMAC"}[d < smb2msg.SMB300]
		cipher := "AES-128-CCM"
		if d == smb2msg.SMB311 {
			signing, cipher = "AES-GMAC", "AES-128-GCM"
		}
		name, dialects := d.String(), []smb2msg.Dialect{d}
		t.Run(name+"/plain", func(t *testing.T) {
			test(t, Config{Dialects: dialects}, Info{Dialect: name})
		})
		t.Run(name+"/signed", func(t *testing.T) {
			test(t, Config{Dialects: dialects, Sign: true}, Info{Dialect: name, Signing: signing})
		})
		if d >= smb2msg.SMB300 {
			t.Run(name+"/sealed", func(t *testing.T) {
				test(t, Config{Dialects: dialects, Seal: true}, Info{Dialect: name, Cipher: cipher})
			})
		}
	}
}

// TestRemoteOnTestServer runs it against our own, which has symbolic links and
// names of any 16-bit units.
func TestRemoteOnTestServer(t *testing.T) {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()
	eachProtection(t, func(t *testing.T, cfg Config, want Info) {
		remotetest.Run(t, func(t *testing.T) remotetest.Target {
			v := dialTest(t, srv, cfg)
			checkPath(t, v.s, want)
			return remotetest.Target{
				Volume: v,
				Second: dialTest(t, srv, cfg),
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

// dialTest connects to the first share of a test server, over memory.
func dialTest(t *testing.T, srv *smbtest.Server, cfg Config) *Volume {
	t.Helper()
	nc, err := srv.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = auth.Credentials{User: "user", Password: "pass"}
	s, err := Dial(t.Context(), nc, "server", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	v, err := s.Mount(t.Context(), "share")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkPath fails unless a session took the path that the test is about.
func checkPath(t *testing.T, s *Session, want Info) {
	t.Helper()
	got := s.Info()
	if got.Dialect != want.Dialect || got.Signing != want.Signing || got.Cipher != want.Cipher || got.Guest {
		t.Errorf("dialect %q, signing %q, cipher %q, guest %v; want %q, %q, %q", got.Dialect, got.Signing, got.Cipher, got.Guest,
			want.Dialect, want.Signing, want.Cipher)
	}
}

// TestRemote runs the suite that every protocol passes against a real server.
func TestRemote(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	eachProtection(t, func(t *testing.T, cfg Config, want Info) {
		remotetest.Run(t, func(t *testing.T) remotetest.Target {
			cfg := cfg
			cfg.MFSymlinks = true // Samba makes no reparse points
			v := mount(t, srv, cfg)
			checkPath(t, v.s, want)
			return remotetest.Target{
				Volume: v,
				Second: mount(t, srv, cfg),
				Caps: remotetest.Caps{
					Symlinks: true,
					Links:    true,
					DOS:      true,
					FoldCase: true,
					Reserved: true,
					// Samba's file names are UTF-8 of at most 255 bytes.
					MaxNameBytes: 255,
					Rights:       allRights,
				},
			}
		})
	})
}
