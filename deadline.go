package pagewire

import (
	"context"
	"os"
	"sync"
	"time"
)

// deadline makes the context of a file's calls end at a time that can be moved.
// That context is kept for as long as the file is open, since the methods of
// io.Reader and its like get none.
type deadline struct {
	parent context.Context

	mu sync.Mutex
	// guarded by mu
	ctx   context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
}

func newDeadline(parent context.Context) *deadline {
	d := &deadline{parent: parent}
	d.ctx, d.end = context.WithCancelCause(parent)
	return d
}

// context returns what calls that begin now end with.
func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.ctx.Err() != nil && context.Cause(d.ctx) == os.ErrDeadlineExceeded {
		d.ctx, d.end = context.WithCancelCause(d.parent)
	}
	if t.IsZero() {
		return
	}
	end := d.end
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { end(os.ErrDeadlineExceeded) })
	} else {
		end(os.ErrDeadlineExceeded)
	}
}

// close ends all calls with cause.
func (d *deadline) close(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.end(cause)
}
