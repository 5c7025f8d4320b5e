package remotetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

func mustOpen(t *testing.T, f *Fake, name string, how remote.How, events remote.Events) remote.Opened {
	t.Helper()
	o, err := f.Open(t.Context(), remote.At{Name: name}, how, events)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var readWrite = remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew}

func TestFakeDelaysAndOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Second, Limits: remote.Limits{Read: 4}, ShortRead: 3})
		f.Put("a", []byte("0123456789"))
		o := mustOpen(t, f, "a", remote.How{Access: remote.ForRead}, nil)
		start, done := time.Now(), make(chan string)
		for i := range 4 {
			go func() {
				p := make([]byte, 8)
				n, eof, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open, Off: int64(i) * 3}, [][]byte{p[:1], p[1:]})
				done <- fmt.Sprint(string(p[:n]), eof, err)
			}()
		}
		var got []string
		for range 4 {
			got = append(got, <-done)
		}
		slices.Sort(got)
		if want := []string{"012false <nil>", "345false <nil>", "678false <nil>", "9true <nil>"}; !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("four reads at once took %v, want 1s", took)
		}
		if f.Peak() != 4 || f.Count("ReadAt") != 4 || f.Count("Open") != 1 {
			t.Errorf("peak %d, %d reads, %d opens, want 4, 4, 1", f.Peak(), f.Count("ReadAt"), f.Count("Open"))
		}
	})
}

func TestFakeCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{Delay: time.Hour, Sending: time.Minute, Check: t.Errorf})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		f.Set(func(c *Config) { c.Delay = 0 })
		o := mustOpen(t, f, "a", readWrite, nil)
		f.Set(func(c *Config) { c.Delay = time.Hour })

		start, p := time.Now(), make([]byte, 8)
		_, _, err := o.File.ReadAt(ctx, remote.Req{Open: o.Open}, [][]byte{p})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("cancelled read: %v after %v, want DeadlineExceeded after 2s", err, took)
		}
		if p[0] != poison || p[7] != poison {
			t.Errorf("buffer of a cancelled read is % x, want poison", p)
		}

		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start = time.Now()
		_, _, err = o.File.WriteAt(ctx, remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{p}})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("cancelled write: %v after %v, want DeadlineExceeded once it was sent, after 1m", err, took)
		}
	})
}

func TestFakeHook(t *testing.T) {
	var ops []string
	f := New(Config{Hook: func(_ context.Context, op Op) error {
		ops = append(ops, op.Call)
		if op.Call == "ReadAt" && op.Off == 2 {
			return syscall.EIO
		}
		return nil
	}})
	f.Put("dir/a", []byte("abcd"))
	o, err := f.Open(t.Context(), remote.At{Dir: "dir", Name: "a"}, remote.How{Access: remote.ForRead}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 2)
	if _, _, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open, Off: 2}, [][]byte{p}); !errors.Is(err, syscall.EIO) {
		t.Errorf("hooked read: %v, want EIO", err)
	}
	if n, _, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open}, [][]byte{p}); n != 2 || err != nil {
		t.Errorf("other read: %d, %v, want 2, nil", n, err)
	}
	if err := o.Open.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"Open", "ReadAt", "ReadAt", "Close"}; !slices.Equal(ops, want) {
		t.Errorf("hook saw %v, want %v", ops, want)
	}
	if err := o.Open.Close(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v, want ErrClosed", err)
	}
}

// TestFakeChecks breaks each rule for buffers, and expects to be told.
func TestFakeChecks(t *testing.T) {
	var told []string
	var during func()
	f := New(Config{
		Check: func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) },
		Hook: func(context.Context, Op) error {
			if during != nil {
				during()
			}
			return nil
		},
	})
	f.Put("a", make([]byte, 64))
	o := mustOpen(t, f, "a", readWrite, nil)
	p := bytes.Repeat([]byte{1}, 16)
	read := func() { o.File.ReadAt(t.Context(), remote.Req{Open: o.Open}, [][]byte{p[:4], p[4:]}) }
	write := func() { o.File.WriteAt(t.Context(), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{p}}) }
	touch := func() { p[9]++ }
	inner := func(call func()) func() {
		return func() { during = nil; call() }
	}
	for _, c := range []struct {
		name         string
		call, during func()
		want         string
	}{
		{"reading alone", read, nil, ""},
		{"writing alone", write, nil, ""},
		{"touched in a read", read, touch, "changed during ReadAt"},
		{"touched in a write", write, touch, "changed during WriteAt"},
		{"written while read into", read, inner(write), "WriteAt was lent a buffer that ReadAt has"},
		{"written twice at once", write, inner(write), ""},
	} {
		told, during = nil, c.during
		c.call()
		got := strings.Join(told, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: told %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFakeRestartLosesWhatIsNotCommitted(t *testing.T) {
	f := New(Config{Unstable: true})
	o := mustOpen(t, f, "a", readWrite, nil)
	write := func(off int64, s string, stable bool) {
		t.Helper()
		w := remote.Write{Data: [][]byte{[]byte(s)}, Stable: stable}
		if _, got, err := o.File.WriteAt(t.Context(), remote.Req{Open: o.Open, Off: off}, w); err != nil || got != stable {
			t.Fatalf("WriteAt: stable %v, %v, want %v, nil", got, err, stable)
		}
	}
	write(0, "committed", false)
	if redo, err := o.File.Commit(t.Context(), o.Open, nil); len(redo) > 0 || err != nil {
		t.Fatalf("Commit: %v, %v, want nothing to redo", redo, err)
	}
	write(0, "C", true)
	write(2, "MM", false)
	write(6, "lost at sea", false)
	f.Restart()
	if got, _ := f.Bytes("a"); string(got) != "Committed" {
		t.Errorf("after the restart: %q, want %q", got, "Committed")
	}
	redo, err := o.File.Commit(t.Context(), o.Open, []remote.Span{{Off: 0, Len: 10}})
	if want := []remote.Span{{Off: 6, Len: 4}, {Off: 2, Len: 2}}; !slices.Equal(redo, want) || err != nil {
		t.Errorf("Commit: %v, %v, want %v", redo, err, want)
	}
	if redo, _ := o.File.Commit(t.Context(), o.Open, nil); len(redo) > 0 {
		t.Errorf("second Commit: %v, want nothing to redo", redo)
	}
}

type eventFunc func(remote.Change)

func (f eventFunc) Rights(c remote.Change) { f(c) }

func TestFakeRecallsRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := remote.CacheRead | remote.CacheWrite | remote.CacheHandle
		f := New(Config{Rights: all})
		other := f.Another(Config{Rights: all, Patience: time.Minute})
		how := readWrite
		how.Rights = all

		changes := make(chan remote.Change, 8)
		mine := mustOpen(t, f, "a", how, eventFunc(func(c remote.Change) { changes <- c }))
		if mine.Rights != all {
			t.Fatalf("the only one has rights %b, want %b", mine.Rights, all)
		}
		go func() {
			c := <-changes
			<-time.After(time.Second)
			c.Ack(nil)
			c.Ack(nil)
		}()
		start := time.Now()
		theirs := mustOpen(t, other, "a", how, eventFunc(func(c remote.Change) { changes <- c }))
		if took, want := time.Since(start), remote.CacheRead|remote.CacheHandle; took != time.Second || theirs.Rights != want {
			t.Errorf("second open: rights %b after %v, want %b after the first one gave way in 1s", theirs.Rights, took, want)
		}

		// A write takes the right to cached reads without waiting, and only others'.
		w := remote.Write{Data: [][]byte{[]byte("x")}}
		if _, _, err := mine.File.WriteAt(t.Context(), remote.Req{Open: mine.Open}, w); err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-changes:
			if c.Rights != remote.CacheHandle || c.Ack != nil || c.Node != "a" {
				t.Errorf("after a write: %+v, want only CacheHandle left of a and no Ack", c)
			}
		default:
			t.Error("a write told nobody")
		}
		if len(changes) > 0 {
			t.Errorf("one too many change: %+v", <-changes)
		}

		// Who does not answer is not waited for longer than Patience.
		start = time.Now()
		if err := f.Remove(t.Context(), remote.At{Name: "a"}, false); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("an open that does not give way held Remove up for %v, want 1m", took)
		}
	})
}

func TestFakeAfterClose(t *testing.T) {
	f := New(Config{})
	o := mustOpen(t, f, "a", readWrite, nil)
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GetAttr(t.Context(), remote.At{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("GetAttr: %v, want ErrClosed", err)
	}
	if _, _, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open}, nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("ReadAt: %v, want ErrClosed", err)
	}
}
