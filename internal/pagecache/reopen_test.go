package pagecache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestReopening(t *testing.T) {
	for _, c := range []struct {
		name string
		mode Mode
		do   func(r *rig)
		kept bool
	}{
		{"nothing happened", Strict, func(*rig) {}, true},
		{"nothing happened, loosely", Loose, func(*rig) {}, true},
		{"nothing is ever kept", None, func(*rig) {}, false},
		{"other bytes", Strict, func(r *rig) { r.fake.Put(name, make([]byte, 50_000)) }, false},
		{"other bytes, loosely", Loose, func(r *rig) { r.fake.Put(name, make([]byte, 50_000)) }, false},
		{"longer", Strict, func(r *rig) { r.fake.Put(name, append(r.bytes(), 1)) }, false},
		{"another time", Strict, func(r *rig) {
			_, err := r.fake.SetAttr(ctx, remote.At{Name: name}, remote.SetAttr{Written: time.Now().Add(time.Hour)})
			must(r.t, err)
		}, false},
		{"told to forget", Strict, func(r *rig) { r.f.Forget() }, false},
		{"written here, and nobody asked since", Strict, func(r *rig) {
			o := r.open()
			r.write(o, 0, []byte("x"))
			must(r.t, o.Close(ctx))
		}, false},
		{"written here, and learned how that is on the server", Strict, func(r *rig) {
			o := r.open()
			r.read(o, 0, 50_000)
			r.write(o, 0, []byte("x"))
			must(r.t, o.Flush(ctx))
			_, touched, vouched := r.f.State()
			attr, err := o.server.GetAttr(ctx, o.remote)
			must(r.t, err)
			if touched.IsZero() || !vouched {
				r.t.Errorf("touched %v, vouched %v", touched, vouched)
			}
			r.f.Learn(attr, touched)
			if _, touched, _ := r.f.State(); !touched.IsZero() {
				r.t.Error("it was not learned")
			}
			must(r.t, o.Close(ctx))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: c.mode}, remotetest.Config{}, noise(50_000))
				o := r.open()
				r.same("bytes", r.read(o, 0, 50_000), noise(50_000))
				must(t, o.Close(ctx))
				<-time.After(time.Second)
				c.do(r)
				reads := r.reads()
				o = r.open()
				r.same("bytes again", r.read(o, 0, 60_000), r.bytes())
				if kept := r.reads() == reads; kept != c.kept {
					t.Errorf("%d requests, want kept: %v", r.reads()-reads, c.kept)
				}
				must(t, o.Close(ctx))
			})
		})
	}
}

// Without rights the answers of the server are all there is to go by.
func TestLearningLoosely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Mode: Loose}, remotetest.Config{}, noise(50_000))
		o := r.open()
		r.read(o, 0, 50_000)
		learn := func() {
			_, touched, vouched := r.f.State()
			if vouched {
				t.Error("it is vouched for by nothing")
			}
			attr, err := o.server.GetAttr(ctx, o.remote)
			must(t, err)
			r.f.Learn(attr, touched)
		}
		learn()
		reads := r.reads()
		r.same("unchanged", r.read(o, 0, 60_000), noise(50_000))
		if r.reads() != reads {
			t.Error("dropped, although nothing has changed")
		}
		<-time.After(time.Second)
		r.fake.Put(name, noise(70_000))
		r.same("before it is known", r.read(o, 0, 80_000), noise(50_000))
		learn()
		r.same("after that", r.read(o, 0, 80_000), noise(70_000))

		// Dirty bytes outlive what others do, and are learned of once they are there.
		r.write(o, 0, []byte("mine"))
		learn()
		r.same("mine", r.read(o, 0, 4), []byte("mine"))
		must(t, o.Flush(ctx))
		learn()
		reads = r.reads()
		r.same("mine, written", r.read(o, 0, 80_000), append([]byte("mine"), noise(70_000)[4:]...))
		if r.reads() != reads {
			t.Error("dropped because of its own write")
		}
		must(t, o.Close(ctx))
	})
}

// What an open says may be from before a write by another.
func TestAnOpenThatIsLate(t *testing.T) {
	for _, rights := range []remote.Rights{fullRights, none} {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{}, remotetest.Config{Rights: rights}, noise(100))
		o := r.open()
		opened, err := r.fake.Open(ctx, remote.At{Name: name}, remote.How{Access: remote.ForRead, Rights: r.f.Wants()}, r.f)
		must(t, err)
		r.write(o, 100, noise(100))
		late := r.attach(opened, remote.ForRead, false)
		if size := r.f.Size(); size != 200 {
			t.Errorf("rights %b: size %d, want 200", rights, size)
		}
		must(t, late.Close(ctx))
		must(t, o.Close(ctx))
	}
}
