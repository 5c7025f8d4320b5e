package smb

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

func TestPathBehindALink(t *testing.T) {
	for _, c := range []struct {
		parsed, rest string // of the path; the link is the last name of parsed
		target       string
		want         string
		err          error
	}{
		{`link`, `\f`, `dir`, `dir\f`, nil},
		{`a\link`, `\f`, `b`, `a\b\f`, nil},
		{`a\link`, `\f\g`, `b\c`, `a\b\c\f\g`, nil},
		{`a\link`, `\f`, `..\b`, `b\f`, nil},
		{`a\b\link`, `\f`, `..\..`, `f`, nil},
		{`a\link`, `\f`, `.`, `a\f`, nil},
		{`a\link`, `\f`, `b/c`, `a\b\c\f`, nil},
		{`a\link`, `\f`, `b\\c\`, `a\b\c\f`, nil},
		{`a\link`, `f`, `b`, `a\b\f`, nil}, // the rest without its separator
		{`ü\😀`, `\語`, `x`, `ü\x\語`, nil},
		{`link`, `\f`, `..\b`, "", errLinkAway},
		{`a\link`, `\f`, `..\..\b`, "", errLinkAway},
		{`a\link`, `\f`, `b\..\..\..\c`, "", errLinkAway},
		{`a\link`, ``, `b`, "", errLinkLast},
	} {
		link := smb2msg.SymlinkErrorResponse{
			UnparsedPathLength:      uint16(2 * byteio.UTF16Len(c.rest)),
			SymbolicLinkReparseData: fscc.SymbolicLinkReparseData{SubstituteName: c.target, PrintName: c.target, Relative: true},
		}
		got, err := behind(c.parsed+c.rest, link)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s, a link to %s, then %s: %q, %v; want %q, %v", c.parsed, c.target, c.rest, got, err, c.want, c.err)
		}
		if c.err == nil {
			link.Relative = false
			if got, err := behind(c.parsed+c.rest, link); !errors.Is(err, errLinkAway) {
				t.Errorf("the same, absolute: %q, %v; want %v", got, err, errLinkAway)
			}
		}
	}
}

// byHand is such a file as others write it.
func byHand(target string) []byte {
	b := fmt.Appendf(nil, "XSym\n%04d\n%x\n%s\n", len(target), md5.Sum([]byte(target)), target)
	return append(b, bytes.Repeat([]byte{' '}, max(0, 1067-len(b)))...)[:1067]
}

func TestLinksAsFiles(t *testing.T) {
	for _, target := range []string{"f", "../a b/ü", "/absolute", strings.Repeat("x", 1023), strings.Repeat("y", 1024)} {
		b, err := mfEncode(target)
		if err != nil || !bytes.Equal(b, byHand(target)) {
			t.Errorf("link to %d characters is %q, %v", len(target), b, err)
		}
		if got, ok := mfDecode(b); got != target || !ok {
			t.Errorf("link to %q is read as one to %q, %v", target, got, ok)
		}
	}
	if b, err := mfEncode(strings.Repeat("x", 1025)); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("link to 1025 characters: %d bytes, %v; want %v", len(b), err, syscall.ENAMETOOLONG)
	}
	change := func(at int, b byte) []byte {
		p := byHand("target")
		p[at] = b
		return p
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"too short":      byHand("target")[:1066],
		"too long":       append(byHand("target"), ' '),
		"another magic":  change(0, 'x'),
		"another length": change(8, '7'),
		"no length":      change(5, '-'),
		"another sum":    change(10, 'z'),
		"another target": change(43, 'T'),
		"a long length":  []byte(strings.Replace(string(byHand("target")), "0006", "9999", 1)),
		"no target":      byHand(""),
		"a NUL":          byHand("a\x00b"),
	} {
		if got, ok := mfDecode(b); ok {
			t.Errorf("%s: taken for a link to %q", name, got)
		}
	}
}

// FuzzLinkFile takes what is in any file.
func FuzzLinkFile(f *testing.F) {
	for _, target := range []string{"f", "", "a\x00b", strings.Repeat("x", 1024), strings.Repeat("x", 2000)} {
		f.Add(byHand(target))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		target, ok := mfDecode(b)
		if !ok {
			return
		}
		if target == "" || strings.ContainsRune(target, 0) {
			t.Errorf("a link to %q", target)
		}
		again, err := mfEncode(target)
		if err != nil {
			t.Fatalf("link to %q: %v", target, err)
		}
		if got, ok := mfDecode(again); got != target || !ok {
			t.Errorf("link to %q becomes one to %q, %v", target, got, ok)
		}
	})
}

// kind is what both ways of asking say that name is.
func kind(t *testing.T, v *Volume, name string) (kind remote.Kind, size int64) {
	t.Helper()
	attr, err := v.GetAttr(t.Context(), remote.At{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for page, err := range v.ReadDir(t.Context(), remote.At{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.Name == name {
				found = true
				if e.Attr.Kind != attr.Kind || e.Attr.Size != attr.Size {
					t.Errorf("%s is kind %d of %d bytes in the listing, kind %d of %d else", name, e.Attr.Kind, e.Attr.Size, attr.Kind, attr.Size)
				}
			}
		}
	}
	if !found {
		t.Errorf("%s is not listed", name)
	}
	return attr.Kind, attr.Size
}

func TestLinksAsFilesOnARealServer(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	v, plain := mount(t, srv, Config{MFSymlinks: true}), mount(t, srv, Config{})

	at := remote.At{Name: "ours"}
	attr, err := v.Make(t.Context(), at, remote.Make{Kind: remote.Symlink, Target: "dir/ü"})
	if err != nil || attr.Kind != remote.Symlink {
		t.Fatalf("Make: kind %d, %v", attr.Kind, err)
	}
	if got, err := os.ReadFile(filepath.Join(srv.Dir, "ours")); err != nil || !bytes.Equal(got, byHand("dir/ü")) {
		t.Errorf("the server has %q, %v", got, err)
	}
	broken := byHand("target")
	broken[20] ^= 1
	for name, content := range map[string][]byte{"theirs": byHand("../elsewhere"), "none": broken, "short": byHand("x")[:1000]} {
		if err := os.WriteFile(filepath.Join(srv.Dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"ours": "dir/ü", "theirs": "../elsewhere", "none": "", "short": ""} {
		target, err := v.ReadLink(t.Context(), remote.At{Name: name})
		if target != want || (want == "") != errors.Is(err, syscall.EINVAL) {
			t.Errorf("ReadLink %s: %q, %v; want %q", name, target, err, want)
		}
		k, size := kind(t, v, name)
		if (k == remote.Symlink) != (want != "") || want != "" && size != int64(len(want)) {
			t.Errorf("%s is kind %d of %d bytes, a link to %q", name, k, size, want)
		}
		if k, _ := kind(t, plain, name); k != remote.Regular {
			t.Errorf("%s without mfsymlinks is kind %d", name, k)
		}
	}
	// A file that may not be read may be a link, but nobody can tell.
	if err := os.Chmod(filepath.Join(srv.Dir, "theirs"), 0); err != nil {
		t.Fatal(err)
	}
	if k, _ := kind(t, v, "theirs"); k != remote.Regular {
		t.Errorf("a link that may not be read is kind %d", k)
	}
	if _, err := v.Make(t.Context(), at, remote.Make{Kind: remote.Symlink, Target: "x"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Make over a link: %v, want %v", err, fs.ErrExist)
	}
	if err := v.Remove(t.Context(), at, false); err != nil {
		t.Errorf("Remove: %v", err)
	}
}

// TestServerWithoutLinks leaves nothing behind where no link can be made.
func TestServerWithoutLinks(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	v := mount(t, srv, Config{})
	_, err := v.Make(t.Context(), remote.At{Name: "link"}, remote.Make{Kind: remote.Symlink, Target: "x"})
	if !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("%v, want %v", err, syscall.EOPNOTSUPP)
	}
	if _, err := os.Lstat(filepath.Join(srv.Dir, "link")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the server has a link or what is left of it: %v", err)
	}
}

// TestPathsThroughLinks follows links as a server without them on its own side
// wants it: by asking again for what lies behind.
func TestPathsThroughLinks(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		if err := srv.WriteFile("a/b/file", []byte("content")); err != nil {
			t.Fatal(err)
		}
		root := srv.FS("share").Root()
		a, _, err := root.Lookup("a")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []struct{ name, target string }{{"to-a", "a"}, {"to-b", "to-a/b"}, {"away", "../x"}, {"round", "round"}} {
			if _, err := root.Symlink(l.name, l.target); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Symlink("up", ".."); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]error{
			"a/b/file": nil, "to-a/b/file": nil, "to-b/file": nil, "a/up/to-b/file": nil, "to-a/up/a/b/file": nil,
			"away/file": syscall.ELOOP, "round/file": syscall.ELOOP, "to-b/none": fs.ErrNotExist,
		} {
			p := make([]byte, 100)
			n, _, err := v.ReadFile(t.Context(), remote.At{Name: path}, p)
			if !errors.Is(err, want) || want == nil && string(p[:n]) != "content" {
				t.Errorf("%s: %q, %v; want %v", path, p[:n], err, want)
			}
		}
		for name, want := range map[string]string{"to-a": "a", "to-b": "to-a/b", "a/up": ".."} {
			if got, err := v.ReadLink(t.Context(), remote.At{Name: name}); got != want || err != nil {
				t.Errorf("ReadLink %s: %q, %v; want %q", name, got, err, want)
			}
		}
		_, err = v.ReadLink(t.Context(), remote.At{Name: "a/b/file"})
		check(t, "ReadLink of a file", err, syscall.EINVAL)
	})
}
