package pagecache

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// none is for rigs whose server gives no rights.
const none = remote.CacheHandle

// records appends n records of 10 bytes by each open, all at once, and returns how
// often each record is in the file.
func records(r *rig, opens []*Open, n int) map[string]int {
	var wg sync.WaitGroup
	for i, o := range opens {
		wg.Go(func() {
			for j := range n {
				p := bytes.Repeat([]byte{byte('a' + i)}, 10)
				p[9] = byte(j)
				if _, got, err := o.Append(ctx, p); got != 10 || err != nil {
					r.t.Errorf("appended %d bytes, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	for _, o := range opens {
		must(r.t, o.Close(ctx))
	}
	all := map[string]int{}
	for record := range slices.Chunk(r.bytes(), 10) {
		all[string(record)]++
	}
	return all
}

func TestAppendsOfSeveralOpens(t *testing.T) {
	for _, c := range []struct {
		name   string
		rights remote.Rights
		mode   Mode
	}{{"with all rights", 0, Strict}, {"with none", none, Strict}, {"keeping nothing", 0, None}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Mode: c.mode}, remotetest.Config{Rights: c.rights, Delay: time.Millisecond}, nil)
				all := records(r, []*Open{r.open(), r.open(), r.openStable()}, 30)
				if len(all) != 90 {
					t.Errorf("%d different records, want 90", len(all))
				}
			})
		})
	}
}

// Another client appends as well, so that rights come and go.
func TestAppendsOfTwoClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{Delay: time.Millisecond}, nil)
		o := r.open()
		other := r.fake.Another(remotetest.Config{Delay: time.Millisecond})
		done := make(chan bool)
		go func() {
			defer close(done)
			for j := range 20 {
				theirs, err := other.Open(ctx, remote.At{Name: name}, remote.How{Access: remote.ForWrite}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				p := append(bytes.Repeat([]byte{'z'}, 9), byte(j))
				if _, n, err := theirs.Open.Append(ctx, [][]byte{p}); n != 10 || err != nil {
					t.Errorf("the other client appended %d bytes, %v", n, err)
				}
				must(t, theirs.Open.Close(ctx))
			}
		}()
		all := records(r, []*Open{o, r.open()}, 30)
		<-done
		for record := range slices.Chunk(r.bytes(), 10) {
			all[string(record)]++
		}
		if len(all) != 80 {
			t.Errorf("%d different records, want 80", len(all))
		}
	})
}

// What is appended goes to the end as it is when the first byte goes there.
func TestAppendsWaitForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		c, err := r.f.claim(ctx, extent.Range{Off: 0, End: 10}) // so that an append waits at 0
		must(t, err)
		at := make(chan int64)
		go func() {
			off, _, _ := o.Append(ctx, []byte("appended"))
			at <- off
		}()
		synctest.Wait()
		r.write(o, 10, []byte("written"))
		r.f.yield(c)
		if off := <-at; off != 17 {
			t.Errorf("appended at %d, want 17", off)
		}
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00writtenappended"))
	})
}

func TestDirectWritesHaveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Mode: None}, remotetest.Config{}, make([]byte, 100))
		o := r.open()
		g := r.stop("WriteAt")
		var wg sync.WaitGroup
		write := func(off int64, p string) {
			wg.Go(func() { r.write(o, off, []byte(p)) })
			synctest.Wait()
		}
		write(0, "aaaa")
		write(2, "bbbb") // waits for the first
		write(50, "cccc")
		write(5, "dddd") // waits for the second
		if r.writes() != 2 {
			t.Errorf("%d writes under way, want 2", r.writes())
		}
		close(g)
		wg.Wait()
		r.same("the server", r.bytes()[:9], []byte("aabbbdddd"))
		must(t, o.Close(ctx))
	})
}

// One who wants all of a file is not overtaken for ever by those who want little.
func TestAppendsAmongDirectWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Mode: None}, remotetest.Config{Delay: time.Second}, make([]byte, 1000))
		o := r.open()
		ctx, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for start := time.Duration(i) * 200 * time.Millisecond; ctx.Err() == nil; start = 0 {
					<-time.After(start)
					o.WriteAt(ctx, make([]byte, 10), int64(100*i))
				}
			})
		}
		<-time.After(5 * time.Second)
		began := time.Now()
		if _, _, err := o.Append(ctx, []byte("x")); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("an append took %v, want at most those before it and itself", took)
		}
		stop()
		wg.Wait()
		must(t, o.Close(context.Background()))
	})
}

// A busy writer does not keep a direct write from the range.
func TestDirectWritesAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{Delay: time.Second}, nil)
		o, stable := r.open(), r.openStable()
		ctx, stop := context.WithCancel(ctx)
		done := make(chan bool)
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				o.WriteAt(ctx, make([]byte, 100), 0)
				<-time.After(time.Millisecond)
			}
		}()
		<-time.After(10 * time.Millisecond)
		began := time.Now()
		r.write(stable, 50, []byte("x"))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("a direct write took %v", took)
		}
		stop()
		<-done
		must(t, o.Close(context.Background()))
		must(t, stable.Close(context.Background()))
	})
}

func TestACancelledClaimIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o, stable := r.open(), r.openStable()
		r.write(o, 0, []byte("dirty"))
		g := r.stop("WriteAt")
		cancelled, cancel := context.WithCancel(ctx)
		failed := make(chan error, 3)
		go func() { _, err := stable.WriteAt(cancelled, []byte("xxxxx"), 0); failed <- err }()
		synctest.Wait()
		go func() { _, err := stable.WriteAt(cancelled, []byte("y"), 0); failed <- err }()
		go func() { failed <- o.Truncate(cancelled, 2) }()
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want Canceled", err)
			}
		}
		if len(r.f.claims) != 0 {
			t.Errorf("%d claims left", len(r.f.claims))
		}
		close(g)
		must(t, o.Sync(ctx))
		r.write(o, 5, []byte(" bytes"))
		must(t, o.Close(ctx))
		must(t, stable.Close(ctx))
		r.same("the server", r.bytes(), []byte("dirty bytes"))
	})
}

func TestReadYourWrites(t *testing.T) {
	for _, rights := range []remote.Rights{0, none, remote.CacheRead} {
		for _, mode := range []Mode{Strict, None, Loose, ReadOnly} {
			r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Mode: mode}, remotetest.Config{Rights: rights}, noise(100_000))
			want := noise(100_000)
			opens := []*Open{r.open(), r.open(), r.openStable()}
			opens[1].Bypass()
			for i := range 60 {
				off, p := i*7919%90_000, bytes.Repeat([]byte{byte(i)}, 1+i*501%9000)
				r.write(opens[i%3], int64(off), p)
				copy(want[off:], p)
				for _, o := range opens {
					r.same("what was written", r.read(o, int64(off), len(p)), p)
				}
				if i%10 == 0 {
					r.same("all", r.read(opens[0], 0, 100_001), want)
				}
			}
			for _, o := range opens {
				must(t, o.Close(ctx))
			}
			r.same("the server", r.bytes(), want)
		}
	}
}
