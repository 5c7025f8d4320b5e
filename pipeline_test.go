package pagewire

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// TestTransferWindow checks that as many requests as the window has are in
// flight, that they are of its size, and that both may change.
func TestTransferWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay, size, requests = time.Second, 1 << 20, 64
		fake, fsys := newFake(t, remotetest.Config{
			Delay: delay, Limits: remote.Limits{Read: size, Write: size}, Window: remote.Window{Requests: 8, Size: size},
		})
		fake.Put("a", make([]byte, size*requests))
		for _, c := range []struct {
			name   string
			window remote.Window
			trips  int
		}{
			{"8", remote.Window{Requests: 8}, requests / 8},
			{"16", remote.Window{Requests: 16}, requests / 16},
			{"1", remote.Window{Requests: 1}, requests},
			{"8 of a quarter", remote.Window{Requests: 8, Size: size / 4}, 4 * requests / 8},
		} {
			fake.Set(func(cfg *remotetest.Config) { cfg.Window = c.window })
			f, err := fsys.Open("a")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			n, err := f.(*File).WriteTo(io.Discard)
			// One more trip asks whether that was all, unless there is room for it.
			trips := int(time.Since(start) / delay)
			if n != size*requests || err != nil || trips != c.trips && trips != c.trips+1 {
				t.Errorf("window %s: %d bytes, %v, after %d round trips, want %d", c.name, n, err, trips, c.trips)
			}
			f.Close()
		}

		// It is followed both ways during a transfer.
		fake.Set(func(cfg *remotetest.Config) { cfg.Window = remote.Window{Requests: 2} })
		f, err := fsys.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		done := make(chan struct{})
		go func() { f.(*File).WriteTo(io.Discard); close(done) }()
		flying := func() int { synctest.Wait(); return fsys.Stats().Read.InFlight }
		few := flying()
		fake.Set(func(cfg *remotetest.Config) { cfg.Window.Requests = 10 })
		<-time.After(5 * delay)
		many := flying()
		fake.Set(func(cfg *remotetest.Config) { cfg.Window.Requests = 3 })
		<-time.After(2 * delay)
		three := flying()
		if few != 2 || many != 10 || three != 3 {
			t.Errorf("in flight: %d, %d, %d, want 2, 10, 3", few, many, three)
		}
		<-done
		idle(t, fsys)
	})
}

// TestTransfersShareTheWindow checks that many transfers at once have one window,
// and each its share.
func TestTransfersShareTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay, unit = time.Second, 1 << 10
		flying := map[string]int{} // requests by file; guarded by mu
		var mu sync.Mutex
		count := func(name string, n int) {
			mu.Lock()
			defer mu.Unlock()
			flying[name] += n
		}
		fake, fsys := newFake(t, remotetest.Config{
			Limits: remote.Limits{Read: unit}, Window: remote.Window{Requests: 8},
			Hook: func(_ context.Context, op remotetest.Op) error {
				if op.Call == "ReadAt" {
					count(string(op.At.Node), 1)
					defer count(string(op.At.Node), -1)
					<-time.After(delay)
				}
				return nil
			},
		})
		var wg sync.WaitGroup
		start := func(name string, requests int) {
			fake.Put(name, make([]byte, requests*unit))
			wg.Go(func() {
				f, err := fsys.Open(name)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if n, err := f.(*File).WriteTo(io.Discard); n != int64(requests*unit) || err != nil {
					t.Errorf("%s: %d, %v", name, n, err)
				}
			})
		}
		check := func(want map[string]int) {
			t.Helper()
			<-time.After(5*delay + delay/4)
			mu.Lock()
			defer mu.Unlock()
			for name, n := range want {
				if flying[name] != n {
					t.Errorf("in flight: %v, want %v", flying, want)
					return
				}
			}
		}
		start("first", 400)
		check(map[string]int{"first": 8})
		start("second", 100)
		check(map[string]int{"first": 4, "second": 4})
		start("third", 20)
		start("fourth", 20)
		check(map[string]int{"first": 2, "second": 2, "third": 2, "fourth": 2})
		wg.Wait()
		if s := fsys.Stats(); s.Read.MaxInFlight > 16 {
			t.Errorf("%d requests in flight while the shares changed, want 16 at most", s.Read.MaxInFlight)
		}
		idle(t, fsys)
	})
}

// memory is a file that costs nothing, to count what the rest costs.
type memory struct {
	remote.File
	data  []byte
	calls atomic.Int64
}

// memoryVolume has one file.
type memoryVolume struct {
	remote.Volume
	memory *memory
}

func (v memoryVolume) Open(context.Context, remote.At, remote.How, remote.Events) (remote.Opened, error) {
	return remote.Opened{File: v.memory, Open: memoryOpen{}, Attr: remote.Attr{Size: int64(len(v.memory.data))}}, nil
}

func (v memoryVolume) Limits() remote.Limits { return v.memory.Limits() }
func (v memoryVolume) Flow() remote.Flow     { return v.memory.Flow() }

func (m *memory) Limits() remote.Limits { return remote.Limits{Read: 64 << 10, Write: 64 << 10} }
func (m *memory) Flow() remote.Flow     { return m }
func (m *memory) Window(remote.Direction) remote.Window {
	return remote.Window{Requests: 8, Size: 64 << 10}
}

func (m *memory) ReadAt(_ context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	m.calls.Add(1)
	n = copy(into[0], m.data[min(req.Off, int64(len(m.data))):])
	return n, n == 0, nil
}

func (m *memory) WriteAt(_ context.Context, req remote.Req, w remote.Write) (n int, stable bool, err error) {
	m.calls.Add(1)
	return copy(m.data[req.Off:], w.Data[0]), false, nil
}

func (m *memory) GetAttr(context.Context, remote.Open) (remote.Attr, error) {
	return remote.Attr{Size: int64(len(m.data))}, nil
}

type memoryOpen struct{}

func (memoryOpen) Append(context.Context, [][]byte) (int64, int, error) { return 0, 0, fs.ErrInvalid }
func (memoryOpen) Close(context.Context) error                          { return nil }

// TestEndIsFound counts the requests for files that end where they seemed to, of a
// server that tells of the end those only who ask for nothing else.
func TestEndIsFound(t *testing.T) {
	const unit = 64 << 10
	for _, c := range []struct{ size, requests int }{
		{0, 1}, {1, 1}, {4096, 1}, {unit - 1, 1}, {unit, 2}, {unit + 1, 2}, {10 * unit, 11}, {10*unit + 5, 11},
	} {
		m := &memory{data: randomBytes(c.size)}
		fsys := newVolumeFS(t, memoryVolume{memory: m})
		f, err := fsys.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.(*File).WriteTo(io.Discard)
		if got := m.calls.Load(); n != int64(c.size) || err != nil || got != int64(c.requests) {
			t.Errorf("%d bytes: n %d, err %v, %d requests, want %d", c.size, n, err, got, c.requests)
		}
	}
}

// TestAllocations moves 512 requests each way, and counts what is allocated.
func TestAllocations(t *testing.T) {
	m := &memory{data: randomBytes(32 << 20)}
	fsys := newVolumeFS(t, memoryVolume{memory: m})
	f, err := fsys.OpenFile(t.Context(), "a", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	small := make([]byte, 4096)
	requests := len(m.data) / (64 << 10)
	for _, c := range []struct {
		name string
		runs int
		most float64
		call func() error
	}{
		{"ReadAt", 100, 0, func() error { _, err := f.ReadAt(small, 8192); return err }},
		{"WriteAt", 100, 0, func() error { _, err := f.WriteAt(small, 8192); return err }},
		{"to a regular file", 2, 100, func() error { local.Seek(0, io.SeekStart); _, err := f.WriteTo(local); return err }},
		{"to /dev/null", 2, 100, func() error { _, err := f.WriteTo(null); return err }},
		{"from a regular file", 2, 100, func() error { local.Seek(0, io.SeekStart); _, err := f.ReadFrom(local); return err }},
		{"from a stream", 2, 100, func() error { _, err := f.ReadFrom(bytes.NewReader(m.data)); return err }},
	} {
		before := m.calls.Load()
		allocs := testing.AllocsPerRun(c.runs, func() {
			f.Seek(0, io.SeekStart)
			if err := c.call(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		if allocs > c.most {
			t.Errorf("%s: %.0f allocations, want at most %.0f", c.name, allocs, c.most)
		}
		if n := m.calls.Load() - before; c.most > 0 && n < int64(3*requests) {
			t.Errorf("%s: %d requests in 3 runs, want %d each", c.name, n, requests)
		}
	}
}
