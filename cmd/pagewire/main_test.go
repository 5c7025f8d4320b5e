package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/smbtest"
)

// asCommand makes the test binary be the command, for what needs a process.
const asCommand = "PAGEWIRE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	for _, name := range []string{"PASSWD", "PASSWD_FD", "PASSWD_FILE"} {
		os.Unsetenv(name)
	}
	os.Exit(m.Run())
}

// command is a process of the command.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// result is what a run in this process left.
type result struct {
	stdout, stderr string
	code           int
}

func runWith(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	r := &run{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
	code := r.main(ctx, args)
	return result{stdout.String(), stderr.String(), code}
}

// pw runs the command, which has to exit with code.
func pw(t *testing.T, code int, args ...string) result {
	t.Helper()
	got := runWith(t.Context(), args...)
	if got.code != code {
		t.Fatalf("pagewire %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got.code, code, got.stdout, got.stderr)
	}
	return got
}

func newServer(t *testing.T, cfg smbtest.Config) *smbtest.Server {
	t.Helper()
	s := smbtest.NewServer(cfg)
	t.Cleanup(s.Close)
	return s
}

// write makes files on the server's first share.
func write(t *testing.T, s *smbtest.Server, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := s.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeLocal makes files in a folder.
func writeLocal(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func checkLocal(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds %s, want %s", name, clip(string(got)), clip(want))
	}
}

func checkRemote(t *testing.T, s *smbtest.Server, name, want string) {
	t.Helper()
	got, err := s.ReadFile(name)
	if err != nil {
		t.Fatalf("%s on the server: %v", name, err)
	}
	if string(got) != want {
		t.Errorf("%s on the server holds %s, want %s", name, clip(string(got)), clip(want))
	}
}

func clip(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%d bytes, %q…", len(s), s[:20])
	}
	return fmt.Sprintf("%q", s)
}

// pattern is n bytes of which no two blocks are alike.
func pattern(n int) string {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i)*0x9E3779B97F4A7C15)
	}
	return string(b[:n])
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%swant\n%s", what, got, want)
	}
}

func wantPart(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: %q\nwant %q in it", what, got, part)
	}
}
