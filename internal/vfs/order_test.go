package vfs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// firstEvents is a volume that tells the first Events it is given of everything, as a
// File may, and holds an answer of Open back for whoever holds it.
type firstEvents struct {
	remote.Volume
	first remote.Events
	held  chan struct{} // nil: nothing is held back
}

func (v *firstEvents) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (remote.Opened, error) {
	held := v.held
	if v.first == nil {
		v.first = events
	}
	opened, err := v.Volume.Open(ctx, at, how, v.first)
	if held != nil {
		<-held
	}
	return opened, err
}

// Rights are told through an open that failed after all, and another open keeps bytes
// by them.
func TestEventsOfAnOpenThatFailed(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("f", []byte("hello"))
		vol := &firstEvents{Volume: b.fs.vol, held: make(chan struct{})}
		b.fs.vol = vol
		failed := make(chan error)
		go func() {
			_, err := b.fs.Open(b.ctx, "f", remote.How{Access: remote.ForRead})
			failed <- err
		}()
		synctest.Wait()
		held := vol.held
		vol.held = nil
		_, err := b.fs.SetAttr(b.ctx, "f", remote.SetAttr{Written: time.Unix(1e9, 0)})
		b.ok(err)
		asked := make(chan struct{})
		end := errors.New("no attributes")
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(_ context.Context, op remotetest.Op) error {
				if op.Call == "GetAttr" {
					<-asked
					return end
				}
				return nil
			}
		})
		close(held)
		synctest.Wait() // the attributes are too old to go by, and asked for again
		h := b.open("f", remote.ForRead, remote.Existing)
		b.reads(h, "hello")
		close(asked)
		b.fails(<-failed, end)
		b.fake.Set(func(c *remotetest.Config) { c.Hook = nil })
		b.ok(b.fake.Recall(b.ctx, "f", leases))
		b.fake.Put("f", []byte("HELLO"))
		b.reads(h, "HELLO")
		b.close(h)
	})
}

// A question that was asked after a WriteFile is answered before that comes about.
func TestWriteFileBesideAQuestion(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("f", []byte("short"))
		h := b.open("f", remote.ForRead, remote.Existing)
		b.reads(h, "short")
		g := make(chan struct{})
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(_ context.Context, op remotetest.Op) error {
				if op.Call == "WriteFile" {
					<-g
				}
				return nil
			}
		})
		wrote := make(chan error)
		go func() {
			_, err := b.fs.WriteFile(b.ctx, "f", remote.How{Create: remote.Truncate}, []byte("something longer"))
			wrote <- err
		}()
		synctest.Wait()
		_, err := h.Attr(b.ctx, true)
		b.ok(err)
		close(g)
		b.ok(<-wrote)
		b.reads(h, "something longer")
		synctest.Wait()
		b.reads(h, "something longer")
		b.close(h)
	})
}
