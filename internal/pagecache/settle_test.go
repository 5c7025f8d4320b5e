package pagecache

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// Bytes that could not be written, and are on their way again because somebody else
// syncs, too, are not on the server.
func TestSyncsAtOnceTellOfTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan error)
		cfg := remotetest.Config{
			Window: remote.Window{Requests: 1},
			Hook: func(_ context.Context, op remotetest.Op) error {
				if op.Call == "WriteAt" {
					return <-answers
				}
				return nil
			},
		}
		file := FileConfig{Temporary: func(err error) bool { return errors.Is(err, syscall.EBUSY) }}
		r := newRig(t, Config{}, file, cfg, nil)
		o := r.open()
		if _, err := o.WriteAt(ctx, []byte("new"), 0); err != nil {
			t.Fatal(err)
		}
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- o.Sync(ctx) }()
		synctest.Wait()
		go func() { second <- o.Sync(ctx) }()
		synctest.Wait()
		answers <- syscall.EBUSY
		synctest.Wait()
		select {
		case err := <-first:
			t.Errorf("synced with %v, while the server has %q", err, r.bytes())
		default:
		}
		answers <- nil
		if err := <-second; err != nil {
			t.Errorf("the second sync: %v", err)
		}
		synctest.Wait()
		select {
		case err := <-first:
			if err != nil || string(r.bytes()) != "new" {
				t.Errorf("the first sync: %v, and the server has %q", err, r.bytes())
			}
		default:
			t.Error("the first sync does not end")
		}
		must(t, o.Close(ctx))
	})
}
