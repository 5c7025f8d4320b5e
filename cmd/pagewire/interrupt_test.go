package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/smbtest"
)

// contextThatEnds is a context that the test ends, or else the end of the test.
func contextThatEnds(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// interrupt runs the command in a process, which gets a SIGINT once the server
// has seen n requests of a kind, and which then has to end soon.
func interrupt(t *testing.T, s *smbtest.Server, kind string, n int64, args ...string) (stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := command(ctx, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	var seen atomic.Int64
	reached := make(chan struct{}, 1)
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == kind && seen.Add(1) == n {
			reached <- struct{}{}
		}
		return smbtest.Fault{}
	})
	defer s.SetFaults(nil)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-ctx.Done():
		t.Errorf("no %d requests of %s", n, kind)
	}
	start := time.Now()
	cmd.Process.Signal(os.Interrupt)
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("pagewire %v ends with %v, want exit status %d; stderr %s", args, err, exitInterrupted, &errs)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("pagewire %v ends %v after SIGINT", args, took)
	}
	return errs.String()
}

func TestInterrupt(t *testing.T) {
	// A link that takes the files longer than the test may.
	s := newServer(t, smbtest.Config{Rate: 80e6, MaxRead: 256 << 10, MaxWrite: 256 << 10})
	write(t, s, map[string]string{"large": pattern(64 << 20)})
	dir := t.TempDir()
	errs := interrupt(t, s, "READ", 60, "cp", s.URL+"/large", dir)
	wantPart(t, "cp", errs, "interrupted")
	if strings.Contains(errs, ":pass@") {
		t.Errorf("password in %s", errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "large"+stateSuffix)); err != nil {
		t.Errorf("no state to go on from: %v", err)
	}
	interrupt(t, s, "READ", 8, "cat", s.URL+"/large")
	interrupt(t, s, "READ", 3, "explain", s.URL)

	writeLocal(t, dir, map[string]string{"up": pattern(64 << 20)})
	interrupt(t, s, "WRITE", 60, "cp", filepath.Join(dir, "up"), s.URL)
	wantPart(t, "what is on the server", pw(t, 0, "ls", s.URL).stdout, "up.partial\nup.partial.state\n")
}

func TestProcess(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"a": "A"})
	out, err := command(t.Context(), "cat", s.URL+"/a").Output()
	if err != nil || string(out) != "A" {
		t.Errorf("cat writes %q, %v", out, err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, verb := range []string{"ls", "cat", "stat", "df"} {
		cmd := command(t.Context(), verb, s.URL+"/a")
		if verb == "ls" || verb == "df" {
			cmd = command(t.Context(), verb, s.URL)
		}
		cmd.Stdout = full
		var errs bytes.Buffer
		cmd.Stderr = &errs
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(errs.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%s into a full disk: %v, %s", verb, err, &errs)
		}
	}
}
