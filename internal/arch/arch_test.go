// Package arch holds the shape of the tree: imports.txt says which package may
// import which, and its tests fail on whatever else has crept in.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/format"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root     = "../.."
	maxLines = 800
	// everyTest is the line of imports.txt that all _test.go files share.
	everyTest = "_test"
)

// allowance maps a package, relative to the module, to what it may import.
type allowance map[string][]string

func parseAllowance(text string) (allowance, error) {
	a := allowance{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pkg, imports, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New("no colon in line: " + line)
		}
		if _, dup := a[pkg]; dup {
			return nil, errors.New("listed twice: " + pkg)
		}
		a[pkg] = strings.Fields(imports)
	}
	return a, nil
}

// external reports whether path names a package outside the module: a module
// path starts with a domain name, the standard library and ours do not.
func external(path string) bool {
	domain, _, _ := strings.Cut(path, "/")
	return path != "." && strings.Contains(domain, ".")
}

// permits reports whether allowed covers the import of path.
func permits(allowed []string, path string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		return path == a || external(a) && strings.HasPrefix(path, a+"/")
	})
}

// goPackage is what the test needs of go list's output.
type goPackage struct {
	ImportPath   string
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Module,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// within returns path relative to the module, "." for its root, and whether
// the path is subject to imports.txt at all, which the standard library is not.
func within(module, path string) (string, bool) {
	if path == module {
		return ".", true
	}
	if rel, ok := strings.CutPrefix(path, module+"/"); ok {
		return rel, true
	}
	return path, external(path)
}

func TestImports(t *testing.T) {
	text, err := os.ReadFile("imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := parseAllowance(string(text))
	if err != nil {
		t.Fatalf("imports.txt: %v", err)
	}
	for pkg, imports := range allowed {
		for _, path := range imports {
			if _, listed := allowed[path]; !listed && !external(path) {
				t.Errorf("imports.txt lets %s import %s, which has no line of its own", pkg, path)
			}
		}
	}
	pkgs := listPackages(t)
	if len(pkgs) == 0 {
		t.Fatal("go list found no package")
	}
	for _, p := range pkgs {
		rel, _ := within(p.Module.Path, p.ImportPath)
		own, listed := allowed[rel]
		if !listed && rel != "internal/arch" {
			t.Errorf("package %s has no line in imports.txt", rel)
			continue
		}
		check := func(kind string, imports, allowed []string) {
			for _, path := range imports {
				if path, ours := within(p.Module.Path, path); ours && !permits(allowed, path) {
					t.Errorf("%s%s imports %s, which imports.txt does not allow", rel, kind, path)
				}
			}
		}
		check("", p.Imports, own)
		tests := slices.Concat(own, allowed[everyTest], []string{rel})
		check(" (test)", p.TestImports, tests)
		check(" (test)", p.XTestImports, tests)
	}
}

func TestPermits(t *testing.T) {
	a, err := parseAllowance("# comment\n\n.: internal/x golang.org/x/sys\ninternal/x:\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pkg, path string
		want      bool
	}{
		{".", "internal/x", true},
		{".", "internal/x/y", false},
		{".", "golang.org/x/sys", true},
		{".", "golang.org/x/sys/unix", true},
		{".", "golang.org/x/sysv", false},
		{"internal/x", ".", false},
	} {
		if got := permits(a[c.pkg], c.path); got != c.want {
			t.Errorf("%s importing %s: permitted %v, want %v", c.pkg, c.path, got, c.want)
		}
	}
	for _, bad := range []string{"internal/x", "a:\na: b"} {
		if _, err := parseAllowance(bad); err == nil {
			t.Errorf("parseAllowance(%q) succeeded, want an error", bad)
		}
	}
}

// TestFiles checks what holds for every text file: its length, that nothing is
// left for later, and gofmt.
func TestFiles(t *testing.T) {
	later := []string{"TO" + "DO", "FIX" + "ME"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == ".git" || name == "testdata") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || name == "go.sum" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil
		}
		path, _ = filepath.Rel(root, path)
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d", path, n, maxLines)
		}
		for _, word := range later {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s contains %s", path, word)
			}
		}
		if strings.HasSuffix(name, ".go") {
			if formatted, err := format.Source(text); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if !bytes.Equal(text, formatted) {
				t.Errorf("%s is not formatted by gofmt", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
