package pagecache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// log notes where the requests to write begin and end.
func (r *rig) log() (ends func() [][2]int64) {
	var mu sync.Mutex
	var all [][2]int64
	r.hook(func(_ context.Context, op remotetest.Op) error {
		if op.Call == "WriteAt" {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, [2]int64{op.Off, op.Off + int64(op.Len)})
		}
		return nil
	})
	return func() [][2]int64 {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestNeighboursAreWrittenTogether(t *testing.T) {
	data := noise(16 << 20)
	for _, piece := range []int{512, 4 << 10, 100_000, 1 << 20} {
		for _, limit := range []int{64 << 10, 60 << 10, 1 << 20} {
			t.Run(fmt.Sprintf("%d in requests of %d", piece, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					size := 16 * limit
					r := newRig(t, Config{Budget: 64 << 20}, FileConfig{},
						remotetest.Config{Limits: remote.Limits{Write: limit}, Delay: time.Millisecond}, nil)
					r.fake.Set(func(c *remotetest.Config) { c.Check = nil })
					o := r.open()
					ends := r.log()
					for off := 0; off < size; off += piece {
						r.write(o, int64(off), data[off:min(off+piece, size)])
					}
					must(t, o.Sync(ctx))
					r.same("the server", r.bytes(), data[:size])
					border := func(at int64) bool { return at%int64(limit) == 0 || at%maxRun == 0 || at == int64(size) }
					for _, e := range ends() {
						if !border(e[0]) || !border(e[1]) {
							t.Errorf("written from %d to %d", e[0], e[1])
						}
					}
					if got, want := r.writes(), size/limit+size/maxRun+1; got > want {
						t.Errorf("%d requests, want %d", got, want)
					}
					if peak := r.fake.Peak(); peak != 8 {
						t.Errorf("%d requests in flight at most, want the window of 8", peak)
					}
					must(t, o.Close(ctx))
				})
			})
		}
	}
}

func TestTwoWritersStillMakeWholeRequests(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} { // the server is faster, or slower
		synctest.Test(t, func(t *testing.T) {
			const size, limit = 8 << 20, 64 << 10
			r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Limits: remote.Limits{Write: limit}, Delay: delay}, nil)
			r.fake.Set(func(c *remotetest.Config) { c.Check = nil })
			o := r.open()
			data := noise(size)
			for off := 0; off < size/2; off += 4096 {
				r.write(o, int64(off), data[off:off+4096])
				r.write(o, int64(size/2+off), data[size/2+off:size/2+off+4096])
				synctest.Wait()
			}
			must(t, o.Sync(ctx))
			r.same("the server", r.bytes(), data)
			if got, want := r.writes(), size/limit*105/100; got > want {
				t.Errorf("delay %v: %d requests, want %d", delay, got, want)
			}
			must(t, o.Close(ctx))
		})
	}
}

func TestWhatStartsWriting(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(r *rig, o *Open)
	}{
		{"age", func(*rig, *Open) { <-time.After(maxAge) }},
		{"Sync", func(r *rig, o *Open) { must(r.t, o.Sync(ctx)) }},
		{"Flush", func(r *rig, o *Open) { must(r.t, o.Flush(ctx)) }},
		{"Close", func(r *rig, o *Open) { must(r.t, o.Close(ctx)) }},
		{"much of it", func(r *rig, o *Open) { r.write(o, 1<<20, make([]byte, 2<<20)) }},
		{"others' need of memory", func(r *rig, _ *Open) {
			other := r.c.NewFile(FileConfig{})
			r.fake.Put("other", nil)
			opened, err := r.fake.Open(ctx, remote.At{Name: "other"}, remote.How{Access: remote.ForWrite, Rights: other.Wants()}, other)
			must(r.t, err)
			o := other.Attach(opened, remote.ForWrite, false)
			for i := range 70 { // a page each, and no bytes worth the name
				r.write(o, int64(i)*64<<10, []byte{1})
			}
			must(r.t, o.Close(ctx))
		}},
		{"a direct read", func(r *rig, o *Open) {
			o.Bypass()
			r.same("bytes", r.read(o, 0, 5), []byte("dirty"))
		}},
		{"a direct write", func(r *rig, o *Open) {
			o.Bypass()
			r.write(o, 0, []byte("dirty"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{PageSize: 64 << 10, Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, make([]byte, 5))
				o := r.open()
				r.write(o, 0, []byte("dirty"))
				synctest.Wait()
				if r.writes() != 0 {
					t.Error("written at once")
				}
				c.start(r, o)
				synctest.Wait()
				if got := r.bytes(); c.name != "much of it" && !bytes.HasPrefix(got, []byte("dirty")) || r.writes() == 0 {
					t.Errorf("the server has %q after %d writes", got[:min(len(got), 5)], r.writes())
				}
				if c.name != "Close" {
					must(t, o.Close(ctx))
				}
			})
		})
	}
}

// Bytes under way do not change, and what is written over them goes out after them.
func TestAHotPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Delay: time.Second}, nil)
		o := r.open()
		p := make([]byte, 4096)
		for i := range 50 {
			for j := range p {
				p[j] = byte(i)
			}
			r.write(o, 0, p) // the Fake complains if that changes what it was lent
			r.same("what was written", r.read(o, 0, len(p)), p)
			go o.Flush(ctx)
			<-time.After(300 * time.Millisecond)
		}
		must(t, o.Sync(ctx))
		r.same("the server", r.bytes(), p)
		must(t, o.Close(ctx))
	})
}

// A sync is for what was written before it.
func TestSyncAmongWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Delay: time.Second}, nil)
		o := r.open()
		ctx, stop := context.WithCancel(ctx)
		done := make(chan bool)
		go func() {
			defer close(done)
			for i := int64(0); ctx.Err() == nil; i++ {
				o.WriteAt(ctx, make([]byte, 1000), i%500*1000)
				<-time.After(time.Millisecond)
			}
		}()
		<-time.After(100 * time.Millisecond)
		start := time.Now()
		must(t, o.Sync(ctx))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("Sync took %v", took)
		}
		stop()
		<-done
		must(t, o.Close(context.Background()))
	})
}

func TestShortWritesGoOn(t *testing.T) {
	for _, mode := range []Mode{Strict, None} {
		data := noise(300_000)
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: mode}, remotetest.Config{ShortWrite: 10_000}, nil)
		o := r.open()
		r.write(o, 0, data)
		must(t, o.Sync(ctx))
		r.same("the server", r.bytes(), data)
		must(t, o.Close(ctx))
	}
}

func TestRandomWritesAreAllWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 2 << 20
		r := newRig(t, Config{Budget: 512 << 10}, FileConfig{}, remotetest.Config{Delay: time.Millisecond}, make([]byte, size))
		o := r.open()
		want := make([]byte, size)
		rng := rand.New(rand.NewPCG(3, 4))
		for i := range 1000 {
			off := rng.Int64N(size/512) * 512
			p := bytes.Repeat([]byte{byte(i)}, 512)
			r.write(o, off, p)
			copy(want[off:], p)
		}
		must(t, o.Sync(ctx))
		r.same("the server", r.bytes(), want)
		must(t, o.Close(ctx))
	})
}

func TestNoCommitIfToldSo(t *testing.T) {
	for _, none := range []bool{false, true} {
		r := newRig(t, Config{}, FileConfig{NoCommit: none}, remotetest.Config{}, nil)
		o := r.open()
		r.write(o, 0, []byte("x"))
		must(t, o.Sync(ctx))
		if got := r.fake.Count("Commit"); (got == 0) != none {
			t.Errorf("NoCommit %v: %d commits", none, got)
		}
		must(t, o.Close(ctx))
	}
}
