package pagecache

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// another returns another file of the rig's server and cache, open.
func (r *rig) another(name string, data []byte) *Open {
	r.t.Helper()
	r.fake.Put(name, data)
	f := r.c.NewFile(FileConfig{})
	access := remote.ForRead | remote.ForWrite
	opened, err := r.fake.Open(ctx, remote.At{Name: name}, remote.How{Access: access, Rights: f.Wants()}, f)
	must(r.t, err)
	return f.Attach(opened, access, false)
}

// All of the memory is dirty, and the server takes nothing for a while.
func TestReadersWhileNothingIsWritten(t *testing.T) {
	for _, page := range []int{4 << 10, 64 << 10, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{PageSize: page, Budget: int64(4 * page)}, FileConfig{}, remotetest.Config{}, nil)
			o := r.open()
			data := noise(3 * page)
			other := r.another("other", data)
			g := r.stop("WriteAt")
			wrote := make(chan bool)
			go func() {
				defer close(wrote)
				for i := range int64(10) { // a bit of each page
					r.write(o, i*int64(page), []byte{byte(i)})
				}
			}()
			synctest.Wait()
			if n := r.c.Stats().Cached; n != int64(4*page) {
				t.Errorf("%d bytes of memory in use, want all %d", n, 4*page)
			}
			r.same("another file", r.read(other, 0, len(data)), data)
			streamed := 0
			if _, kept, err := other.Stream(ctx, 0, func(p []byte) error {
				if !bytes.Equal(p, data[streamed:streamed+len(p)]) {
					t.Errorf("streamed other bytes at %d", streamed)
				}
				streamed += len(p)
				return nil
			}); streamed != len(data) || !kept || err != nil {
				t.Errorf("streamed %d bytes, %v, %v", streamed, kept, err)
			}
			r.same("the file itself", r.read(o, int64(page)-1, 2), []byte{0, 1})
			close(g)
			<-wrote
			must(t, o.Close(ctx))
			must(t, other.Close(ctx))
			want := make([]byte, 9*page+1)
			for i := range 10 {
				want[i*page] = byte(i)
			}
			r.same("the server", r.bytes(), want)
		})
	}
}

// All of the memory is for what is under way to readers. Who writes does not wait for
// them.
func TestAWriterAmongReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = 64 << 10
		r := newRig(t, Config{PageSize: page, Budget: 4 * page}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		other := r.another("other", noise(8*page))
		g := r.stop("ReadAt")
		var wg sync.WaitGroup
		for i := range int64(4) { // all of the memory is for what is under way
			wg.Go(func() { r.read(other, i*page, page) })
			synctest.Wait()
		}
		r.write(o, 0, []byte("not kept waiting"))
		close(g)
		wg.Wait()
		r.same("bytes", r.read(o, 0, 100), []byte("not kept waiting"))
		must(t, o.Close(ctx))
		must(t, other.Close(ctx))
		r.same("the server", r.bytes(), []byte("not kept waiting"))
	})
}

// Many do everything at once in a cache that is much too small.
func TestMoreThanThereIsRoomFor(t *testing.T) {
	for _, page := range []int{4 << 10, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			const workers, piece = 8, 100_000
			r := newRig(t, Config{PageSize: page, Budget: int64(4 * page)}, FileConfig{}, remotetest.Config{Delay: time.Millisecond}, nil)
			opens := []*Open{r.open(), r.another("a", nil), r.another("b", nil), r.openStable()}
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					o := opens[w%len(opens)]
					rng := rand.New(rand.NewPCG(uint64(w), 1))
					base, size := int64(w)*1<<20, 1<<20-piece
					have := make([]byte, 1<<20)
					for i := range 20 {
						off, n := rng.IntN(size), 1+rng.IntN(piece)
						p := bytes.Repeat([]byte{byte(i + w)}, n)
						r.write(o, base+int64(off), p)
						copy(have[off:], p)
						off, n = rng.IntN(size), 1+rng.IntN(piece)
						got := r.read(o, base+int64(off), n)
						r.same("what this one wrote", got, have[off:off+len(got)])
						if i%10 == 9 {
							must(t, o.Sync(ctx))
						}
					}
				})
			}
			wg.Wait()
			for _, o := range opens {
				must(t, o.Close(ctx))
			}
			if s := r.c.Stats(); s.Dirty != 0 {
				t.Errorf("%d bytes are still dirty", s.Dirty)
			}
		})
	}
}

// What is read again and again does not keep others from getting memory.
func TestAHotCacheGivesWay(t *testing.T) {
	const page = 64 << 10
	r := newRig(t, Config{PageSize: page, Budget: 4 * page}, FileConfig{}, remotetest.Config{}, noise(4*page))
	o := r.open()
	r.read(o, 0, 4*page)
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range int64(4) {
		wg.Go(func() {
			p := make([]byte, 10)
			for ctx.Err() == nil {
				o.ReadAt(ctx, p, i*page)
			}
		})
	}
	other := r.another("other", nil)
	r.write(other, 0, noise(page))
	stop()
	wg.Wait()
	must(t, o.Close(context.Background()))
	must(t, other.Close(context.Background()))
}
