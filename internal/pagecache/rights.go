package pagecache

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

var (
	errStale = fmt.Errorf("the file was changed on the server while the connection was lost: %w", syscall.ESTALE)
	errRedo  = errors.New("the server has lost what was written")
)

// Rights tells of a change of rights: see remote.Events. From here on nothing is
// kept beyond them; what is to be done about what was kept before is done in the
// background.
func (f *File) Rights(ch remote.Change) {
	f.mu.Lock()
	if ch.Epoch > f.epoch {
		f.rights, f.epoch = ch.Rights, ch.Epoch
		f.unsure = ch.Trust == remote.Unsure
	} else {
		f.rights &= ch.Rights // of two, the lesser
	}
	var dropped map[int64]*chunk
	switch {
	case ch.Trust == remote.Unsure:
	case ch.Trust == remote.Outdated:
		if f.bytes > 0 {
			f.failLocked(errStale)
		}
		f.discardLocked()
		dropped = f.purgeLocked()
	case f.cfg.Mode == Strict && !f.keepsLocked(remote.CacheRead):
		dropped = f.purgeLocked()
	}
	f.mu.Unlock()
	f.changed.wake()
	if ch.Trust == remote.Unsure {
		return
	}
	if len(dropped) == 0 && ch.Ack == nil {
		return
	}
	f.cache.background(func() {
		f.drop(dropped)
		f.obey(ch)
	})
}

// obey writes what may not be dirty any more, and acknowledges.
func (f *File) obey(ch remote.Change) {
	ctx, stop := f.cache.ctx, context.CancelFunc(func() {})
	if !ch.By.IsZero() {
		ctx, stop = context.WithDeadline(ctx, ch.By.Add(-ackTime))
	}
	defer stop()
	var err error
	if f.cfg.Mode == Strict && ch.Rights&remote.CacheWrite == 0 {
		if err = f.settle(ctx, everything); err != nil {
			f.cache.logger.Warn("written bytes are not yet on the server, which takes the right to keep them", "err", err)
		}
	}
	if ch.Ack != nil {
		ch.Ack(err)
	}
}

// ackTime is what is left of the time that a server waits for an acknowledgment when
// it is sent at the latest.
const ackTime = 2 * time.Second

// discardLocked makes all dirty bytes invalid.
func (f *File) discardLocked() {
	for len(f.dirty) > 0 {
		i := f.dirty[0]
		c := f.chunks[i]
		for c.dirty.Len() > 0 {
			r, _ := c.dirty.First(0)
			f.cleanLocked(i, r)
			c.valid.Remove(r)
		}
	}
	f.resizeLocked(max(f.server, 0))
}
