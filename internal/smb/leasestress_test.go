package smb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/smbtest"
)

// TestManyOpensOfFewFiles has two clients take each other's rights, give up opens,
// rename and remove, all at once: nobody may wait until the server loses its
// patience, and nothing may be left.
func TestManyOpensOfFewFiles(t *testing.T) {
	everyDialect(t, func(t *testing.T, cfg Config) {
		inBubble(t, smbtest.Config{}, cfg, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
			c.fault = func(r smbtest.Request) smbtest.Fault {
				return smbtest.Fault{Delay: time.Duration(r.N%7) * time.Millisecond}
			}
			begin := time.Now()
			clients := []*Volume{v, dialTest(t, srv, cfg)}
			var wg sync.WaitGroup
			for i, v := range clients {
				for g := range 4 {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(uint64(i), uint64(g)))
						for range 100 {
							if err := oneOfMany(t.Context(), v, r); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			for _, v := range clients {
				v.s.Close(t.Context())
				nothingLeft(t, v)
			}
		})
	})
}

// oneOfMany opens one of a few files, in one of many ways.
func oneOfMany(ctx context.Context, v *Volume, r *rand.Rand) error {
	file := func() remote.At { return remote.At{Name: fmt.Sprint("file", r.IntN(3))} }
	mayFail := func(err error) error {
		if errors.As(err, new(ntstatus.Status)) || errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(50))*time.Millisecond)
	defer cancel()
	if r.IntN(3) > 0 {
		short = ctx
	}
	o, err := v.Open(short, file(), askingFor(remote.Rights(r.IntN(8))), acking{make(told, 1000)})
	if err != nil {
		return mayFail(err)
	}
	if r.IntN(2) == 0 {
		w := remote.Write{Data: [][]byte{{byte(r.IntN(256))}}}
		if _, _, err := o.File.WriteAt(ctx, remote.Req{Open: o.Open}, w); err != nil {
			return err
		}
	}
	switch r.IntN(4) {
	case 0:
		_, err = v.Rename(ctx, file(), file(), true)
	case 1:
		err = v.Remove(ctx, file(), false)
	}
	return errors.Join(mayFail(err), o.Open.Close(ctx))
}
