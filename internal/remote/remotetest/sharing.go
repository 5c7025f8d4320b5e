package remotetest

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pagewire/pagewire/internal/remote"
)

var sharedTests = []test{
	{"ManyGoroutinesOnOneFile", testOneFile},
	{"ManyGoroutinesOnManyFiles", testManyFiles},
	{"TwoClientsSeeTheSame", testTwoClients},
	{"RightsAreRecalled", testRecall},
	{"FileIsAByteSlice", testFileModel},
	{"TreeIsAMap", testTreeModel},
}

const crowd = 64

func testOneFile(b *bed) {
	const length = 10_007
	h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	var wg sync.WaitGroup
	for g := range crowd {
		wg.Go(func() {
			want, got := noise(uint64(g), length), make([]byte, length)
			for range 4 {
				off := int64(g * length)
				for done := 0; done < length; {
					n, _, err := h.File.WriteAt(b.ctx, h.req(off+int64(done)), remote.Write{Data: [][]byte{want[done:]}})
					if err != nil || n == 0 {
						b.Errorf("WriteAt: %d, %v", n, err)
						return
					}
					done += n
				}
				for done := 0; done < length; {
					n, _, err := h.File.ReadAt(b.ctx, h.req(off+int64(done)), split(got[done:]))
					if err != nil || n == 0 {
						b.Errorf("ReadAt: %d, %v", n, err)
						return
					}
					done += n
				}
				if !bytes.Equal(got, want) {
					b.Errorf("goroutine %d: %s", g, differ(got, want))
				}
			}
		})
	}
	wg.Wait()
	for g := range crowd {
		if got, want := h.read(int64(g*length), length), noise(uint64(g), length); !bytes.Equal(got, want) {
			b.Errorf("afterwards, part %d: %s", g, differ(got, want))
		}
	}
}

func testManyFiles(b *bed) {
	var wg sync.WaitGroup
	for g := range crowd {
		wg.Go(func() {
			if err := b.lifeOfAFile(g); err != nil {
				b.Errorf("goroutine %d: %v", g, err)
			}
		})
	}
	wg.Wait()
	b.holds()
}

// lifeOfAFile makes, writes, renames, reads and removes a file of its own.
func (b *bed) lifeOfAFile(g int) error {
	name, want := fmt.Sprint("file", g), noise(uint64(g), 3000+g)
	o, err := b.vol.Open(b.ctx, b.at(name), remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.New}, nil)
	if err != nil {
		return err
	}
	for done := 0; done < len(want); {
		n, _, err := o.File.WriteAt(b.ctx, remote.Req{Open: o.Open, Off: int64(done)}, remote.Write{Data: split(want[done:])})
		if err != nil || n == 0 {
			return fmt.Errorf("WriteAt: %d, %w", n, err)
		}
		done += n
	}
	if err := o.Open.Close(b.ctx); err != nil {
		return err
	}
	if _, err := b.vol.Rename(b.ctx, b.at(name), b.at(name+"x"), false); err != nil {
		return err
	}
	got := make([]byte, 5000)
	n, attr, err := b.vol.ReadFile(b.ctx, b.at(name+"x"), got)
	if err != nil {
		return err
	}
	if !bytes.Equal(got[:n], want) || attr.Size != int64(len(want)) {
		return fmt.Errorf("ReadFile: %s, size %d", differ(got[:n], want), attr.Size)
	}
	return b.vol.Remove(b.ctx, b.at(name+"x"), false)
}

func testTwoClients(b *bed) {
	c := b.second()
	mine := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
	mine.write(0, []byte("mine"))
	theirs := c.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	if got := theirs.read(0, 10); string(got) != "mine" {
		b.Errorf("the second client reads %q, want %q", got, "mine")
	}
	theirs.write(2, []byte("xed"))
	if got := mine.read(0, 10); string(got) != "mixed" {
		b.Errorf("the first client reads %q, want %q", got, "mixed")
	}
	if a, err := mine.File.GetAttr(b.ctx, mine.Open); err != nil || a.Size != 5 {
		b.Errorf("GetAttr: size %d, %v, want 5", a.Size, err)
	}
	if off, n, err := mine.Open.Append(b.ctx, [][]byte{[]byte("!")}); off != 5 || n != 1 || err != nil {
		b.Errorf("Append behind what the other wrote: %d at %d, %v, want 1 at 5", n, off, err)
	}
	mine.close()
	theirs.close()
	c.rename("file", "moved", false)
	b.gone("file")
	b.has("moved", []byte("mixed!"))
	b.ok(c.vol.Remove(c.ctx, c.at("moved"), false), "Remove")
	b.gone("moved")
}

// recorder hears of changes, and gives up at once what it is asked for.
type recorder chan remote.Change

func (r recorder) Rights(c remote.Change) {
	r <- c
	if c.Ack != nil {
		go c.Ack(nil)
	}
}

// testRecall has a second client write to what the first one may cache.
func testRecall(b *bed) {
	c := b.second()
	b.put("file", []byte("old"))
	asked := remote.CacheRead | remote.CacheWrite | remote.CacheHandle
	r := make(recorder, 16)
	o, err := b.vol.Open(b.ctx, b.at("file"), remote.How{Access: remote.ForRead | remote.ForWrite, Rights: asked}, r)
	b.ok(err, "Open")
	h := &handle{Opened: o, b: b}
	b.Cleanup(h.close)
	if o.Rights&^asked != 0 || b.Caps.Rights&^o.Rights != 0 {
		b.Errorf("Open gave rights %b, asked for %b, want %b at least", o.Rights, asked, b.Caps.Rights)
	}
	if o.Rights == 0 {
		b.Skip("the peer grants no rights")
	}
	other := c.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
	other.write(0, []byte("new"))
	last := remote.Change{Rights: o.Rights, Epoch: o.Epoch}
	for last.Rights&(remote.CacheRead|remote.CacheWrite) != 0 {
		select {
		case c := <-r:
			if c.Rights&^last.Rights != 0 || c.Epoch <= last.Epoch {
				b.Errorf("a recall left rights %b in epoch %d, were %b in %d", c.Rights, c.Epoch, last.Rights, last.Epoch)
			}
			if c.Node != o.Attr.Node || c.Trust != remote.Current {
				b.Errorf("the recall is for node %q, trust %d, want %q", c.Node, c.Trust, o.Attr.Node)
			}
			last = c
		case <-b.ctx.Done():
			b.Fatalf("rights %b are left after another client wrote", last.Rights)
		}
	}
	if got := h.read(0, 10); string(got) != "new" {
		b.Errorf("after the recall: %q, want %q", got, "new")
	}
}
