package remotetest

import (
	"context"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// target opens a Fake that can do everything.
func target(t *testing.T, cfg Config) Target {
	cfg.Check = t.Errorf
	f := New(cfg)
	return Target{
		Volume: f,
		Second: f.Another(cfg),
		Caps: Caps{
			Symlinks: true, Links: true, DOS: true, FoldCase: cfg.FoldCase, Reserved: true, LoneSurrogates: true,
			Rights: cfg.Rights,
			Fill: func(_ *testing.T, free int64) {
				f.Set(func(c *Config) {
					if c.Capacity = 0; free >= 0 {
						c.Capacity = f.tree.used + free
					}
				})
			},
		},
	}
}

func TestSuite(t *testing.T) {
	all := remote.CacheRead | remote.CacheWrite | remote.CacheHandle
	for name, cfg := range map[string]Config{
		"fast":     {Rights: all},
		"fold":     {FoldCase: true, PageSize: 7},
		"short":    {ShortRead: 1021, ShortWrite: 4093, Limits: remote.Limits{Read: 65536, Write: 65536}},
		"tiny":     {Limits: remote.Limits{Read: 4096, Write: 5000}},
		"slow":     {Hook: slowly, Sending: 20 * time.Microsecond, PageSize: 1000, Limits: remote.Limits{Read: 65536, Write: 65536}},
		"unstable": {Unstable: true},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, func(t *testing.T) Target { return target(t, cfg) })
		})
	}
}

// slowly lets the bytes of a file take their time.
func slowly(ctx context.Context, op Op) error {
	if op.Call == "ReadAt" || op.Call == "WriteAt" {
		return wait(ctx, 50*time.Microsecond)
	}
	return nil
}
