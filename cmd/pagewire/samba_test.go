package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// sambaURL is the share of a Samba server, for its user.
func sambaURL(s *sambatest.Server) string {
	u := url.URL{Scheme: "smb", User: url.UserPassword(s.User, s.Password), Host: s.Addr, Path: "/" + s.Share}
	return u.String()
}

func TestSamba(t *testing.T) {
	s := sambatest.Start(t, sambatest.Config{})
	u := sambaURL(s)
	dir := t.TempDir()
	files := sampleTree()
	files["Grüße, 世界 \U0001F600.txt"] = "names"
	writeLocal(t, filepath.Join(dir, "tree"), files)

	for i, options := range []string{"vers=3.1.1", "vers=3.1.1,sign", "vers=3.1.1,seal", "vers=3.0,seal", "vers=3.0,sign", "vers=2.1", "vers=2.0"} {
		name := string(rune('a' + i))
		if i == 1 { // the large ones went through once
			for _, large := range []string{"33M", "5M"} {
				delete(files, large)
				os.Remove(filepath.Join(dir, "tree", large))
			}
		}
		pw(t, 0, "cp", "-rp", "--verify", "-o", options, filepath.Join(dir, "tree"), u+"/"+name)
		for file, text := range files {
			checkLocal(t, filepath.Join(s.Dir, name, file), text)
		}
		back := filepath.Join(dir, name)
		pw(t, 0, "cp", "-rp", "--verify", "-o", options, u+"/"+name, back)
		for file, text := range files {
			checkLocal(t, filepath.Join(back, file), text)
			sent, err := os.Stat(filepath.Join(dir, "tree", file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.Stat(filepath.Join(back, file))
			if err != nil {
				t.Fatal(err)
			}
			if d := got.ModTime().Sub(sent.ModTime()).Abs(); d > 1000 {
				t.Errorf("%s: %s came back with the time %v, want %v", options, file, got.ModTime(), sent.ModTime())
			}
		}
		pw(t, 0, "rm", "-r", "-o", options, u+"/"+name)
		want(t, "ls after rm", pw(t, 0, "ls", "-a", "-o", options, u).stdout, "")
	}
}

func TestSambaVerbs(t *testing.T) {
	s := sambatest.Start(t, sambatest.Config{})
	u := sambaURL(s)
	pw(t, 0, "mkdir", "-p", u+"/x/y")
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	pw(t, 0, "cp", local, u+"/x/file")
	want(t, "cat", pw(t, 0, "cat", u+"/x/file").stdout, "text")
	pw(t, 0, "mv", u+"/x/file", u+"/x/FILE")
	want(t, "ls", pw(t, 0, "ls", u+"/x").stdout, "FILE\ny\n")
	pw(t, 0, "mv", u+"/x/FILE", u+"/x/y")
	want(t, "ls -R", pw(t, 0, "ls", "-R", u+"/x").stdout,
		strings.ReplaceAll("U/x:\ny\n\nU/x/y:\nFILE\n", "U", strings.Replace(u, ":"+s.Password, "", 1)))
	wantPart(t, "stat", pw(t, 0, "stat", u+"/x/y/FILE").stdout, "  Size: 4 ")
	wantPart(t, "df", pw(t, 0, "df", "-h", u).stdout, "%\n")
	wantPart(t, "shares", pw(t, 0, "ls", strings.TrimSuffix(u, "/"+s.Share)).stdout, s.Share+"\n")
	wantPart(t, "explain", pw(t, 0, "explain", "--write", u).stdout, "Limited by ")
	pw(t, 1, "rm", u+"/x")
	pw(t, 0, "rm", "-r", u+"/x")

	bad := strings.Replace(u, s.Password, "Wr0ng-secret", 1)
	got := pw(t, 12, "ls", bad)
	wantPart(t, "wrong password", got.stderr, "wrong user name or password (STATUS_LOGON_FAILURE)\n")
	wantPart(t, "unknown share", pw(t, 1, "ls", u+"nope").stderr, "no such share (STATUS_BAD_NETWORK_NAME)\n")
	pw(t, 1, "cp", u+"/none", t.TempDir())
}

func TestSambaSmallFiles(t *testing.T) {
	s := sambatest.Start(t, sambatest.Config{})
	u := sambaURL(s)
	dir := t.TempDir()
	const files = 1000
	tree := map[string]string{}
	for i := range files {
		tree[fmt.Sprintf("%d/%03d", i%10, i)] = pattern(4096)
	}
	writeLocal(t, filepath.Join(dir, "tree"), tree)
	pw(t, 0, "cp", "-r", filepath.Join(dir, "tree"), u)
	pw(t, 0, "cp", "-r", "--verify", u+"/tree", filepath.Join(dir, "back"))
	for name, text := range tree {
		checkLocal(t, filepath.Join(dir, "back", name), text)
	}
}
