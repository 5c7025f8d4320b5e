package smbtest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/smbtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// smbclient runs Samba's client on a share, and returns what it prints.
func smbclient(t *testing.T, s *smbtest.Server, share, commands string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("smbclient")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("smbclient is not installed")
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	args = append([]string{
		"--configfile=/dev/null", "--port=" + u.Port(), "--user=" + u.User.Username(),
		"//" + u.Hostname() + "/" + share, "--command=" + commands,
	}, args...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "PASSWD="+password, "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// content is n bytes in which no block is like another.
func content(n int) []byte {
	p := make([]byte, 0, n+16)
	for i := 0; len(p) < n; i++ {
		p = fmt.Appendf(p, "%015x\n", i)
	}
	return p[:n]
}

// TestSmbclient has a foreign client do everything it can, under all dialects
// and protections, on both kinds of share.
func TestSmbclient(t *testing.T) {
	local := t.TempDir()
	want := content(3<<20 + 17)
	if err := os.WriteFile(filepath.Join(local, "file"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"} {
		for _, protection := range []string{"off", "sign", "encrypt"} {
			if protection == "encrypt" && dialect < "SMB3" {
				continue
			}
			for _, kind := range []string{"memory", "folder"} {
				t.Run(dialect+"/"+protection+"/"+kind, func(t *testing.T) {
					sh := smbtest.Share{Name: "share"}
					if kind == "folder" {
						sh.Dir = t.TempDir()
					}
					s := smbtest.NewServer(smbtest.Config{Shares: []smbtest.Share{sh}, RequireSigning: protection == "sign"})
					defer s.Close()
					if err := s.WriteFile("Dir/there", []byte("x")); err != nil {
						t.Fatal(err)
					}
					back := filepath.Join(t.TempDir(), "back")
					out, err := smbclient(t, s, "share", strings.Join([]string{
						"put " + filepath.Join(local, "file") + " Größe",
						"get gRÖßE " + back,
						"cd dir",
						"mkdir sub",
						"rename there sub/here",
						"ls",
						"cd ..",
						"del Größe",
						"ls *",
					}, ";"), "--max-protocol="+dialect, "--client-protection="+protection)
					if err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					if got, err := os.ReadFile(back); !bytes.Equal(got, want) {
						t.Errorf("got back %d bytes that differ, %v", len(got), err)
					}
					if got, err := s.ReadFile("Dir/sub/here"); string(got) != "x" {
						t.Errorf("the renamed file has %q, %v", got, err)
					}
					if !strings.Contains(out, "  sub  ") || strings.Contains(out, "Größe  ") {
						t.Errorf("listed:\n%s", out)
					}
					st := s.Stats()
					if st.Written != int64(len(want)) || st.Read != int64(len(want)) {
						t.Errorf("counted %d bytes written and %d read, want %d", st.Written, st.Read, len(want))
					}
					if (st.SignedRequests > 10) != (protection == "sign") || (st.SealedFrames > 10) != (protection == "encrypt") {
						t.Errorf("counted %d signed requests and %d sealed frames", st.SignedRequests, st.SealedFrames)
					}
				})
			}
		}
	}
}

// TestSmbclientSees has a foreign client meet what is not there, and all shares.
func TestSmbclientSees(t *testing.T) {
	s := smbtest.NewServer(smbtest.Config{
		Shares: []smbtest.Share{
			{Name: "share", Comment: "the first"}, {Name: "sealed", Seal: true}, {Name: "small", Limit: 1 << 20},
		},
		Credits: 1,
	})
	defer s.Close()
	for i := range 3000 {
		if err := s.WriteFile(fmt.Sprintf("many/file%04d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	out, err := smbclient(t, s, "share", "ls many/*")
	if n := strings.Count(out, "file"); n != 3000 {
		t.Errorf("listed %d files, %v; want 3000", n, err)
	}
	out, _ = smbclient(t, s, "", "", "--list=127.0.0.1")
	if !strings.Contains(out, "the first") || !strings.Contains(out, "small") || !strings.Contains(out, "IPC$") {
		t.Errorf("listed shares:\n%s", out)
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ share, commands, want string }{
		{"none", "ls", "NT_STATUS_BAD_NETWORK_NAME"},
		{"share", "get none", "NT_STATUS_OBJECT_NAME_NOT_FOUND"},
		{"share", "rmdir many", "NT_STATUS_DIRECTORY_NOT_EMPTY"},
		{"small", "put " + big + " big", "NT_STATUS_DISK_FULL"},
		{"sealed", "ls", "blocks of size"},
	} {
		if out, _ := smbclient(t, s, c.share, c.commands, "--client-protection=sign"); !strings.Contains(out, c.want) {
			t.Errorf("%s, %q: %s, want %s", c.share, c.commands, out, c.want)
		}
	}
	if out, _ := smbclient(t, s, "share", "ls", "--user=user%wrong"); !strings.Contains(out, "NT_STATUS_LOGON_FAILURE") {
		t.Errorf("wrong password: %s", out)
	}
}

// TestDial connects in memory, where time is simulated, over a slow link.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := smbtest.NewUnstarted(smbtest.Config{RTT: 100 * time.Millisecond})
		defer s.Close()
		conn, err := s.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		from := time.Now()
		// See [MS-SMB2] 3.3.5.3.1: asked in SMB1, it answers in SMB2.
		names := "\x02SMB 2.002\x00"
		msg := append([]byte("\xFFSMB\x72"), make([]byte, 28)...)
		msg = append(append(msg, byte(len(names)), 0), names...)
		conn.Write(append([]byte{0, 0, 0, byte(len(msg))}, msg...))
		got := make([]byte, 8)
		if _, err := io.ReadFull(conn, got); err != nil || string(got[4:]) != "\xFESMB" {
			t.Errorf("got %q, %v", got, err)
		}
		if took := time.Since(from); took != 100*time.Millisecond {
			t.Errorf("it took %v, want 100ms", took)
		}
	})
}

// TestNoLeases reads what a server says of itself, as far as that tells of leases.
func TestNoLeases(t *testing.T) {
	for _, refused := range []bool{false, true} {
		s := smbtest.NewUnstarted(smbtest.Config{NoLeases: refused})
		conn, err := s.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		// See [MS-SMB2] 2.2.1.2, 2.2.3 and 2.2.4.
		msg := append([]byte("\xFESMB\x40"), make([]byte, 59)...)
		msg = append(msg, 36, 0, 1, 0, 1)
		msg = append(msg, make([]byte, 31)...)
		msg = append(msg, 0x10, 0x02)
		conn.Write(append([]byte{0, 0, 0, byte(len(msg))}, msg...))
		got := make([]byte, 4+64+28)
		if _, err := io.ReadFull(conn, got); err != nil {
			t.Fatal(err)
		}
		const capabilities, leasing = 4 + 64 + 24, 2
		if told := got[capabilities]&leasing != 0; told == refused {
			t.Errorf("with NoLeases %v, capabilities are %#x", refused, got[capabilities])
		}
		conn.Close()
		s.Close()
	}
}

// TestBreak breaks what is not there, and in ways there are not.
func TestBreak(t *testing.T) {
	s := smbtest.NewUnstarted(smbtest.Config{})
	defer s.Close()
	if err := s.WriteFile("file", nil); err != nil {
		t.Fatal(err)
	}
	if n := s.Break("file", "R"); n != 0 {
		t.Errorf("%d clients had a lease, want none", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("HW is taken for a lease")
		}
	}()
	s.Break("file", "HW")
}

func TestURL(t *testing.T) {
	s := smbtest.NewServer(smbtest.Config{
		Users:  map[string]string{"b": "x", "a": "p@ss/word"},
		Shares: []smbtest.Share{{Name: "my share"}},
	})
	defer s.Close()
	if want := "smb://a:p%40ss%2Fword@" + s.Addr + "/my%20share"; s.URL != want {
		t.Errorf("URL is %s, want %s", s.URL, want)
	}
}

// TestClose closes a server whose clients do nothing, or are too late.
func TestClose(t *testing.T) {
	var log bytes.Buffer
	s := smbtest.NewServer(smbtest.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), RTT: time.Millisecond})
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
	late, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Error("a closed server takes connections")
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, cfg := range []smbtest.Config{
		{Dialects: []string{"SMB3"}},
		{Ciphers: []string{"AES-128"}},
		{Signings: []string{"CMAC"}},
		{Shares: []smbtest.Share{{Name: "x", Dir: "/does/not/exist"}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken for good", cfg)
				}
			}()
			smbtest.NewUnstarted(cfg).Close()
		}()
	}
}

func ExampleNewServer() {
	srv := smbtest.NewServer(smbtest.Config{Dialects: []string{"3.1.1"}})
	defer srv.Close()
	srv.WriteFile("hello", []byte("world"))
	srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "READ" && r.N == 3 {
			return smbtest.Fault{Drop: true} // never answer the third READ
		}
		return smbtest.Fault{}
	})
	data, err := srv.ReadFile("hello")
	fmt.Println(string(data), err)
	// Output: world <nil>
}
