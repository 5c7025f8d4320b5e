package pagewire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// readsAll makes the test binary be a program that reads a file, for what needs a
// process of its own: its value is where the file is.
const readsAll = "PAGEWIRE_TEST_READS_ALL"

// readAll is that program. It prints how much it has read, and the most memory that it
// had.
func readAll(url string) error {
	fsys, err := Dial(context.Background(), url, &Config{Options: "cachesize=64M"})
	if err != nil {
		return err
	}
	defer fsys.Close()
	f, err := fsys.Open("big")
	if err != nil {
		return err
	}
	n, p := int64(0), make([]byte, 1<<20)
	for err == nil {
		var m int
		m, err = f.Read(p)
		n += int64(m)
	}
	if err != io.EOF {
		return err
	}
	s := fsys.Stats().Cache
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for sc := bufio.NewScanner(bytes.NewReader(status)); sc.Scan(); {
		if peak, ok := strings.CutPrefix(sc.Text(), "VmHWM:"); ok {
			fmt.Println(n, s.Size, s.Ahead, s.Evicted, strings.TrimSuffix(strings.TrimSpace(peak), " kB"))
		}
	}
	return f.Close()
}

// TestFootprintAlloc streams a large file through a small cache: the process must not
// have much more memory than that.
func TestFootprintAlloc(t *testing.T) {
	const size, budget, rest = 4 << 30, 64 << 20, 64 << 20
	srv := sambatest.Start(t, sambatest.Config{})
	big, err := os.Create(filepath.Join(srv.Dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(size); err != nil {
		t.Fatal(err)
	}
	big.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), readsAll+"="+sambaURL(srv))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var n, cache, ahead, evicted, peak int64
	if _, err := fmt.Sscan(string(out), &n, &cache, &ahead, &evicted, &peak); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n != size || cache != budget || ahead < size*9/10 || evicted < size-budget {
		t.Errorf("%d bytes came through a cache of %d, %d of them ahead, and %d had to make room", n, cache, ahead, evicted)
	}
	if peak <<= 10; peak > budget+rest {
		t.Errorf("it had %d MiB at its peak, want %d at most", peak>>20, (budget+rest)>>20)
	} else {
		t.Logf("%d MiB at its peak", peak>>20)
	}
}

// TestHeapAlloc keeps much, all of which is off the Go heap.
func TestHeapAlloc(t *testing.T) {
	const size, most = 256 << 20, 4 << 20
	srv := sambatest.Start(t, sambatest.Config{})
	p := make([]byte, 1<<20)
	for _, c := range []struct {
		name string
		do   func(f *File, off int64) (int, error)
	}{
		{"written", func(f *File, off int64) (int, error) { return f.WriteAt(p, off) }},
		{"read", func(f *File, off int64) (int, error) { return f.ReadAt(p, off) }},
	} {
		fsys := dial(t, sambaURL(srv), "cachesize=320M")
		f := open(t, fsys, "big", os.O_RDWR|os.O_CREATE)
		granted(t, f)
		before := heap()
		for off := int64(0); off < size; off += int64(len(p)) {
			if n, err := c.do(f, off); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if s := fsys.Stats().Cache; s.Cached < size {
			t.Errorf("%s: only %d bytes are kept", c.name, s.Cached)
		}
		if grown := heap() - before; grown > most {
			t.Errorf("%s: the Go heap has grown by %d KiB to keep %d MiB, want %d KiB at most", c.name, grown>>10, size>>20, most>>10)
		} else {
			t.Logf("%s: the Go heap has grown by %d KiB", c.name, grown>>10)
		}
		shut(t, f)
	}
}

// heap returns how much is in use on the Go heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
