package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/smbtest"
)

func TestLs(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{
		"b": "22", "a": "1", ".hidden": "", "dir/c": "333", "dir/sub/d": "", "Z": "", "ü": "", "dir/\U0001F600": "",
	})
	u := s.URL
	shown := strings.Replace(u, ":pass@", "@", 1)

	want(t, "ls", pw(t, 0, "ls", u).stdout, "Z\na\nb\ndir\nü\n")
	want(t, "ls -a", pw(t, 0, "ls", "-a", u).stdout, ".hidden\nZ\na\nb\ndir\nü\n")
	want(t, "ls of files", pw(t, 0, "ls", u+"/b", u+"/a").stdout, shown+"/b\n"+shown+"/a\n")
	want(t, "ls -R", pw(t, 0, "ls", "-R", u+"/dir").stdout,
		shown+"/dir:\nc\nsub\n\U0001F600\n\n"+shown+"/dir/sub:\nd\n")
	want(t, "ls of two", pw(t, 0, "ls", u+"/dir/sub", u+"/a").stdout, shown+"/a\n\n"+shown+"/dir/sub:\nd\n")

	lines := strings.Split(strings.TrimSpace(pw(t, 0, "ls", "-l", u).stdout), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[3], "drwxr-xr-x ") || !strings.HasPrefix(lines[2], "-rwxr-xr-x 2 ") || !strings.HasSuffix(lines[2], " b") {
		t.Errorf("ls -l:\n%s", strings.Join(lines, "\n"))
	}
	if got := strings.Fields(pw(t, 0, "ls", "-U", u).stdout); len(got) != 5 {
		t.Errorf("ls -U shows %q, want 5 names", got)
	}
	for _, line := range strings.Split(strings.TrimSpace(pw(t, 0, "ls", "--json", u).stdout), "\n") {
		var j fileJSON
		if err := json.Unmarshal([]byte(line), &j); err != nil || j.Name == "" || j.Type == "" || j.ModTime.IsZero() {
			t.Errorf("ls --json: %s: %+v, %v", line, j, err)
		}
	}
	host := strings.TrimSuffix(u, "/share")
	want(t, "ls of the server", pw(t, 0, "ls", host).stdout, "share\n")
	wantPart(t, "ls -la of the server", pw(t, 0, "ls", "-la", host).stdout, "pipe    IPC$   IPC Service\n")
}

func TestLsIsCheap(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	for i := range 10000 {
		if err := s.WriteFile(fmt.Sprintf("dir/%05d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Stats()
	if got := strings.Count(pw(t, 0, "ls", "-l", s.URL+"/dir").stdout, "\n"); got != 10000 {
		t.Errorf("%d lines, want 10000", got)
	}
	after := s.Stats()
	// A FileIdBothDirectoryInformation with such a name takes 114 bytes, and 1 MiB fits into a reply.
	if n := after.Frames - before.Frames; n > 30 {
		t.Errorf("%d requests to list 10000 entries, want no more than 30: %v", n, after.Requests)
	}
}

func TestCat(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	large := pattern(5<<20 + 17)
	write(t, s, map[string]string{"a": "one\n", "b": large, "empty": ""})
	want(t, "cat", pw(t, 0, "cat", s.URL+"/a", s.URL+"/empty", s.URL+"/a").stdout, "one\none\n")
	if got := pw(t, 0, "cat", s.URL+"/b", s.URL+"/a").stdout; got != large+"one\n" {
		t.Errorf("cat wrote %s", clip(got))
	}
	got := pw(t, 3, "cat", s.URL+"/a", s.URL+"/none", s.URL+"/a")
	want(t, "cat of some", got.stdout, "one\none\n")
	wantPart(t, "cat of some", got.stderr, "/share/none: no such file or directory (STATUS_OBJECT_NAME_NOT_FOUND)\n")
	wantPart(t, "cat of a folder", pw(t, 1, "cat", s.URL).stderr, "is a directory")

	// Into a file, pieces go where they belong and the next file comes behind.
	name := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r := &run{stdin: strings.NewReader(""), stdout: out, stderr: os.Stderr}
	if code := r.main(t.Context(), []string{"cat", s.URL + "/a", s.URL + "/b", s.URL + "/a"}); code != 0 {
		t.Fatalf("cat into a file exits with %d", code)
	}
	checkLocal(t, name, "one\n"+large+"one\n")
}

func TestStat(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"a": "hello"})
	got := pw(t, 0, "stat", s.URL+"/a").stdout
	wantPart(t, "stat", got, "  Size: 5 ")
	wantPart(t, "stat", got, "(0755/-rwxr-xr-x)")
	var j fileJSON
	if err := json.Unmarshal([]byte(pw(t, 0, "stat", "--json", s.URL+"/a").stdout), &j); err != nil || j.Size != 5 || j.Type != "file" || j.ID == 0 {
		t.Errorf("stat --json: %+v, %v", j, err)
	}
	wantPart(t, "stat of the root", pw(t, 0, "stat", s.URL).stdout, "folder")
	pw(t, 1, "stat", s.URL+"/none")
}

func TestRm(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"a": "", "dir/b": "", "dir/sub/c": "", "empty/x": "", "keep": "k"})
	u := s.URL
	pw(t, 0, "rm", u+"/a")
	wantPart(t, "rm twice", pw(t, 1, "rm", u+"/a").stderr, "no such file")
	pw(t, 0, "rm", "-f", u+"/a")
	wantPart(t, "rm of a folder", pw(t, 1, "rm", u+"/dir").stderr, "is a directory")
	pw(t, 0, "rm", "-f", u+"/empty/x")
	pw(t, 1, "rm", u+"/empty") // rm takes no folder, not even an empty one
	pw(t, 0, "rm", "-r", u+"/dir", u+"/empty")
	pw(t, 1, "rm", "-r", u+"/dir")
	pw(t, 0, "rm", "-rf", u+"/dir")
	wantPart(t, "rm of a share", pw(t, 1, "rm", "-rf", u).stderr, "refusing")
	want(t, "what is left", pw(t, 0, "ls", u).stdout, "keep\n")
}

func TestMkdir(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	u := s.URL
	pw(t, 0, "mkdir", u+"/a")
	wantPart(t, "mkdir twice", pw(t, 1, "mkdir", u+"/a").stderr, "file exists")
	pw(t, 0, "mkdir", "-p", u+"/a")
	pw(t, 1, "mkdir", u+"/x/y/z")
	pw(t, 0, "mkdir", "-p", u+"/x/y/z")
	want(t, "ls", pw(t, 0, "ls", u+"/x/y").stdout, "z\n")
	write(t, s, map[string]string{"file": ""})
	pw(t, 1, "mkdir", "-p", u+"/file/z")
}

func TestMv(t *testing.T) {
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share"}, {Name: "other"}}})
	write(t, s, map[string]string{"a": "A", "b": "B", "dir/x": "X", "readme": "R"})
	u := s.URL
	pw(t, 0, "mv", u+"/readme", u+"/README")
	wantPart(t, "case", pw(t, 0, "ls", u).stdout, "README\n")
	pw(t, 0, "mv", u+"/dir", u+"/Dir")
	want(t, "case of a folder", pw(t, 0, "ls", u+"/dir").stdout, "x\n")
	pw(t, 0, "mv", u+"/a", u+"/Dir")
	checkRemote(t, s, "Dir/a", "A")
	pw(t, 0, "mv", "-n", u+"/b", u+"/Dir/a")
	checkRemote(t, s, "Dir/a", "A")
	checkRemote(t, s, "b", "B")
	pw(t, 0, "mv", u+"/b", u+"/Dir/a")
	checkRemote(t, s, "Dir/a", "B")
	wantPart(t, "mv into itself", pw(t, 1, "mv", u+"/Dir", u+"/Dir/sub").stderr, "into itself")
	wantPart(t, "mv of nothing", pw(t, 1, "mv", u+"/none", u+"/new").stderr, "no such file")
	other := strings.TrimSuffix(u, "share") + "other"
	wantPart(t, "mv between shares", pw(t, 2, "mv", u+"/README", other+"/README").stderr, "use cp")
	pw(t, 2, "mv", u+"/README", u+"/Dir/x", u+"/none")
	pw(t, 3, "mv", u+"/README", u+"/none", u+"/Dir")
	checkRemote(t, s, "Dir/README", "R")
}

func TestDf(t *testing.T) {
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", Limit: 64 << 20}}})
	write(t, s, map[string]string{"a": pattern(16 << 20)})
	got := pw(t, 0, "df", "-h", s.URL).stdout
	wantPart(t, "df -h", got, "Filesystem")
	wantPart(t, "df -h", got, " 64M  16M   48M  25%\n")
	var j struct{ Total, Used, Available int64 }
	if err := json.Unmarshal([]byte(pw(t, 0, "df", "--json", s.URL).stdout), &j); err != nil || j.Total != 64<<20 || j.Used != 16<<20 {
		t.Errorf("df --json: %+v, %v", j, err)
	}
}

func TestFailures(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"a": "A"})
	at := strings.SplitAfter(s.URL, "@")[1] // host:port/share
	none := newServer(t, smbtest.Config{})
	none.Close()
	old := newServer(t, smbtest.Config{Dialects: []string{"2.0.2"}})
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{12, "STATUS_LOGON_FAILURE", []string{"ls", "smb://user:Wr0ng-secret@" + at}},
		{12, "STATUS_LOGON_FAILURE", []string{"cp", "smb://user:Wr0ng-secret@" + at + "/a", t.TempDir()}},
		{12, "", []string{"ls", "smb://user@" + at}},
		{1, "no such share (STATUS_BAD_NETWORK_NAME)\n", []string{"ls", s.URL + "nope"}},
		{1, "no protocol version in common", []string{"ls", old.URL, "-o", "vers=3.1.1"}},
		{5, "connection refused", []string{"ls", none.URL}},
		{5, "connection refused", []string{"cp", none.URL + "/a", t.TempDir()}},
		{2, "did you mean rsize?", []string{"ls", s.URL, "-o", "rsise=1M"}},
		{2, "unknown flag", []string{"ls", s.URL, "--lines"}},
		{2, "unknown command", []string{"lss", s.URL}},
		{2, "unsupported protocol", []string{"ls", "nfs://user:Wr0ng-secret@nas/x"}},
		{2, "NFS", []string{"cp", "nas:/export/x", "."}},
		{2, "both on this machine", []string{"cp", "a", "b"}},
		{2, "missing operand", []string{"cp", s.URL}},
		{2, "extra operand", []string{"explain", s.URL, "smb://user:Wr0ng-secret@nas/x"}},
		{2, "no share", []string{"cat", strings.TrimSuffix(s.URL, "/share")}},
		{2, "-j", []string{"cp", "-j", "0", s.URL + "/a", "."}},
		{2, "size", []string{"demo", "--size", "many"}},
	} {
		got := pw(t, c.code, c.args...)
		wantPart(t, strings.Join(c.args, " "), got.stderr, c.text)
		if !strings.HasPrefix(got.stderr, "pagewire: ") {
			t.Errorf("%v: %q does not begin with the command's name", c.args, got.stderr)
		}
		if strings.Contains(got.stderr, "Wr0ng-secret") {
			t.Errorf("%v shows the password: %s", c.args, got.stderr)
		}
	}
}

func TestNoSecretIsShown(t *testing.T) {
	const password = "S3cret-pass"
	s := newServer(t, smbtest.Config{Users: map[string]string{"alice": password}})
	write(t, s, map[string]string{"a": "A", "dir/b": "B"})
	u, dir := s.URL, t.TempDir()
	for _, args := range [][]string{
		{"ls", "-lR", u}, {"ls", u + "/none"}, {"ls", "--json", u, u + "/a"}, {"stat", u + "/a"}, {"stat", "--json", u + "/a"},
		{"df", u}, {"df", "--json", u}, {"cat", u + "/none"}, {"rm", u + "/none"}, {"mkdir", u + "/dir"}, {"mv", u + "/none", u + "/x"},
		{"cp", u + "/none", dir}, {"cp", "--json", "-r", u, dir}, {"cp", u + "/a", u + "/a"}, {"explain", u}, {"explain", "--json", u},
		{"ls", u + "/x", "-o", "password=" + password + "x"}, {"ls", u, "-o", "passwort=" + password},
	} {
		got := runWith(t.Context(), append(args, "-vv")...)
		if strings.Contains(got.stdout+got.stderr, password) {
			t.Errorf("pagewire %v shows the password:\n%s%s", args, got.stdout, got.stderr)
		}
	}
}
