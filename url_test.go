package pagewire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseSource(t *testing.T) {
	for _, c := range []struct {
		in       string
		want     Source
		password string
		out      string // "": as in
	}{
		{in: "//nas/media", want: Source{Host: "nas", Share: "media", Path: "."}},
		{in: "//nas", want: Source{Host: "nas", Path: "."}},
		{in: "//nas/", want: Source{Host: "nas", Path: "."}, out: "//nas"},
		{in: "//nas/media/a/b c%20?#", want: Source{Host: "nas", Share: "media", Path: "a/b c%20?#"}},
		{in: "//nas/media//a/./b/", want: Source{Host: "nas", Share: "media", Path: "a/b"}, out: "//nas/media/a/b"},
		{in: `\\nas\media\a\b`, want: Source{Host: "nas", Share: "media", Path: "a/b"}, out: "//nas/media/a/b"},
		{in: "//nas:1445/media", want: Source{Host: "nas", Port: 1445, Share: "media", Path: "."}, out: "smb://nas:1445/media"},
		{in: "//fe80::1%eth0/media", want: Source{Host: "fe80::1%eth0", Share: "media", Path: "."}, out: "//[fe80::1%eth0]/media"},
		{in: "//[::1]:1445/media", want: Source{Host: "::1", Port: 1445, Share: "media", Path: "."}, out: "smb://[::1]:1445/media"},
		{in: "smb://nas/media/a%20b/c%3F", want: Source{Host: "nas", Share: "media", Path: "a b/c?"}, out: "//nas/media/a b/c?"},
		{in: "SMB://nas", want: Source{Host: "nas", Path: "."}, out: "//nas"},
		{in: "smb://alice@nas:1445/media", want: Source{Host: "nas", Port: 1445, Share: "media", Path: ".", User: "alice"}},
		{in: "smb://WORK;alice:p%40ss%2Fw@[fe80::1%25eth0]/media/x",
			want:     Source{Host: "fe80::1%eth0", Share: "media", Path: "x", User: "alice", Domain: "WORK"},
			password: "p@ss/w", out: "smb://WORK;alice@[fe80::1%25eth0]/media/x"},
		{in: "smb://alice:@nas/media", want: Source{Host: "nas", Share: "media", Path: ".", User: "alice"}, out: "smb://alice@nas/media"},
	} {
		got, err := ParseSource(c.in)
		password, hasPassword := got.password.get()
		got.password = Secret{}
		if err != nil || got != c.want || password != c.password {
			t.Errorf("ParseSource(%q) = %+v, %q, %v; want %+v, %q", c.in, got, password, err, c.want, c.password)
		}
		if wanted := strings.Contains(c.in, ":@") || c.password != ""; hasPassword != wanted {
			t.Errorf("ParseSource(%q) has a password: %v, want %v", c.in, hasPassword, wanted)
		}
		if c.out == "" {
			c.out = c.in
		}
		if got.String() != c.out {
			t.Errorf("ParseSource(%q).String() = %q, want %q", c.in, got.String(), c.out)
		}
		if again, err := ParseSource(got.String()); again != got && !strings.Contains(got.String(), "%20") {
			t.Errorf("ParseSource(%q) = %+v, %v; want %+v", got.String(), again, err, got)
		}
	}
}

func TestParseSourceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "not a source",
		"file":                     "not a source",
		"12:30.txt":                "a local name with a colon is ./12:30.txt",
		"//":                       "no host",
		"///media":                 "no host",
		"//na s/media":             `host "na s" is no name`,
		"//alice@nas/media":        "a user stands in smb://user@host/share only",
		"//nas:0/media":            `port "0" is not between 1 and 65535`,
		"//nas:99999/media":        "is not between",
		"//nas/media/../x":         ".. in a path",
		"//nas/media/a\x00b":       "contains / or NUL",
		"smb://nas/media/a%2Fb":    "contains / or NUL",
		"smb://nas/media/%2e%2e/x": ".. in a path",
		"smb://nas/media?x":        "? and #",
		"smb://nas/media#x":        "? and #",
		"smb://nas/%zz":            "not a URL",
		"smb://:pw@nas/media":      "no user before @",
		"smb:///media":             "no host",
		"nfs://nas/export":         `unsupported protocol "nfs"`,
		"https://nas/x":            `unsupported protocol "https"`,
		"nas:/export":              "unsupported protocol: host:/path means NFS",
	} {
		_, err := ParseSource(in)
		var se *SourceError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSource(%q): %v, want %q", in, err, want)
		}
	}
}

// verbs are all that fmt knows, with the flags that change what is printed.
var verbs = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%b", "%o", "%O", "%c", "%U", "%e", "%g", "%p", "%T", "%10v"}

// leaks checks that no way of printing v shows the secret.
func leaks(t *testing.T, v any, secret string) {
	t.Helper()
	holder := struct {
		Public  any
		private any
	}{v, v}
	for _, verb := range verbs {
		for _, arg := range []any{v, &v, []any{v}, holder, &holder, map[string]any{"x": v}} {
			s := fmt.Sprintf(verb, arg)
			if strings.Contains(s, secret) || strings.Contains(strings.ToLower(s), fmt.Sprintf("%x", secret)) {
				t.Errorf("%s of %T shows the secret: %s", verb, arg, s)
			}
		}
	}
	if text, err := json.Marshal(holder); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("JSON of %T: %s, %v", v, text, err)
	}
}

func TestSourceHidesPassword(t *testing.T) {
	const secret = "hunter2"
	src, err := ParseSource("smb://alice:" + secret + "@nas/media")
	if err != nil {
		t.Fatal(err)
	}
	leaks(t, src, secret)
	leaks(t, &src, secret)
	for _, broken := range []string{
		"smb://alice:" + secret + "@nas/%zz",
		"smb://alice:" + secret + "/x@nas/media",
		"smb://alice:" + secret + "#@nas/media",
		"smb://alice:" + secret + "?@nas/media",
		"smb://alice:a@" + secret + "@nas:x/media",
		"nfs://alice:" + secret + "@nas/media",
		"smb://alice:" + secret + "@nas/media/..",
		"//alice:" + secret + "@nas/media",
		"//alice:12/" + secret + "@nas/media/..",
		`\\alice:` + secret + `@nas\media`,
		"smb:/alice:" + secret + "@nas/media",
		"alice:" + secret + "@nas:/media",
	} {
		_, err := ParseSource(broken)
		if err == nil {
			t.Errorf("ParseSource(%q) succeeded", broken)
			continue
		}
		leaks(t, err, secret)
		if !strings.Contains(err.Error(), "@nas") {
			t.Errorf("%v does not say which source it is about", err)
		}
	}
}

func TestIsSource(t *testing.T) {
	for arg, want := range map[string]bool{
		"//nas/media": true, `\\nas\media`: true, "smb://nas": true, "nfs://nas/x": true, "nas:/export": true, "a:b": true,
		"./a:b": false, "/a:b": false, "dir/a:b": false, "a": false, "": false, ":a": false, "-": false, "/": false,
	} {
		if got := IsSource(arg); got != want {
			t.Errorf("IsSource(%q) = %v, want %v", arg, got, want)
		}
	}
}
