package pagecache

import (
	"bytes"
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

const fullRights = remote.CacheRead | remote.CacheWrite | remote.CacheHandle

// change tells the file of rights, a newer one each time.
func (r *rig) change(rights remote.Rights, trust remote.Trust) {
	r.f.mu.RLock()
	epoch := r.f.epoch + 1
	r.f.mu.RUnlock()
	r.f.Rights(remote.Change{Rights: rights, Epoch: epoch, Trust: trust})
	synctest.Wait()
}

func TestLosingTheRightToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Window: remote.Window{Requests: 1, Size: 64 << 10}}, nil)
		o := r.open()
		data := noise(300_000)
		r.write(o, 0, data)
		g := r.stop("WriteAt")
		synced := make(chan error)
		go func() { synced <- o.Sync(ctx) }()
		synctest.Wait()
		acked := make(chan error)
		go func() { acked <- r.fake.Recall(ctx, name, remote.CacheWrite) }()
		synctest.Wait()
		if r.writes() != 1 {
			t.Errorf("%d writes, want one under way", r.writes())
		}
		close(g)
		must(t, <-acked)
		r.same("the server, after the acknowledgment", r.bytes(), data)
		must(t, <-synced)

		reads := r.reads()
		r.same("what is still kept", r.read(o, 0, len(data)), data)
		if r.reads() != reads {
			t.Error("it is not kept, although only the right to write is gone")
		}
		r.write(o, 100, []byte("direct"))
		copy(data[100:], "direct")
		r.same("the server, after a write", r.bytes(), data)
		r.same("read anew", r.read(o, 0, len(data)), data)
		must(t, o.Close(ctx))
	})
}

func TestLosingTheRightToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(200_000))
		g := r.hold("ReadAt")
		o := r.open()
		under := make(chan []byte)
		go func() { under <- r.read(o, 0, 4096) }()
		synctest.Wait()
		r.read(o, 100_000, 4096)
		if err := r.fake.Recall(ctx, name, fullRights); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		theirs := bytes.Repeat([]byte{7}, 200_000)
		r.fake.Put(name, theirs)
		r.same("what was kept", r.read(o, 100_000, 4096), theirs[:4096])
		close(g)
		r.same("what was under way", <-under, theirs[:4096])
		if n := r.c.Stats().Cached; n != 0 {
			t.Errorf("%d bytes are kept", n)
		}
		reads := r.reads()
		r.read(o, 0, 4096)
		if r.reads() != reads+1 {
			t.Error("a read without the right to keep it asked for more or less than itself")
		}
		must(t, o.Close(ctx))
	})
}

func TestAcknowledgedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Patience: 10 * time.Second}, nil)
		o := r.open()
		r.write(o, 0, []byte("dirty"))
		g := r.stop("WriteAt")
		start := time.Now()
		must(t, r.fake.Recall(ctx, name, remote.CacheWrite))
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("acknowledged after %v, want 8s", took)
		}
		close(g)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), []byte("dirty"))
	})
}

// Rights that are gone already are nothing to wait for until bytes are old.
func TestLosingRightsUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o := r.open()
		r.write(o, 0, []byte("dirty"))
		r.change(remote.CacheRead, remote.Current)
		r.same("the server", r.bytes(), []byte("dirty"))
		must(t, o.Close(ctx))
	})
}

// What is kept while nothing vouches for it is worth nothing, also when something
// does again.
func TestRegainedRights(t *testing.T) {
	for _, again := range []string{"by a grant", "by an open"} {
		t.Run(again, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
				o := r.open()
				mine := noise(100_000)
				r.write(o, 0, mine)
				must(t, r.fake.Recall(ctx, name, fullRights))
				synctest.Wait()
				r.same("the server", r.bytes(), mine)
				theirs := append(bytes.Repeat([]byte{7}, 100_000), "and more"...)
				r.fake.Put(name, theirs)
				if again == "by a grant" {
					r.change(fullRights, remote.Current)
				} else {
					defer func(o *Open) { must(t, o.Close(ctx)) }(r.open())
					synctest.Wait()
				}
				r.same("bytes", r.read(o, 0, 200_000), theirs)
				if size := r.f.Size(); size != int64(len(theirs)) {
					t.Errorf("size %d, want %d", size, len(theirs))
				}
				reads := r.reads()
				r.same("bytes", r.read(o, 0, 200_000), theirs)
				if r.reads() != reads {
					t.Error("nothing is kept, although it may be again")
				}
				must(t, o.Close(ctx))
			})
		})
	}
}

// The answer of an open may be overtaken by what becomes of its rights.
func TestChangesBeforeAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100))
		opened, err := r.fake.Open(ctx, remote.At{Name: name}, remote.How{Access: remote.ForRead | remote.ForWrite, Rights: fullRights}, r.f)
		must(t, err)
		if opened.Rights != fullRights {
			t.Fatalf("rights %b", opened.Rights)
		}
		must(t, r.fake.Recall(ctx, name, remote.CacheRead|remote.CacheWrite))
		o := r.attach(opened, remote.ForRead|remote.ForWrite, false)
		if r.f.Keeps(remote.CacheRead) || r.f.Keeps(remote.CacheWrite) {
			t.Error("rights are used that are gone")
		}
		must(t, o.Close(ctx))
	})
}

func TestOlderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100))
		o := r.open()
		r.f.Rights(remote.Change{Rights: fullRights, Epoch: 10})
		r.f.Rights(remote.Change{Rights: remote.CacheRead, Epoch: 9})
		synctest.Wait()
		if !r.f.Keeps(remote.CacheRead) || r.f.Keeps(remote.CacheWrite) {
			t.Error("of two changes the lesser should count")
		}
		r.f.Rights(remote.Change{Rights: fullRights, Epoch: 9})
		if r.f.Keeps(remote.CacheWrite) {
			t.Error("an older change gave rights")
		}
		r.write(o, 0, []byte("x"))
		r.f.Rights(remote.Change{Rights: 0, Epoch: 1, Trust: remote.Outdated})
		must(t, o.Sync(ctx)) // nothing is lost by what is not true any more
		must(t, o.Close(ctx))
	})
}

func TestALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, noise(100_000))
		o, second := r.open(), r.open()
		want := noise(100_000)
		r.read(o, 0, len(want))
		r.write(o, 50_000, []byte("dirty"))
		copy(want[50_000:], "dirty")

		r.hook(func(context.Context, remotetest.Op) error { return syscall.ECONNRESET })
		r.change(0, remote.Unsure)
		if _, err := o.ReadAt(ctx, make([]byte, 10), 0); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a read of what may be old: %v, want ECONNRESET", err)
		}
		if _, err := o.WriteAt(ctx, []byte("x"), 0); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a write: %v, want ECONNRESET", err)
		}
		if err := o.Sync(ctx); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Sync: %v, want ECONNRESET", err)
		}

		r.hook(nil)
		r.change(fullRights, remote.Current)
		reads := r.reads()
		got := r.read(o, 1, len(want))
		r.same("what was kept", got, want[1:])
		if r.reads() > reads+1 { // for the byte that a direct write may have changed
			t.Errorf("%d reads, although nothing was forgotten", r.reads()-reads)
		}

		r.hook(func(context.Context, remotetest.Op) error { return syscall.ECONNRESET })
		r.change(0, remote.Unsure)
		r.hook(nil)
		theirs := bytes.Repeat([]byte{7}, 120_000)
		r.fake.Put(name, theirs)
		r.change(fullRights, remote.Outdated)
		r.same("their bytes", r.read(o, 0, 200_000), theirs)
		for _, o := range []*Open{o, second} {
			if err := o.Sync(ctx); !errors.Is(err, syscall.ESTALE) {
				t.Errorf("Sync: %v, want ESTALE", err)
			}
			must(t, o.Sync(ctx))
			must(t, o.Close(ctx))
		}
		r.same("the server", r.bytes(), theirs)
	})
}

// What is under way when the file turns out to be another's is not written again.
func TestOutdatedWhileWriting(t *testing.T) {
	for _, end := range []error{nil, syscall.ECONNRESET, syscall.EIO} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, noise(100))
			o := r.open()
			r.write(o, 0, bytes.Repeat([]byte{7}, 200))
			g := make(gate)
			r.hook(func(ctx context.Context, op remotetest.Op) error {
				if op.Call == "WriteAt" {
					return errors.Join(g.pass(ctx), end)
				}
				return nil
			})
			synced := make(chan error)
			go func() { synced <- o.Sync(ctx) }()
			synctest.Wait()
			r.change(fullRights, remote.Outdated)
			close(g)
			if err := <-synced; !errors.Is(err, syscall.ESTALE) {
				t.Errorf("Sync: %v, want ESTALE", err)
			}
			r.hook(nil)
			synctest.Wait()
			<-time.After(2 * maxAge)
			must(t, o.Sync(ctx))
			if n := r.writes(); n != 1 {
				t.Errorf("%d writes, want the one that was under way", n)
			}
			r.same("bytes", r.read(o, 0, 1000), r.bytes())
			must(t, o.Close(ctx))
		})
	}
}

func TestRightsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(100_000))
		o := r.open()
		r.write(o, 0, noise(50_000))
		g := make(gate)
		r.hook(func(ctx context.Context, _ remotetest.Op) error { return g.pass(ctx) })
		busy := make(chan bool)
		for _, do := range []func(){
			func() { r.read(o, 60_000, 10) },
			func() { must(t, o.Sync(ctx)) },
			func() { must(t, o.Truncate(ctx, 100_000)) },
			func() { r.write(o, 10, []byte("x")) },
		} {
			go func() { do(); busy <- true }()
			synctest.Wait()
		}
		start := time.Now()
		for i, trust := range []remote.Trust{remote.Current, remote.Unsure, remote.Current} {
			r.f.Rights(remote.Change{Epoch: uint64(100 + i), Trust: trust})
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		close(g)
		for range 4 {
			<-busy
		}
		must(t, o.Close(ctx))
	})
}

// temporary is for errors that a lost connection makes.
func temporary(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
