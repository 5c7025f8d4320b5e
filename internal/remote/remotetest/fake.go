// Package remotetest holds what tests need on either side of the seam: Fake, a
// volume in memory that fails as it is told, for what stands above, and Run,
// the suite that whatever stands below has to pass.
//
// It owns no protocol, and knows of none. A tree has one mutex, which is held
// neither in a wait nor in a callback, and no goroutines.
package remotetest

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// Config says how a Fake behaves. The zero Config is a fast, faultless one.
type Config struct {
	Limits   remote.Limits // Read and Write: 1 MiB
	Window   remote.Window // 8 requests of what Limits allows
	PageSize int           // entries in a page of ReadDir: 100

	Delay   time.Duration // from a request to its answer
	Sending time.Duration // how long a write is on its way, and cannot be cancelled

	// What one request carries at most, although Limits promises more; 0: no less.
	ShortRead, ShortWrite int

	// Hook is asked before each request is served. Its error is the answer. It
	// may wait, and returns when ctx is done.
	Hook func(ctx context.Context, op Op) error

	Rights   remote.Rights // granted to those who ask
	Patience time.Duration // how long rights are waited for: 35 s
	Unstable bool          // writes are safe only after Commit; see Restart

	// Check, t.Errorf as a rule, hears of callers who break the rules for
	// buffers: who change a buffer during a call or lend it twice. Buffers of
	// reads are poisoned meanwhile, and stay so where no bytes came.
	Check func(format string, args ...any)

	// What follows is the tree's, and what Another says of it does not count.
	FoldCase bool  // names are found whatever their case
	Capacity int64 // bytes that all files have room for; 0: any number
}

func (c Config) limits() remote.Limits {
	l := c.Limits
	if l.Read == 0 {
		l.Read = 1 << 20
	}
	if l.Write == 0 {
		l.Write = 1 << 20
	}
	return l
}

// Op is one request, as Hook sees it.
type Op struct {
	Call  string    // the method: "Open", "ReadAt", "Close" of an Open
	At    remote.At // what it is about; of a File only Node is set
	To    remote.At // of Rename and Link
	Off   int64     // of ReadDir: how many entries went before
	Len   int
	Class remote.Class
}

// Fake is a remote.Volume in memory: one client of a tree.
type Fake struct {
	tree *tree

	// guarded by tree.mu
	cfg    Config
	closed bool
	files  map[*object]*file // what is open here
	counts map[string]int
	flying int // requests in flight
	peak   int
}

var _ remote.Volume = (*Fake)(nil)

// New returns a Fake of a new and empty tree.
func New(cfg Config) *Fake {
	t := &tree{foldCase: cfg.FoldCase, capacity: cfg.Capacity}
	t.root = t.newObject(remote.Dir)
	return t.join(cfg)
}

// Another returns another client of the same tree.
func (f *Fake) Another(cfg Config) *Fake {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.tree.join(cfg)
}

// Set changes how f behaves from now on.
func (f *Fake) Set(change func(*Config)) {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	change(&f.cfg)
	f.tree.capacity = f.cfg.Capacity
}

// Count returns how many requests of a method were made; see Op.
func (f *Fake) Count(call string) int {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.counts[call]
}

// Peak returns how many requests were in flight at once at most.
func (f *Fake) Peak() int {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.peak
}

// do makes one request: serve runs under the tree's mutex once the hook agreed
// and the delay has passed. Its effects show all at once or, cancelled, never.
// Before, the other clients have to give up those rights.
func (f *Fake) do(ctx context.Context, op Op, lose remote.Rights, serve func() error) error {
	cfg, err := f.begin(ctx, op)
	if err != nil {
		return err
	}
	defer f.end()
	if op.Call == "WriteAt" || op.Call == "Append" || op.Call == "WriteFile" {
		wait(context.WithoutCancel(ctx), cfg.Sending)
	}
	if cfg.Hook != nil {
		err = cfg.Hook(ctx, op)
	}
	if late := wait(ctx, cfg.Delay); late != nil {
		return late
	}
	if err != nil {
		return err
	}
	if err := f.recallOthers(ctx, op.At, lose); err != nil {
		return err
	}
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	return serve()
}

func (f *Fake) begin(ctx context.Context, op Op) (Config, error) {
	if err := ctx.Err(); err != nil {
		return Config{}, err
	}
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	if f.closed {
		return Config{}, fs.ErrClosed
	}
	f.counts[op.Call]++
	f.flying++
	f.peak = max(f.peak, f.flying)
	return f.cfg, nil
}

func (f *Fake) end() {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	f.flying--
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Fake) Limits() remote.Limits {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.cfg.limits()
}

func (f *Fake) Flow() remote.Flow { return fakeFlow{f} }

type fakeFlow struct{ f *Fake }

func (w fakeFlow) Window(d remote.Direction) remote.Window {
	w.f.tree.mu.Lock()
	defer w.f.tree.mu.Unlock()
	window := w.f.cfg.Window
	if window.Requests == 0 {
		window.Requests = 8
	}
	if window.Size == 0 {
		window.Size = w.f.cfg.limits().Read
		if d == remote.Writing {
			window.Size = w.f.cfg.limits().Write
		}
	}
	return window
}

// Close ends every open of f. Requests in flight fail.
func (f *Fake) Close(context.Context) error {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	for _, file := range f.files {
		f.tree.forget(file)
	}
	clear(f.files)
	return nil
}

// Put makes a file with these bytes, and the folders above it, behind the
// back of every client.
func (f *Fake) Put(path string, data []byte) {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	f.tree.put(path, slices.Clone(data))
}

// Bytes returns a copy of what is in a file, and whether there is one.
func (f *Fake) Bytes(path string) ([]byte, bool) {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	p, err := f.tree.locate(remote.At{Node: remote.Node(path)})
	if err != nil || p.obj == nil || p.obj.kind != remote.Regular {
		return nil, false
	}
	return slices.Clone(p.obj.data), true
}

// Restart is what a crash of the server does to clients that survive it: what
// they wrote since the last Commit is gone, which the next one tells them.
func (f *Fake) Restart() {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	f.tree.each(func(o *object) {
		for _, u := range slices.Backward(o.unsafe) {
			f.tree.used -= int64(len(o.data)) - u.size
			o.data = o.data[:u.size]
			if len(u.old) > 0 {
				copy(o.data[u.off:], u.old)
			}
			u.by.lost = append(u.by.lost, remote.Span{Off: u.off, Len: u.len})
		}
		o.unsafe = nil
	})
}
