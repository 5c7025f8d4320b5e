package pagecache

import (
	"bytes"
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// Of a write that fails, the server may have the end, and so a longer file, although
// whoever wrote it has closed.
func TestHalfAWriteMakesTheFileLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := remotetest.Config{
			Limits: remote.Limits{Write: 4096}, Delay: time.Second, Rights: remote.CacheRead | remote.CacheHandle,
			Hook: func(_ context.Context, op remotetest.Op) error {
				if op.Call == "WriteAt" && op.Off == 0 {
					return syscall.EIO
				}
				return nil
			},
		}
		r := newRig(t, Config{}, FileConfig{}, cfg, []byte("old"))
		o, other := r.open(), r.open()
		data := noise(8192)
		if _, err := o.WriteAt(ctx, data, 0); !errors.Is(err, syscall.EIO) {
			t.Fatalf("writing: %v", err)
		}
		must(t, o.Close(ctx))
		p := make([]byte, 4096)
		if n, err := other.ReadAt(ctx, p, 4096); n != len(p) || err != nil || !bytes.Equal(p, data[4096:]) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		synctest.Wait()
		if size := r.f.Size(); size != 8192 || !r.f.Keeps(remote.CacheRead) {
			t.Errorf("size is %d, keeps what is read: %v", size, r.f.Keeps(remote.CacheRead))
		}
		must(t, other.Close(ctx))
	})
}
