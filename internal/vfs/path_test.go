package vfs

import (
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestKeysOfNamesThatMayBeTheSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"dir/file", "DIR/File", true},
		{"dir/file", "dir/files", false},
		{"stra\u00dfe", "STRA\u00dfE", true},
		{"\u03c2", "\u03a3", true}, // both small sigmas have one capital
		{"\u03c2", "\u03c3", true},
		{"\u00e9", "\u00c9", true},
		{"\u00e9", "e", false},
	} {
		fold, exact := &FS{}, &FS{cfg: Config{CaseSensitive: true}}
		if got := fold.key(c.a) == fold.key(c.b); got != c.same {
			t.Errorf("%q and %q have the same key: %v", c.a, c.b, got)
		}
		if exact.key(c.a) == exact.key(c.b) {
			t.Errorf("%q and %q have the same key although case tells them apart", c.a, c.b)
		}
	}
}

func TestParents(t *testing.T) {
	for p, want := range map[string]string{"a/b/c": "a/b", "a/b": "a", "a": ".", ".": ".", "a/": "a"} {
		if got := parent(p); got != want {
			t.Errorf("the parent of %q is %q, want %q", p, got, want)
		}
	}
}

func TestAllocsOfWhatIsKnown(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fake.Put("one/folder/and/a/file", nil)
		b.stats("one/folder/and/a/file", 1, 0)
		b.lacks("one/folder/and/none", 1)
		b.writeFile("other", remote.New, "") // so that something has changed
		for _, name := range []string{"one/folder/and/a/file", "one/folder/and/none"} {
			if n := testing.AllocsPerRun(100, func() { b.fs.GetAttr(b.ctx, name) }); n > 0 {
				b.Errorf("%v allocations to look up %s, want none", n, name)
			}
		}
	})
}
