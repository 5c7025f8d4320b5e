package main

import (
	"strings"
	"testing"
)

func mustParse(t *testing.T, arg string) place {
	t.Helper()
	p, err := parsePlace(arg)
	if err != nil {
		t.Fatalf("parsePlace(%q): %v", arg, err)
	}
	return p
}

func TestParsePlace(t *testing.T) {
	for _, c := range []struct {
		arg, name, path, base string
		remote                bool
	}{
		{"a.txt", "a.txt", "a.txt", "a.txt", false},
		{"./a:b", "./a:b", "./a:b", "a:b", false},
		{"/tmp/", "/tmp/", "/tmp/", "tmp", false},
		{"//nas/media", "//nas/media", ".", "media", true},
		{"//nas/media/raw/a.mov", "//nas/media/raw/a.mov", "raw/a.mov", "a.mov", true},
		{"smb://alice:secret@nas/media/raw", "smb://alice@nas/media/raw", "raw", "raw", true},
		{"smb://nas:4450/media/a%20b", "smb://nas:4450/media/a%20b", "a b", "a b", true},
	} {
		p := mustParse(t, c.arg)
		if p.name != c.name || p.path != c.path || p.remote != c.remote || p.base() != c.base {
			t.Errorf("parsePlace(%q) = %q, %q, base %q, remote %v", c.arg, p.name, p.path, p.base(), p.remote)
		}
	}
	if _, err := parsePlace(""); exitCode(err) != exitUsage {
		t.Errorf("empty argument: %v, want a usage error", err)
	}
	for _, arg := range []string{"a.txt", "//nas", "smb://nas"} {
		if _, err := parseRemote("cat", arg); exitCode(err) != exitUsage {
			t.Errorf("parseRemote(%q): %v, want a usage error", arg, err)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ arg, name, joined, path string }{
		{"//nas/media", "a", "//nas/media/a", "a"},
		{"//nas/media/raw", "x/a", "//nas/media/raw/x/a", "raw/x/a"},
		{"smb://nas:4450/media", "a b", "smb://nas:4450/media/a%20b", "a b"},
		{"./dir", "a", "dir/a", "dir/a"},
	} {
		p := mustParse(t, c.arg).join(c.name)
		if p.name != c.joined || p.path != c.path {
			t.Errorf("%s joined with %s is %q, %q, want %q, %q", c.arg, c.name, p.name, p.path, c.joined, c.path)
		}
	}
}

func TestRedacted(t *testing.T) {
	for _, arg := range []string{
		"smb://alice:secret@nas/media",
		"smb://alice:secret@nas:99999/media",
		"smb://alice:se%zzcret@nas/media",
		"smb://alice:s/e@secret@nas/media",
		"nfs://alice:secret@nas/media",
		"//alice:secret@nas/media",
		"alice:secret@nas:/media",
	} {
		if got := redacted(arg); strings.Contains(got, "secret") || strings.Contains(got, "cret") || !strings.Contains(got, "nas") {
			t.Errorf("redacted(%q) = %q, want the host and no password", arg, got)
		}
		_, err := parsePlace(arg)
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("parsePlace(%q) shows a password: %v", arg, err)
		}
	}
}

func TestSameShare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"//nas/media/a", "//nas/MEDIA/b", true},
		{"//nas/media/a", "//nas/other/a", false},
		{"//nas/media/a", "//box/media/a", false},
		{"smb://bob@nas/media/a", "smb://alice@nas/media/a", false},
		{"//nas/media/a", "a", false},
	} {
		if got := mustParse(t, c.a).sameShare(mustParse(t, c.b)); got != c.want {
			t.Errorf("sameShare(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestMvDestination(t *testing.T) {
	for _, c := range []struct {
		from, to string
		isDir    bool
		want     string
	}{
		{"//nas/m/a", "//nas/m/b", false, "b"},
		{"//nas/m/a", "//nas/m/dir", true, "dir/a"},
		{"//nas/m/x/a", "//nas/m", true, "a"},
		{"//nas/m/readme", "//nas/m/README", false, "README"},
		{"//nas/m/dir", "//nas/m/Dir", true, "Dir"},
		{"//nas/m/dir", "//nas/m/dir", true, "dir/dir"},
	} {
		if got := destination(mustParse(t, c.from), mustParse(t, c.to), c.isDir).path; got != c.want {
			t.Errorf("mv %s %s goes to %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestCpTargetName(t *testing.T) {
	dir, file := target{name: "in", isDir: true}, target{name: "new"}
	for _, c := range []struct {
		from string
		to   target
		want string
	}{
		{"//nas/media/raw/a", dir, "in/a"},
		{"//nas/media", dir, "in/media"},
		{"a/b", dir, "in/b"},
		{"a/b/", dir, "in/b"},
		{".", dir, "in"},
		{"..", dir, "in"},
		{"/", dir, "in"},
		{"//nas/media/raw/a", file, "new"},
		{".", file, "new"},
	} {
		if got := targetName(mustParse(t, c.from), c.to); got != c.want {
			t.Errorf("copy of %s to %+v is %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestIntoItself(t *testing.T) {
	at := func(arg string) remoteTree { return remoteTree{at: mustParse(t, arg)} }
	for _, c := range []struct {
		from string
		to   tree
		name string
		want bool
	}{
		{"//nas/m/a", at("//nas/m"), "a", true},
		{"//nas/m/a", at("//nas/m"), "A", true},
		{"//nas/m/a", at("//nas/m"), "a/b/a", true},
		{"//nas/m", at("//nas/m"), "sub", true},
		{"//nas/m/a", at("//nas/m"), "ab", false},
		{"//nas/m/a", at("//nas/other"), "a", false},
		{"a", at("//nas/m"), "a", false},
		{"//nas/m/a", localTree{}, "a", false},
	} {
		if got := intoItself(mustParse(t, c.from), c.to, c.name); got != c.want {
			t.Errorf("intoItself(%s, %s) = %v, want %v", c.from, c.name, got, c.want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/etc/passwd", "../x", "a\x00b"} {
		if checkName(name) == nil {
			t.Errorf("checkName(%q) accepts it", name)
		}
	}
	for _, name := range []string{"a", "...", "..a", "a b", `a\b`, ".partial", "ü"} {
		if err := checkName(name); err != nil && name != `a\b` {
			t.Errorf("checkName(%q): %v", name, err)
		}
	}
}
