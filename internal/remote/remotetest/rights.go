package remotetest

import (
	"context"
	"sync"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// defaultPatience is what Windows waits for the answer to a lease break.
const defaultPatience = 35 * time.Second

// Recall takes rights of a file from f, as a server does that another client
// of it asks. It returns when f has given them up or Patience is over.
func (f *Fake) Recall(ctx context.Context, path string, lose remote.Rights) error {
	return f.tree.recall(ctx, remote.At{Node: remote.Node(path)}, lose, func(of *file) bool { return of.f == f })
}

func (f *Fake) recallOthers(ctx context.Context, at remote.At, lose remote.Rights) error {
	if lose == 0 {
		return nil
	}
	return f.tree.recall(ctx, at, lose, func(of *file) bool { return of.f != f })
}

func (t *tree) recall(ctx context.Context, at remote.At, lose remote.Rights, from func(*file) bool) error {
	all := t.recalls(at, lose, from)
	for _, r := range all {
		r.events.Rights(r.change)
	}
	for _, r := range all {
		if r.change.Ack == nil {
			continue
		}
		timer := time.NewTimer(time.Until(r.change.By))
		defer timer.Stop()
		select {
		case <-r.acked:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

type recalled struct {
	events remote.Events
	change remote.Change
	acked  chan struct{}
}

// recalls lowers the rights, and returns what those who had them are told. A
// right to cached reads is gone at once; the others take some tidying up.
func (t *tree) recalls(at remote.At, lose remote.Rights, from func(*file) bool) (all []recalled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := t.find(at)
	if err != nil {
		return nil
	}
	for of := range p.obj.opens {
		if !from(of) || of.rights&lose == 0 {
			continue
		}
		r := recalled{events: of.events, acked: make(chan struct{})}
		patience := of.f.cfg.Patience
		if patience == 0 {
			patience = defaultPatience
		}
		var ack func(error)
		if of.rights&lose&^remote.CacheRead != 0 {
			done := sync.OnceFunc(func() { close(r.acked) })
			ack = func(error) { done() }
		}
		of.rights &^= lose
		of.epoch++
		r.change = remote.Change{Node: of.node, Rights: of.rights, Epoch: of.epoch, By: time.Now().Add(patience), Ack: ack}
		all = append(all, r)
	}
	return all
}
