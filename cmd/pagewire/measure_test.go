package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire"
)

// fakePath is a server behind a link, in virtual time: requests wait for
// credits, take delay both ways together, and replies queue for the link.
type fakePath struct {
	delay   time.Duration
	rate    float64
	credits chan struct{}
	maxRead int

	mu    sync.Mutex
	free  time.Time // when the link is; guarded by mu
	asked int64     // bytes; guarded by mu
}

func newFakePath(delay time.Duration, rate float64, credits, maxRead int) *fakePath {
	return &fakePath{delay: delay, rate: rate, credits: make(chan struct{}, credits), maxRead: maxRead, free: time.Now()}
}

func (f *fakePath) carry(n int) {
	charge := max((n+creditBytes-1)/creditBytes, 1)
	for range charge {
		f.credits <- struct{}{}
	}
	f.mu.Lock()
	f.asked += int64(n)
	sent := time.Now()
	if f.free.Before(sent) {
		f.free = sent
	}
	f.free = f.free.Add(time.Duration(float64(n) / f.rate * float64(time.Second)))
	arrives := f.free.Add(f.delay)
	f.mu.Unlock()
	<-time.After(time.Until(arrives))
	for range charge {
		<-f.credits
	}
}

func (f *fakePath) probe(size int64) probe {
	return probe{
		ping: func(context.Context) error { f.carry(100); return nil },
		read: func(_ context.Context, p []byte, off int64) (int, error) {
			if len(p) > f.maxRead || off+int64(len(p)) > size {
				return 0, errors.New("read of what is not there")
			}
			f.carry(len(p))
			return len(p), nil
		},
		size:  size,
		stats: func() pagewire.Stats { return pagewire.Stats{MaxRead: f.maxRead, MaxCredits: cap(f.credits)} },
	}
}

func TestMeasure(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name    string
		delay   time.Duration
		rate    float64
		credits int
		maxRead int
		limit   string
		read    float64 // what is to be measured, within a tenth
	}{
		{"1 Gbit/s, 20 ms", 20 * time.Millisecond, 125e6, 512, 8 * mib, byLink, 125e6},
		{"10 Mbit/s", time.Millisecond, 1.25e6, 512, 8 * mib, byLink, 1.25e6},
		{"56 kbit/s", 150 * time.Millisecond, 7e3, 512, mib, byLink, 7e3},
		{"50 ms", 50 * time.Millisecond, 10e9, 512, 8 * mib, byDelay, 16 * mib / 0.052},
		{"one credit", time.Millisecond, 10e9, 1, 8 * mib, byCredits, 64e6},
		{"few credits, 100 ms", 100 * time.Millisecond, 125e6, 128, 8 * mib, byCredits, 8 * mib / 0.108},
		{"16 KiB, few credits", 10 * time.Millisecond, 125e6, 16, 16 << 10, byMaxRead, 16 * 16 << 10 / 0.0101},
		{"one credit, small file", time.Millisecond, 10e9, 1, 8 * mib, byCredits, 64e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakePath(c.delay, c.rate, c.credits, c.maxRead)
				start := time.Now()
				m, err := f.probe(100 * mib).measure(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if limit, advice := verdict(m); limit != c.limit {
					t.Errorf("limit %q (%s), want %q; steps %+v", limit, advice, c.limit, m.Steps)
				}
				if got := m.best().Rate; got < 0.9*c.read || got > 1.1*c.read {
					t.Errorf("read %s, want %s", rate(got), rate(c.read))
				}
				if m.Burst != 0 && (m.Burst < 0.8*c.rate || m.Burst > 1.2*c.rate) {
					t.Errorf("burst %s on a link of %s", rate(m.Burst), rate(c.rate))
				}
				if m.RTT < c.delay || m.RTT > c.delay+20*time.Millisecond {
					t.Errorf("RTT %v, want %v", m.RTT, c.delay)
				}
				if took := time.Since(start); took > 8*time.Second {
					t.Errorf("took %v, want less than 8 s", took)
				}
			})
		})
	}
}

func TestMeasureWithoutFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newFakePath(time.Millisecond, 1e9, 8, 1<<20).probe(0).measure(t.Context())
		if err != nil || len(m.Steps) != 0 || m.RTT < time.Millisecond {
			t.Errorf("measurement %+v, %v; want a round trip and no reads", m, err)
		}
	})
}
