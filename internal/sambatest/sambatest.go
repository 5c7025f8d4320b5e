// Package sambatest runs a real Samba server for tests and benchmarks.
//
// It owns one smbd per Server: its directories, its accounts, its processes
// and its counters. It knows no protocol; whoever asserts what was sent
// compares Counters. Samba must be installed and the caller must be root,
// since smbd changes identities; Missing says what is wanting.
//
// A Server starts one goroutine, which waits for smbd to end; Close joins it.
package sambatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// unixAccount is the identity files are accessed with. Every Unix has it;
	// nobody will not do, for Samba takes it for the guest.
	unixAccount = "daemon"

	// confFlag names smb.conf to all of Samba's programs.
	confFlag = "--configfile="

	startTimeout = 10 * time.Second
	closeTimeout = 5 * time.Second
	pollInterval = 2 * time.Millisecond
)

// Config says how the server differs from the default one: dialects 2.0.2 to
// 3.1.1, one share, one user, no guests.
type Config struct {
	// Global and Share are further lines of smb.conf for the global section
	// and the share, such as "server signing = mandatory". They come last, so
	// they win; a Share line may open another section.
	Global, Share []string

	// Guest lets in users the server does not know, as guests, and anonymous
	// ones. They may do what the user may.
	Guest bool

	// Dir is the folder to share; it stays. If empty, Run makes one, on tmpfs
	// if there is enough of it, and Close removes it.
	Dir string
}

// Server is a running smbd.
type Server struct {
	Addr     string // host:port, on loopback
	Port     int
	Share    string // name of the share
	Dir      string // what it shares
	User     string
	Password string
	Conf     string // path of smb.conf, for smbclient and the like

	home   string // all of smbd's own files
	cmd    *exec.Cmd
	stdin  io.Closer     // smbd ends at its end of file, even if this process is killed
	exited chan struct{} // closed when smbd has been waited for
}

// Run starts a server and returns when it accepts connections. ctx bounds only
// the start.
func Run(ctx context.Context, c Config) (*Server, error) {
	if why := Missing(); why != "" {
		return nil, errors.New("samba: " + why)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &Server{Share: "share", User: "alice", Password: "pagewire-Test-1"}
	err := s.prepare(ctx, c)
	// The free port may be gone by the time smbd binds it.
	for try := 0; err == nil && try < 3; try++ {
		if err = s.start(ctx, c); err == nil {
			return s, nil
		}
		if errors.Is(err, errExited) && try < 2 {
			err = nil
		}
	}
	os.RemoveAll(s.home)
	return nil, fmt.Errorf("samba: %w", err)
}

// prepare makes the directories and the account.
func (s *Server) prepare(ctx context.Context, c Config) error {
	var err error
	// Unix sockets live below it, so the name has to be short.
	if s.home, err = os.MkdirTemp(tempDir(), "smbd-"); err != nil {
		return err
	}
	for _, d := range stateDirs {
		if err := os.Mkdir(filepath.Join(s.home, d.name), 0o755); err != nil {
			return err
		}
	}
	if s.Dir = c.Dir; s.Dir == "" {
		s.Dir = filepath.Join(s.home, "share")
		if err := os.Mkdir(s.Dir, 0o755); err != nil {
			return err
		}
		if err := giveAway(s.Dir); err != nil {
			return err
		}
		if err := os.Chmod(s.home, 0o711); err != nil {
			return err
		}
	}
	s.Conf = filepath.Join(s.home, "smb.conf")
	return s.addUser(ctx)
}

var errExited = errors.New("smbd ended before it accepted a connection")

// start runs smbd on a free port and waits until it accepts.
func (s *Server) start(ctx context.Context, c Config) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Addr, s.Port = l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	l.Close()
	if err := s.writeConf(c); err != nil {
		return err
	}

	// Neither stdin nor the group of its own is there to talk to smbd: the
	// first ends it with us, the second names the processes it forks.
	s.cmd = exec.Command(find("smbd"), "--foreground", "--no-process-group", confFlag+s.Conf)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()

	err = poll(ctx, s.exited, func() bool {
		c, err := net.Dial("tcp", s.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if err != nil {
		s.stop()
		return fmt.Errorf("%w\n%s", err, s.logTail())
	}
	return nil
}

// poll calls done until it says so.
func poll(ctx context.Context, exited <-chan struct{}, done func() bool) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return errExited
		default:
		}
		if done() {
			return nil
		}
		select {
		case <-exited:
			return errExited
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Close ends smbd with all its connections and removes its files.
func (s *Server) Close() error {
	s.stop()
	return os.RemoveAll(s.home)
}

// stop ends smbd and whatever it forked, and waits until they are gone.
func (s *Server) stop() {
	s.stdin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	select {
	case <-s.exited:
	case <-ctx.Done():
	}
	// A connection's process may outlive its parent by a moment, and what serves
	// pipes does for minutes.
	poll(ctx, nil, func() bool {
		alive := s.processes()
		for _, p := range alive {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return len(alive) == 0
	})
	<-s.exited
}

// Log returns what smbd has logged.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.home, "log", "smbd"))
	return string(b)
}

// logTail returns the end of the log.
func (s *Server) logTail() string {
	const most = 2000
	log := s.Log()
	return log[max(0, len(log)-most):]
}

// Missing returns why no server can run here, or "".
func Missing() string {
	for _, name := range []string{"smbd", "pdbedit", "smbstatus"} {
		if find(name) == "" {
			return name + " is not installed"
		}
	}
	if os.Geteuid() != 0 {
		return "smbd needs root"
	}
	return ""
}

// find returns the path of a program, or "". Debian keeps smbd in /usr/sbin,
// which is not on everybody's PATH.
func find(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path := "/usr/sbin/" + name
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// TB is what Start and Need use of a testing.TB; the package is also linked
// into commands, which should not carry package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Skip(...any)
	Fatal(...any)
	Error(...any)
}

// Need skips the test where no server can run. With CI=true it fails it: there
// the server belongs to the set-up.
func Need(t TB) {
	t.Helper()
	if why := Missing(); why != "" {
		giveUp(t, why)
	}
}

// giveUp ends the test for want of a server.
func giveUp(t TB, why string) {
	t.Helper()
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatal("samba: " + why)
	}
	t.Skip("samba: " + why)
}

// Start starts a server that ends with the test. It calls Need.
func Start(t TB, c Config) *Server {
	t.Helper()
	Need(t)
	s, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
