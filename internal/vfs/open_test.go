package vfs

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

var loose = Config{File: pagecache.FileConfig{Mode: pagecache.Loose}}

func TestOpensOfAFileShareIt(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("old"))
		b.ok(b.fake.Link(b.ctx, remote.At{Name: "file"}, remote.At{Name: "link"}))
		w, r := b.open("file", remote.ForWrite, remote.Existing), b.open("link", remote.ForRead, remote.Existing)
		if w.Inode() != r.Inode() {
			b.Errorf("numbers %#x and %#x", w.Inode(), r.Inode())
		}
		b.costs("WriteAt", 0, func() { b.write(w, 3, "er") })
		b.costs("ReadAt", 1, func() { b.reads(r, "older") })
		b.has("file", "old")
		b.stats("file", 0, 5)
		b.stats("link", 0, 5)
		b.close(w)
		b.has("file", "older")
		b.close(r)
		if len(b.fs.open) > 0 || len(b.fs.paths) > 0 {
			b.Errorf("%d files and %d names are open", len(b.fs.open), len(b.fs.paths))
		}
	})
}

func TestSizeAndTimeAreThoseOfTheWriting(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		h := b.open("file", remote.ForWrite, remote.New)
		b.stats("file", 0, 0)
		pass(time.Second)
		b.write(h, 0, "12345")
		wrote := time.Now()
		pass(time.Second / 2)
		attr := b.stats("file", 0, 5)
		if !attr.Written.Equal(wrote) {
			b.Errorf("written at %v, want %v", attr.Written, wrote)
		}
		for page, err := range b.fs.ReadDir(b.ctx, ".") {
			b.ok(err)
			if page[0].Attr.Size != 5 {
				b.Errorf("the size in a listing is %d, want 5", page[0].Attr.Size)
			}
		}
		b.ok(h.Truncate(b.ctx, 2))
		b.stats("file", 0, 2)
		b.ok(h.Sync(b.ctx))
		if attr, err := h.Attr(b.ctx, true); err != nil || attr.Size != 2 {
			b.Errorf("size %d, %v, want 2", attr.Size, err)
		}
		b.close(h)
		b.stats("file", 0, 2)
	})
}

// What the server said before it was told of a write does not make the file shorter.
func TestLateAnswersOfAFileThatIsWritten(t *testing.T) {
	for _, c := range []struct{ before, between string }{{"", "longer"}, {"longer", ""}, {"long", "er"}} {
		inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
			b.fake.Put("file", []byte("old"))
			h := b.open("file", remote.ForRead|remote.ForWrite, remote.Existing)
			b.write(h, 3, c.before)
			late := make(chan struct{})
			b.fs.vol = lateVolume{b.fake, late}
			h.inode.until = time.Time{} // so that it is asked for
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := b.fs.GetAttr(b.ctx, "file"); err != nil {
					b.Error(err)
				}
			})
			synctest.Wait()
			b.write(h, 3+int64(len(c.before)), c.between)
			b.ok(h.Sync(b.ctx))
			close(late)
			wg.Wait()
			b.fs.vol = b.fake
			b.reads(h, "oldlonger")
			if attr, err := b.fs.GetAttr(b.ctx, "file"); err != nil || attr.Size != 9 {
				b.Errorf("%q, then %q: size %d, %v, want 9", c.before, c.between, attr.Size, err)
			}
			b.close(h)
			b.stats("file", 1, 9)
		})
	}
}

func TestAttributesOfAWrittenFileAreAskedForOnceItIsClosed(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		h := b.open("file", remote.ForWrite, remote.New)
		b.write(h, 0, "12345")
		b.close(h)
		b.stats("file", 1, 5)
		b.stats("file", 0, 5)
	})
}

func TestAttributesHoldWithTheRightToCache(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		h := b.open("file", remote.ForRead, remote.Existing)
		pass(time.Hour)
		b.stats("file", 0, 1)
		if _, err := h.Attr(b.ctx, false); err != nil || b.fake.Count("GetAttr") != 0 {
			b.Errorf("%d requests, %v, want none", b.fake.Count("GetAttr"), err)
		}

		other := b.fake.Another(remotetest.Config{})
		_, err := other.WriteFile(b.ctx, remote.At{Name: "file"}, remote.How{}, []byte("22"))
		b.ok(err)
		synctest.Wait()
		b.stats("file", 1, 2)
		pass(time.Second)
		b.stats("file", 1, 2)
		b.reads(h, "22")
		b.close(h)
	})
}

// They do not hold for any time once the right is lost, nor when it comes back.
func TestAttributesDoNotOutliveTheRight(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, long, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		h := b.open("file", remote.ForRead, remote.Existing)
		b.stats("file", 0, 1)
		other := b.fake.Another(remotetest.Config{})
		_, err := other.WriteFile(b.ctx, at("file"), remote.How{}, []byte("22"))
		b.ok(err)
		synctest.Wait()
		b.stats("file", 1, 2)

		_, err = other.Rename(b.ctx, at("file"), at("moved"), false)
		b.ok(err)
		synctest.Wait()
		again := b.open("moved", remote.ForRead, remote.Existing) // and all rights are back
		synctest.Wait()
		if !h.inode.file.Keeps(remote.CacheHandle) {
			b.Error("the right to the handle did not come back")
		}
		pass(time.Hour)
		b.stats("moved", 0, 2)
		b.lacks("file", 1)
		b.close(again)
		b.close(h)
	})
}

// Without rights, nobody tells of another name.
func TestNamesOfOpenFilesInLooseMode(t *testing.T) {
	inBubble(t, remotetest.Config{}, loose, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		h := b.open("file", remote.ForRead, remote.Existing)
		b.ok(b.fake.Another(remotetest.Config{}).Remove(b.ctx, at("file"), false))
		b.stats("file", 0, 1)
		pass(time.Second)
		b.lacks("file", 1)
		b.close(h)
	})
}

// The right to cache reads says nothing of the name.
func TestNamesHoldWithTheRightToTheHandle(t *testing.T) {
	for _, rights := range []remote.Rights{remote.CacheRead, leases} {
		inBubble(t, remotetest.Config{Rights: rights}, Config{}, func(b *bed) {
			b.fake.Put("file", []byte("1"))
			h := b.open("file", remote.ForRead, remote.Existing)
			pass(time.Second)
			want := 1
			if rights&remote.CacheHandle != 0 {
				want = 0
			}
			b.stats("file", want, 1)
			other := b.fake.Another(remotetest.Config{})
			b.ok(other.Remove(b.ctx, remote.At{Name: "file"}, false))
			synctest.Wait()
			pass(time.Second)
			b.lacks("file", 1)
			b.reads(h, "1")
			b.close(h)
		})
	}
}

func TestRightsLostBeforeTheOpenIsAnswered(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		b.fs.vol = earlyVolume{b.fake}
		h := b.open("file", remote.ForRead, remote.Existing)
		synctest.Wait()
		if h.inode.file.Keeps(remote.CacheRead) {
			b.Error("bytes may be kept, although the right is gone")
		}
		b.close(h)
	})
}

// earlyVolume takes the rights of an open away before it answers.
type earlyVolume struct{ *remotetest.Fake }

func (v earlyVolume) Open(ctx context.Context, at remote.At, how remote.How, e remote.Events) (remote.Opened, error) {
	opened, err := v.Fake.Open(ctx, at, how, e)
	e.Rights(remote.Change{Epoch: opened.Epoch + 1})
	return opened, err
}

func TestBytesOfAClosedFileStayIfItIsUnchanged(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("data"))
		read := func(want string) {
			h := b.open("file", remote.ForRead, remote.Existing)
			b.reads(h, want)
			b.close(h)
		}
		b.costs("ReadAt", 1, func() { read("data"); read("data"); pass(time.Hour); read("data") })
		pass(1000)
		b.fake.Put("file", []byte("atad"))
		b.costs("ReadAt", 1, func() { read("atad"); read("atad") })
		b.ok(b.fs.Remove(b.ctx, "file", false))
		if b.fs.kept.Len() > 0 || len(b.fs.byID) > 1 {
			b.Errorf("%d files are kept, %d inodes known", b.fs.kept.Len(), len(b.fs.byID))
		}
	})
}

func TestBytesOfFewClosedFilesStay(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, Config{Kept: 2}, func(b *bed) {
		for _, name := range []string{"a", "b", "c", "a"} {
			if _, ok := b.fake.Bytes(name); !ok {
				b.fake.Put(name, []byte(name))
			}
			h := b.open(name, remote.ForRead, remote.Existing)
			b.reads(h, name)
			b.close(h)
		}
		if n := b.fake.Count("ReadAt"); n != 4 {
			b.Errorf("%d reads, want 4", n)
		}
		if n := b.fs.kept.Len(); n != 2 {
			b.Errorf("%d files are kept, want 2", n)
		}
	})
}

func TestConcurrentFirstOpensShareAnInode(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases, Delay: time.Millisecond}, Config{}, func(b *bed) {
		b.fake.Put("file", []byte("data"))
		var wg sync.WaitGroup
		handles := make([]*Handle, 8)
		for i := range handles {
			wg.Go(func() {
				h, err := b.fs.Open(b.ctx, "file", remote.How{Access: remote.ForRead | remote.ForWrite})
				if err != nil {
					b.Error(err)
				}
				handles[i] = h
			})
		}
		wg.Wait()
		b.write(handles[0], 0, "DATA")
		for _, h := range handles {
			if h.inode != handles[0].inode {
				b.Error("there are two inodes")
			}
			b.reads(h, "DATA")
		}
		for _, h := range handles {
			b.close(h)
		}
		b.has("file", "DATA")
	})
}

// A file that is opened while its last handle is being closed is the same file, though
// the server no longer thinks so, and is as the last one left it.
func TestOpenDuringTheLastClose(t *testing.T) {
	for _, access := range []remote.Access{remote.ForRead, remote.ForRead | remote.ForWrite} {
		inBubble(t, remotetest.Config{Rights: leases}, Config{}, func(b *bed) {
			v := &slowVolume{Fake: b.fake, opened: make(chan struct{}), closed: make(chan struct{})}
			b.fs.vol = v
			b.fake.Put("file", []byte("data"))
			close(v.opened)
			first := b.open("file", access, remote.Existing)
			b.reads(first, "data")
			want := "data"
			if access&remote.ForWrite != 0 {
				b.write(first, 4, "more")
				want = "datamore"
			}

			var second *Handle
			var wg sync.WaitGroup
			v.opened = make(chan struct{})
			wg.Go(func() { // its answer is late
				var err error
				if second, err = b.fs.Open(b.ctx, "file", remote.How{Access: remote.ForRead}); err != nil {
					b.Error(err)
				}
			})
			synctest.Wait()
			wg.Go(func() {
				if err := first.Close(b.ctx); err != nil {
					b.Error(err)
				}
			})
			synctest.Wait()
			close(v.opened)
			synctest.Wait()
			close(v.closed)
			wg.Wait()

			if second.inode != first.inode {
				b.Error("there are two inodes")
			}
			b.stats("file", 0, int64(len(want)))
			b.reads(second, want)
			if n := b.fake.Count("ReadAt"); access&remote.ForWrite == 0 && n != 1 {
				b.Errorf("%d reads, want 1", n)
			}
			b.close(second)
			if len(b.fs.open) > 0 {
				b.Errorf("%d files are open", len(b.fs.open))
			}
		})
	}
}

// A file that is removed while it is opened stays removed, though its attributes are
// asked for again.
func TestOpenDuringARemoval(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		v := &slowVolume{Fake: b.fake, opened: make(chan struct{}), closed: make(chan struct{})}
		close(v.closed)
		b.fs.vol = v
		b.fake.Put("file", []byte("1"))
		b.stats("file", 1, 1)
		var h *Handle
		var wg sync.WaitGroup
		wg.Go(func() {
			var err error
			if h, err = b.fs.Open(b.ctx, "file", remote.How{Access: remote.ForRead}); err != nil {
				b.Error(err)
			}
		})
		synctest.Wait()
		b.ok(b.fs.Remove(b.ctx, "file", false))
		close(v.opened)
		wg.Wait()
		b.lacks("file", 0)
		b.reads(h, "1")
		b.close(h)
	})
}

// slowVolume answers opens when opened is closed, and closes when closed is. Its opens
// share no Files, like those of a file that is closed and opened.
type slowVolume struct {
	*remotetest.Fake
	opened, closed chan struct{}
}

func (v *slowVolume) Open(ctx context.Context, at remote.At, how remote.How, e remote.Events) (remote.Opened, error) {
	until := v.opened
	opened, err := v.Fake.Open(ctx, at, how, e)
	<-until
	opened.File = &slowFile{opened.File} // another one each time
	opened.Open = slowOpen{opened.Open, v.closed}
	return opened, err
}

type slowOpen struct {
	remote.Open
	closed chan struct{}
}

func (o slowOpen) Close(ctx context.Context) error {
	err := o.Open.Close(ctx)
	<-o.closed
	return err
}

type slowFile struct{ remote.File }

func (f *slowFile) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (int, bool, error) {
	req.Open = req.Open.(slowOpen).Open
	return f.File.ReadAt(ctx, req, into)
}

func (f *slowFile) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (int, bool, error) {
	req.Open = req.Open.(slowOpen).Open
	return f.File.WriteAt(ctx, req, w)
}

func (f *slowFile) GetAttr(ctx context.Context, open remote.Open) (remote.Attr, error) {
	return f.File.GetAttr(ctx, open.(slowOpen).Open)
}
