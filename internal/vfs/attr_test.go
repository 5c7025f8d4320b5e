package vfs

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

func TestAttributesHoldForATime(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{DirAttrTime: 3 * time.Second}, func(b *bed) {
		b.fake.Put("dir/file", []byte("1"))
		b.stats("dir/file", 1, 1)
		b.stats("dir", 1, 0)
		b.stats(".", 1, 0)
		pass(999 * time.Millisecond)
		b.fake.Put("dir/file", []byte("22"))
		b.stats("dir/file", 0, 1)
		pass(time.Millisecond)
		b.stats("dir/file", 1, 2)
		b.stats("dir/file", 0, 2)
		b.stats("dir", 0, 0)
		pass(2 * time.Second)
		b.stats("dir", 1, 0)
		b.stats(".", 1, 0)
	})
}

func TestNamesThatDoNotExistHoldForATime(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{AttrTime: time.Minute, DirAttrTime: 3 * time.Second}, func(b *bed) {
		b.lacks("none", 1)
		b.lacks("none/below", 1)
		pass(3*time.Second - 1)
		b.fake.Put("none", []byte("1"))
		b.lacks("none", 0)
		b.lacks("none/below", 0)
		pass(1)
		b.stats("none", 1, 1)
		_, err := b.fs.GetAttr(b.ctx, "none/below")
		b.fails(err, syscall.ENOTDIR)
	})
}

func TestNegativeTimesKeepNothing(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{AttrTime: -1, DirAttrTime: -1}, func(b *bed) {
		b.fake.Put("dir/file", []byte("1"))
		for range 2 {
			b.stats("dir/file", 1, 1)
			b.stats("dir", 1, 0)
			b.lacks("none", 1)
		}
		first, again := b.stats("dir", 1, 0), b.stats("dir", 1, 0)
		if first.ID != again.ID {
			b.Errorf("the number of a folder was %#x and is %#x", first.ID, again.ID)
		}
	})
}

func TestListingKnowsAllThatIsInIt(t *testing.T) {
	inBubble(t, remotetest.Config{PageSize: 10}, Config{}, func(b *bed) {
		var want []string
		for i := range 35 {
			name := fmt.Sprintf("file%02d", i)
			b.fake.Put("dir/"+name, make([]byte, i))
			want = append(want, name)
		}
		b.costs("ReadDir", 4, func() {
			if got := b.lists("dir"); !slices.Equal(got, want) {
				b.Errorf("listed %q, want %q", got, want)
			}
		})
		for i, name := range want {
			b.stats("dir/"+name, 0, int64(i))
		}
		pass(time.Second)
		b.stats("dir/file03", 1, 3)
	})
}

// A page that was fetched ahead is as old as its request.
func TestListingIsAsOldAsItsPages(t *testing.T) {
	inBubble(t, remotetest.Config{PageSize: 1}, Config{}, func(b *bed) {
		for i := range 5 {
			b.fake.Put(fmt.Sprint("file", i), nil)
		}
		for _, err := range b.fs.ReadDir(b.ctx, ".") {
			b.ok(err)
			pass(600 * time.Millisecond)
		}
		// The last one may have been asked for when the third came, at 1.2 s; now it is 3 s.
		b.stats("file4", 1, 0)
	})
}

func TestListingOfNoFolder(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{}, func(b *bed) {
		for _, err := range b.fs.ReadDir(b.ctx, "none") {
			b.fails(err, fs.ErrNotExist)
		}
		b.lacks("none", 0)
	})
}

func TestNumbersAreTheServersOrLast(t *testing.T) {
	for _, serverIno := range []bool{true, false} {
		inBubble(t, remotetest.Config{}, Config{ServerIno: serverIno}, func(b *bed) {
			b.fake.Put("dir/file", nil)
			server, err := b.fake.GetAttr(b.ctx, remote.At{Name: "dir/file"})
			b.ok(err)
			b.ok(b.fake.Link(b.ctx, remote.At{Name: "dir/file"}, remote.At{Name: "dir/link"}))
			first := b.stats("dir/file", 1, 0)
			if (first.ID == server.ID) != serverIno {
				b.Errorf("the number is %#x, the server's %#x, wanted %v", first.ID, server.ID, serverIno)
			}
			if first.Node != "" {
				b.Errorf("Node is %q", first.Node)
			}
			for range 3 {
				pass(time.Minute)
				if again := b.stats("dir/file", 1, 0); again.ID != first.ID {
					b.Errorf("the number was %#x and is %#x", first.ID, again.ID)
				}
			}
			if link := b.stats("dir/link", 1, 0); link.ID != first.ID {
				b.Errorf("the number of a second name is %#x, of the first %#x", link.ID, first.ID)
			}
			if dir := b.stats("dir", 1, 0); dir.ID == first.ID {
				b.Errorf("a folder has the number %#x of a file", dir.ID)
			}
			b.ok(b.fs.Rename(b.ctx, "dir/file", "moved", false))
			if moved := b.stats("moved", 1, 0); moved.ID != first.ID {
				b.Errorf("the number after a rename is %#x, before %#x", moved.ID, first.ID)
			}
			for page, err := range b.fs.ReadDir(b.ctx, ".") {
				b.ok(err)
				for _, e := range page {
					if e.Name == "moved" && e.Attr.ID != first.ID {
						b.Errorf("the number in a listing is %#x, want %#x", e.Attr.ID, first.ID)
					}
				}
			}
			h := b.open("moved", remote.ForRead, remote.Existing)
			if h.Inode() != first.ID {
				b.Errorf("the number of the open file is %#x, want %#x", h.Inode(), first.ID)
			}
			b.close(h)
		})
	}
}

// numberless is a volume that knows no numbers.
type numberless struct{ remote.Volume }

func (v numberless) GetAttr(ctx context.Context, at remote.At) (remote.Attr, error) {
	attr, err := v.Volume.GetAttr(ctx, at)
	attr.ID = 0
	return attr, err
}

func (v numberless) Open(ctx context.Context, at remote.At, how remote.How, e remote.Events) (remote.Opened, error) {
	opened, err := v.Volume.Open(ctx, at, how, e)
	opened.Attr.ID = 0
	return opened, err
}

func TestNumbersOfAServerWithoutAny(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{ServerIno: true}, func(b *bed) {
		b.fs.vol = numberless{b.fake}
		b.fake.Put("one", []byte("1"))
		pass(1) // or they would have been born at once
		b.fake.Put("two", []byte("22"))
		one, two := b.stats("one", 1, 1), b.stats("two", 1, 2)
		if one.ID == two.ID || one.ID == 0 {
			b.Errorf("numbers %#x and %#x", one.ID, two.ID)
		}
		pass(time.Second)
		h := b.open("one", remote.ForRead, remote.Existing)
		b.reads(h, "1")
		if again := b.stats("one", 0, 1); again.ID != one.ID || h.Inode() != one.ID {
			b.Errorf("the number was %#x, is %#x, of the open file %#x", one.ID, again.ID, h.Inode())
		}
		b.close(h)
		b.fake.Put("one", []byte("3"))
		h = b.open("one", remote.ForRead, remote.Existing)
		b.reads(h, "3")
		b.close(h)
	})
}

func TestTableIsBounded(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{Names: 10, AttrTime: time.Hour}, func(b *bed) {
		for i := range 30 {
			b.fake.Put(fmt.Sprint("file", i), nil)
			b.stats(fmt.Sprint("file", i), 1, 0)
			b.stats("file0", 0, 0) // is in use, and stays
		}
		if n, m, k := len(b.fs.names.byKey), b.fs.names.order.Len(), len(b.fs.byID); n > 10 || m > 10 || k > 10 {
			b.Errorf("%d and %d names of %d inodes, want 10", n, m, k)
		}
		b.stats("file29", 0, 0)
		b.stats("file10", 1, 0)
	})
}

func TestHistoryIsBounded(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{AttrTime: time.Hour}, func(b *bed) {
		b.fake.Put("file", nil)
		b.stats("file", 1, 0)
		for i := range maxChanges + 10 {
			_, err := b.fs.Make(b.ctx, fmt.Sprint("dir", i), remote.Make{Kind: remote.Dir})
			b.ok(err)
		}
		if n := len(b.fs.history.changed); n > maxChanges {
			b.Errorf("%d changes are known, want %d at most", n, maxChanges)
		}
		b.stats("file", 1, 0)
		b.stats("file", 0, 0)
		b.stats(fmt.Sprint("dir", maxChanges+9), 0, 0)
	})
}

func TestSetAttrIsKnown(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("12345"))
		b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
		b.stats("file", 1, 5)
		b.stats("link", 1, 5)
		size, then := int64(3), time.Unix(1e9, 0)
		_, err := b.fs.SetAttr(b.ctx, "file", remote.SetAttr{Size: &size, Written: then})
		b.ok(err)
		for _, name := range []string{"file", "link"} {
			if attr := b.stats(name, 0, 3); !attr.Written.Equal(then) {
				b.Errorf("%s was written at %v, want %v", name, attr.Written, then)
			}
		}
		_, err = b.fs.SetAttr(b.ctx, "none", remote.SetAttr{Written: then})
		b.fails(err, fs.ErrNotExist)
		b.lacks("none", 0)
	})
}

func TestChangesOfOthersShowInTime(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{}, func(b *bed) {
		other := b.fake.Another(remotetest.Config{})
		b.fake.Put("file", []byte("1"))
		b.stats("file", 1, 1)
		b.lacks("new", 1)
		at := func(name string) remote.At { return remote.At{Name: name} }
		_, err := other.Rename(b.ctx, at("file"), at("new"), false)
		b.ok(err)
		b.stats("file", 0, 1)
		pass(time.Second)
		b.lacks("file", 1)
		b.stats("new", 1, 1)
	})
}

// An answer that was asked for before a change made here says nothing after it.
func TestLateAnswersAreNotRemembered(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(b *bed)
		gone   bool
		size   int64
	}{
		{what: "remove", change: func(b *bed) { b.ok(b.fs.Remove(b.ctx, "dir/file", false)) }, gone: true},
		{what: "rename", change: func(b *bed) { b.ok(b.fs.Rename(b.ctx, "dir/file", "dir/else", false)) }, gone: true},
		{what: "rename of the folder", change: func(b *bed) { b.ok(b.fs.Rename(b.ctx, "dir", "else", false)) }, gone: true},
		{what: "rename over it", change: func(b *bed) {
			b.ok(b.fs.Rename(b.ctx, "other", "dir/file", true))
		}, size: 5},
		{what: "set the size", change: func(b *bed) {
			size := int64(7)
			_, err := b.fs.SetAttr(b.ctx, "dir/file", remote.SetAttr{Size: &size})
			b.ok(err)
		}, size: 7},
		{what: "write", change: func(b *bed) {
			h := b.open("dir/file", remote.ForWrite, remote.Existing)
			b.write(h, 0, "1234567890")
			b.close(h)
		}, size: 10},
		{what: "empty", change: func(b *bed) { b.close(b.open("dir/file", remote.ForWrite, remote.TruncateNew)) }},
		{what: "write in one trip", change: func(b *bed) {
			_, err := b.fs.WriteFile(b.ctx, "dir/file", remote.How{Create: remote.TruncateNew}, []byte("22"))
			b.ok(err)
		}, size: 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, remotetest.Config{Rights: leases}, Config{AttrTime: time.Hour, DirAttrTime: time.Hour}, func(b *bed) {
				b.fake.Put("dir/file", []byte("1"))
				b.fake.Put("other", []byte("other"))
				late := make(chan struct{})
				b.fs.vol = lateVolume{b.fake, late}
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := b.fs.GetAttr(b.ctx, "dir/file"); err != nil {
						b.Error(err)
					}
				})
				synctest.Wait()
				c.change(b)
				close(late)
				wg.Wait()
				b.fs.vol = b.fake
				if c.gone {
					_, err := b.fs.GetAttr(b.ctx, "dir/file")
					b.fails(err, fs.ErrNotExist)
				} else if attr, err := b.fs.GetAttr(b.ctx, "dir/file"); err != nil || attr.Size != c.size {
					b.Errorf("size %d, %v, want %d", attr.Size, err, c.size)
				}
			})
		})
	}
}

// lateVolume holds back the answers of GetAttr.
type lateVolume struct {
	remote.Volume
	until chan struct{}
}

func (v lateVolume) GetAttr(ctx context.Context, at remote.At) (remote.Attr, error) {
	attr, err := v.Volume.GetAttr(ctx, at)
	<-v.until
	return attr, err
}
