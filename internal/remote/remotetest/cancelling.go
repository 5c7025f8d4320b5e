package remotetest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

var cancelTests = []test{
	{"CancelledBeforeItDoesNothing", testCancelBefore},
	{"CancelledReadsGiveTheirBuffersBack", testCancelReads},
	{"CancelledWritesGiveTheirBuffersBack", testCancelWrites},
}

func testCancelBefore(b *bed) {
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	h.write(0, []byte("kept"))
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	late, stop := context.WithDeadline(b.ctx, time.Unix(0, 0))
	defer stop()

	p := bytes.Repeat([]byte{0xEE}, 4)
	_, _, err := h.File.ReadAt(ctx, h.req(0), [][]byte{p})
	b.fails(err, cancelled(), "ReadAt")
	_, _, err = h.File.WriteAt(ctx, h.req(0), remote.Write{Data: [][]byte{p}})
	b.fails(err, cancelled(), "WriteAt")
	_, _, err = h.Open.Append(ctx, [][]byte{p})
	b.fails(err, cancelled(), "Append")
	_, err = h.File.SetSize(ctx, h.Open, 0)
	b.fails(err, cancelled(), "SetSize")
	_, err = b.vol.Make(ctx, b.at("dir"), remote.Make{Kind: remote.Dir})
	b.fails(err, cancelled(), "Make")
	_, err = b.vol.WriteFile(ctx, b.at("other"), remote.How{Access: remote.ForWrite, Create: remote.New}, p)
	b.fails(err, cancelled(), "WriteFile")
	_, err = b.vol.Open(ctx, b.at("other"), remote.How{Access: remote.ForWrite, Create: remote.New}, nil)
	b.fails(err, cancelled(), "Open")
	_, err = b.vol.Rename(ctx, b.at("file"), b.at("other"), true)
	b.fails(err, cancelled(), "Rename")
	b.fails(b.vol.Remove(ctx, b.at("file"), false), cancelled(), "Remove")
	_, err = b.vol.GetAttr(late, b.at("file"))
	b.fails(err, []error{context.DeadlineExceeded}, "GetAttr too late")
	if got := h.read(0, 10); string(got) != "kept" {
		b.Errorf("afterwards the file has %q, want %q", got, "kept")
	}
	b.holds("file")
}

// eachCancelled runs call in many goroutines, cancels them all when the first
// is through, and does so several times, each a little later.
func (b *bed) eachCancelled(call func(ctx context.Context, i int) error) (cancelledCalls int) {
	const rounds, calls = 6, 24
	for round := range rounds {
		ctx, cancel := context.WithCancel(b.ctx)
		first := make(chan struct{}, calls)
		errs := make([]error, calls)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				errs[i] = call(ctx, i)
				first <- struct{}{}
			})
		}
		for range round * calls / (2 * rounds) {
			<-first
		}
		cancel()
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				b.fails(err, cancelled(), "a cancelled call")
				cancelledCalls++
			}
		}
	}
	return cancelledCalls
}

// testCancelReads writes into the buffers of reads as soon as they return. The
// answers that come after that must not show up there.
func testCancelReads(b *bed) {
	const length = 64 << 10
	want := noise(1, 24*length)
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	h.write(0, want)
	bufs := make([][]byte, 24)
	for i := range bufs {
		bufs[i] = make([]byte, length)
	}
	canary := bytes.Repeat([]byte{0xCA}, length)
	n := b.eachCancelled(func(ctx context.Context, i int) error {
		off := i * length
		n, _, err := h.File.ReadAt(ctx, h.req(int64(off)), split(bufs[i]))
		if err == nil && !bytes.Equal(bufs[i][:n], want[off:off+n]) {
			b.Errorf("a read that was not cancelled: %s", differ(bufs[i][:n], want[off:off+n]))
		}
		copy(bufs[i], canary)
		return err
	})
	b.Logf("%d reads were cancelled", n)
	// What is still under way comes before the answers to these.
	if got := h.read(0, len(want)); !bytes.Equal(got, want) {
		b.Errorf("read afterwards: %s", differ(got, want))
	}
	for i, p := range bufs {
		if !bytes.Equal(p, canary) {
			b.Errorf("buffer %d was written to after its read had returned", i)
		}
	}
}

// testCancelWrites writes into the buffers of writes as soon as they return.
// The server may have the bytes of before, or none, but not these.
func testCancelWrites(b *bed) {
	const length = 64 << 10
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	h.write(0, make([]byte, 24*length))
	n := b.eachCancelled(func(ctx context.Context, i int) error {
		p := bytes.Repeat([]byte{byte(1 + i)}, length)
		_, _, err := h.File.WriteAt(ctx, h.req(int64(i*length)), remote.Write{Data: split(p)})
		copy(p, bytes.Repeat([]byte{0xCA}, length))
		return err
	})
	b.Logf("%d writes were cancelled", n)
	for i := range 24 {
		got := h.read(int64(i*length), length)
		if bad := slices.IndexFunc(got, func(c byte) bool { return c != 0 && c != byte(1+i) }); bad >= 0 {
			b.Errorf("block %d has byte %#x at %d, want 0 or %#x", i, got[bad], bad, 1+i)
		}
	}
	h.write(0, []byte("afterwards"))
	if got := h.read(0, 10); string(got) != "afterwards" {
		b.Errorf("afterwards: %q", got)
	}
}

// testAfterClose closes a volume in the midst of its work.
func testAfterClose(t *testing.T, vol remote.Volume) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bed{T: t, ctx: ctx, vol: vol}
	b.dir = b.mkdir("close-" + time.Now().Format("150405.000000000")).Node
	o, err := vol.Open(ctx, b.at("file"), remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.New}, nil)
	b.ok(err, "Open")
	h := &handle{Opened: o, b: b}
	h.write(0, make([]byte, 100_000))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for p := make([]byte, 100_000); ; { // until it fails, which it has to
				if _, _, err := o.File.ReadAt(ctx, h.req(0), [][]byte{p}); err != nil {
					return
				}
			}
		})
	}
	b.ok(vol.Close(ctx), "Close")
	wg.Wait()
	if ctx.Err() != nil {
		t.Error("reads went on after Close, want them to fail")
	}
	_, err = vol.GetAttr(ctx, remote.At{})
	b.fails(err, anyError(), "GetAttr")
	_, err = vol.Open(ctx, b.at("file"), remote.How{Access: remote.ForRead}, nil)
	b.fails(err, anyError(), "Open")
	for _, err := range vol.ReadDir(ctx, remote.At{}) {
		b.fails(err, anyError(), "ReadDir")
	}
	_, _, err = h.File.WriteAt(ctx, h.req(0), remote.Write{Data: [][]byte{{1}}})
	b.fails(err, anyError(), "WriteAt")
	_ = o.Open.Close(ctx) // as people defer it; it must return
	_ = vol.Close(ctx)
	if ctx.Err() != nil {
		t.Error("something hung after Close")
	}
}
