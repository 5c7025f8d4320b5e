package pagewire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a file into a folder of the test's own, and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fd returns the number of a pipe's end with text in it. The other end stays open.
func fd(t *testing.T, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	w.WriteString(text)
	n := dup(t, r)
	r.Close()
	return fmt.Sprint(n)
}

func TestCredentials(t *testing.T) {
	full := file(t, "\uFEFF# of the NAS\nusername=alice\r\n  password= p,a=s \"s# \r\n\ndomain=WORK\n")
	for _, c := range []struct {
		name, source, options string
		env                   map[string]string
		prompt                bool
		want                  [3]string // user, password, domain
		warns                 bool
	}{
		{name: "file", source: "//nas/x", options: "credentials=" + full, want: [3]string{"alice", ` p,a=s "s# `, "WORK"}},
		{name: "file before all", source: "smb://alice:url@nas/x", options: "username=alice,password=opt,domain=OTHER,credentials=" + full,
			env: map[string]string{"PASSWD": "env", "USER": "eve"}, want: [3]string{"alice", ` p,a=s "s# `, "WORK"}},
		{name: "file without a password", source: "//nas/x", options: "password=opt,cred=" + file(t, `user=HOME\bob`),
			env: map[string]string{"PASSWD": "env"}, want: [3]string{"bob", "env", "HOME"}},
		{name: "file with an empty password", source: "//nas/x", options: "cred=" + file(t, "user=bob\npass=\n"),
			env: map[string]string{"PASSWD": "env"}, want: [3]string{"bob", "", ""}},
		{name: "folder", source: "//nas/x", options: "credentials=" + folderOf(t, map[string]string{"username": "carol\n", "password": "s3\n", "domain": "D"}),
			want: [3]string{"carol", "s3", "D"}},
		{name: "folder with a password", source: "//nas/x", options: "user=dave,credentials=" + folderOf(t, map[string]string{"password": "s3"}),
			want: [3]string{"dave", "s3", ""}},
		{name: "PASSWD", source: "//nas/x", options: "user=alice,password=opt",
			env: map[string]string{"PASSWD": "env", "PASSWD_FD": "none", "PASSWD_FILE": "/none"}, want: [3]string{"alice", "env", ""}},
		{name: "PASSWD_FD", source: "//nas/x", options: "user=alice",
			env: map[string]string{"PASSWD_FD": fd(t, "from pipe\nrest"), "PASSWD_FILE": "/none"}, want: [3]string{"alice", "from pipe", ""}},
		{name: "PASSWD_FILE", source: "//nas/x", options: "user=alice",
			env: map[string]string{"PASSWD_FILE": file(t, "from file\r\n")}, want: [3]string{"alice", "from file", ""}},
		{name: "USER", source: "//nas/x", env: map[string]string{"USER": "eve", "PASSWD": ""}, want: [3]string{"eve", "", ""}},
		{name: "URL", source: "smb://W;alice:url@nas/x", options: "password=opt", env: map[string]string{"USER": "eve"},
			want: [3]string{"alice", "url", "W"}, warns: true},
		{name: "password=", source: "//nas/x", options: "user=alice,password=opt", want: [3]string{"alice", "opt", ""}, prompt: true, warns: true},
		{name: "prompt", source: "smb://alice@nas/x", prompt: true, want: [3]string{"alice", "typed for alice at nas", ""}},
		{name: "guest", source: "//nas/x", options: "guest", env: map[string]string{"PASSWD": "env", "USER": "eve"}},
		{name: "anonymous", source: "//nas/x", options: "sec=none", env: map[string]string{"USER": "eve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			l := newLogin(t, c.source, c.options, c.env, &log)
			if c.prompt {
				l.prompt = func(_ context.Context, user, host string) (string, error) {
					return "typed for " + user + " at " + host, nil
				}
			}
			for range 2 { // at a reconnect, too
				got, err := l.credentials(t.Context())
				password, _ := got.Password.get()
				if parts := [3]string{got.User, password, got.Domain}; err != nil || parts != c.want {
					t.Errorf("got %q, %v; want %q", parts, err, c.want)
				}
			}
			if warned := strings.Contains(log.String(), "WARN"); warned != c.warns {
				t.Errorf("warned: %v, want %v", warned, c.warns)
			}
			if c.want[1] != "" && strings.Contains(log.String(), c.want[1]) {
				t.Errorf("the log shows the password: %s", &log)
			}
		})
	}
}

func newLogin(t *testing.T, source, options string, env map[string]string, log *bytes.Buffer) *login {
	t.Helper()
	src, err := ParseSource(source)
	if err != nil {
		t.Fatal(err)
	}
	opts, err := ParseOptions(options)
	if err != nil {
		t.Fatal(err)
	}
	return &login{
		source: src, options: opts, logger: slog.New(slog.NewTextHandler(log, nil)),
		lookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
}

func TestCredentialsErrors(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct {
		name, source, options string
		env                   map[string]string
		prompt                error
		want                  string
		is                    error
	}{
		{name: "no file", source: "//nas/x", options: "cred=/none", want: "credentials from /none: no such file", is: fs.ErrNotExist},
		{name: "line", source: "//nas/x", options: "cred=" + file(t, "user=a\n"+secret+"\n"), want: "line 2 is not username="},
		{name: "key", source: "//nas/x", options: "cred=" + file(t, "uid="+secret+"\n"), want: "line 1 is not username="},
		{name: "binary", source: "//nas/x", options: "cred=" + file(t, "user=a\x00"), want: "not a text"},
		{name: "large", source: "//nas/x", options: "cred=" + file(t, strings.Repeat("#\n", maxSecretFile)), want: "larger than"},
		{name: "empty folder", source: "//nas/x", options: "cred=" + t.TempDir(), want: "no file username, password or domain"},
		{name: "PASSWD_FD", source: "//nas/x", options: "user=a", env: map[string]string{"PASSWD_FD": "x"}, want: "credentials from PASSWD_FD=x: not a file descriptor"},
		{name: "closed PASSWD_FD", source: "//nas/x", options: "user=a", env: map[string]string{"PASSWD_FD": "999"}, want: "bad file descriptor"},
		{name: "PASSWD_FILE", source: "//nas/x", options: "user=a", env: map[string]string{"PASSWD_FILE": "/none"}, want: "PASSWD_FILE=/none: no such file"},
		{name: "nobody", source: "//nas/x", options: "password=" + secret, want: "no user name"},
		{name: "no password", source: "//nas/x", options: "user=alice", want: "no password for alice"},
		{name: "prompt", source: "//nas/x", options: "user=alice", prompt: os.ErrDeadlineExceeded, want: "credentials from the prompt", is: os.ErrDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLogin(t, c.source, c.options, c.env, new(bytes.Buffer))
			if c.prompt != nil {
				l.prompt = func(context.Context, string, string) (string, error) { return "", c.prompt }
			}
			_, err := l.credentials(t.Context())
			var ce *CredentialsError
			if !errors.As(err, &ce) || !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q and ErrAuth", err, c.want)
			}
			leaks(t, err, secret)
		})
	}
	_, err := newLogin(t, "smb://bob@nas/x", "user=alice", nil, new(bytes.Buffer)).credentials(t.Context())
	if !strings.Contains(fmt.Sprint(err), "username=alice and the user of the URL, bob, contradict") {
		t.Errorf("two users: %v", err)
	}
}

func TestCredentialsHidePassword(t *testing.T) {
	const secret = "hunter2"
	c := Credentials{User: "alice", Password: NewSecret(secret), Domain: "WORK"}
	leaks(t, c, secret)
	leaks(t, &c, secret)
	leaks(t, c.Password, secret)
	leaks(t, login{options: Options{password: c.Password}, descriptor: &Descriptor{secret: c.Password}}, secret)
	for _, handler := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var log bytes.Buffer
		slog.New(handler(&log)).Info("x", "value", c, "pointer", &c, "password", c.Password, "group", slog.GroupValue(slog.Any("in", c)))
		if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "alice") {
			t.Errorf("log: %s", &log)
		}
	}
	if got, want := c.String(), `WORK\alice with a password`; got != want {
		t.Errorf("String: %q, want %q", got, want)
	}
}
