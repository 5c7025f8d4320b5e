package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/pagewire/pagewire/smbtest"
)

// tty is a terminal whose user the test is.
type tty struct {
	user   *os.File
	screen bytes.Buffer // owned by the goroutine of read until it ends
}

// openTTY returns a terminal of 100 by 30, and what a process has of it.
func openTTY(t *testing.T) (*tty, *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { user.Close() })
	fd := int(user.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &tty{user: user}, process
}

// onTTY runs the command on a terminal, where answer is typed once the screen
// shows question, and returns what the screen then has shown.
func onTTY(t *testing.T, code int, question, answer string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, process := openTTY(t)
	cmd := command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		asked := false
		buf := make([]byte, 4096)
		for {
			n, err := c.user.Read(buf)
			c.screen.Write(buf[:n])
			if !asked && question != "" && strings.Contains(c.screen.String(), question) {
				asked = true
				io.WriteString(c.user, answer)
			}
			if err != nil {
				return // EIO, once the process has closed its end
			}
		}
	}()
	err := cmd.Wait()
	<-gone
	var exit *exec.ExitError
	if got := 0; err != nil {
		if errors.As(err, &exit) {
			got = exit.ExitCode()
		}
		if got != code {
			t.Errorf("pagewire %v: %v, want exit code %d; screen %q", args, err, code, &c.screen)
		}
	} else if code != 0 {
		t.Errorf("pagewire %v succeeds, want exit code %d; screen %q", args, code, &c.screen)
	}
	return c.screen.String()
}

func TestPrompt(t *testing.T) {
	const password = "S3cret-pass"
	s := newServer(t, smbtest.Config{Users: map[string]string{"alice": password}})
	write(t, s, map[string]string{"a": "A"})
	u := strings.Replace(s.URL, ":"+password, "", 1)
	question := "Password for alice at 127.0.0.1: "

	screen := onTTY(t, exitOK, question, password+"\n", "ls", u)
	want(t, "the screen", screen, question+"\r\na\r\n")
	screen = onTTY(t, exitAuth, question, "wrong-pass\n", "ls", u)
	if strings.Contains(screen, "wrong-pass") {
		t.Errorf("the password is shown: %q", screen)
	}
	wantPart(t, "the screen", screen, "STATUS_LOGON_FAILURE")
	onTTY(t, exitInterrupted, question, "half of it\x03", "ls", u)
	// Without a terminal there is nobody to ask.
	wantPart(t, "without a terminal", pw(t, exitAuth, "ls", u).stderr, "credentials")
}

func TestBar(t *testing.T) {
	s := newServer(t, smbtest.Config{Rate: 200e6})
	write(t, s, map[string]string{"a.mov": pattern(16 << 20), "\x1b[2Jevil": "x"})
	screen := onTTY(t, exitOK, "", "", "cp", s.URL+"/a.mov", t.TempDir())
	wantPart(t, "the bar", screen, "a.mov  [====")
	wantPart(t, "the bar", screen, "/16.0 MiB  ")
	wantPart(t, "the end", screen, "\x1b[J1 file, 16.0 MiB in ")
	screen = onTTY(t, exitOK, "", "", "ls", s.URL)
	want(t, "a hostile name", screen, "?[2Jevil\r\na.mov\r\n")
}

func TestTerminalWithoutSize(t *testing.T) {
	_, process := openTTY(t)
	defer process.Close()
	if !hasRoom(process) {
		t.Error("no room on a terminal of 100 by 30")
	}
	if err := unix.IoctlSetWinsize(int(process.Fd()), unix.TIOCSWINSZ, &unix.Winsize{}); err != nil {
		t.Fatal(err)
	}
	if hasRoom(process) || !term.IsTerminal(int(process.Fd())) {
		t.Error("room on a terminal of 0 by 0")
	}
}
