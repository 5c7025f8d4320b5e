package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/pagewire/pagewire/smbtest"
)

// sampleTree is a tree with every size that is treated in its own way.
func sampleTree() map[string]string {
	return map[string]string{
		"empty":               "",
		"small":               "small",
		"64K":                 pattern(64 << 10),
		"64K+1":               pattern(64<<10 + 1),
		"1M":                  pattern(1 << 20),
		"5M":                  pattern(5<<20 + 123),
		"33M":                 pattern(33 << 20),
		"dir/a":               "a",
		"dir/sub/b.ext":       "b",
		"dir/sub/ü 文件":        "unicode",
		"dir/x":               "x",
		"dir/x.partial":       "not what comes of copying x",
		"dir/x.partial.state": "nor this",
	}
}

func TestCpThereAndBack(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	files := sampleTree()
	writeLocal(t, filepath.Join(dir, "tree"), files)
	got := pw(t, 0, "cp", "-r", "--verify", filepath.Join(dir, "tree"), s.URL)
	wantPart(t, "summary", got.stderr, fmt.Sprintf("%d files, 39.1 MiB in ", len(files)))
	wantPart(t, "summary", got.stderr, ", verified\n")
	for name, text := range files {
		checkRemote(t, s, "tree/"+name, text)
	}
	for _, flags := range [][]string{{"--verify"}, {"-j", "1"}, {"-p", "-j", "3"}} {
		back := t.TempDir()
		pw(t, 0, append(append([]string{"cp", "-r"}, flags...), s.URL+"/tree", back)...)
		for name, text := range files {
			checkLocal(t, filepath.Join(back, "tree", name), text)
		}
		n := 0
		filepath.WalkDir(back, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return err
		})
		if n != len(files) {
			t.Errorf("%v: %d files came back, want %d", flags, n, len(files))
		}
	}
}

func TestCpNames(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"a": "A", "b": "B", "dir/c": "C"})
	dir := t.TempDir()
	u := s.URL
	at := func(name string) string { return filepath.Join(dir, name) }

	pw(t, 0, "cp", u+"/a", dir)
	checkLocal(t, at("a"), "A")
	pw(t, 0, "cp", u+"/a", at("new"))
	checkLocal(t, at("new"), "A")
	pw(t, 0, "cp", u+"/b", at("new"))
	checkLocal(t, at("new"), "B")
	pw(t, 0, "cp", u+"/a", u+"/b", dir)
	checkLocal(t, at("b"), "B")
	pw(t, 0, "cp", "-r", u+"/dir", at("dir2"))
	checkLocal(t, at("dir2/c"), "C")
	pw(t, 0, "cp", "-r", u+"/dir", at("dir2"))
	checkLocal(t, at("dir2/dir/c"), "C")
	pw(t, 0, "cp", "-r", u, dir)
	checkLocal(t, at("share/dir/c"), "C")
	writeLocal(t, dir, map[string]string{"co:lon": "colon"})
	t.Chdir(dir)
	pw(t, 0, "cp", "./co:lon", u+"/colon")
	checkRemote(t, s, "colon", "colon")
	pw(t, 0, "cp", "-r", ".", u+"/dot")
	checkRemote(t, s, "dot/dir2/dir/c", "C")

	// On the server itself.
	pw(t, 0, "cp", "--verify", u+"/a", u+"/copy")
	checkRemote(t, s, "copy", "A")
	pw(t, 0, "cp", "-r", u+"/dir", u+"/dir3")
	checkRemote(t, s, "dir3/c", "C")

	for text, args := range map[string][]string{
		"needs -r":           {"-j1", u + "/dir", dir},
		"into itself":        {"-r", u + "/dir", u + "/dir/sub"},
		"copied into itself": {u + "/a", u + "/A"},
		"no such folder":     {u + "/a", at("none") + "/"},
		"no such file":       {u + "/a", at("none/x")},
		"STATUS_OBJECT_NAME": {u + "/none", dir},
		"that name already":  {u + "/none", u + "/dir/none", dir},
	} {
		wantPart(t, text, pw(t, 1, append([]string{"cp"}, args...)...).stderr, text)
	}
	pw(t, 2, "cp", u+"/a", u+"/b", at("a"))
	wantPart(t, "partial", pw(t, 3, "cp", u+"/a", u+"/none", dir).stderr, "1 file, 1 B in 0.0 s")
	wantPart(t, "a folder in the way", pw(t, 1, "cp", u+"/dot/dir2/dir/c", u+"/dir3/c/x").stderr, "dir3/c/x")
}

// A server that has two names cannot be told from two, but there is an end.
func TestCpIntoItselfByAnotherName(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"dir/a": "A"})
	alias := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	long := strings.Repeat("n", 250)
	got := pw(t, 3, "cp", "-r", s.URL+"/dir", alias+"/dir/"+long)
	wantPart(t, "a loop", got.stderr, "file name too long")
}

func TestCpBetweenServers(t *testing.T) {
	a, b := newServer(t, smbtest.Config{}), newServer(t, smbtest.Config{Dialects: []string{"2.1"}})
	large := pattern(9<<20 + 5)
	write(t, a, map[string]string{"dir/large": large, "dir/small": "small"})
	pw(t, 0, "cp", "-r", "--verify", a.URL+"/dir", b.URL)
	checkRemote(t, b, "dir/large", large)
	checkRemote(t, b, "dir/small", "small")
}

// TestCpBetweenServersWithOneDescriptor logs on twice with a password that can be
// read once.
func TestCpBetweenServersWithOneDescriptor(t *testing.T) {
	a, b := newServer(t, smbtest.Config{}), newServer(t, smbtest.Config{})
	write(t, a, map[string]string{"x": "X"})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // after the command has read its line
	io.WriteString(w, "pass\n")
	bare := func(s *smbtest.Server) string { return strings.Replace(s.URL, ":pass@", "@", 1) }
	cmd := command(t.Context(), "cp", bare(a)+"/x", bare(b)+"/y")
	cmd.Env = append(cmd.Env, "PASSWD_FD=3")
	cmd.ExtraFiles = []*os.File{r}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.500s", err, out)
	}
	checkRemote(t, b, "y", "X")
}

func TestCpDirect(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	large := pattern(3 << 20)
	write(t, s, map[string]string{"a": large, "b": "b"})
	pw(t, 0, "cp", s.URL+"/a", "/dev/null")
	wantPart(t, "a full disk", pw(t, 1, "cp", s.URL+"/b", "/dev/full").stderr, "/dev/full: no space left on device\n")

	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	read := make(chan []byte)
	go func() {
		data, _ := os.ReadFile(fifo)
		read <- data
	}()
	pw(t, 0, "cp", s.URL+"/a", fifo)
	if got := <-read; string(got) != large {
		t.Errorf("the fifo carried %s", clip(string(got)))
	}
	go os.WriteFile(fifo, []byte(large), 0)
	pw(t, 0, "cp", fifo, s.URL+"/from-fifo")
	checkRemote(t, s, "from-fifo", large)
}

func TestCpPreserve(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	at := time.Date(2020, 2, 3, 4, 5, 6, 700, time.UTC)
	files := map[string]string{"d/small": "s", "d/large": pattern(2 << 20), "d/sub/x": "x"}
	writeLocal(t, dir, files)
	os.Chmod(filepath.Join(dir, "d/small"), 0o444)
	for _, name := range []string{"d/small", "d/large", "d/sub/x", "d/sub", "d"} {
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	pw(t, 0, "cp", "-rp", filepath.Join(dir, "d"), s.URL)
	back := t.TempDir()
	pw(t, 0, "cp", "-rp", s.URL+"/d", back)
	for _, name := range []string{"d/small", "d/large", "d/sub/x", "d/sub", "d"} {
		info, err := os.Stat(filepath.Join(back, name))
		if err != nil {
			t.Fatal(err)
		}
		if d := info.ModTime().Sub(at).Abs(); d > 100 {
			t.Errorf("%s has the time %v, want %v", name, info.ModTime(), at)
		}
		if readOnly := info.Mode()&0o222 == 0; readOnly != (name == "d/small") {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestCpUpdate(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"d/a": "new", "d/b": "new", "d/c": "new"})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"d/a": "old", "d/b": "keep"})
	long := time.Now().AddDate(-1, 0, 0)
	later := time.Now().Add(time.Hour)
	os.Chtimes(filepath.Join(dir, "d/a"), long, long)
	os.Chtimes(filepath.Join(dir, "d/b"), later, later)
	wantPart(t, "cp -ru", pw(t, 0, "cp", "-ru", s.URL+"/d", dir).stderr, "2 files, ")
	checkLocal(t, filepath.Join(dir, "d/a"), "new")
	checkLocal(t, filepath.Join(dir, "d/b"), "keep")
	checkLocal(t, filepath.Join(dir, "d/c"), "new")
	wantPart(t, "cp -u", pw(t, 0, "cp", "-u", s.URL+"/d/b", filepath.Join(dir, "d")).stderr, "0 files, ")
	checkLocal(t, filepath.Join(dir, "d/b"), "keep")
}

// TestCpUpdateComparesWhatServersKeep copies a file whose time is finer than a
// server's.
func TestCpUpdateComparesWhatServersKeep(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"d/a": "a"})
	at := time.Date(2020, 2, 3, 4, 5, 6, 123456789, time.UTC)
	if err := os.Chtimes(filepath.Join(dir, "d/a"), at, at); err != nil {
		t.Fatal(err)
	}
	pw(t, 0, "cp", "-rpu", filepath.Join(dir, "d"), s.URL)
	wantPart(t, "once more", pw(t, 0, "cp", "-rpu", filepath.Join(dir, "d"), s.URL).stderr, "0 files, ")
}

// TestCpFileGrows copies files that turn out to be larger than they were listed.
func TestCpFileGrows(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	large := pattern(3 << 20)
	for _, flags := range [][]string{nil, {"--verify"}} {
		write(t, s, map[string]string{"d/a": "small"})
		var grow sync.Once
		s.SetFaults(func(r smbtest.Request) smbtest.Fault {
			if r.Command == "READ" {
				grow.Do(func() { s.WriteFile("d/a", []byte(large)) })
			}
			return smbtest.Fault{}
		})
		dir := t.TempDir()
		got := pw(t, 0, append(append([]string{"cp", "-r"}, flags...), s.URL+"/d", dir)...)
		s.SetFaults(nil)
		checkLocal(t, filepath.Join(dir, "d/a"), large)
		wantPart(t, "summary", got.stderr, "1 file, 3.0 MiB in ")
	}

	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"a": large})
	local, err := openLocalTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer local.root.Close()
	for limit, want := range map[int]error{3<<20 - 1: syscall.EFBIG, 3 << 20: nil, 4 << 20: nil} {
		if data, err := local.readFile(t.Context(), "a", limit); !errors.Is(err, want) || err == nil && string(data) != large {
			t.Errorf("up to %d of %d bytes: %d, %v; want %v", limit, len(large), len(data), err, want)
		}
	}
}

// TestCpTwins copies names that differ in case only to servers that take them for
// one, and to one that does not.
func TestCpTwins(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"d/Foo": pattern(4 << 20), "d/foo": strings.Repeat("b", 4<<20), "d/Bar": "1", "d/bar": "2",
		"d/Sub/x": "3", "d/sub/x": "4",
	}
	writeLocal(t, dir, files)
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", CaseSensitive: true}}})
	for range 2 {
		pw(t, 0, "cp", "-r", filepath.Join(dir, "d"), s.URL)
		for name, text := range files {
			checkRemote(t, s, name, text)
		}
	}
	s = newServer(t, smbtest.Config{})
	for range 2 {
		got := pw(t, exitPartial, "cp", "-r", filepath.Join(dir, "d"), s.URL)
		wantPart(t, "summary", got.stderr, "3 files, 4.0 MiB in ")
		wantPart(t, "summary", got.stderr, ", 3 failed\n")
		if n := strings.Count(got.stderr, "to its server, the name is that of "); n != 3 {
			t.Errorf("%d twins were found, want 3:\n%s", n, got.stderr)
		}
		for _, pair := range [][2]string{{"d/Foo", "d/foo"}, {"d/Bar", "d/bar"}, {"d/Sub/x", "d/sub/x"}} {
			if text, err := s.ReadFile(pair[0]); err != nil || string(text) != files[pair[0]] && string(text) != files[pair[1]] {
				t.Errorf("%s holds %s, %v; want one of both", pair[0], clip(string(text)), err)
			}
		}
	}
	pw(t, exitPartial, "cp", filepath.Join(dir, "d/Bar"), filepath.Join(dir, "d/bar"), s.URL)
	checkRemote(t, s, "Bar", "1")
}

// TestCpLongestNames copies files whose names leave no room for a suffix.
func TestCpLongestNames(t *testing.T) {
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", Dir: t.TempDir()}}})
	dir := t.TempDir()
	files := map[string]string{}
	for _, n := range []int{255, 250, 248, 247, 242, 241} {
		files["d/"+strings.Repeat("s", n)] = "small"
		files["d/"+strings.Repeat("l", n)] = pattern(2<<20 + n)
	}
	files["d/"+strings.Repeat("ü", 127)] = "two bytes a letter"
	writeLocal(t, dir, files)
	back := t.TempDir()
	for range 2 { // the second time, all are there
		pw(t, 0, "cp", "-r", "--verify", filepath.Join(dir, "d"), s.URL)
		pw(t, 0, "cp", "-r", "--verify", s.URL+"/d", back)
	}
	for name, text := range files {
		checkLocal(t, filepath.Join(back, name), text)
	}
	if left, err := os.ReadDir(filepath.Join(back, "d")); err != nil || len(left) != len(files) {
		t.Errorf("%d files came back, %v; want %d", len(left), err, len(files))
	}
}

// TestCpWritesThroughNoLinkOnAServer copies files whose partials have names that
// are links.
func TestCpWritesThroughNoLinkOnAServer(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	files := map[string]string{"d/small": "small", "d/large": pattern(2 << 20), "d/victim": "untouched"}
	writeLocal(t, dir, files)
	for _, name := range []string{"small", "large"} {
		if err := os.Symlink("victim", filepath.Join(dir, "d", name+partialSuffix)); err != nil {
			t.Fatal(err)
		}
	}
	pw(t, 0, "cp", "-r", filepath.Join(dir, "d"), s.URL)
	pw(t, 0, "cp", filepath.Join(dir, "d/small"), filepath.Join(dir, "d/large"), s.URL+"/d")
	for name, text := range files {
		checkRemote(t, s, name, text)
	}
	for _, name := range []string{"small", "large"} {
		wantPart(t, name, pw(t, 0, "ls", "-l", s.URL+"/d/"+name).stdout, "-rw")
	}
}

func TestCpSymlinks(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"d/file": "F"})
	for name, target := range map[string]string{"d/link": "file", "d/dangling": "no/where", "d/out": "/etc"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	pw(t, 0, "cp", "-r", filepath.Join(dir, "d"), s.URL)
	back := t.TempDir()
	for range 2 { // the second time they are there
		pw(t, 0, "cp", "-r", s.URL+"/d", back)
	}
	for name, target := range map[string]string{"link": "file", "dangling": "no/where", "out": "/etc"} {
		got, err := os.Readlink(filepath.Join(back, "d", name))
		if err != nil || got != target {
			t.Errorf("%s leads to %q, %v; want %q", name, got, err, target)
		}
	}
	pw(t, 0, "cp", s.URL+"/d/link", filepath.Join(back, "copy"))
	checkLocal(t, filepath.Join(back, "copy"), "F")
	wantPart(t, "stat", pw(t, 0, "stat", s.URL+"/d/link").stdout, " -> file\n")
	wantPart(t, "ls -l", pw(t, 0, "ls", "-l", s.URL+"/d/link").stdout, " -> file\n")

	// A link that is in the way is not written through.
	if err := os.Symlink("../victim", filepath.Join(back, "d/file.partial")); err != nil {
		t.Fatal(err)
	}
	writeLocal(t, back, map[string]string{"victim": "untouched"})
	os.Remove(filepath.Join(back, "d/file"))
	os.Symlink("../victim", filepath.Join(back, "d/file"))
	pw(t, 0, "cp", "-r", s.URL+"/d", back)
	checkLocal(t, filepath.Join(back, "victim"), "untouched")
	checkLocal(t, filepath.Join(back, "d/file"), "F")
}

// utf16le is how names are on the wire.
func utf16le(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

func TestCpHostileNames(t *testing.T) {
	for _, evil := range []string{"../../escap", "/abs/escape", "..\\..\\escap", "a/b/c/d/e/f", "nul\x00escape"} {
		s := newServer(t, smbtest.Config{})
		write(t, s, map[string]string{"d/" + strings.Repeat("Q", len(evil)): "evil", "d/good": "good"})
		s.SetFaults(func(r smbtest.Request) smbtest.Fault {
			if r.Command != "QUERY_DIRECTORY" {
				return smbtest.Fault{}
			}
			return smbtest.Fault{Mutate: func(b []byte) []byte {
				return bytes.ReplaceAll(b, utf16le(strings.Repeat("Q", len(evil))), utf16le(evil))
			}}
		})
		dir := t.TempDir()
		got := runWith(t.Context(), "cp", "-r", s.URL+"/d", filepath.Join(dir, "in/side"))
		if got.code == 0 && got.stderr == "" {
			t.Errorf("%q: nothing is said about it", evil)
		}
		filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Base(name) != "good" {
				t.Errorf("%q made %s", evil, name)
			}
			return nil
		})
	}
}

func TestCpDiskFull(t *testing.T) {
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", Limit: 4 << 20}}})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"d/large": pattern(6 << 20), "small": "s"})
	got := pw(t, 1, "cp", filepath.Join(dir, "d/large"), s.URL)
	wantPart(t, "a full server", got.stderr, "/share/large: no space left on device (STATUS_DISK_FULL)\n")
	want(t, "what is left on a full server", pw(t, 0, "ls", "-a", s.URL).stdout, "")
	got = pw(t, 3, "cp", "-j1", filepath.Join(dir, "small"), filepath.Join(dir, "d/large"), s.URL)
	wantPart(t, "a full server", got.stderr, "STATUS_DISK_FULL")

	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("no right to mount a small file system")
	}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("mount: ", err)
	}
	defer syscall.Unmount(small, 0)
	write(t, s, map[string]string{"large": pattern(3 << 20)})
	got = pw(t, 1, "cp", s.URL+"/large", small)
	wantPart(t, "a full disk", got.stderr, small+"/large: no space left on device\n")
	if left, err := os.ReadDir(small); err != nil || len(left) != 0 {
		t.Errorf("%v is left on a full disk, %v", left, err)
	}
}

func TestCpPermission(t *testing.T) {
	s := newServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", ReadOnly: true}}})
	write(t, s, map[string]string{"a": "A"})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"b": "B"})
	got := pw(t, 1, "cp", filepath.Join(dir, "b"), s.URL)
	wantPart(t, "a share that is read-only", got.stderr, "/share/b: ")
	got = pw(t, 1, "cp", s.URL+"/a", "/proc/none")
	wantPart(t, "a folder that is read-only", got.stderr, "/proc/none: ")
}

// breakAt ends the connection in the request of a command for the byte at off.
// The requests before it may arrive in any order.
func breakAt(s *smbtest.Server, command string, off int64) {
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == command && r.Offset <= off && off < r.Offset+int64(r.Length) {
			return smbtest.Fault{CutAt: 10}
		}
		return smbtest.Fault{}
	})
}

func TestCpResumesDownload(t *testing.T) {
	s := newServer(t, smbtest.Config{MaxRead: 1 << 20})
	large := pattern(24 << 20)
	write(t, s, map[string]string{"large": large})
	dir := t.TempDir()
	name := filepath.Join(dir, "large")

	breakAt(s, "READ", 12<<20-1)
	got := pw(t, 5, "cp", s.URL+"/large", dir)
	wantPart(t, "a server that is gone", got.stderr, "pagewire: cp ")
	s.SetFaults(nil)
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file has its name already: %v", err)
	}
	var state partialState
	text, err := os.ReadFile(name + stateSuffix)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Done < 1<<20 || state.Done > 12<<20 || state.Size != 24<<20 {
		t.Fatalf("state %+v, %v", state, err)
	}
	if strings.Contains(string(text), "pass") {
		t.Errorf("the state holds the password: %s", text)
	}
	partial, err := os.ReadFile(name + partialSuffix)
	if err != nil || string(partial[:state.Done]) != large[:state.Done] {
		t.Fatalf("the partial does not begin with %d good bytes: %v", state.Done, err)
	}

	before := s.Stats().Read
	pw(t, 0, "cp", "--verify", s.URL+"/large", dir)
	checkLocal(t, name, large)
	// The verification reads all of it once more.
	if n := s.Stats().Read - before; n > 2*24<<20-state.Done+1<<20 {
		t.Errorf("%d bytes were read after %d had come", n, state.Done)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestCpResumesUpload(t *testing.T) {
	s := newServer(t, smbtest.Config{MaxWrite: 1 << 20})
	large := pattern(24 << 20)
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"large": large})
	name := filepath.Join(dir, "large")

	// The state that a copy leaves that is interrupted, and then a change of the source.
	ctx, cancel := contextThatEnds(t)
	var writes atomic.Int64
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "WRITE" && writes.Add(1) == 12 {
			cancel()
		}
		return smbtest.Fault{}
	})
	got := runWith(ctx, "cp", name, s.URL)
	s.SetFaults(nil)
	if got.code != exitInterrupted {
		t.Fatalf("exit code %d, want %d: %s", got.code, exitInterrupted, got.stderr)
	}
	text, err := s.ReadFile("large" + stateSuffix)
	var state partialState
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Done < 1<<20 || state.Done >= 24<<20 {
		t.Fatalf("state %s, %v", text, err)
	}
	before := s.Stats().Written
	pw(t, 0, "cp", name, s.URL)
	checkRemote(t, s, "large", large)
	if n := s.Stats().Written - before; n >= 24<<20 {
		t.Errorf("%d bytes were written after %d had come", n, state.Done)
	}
	want(t, "what is left", pw(t, 0, "ls", s.URL).stdout, "large\n")

	// Another file by now: nothing of the partial is kept.
	write(t, s, map[string]string{"large" + partialSuffix: strings.Repeat("x", 30<<20), "large" + stateSuffix: string(text)})
	os.Chtimes(name, time.Now(), time.Now().Add(time.Minute))
	pw(t, 0, "cp", name, s.URL)
	checkRemote(t, s, "large", large)
	want(t, "what is left", pw(t, 0, "ls", s.URL).stdout, "large\n")
}

func TestCpJSON(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"d/a": "A", "d/b": "BB"})
	var files, summaries int
	for line := range strings.Lines(pw(t, 0, "cp", "-r", "--json", "--verify", s.URL+"/d", t.TempDir()).stdout) {
		var e struct {
			Event, Source, Target string
			Bytes                 int64
			Files                 int64
			Verified              bool
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch e.Event {
		case "file":
			files++
			if !strings.Contains(e.Source, "/d/") || e.Target == "" || e.Bytes == 0 {
				t.Errorf("file %+v", e)
			}
		case "summary":
			summaries++
			if e.Files != 2 || e.Bytes != 3 || !e.Verified {
				t.Errorf("summary %+v", e)
			}
		}
	}
	if files != 2 || summaries != 1 {
		t.Errorf("%d files and %d summaries, want 2 and 1", files, summaries)
	}
}

func TestCpSmallFilesTakeOneTripEach(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 500 {
		files[fmt.Sprintf("d/%03d", i)] = pattern(4096)
	}
	writeLocal(t, dir, files)
	before := s.Stats().Frames
	pw(t, 0, "cp", "-r", filepath.Join(dir, "d"), s.URL)
	up := s.Stats().Frames
	pw(t, 0, "cp", "-r", s.URL+"/d", t.TempDir())
	down := s.Stats().Frames
	// What else there is: negotiate, log on, mount, stat, mkdir, list, log off.
	const other = 25
	if n := up - before; n > 500+other {
		t.Errorf("%d requests to send 500 files", n)
	}
	if n := down - up; n > 500+other {
		t.Errorf("%d requests to fetch 500 files", n)
	}
}

func TestCpVerifyFindsDamage(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	write(t, s, map[string]string{"large": pattern(3 << 20)})
	dir := t.TempDir()
	var reads atomic.Int64
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "READ" && reads.Add(1) == 2 {
			// A reply that is not signed can be changed on its way.
			return smbtest.Fault{Mutate: func(b []byte) []byte {
				b = bytes.Clone(b)
				b[len(b)-1] ^= 1
				return b
			}}
		}
		return smbtest.Fault{}
	})
	got := pw(t, 1, "cp", "--verify", s.URL+"/large", dir)
	wantPart(t, "damage", got.stderr, "the copy differs from its source at byte ")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestCpKeepsWhatItCannotReplace(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"old": "new", "fresh": "new"})
	write(t, s, map[string]string{"old": "as it was"})
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "WRITE" {
			return smbtest.Fault{Status: 0xC000007F} // STATUS_DISK_FULL
		}
		return smbtest.Fault{}
	})
	for _, name := range []string{"old", "fresh"} {
		got := pw(t, exitFailed, "cp", filepath.Join(dir, name), s.URL)
		if !strings.Contains(got.stderr, "STATUS_DISK_FULL") {
			t.Errorf("%s: %s, want the status of the full disk", name, got.stderr)
		}
	}
	s.SetFaults(nil)
	checkRemote(t, s, "old", "as it was")
	want(t, "what is there", pw(t, 0, "ls", s.URL).stdout, "old\n")
}

// The state of another copy is gone before a partial is begun anew: were this run to
// die, the next one of that copy would go on with bytes of this one.
func TestCpBeginsWithoutAState(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	dir := t.TempDir()
	writeLocal(t, dir, map[string]string{"large": pattern(3 << 20)})
	write(t, s, map[string]string{"large" + partialSuffix: pattern(1 << 20), "large" + stateSuffix: `{"source":"another","size":9,"done":5}`})
	var wrote, stated atomic.Bool
	s.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "WRITE" {
			wrote.Store(true)
			if _, err := s.ReadFile("large" + stateSuffix); err == nil {
				stated.Store(true)
			}
		}
		return smbtest.Fault{}
	})
	pw(t, 0, "cp", filepath.Join(dir, "large"), s.URL)
	if !wrote.Load() || stated.Load() {
		t.Errorf("written %v, with a state %v", wrote.Load(), stated.Load())
	}
	checkRemote(t, s, "large", pattern(3<<20))
	want(t, "what is there", pw(t, 0, "ls", s.URL).stdout, "large\n")
}
