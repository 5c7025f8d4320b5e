package vfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// laggard is a volume whose requests and answers take their time, each a different one.
type laggard struct {
	*remotetest.Fake
	mu  sync.Mutex
	rnd *rand.Rand // guarded by mu
}

func (v *laggard) lag() {
	v.mu.Lock()
	d := time.Duration(v.rnd.IntN(1000)) * time.Microsecond
	v.mu.Unlock()
	pass(d)
}

func (v *laggard) GetAttr(ctx context.Context, at remote.At) (remote.Attr, error) {
	v.lag()
	defer v.lag()
	return v.Fake.GetAttr(ctx, at)
}

func (v *laggard) SetAttr(ctx context.Context, at remote.At, set remote.SetAttr) (remote.Attr, error) {
	v.lag()
	defer v.lag()
	return v.Fake.SetAttr(ctx, at, set)
}

func (v *laggard) Open(ctx context.Context, at remote.At, how remote.How, e remote.Events) (remote.Opened, error) {
	v.lag()
	defer v.lag()
	return v.Fake.Open(ctx, at, how, e)
}

func (v *laggard) ReadFile(ctx context.Context, at remote.At, p []byte) (int, remote.Attr, error) {
	v.lag()
	defer v.lag()
	return v.Fake.ReadFile(ctx, at, p)
}

func (v *laggard) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (remote.Attr, error) {
	v.lag()
	defer v.lag()
	return v.Fake.WriteFile(ctx, at, how, p)
}

func (v *laggard) Make(ctx context.Context, at remote.At, m remote.Make) (remote.Attr, error) {
	v.lag()
	defer v.lag()
	return v.Fake.Make(ctx, at, m)
}

func (v *laggard) Rename(ctx context.Context, from, to remote.At, replace bool) (remote.Node, error) {
	v.lag()
	defer v.lag()
	return v.Fake.Rename(ctx, from, to, replace)
}

func (v *laggard) Link(ctx context.Context, from, to remote.At) error {
	v.lag()
	defer v.lag()
	return v.Fake.Link(ctx, from, to)
}

func (v *laggard) Remove(ctx context.Context, at remote.At, dir bool) error {
	v.lag()
	defer v.lag()
	return v.Fake.Remove(ctx, at, dir)
}

func (v *laggard) ReadDir(ctx context.Context, at remote.At) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		v.lag()
		for page, err := range v.Fake.ReadDir(ctx, at) {
			v.lag()
			if !yield(page, err) {
				return
			}
		}
	}
}

// Many do everything at once to a few names. When they are done, what is remembered
// for ever is what the server has.
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		cfg := long
		cfg.Silly = seed%2 == 1
		cfg.ServerIno = seed%3 == 1
		if seed%5 == 4 {
			cfg.File.Mode = pagecache.Loose
		}
		fake := remotetest.Config{PageSize: 2, FoldCase: seed%4 == 2}
		if seed%4 != 3 {
			fake.Rights = leases
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, fake, cfg, func(b *bed) {
				b.fs.vol = &laggard{Fake: b.fake, rnd: rand.New(rand.NewPCG(seed, 0))}
				var paths []string
				names := []string{"a", "b", "B", "d", "e"}
				if seed%8 > 3 { // more happens to files if folders stay
					b.fake.Put("d/d/a", nil)
					b.fake.Put("e/a", nil)
					names = names[:3]
				}
				for _, dir := range []string{"", "d/", "e/", "d/d/"} {
					for _, name := range names {
						paths = append(paths, dir+name)
					}
				}
				var wg sync.WaitGroup
				for worker := range uint64(6) {
					rnd := rand.New(rand.NewPCG(seed, worker+1))
					wg.Go(func() {
						for range 150 {
							b.anything(rnd, paths)
						}
					})
				}
				wg.Wait()
				for _, p := range append(paths, ".") {
					b.agrees(p)
				}
				if len(b.fs.open) > 0 || len(b.fs.paths) > 0 {
					b.Errorf("%d files and %d names are open", len(b.fs.open), len(b.fs.paths))
				}
				for id, in := range b.fs.byID {
					if in.names == 0 && in.kept == nil {
						b.Errorf("inode %d is known, although nothing leads to it", id)
					}
				}
			})
		})
	}
}

// anything does anything.
func (b *bed) anything(rnd *rand.Rand, paths []string) {
	p, q := paths[rnd.IntN(len(paths))], paths[rnd.IntN(len(paths))]
	data := make([]byte, rnd.IntN(20))
	for i := range data {
		data[i] = byte('a' + rnd.IntN(26))
	}
	switch rnd.IntN(16) {
	case 0:
		b.fs.Make(b.ctx, p, remote.Make{Kind: remote.Dir})
	case 1:
		b.fs.WriteFile(b.ctx, p, remote.How{Create: remote.Create(rnd.IntN(5))}, data)
	case 2:
		b.fs.ReadFile(b.ctx, p, make([]byte, 10))
	case 3:
		b.fs.Remove(b.ctx, p, rnd.IntN(2) == 0)
	case 4, 5:
		b.fs.Rename(b.ctx, p, q, rnd.IntN(2) == 0)
	case 6:
		b.fs.Link(b.ctx, p, q)
	case 7:
		size := int64(rnd.IntN(20))
		b.fs.SetAttr(b.ctx, p, remote.SetAttr{Size: &size})
	case 8:
		b.fs.SetAttr(b.ctx, p, remote.SetAttr{Written: time.Unix(int64(rnd.IntN(1e9)), 0)})
	case 9:
		for range b.fs.ReadDir(b.ctx, p) {
		}
	case 10, 11, 12:
		access := remote.Access(1 + rnd.IntN(3))
		h, err := b.fs.Open(b.ctx, p, remote.How{Access: access, Create: remote.Create(rnd.IntN(5))})
		if err != nil {
			return
		}
		for range rnd.IntN(4) {
			switch rnd.IntN(5) {
			case 0:
				h.WriteAt(b.ctx, data, int64(rnd.IntN(20)))
			case 1:
				h.ReadAt(b.ctx, make([]byte, 20), int64(rnd.IntN(20)))
			case 2:
				h.Truncate(b.ctx, int64(rnd.IntN(20)))
			case 3:
				h.Attr(b.ctx, rnd.IntN(2) == 0)
			default:
				pass(time.Duration(rnd.IntN(3)) * time.Millisecond)
			}
		}
		if err := h.Close(b.ctx); err != nil {
			b.Errorf("Close: %v", err)
		}
	default:
		b.fs.GetAttr(b.ctx, p)
	}
}

// agrees checks that what is remembered of a path is what the server has.
func (b *bed) agrees(p string) {
	b.Helper()
	got, err := b.fs.GetAttr(b.ctx, p)
	want, wantErr := b.fake.GetAttr(b.ctx, at(p))
	switch {
	case wantErr != nil && err == nil, errors.Is(wantErr, fs.ErrNotExist) && !errors.Is(err, fs.ErrNotExist):
		b.Errorf("%s: %v, want %v", p, err, wantErr)
	case wantErr != nil:
	case err != nil:
		b.Errorf("%s: %v", p, err)
	case got.Kind != want.Kind, got.Size != want.Size, !got.Written.Equal(want.Written), got.Links == 1 && want.Links != 1:
		b.Errorf("%s: %+v, want %+v", p, got, want)
	case b.fs.cfg.ServerIno && got.ID != want.ID:
		b.Errorf("%s: number %d, want %d", p, got.ID, want.ID)
	case got.Kind == remote.Regular:
		data, _ := b.fake.Bytes(p)
		h := b.open(p, remote.ForRead, remote.Existing)
		b.reads(h, string(data))
		b.close(h)
	}
}
