package vfs

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
)

// long is a Config in which only changes made here end what is remembered.
var long = Config{AttrTime: time.Hour, DirAttrTime: time.Hour}

func TestChangesMadeHereShowAtOnce(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.lacks("dir", 1)
		b.lacks("dir/file", 1)
		root := b.stats(".", 1, 0)
		pass(time.Second)

		_, err := b.fs.Make(b.ctx, "dir", remote.Make{Kind: remote.Dir})
		b.ok(err)
		b.stats("dir", 0, 0)
		if now := b.stats(".", 1, 0); !now.Written.After(root.Written) {
			b.Errorf("the root was written at %v, and still was", root.Written)
		}
		b.lacks("dir/file", 1)
		h := b.open("dir/file", remote.ForWrite, remote.New)
		b.stats("dir/file", 0, 0)
		b.close(h)

		b.lacks("dir/small", 1)
		_, err = b.fs.WriteFile(b.ctx, "dir/small", remote.How{Create: remote.New}, []byte("1"))
		b.ok(err)
		b.stats("dir/small", 0, 1)

		b.lacks("dir/link", 1)
		_, err = b.fs.Make(b.ctx, "dir/link", remote.Make{Kind: remote.Symlink, Target: "file"})
		b.ok(err)
		if attr := b.stats("dir/link", 0, 0); attr.Kind != remote.Symlink {
			b.Errorf("kind %d, want %d", attr.Kind, remote.Symlink)
		}
		if target, err := b.fs.ReadLink(b.ctx, "dir/link"); err != nil || target != "file" {
			b.Errorf("target %q, %v, want file", target, err)
		}

		b.ok(b.fs.Rename(b.ctx, "dir/small", "dir/large", false))
		b.lacks("dir/small", 0)
		b.stats("dir/large", 1, 1)
		b.ok(b.fs.Remove(b.ctx, "dir/large", false))
		b.lacks("dir/large", 0)
		b.ok(b.fs.Remove(b.ctx, "dir/link", false))
		b.ok(b.fs.Remove(b.ctx, "dir/file", false))
		b.ok(b.fs.Remove(b.ctx, "dir", true))
		b.lacks("dir", 0)
		b.lacks("dir/file", 1)
		b.lacks("dir/file", 0)
	})
}

func TestRenameOfAFolderTakesWhatIsBelow(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, long, func(b *bed) {
		b.fake.Put("dir/sub/file", []byte("1"))
		b.fake.Put("dirt/file", []byte("22"))
		b.stats("dir/sub/file", 1, 1)
		b.stats("dir/sub", 1, 0)
		b.stats("dir", 1, 0)
		b.stats("dirt/file", 1, 2)
		b.lacks("new/sub/file", 1)
		h := b.open("dir/sub/file", remote.ForWrite, remote.Existing)
		b.ok(b.fs.Rename(b.ctx, "dir", "new", false))
		b.lacks("dir", 0)
		b.lacks("dir/sub", 1)
		b.lacks("dir/sub/file", 1)
		b.stats("new/sub/file", 1, 1)
		b.stats("dirt/file", 0, 2)
		if h.path != "new/sub/file" {
			b.Errorf("the open file is called %q", h.path)
		}
		b.write(h, 0, "2")
		b.close(h)
		b.has("new/sub/file", "2")
	})
}

func TestHardLinksAreOneFile(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, long, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		b.stats("file", 1, 1)
		b.lacks("link", 1)
		b.ok(b.fs.Link(b.ctx, "file", "link"))
		if attr := b.stats("file", 1, 1); attr.Links != 2 {
			b.Errorf("%d links, want 2", attr.Links)
		}
		b.stats("link", 1, 1)
		_, err := b.fs.WriteFile(b.ctx, "link", remote.How{Create: remote.TruncateNew}, []byte("333"))
		b.ok(err)
		b.stats("file", 0, 3)
		b.ok(b.fs.Remove(b.ctx, "file", false))
		b.lacks("file", 0)
		if attr := b.stats("link", 1, 3); attr.Links != 1 {
			b.Errorf("%d links, want 1", attr.Links)
		}
		err = b.fs.Link(b.ctx, "link", "link")
		b.fails(err, fs.ErrExist)
		b.stats("link", 1, 3)
	})
}

// What failed may show that what is remembered is wrong.
func TestErrorsShowWhatOthersDid(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.lacks("new", 1)
		b.lacks("new2", 1)
		b.fake.Put("new", []byte("1"))
		b.fake.Put("new2", []byte("1"))
		_, err := b.fs.Make(b.ctx, "new", remote.Make{Kind: remote.Dir})
		b.fails(err, fs.ErrExist)
		b.stats("new", 1, 1)
		_, err = b.fs.Open(b.ctx, "new2", remote.How{Access: remote.ForWrite, Create: remote.New})
		b.fails(err, fs.ErrExist)
		b.stats("new2", 1, 1)

		b.ok(b.fake.Remove(b.ctx, remote.At{Name: "new"}, false))
		b.ok(b.fake.Remove(b.ctx, remote.At{Name: "new2"}, false))
		b.fails(b.fs.Remove(b.ctx, "new", false), fs.ErrNotExist)
		b.lacks("new", 0)
		_, _, err = b.fs.ReadFile(b.ctx, "new2", make([]byte, 1))
		b.fails(err, fs.ErrNotExist)
		b.lacks("new2", 0)
	})
}

func TestNamesThatDifferInCase(t *testing.T) {
	for _, fold := range []bool{true, false} {
		inBubble(t, remotetest.Config{FoldCase: fold}, long, func(b *bed) {
			b.fake.Put("Dir/File", []byte("1"))
			b.stats("Dir/File", 1, 1)
			if fold {
				b.stats("dir/FILE", 1, 1)
				b.ok(b.fs.Remove(b.ctx, "dIR/file", false))
				b.lacks("Dir/File", 1)
			} else {
				b.lacks("dir/FILE", 1)
				b.fails(b.fs.Remove(b.ctx, "dIR/file", false), fs.ErrNotExist)
				b.stats("Dir/File", 1, 1)
			}
			b.lacks("NEW/x", 1)
			_, err := b.fs.Make(b.ctx, "new", remote.Make{Kind: remote.Dir})
			b.ok(err)
			b.lacks("NEW/x", 1)
			if fold {
				b.stats("NEW", 1, 0)
			}
			b.ok(b.fs.Rename(b.ctx, "new", "New", false))
			b.stats("New", 1, 0)
			if !fold {
				b.lacks("new", 1)
			}
		})
	}
	sensitive := long
	sensitive.CaseSensitive = true
	inBubble(t, remotetest.Config{}, sensitive, func(b *bed) {
		b.fake.Put("name", []byte("1"))
		b.fake.Put("NAME", []byte("22"))
		b.lists(".")
		b.stats("name", 0, 1)
		b.stats("NAME", 0, 2)
		b.ok(b.fs.Remove(b.ctx, "name", false))
		b.stats("NAME", 0, 2)
	})
}

var silly = Config{AttrTime: time.Hour, DirAttrTime: time.Hour, Silly: true}

// holdingVolume is a server on which names of open files can be neither removed nor
// replaced, unless they are hidden ones.
func holding(b *bed) func(ctx context.Context, op remotetest.Op) error {
	return func(ctx context.Context, op remotetest.Op) error {
		b.fs.mu.Lock()
		defer b.fs.mu.Unlock()
		name := op.At.Name
		if op.Call == "Rename" {
			name = op.To.Name
		} else if op.Call != "Remove" {
			return nil
		}
		if len(b.fs.paths[name]) > 0 && !strings.HasPrefix(name, "dir/"+asidePrefix) {
			return syscall.EACCES
		}
		return nil
	}
}

func TestRemoveOfAnOpenFile(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, silly, func(b *bed) {
		b.fake.Set(func(c *remotetest.Config) { c.Hook = holding(b) })
		b.fake.Put("dir/file", []byte("old"))
		h := b.open("dir/file", remote.ForRead|remote.ForWrite, remote.Existing)
		b.reads(h, "old")
		b.write(h, 3, "er")
		b.costs("Rename", 1, func() { b.ok(b.fs.Remove(b.ctx, "dir/file", false)) })
		b.lacks("dir/file", 0)
		b.reads(h, "older")
		if got := b.lists("dir"); len(got) > 0 {
			b.Errorf("listed %q, want nothing", got)
		}

		again := b.open("dir/file", remote.ForRead|remote.ForWrite, remote.New)
		if again.Inode() == h.Inode() {
			b.Errorf("two files have the number %#x", h.Inode())
		}
		b.write(again, 0, "new")
		b.reads(h, "older")
		if attr, err := h.Attr(b.ctx, false); err != nil || attr.Size != 5 {
			b.Errorf("size %d, %v, want 5", attr.Size, err)
		}
		b.stats("dir/file", 0, 3)
		b.ok(h.Sync(b.ctx))
		b.close(h)
		b.ok(b.fs.Remove(b.ctx, "dir/file", false))
		b.lacks("dir/file", 0)
		b.reads(again, "new")
		b.close(again)
		if b.fs.kept.Len() > 0 || len(b.fs.paths) > 0 {
			b.Errorf("%d files are kept, %d names open", b.fs.kept.Len(), len(b.fs.paths))
		}
	})
}

func TestRemoveOfAnOpenFileThatCannotBePutAside(t *testing.T) {
	inBubble(t, remotetest.Config{}, silly, func(b *bed) {
		b.fake.Put("dir/file", []byte("1"))
		h := b.open("dir/file", remote.ForRead, remote.Existing)
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(ctx context.Context, op remotetest.Op) error {
				if op.Call == "Rename" {
					return syscall.EPERM
				}
				return nil
			}
		})
		b.ok(b.fs.Remove(b.ctx, "dir/file", false))
		b.lacks("dir/file", 0)
		b.reads(h, "1")
		b.close(h)
	})
}

func TestRemoveOfAnOpenFileThatFails(t *testing.T) {
	inBubble(t, remotetest.Config{}, silly, func(b *bed) {
		b.fake.Put("dir/file", []byte("1"))
		h := b.open("dir/file", remote.ForRead, remote.Existing)
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(ctx context.Context, op remotetest.Op) error {
				if op.Call == "Remove" {
					return syscall.EPERM
				}
				return nil
			}
		})
		b.fails(b.fs.Remove(b.ctx, "dir/file", false), syscall.EPERM)
		if h.path != "dir/file" {
			b.Errorf("the open file is called %q", h.path)
		}
		b.has("dir/file", "1")
		b.stats("dir/file", 1, 1)
		b.close(h)
	})
}

// Somebody who gives up half-way leaves the file as it was.
func TestRemoveOfAnOpenFileThatIsCancelled(t *testing.T) {
	for _, call := range []string{"Rename", "Remove"} {
		inBubble(t, remotetest.Config{}, silly, func(b *bed) {
			b.fake.Put("dir/file", []byte("1"))
			h := b.open("dir/file", remote.ForRead, remote.Existing)
			ctx, cancel := context.WithCancel(b.ctx)
			b.fs.vol = cancelling{b.fake, cancel, call}
			b.fails(b.fs.Remove(ctx, "dir/file", false), context.Canceled)
			if call == "Rename" {
				b.has("dir/file", "1")
			}
			b.close(h)
			if got := b.lists("dir"); call == "Remove" && len(got) > 0 {
				b.Errorf("listed %q, want nothing", got)
			}
		})
	}
}

// cancelling cancels the first request of a method when it has been served.
type cancelling struct {
	*remotetest.Fake
	cancel context.CancelFunc
	call   string
}

func (v cancelling) Rename(ctx context.Context, from, to remote.At, replace bool) (remote.Node, error) {
	node, err := v.Fake.Rename(ctx, from, to, replace)
	if v.call == "Rename" {
		v.cancel()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return node, err
}

func (v cancelling) Remove(ctx context.Context, at remote.At, dir bool) error {
	err := v.Fake.Remove(ctx, at, dir)
	if v.call == "Remove" {
		v.cancel()
		return ctx.Err()
	}
	return err
}

func TestRenameOverAnOpenFile(t *testing.T) {
	inBubble(t, remotetest.Config{Rights: leases}, silly, func(b *bed) {
		b.fake.Set(func(c *remotetest.Config) { c.Hook = holding(b) })
		b.fake.Put("dir/file", []byte("old"))
		b.fake.Put("dir/temp", []byte("new"))
		b.stats("dir/temp", 1, 3)
		old := b.open("dir/file", remote.ForRead|remote.ForWrite, remote.Existing)
		source := b.open("dir/temp", remote.ForRead, remote.Existing)
		b.ok(b.fs.Rename(b.ctx, "dir/temp", "dir/file", true))
		b.lacks("dir/temp", 0)
		if attr := b.stats("dir/file", 1, 3); attr.ID != source.Inode() {
			b.Errorf("the number of the file is %#x, want %#x", attr.ID, source.Inode())
		}
		b.reads(old, "old")
		b.write(old, 0, "dead")
		b.reads(old, "dead")
		b.close(old)
		b.has("dir/file", "new")
		if source.path != "dir/file" {
			b.Errorf("the open file is called %q", source.path)
		}
		b.reads(source, "new")
		b.close(source)
		if got := b.lists("dir"); !slices.Equal(got, []string{"file"}) {
			b.Errorf("listed %q, want file", got)
		}
		if got := b.hidden("dir"); got != 0 {
			b.Errorf("%d files are left behind", got)
		}
	})
}

func TestRenameOverAnOpenFileThatFails(t *testing.T) {
	inBubble(t, remotetest.Config{}, silly, func(b *bed) {
		b.fake.Put("dir/file", []byte("old"))
		h := b.open("dir/file", remote.ForRead, remote.Existing)
		b.fails(b.fs.Rename(b.ctx, "dir/none", "dir/file", true), fs.ErrNotExist)
		b.has("dir/file", "old")
		b.stats("dir/file", 0, 3)
		if h.path != "dir/file" || b.hidden("dir") != 0 {
			b.Errorf("the open file is called %q, %d are left behind", h.path, b.hidden("dir"))
		}
		b.fake.Put("dir/temp", []byte("new"))
		b.fails(b.fs.Rename(b.ctx, "dir/temp", "dir/file", false), fs.ErrExist)
		b.fake.Set(func(c *remotetest.Config) {
			c.Hook = func(ctx context.Context, op remotetest.Op) error {
				if op.At.Name == "dir/temp" {
					return syscall.EPERM
				}
				return nil
			}
		})
		pass(long.AttrTime)
		b.lists("dir") // or from would be asked about
		b.costs("Rename", 3, func() { b.fails(b.fs.Rename(b.ctx, "dir/temp", "dir/file", true), syscall.EPERM) })
		b.has("dir/file", "old")
		b.stats("dir/file", 1, 3)
		if h.path != "dir/file" || b.hidden("dir") != 0 {
			b.Errorf("the open file is called %q, %d are left behind", h.path, b.hidden("dir"))
		}
		b.reads(h, "old")
		b.close(h)
	})
}

// Where the server can do it, nothing is put aside.
func TestRenameOverAnOpenFileWithoutPuttingItAside(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fake.Put("file", []byte("old"))
		b.fake.Put("temp", []byte("new"))
		h := b.open("file", remote.ForRead, remote.Existing)
		b.costs("Rename", 1, func() { b.ok(b.fs.Rename(b.ctx, "temp", "file", true)) })
		if h.path != "" {
			b.Errorf("what was replaced is called %q", h.path)
		}
		b.reads(h, "old")
		again := b.open("file", remote.ForRead, remote.Existing)
		b.reads(again, "new")
		b.close(again)
		b.costs("Remove", 1, func() { b.ok(b.fs.Remove(b.ctx, "file", false)) })
		b.close(h)
	})
}

// hidden counts what is in a folder under a name that listings leave out.
func (b *bed) hidden(dir string) (n int) {
	for page, err := range b.fake.ReadDir(b.ctx, at(dir)) {
		b.ok(err)
		for _, e := range page {
			if isAside(e.Name) {
				n++
			}
		}
	}
	return n
}

func TestNamesThatAreLeftOut(t *testing.T) {
	inBubble(t, remotetest.Config{PageSize: 1}, silly, func(b *bed) {
		for _, name := range []string{".pagewire0123456789abcdef", ".pagewire0123456789abcdeg", ".pagewire0123456789abcde", ".pagewire", "x"} {
			b.fake.Put(name, nil)
		}
		want := []string{".pagewire", ".pagewire0123456789abcde", ".pagewire0123456789abcdeg", "x"}
		if got := b.lists("."); !slices.Equal(got, want) {
			b.Errorf("listed %q, want %q", got, want)
		}
	})
}

// Two changes of one name at once: nobody knows which one the server did first.
func TestOverlappingChangesAreNotRemembered(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		v := lateMake{b.fake, make(chan struct{})}
		b.fs.vol = v
		done := make(chan error)
		go func() {
			_, err := b.fs.WriteFile(b.ctx, "file", remote.How{Create: remote.New}, nil)
			done <- err
		}()
		synctest.Wait()
		b.ok(b.fs.Remove(b.ctx, "file", false))
		b.lacks("file", 0)
		close(v.until)
		b.ok(<-done)
		b.lacks("file", 1)
	})
}

// lateMake holds back the answers of WriteFile.
type lateMake struct {
	*remotetest.Fake
	until chan struct{}
}

func (v lateMake) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (remote.Attr, error) {
	attr, err := v.Fake.WriteFile(ctx, at, how, p)
	<-v.until
	return attr, err
}

// Unix renames nothing if both names are of one file.
func TestRenameOfALinkToItself(t *testing.T) {
	inBubble(t, remotetest.Config{}, long, func(b *bed) {
		b.fake.Put("file", []byte("1"))
		b.ok(b.fake.Link(b.ctx, at("file"), at("link")))
		b.stats("file", 1, 1)
		b.ok(b.fs.Rename(b.ctx, "file", "link", true))
		b.stats("file", 1, 1)
		b.stats("link", 1, 1)
	})
}

// What is put aside must be what is open.
func TestRenameOverAFolderThatWasAnOpenFile(t *testing.T) {
	inBubble(t, remotetest.Config{}, silly, func(b *bed) {
		b.fake.Put("dir/file", []byte("1"))
		b.fake.Put("dir/temp", []byte("1"))
		h := b.open("dir/file", remote.ForRead, remote.Existing)
		b.ok(b.fake.Remove(b.ctx, at("dir/file"), false))
		b.fake.Put("dir/file/below", nil)
		pass(long.AttrTime)
		b.fails(b.fs.Rename(b.ctx, "dir/temp", "dir/file", true), syscall.EISDIR)
		b.stats("dir/file/below", 1, 0)
		b.close(h)
	})
}

func TestStatFS(t *testing.T) {
	inBubble(t, remotetest.Config{Capacity: 1 << 20}, Config{}, func(b *bed) {
		st, err := b.fs.StatFS(b.ctx)
		if err != nil || st.Total != 1<<20 {
			b.Errorf("%d bytes, %v, want %d", st.Total, err, 1<<20)
		}
	})
}
