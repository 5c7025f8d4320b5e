package pagewire

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// way is a dialect and whether it is sealed: what coherence must not depend on.
type way struct {
	vers   string
	cipher string // "": not sealed
}

var everyWay = []way{
	{"2.0.2", ""}, {"2.1", ""}, {"3.0", ""}, {"3.1.1", ""},
	{"3.0", "AES-128-CCM"}, {"3.1.1", "AES-128-GCM"},
}

func (w way) String() string {
	if w.cipher != "" {
		return w.vers + " sealed"
	}
	return w.vers
}

// options has attributes asked for each time unless rights vouch for them.
func (w way) options(more ...string) string {
	all := append([]string{"vers=" + w.vers, "actimeo=0"}, more...)
	if w.cipher != "" {
		all = append(all, "seal")
	}
	return strings.Join(all, ",")
}

// check sees that a file system is connected that way.
func (w way) check(t *testing.T, fsys *FS) {
	t.Helper()
	if s := fsys.Stats(); s.Dialect != w.vers || s.Cipher != w.cipher {
		t.Errorf("connected by %s, cipher %q; want %s, %q", s.Dialect, s.Cipher, w.vers, w.cipher)
	}
}

// eachWay runs a test for each way, on one server.
func eachWay(t *testing.T, test func(t *testing.T, srv *sambatest.Server, w way)) {
	srv := sambatest.Start(t, sambatest.Config{})
	for _, w := range everyWay {
		t.Run(w.String(), func(t *testing.T) { test(t, srv, w) })
	}
}

// smbclient runs commands of Samba's client on the share. It has to succeed.
func smbclient(t *testing.T, srv *sambatest.Server, w way, commands ...string) string {
	t.Helper()
	path, err := exec.LookPath("smbclient")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("smbclient is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dialect := map[string]string{"2.0.2": "SMB2_02", "2.1": "SMB2_10", "3.0": "SMB3_00", "3.1.1": "SMB3_11"}[w.vers]
	protection := "sign"
	if w.cipher != "" {
		protection = "encrypt"
	}
	cmd := exec.CommandContext(ctx, path, "--configfile="+srv.Conf, "--port="+fmt.Sprint(srv.Port), "--user="+srv.User,
		"--max-protocol="+dialect, "--option=client min protocol="+dialect, "--client-protection="+protection,
		"//127.0.0.1/"+srv.Share, "--command="+strings.Join(commands, ";"))
	cmd.Env = append(os.Environ(), "PASSWD="+srv.Password, "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "NT_STATUS") {
		t.Fatalf("smbclient %q: %v\n%s", commands, err, out)
	}
	return string(out)
}

// until waits until something is so that comes by itself, and reports whether it did.
func until(t *testing.T, what string, is func() bool) bool {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Errorf("it does not come to this: %s", what)
			return false
		}
	}
	return true
}

// told waits until a client knows that it may keep nothing of a file. The server does
// not wait for that: a write of somebody else comes back before those who had the
// right to keep what they have read, and no other, have heard that it is gone.
func told(t *testing.T, files ...*File) {
	t.Helper()
	for _, f := range files {
		until(t, f.Name()+" may no longer be kept", func() bool { reads, _ := f.Cached(); return !reads })
	}
}

// granted waits until reads of a file, and writes, may be kept.
func granted(t *testing.T, f *File) {
	t.Helper()
	until(t, f.Name()+" may be kept", func() bool { reads, writes := f.Cached(); return reads && writes })
}

// open opens a file.
func open(t *testing.T, fsys *FS, name string, flag int) *File {
	t.Helper()
	f, err := fsys.OpenFile(t.Context(), name, flag, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shut closes files.
func shut(t *testing.T, files ...*File) {
	t.Helper()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
