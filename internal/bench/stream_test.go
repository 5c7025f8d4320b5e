package bench

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

func noCPU() time.Duration { return 0 }

// TestStream streams a file to a server and back, through the cache and past it.
func TestStream(t *testing.T) {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()
	const block, size, calls = 16 << 10, 160<<10 - 1, 10
	for _, tt := range []struct {
		options string
		kept    bool
	}{
		{"cache=singleclient", true},
		{"cache=none", false},
	} {
		t.Run(tt.options, func(t *testing.T) {
			stream := func() Stream {
				fsys, err := pagewire.Dial(t.Context(), srv.URL, &pagewire.Config{Options: tt.options})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { fsys.Close() })
				return Stream{FS: fsys, Name: "file", Block: block, CPU: noCPU}
			}
			w, err := stream().Write(t.Context(), size)
			if err != nil {
				t.Fatal(err)
			}
			data, err := srv.ReadFile("file")
			if err != nil {
				t.Fatal(err)
			}
			local := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(local, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := wroteStream(local, size, block); err != nil {
				t.Error(err)
			}
			r, err := stream().Read(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []Streamed{w, r} {
				var sized int64
				for _, b := range s.Sizes {
					sized += b.Count
				}
				if s.Bytes != size || s.Block != block || s.Kept != tt.kept || s.Seconds <= 0 || s.Requests == 0 || sized != s.Requests {
					t.Errorf("%+v\nwant %d bytes, kept %v, and requests of some sizes", s, size, tt.kept)
				}
				// A request for each call, and to read one more may find the end.
				if few := s.Requests < calls; few != tt.kept || s.Requests > calls+1 {
					t.Errorf("%s took %d requests for %d calls", s.Op, s.Requests, calls)
				}
				if used := s.Cache != (cacheUse{}); used != tt.kept {
					t.Errorf("%s used the cache: %v, %+v", s.Op, used, s.Cache)
				}
			}
			if ahead := r.Cache.Ahead > 0; ahead != tt.kept {
				t.Errorf("read %d bytes ahead", r.Cache.Ahead)
			}
		})
	}
}

// TestStreamAgain reads a file again, which asks the server for nothing.
func TestStreamAgain(t *testing.T) {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()
	if err := srv.WriteFile("file", bytes.Repeat([]byte("0123456789"), 10_000)); err != nil {
		t.Fatal(err)
	}
	fsys, err := pagewire.Dial(t.Context(), srv.URL, &pagewire.Config{Options: "cache=singleclient"})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	s := Stream{FS: fsys, Name: "file", Block: 4 << 10, CPU: noCPU}
	once, err := s.Read(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	more, err := s.Read(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(more.Again) != 3 || more.Requests != once.Requests {
		t.Errorf("%d times again, %d requests after %d; want 3 times, none more", len(more.Again), more.Requests, once.Requests)
	}
	for _, p := range more.Again {
		if p.Seconds <= 0 || p.Memmove <= 0 {
			t.Errorf("a pass took no time: %+v", p)
		}
	}
	if _, err := s.readAgain(nil, nil, againMost+1, 1); err == nil {
		t.Error("memory was found for more than there may be")
	}
}

// TestReadAll reads to the end, in calls that may find less than they ask for.
func TestReadAll(t *testing.T) {
	r := io.MultiReader(strings.NewReader("abc"), strings.NewReader("de"))
	if n, err := readAll(r, make([]byte, 2)); n != 5 || err != nil {
		t.Errorf("read %d bytes, %v; want 5", n, err)
	}
	if _, err := readAll(io.MultiReader(r, failing{}), make([]byte, 2)); err != os.ErrDeadlineExceeded {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestWroteStream finds what may go wrong with a file that is written behind.
func TestWroteStream(t *testing.T) {
	const size = 64
	b := newBlock(size)
	var good []byte
	for call := range int64(3) {
		good = append(good, b.of(call, size)...)
	}
	name := filepath.Join(t.TempDir(), "file")
	for _, tt := range []struct {
		what   string
		change func(p []byte) []byte
		part   string
	}{
		{"nothing", func(p []byte) []byte { return p }, ""},
		{"short", func(p []byte) []byte { return p[:len(p)-1] }, "bytes, not"},
		{"long", func(p []byte) []byte { return append(p, 0) }, "bytes, not"},
		{"a byte", func(p []byte) []byte { p[size+20]++; return p }, "from 64 on"},
		{"a block again", func(p []byte) []byte { copy(p[size:], p[:size]); return p }, "from 64 on"},
	} {
		// The last of the three blocks is shorter.
		if err := os.WriteFile(name, tt.change(bytes.Clone(good[:2*size+30])), 0o600); err != nil {
			t.Fatal(err)
		}
		err := wroteStream(name, 2*size+30, size)
		if tt.part == "" && err != nil || tt.part != "" && (err == nil || !strings.Contains(err.Error(), tt.part)) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.part)
		}
	}
}
