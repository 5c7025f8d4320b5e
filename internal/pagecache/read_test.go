package pagecache

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/meter"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestAMegabyteLandsInOneRun(t *testing.T) {
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, noise(4<<20))
	o := r.open()
	r.same("bytes", r.read(o, 1<<20, 1<<20), noise(4 << 20)[1<<20:2<<20])
	if runs := r.f.chunks[0].runs; len(runs) != 1 || runs[0].r.Len() != 1<<20 {
		t.Errorf("%d runs, the first of %d bytes, want one of a megabyte", len(runs), runs[0].r.Len())
	}
	must(t, o.Close(ctx))
}

func TestRandomReadsFetchWhatIsAsked(t *testing.T) {
	for _, page := range []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		traffic := new(meter.Meter)
		data := noise(16 << 20)
		r := newRig(t, Config{PageSize: page, Budget: 32 << 20}, FileConfig{Reads: traffic}, remotetest.Config{}, data)
		o := r.open()
		rng, asked := rand.New(rand.NewPCG(1, 2)), int64(0)
		for range 200 {
			off := rng.Int64N(int64(len(data)-4096)) &^ 4095
			r.same("bytes", r.read(o, off, 4096), data[off:off+4096])
			asked += 4096
		}
		if got := traffic.Snapshot().Bytes; got > asked*105/100 {
			t.Errorf("pages of %d: %d bytes read for %d", page, got, asked)
		}
		must(t, o.Close(ctx))
	}
}

// A page may be larger than what one request carries.
func TestLargePagesAreFilledByRequestsAtOnce(t *testing.T) {
	for _, page := range []int{64 << 10, 256 << 10, 1 << 20} {
		for _, limit := range []int{16 << 10, 60 << 10, 64 << 10, 100_000} {
			synctest.Test(t, func(t *testing.T) {
				data := noise(3<<20 + 77)
				r := newRig(t, Config{PageSize: page, Budget: 16 << 20}, FileConfig{},
					remotetest.Config{Limits: remote.Limits{Read: limit}, Delay: 1}, data)
				o := r.open()
				r.same("bytes", r.read(o, 0, len(data)+5), data)
				if page > 2*limit && r.fake.Peak() < page/limit {
					t.Errorf("pages of %d, requests of %d: %d in flight at most, want %d", page, limit, r.fake.Peak(), page/limit)
				}
				r.same("bytes again", r.read(o, 4321, 1<<20), data[4321:4321+1<<20])
				must(t, o.Close(ctx))
			})
		}
	}
}

func TestOddLimits(t *testing.T) {
	data := noise(1<<20 + 1)
	for _, limit := range []int{1000, 60 << 10, 65_000, 100_000} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Limits: remote.Limits{Read: limit, Write: limit}}, data)
		o := r.open()
		r.same("bytes", r.read(o, 0, len(data)), data)
		if got, want := r.reads(), (len(data)+limit/4096*4096)/max(limit/4096*4096, 1000); limit > 4096 && got > want+8 {
			t.Errorf("requests of %d bytes: %d of them, want %d", limit, got, want)
		}
		must(t, o.Close(ctx))
	}
}

func TestShortReadsGoOn(t *testing.T) {
	data := noise(300_000)
	r := newRig(t, Config{}, FileConfig{}, remotetest.Config{ShortRead: 10_000}, data)
	o := r.open()
	r.same("bytes", r.read(o, 0, len(data)+1), data)
	must(t, o.Close(ctx))
}

func TestReadErrorsAreReported(t *testing.T) {
	data := noise(4 << 20)
	for _, late := range []int64{0, 1 << 20} { // where it goes wrong
		r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		tries := 0
		r.hook(func(_ context.Context, op remotetest.Op) error {
			if tries++; tries == 100 {
				t.Error("it is tried for ever")
			}
			if tries < 100 && op.Call == "ReadAt" && op.Off >= late {
				return syscall.EIO
			}
			return nil
		})
		p := make([]byte, 2<<20)
		if n, err := o.ReadAt(ctx, p, 0); int64(n) != late || !errors.Is(err, syscall.EIO) {
			t.Errorf("read %d bytes, %v, want %d and EIO", n, err, late)
		}
		r.hook(nil)
		r.same("bytes after that", r.read(o, 0, len(p)), data[:len(p)])
		must(t, o.Close(ctx))
	}
}

// deafFile answers reads with nothing, neither bytes nor the end.
type deafFile struct{ remote.File }

func (deafFile) ReadAt(context.Context, remote.Req, [][]byte) (int, bool, error) {
	return 0, false, nil
}
func (deafFile) WriteAt(context.Context, remote.Req, remote.Write) (int, bool, error) {
	return 0, false, nil
}

func TestNoProgressIsAnError(t *testing.T) {
	for _, mode := range []Mode{Strict, None} {
		r := newRig(t, Config{}, FileConfig{Mode: mode}, remotetest.Config{}, noise(100))
		o := r.open()
		o.server = deafFile{o.server}
		if _, err := o.ReadAt(ctx, make([]byte, 10), 0); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("mode %d: read: %v, want ErrNoProgress", mode, err)
		}
		_, err := o.WriteAt(ctx, make([]byte, 10), 0)
		if err == nil {
			err = o.Sync(ctx)
		}
		if !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("mode %d: write: %v, want ErrShortWrite", mode, err)
		}
		o.Close(ctx)
	}
}

// Who waits for another's read tries it himself, if that one gives up.
func TestAReadOutlivesWhoAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(4096)
		r := newRig(t, Config{}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		g := r.stop("ReadAt")
		first, cancel := context.WithCancel(ctx)
		gone := make(chan error)
		go func() {
			_, err := o.ReadAt(first, make([]byte, 4096), 0)
			gone <- err
		}()
		synctest.Wait()
		came := make(chan []byte)
		go func() { came <- r.read(o, 0, 4096) }()
		synctest.Wait()
		if r.reads() != 1 {
			t.Errorf("%d requests, want one for both", r.reads())
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the first read: %v, want Canceled", err)
		}
		close(g)
		r.same("bytes", <-came, data)
		must(t, o.Close(ctx))
	})
}

func TestReadsAtTheEdges(t *testing.T) {
	const most = 1<<63 - 1
	for _, mode := range []Mode{Strict, None} {
		r := newRig(t, Config{}, FileConfig{Mode: mode}, remotetest.Config{}, noise(100))
		o := r.open()
		for _, c := range []struct {
			off  int64
			n    int
			want int
			err  error
		}{
			{0, 0, 0, nil}, {100, 0, 0, nil}, {most, 0, 0, nil}, {90, 20, 10, io.EOF}, {100, 1, 0, io.EOF}, {1 << 40, 5, 0, io.EOF},
			{maxFile - 1, 3 << 20, 0, io.EOF}, {maxFile, 1, 0, io.EOF}, {most - 5, 5, 0, io.EOF}, {most - 3<<20, 3 << 20, 0, io.EOF},
			{most, 1, 0, syscall.EINVAL}, {most - 10, 4096, 0, syscall.EINVAL}, {-1, 1, 0, syscall.EINVAL},
		} {
			if n, err := o.ReadAt(ctx, make([]byte, c.n), c.off); n != c.want || err != c.err {
				t.Errorf("mode %d: %d bytes at %d: %d, %v, want %d, %v", mode, c.n, c.off, n, err, c.want, c.err)
			}
		}
		for _, off := range []int64{100, 1 << 40, maxFile - 1, maxFile, most - 1, most} {
			if n, _, err := o.Stream(ctx, off, func([]byte) error { return nil }); n != 0 || err != nil {
				t.Errorf("mode %d: stream from %d: %d, %v", mode, off, n, err)
			}
		}
		must(t, o.Close(ctx))
	}
}

// Who waits for the first of many bytes does not fetch the last ones again and again,
// because there is no room for them.
func TestReadsOfMoreThanFitsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(1 << 20)
		r := newRig(t, Config{Budget: 64 << 10}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		g := make(gate)
		r.hook(func(ctx context.Context, op remotetest.Op) error {
			if r.reads() > 1000 {
				return syscall.EIO
			}
			if op.Off == 0 {
				return g.pass(ctx)
			}
			return nil
		})
		first := make(chan []byte)
		go func() { first <- r.read(o, 0, 1000) }()
		synctest.Wait()
		whole := make(chan []byte)
		go func() { whole <- r.read(o, 0, len(data)) }()
		synctest.Wait()
		close(g)
		r.same("first bytes", <-first, data[:1000])
		r.same("bytes", <-whole, data)
		if n, most := r.reads(), 2*len(data)/(64<<10/8); n > most {
			t.Errorf("%d requests, want %d at most", n, most)
		}
		must(t, o.Close(ctx))
	})
}

// One who reads much at once has as many requests in flight as the path wants, and no
// more.
func TestLargeReadsKeepToTheWindow(t *testing.T) {
	for _, mode := range []Mode{Strict, None} {
		synctest.Test(t, func(t *testing.T) {
			data := noise(4 << 20)
			r := newRig(t, Config{Budget: 64 << 20}, FileConfig{Mode: mode},
				remotetest.Config{Window: remote.Window{Requests: 4, Size: 64 << 10}, Delay: time.Second}, data)
			o := r.open()
			start := time.Now()
			r.same("bytes", r.read(o, 0, len(data)), data)
			if took := time.Since(start); took != 16*time.Second {
				t.Errorf("mode %d: it took %v, want 64 requests, four at a time, 16s", mode, took)
			}
			if r.fake.Peak() != 4 {
				t.Errorf("mode %d: %d requests in flight at most, want 4", mode, r.fake.Peak())
			}
			must(t, o.Close(ctx))
		})
	}
}
