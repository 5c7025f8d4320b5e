package pagecache

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestReadsWithoutMemoryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(64 << 10)
		r := newRig(t, Config{Budget: 16 << 10}, FileConfig{}, remotetest.Config{}, data)
		o := r.open()
		var taken []*run
		for m := r.c.memory(r.f, extent.Range{End: MinPage}); m != nil; m = r.c.memory(r.f, extent.Range{End: MinPage}) {
			taken = append(taken, m)
		}
		p := make([]byte, 100)
		if n, err := o.ReadAt(ctx, p, 1000); n != len(p) || err != nil || !bytes.Equal(p, data[1000:1100]) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		for _, m := range taken {
			r.c.unpin(m)
		}
		must(t, o.Close(ctx))
	})
}
