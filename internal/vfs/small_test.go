package vfs

import (
	"context"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// readFile checks what ReadFile says.
func (b *bed) readFile(path, want string) {
	b.Helper()
	p := make([]byte, 100)
	n, attr, err := b.fs.ReadFile(b.ctx, path, p)
	b.ok(err)
	if string(p[:n]) != want || attr.Size != int64(len(want)) {
		b.Errorf("read %q of %d bytes, want %q", p[:n], attr.Size, want)
	}
}

func (b *bed) writeFile(path string, create remote.Create, data string) remote.Attr {
	b.Helper()
	attr, err := b.fs.WriteFile(b.ctx, path, remote.How{Create: create}, []byte(data))
	b.ok(err)
	return attr
}

func TestSmallFilesTakeOneTrip(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.writeFile("file", remote.New, "data")
		b.stats("file", 0, 4)
		b.readFile("file", "data")
		if n := b.fake.Count("Open") + b.fake.Count("GetAttr"); n != 0 {
			b.Errorf("%d other requests, want none", n)
		}
		pass(time.Second)
		b.costs("ReadFile", 1, func() { b.readFile("file", "data") })
		b.stats("file", 0, 4)
	})
}

func TestSmallFilesThatAreOpen(t *testing.T) {
	for _, name := range []string{"file", "link"} {
		inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
			b.fake.Put("file", []byte("old bytes"))
			b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
			h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
			b.write(h, 0, "new")
			b.readFile(name, "new bytes")

			b.write(h, 4, "BYTES")
			b.writeFile(name, remote.TruncateNew, "short")
			b.reads(h, "short")
			b.write(h, 5, "er")
			b.writeFile(name, remote.Existing, "SH")
			b.reads(h, "SHorter")
			b.readFile(name, "SHorter")
			b.close(h)
			b.has("file", "SHorter")
		})
	}
}

// Who only reads an open file has bytes of before the WriteFile.
func TestSmallFilesThatAreRead(t *testing.T) {
	for _, cfg := range []Config{{}, loose} {
		for _, name := range []string{"file", "link"} {
			inBubble(t, remotetest.Config{Rights: leases}, cfg, func(b *bed) {
				b.fake.Put("file", []byte("old"))
				b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
				h := b.open("file", remote.ForRead, remote.Existing)
				b.reads(h, "old")
				b.costs("WriteFile", 1, func() { b.writeFile(name, remote.TruncateNew, "newer") })
				b.reads(h, "newer")
				size := int64(2)
				_, err := b.fs.SetAttr(b.ctx, name, remote.SetAttr{Size: &size})
				b.ok(err)
				b.reads(h, "ne")
				size = 4
				_, err = b.fs.SetAttr(b.ctx, name, remote.SetAttr{Size: &size})
				b.ok(err)
				b.reads(h, "ne\x00\x00")
				b.close(h)
				h = b.open("file", remote.ForRead, remote.Existing)
				b.reads(h, "ne\x00\x00")
				b.close(h)
			})
		}
	}
}

func TestSmallFilesThatAreKept(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("old"))
		h := b.open("file", remote.ForRead, remote.Existing)
		b.reads(h, "old")
		b.close(h)
		pass(time.Millisecond)
		b.writeFile("file", remote.Existing, "new")
		h = b.open("file", remote.ForRead, remote.Existing)
		b.reads(h, "new")
		b.close(h)
	})
}

func TestEmptyingAnOpenFile(t *testing.T) {
	for _, name := range []string{"file", "link"} {
		inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
			b.fake.Put("file", []byte("old bytes"))
			b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
			h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
			b.write(h, 0, "never to be seen")
			again := b.open(name, remote.ForRead, remote.TruncateNew)
			b.reads(h, "")
			b.reads(again, "")
			b.stats("file", 0, 0)
			b.write(h, 1, "x")
			b.close(h)
			b.close(again)
			b.has("file", "\x00x")
		})
	}
}

func TestSizeOfAnOpenFile(t *testing.T) {
	for _, name := range []string{"file", "link"} {
		inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
			b.fake.Put("file", []byte("old bytes"))
			b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
			b.stats("link", 1, 9)
			h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
			b.write(h, 0, "new")
			for _, size := range []int64{5, 7} {
				attr, err := b.fs.SetAttr(b.ctx, name, remote.SetAttr{Size: &size})
				b.ok(err)
				if attr.Size != size {
					b.Errorf("size %d, want %d", attr.Size, size)
				}
			}
			b.reads(h, "new b\x00\x00")
			b.close(h)
			b.has("file", "new b\x00\x00")
		})
	}
}

// A time that is set is not that of bytes which were written before.
func TestTimesOfAnOpenFile(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		h := b.open("file", remote.ForRead|remote.ForWrite, remote.New)
		b.write(h, 0, "data")
		pass(time.Second)
		then := time.Unix(1e9, 0)
		attr, err := b.fs.SetAttr(b.ctx, "file", remote.SetAttr{Written: then})
		b.ok(err)
		if !attr.Written.Equal(then) || attr.Size != 4 {
			b.Errorf("%d bytes of %v, want 4 of %v", attr.Size, attr.Written, then)
		}
		b.close(h)
		if attr := b.stats("file", 0, 4); !attr.Written.Equal(then) {
			b.Errorf("written at %v, want %v", attr.Written, then)
		}
		pass(time.Second)
		if attr := b.stats("file", 1, 4); !attr.Written.Equal(then) {
			b.Errorf("written at %v, want %v", attr.Written, then)
		}
	})
}

// Nor is it that of the close, on servers that think so.
func TestTimesOfAnOpenFileThatIsClosed(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		then := time.Unix(1e9, 0)
		other := b.fake.Another(remotetest.Config{})
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(ctx context.Context, op remotetest.Op) error {
				if op.Call != "Close" {
					return nil
				}
				_, err := other.SetAttr(ctx, op.At, remote.SetAttr{Written: time.Now()})
				return err
			}
		})
		for _, c := range []struct {
			after string // is written after the time was set
			set   bool
			want  time.Time
		}{{"", true, then}, {"more", true, time.Now()}, {"", false, time.Now()}} {
			h := b.open("file", remote.ForWrite, remote.TruncateNew)
			b.write(h, 0, "data")
			if c.set {
				_, err := b.fs.SetAttr(b.ctx, "file", remote.SetAttr{Written: then})
				b.ok(err)
			}
			b.write(h, 4, c.after)
			b.close(h)
			pass(time.Second)
			attr := b.stats("file", 1, int64(4+len(c.after)))
			if attr.Written.Equal(then) != c.want.Equal(then) {
				b.Errorf("%+v: written at %v", c, attr.Written)
			}
		}
	})
}
