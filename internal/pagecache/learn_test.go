package pagecache

import (
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestFlushWritesAndCommitsNothing(t *testing.T) {
	r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, []byte("old"))
	o := r.open()
	if _, err := o.WriteAt(ctx, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	must(t, o.Flush(ctx))
	if got := string(r.bytes()); got != "new" || r.fake.Count("Commit") != 0 {
		t.Errorf("the server has %q after %d commits, want new after none", got, r.fake.Count("Commit"))
	}
	must(t, o.Close(ctx))
}

// An answer that was asked for while bytes were dirty may be from before they got to
// the server, and then says nothing once they have.
func TestLateAnswersAreNotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, []byte("old"))
		o := r.open()
		size := func() int64 { size, _, _ := r.f.State(); return size }
		for _, sync := range []bool{true, false} {
			if _, _, err := o.Append(ctx, []byte("more")); err != nil {
				t.Fatal(err)
			}
			want := size()
			_, touched, _ := r.f.State()
			late, err := o.server.GetAttr(ctx, o.remote)
			must(t, err)
			if sync {
				must(t, o.Sync(ctx))
			} else if _, err := o.writeDirect(ctx, []byte("more"), want-4); err != nil {
				t.Fatal(err)
			}
			r.f.Learn(late, touched)
			if got := size(); got != want {
				t.Errorf("size %d, want %d", got, want)
			}
		}
		must(t, o.Close(ctx))
	})
}
