package smbserver

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// serveTCP serves connections to a port of loopback, which it returns.
func serveTCP(t *testing.T, s *Server) (port string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.Serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.Close()
		serving.Wait()
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestForeignClient has Samba's client use files that the test has leased. It gets
// what the test still has had to write, or waits until the lease is given up.
func TestForeignClient(t *testing.T) {
	program, err := exec.LookPath("smbclient")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("smbclient is not installed")
	}
	for _, protocol := range []string{"SMB2_02", "SMB2_10", "SMB3_11"} {
		for _, c := range []struct {
			command, held, left string
			status              ntstatus.Status // of the acknowledgment
		}{
			{"get file", "RWH", "RH", ntstatus.Success},
			{"put file", "RWH", "", ntstatus.Success},
			{"rename file other", "RWH", "RH", ntstatus.Success},
			{"del file", "RH", "R", ntstatus.Success},
			{"put file", "R", "", ntstatus.Unsuccessful}, // it needs none
		} {
			t.Run(protocol+"/"+c.command+"/"+c.held, func(t *testing.T) {
				s := start(t, Config{}, "file")
				port := serveTCP(t, s)
				nc, err := net.Dial("tcp4", "127.0.0.1:"+port)
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(time.Minute)) // should the other one not do what it is to do
				a := &client{t: t, nc: nc, br: bufio.NewReader(nc), guid: [16]byte{1}}
				a.logOn()
				m := leasing("file", 1, c.held)
				m.DesiredAccess = smb2msg.AccessGenericRead | smb2msg.AccessGenericWrite // others would share no more
				id := a.lease(m, c.held)

				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "file"), []byte("theirs"), 0o644); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, program, "--configfile=/dev/null", "--port="+port,
					"--user=user", "--max-protocol="+protocol, "//127.0.0.1/share", "--command="+c.command)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PASSWD=pass", "HOME="+dir)
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for {
					got := a.notified()
					if got.LeaseKey != [16]byte{1} || got.NewLeaseState&^state(c.held) != 0 || got.NewLeaseState == state(c.held) {
						t.Fatalf("told %+v", got)
					}
					if got.CurrentLeaseState&leaseWrite != 0 {
						if got := a.write(id, 0, "mine"); got != ntstatus.Success {
							t.Errorf("writing back: %v", got)
						}
					}
					r := a.do(smb2msg.CommandOplockBreak, &smb2msg.LeaseBreak{LeaseKey: got.LeaseKey, LeaseState: got.NewLeaseState})
					if r.Status != c.status {
						t.Errorf("the acknowledgment: %v", r.Status)
					}
					if got.NewLeaseState == state(c.left) {
						break
					}
				}
				// As long as it is open, it is not removed.
				a.close(id)
				if err := cmd.Wait(); err != nil {
					t.Fatalf("%v\n%s", err, out.String())
				}
				data, _ := os.ReadFile(filepath.Join(dir, "file"))
				if want := "mineents of file"; c.command == "get file" && string(data) != want {
					t.Errorf("it got %q, want %q", data, want)
				}
				if n := s.Stats().BreakTimeouts; n != 0 {
					t.Errorf("%d breaks took too long", n)
				}
			})
		}
	}
}
