package pagecache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// wants says what an error has to be, if any.
func wants(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Errorf("%s: %v, want errno %d", what, err, want)
	}
}

// fails has requests of one kind fail while err is not nil.
func (r *rig) fails(call string) *atomic.Pointer[error] {
	var p atomic.Pointer[error]
	r.hook(func(_ context.Context, op remotetest.Op) error {
		if err := p.Load(); err != nil && op.Call == call {
			return *err
		}
		return nil
	})
	return &p
}

func ptr(err error) *error { return &err }

func TestAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 3 << 20
		r := newRig(t, Config{Budget: 16 << 20}, FileConfig{}, remotetest.Config{Capacity: room, Delay: time.Millisecond}, nil)
		first, second := r.open(), r.open()
		data := noise(8 << 20)
		for off := 0; off < len(data); off += 100_000 {
			r.write(first, int64(off), data[off:min(off+100_000, len(data))])
		}
		wants(t, "Sync", first.Sync(ctx), syscall.ENOSPC)
		wants(t, "Sync again", first.Sync(ctx), 0)
		late := r.open()
		wants(t, "Sync of a later open", late.Sync(ctx), 0)

		on := r.bytes()
		if size := r.f.Size(); size != int64(len(on)) || len(on) == 0 {
			t.Errorf("size %d, want the server's, %d", size, len(on))
		}
		r.same("bytes", r.read(first, 0, len(data)), on)
		if n := r.c.Stats().Dirty; n != 0 {
			t.Errorf("%d bytes are still dirty", n)
		}
		r.write(first, 0, []byte("usable"))
		must(t, first.Sync(ctx))
		r.same("bytes", r.read(second, 0, 6), []byte("usable"))

		wants(t, "Close", first.Close(ctx), 0)
		wants(t, "Close of the second", second.Close(ctx), syscall.ENOSPC)
		wants(t, "Close of a later open", late.Close(ctx), 0)
	})
}

func TestErrorsThatPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 4 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, nil)
		o := r.open()
		data := noise(100_000)
		err := r.fails("WriteAt")
		r.write(o, 0, data)
		err.Store(ptr(syscall.ECONNRESET))
		for range 3 {
			wants(t, "Sync", o.Sync(ctx), syscall.ECONNRESET)
		}
		r.same("what is to be written", r.read(o, 0, len(data)), data)
		if n := r.c.Stats().Dirty; n != int64(len(data)) {
			t.Errorf("%d bytes are dirty, want all", n)
		}
		err.Store(nil)
		must(t, o.Sync(ctx))
		r.same("the server", r.bytes(), data)

		// Age has it tried again, too.
		r.write(o, 0, []byte("once more"))
		copy(data, "once more")
		err.Store(ptr(syscall.ECONNRESET))
		<-time.After(3 * maxAge)
		err.Store(nil)
		<-time.After(maxAge)
		synctest.Wait()
		r.same("the server, later", r.bytes(), data)
		must(t, o.Close(ctx))
	})
}

func TestAWriterWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, nil)
		o := r.open()
		err := r.fails("WriteAt")
		err.Store(ptr(syscall.ECONNRESET))
		n, got := o.WriteAt(ctx, noise(4<<20), 0)
		wants(t, "WriteAt", got, syscall.ECONNRESET)
		if n > 600<<10 {
			t.Errorf("wrote %d bytes into a cache of a megabyte", n)
		}
		if tries := r.writes(); tries > 50 {
			t.Errorf("%d tries", tries)
		}
		err.Store(nil)
		must(t, o.Sync(ctx))
		r.same("the server", r.bytes(), noise(4 << 20)[:n])
		must(t, o.Close(ctx))
	})
}

// A file whose server is gone takes all the room there is. Others write past the cache.
func TestOthersWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, nil)
		o := r.open()
		r.write(o, 0, noise(500<<10))
		r.hook(func(_ context.Context, op remotetest.Op) error {
			if op.Call == "WriteAt" && op.At.Node == name {
				return syscall.ECONNRESET
			}
			return nil
		})
		wants(t, "Sync", o.Sync(ctx), syscall.ECONNRESET)
		tries := r.writes()
		r.fake.Put("other", nil)
		f := r.c.NewFile(FileConfig{})
		opened, err := r.fake.Open(ctx, remote.At{Name: "other"}, remote.How{Access: remote.ForWrite, Rights: f.Wants()}, f)
		must(t, err)
		other := f.Attach(opened, remote.ForWrite, false)
		data := noise(2 << 20)
		for off := 0; off < len(data); off += 128 << 10 {
			r.write(other, int64(off), data[off:off+128<<10])
		}
		must(t, other.Close(ctx))
		got, _ := r.fake.Bytes("other")
		r.same("the other file", got, data)
		if n := r.writes() - tries; n > 100 {
			t.Errorf("%d requests meanwhile", n)
		}
		r.hook(nil)
		must(t, o.Close(ctx))
		r.same("the server", r.bytes(), noise(500<<10))
	})
}

func TestTheLastCloseWithADeadServer(t *testing.T) {
	for _, closing := range []string{"with time", "without"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Budget: 1 << 20}, FileConfig{Temporary: temporary}, remotetest.Config{}, []byte("theirs"))
			o, reader := r.open(), r.openFor(remote.ForRead)
			r.write(o, 0, noise(1000))
			r.hook(func(ctx context.Context, op remotetest.Op) error {
				if op.Call == "WriteAt" && closing == "without" {
					<-time.After(time.Minute)
				}
				return syscall.ECONNRESET
			})
			ctx, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			if err := o.Close(ctx); err == nil {
				t.Error("Close says nothing")
			}
			<-time.After(2 * time.Minute)
			if s := r.c.Stats(); s.Dirty != 0 {
				t.Errorf("%d bytes are still dirty", s.Dirty)
			}
			r.hook(nil)
			if err := reader.Sync(context.Background()); err == nil {
				t.Error("the other open hears nothing")
			}
			must(t, reader.Close(context.Background()))
			again := r.open()
			r.same("bytes", r.read(again, 0, 100), []byte("theirs"))
			must(t, again.Close(context.Background()))
		})
	}
}

// What the server says of the size when a write has failed may be from before another
// write got there.
func TestSizesAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 64 << 20}, FileConfig{}, remotetest.Config{}, nil)
		g := r.hold("GetAttr")
		o := r.open()
		slow := make(gate)
		r.hook(func(ctx context.Context, op remotetest.Op) error {
			if op.Call == "WriteAt" && op.Off == 0 {
				return syscall.ENOSPC
			}
			if op.Call == "WriteAt" {
				return slow.pass(ctx)
			}
			return nil
		})
		r.write(o, 0, noise(1000))
		r.write(o, 4<<20, noise(1000))
		synced := make(chan error)
		go func() { synced <- o.Sync(ctx) }()
		synctest.Wait() // the first has failed, and the answer is that the file is empty
		close(slow)
		synctest.Wait() // the second is there
		close(g)
		wants(t, "Sync", <-synced, syscall.ENOSPC)
		if size := r.f.Size(); size != 4<<20+1000 {
			t.Errorf("size %d, want %d", size, 4<<20+1000)
		}
		r.same("the second", r.read(o, 4<<20, 2000), noise(1000))
		must(t, o.Close(ctx))
	})
}

// A request that failed may have come through all the same.
func TestSizesAfterDirectErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		call string
		do   func(o *Open) error
		want int64
	}{
		{"a write", "WriteAt", func(o *Open) error { _, err := o.WriteAt(ctx, make([]byte, 50), 100); return err }, 150},
		{"a truncation", "SetSize", func(o *Open) error { return o.Truncate(ctx, 30) }, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{Rights: remote.CacheRead}, noise(100))
				o := r.open()
				r.read(o, 0, 100)
				o.server = liarFile{o.server}
				wants(t, c.name, c.do(o), syscall.EIO)
				synctest.Wait()
				if size := r.f.Size(); size != c.want {
					t.Errorf("size %d, want %d", size, c.want)
				}
				r.same("bytes", r.read(o, 0, 1000), r.bytes())
				must(t, o.Close(ctx))
			})
		})
	}
}

// liarFile does what it says it could not do.
type liarFile struct{ remote.File }

func (l liarFile) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (int, bool, error) {
	l.File.WriteAt(ctx, req, w)
	return 0, false, syscall.EIO
}

func (l liarFile) SetSize(ctx context.Context, o remote.Open, size int64) (remote.Attr, error) {
	l.File.SetSize(ctx, o, size)
	return remote.Attr{}, syscall.EIO
}

func TestEachErrorIsReportedOnceToEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, nil)
		opens := []*Open{r.open(), r.open(), r.openFor(remote.ForRead)}
		err := r.fails("WriteAt")
		for i, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
			r.write(opens[0], int64(i)*100, bytes.Repeat([]byte{1}, 10))
			err.Store(ptr(errno))
			must(t, ignore(opens[1].Flush(ctx)))
			for j, o := range opens {
				wants(t, fmt.Sprintf("open %d", j), o.Sync(ctx), errno)
				wants(t, fmt.Sprintf("open %d again", j), o.Sync(ctx), 0)
			}
			err.Store(nil)
		}
		for _, o := range opens {
			must(t, o.Close(ctx))
		}
	})
}

// ignore is for what is told elsewhere, too.
func ignore(error) error { return nil }

func TestClosedIsClosed(t *testing.T) {
	r := newRig(t, Config{Budget: 1 << 20}, FileConfig{}, remotetest.Config{}, noise(100))
	o := r.open()
	must(t, o.Close(ctx))
	_, err := o.ReadAt(ctx, make([]byte, 1), 0)
	_, err2 := o.WriteAt(ctx, make([]byte, 1), 0)
	_, _, err3 := o.Append(ctx, make([]byte, 1))
	_, _, err4 := o.Stream(ctx, 0, nil)
	for i, err := range []error{err, err2, err3, err4, o.Truncate(ctx, 0), o.Sync(ctx), o.Close(ctx)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d: %v, want ErrClosed", i, err)
		}
	}
	reader := r.openFor(remote.ForRead)
	_, err = reader.WriteAt(ctx, make([]byte, 1), 0)
	wants(t, "a write by a reader", err, syscall.EBADF)
	must(t, reader.Close(ctx))
	writer := r.openFor(remote.ForWrite)
	_, err = writer.ReadAt(ctx, make([]byte, 1), 0)
	wants(t, "a read by a writer", err, syscall.EBADF)
	must(t, writer.Close(ctx))
}
