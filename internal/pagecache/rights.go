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
	errStale  = fmt.Errorf("the file was changed on the server while the connection was lost: %w", syscall.ESTALE)
	errUndone = fmt.Errorf("the server has lost what it had written before the connection was lost: %w", syscall.EIO)
	errRedo   = errors.New("the server has lost what was written")
)

// Rights tells of a change of rights: see remote.Events. From here on nothing is
// kept beyond them; what is to be done about what was kept before is done in the
// background.
func (f *File) Rights(ch remote.Change) {
	f.mu.Lock()
	rights, older := ch.Rights, ch.Epoch < f.epoch
	if ch.Epoch <= f.epoch {
		rights &= f.rights // of two, the lesser
	}
	f.epoch = max(f.epoch, ch.Epoch)
	var dropped map[int64]*chunk
	switch {
	case ch.Trust == remote.Outdated || ch.Trust == remote.Undone: // however late it is heard
		f.unsure, f.rights, f.blind = f.unsure && older, rights, true
		dropped = f.voidLocked()
		if ch.Trust == remote.Undone {
			f.failLocked(errUndone)
		}
	case older || ch.Trust == remote.Current:
		f.unsure = f.unsure && older
		dropped = f.rightsLocked(rights)
	default:
		f.unsure = true
	}
	f.mu.Unlock()
	f.changed.wake()
	f.cache.background(func() {
		f.drop(dropped)
		f.look()
		f.obey(ch)
	})
}

// rightsLocked notes rights, and returns what is left to drop. What is here is worth
// nothing unless it was vouched for all the time.
func (f *File) rightsLocked(rights remote.Rights) map[int64]*chunk {
	before := f.rights & remote.CacheRead
	f.rights = rights
	if f.cfg.Mode != Strict || before&rights != 0 {
		return nil
	}
	f.blind = f.blind || rights&remote.CacheRead != 0 && len(f.opens) > 0
	return f.purgeLocked()
}

// Doubt is for after a change of which nobody knows how far it has come, and so how
// long the file is.
func (f *File) Doubt() {
	f.mu.Lock()
	f.blind = len(f.opens) > 0
	f.mu.Unlock()
	f.cache.background(f.look)
}

// look asks for the size of a file that nothing vouched for. Until there is an answer
// nothing is kept.
func (f *File) look() {
	for {
		f.mu.RLock()
		blind, epoch := f.blind, f.epoch
		var o *Open
		if n := len(f.opens); n > 0 {
			o = f.opens[n-1]
		}
		f.mu.RUnlock()
		if !blind || o == nil {
			return
		}
		answered := f.ask(f.cache.ctx, o, func(attr remote.Attr) {
			if f.epoch == epoch {
				f.blind = false
				f.serverSizeLocked(attr.Size)
			}
		})
		if answered || !o.closed.Load() {
			return
		}
	}
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

// voidLocked forgets everything, since somebody else has changed the file, and returns
// what is left to drop.
func (f *File) voidLocked() map[int64]*chunk {
	if f.bytes > 0 || len(f.writes) > 0 {
		f.failLocked(errStale)
	}
	for _, w := range f.writes {
		w.void = true
	}
	f.discardLocked()
	return f.purgeLocked()
}

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
	f.serverSizeLocked(f.server)
}
