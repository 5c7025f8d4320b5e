package smb

import (
	"bytes"
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

// TestManyGiveUp has many callers give up at any time, on a server that grants
// what was charged. In the end no credit and no handle may be missing, and no
// buffer may have been written to after its owner had it back.
func TestManyGiveUp(t *testing.T) {
	for _, cfg := range []smbtest.Config{
		{RTT: 10 * time.Millisecond, Grant: smbtest.GrantCharged},
		{RTT: 10 * time.Millisecond, Grant: smbtest.GrantCharged, RequireSigning: true, Credits: 40},
		{RTT: 10 * time.Millisecond, Grant: smbtest.GrantCharged, RequireSealing: true, Credits: 5},
		{RTT: 10 * time.Millisecond, Grant: smbtest.GrantCharged, Credits: 1},
	} {
		t.Run(fmt.Sprintf("%d credits, signed %v, sealed %v", cfg.Credits, cfg.RequireSigning, cfg.RequireSealing), func(t *testing.T) {
			inBubble(t, cfg, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
				content := noise(300_000)
				if err := srv.WriteFile("file", content); err != nil {
					t.Fatal(err)
				}
				o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
				if err != nil {
					t.Fatal(err)
				}
				credits := v.s.Info().Stats.Credits
				var wg sync.WaitGroup
				for i := range 16 {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(1, uint64(i)))
						for range 100 {
							giveUp(t, v, o, r, content, fmt.Sprint("new ", i))
						}
					})
				}
				wg.Wait()
				<-time.After(2 * patience)
				if err := o.Open.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if got := v.s.Info().Stats.Credits; got != credits {
					t.Errorf("%d credits, want %d", got, credits)
				}
				// A file is gone once removed and closed by all.
				if err := v.Remove(t.Context(), remote.At{Name: "file"}, false); err != nil {
					t.Errorf("Remove: %v", err)
				}
				_, err = v.GetAttr(t.Context(), remote.At{Name: "file"})
				check(t, "GetAttr of a file that nobody should have open", err, ntstatus.ObjectNameNotFound)
			})
		})
	}
}

// giveUp does one thing of many, as far as its time allows.
func giveUp(t *testing.T, v *Volume, o remote.Opened, r *rand.Rand, content []byte, mine string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(60))*time.Millisecond)
	defer cancel()
	off, n := r.IntN(len(content)), 1+r.IntN(200_000)
	n = min(n, len(content)-off)
	req := remote.Req{Open: o.Open, Off: int64(off)}
	var err error
	switch r.IntN(6) {
	case 0, 1:
		buf := make([]byte, n)
		var got int
		got, _, err = o.File.ReadAt(ctx, req, [][]byte{buf[:n/2], buf[n/2:]})
		if !bytes.Equal(buf[:got], content[off:off+got]) {
			t.Errorf("%d bytes at %d are wrong", got, off)
		}
		if err != nil {
			clear(buf)
			<-time.After(time.Second) // long after the answer
			if !bytes.Equal(buf, make([]byte, n)) {
				t.Errorf("the buffer was written to after ReadAt had returned %v", err)
			}
		}
	case 2:
		_, _, err = o.File.WriteAt(ctx, req, remote.Write{Data: [][]byte{content[off : off+n]}})
	case 3:
		_, err = v.GetAttr(ctx, remote.At{Name: "file"})
	case 4:
		_, err = v.WriteFile(ctx, remote.At{Name: mine}, remote.How{Create: remote.TruncateNew}, content[:1000])
	case 5:
		var other remote.Opened
		if other, err = v.Open(ctx, remote.At{Name: "file"}, remote.How{Access: remote.ForRead}, nil); err == nil {
			err = other.Open.Close(ctx)
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
