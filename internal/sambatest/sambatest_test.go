package sambatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// smbclient runs commands on the share as the given user.
func smbclient(t *testing.T, s *Server, user, commands string, flags ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("smbclient"); err != nil {
		t.Skip("smbclient is not installed")
	}
	args := append([]string{"-s", s.Conf, "-p", strconv.Itoa(s.Port), "-U", user, "//127.0.0.1/" + s.Share, "-c", commands}, flags...)
	out, err := exec.Command("smbclient", args...).CombinedOutput()
	return string(out), err
}

func profile(t *testing.T, s *Server) Counters {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, err := s.Profile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPutGetCounts(t *testing.T) {
	s := Start(t, Config{})
	user := s.User + "%" + s.Password
	const size = 3<<20 + 17
	data := bytes.Repeat([]byte("pagewire"), size/8+1)[:size]
	local := filepath.Join(t.TempDir(), "local")
	if err := os.WriteFile(local, data, 0o644); err != nil {
		t.Fatal(err)
	}

	before := profile(t, s)
	if out, err := smbclient(t, s, user, "put "+local+" far"); err != nil {
		t.Fatalf("put: %v\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(s.Dir, "far")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the share has %d bytes, %v; want what was put", len(got), err)
	}
	put := profile(t, s)
	back := local + ".back"
	if out, err := smbclient(t, s, user, "get far "+back); err != nil {
		t.Fatalf("get: %v\n%s", err, out)
	}
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes back, %v; want what was put", len(got), err)
	}
	get := profile(t, s)

	// Each request carries its header and fixed part besides the data.
	const overhead = 64 + 48
	for _, c := range []struct {
		name        string
		diff        Counters
		count, size string
	}{
		{"put", put.Since(before), "smb2_write_count", "smb2_write_inbytes"},
		{"get", get.Since(put), "smb2_read_count", "smb2_read_outbytes"},
	} {
		n, bytes := c.diff[c.count], c.diff[c.size]
		if n < 1 {
			t.Errorf("%s: %s is %d, want some", c.name, c.count, n)
		}
		if least, most := int64(size), int64(size)+n*(overhead+1); bytes < least || bytes > most {
			t.Errorf("%s: %s is %d, want %d to %d", c.name, c.size, bytes, least, most)
		}
		if got := c.diff["connect_count"]; got != 1 {
			t.Errorf("%s: connect_count is %d, want 1", c.name, got)
		}
	}
}

func TestUsers(t *testing.T) {
	closed, open := Start(t, Config{}), Start(t, Config{Guest: true})
	for _, c := range []struct {
		name     string
		server   *Server
		user     string
		rejected string
	}{
		{"user", closed, "alice%pagewire-Test-1", ""},
		{"wrong password", closed, "alice%wrong", "NT_STATUS_LOGON_FAILURE"},
		{"unknown user", closed, "mallory%x", "NT_STATUS_LOGON_FAILURE"},
		{"anonymous", closed, "%", "NT_STATUS_ACCESS_DENIED"},
		{"guest", open, "mallory%x", ""},
		{"user beside guests", open, "alice%pagewire-Test-1", ""},
		{"wrong password beside guests", open, "alice%wrong", "NT_STATUS_LOGON_FAILURE"},
		{"anonymous beside guests", open, "%", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := smbclient(t, c.server, c.user, "mkdir d; rmdir d")
			if c.rejected == "" && err != nil {
				t.Errorf("rejected: %v\n%s", err, out)
			}
			if c.rejected != "" && !strings.Contains(out, c.rejected) {
				t.Errorf("got %v\n%s\nwant %s", err, out, c.rejected)
			}
		})
	}
}

func TestDialects(t *testing.T) {
	s := Start(t, Config{})
	for _, d := range []string{"SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"} {
		if out, err := smbclient(t, s, s.User+"%"+s.Password, "ls", "--max-protocol="+d, "--option=client min protocol="+d); err != nil {
			t.Errorf("%s: %v\n%s", d, err, out)
		}
	}
}

func TestConfigLines(t *testing.T) {
	dir := t.TempDir()
	s := Start(t, Config{
		Dir:    dir,
		Global: []string{"server max protocol = SMB2_02"},
		Share:  []string{"read only = yes"},
	})
	user := s.User + "%" + s.Password
	if out, err := smbclient(t, s, user, "ls", "--option=client min protocol=SMB2_10"); err == nil {
		t.Errorf("a client that wants 2.1 got in:\n%s", out)
	}
	if out, _ := smbclient(t, s, user, "mkdir d"); !strings.Contains(out, "NT_STATUS_ACCESS_DENIED") {
		t.Errorf("mkdir on a read-only share: %s", out)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("Close removed the caller's folder: %v", err)
	}
}

// TestClose holds a connection open meanwhile, and has used a pipe, whose server
// stays.
func TestClose(t *testing.T) {
	Need(t)
	s, err := Run(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := smbclient(t, s, s.User+"%"+s.Password, "", "-L", "127.0.0.1"); err != nil {
		t.Errorf("listing shares: %v\n%s", err, out)
	}
	piped := func(p process) bool { return p.group != s.cmd.Process.Pid }
	if !slices.ContainsFunc(s.processes(), piped) {
		t.Errorf("no pipe server among %v", s.processes())
	}
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	defer c.Close()

	forked := func() bool { return slices.ContainsFunc(s.processes(), process.serves) }
	if err := poll(t.Context(), s.exited, forked); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Profile(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Profile with a connection open: %v, want it to wait", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if ps := s.processes(); len(ps) != 0 {
		t.Errorf("Close left processes behind: %v", ps)
	}
	if _, err := os.Stat(s.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Close left %s behind: %v", s.home, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestRunBadConfig(t *testing.T) {
	Need(t)
	s, err := Run(t.Context(), Config{Global: []string{"server role = active directory domain controller"}})
	if err == nil {
		s.Close()
		t.Fatal("smbd ran as a domain controller")
	}
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "domain controller") {
		t.Errorf("got %v, want smbd's own words", err)
	}
}

// fakeTB records how a test would end.
type fakeTB struct {
	TB
	end string
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Skip(args ...any)  { f.ended("skip", args) }
func (f *fakeTB) Fatal(args ...any) { f.ended("fatal", args) }

// ended keeps the first end only, for a real test does not go on after it.
func (f *fakeTB) ended(how string, args []any) {
	if f.end == "" {
		f.end = how + ": " + fmt.Sprint(args...)
	}
}

func TestNeed(t *testing.T) {
	if path := find("no-such-program"); path != "" {
		t.Errorf("found a program that does not exist: %s", path)
	}
	for _, c := range []struct{ ci, want string }{
		{"true", "fatal: samba: no smbd"},
		{"", "skip: samba: no smbd"},
	} {
		t.Setenv("CI", c.ci)
		f := &fakeTB{}
		giveUp(f, "no smbd")
		if f.end != c.want {
			t.Errorf("CI=%q: %q, want %q", c.ci, f.end, c.want)
		}
	}
}
