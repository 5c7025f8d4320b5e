package pagecache

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// What the server has lost of what it had written, Sync and Close tell, although
// nothing of it is dirty any more.
func TestUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		o, other := r.open(), r.open()
		r.write(o, 0, noise(1000))
		must(t, o.Flush(ctx))
		r.change(0, remote.Unsure)
		r.change(fullRights, remote.Undone)
		wants(t, "Sync", o.Sync(ctx), syscall.EIO)
		wants(t, "Sync again", o.Sync(ctx), 0)
		must(t, o.Close(ctx))
		wants(t, "Close of another open", other.Close(ctx), syscall.EIO)
	})
}

// A verdict counts also if an open has brought a newer epoch before it was heard.
func TestLateVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(5000)
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		r.read(o, 0, len(data))
		r.change(fullRights, remote.Current)
		theirs := noise(6000)[1000:]
		r.fake.Put(name, theirs)
		r.f.mu.RLock()
		epoch := r.f.epoch
		r.f.mu.RUnlock()
		r.f.Rights(remote.Change{Rights: fullRights, Epoch: epoch - 1, Trust: remote.Outdated})
		synctest.Wait()
		r.same("what is read", r.read(o, 0, len(data)), theirs)
		must(t, o.Close(ctx))
	})
}

// A Sync that waits while its open is closed has what to sync with.
func TestSyncBesideClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, nil)
		g := make(gate)
		r.late = func(call string, _ int64) {
			if call == "WriteAt" {
				<-g
			}
		}
		o := r.open()
		r.write(o, 0, noise(1000))
		synced := make(chan error)
		go func() { synced <- o.Sync(ctx) }()
		synctest.Wait()
		over, cancel := context.WithCancel(ctx)
		cancel()
		o.Close(over) // which does not wait
		close(g)
		must(t, <-synced)
		must(t, r.openFor(remote.ForRead).Close(ctx))
	})
}

// What is heard of a file after its last close is not about the next one.
func TestChangeAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{}, noise(5000))
		must(t, r.open().Close(ctx))
		r.f.Rights(remote.Change{Rights: remote.CacheRead | remote.CacheWrite, Epoch: 100})
		synctest.Wait()
		r.fake.Set(func(c *remotetest.Config) { c.Rights = 0 })
		o := r.open()
		if r.f.Keeps(remote.CacheRead) {
			t.Error("keeps what was granted to another file")
		}
		must(t, o.Close(ctx))
		r.fake.Set(func(c *remotetest.Config) { c.Rights = fullRights })
		o = r.open()
		if !r.f.Keeps(remote.CacheWrite) {
			t.Error("does not keep what was granted")
		}
		must(t, o.Close(ctx))
	})
}
