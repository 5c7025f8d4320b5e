package vfs

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
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

// Of two answers, that to the later question counts.
func TestAnswersOutOfOrder(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		b.fake.Put("gone", []byte("1"))
		late := make(chan struct{})
		b.fs.vol = lateVolume{b.fake, late}
		var wg sync.WaitGroup
		for _, name := range []string{"file", "gone", "new"} {
			wg.Go(func() { b.fs.GetAttr(b.ctx, name) })
		}
		synctest.Wait()
		b.fake.Put("file", []byte("22"))
		b.fake.Put("new", []byte("22"))
		b.ok(b.fake.Remove(b.ctx, remote.At{Name: "gone"}, false))
		b.fs.vol = b.fake
		b.stats("file", 1, 2)
		b.stats("new", 1, 2)
		b.lacks("gone", 1)
		close(late)
		wg.Wait()
		b.stats("file", 0, 2)
		b.stats("new", 0, 2)
		b.lacks("gone", 0)
	})
}

// lateAnswers holds back those of SetAttr and Link.
type lateAnswers struct {
	*remotetest.Fake
	until chan struct{}
}

func (v lateAnswers) SetAttr(ctx context.Context, at remote.At, set remote.SetAttr) (remote.Attr, error) {
	attr, err := v.Fake.SetAttr(ctx, at, set)
	<-v.until
	return attr, err
}

func (v lateAnswers) Link(ctx context.Context, from, to remote.At) error {
	err := v.Fake.Link(ctx, from, to)
	<-v.until
	return err
}

// Nor is the answer to a change better than one that was asked for after it.
func TestLateAnswersToAChange(t *testing.T) {
	inBubble(t, remotetest.Config{}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		v := lateAnswers{b.fake, make(chan struct{})}
		b.fs.vol = v
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.fs.SetAttr(b.ctx, "file", remote.SetAttr{Written: time.Unix(1e9, 0)}); err != nil {
				b.Error(err)
			}
		})
		synctest.Wait()
		b.fake.Put("file", []byte("22"))
		b.stats("file", 1, 2)
		close(v.until)
		wg.Wait()
		b.stats("file", 1, 2)
	})
}

// Unix renames nothing if both names are of one file, even if one is quite new.
func TestRenameOfALinkThatIsBeingMade(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		b.stats("file", 1, 1)
		v := lateAnswers{b.fake, make(chan struct{})}
		b.fs.vol = v
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.fs.Link(b.ctx, "file", "link"); err != nil {
				b.Error(err)
			}
		})
		synctest.Wait()
		b.ok(b.fs.Rename(b.ctx, "file", "link", true))
		close(v.until)
		wg.Wait()
		b.stats("file", 1, 1)
	})
}

// Names in a folder may change before it is known here that there is one.
func TestLateAnswersAboutAFolder(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fake.Put("dir/sub/file", nil)
		late := make(chan struct{})
		b.fs.vol = lateVolume{b.fake, late}
		var wg sync.WaitGroup
		wg.Go(func() { b.fs.GetAttr(b.ctx, "dir/sub") })
		synctest.Wait()
		pass(time.Second)
		b.writeFile("dir/sub/new", remote.New, "1")
		close(late)
		wg.Wait()
		b.fs.vol = b.fake
		b.stats("dir/sub", 1, 0)
		b.stats("dir/sub", 0, 0)
	})
}

// behind is a server whose listings are behind its files.
type behind struct{ *remotetest.Fake }

func (v behind) ReadDir(ctx context.Context, at remote.At) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		for page, err := range v.Fake.ReadDir(ctx, at) {
			for i := range page {
				page[i].Attr.Size, page[i].Attr.Links = 1, 0
			}
			if !yield(page, err) {
				return
			}
		}
	}
}

func TestListingsMayBeBehind(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fs.vol = behind{b.fake}
		for _, name := range []string{"open", "linked", "other"} {
			b.fake.Put(name, []byte("12345"))
		}
		b.ok(b.fake.Link(b.ctx, at("linked"), at("link")))
		h := b.open("open", remote.ForRead, remote.Existing)
		b.stats("open", 0, 5)
		b.stats("linked", 1, 5)
		b.stats("other", 1, 5)
		b.lists(".")
		b.stats("open", 0, 5)
		b.stats("linked", 0, 5)
		if attr := b.stats("other", 0, 1); attr.Links != 1 {
			b.Errorf("%d links, want 1, which was known before", attr.Links)
		}
		b.close(h)
	})
}

// aliasing is a server with two ways to one folder.
type aliasing struct{ *remotetest.Fake }

func (v aliasing) GetAttr(ctx context.Context, at remote.At) (remote.Attr, error) {
	at.Name = strings.Replace(at.Name, "alias/", "dir/", 1)
	return v.Fake.GetAttr(ctx, at)
}

func TestNamesThatAreWaysToAnother(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fs.vol = aliasing{b.fake}
		b.fake.Put("dir/file", []byte("1"))
		b.ok(b.fake.Link(b.ctx, at("dir/file"), at("dir/link")))
		b.stats("alias/file", 1, 1)
		b.stats("dir/file", 1, 1)
		b.stats("alias/file", 0, 1)
		b.ok(b.fs.Remove(b.ctx, "dir/file", false))
		b.stats("dir/link", 1, 1)
		b.lacks("alias/file", 1)

		b.fake.Put("temp", []byte("22"))
		b.stats("alias/link", 1, 1)
		b.ok(b.fake.Link(b.ctx, at("dir/link"), at("dir/again")))
		b.ok(b.fs.Rename(b.ctx, "temp", "dir/link", true))
		b.stats("dir/again", 1, 1)
		b.stats("alias/link", 1, 2)
	})
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
