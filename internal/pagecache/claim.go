package pagecache

import (
	"context"
	"slices"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// claim is a range that a request of its own is to change: a direct write, an append,
// a truncation. As long as there is one, nothing is written to its range here, so
// that even a busy one comes to rest. Of two that overlap, the later one waits.
type claim struct {
	n uint64 // File.claimed
	r extent.Range
}

// claim takes a range, once those who came before are done with it.
func (f *File) claim(ctx context.Context, r extent.Range) (claim, error) {
	f.mu.Lock()
	f.claimed++
	c := claim{f.claimed, r}
	f.claims = append(f.claims, c)
	f.mu.Unlock()
	err := f.await(ctx, func() bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		first := slices.IndexFunc(f.claims, func(other claim) bool { return other.r.Overlaps(r) })
		return f.claims[first].n == c.n
	})
	if err != nil {
		f.yield(c)
	}
	return c, err
}

// claimClean is claim for what has to be on the server before.
func (f *File) claimClean(ctx context.Context, r extent.Range) (claim, error) {
	c, err := f.claim(ctx, r)
	if err != nil {
		return c, err
	}
	if err = f.settle(ctx, r); err != nil {
		f.yield(c)
	}
	return c, err
}

// yield gives a claim up.
func (f *File) yield(c claim) {
	f.mu.Lock()
	f.yieldLocked(c)
	f.mu.Unlock()
	f.changed.wake()
}

func (f *File) yieldLocked(c claim) {
	f.claims = slices.DeleteFunc(f.claims, func(other claim) bool { return other.n == c.n })
}

// freeLocked returns what r begins with that is neither flying nor claimed.
func (f *File) freeLocked(r extent.Range) extent.Range {
	if fly, ok := f.flying.First(r.Off); ok {
		r.End = min(r.End, max(r.Off, fly.Off))
	}
	for _, c := range f.claims {
		if c.r.Overlaps(r) {
			r.End = max(r.Off, c.r.Off)
		}
	}
	return r
}

// await waits for something of the file.
func (f *File) await(ctx context.Context, ready func() bool) error {
	for !ready() {
		changed := f.changed.wait()
		if ready() {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.cache.ctx.Done():
			return ErrClosed
		}
	}
	return nil
}

// waitUntilFree waits until the byte at off is neither flying nor claimed.
func (f *File) waitUntilFree(ctx context.Context, off int64) error {
	return f.await(ctx, func() bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return !f.freeLocked(extent.Range{Off: off, End: off + 1}).Empty()
	})
}

// ask asks how long the file is, and calls then with an answer that nothing has come
// between, under the lock. It reports whether there was one.
func (f *File) ask(ctx context.Context, o *Open, then func(remote.Attr)) bool {
	for {
		f.mu.RLock()
		learned := f.learned
		f.mu.RUnlock()
		attr, err := o.server.GetAttr(ctx, o.remote)
		if err != nil {
			return false
		}
		f.mu.Lock()
		same := f.learned == learned
		if same {
			then(attr)
		}
		f.mu.Unlock()
		if same {
			return true
		}
	}
}
