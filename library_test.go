package pagewire

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"testing/synctest"

	"github.com/pagewire/pagewire/smbtest"
)

// TestIOFSOfWhatIsCached has the standard library's tests look at a tree of which some
// was written and some read before.
func TestIOFSOfWhatIsCached(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, _ func(string) ([]byte, error)) {
		fsys := dial(t, url, "")
		written, read := tree(t, fsys)
		shut(t, written)
		looksRight(t, fsys)
		shut(t, read)
	})
}

// TestIOFSOfWhatIsDirty is the same while some is dirty. Here no time passes, so that
// none of it is written, which would move its time.
func TestIOFSOfWhatIsDirty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{})
		defer srv.Close()
		fsys, err := Dial(t.Context(), "smb://user:pass@server/share", &Config{DialContext: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer fsys.Close()
		written, read := tree(t, fsys)
		looksRight(t, fsys)
		if s := fsys.Stats().Cache; s.Dirty != 1000 {
			t.Errorf("the cache has %+v", s)
		}
		shut(t, written, read)
	})
}

// tree makes one, with a file that is dirty and one that was read.
func tree(t *testing.T, fsys *FS) (written, read *File) {
	t.Helper()
	if err := fsys.MkdirAll(t.Context(), "dir/empty", 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, fsys, "dir/read", "read before")
	put(t, fsys, "dir/other", "never read")
	written, read = open(t, fsys, "dir/written", os.O_RDWR|os.O_CREATE), open(t, fsys, "dir/read", os.O_RDONLY)
	written.WriteAt(bytes.Repeat([]byte("written"), 143)[:1000], 0)
	has(t, read, "read before")
	return written, read
}

func looksRight(t *testing.T, fsys *FS) {
	t.Helper()
	sub, err := fsys.Sub("dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys, "dir/written", "dir/read", "dir/other", "dir/empty"); err != nil {
		t.Error(err)
	}
	if err := fstest.TestFS(sub, "written", "read", "other", "empty"); err != nil {
		t.Error(err)
	}
	if fsys.Stats().Cache.Hits == 0 {
		t.Error("nothing of that came from the cache")
	}
}

// TestReaders has the standard library's tests read files that are cached, dirty, or
// neither.
func TestReaders(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, _ func(string) ([]byte, error)) {
		for options, size := range map[string]int{"": 5000, "vers=2.0.2": 5000, "cache=none": 200} {
			fsys := dial(t, url, options)
			want := randomBytes(size)
			dirty := open(t, fsys, "file", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
			dirty.WriteAt(want, 0)
			if err := iotest.TestReader(dirty, want); err != nil {
				t.Errorf("%q, dirty: %v", options, err)
			}
			shut(t, dirty)
			f := open(t, fsys, "file", os.O_RDONLY)
			for range 2 {
				if err := iotest.TestReader(f, want); err != nil {
					t.Errorf("%q: %v", options, err)
				}
				f.Seek(0, io.SeekStart)
			}
			shut(t, f)
		}
	})
}

// TestReadFromOddReaders copies from readers that do what readers may do.
func TestReadFromOddReaders(t *testing.T) {
	everyServer(t, func(t *testing.T, url string, read func(string) ([]byte, error)) {
		fsys := dial(t, url, "wsize=16K")
		data, broken := randomBytes(100_000), errors.New("broken")
		for _, c := range []struct {
			name string
			from io.Reader
			want []byte
			err  error
		}{
			{"one byte", iotest.OneByteReader(bytes.NewReader(data[:40_000])), data[:40_000], nil},
			{"half", iotest.HalfReader(bytes.NewReader(data)), data, nil},
			{"data with EOF", iotest.DataErrReader(bytes.NewReader(data)), data, nil},
			{"at once", iotest.ErrReader(broken), nil, broken},
			{"in the middle", io.MultiReader(bytes.NewReader(data[:50_001]), iotest.ErrReader(broken)), data[:50_001], broken},
			{"data with the error", iotest.DataErrReader(io.MultiReader(bytes.NewReader(data[:50_001]), iotest.ErrReader(broken))), data[:50_001], broken},
			{"time is out", iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(data))), nil, iotest.ErrTimeout},
		} {
			f := open(t, fsys, "file", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
			f.WriteAt([]byte("dirty, and to be written over"), 0)
			n, err := f.ReadFrom(c.from)
			if err != c.err || c.want != nil && n != int64(len(c.want)) {
				t.Errorf("%s: %d bytes, %v; want %d, and %v itself", c.name, n, err, len(c.want), c.err)
			}
			if off, _ := f.Seek(0, io.SeekCurrent); off != n {
				t.Errorf("%s: offset %d after %d bytes", c.name, off, n)
			}
			shut(t, f)
			if got, err := read("file"); err != nil || int64(len(got)) < n || !bytes.Equal(got[:n], data[:n]) {
				t.Errorf("%s: the server has %d bytes, %v", c.name, len(got), err)
			}
		}
	})
}

// plain are methods that need no example.
var plain = map[string]string{
	"Error":       "of the interface error",
	"Unwrap":      "for package errors",
	"Is":          "for package errors",
	"LogValue":    "of slog.LogValuer",
	"GoString":    "of fmt.GoStringer",
	"MarshalText": "of encoding.TextMarshaler",
	// ExampleNewSecret shows both.
	"Secret_String":      "of fmt.Stringer",
	"Credentials_String": "of fmt.Stringer",
}

// TestEverythingHasAnExample looks for one of each exported function and method.
func TestEverythingHasAnExample(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	examples, exported := map[string]bool{}, map[string]bool{}
	fset := token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case !strings.HasSuffix(name, "_test.go"):
				if full := fullName(f); full != "" {
					exported[full] = true
				}
			case file.Name.Name == "pagewire_test":
				if of, ok := strings.CutPrefix(f.Name.Name, "Example"); ok {
					examples[of] = true
				}
			}
		}
	}
	if len(exported) < 60 {
		t.Errorf("found only %d functions and methods", len(exported))
	}
	for full := range exported {
		_, method, _ := strings.Cut(full, "_")
		if plain[full] == "" && plain[method] == "" && !examples[full] {
			t.Errorf("there is no Example%s", full)
		}
	}
}

// fullName returns what an example of a function is named for, or "" if others don't
// see it.
func fullName(f *ast.FuncDecl) string {
	if !f.Name.IsExported() {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if index, ok := recv.(*ast.IndexExpr); ok {
		recv = index.X
	}
	if id, ok := recv.(*ast.Ident); ok && id.IsExported() {
		return id.Name + "_" + f.Name.Name
	}
	return ""
}
