package pagecache

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Ahead: 1 << 20}, remotetest.Config{}, noise(16<<20))
		o := r.open()
		check := func(what string, hits, misses int64) Stats {
			t.Helper()
			synctest.Wait()
			s := r.c.Stats()
			if s.Hits != hits || s.Misses != misses {
				t.Errorf("%s: %d hits, %d misses, want %d, %d", what, s.Hits, s.Misses, hits, misses)
			}
			return s
		}
		r.read(o, 0, 4096)
		r.read(o, 100, 10)
		s := check("one page", 1, 1)
		if s.Cached != 4096 || s.Ahead != 0 || s.Budget != 4<<20 {
			t.Errorf("one page: %+v", s)
		}

		for off := int64(4096); off < 1<<20; off += 4096 { // a stream
			r.read(o, off, 4096)
			synctest.Wait()
		}
		s = r.c.Stats()
		if s.Hits+s.Misses != 257 || s.Misses > 5 {
			t.Errorf("a stream: %d hits, %d misses", s.Hits, s.Misses)
		}
		if s.Ahead < 1<<20 || s.AheadUsed == 0 || s.AheadWasted != 0 || s.AheadUsed > s.Ahead {
			t.Errorf("a stream: %+v", s)
		}
		unread := s.Ahead - s.AheadUsed
		if unread < 512<<10 || unread > 2<<20 {
			t.Errorf("%d bytes are read ahead and not used, want about a megabyte", unread)
		}

		r.f.Forget()
		s = r.c.Stats()
		if s.Cached != 0 || s.AheadUsed+s.AheadWasted != s.Ahead || s.AheadWasted != unread || s.Evicted > 1<<20 {
			t.Errorf("dropped: %+v", s)
		}

		r.write(o, 0, noise(10_000))
		if s = r.c.Stats(); s.Dirty != 10_000 {
			t.Errorf("%d bytes dirty, want 10000", s.Dirty)
		}
		g := r.stop("WriteAt")
		go o.Flush(ctx)
		synctest.Wait()
		if s = r.c.Stats(); s.Dirty != 10_000 {
			t.Errorf("%d bytes dirty while they are being written, want 10000", s.Dirty)
		}
		close(g)
		synctest.Wait()
		if s = r.c.Stats(); s.Dirty != 0 {
			t.Errorf("%d bytes dirty, want none", s.Dirty)
		}

		before := r.c.Stats()
		o.Bypass()
		r.read(o, 0, 8<<20)
		second := r.open()
		r.read(second, 8<<20, 8<<20)
		s = check("more than fits in", before.Hits, before.Misses+1)
		if s.Cached > s.Budget || s.Evicted < 4<<20 {
			t.Errorf("more than fits in: %+v", s)
		}
		must(t, o.Close(ctx))
		must(t, second.Close(ctx))
	})
}

// What failed, or was overtaken, was not read ahead.
func TestStatsOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Ahead: 1 << 20}, remotetest.Config{}, noise(4<<20))
		o := r.open()
		err := r.fails("ReadAt")
		for off := int64(0); off < 64<<10; off += 4096 {
			if off == 8192 {
				err.Store(ptr(errors.New("no")))
			}
			o.ReadAt(ctx, make([]byte, 4096), off)
			synctest.Wait()
		}
		must(t, o.Close(ctx))
		r.f.Forget()
		if s := r.c.Stats(); s.AheadUsed+s.AheadWasted != s.Ahead || s.Cached != 0 {
			t.Errorf("%+v", s)
		}
		if n := r.c.streams.Load(); n != 0 {
			t.Errorf("%d streams, although nothing is open", n)
		}
	})
}
