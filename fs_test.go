package pagewire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
	"github.com/pagewire/pagewire/smbtest"
)

// newFake returns a file system over a volume in memory.
func newFake(t *testing.T, cfg remotetest.Config) (*remotetest.Fake, *FS) {
	t.Helper()
	if cfg.Check == nil {
		cfg.Check = t.Errorf
	}
	fake := remotetest.New(cfg)
	return fake, newVolumeFS(t, fake)
}

// newVolumeFS returns a file system over a volume.
func newVolumeFS(t *testing.T, vol remote.Volume) *FS {
	t.Helper()
	cache, err := NewCache(CacheConfig{Size: 8 << 20, OnHeap: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLink(Options{}, cache)
	if err != nil {
		t.Fatal(err)
	}
	return &FS{share: newShare(l, vol, "//nas/media"), dir: "."}
}

// replaceVolume puts another volume in the place of that of a file system.
func replaceVolume(f *FS, vol remote.Volume) {
	f.share = newShare(f.share.link, vol, f.share.name)
}

func TestIOFS(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{PageSize: 2, ShortRead: 3})
	fake.Put("a.txt", []byte("one"))
	fake.Put("dir/b.txt", bytes.Repeat([]byte("two"), 1000))
	fake.Put("dir/deeper/c", nil)
	fake.Put("dir/d", []byte("three"))
	if err := fsys.Symlink(t.Context(), "dir/b.txt", "link"); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.txt", "dir", "dir/b.txt", "dir/deeper", "dir/deeper/c", "dir/d", "link"}
	if err := fstest.TestFS(fsys, names...); err != nil {
		t.Error(err)
	}
	if err := fstest.TestFS(fsys.WithContext(t.Context()), names...); err != nil {
		t.Error(err)
	}
	sub, err := fsys.Sub("dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(sub, "b.txt", "deeper/c"); err != nil {
		t.Error(err)
	}
}

func TestRoundTrips(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{PageSize: 1000})
	ctx := t.Context()
	for i := range 2500 {
		fake.Put(fmt.Sprintf("many/%04d", i), []byte("x"))
	}
	fake.Put("a/b/c", []byte("small"))
	total := func() (n int) {
		for _, call := range []string{"Open", "GetAttr", "SetAttr", "ReadFile", "WriteFile", "ReadDir", "Make", "ReadLink",
			"Rename", "Remove", "ReadAt", "WriteAt", "Close", "StatFS"} {
			n += fake.Count(call)
		}
		return n
	}
	for _, c := range []struct {
		name string
		do   func() error
		want int
	}{
		{"stat", func() error { _, err := fsys.Stat("a/b/c"); return err }, 1},
		{"read a small file", func() error { _, err := fsys.ReadFile("a/b/c"); return err }, 1},
		{"write a small file", func() error { return fsys.WriteFile(ctx, "a/b/d", []byte("new"), 0o666) }, 1},
		{"rename", func() error { return fsys.Rename(ctx, "a/b/d", "a/d") }, 1},
		{"remove", func() error { return fsys.Remove(ctx, "a/d") }, 1},
		{"mkdir", func() error { return fsys.Mkdir(ctx, "a/n", 0o777) }, 1},
		{"mkdir -p of what is there", func() error { return fsys.MkdirAll(ctx, "a/n", 0o777) }, 2},
		{"mkdir -p", func() error { return fsys.MkdirAll(ctx, "a/n/o/p", 0o777) }, 3},
		{"set times", func() error { return fsys.Chtimes(ctx, "a/b/c", time.Time{}, time.Unix(1, 0)) }, 1},
		{"usage", func() error { _, err := fsys.Usage(ctx); return err }, 1},
		{"list and describe", func() error {
			for e, err := range fsys.Entries(ctx, "many") {
				if err != nil {
					return err
				}
				if info, err := e.Info(); err != nil || info.Size() != 1 {
					return fmt.Errorf("info of %s: %v, %v", e.Name(), info, err)
				}
			}
			return nil
		}, 3},
		{"open, describe, close", func() error {
			f, err := fsys.Open("a/b/c")
			if err != nil {
				return err
			}
			_, err = f.Stat()
			return errors.Join(err, f.Close())
		}, 2},
		{"copy out", func() error {
			f, err := fsys.Open("a/b/c")
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, f)
			return errors.Join(err, f.Close())
		}, 3},
	} {
		before := total()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := total() - before; got != c.want {
			t.Errorf("%s: %d requests, want %d", c.name, got, c.want)
		}
	}
}

func TestSymlinks(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		_, fsys := newFake(t, remotetest.Config{})
		symlinks(t, fsys)
	})
	srv := startServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "reparse"}, {Name: "files"}}})
	base := strings.TrimSuffix(srv.URL, "reparse")
	t.Run("reparse points", func(t *testing.T) { symlinks(t, dial(t, base+"reparse", "")) })
	t.Run("mfsymlinks", func(t *testing.T) { symlinks(t, dial(t, base+"files", "mfsymlinks")) })
}

func symlinks(t *testing.T, fsys *FS) {
	ctx := t.Context()
	if err := errors.Join(fsys.MkdirAll(ctx, "dir/sub", 0o777), fsys.WriteFile(ctx, "dir/sub/file", []byte("found"), 0o666)); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"toFile": "dir/sub/file", "toLink": "toFile", "dir/sub/up": "../../toFile", "toDir": "dir/sub",
		"self": "self", "out": "../elsewhere", "absolute": "/etc/passwd", "dangling": "dir/missing",
		"spelled": fsys.share.name + "/dir/sub/file", "other": fsys.share.name + "thek/file",
	} {
		if err := fsys.Symlink(ctx, target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		want error
	}{
		{"toFile", nil},
		{"toLink", nil},
		{"dir/sub/up", nil},
		{"toDir/file", nil},
		{"toDir/up", nil},
		{"spelled", nil},
		{"self", syscall.ELOOP},
		{"out", errOutside},
		{"absolute", errOutside},
		{"other", errOutside},
		{"dangling", fs.ErrNotExist},
	} {
		info, err := fs.Stat(fsys, c.name)
		if !errors.Is(err, c.want) || c.want == nil && info.Mode().IsRegular() == false {
			t.Errorf("Stat(%s): %v, want %v", c.name, err, c.want)
		}
		data, err := fsys.ReadFile(c.name)
		if !errors.Is(err, c.want) || c.want == nil && string(data) != "found" {
			t.Errorf("ReadFile(%s): %q, %v, want %v", c.name, data, err, c.want)
		}
		f, err := fsys.OpenFile(ctx, c.name, os.O_RDONLY, 0)
		if !errors.Is(err, c.want) {
			t.Errorf("OpenFile(%s): %v, want %v", c.name, err, c.want)
		}
		var pe *fs.PathError
		if err != nil && !errors.As(err, &pe) {
			t.Errorf("OpenFile(%s): %T, want an *fs.PathError", c.name, err)
		} else if err == nil {
			f.Close()
		}
	}
	info, err := fsys.Lstat("self")
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("Lstat(self): %v, %v, want a link", info, err)
	}
	if target, err := fsys.ReadLink("toDir/up"); target != "../../toFile" || err != nil {
		t.Errorf("ReadLink(toDir/up): %q, %v", target, err)
	}

	// What changes a file changes the one a link leads to, and makes it if need be.
	if err := fsys.WriteFile(ctx, "dangling", []byte("made"), 0o666); err != nil {
		t.Error(err)
	}
	if got, err := fsys.ReadFile("dir/missing"); string(got) != "made" || err != nil {
		t.Errorf("written through a link: %q, %v", got, err)
	}
	when := time.Unix(12345, 0)
	if err := fsys.Chtimes(ctx, "toLink", time.Time{}, when); err != nil {
		t.Error(err)
	}
	if info, _ := fsys.Stat("dir/sub/file"); !info.ModTime().Equal(when) {
		t.Errorf("time set through a link: %v, want %v", info.ModTime(), when)
	}
	// What removes and renames takes the link itself.
	if err := fsys.Rename(ctx, "toDir/up", "toDir/upper"); err != nil {
		t.Error(err)
	}
	if err := fsys.RemoveAll(ctx, "toDir"); err != nil {
		t.Error(err)
	}
	if target, err := fsys.ReadLink("dir/sub/upper"); err != nil || target != "../../toFile" {
		t.Errorf("after Rename and RemoveAll of a link: %q, %v", target, err)
	}
}

// endless is a volume whose files go on where their server says they end.
type endless struct{ remote.Volume }

type endlessFile struct{ remote.File }

func (v endless) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (remote.Opened, error) {
	o, err := v.Volume.Open(ctx, at, how, events)
	o.File = endlessFile{o.File}
	return o, err
}

func (f endlessFile) ReadAt(_ context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	if req.Off > 64<<20 {
		return 0, false, errors.New("nobody stops")
	}
	for _, p := range into {
		n += len(p)
	}
	return n, false, nil
}

func TestReadFileIsBounded(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{})
	fake.Put("a", make([]byte, 200_000))
	replaceVolume(fsys, endless{fake})
	data, err := fsys.ReadFile("a")
	if !errors.Is(err, errEndless) || len(data) > 200_000 {
		t.Errorf("ReadFile of a file that never ends: %d bytes, %v; want no more than it is said to have, and %v", len(data), err, errEndless)
	}
}

// outdated is a volume whose small files have grown when they are read.
type outdated struct{ remote.Volume }

func (v outdated) ReadFile(ctx context.Context, at remote.At, p []byte) (int, remote.Attr, error) {
	n, attr, err := v.Volume.ReadFile(ctx, at, p)
	attr.Size = 3
	return n, attr, err
}

func TestReadFileIsWhole(t *testing.T) {
	for _, largest := range []int{16 << 10, 1 << 20} {
		fake, fsys := newFake(t, remotetest.Config{Limits: remote.Limits{Read: largest}})
		replaceVolume(fsys, outdated{fake})
		for _, size := range []int{3, 4, 10_000, 16 << 10, 64 << 10, 200_000} {
			want := randomBytes(size)
			fake.Put("a", want)
			if data, err := fsys.ReadFile("a"); err != nil || !bytes.Equal(data, want) {
				t.Errorf("ReadFile of %d bytes that were 3, %d a request: %d bytes, %v", size, largest, len(data), err)
			}
		}
	}
}

func TestReadFileThatGrows(t *testing.T) {
	grown := randomBytes(900_000)
	var put func(string, []byte)
	fake, fsys := newFake(t, remotetest.Config{Hook: func(_ context.Context, op remotetest.Op) error {
		if op.Call == "ReadAt" && op.Off == 0 {
			put("a", grown)
		}
		return nil
	}})
	put = fake.Put
	for _, limit := range []int{1_000_000, 900_000} {
		fake.Put("a", make([]byte, 200_000))
		if data, err := fsys.ReadSmallFile(t.Context(), "a", limit); err != nil || !bytes.Equal(data, grown) {
			t.Errorf("up to %d of a file that grows: %d bytes, %v; want %d", limit, len(data), err, len(grown))
		}
	}
	for _, limit := range []int{0, 199_999, 200_000, 899_999} {
		fake.Put("a", make([]byte, 200_000))
		if data, err := fsys.ReadSmallFile(t.Context(), "a", limit); !errors.Is(err, syscall.EFBIG) || len(data) > limit {
			t.Errorf("up to %d of a file that grows: %d bytes, %v; want %v", limit, len(data), err, syscall.EFBIG)
		}
	}
}

func TestChanges(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{PageSize: 7})
	ctx := t.Context()
	for i := range 50 {
		fake.Put(fmt.Sprintf("tree/%d/%d", i%5, i), []byte("x"))
	}
	fake.Put("file", []byte("old"))

	if err := fsys.Remove(ctx, "tree"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("Remove of a full folder: %v, want ENOTEMPTY", err)
	}
	if err := fsys.RemoveAll(ctx, "tree"); err != nil {
		t.Error(err)
	}
	if _, err := fsys.Lstat("tree"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after RemoveAll: %v, want ErrNotExist", err)
	}
	if err := fsys.RemoveAll(ctx, "tree"); err != nil {
		t.Errorf("RemoveAll of nothing: %v", err)
	}
	if err := fsys.MkdirAll(ctx, "x/y/z", 0o777); err != nil {
		t.Error(err)
	}
	if err := fsys.MkdirAll(ctx, "file/y", 0o777); err == nil {
		t.Error("MkdirAll below a file succeeded")
	}
	if err := fsys.MkdirAll(ctx, "file", 0o777); !errors.Is(err, fs.ErrExist) {
		t.Errorf("MkdirAll of a file: %v, want ErrExist", err)
	}
	if err := fsys.Link(ctx, "file", "x/other"); err != nil {
		t.Error(err)
	}
	if err := fsys.Rename(ctx, "file", "x/y/z/moved"); err != nil {
		t.Error(err)
	}
	if err := fsys.Rename(ctx, "missing", "x/m"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Rename of nothing: %v, want ErrNotExist", err)
	} else if le := new(os.LinkError); !errors.As(err, &le) || le.New != "x/m" {
		t.Errorf("Rename of nothing: %#v, want an *os.LinkError", err)
	}

	if err := fsys.Chmod(ctx, "x/other", 0o444); err != nil {
		t.Error(err)
	}
	if info, _ := fsys.Stat("x/other"); info.Mode() != 0o555 || info.Sys().(*Attr).DOS&dosReadOnly == 0 {
		t.Errorf("after Chmod: %v, want read-only", info)
	}
	if _, err := fsys.OpenFile(ctx, "x/other", os.O_WRONLY, 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("opening a read-only file to write: %v, want ErrPermission", err)
	}
	if err := fsys.Chmod(ctx, "x/other", 0o644); err != nil {
		t.Error(err)
	}
	if info, _ := fsys.Stat("x/other"); info.Mode() != 0o755 {
		t.Errorf("after the second Chmod: %v, want it to be writable", info)
	}
	for _, bad := range []string{"", "/", "../x", "x/", "x//y", "x/../y", "a\x00b"} {
		if _, err := fsys.Stat(bad); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Stat(%q): %v, want ErrInvalid", bad, err)
		}
	}
	if _, err := fsys.Stat("x/other/more"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Stat below a file: %v, want ENOTDIR", err)
	}
	if _, err := fsys.Stat("lone \xed\xa0\x80 surrogate"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a surrogate on its own: %v, want ErrNotExist", err)
	}
}

func TestReadOnly(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{})
	fake.Put("a", []byte("kept"))
	fsys.share.options.ReadOnly = true
	ctx := t.Context()
	open := func(flag int) error { _, err := fsys.OpenFile(ctx, "a", flag, 0o666); return err }
	for name, err := range map[string]error{
		"write":    open(os.O_WRONLY),
		"truncate": open(os.O_RDONLY | os.O_TRUNC),
		"create":   open(os.O_RDONLY | os.O_CREATE),
		"remove":   fsys.Remove(ctx, "a"), "removeall": fsys.RemoveAll(ctx, "a"),
		"rename": fsys.Rename(ctx, "a", "b"), "mkdir": fsys.Mkdir(ctx, "d", 0),
		"mkdirall": fsys.MkdirAll(ctx, "d/e", 0), "symlink": fsys.Symlink(ctx, "a", "l"),
		"link": fsys.Link(ctx, "a", "l"), "chmod": fsys.Chmod(ctx, "a", 0),
		"chtimes":   fsys.Chtimes(ctx, "a", time.Time{}, time.Now()),
		"writefile": fsys.WriteFile(ctx, "a", nil, 0),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v, want EROFS", name, err)
		}
	}
	if data, err := fsys.ReadFile("a"); string(data) != "kept" || err != nil {
		t.Errorf("ReadFile: %q, %v", data, err)
	}
}

func TestModes(t *testing.T) {
	o := Options{FileMode: 0o640, DirMode: 0o710}
	for _, c := range []struct {
		opts Options
		attr remote.Attr
		want fs.FileMode
	}{
		{Options{}, remote.Attr{}, 0o755},
		{Options{}, remote.Attr{DOS: dosReadOnly}, 0o555},
		{Options{}, remote.Attr{Kind: remote.Dir, DOS: dosReadOnly}, fs.ModeDir | 0o755},
		{o, remote.Attr{}, 0o640},
		{o, remote.Attr{DOS: dosReadOnly}, 0o440},
		{o, remote.Attr{Kind: remote.Dir}, fs.ModeDir | 0o710},
		{o, remote.Attr{Kind: remote.Symlink, DOS: dosReadOnly}, fs.ModeSymlink | 0o777},
		{o, remote.Attr{Kind: remote.Other}, fs.ModeIrregular | 0o640},
	} {
		if got := c.opts.mode(c.attr); got != c.want {
			t.Errorf("mode of %+v: %v, want %v", c.attr, got, c.want)
		}
	}
}

func TestFileOffsets(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{Limits: remote.Limits{Read: 4, Write: 4}})
	ctx := t.Context()
	f, err := fsys.Create(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "0123456789") // three requests
	if n := fake.Count("WriteAt"); n != 3 {
		t.Errorf("ten bytes took %d writes of 4, want 3", n)
	}
	if off, err := f.Seek(-4, io.SeekCurrent); off != 6 || err != nil {
		t.Errorf("Seek: %d, %v, want 6", off, err)
	}
	p := make([]byte, 3)
	var got []string
	for range 3 {
		n, err := f.Read(p)
		got = append(got, fmt.Sprint(string(p[:n]), " ", err))
	}
	if want := []string{"678 <nil>", "9 <nil>", " EOF"}; !slices.Equal(got, want) {
		t.Errorf("reads: %q, want %q", got, want)
	}
	if n, err := f.ReadAt(p, 8); n != 2 || err != io.EOF {
		t.Errorf("ReadAt the end: %d, %v, want 2, EOF", n, err)
	}
	big := make([]byte, 40)
	if n, err := f.ReadAt(big, 1); n != 9 || err != io.EOF || string(big[:n]) != "123456789" {
		t.Errorf("ReadAt beyond the end: %q, %v", big[:n], err)
	}
	if off, err := f.Seek(-1, io.SeekEnd); off != 9 || err != nil {
		t.Errorf("Seek from the end: %d, %v, want 9", off, err)
	}
	if _, err := f.Seek(-1, io.SeekStart); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Seek before the start: %v, want ErrInvalid", err)
	}
	if err := f.Truncate(5); err != nil {
		t.Error(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 5 {
		t.Errorf("Stat after Truncate: %v, %v, want 5 bytes", info, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Error(err)
	}
	if _, err := f.Read(p); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Read of a closed file: %v, want ErrClosed", err)
	}
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v, want ErrClosed", err)
	}

	app, err := fsys.OpenFile(ctx, "a", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(app, "abcdef")
	io.Copy(app, strings.NewReader("ghijkl"))
	if _, err := app.WriteAt(p, 0); err == nil {
		t.Error("WriteAt with O_APPEND succeeded")
	}
	if _, err := app.Read(p); !errors.Is(err, syscall.EBADF) {
		t.Errorf("Read of a file to be written: %v, want EBADF", err)
	}
	if got, _ := fake.Bytes("a"); string(got) != "01234abcdefghijkl" {
		t.Errorf("appended: %q", got)
	}
	if _, err := fsys.OpenFile(ctx, "a", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0); !errors.Is(err, fs.ErrExist) {
		t.Errorf("O_EXCL of what is there: %v, want ErrExist", err)
	}
}

func TestFolders(t *testing.T) {
	fake, fsys := newFake(t, remotetest.Config{PageSize: 2})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		fake.Put("dir/"+name, nil)
	}
	file, err := fsys.Open("dir")
	if err != nil {
		t.Fatal(err)
	}
	f := file.(*File)
	var got []string
	read := func(n int) {
		entries, err := f.ReadDir(n)
		got = append(got, fmt.Sprint(len(entries), " ", err))
	}
	read(2)
	read(2)
	read(2)
	read(2)
	f.Seek(0, io.SeekStart)
	read(-1)
	read(0)
	if want := []string{"2 <nil>", "2 <nil>", "1 <nil>", "0 EOF", "5 <nil>", "0 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("ReadDir: %q, want %q", got, want)
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("Read of a folder: %v, want EISDIR", err)
	}
	f.Seek(0, io.SeekStart)
	read(1)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := fsys.OpenFile(t.Context(), "dir", os.O_RDWR, 0); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("opening a folder to write: %v, want EISDIR", err)
	}
	if _, err := fsys.ReadDir("dir/a"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("ReadDir of a file: %v, want ENOTDIR", err)
	}
}

func TestContexts(t *testing.T) {
	_, fsys := newFake(t, remotetest.Config{Delay: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user pressed ^C")
	cancel(why)
	if _, err := fs.Stat(fsys.WithContext(ctx), "a"); !errors.Is(err, why) {
		t.Errorf("Stat: %v, want its context's cause", err)
	}
	if err := fsys.Remove(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("Remove: %v, want its context's cause", err)
	}
}
