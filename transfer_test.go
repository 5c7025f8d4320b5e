package pagewire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func randomBytes(n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(p)
	return p
}

// jumbled makes requests of a Fake be served in any order, and lets few bytes
// pass.
func jumbled(cfg remotetest.Config) remotetest.Config {
	cfg.Hook = func(context.Context, remotetest.Op) error {
		for range rand.IntN(20) {
			runtime.Gosched()
		}
		return nil
	}
	return cfg
}

// bothWays are the ways that bytes can go, by what is on the local side. What
// they have in common is tested on each.
var bothWays = []struct {
	name string
	out  func(f *File, dir string) (data []byte, n int64, err error)
	in   func(f *File, data []byte, dir string) (n int64, err error)
}{
	{
		name: "regular file",
		out: func(f *File, dir string) ([]byte, int64, error) {
			local, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				return nil, 0, err
			}
			defer local.Close()
			io.WriteString(local, "head")
			n, err := io.Copy(local, f)
			if off, _ := local.Seek(0, io.SeekCurrent); off != n+4 {
				err = errors.Join(err, fmt.Errorf("local offset %d after %d bytes", off, n))
			}
			data, _ := os.ReadFile(local.Name())
			return data[4:], n, err
		},
		in: func(f *File, data []byte, dir string) (int64, error) {
			local, err := os.Create(filepath.Join(dir, "in"))
			if err != nil {
				return 0, err
			}
			defer local.Close()
			local.Write(append([]byte("head"), data...))
			local.Seek(4, io.SeekStart)
			n, err := io.Copy(f, local)
			if off, _ := local.Seek(0, io.SeekCurrent); off != n+4 {
				err = errors.Join(err, fmt.Errorf("local offset %d after %d bytes", off, n))
			}
			return n, err
		},
	},
	{
		name: "appended file and short reads",
		out: func(f *File, dir string) ([]byte, int64, error) {
			local, err := os.OpenFile(filepath.Join(dir, "append"), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o666)
			if err != nil {
				return nil, 0, err
			}
			defer local.Close()
			n, err := f.WriteTo(local)
			data, _ := os.ReadFile(local.Name())
			return data, n, err
		},
		in: func(f *File, data []byte, _ string) (int64, error) {
			return f.ReadFrom(iotest.HalfReader(bytes.NewReader(data)))
		},
	},
	{
		name: "pipe",
		out: func(f *File, _ string) (data []byte, n int64, err error) {
			r, w, err := os.Pipe()
			if err != nil {
				return nil, 0, err
			}
			defer r.Close()
			var wg sync.WaitGroup
			wg.Go(func() { data, _ = io.ReadAll(r) })
			n, err = f.WriteTo(w)
			w.Close()
			wg.Wait()
			return data, n, err
		},
		in: func(f *File, data []byte, _ string) (int64, error) {
			r, w, err := os.Pipe()
			if err != nil {
				return 0, err
			}
			defer r.Close()
			var wg sync.WaitGroup
			wg.Go(func() { w.Write(data); w.Close() })
			defer wg.Wait()
			return io.Copy(f, r)
		},
	},
	{
		name: "memory",
		out: func(f *File, _ string) ([]byte, int64, error) {
			info, err := f.Stat()
			if err != nil {
				return nil, 0, err
			}
			data := make([]byte, info.Size())
			n, err := f.ReadAt(data, 0)
			f.progress.Store(int64(n)) // which only transfers keep
			return data[:n], int64(n), err
		},
		in: func(f *File, data []byte, _ string) (int64, error) {
			n, err := f.WriteAt(data, 0)
			f.progress.Store(int64(n))
			return int64(n), err
		},
	},
}

// idle checks that nothing is left of transfers.
func idle(t *testing.T, fsys *FS) {
	t.Helper()
	for d := range fsys.share.crowd {
		c := &fsys.share.crowd[d]
		if c.workers.Load() != 0 || c.transfers.Load() != 0 {
			t.Errorf("%d workers of %d transfers left", c.workers.Load(), c.transfers.Load())
		}
	}
	if s := fsys.Stats(); s.Read.InFlight != 0 || s.Write.InFlight != 0 {
		t.Errorf("in flight: %d reads, %d writes", s.Read.InFlight, s.Write.InFlight)
	}
}

func TestTransfers(t *testing.T) {
	const unit = 1000
	for _, way := range bothWays {
		for _, size := range []int{0, 1, unit - 1, unit, unit + 1, 8 * unit, 100*unit + 7} {
			t.Run(fmt.Sprint(way.name, "/", size), func(t *testing.T) {
				fake, fsys := newFake(t, jumbled(remotetest.Config{
					Limits: remote.Limits{Read: unit, Write: unit}, ShortRead: unit - 300, ShortWrite: unit - 400,
					Window: remote.Window{Requests: 6, Size: unit},
				}))
				want := randomBytes(size)
				fake.Put("a", want)
				a, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				got, n, err := way.out(a, t.TempDir())
				if err != nil || n != int64(size) || !bytes.Equal(got, want) {
					t.Errorf("out: n %d, err %v, %d bytes which are right: %v", n, err, len(got), bytes.Equal(got, want))
				}
				b, err := fsys.Create(t.Context(), "b")
				if err != nil {
					t.Fatal(err)
				}
				n, err = way.in(b, want, t.TempDir())
				if got, _ := fake.Bytes("b"); err != nil || n != int64(size) || !bytes.Equal(got, want) {
					t.Errorf("in: n %d, err %v, %d bytes which are right: %v", n, err, len(got), bytes.Equal(got, want))
				}
				if a.Progress() != int64(size) || b.Progress() != int64(size) {
					t.Errorf("progress %d and %d, want %d", a.Progress(), b.Progress(), size)
				}
				if fake.Peak() > 6 {
					t.Errorf("%d requests in flight, want no more than the window of 6", fake.Peak())
				}
				idle(t, fsys)
			})
		}
	}
}

func TestTransferErrors(t *testing.T) {
	const unit = 1000
	broken := errors.New("broken")
	for _, way := range bothWays {
		t.Run(way.name, func(t *testing.T) {
			for range 20 {
				bad := int64(rand.IntN(50)) * unit
				cfg := jumbled(remotetest.Config{Limits: remote.Limits{Read: unit, Write: unit}, Window: remote.Window{Requests: 6}})
				order := cfg.Hook
				cfg.Hook = func(ctx context.Context, op remotetest.Op) error {
					order(ctx, op)
					if (op.Call == "ReadAt" || op.Call == "WriteAt") && op.Off == bad {
						return broken
					}
					return nil
				}
				fake, fsys := newFake(t, cfg)
				want := randomBytes(50 * unit)
				fake.Put("a", want)
				a, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				var pe *fs.PathError
				got, n, err := way.out(a, t.TempDir())
				if !errors.Is(err, broken) || !errors.As(err, &pe) || pe.Op != "read" || n > bad || !bytes.Equal(got[:n], want[:n]) {
					t.Errorf("out: n %d, err %v, want no more than %d good bytes and %v", n, err, bad, broken)
				}
				b, err := fsys.Create(t.Context(), "b")
				if err != nil {
					t.Fatal(err)
				}
				n, err = way.in(b, want, t.TempDir())
				if got, _ := fake.Bytes("b"); !errors.Is(err, broken) || !errors.As(err, &pe) || pe.Op != "write" || n > bad || !bytes.Equal(got[:n], want[:n]) {
					t.Errorf("in: n %d, err %v, want no more than %d good bytes and %v", n, err, bad, broken)
				}
				idle(t, fsys)
			}
		})
	}
}

// TestOrderedDeliveryBeforeError checks that a stream gets all that is before an
// error, and nothing else.
func TestOrderedDeliveryBeforeError(t *testing.T) {
	broken := errors.New("broken")
	cfg := jumbled(remotetest.Config{Limits: remote.Limits{Read: 10}})
	order := cfg.Hook
	cfg.Hook = func(ctx context.Context, op remotetest.Op) error {
		order(ctx, op)
		if op.Call == "ReadAt" && op.Off == 530 {
			return broken
		}
		return nil
	}
	fake, fsys := newFake(t, cfg)
	want := randomBytes(2000)
	fake.Put("a", want)
	for range 50 {
		f, err := fsys.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		n, err := f.(*File).WriteTo(&got)
		if n != 530 || !errors.Is(err, broken) || !bytes.Equal(got.Bytes(), want[:530]) {
			t.Fatalf("n %d, err %v, %d bytes; want the 530 before the error", n, err, got.Len())
		}
		if off, _ := f.(*File).Seek(0, io.SeekCurrent); off != 530 {
			t.Errorf("offset %d, want 530", off)
		}
		f.Close()
	}
	idle(t, fsys)
}

type fullDisk struct {
	io.Writer
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Writer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestLocalErrors(t *testing.T) {
	fake, fsys := newFake(t, jumbled(remotetest.Config{Limits: remote.Limits{Read: 100, Write: 100}}))
	want := randomBytes(10000)
	fake.Put("a", want)
	f, err := fsys.OpenFile(t.Context(), "a", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	n, err := f.WriteTo(&fullDisk{&got, 3333})
	if n != 3333 || err != syscall.ENOSPC || !bytes.Equal(got.Bytes(), want[:n]) {
		t.Errorf("full disk: n %d, err %v, want 3333 and a bare ENOSPC", n, err)
	}
	local, err := os.Open(os.Args[0]) // not to be written
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if n, err := f.WriteTo(local); n != 0 || !errors.Is(err, syscall.EBADF) {
		t.Errorf("into a file that is open to read: n %d, err %v, want EBADF", n, err)
	}

	torn := errors.New("torn tape")
	f.Seek(0, io.SeekStart)
	n, err = f.ReadFrom(io.MultiReader(bytes.NewReader(want[5000:5555]), iotest.ErrReader(torn)))
	if written, _ := fake.Bytes("a"); n != 555 || err != torn || !bytes.Equal(written[:555], want[5000:5555]) {
		t.Errorf("torn source: n %d, err %v, want 555 and the bare error", n, err)
	}
	idle(t, fsys)
}

// TestSizeIsWrong copies files that are longer and shorter than they seemed.
func TestSizeIsWrong(t *testing.T) {
	for _, way := range bothWays[:3] {
		fake, fsys := newFake(t, jumbled(remotetest.Config{Limits: remote.Limits{Read: 100}}))
		for _, size := range []int{0, 1, 4950, 5000, 5001, 200000} {
			fake.Put("a", make([]byte, 5000))
			f, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			other, err := fsys.OpenFile(t.Context(), "a", os.O_RDWR|os.O_TRUNC, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := randomBytes(size)
			other.WriteAt(want, 0)
			if got, n, err := way.out(f, t.TempDir()); n != int64(size) || err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes that seemed to be 5000: n %d, %v", way.name, size, n, err)
			}
			f.Close()
			other.Close()
		}
		idle(t, fsys)
	}
}

// early is a volume whose server ends every file after 1000 bytes, whatever it
// says of their size.
type early struct{ remote.Volume }

type earlyFile struct{ remote.File }

func (v early) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (remote.Opened, error) {
	o, err := v.Volume.Open(ctx, at, how, events)
	o.File = earlyFile{o.File}
	return o, err
}

func (f earlyFile) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	if req.Off >= 1000 {
		return 0, true, nil
	}
	return f.File.ReadAt(ctx, req, into)
}

func TestEndsTooEarly(t *testing.T) {
	for _, way := range bothWays[:3] {
		fake, fsys := newFake(t, jumbled(remotetest.Config{Limits: remote.Limits{Read: 100}}))
		fake.Put("a", randomBytes(5000))
		replaceVolume(fsys, early{fake})
		f, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, n, err := way.out(f, t.TempDir()); n != 1000 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: n %d, %v; want 1000, %v", way.name, n, err, io.ErrUnexpectedEOF)
		}
		f.Close()
		idle(t, fsys)
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, fsys := newFake(t, remotetest.Config{Limits: remote.Limits{Read: 10, Write: 10}})
		fake.Put("a", make([]byte, 1000))
		f, err := fsys.OpenFile(t.Context(), "a", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		fake.Set(func(cfg *remotetest.Config) { cfg.Delay = time.Hour })
		calls := map[string]func() error{
			"ReadAt":   func() error { _, err := f.ReadAt(make([]byte, 5), 0); return err },
			"ReadAt+":  func() error { _, err := f.ReadAt(make([]byte, 500), 0); return err },
			"WriteAt":  func() error { _, err := f.WriteAt(make([]byte, 5), 0); return err },
			"WriteTo":  func() error { _, err := f.WriteTo(io.Discard); return err },
			"ReadFrom": func() error { _, err := f.ReadFrom(bytes.NewReader(make([]byte, 500))); return err },
			"Sync":     f.Sync,
			"Truncate": func() error { return f.Truncate(3) },
		}
		for name, call := range calls {
			f.SetDeadline(time.Now().Add(time.Minute))
			start := time.Now()
			if err := call(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%s: %v after %v, want ErrDeadlineExceeded after 1m", name, err, time.Since(start))
			}
			f.SetDeadline(time.Now().Add(-time.Minute))
			if err := call(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s after the deadline: %v, want ErrDeadlineExceeded", name, err)
			}
		}
		// A deadline that moves takes calls that run along.
		f.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			<-time.After(30 * time.Second)
			f.SetDeadline(time.Now().Add(30 * time.Minute))
		}()
		start := time.Now()
		if _, err := f.ReadAt(make([]byte, 5), 0); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 30*time.Minute+30*time.Second {
			t.Errorf("moved: %v after %v, want ErrDeadlineExceeded after 30m30s", err, time.Since(start))
		}
		f.SetDeadline(time.Time{})
		if _, err := f.ReadAt(make([]byte, 5), 0); err != nil {
			t.Errorf("without a deadline: %v", err)
		}
		idle(t, fsys)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.ReadAtContext(ctx, make([]byte, 500), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ReadAtContext: %v, want its context's error", err)
		}
		done := make(chan error)
		go func() { _, err := f.WriteTo(io.Discard); done <- err }()
		synctest.Wait()
		fake.Set(func(cfg *remotetest.Config) { cfg.Delay = 0 })
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, fs.ErrClosed) {
			t.Errorf("WriteTo during Close: %v, want ErrClosed", err)
		}
	})
}

// TestRemoteToRemote copies between two files without a local one in between.
func TestRemoteToRemote(t *testing.T) {
	fake, fsys := newFake(t, jumbled(remotetest.Config{Limits: remote.Limits{Read: 100, Write: 70}}))
	want := randomBytes(12345)
	fake.Put("a", want)
	a, err := fsys.OpenFile(t.Context(), "a", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fsys.Create(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(b, a)
	if got, _ := fake.Bytes("b"); n != int64(len(want)) || err != nil || !bytes.Equal(got, want) {
		t.Errorf("n %d, err %v", n, err)
	}
	if off, _ := b.Seek(0, io.SeekCurrent); off != n {
		t.Errorf("offset %d after %d bytes", off, n)
	}
}
