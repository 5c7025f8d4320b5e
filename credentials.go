package pagewire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// CredentialsError says that there is nothing to log on with: a file is
// unreadable, or nobody gave a password. It is an ErrAuth.
type CredentialsError struct {
	From string // a file, a variable of the environment; "" if there was nothing to look at
	Err  error
}

func (e *CredentialsError) Error() string {
	if e.From == "" {
		return "credentials: " + e.Err.Error()
	}
	return "credentials from " + e.From + ": " + e.Err.Error()
}

func (e *CredentialsError) Unwrap() error        { return e.Err }
func (e *CredentialsError) Is(target error) bool { return target == ErrAuth }

// maxSecretFile is more than any file with credentials has.
const maxSecretFile = 64 << 10

// login finds credentials where mount.cifs does.
type login struct {
	source    Source
	options   Options
	lookupEnv func(string) (string, bool)
	prompt    func(ctx context.Context, user, host string) (string, error)
	logger    *slog.Logger

	descriptor *Descriptor // nil: its own
	typed      Secret      // at the prompt, which is not asked again
}

// Descriptor keeps what PASSWD_FD had: it can be read once, and its number then
// becomes that of another file. The zero value has nothing yet.
type Descriptor struct {
	mu     sync.Mutex
	secret Secret // guarded by mu
}

// credentials takes each part from the first place that has it.
func (l *login) credentials(ctx context.Context) (Credentials, error) {
	var c Credentials
	o := &l.options
	if o.Guest || o.Security == "none" {
		return c, nil
	}
	if o.User != "" && l.source.User != "" && o.User != l.source.User {
		return c, &OptionError{"username", fmt.Sprintf("username=%s and the user of the URL, %s, contradict each other", o.User, l.source.User)}
	}
	var err error
	if o.Credentials != "" {
		if c, err = readCredentials(o.Credentials); err != nil {
			return Credentials{}, &CredentialsError{o.Credentials, withoutPath(err)}
		}
	}
	if !c.Password.known() {
		if c.Password, err = l.passwordFromEnv(); err != nil {
			return Credentials{}, err
		}
	}
	c.User = first(c.User, o.User, l.source.User)
	c.Domain = first(c.Domain, o.Domain, l.source.Domain)
	if c.User == "" {
		c.User, _ = l.lookupEnv("USER")
	}
	for _, password := range []Secret{l.source.password, o.password} {
		if !c.Password.known() && password.known() {
			c.Password = password
			l.logger.WarnContext(ctx, "a password on the command line can be seen by others; credentials=, PASSWD_FD and PASSWD_FILE hide it")
		}
	}
	switch {
	case c.User == "":
		return c, &CredentialsError{Err: errors.New("no user name; give username=, or guest")}
	case c.Password.known():
		return c, nil
	case l.prompt == nil:
		return c, &CredentialsError{Err: fmt.Errorf("no password for %s; give credentials=FILE, PASSWD, PASSWD_FD or PASSWD_FILE, or guest", c.User)}
	}
	if !l.typed.known() {
		typed, err := l.prompt(ctx, c.User, l.source.Host)
		if err != nil {
			return c, &CredentialsError{"the prompt", err}
		}
		l.typed = NewSecret(typed)
	}
	c.Password = l.typed
	return c, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (l *login) passwordFromEnv() (Secret, error) {
	if password, ok := l.lookupEnv("PASSWD"); ok {
		return NewSecret(password), nil
	}
	if fd, ok := l.lookupEnv("PASSWD_FD"); ok {
		password, err := l.passwordFromFD(fd)
		if err != nil {
			return Secret{}, &CredentialsError{"PASSWD_FD=" + fd, withoutPath(err)}
		}
		return password, nil
	}
	if name, ok := l.lookupEnv("PASSWD_FILE"); ok {
		text, err := readSecret(name)
		if err != nil {
			return Secret{}, &CredentialsError{"PASSWD_FILE=" + name, withoutPath(err)}
		}
		return NewSecret(firstLine(text)), nil
	}
	return Secret{}, nil
}

func (l *login) passwordFromFD(fd string) (Secret, error) {
	if l.descriptor == nil {
		l.descriptor = &Descriptor{}
	}
	return l.descriptor.read(fd)
}

func (d *Descriptor) read(fd string) (Secret, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secret.known() {
		return d.secret, nil
	}
	n, err := strconv.ParseUint(fd, 10, 31)
	if err != nil {
		return Secret{}, errors.New("not a file descriptor")
	}
	f := os.Stdin
	if n != 0 {
		if f = os.NewFile(uintptr(n), "descriptor"); f == nil {
			return Secret{}, errors.New("not a file descriptor")
		}
		defer f.Close()
	}
	// The writer may keep its end of a pipe open, so this reads no further than it must.
	line, err := bufio.NewReader(io.LimitReader(f, maxSecretFile)).ReadBytes('\n')
	if err != nil && err != io.EOF {
		return Secret{}, err
	}
	d.secret = NewSecret(firstLine(line))
	return d.secret, nil
}

// readCredentials reads a file of mount.cifs, or a folder with the files username,
// password and domain, as Kubernetes mounts a Secret.
func readCredentials(name string) (Credentials, error) {
	var c Credentials
	info, err := os.Stat(name)
	if err != nil {
		return c, err
	}
	if !info.IsDir() {
		text, err := readSecret(name)
		if err != nil {
			return c, err
		}
		return parseCredentials(text)
	}
	empty := true
	for _, key := range []string{"username", "password", "domain"} {
		text, err := readSecret(filepath.Join(name, key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", key, withoutPath(err))
		}
		c.set(key, firstLine(text))
		empty = false
	}
	if empty {
		return c, errors.New("the folder has no file username, password or domain")
	}
	return c, nil
}

func parseCredentials(text []byte) (Credentials, error) {
	var c Credentials
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\uFEFF"))) {
		n++
		s := strings.TrimLeft(strings.TrimRight(string(line), "\r\n"), " \t")
		if s == "" || s[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(s, "=")
		if !ok || !c.set(strings.TrimRight(key, " \t"), value) { // the line may be a secret
			return Credentials{}, fmt.Errorf("line %d is not username=, password= or domain=", n)
		}
	}
	return c, nil
}

func (c *Credentials) set(key, value string) bool {
	opt := findOption(strings.ToLower(key))
	if opt == nil {
		return false
	}
	switch opt.name {
	case "username":
		if domain, user, ok := splitUser(value); ok {
			c.Domain, value = domain, user
		}
		c.User = value
	case "password":
		c.Password = NewSecret(value)
	case "domain":
		c.Domain = value
	default:
		return false
	}
	return true
}

func readSecret(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAllSecret(f)
}

func readAllSecret(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSecretFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxSecretFile:
		return nil, fmt.Errorf("larger than %d bytes", maxSecretFile)
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		return nil, errors.New("not a text in UTF-8")
	}
	return text, nil
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}

// withoutPath spares an error the name that whoever wraps it gives too.
func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
