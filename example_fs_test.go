package pagewire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

func ExampleFS_Open() {
	fsys, end := example()
	defer end()
	check(fsys.WriteFile(context.Background(), "poem", []byte("Fog comes on little cat feet."), 0o666))

	f, err := fsys.Open("poem") // an fs.File, which is a *pagewire.File
	check(err)
	defer f.Close()
	p := make([]byte, 9)
	n, err := f.(*pagewire.File).ReadAt(p, 0)
	fmt.Println(string(p[:n]), err)
	// Output: Fog comes <nil>
}

func ExampleFS_OpenFile() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	for _, line := range []string{"one", "two"} {
		f, err := fsys.OpenFile(ctx, "log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		check(err)
		fmt.Fprintln(f, line)
		check(f.Close())
	}
	data, err := fsys.ReadFile("log")
	check(err)
	fmt.Printf("%q\n", data)
	// Output: "one\ntwo\n"
}

// Whatever else is cached, a file opened with O_DIRECT is not.
func ExampleFS_OpenFile_direct() {
	fsys, end := example()
	defer end()

	f, err := fsys.OpenFile(context.Background(), "disk.img", os.O_RDWR|os.O_CREATE|pagewire.O_DIRECT, 0o666)
	check(err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, 512), 0)
	check(err)
	fmt.Println("requests:", fsys.Stats().Write.Requests)
	// Output: requests: 1
}

func ExampleFS_Create() {
	fsys, end := example()
	defer end()

	f, err := fsys.Create(context.Background(), "notes")
	check(err)
	fmt.Fprint(f, "to do: nothing")
	check(f.Close()) // which tells if something could not be written
	info, err := fsys.Stat("notes")
	check(err)
	fmt.Println(info.Size())
	// Output: 14
}

func ExampleFS_Stat() {
	fsys, end := example()
	defer end()
	check(fsys.WriteFile(context.Background(), "notes", []byte("some"), 0o666))

	info, err := fsys.Stat("notes")
	check(err)
	fmt.Println(info.Name(), info.Mode(), info.Size())
	_, err = fsys.Stat("none")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// notes -rwxr-xr-x 4
	// true
}

func ExampleFS_Lstat() {
	fsys, end := example()
	defer end()
	check(fsys.Symlink(context.Background(), "nowhere", "link"))

	info, err := fsys.Lstat("link")
	check(err)
	attr := info.Sys().(*pagewire.Attr)
	fmt.Println(info.Mode().Type() == fs.ModeSymlink, attr.Born.IsZero())
	// Output: true false
}

func ExampleFS_ReadDir() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.MkdirAll(ctx, "a/b", 0o777))
	check(fsys.WriteFile(ctx, "a/c", []byte("12345"), 0o666))

	entries, err := fsys.ReadDir("a")
	check(err)
	for _, e := range entries {
		fmt.Println(fs.FormatDirEntry(e))
	}
	// Output:
	// d b/
	// - c
}

// Entries come as the server sends them, so that a folder may have any number.
func ExampleFS_Entries() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	for _, name := range []string{"x", "y", "z"} {
		check(fsys.WriteFile(ctx, name, []byte(name), 0o666))
	}

	total := int64(0)
	for e, err := range fsys.Entries(ctx, ".") {
		check(err)
		info, err := e.Info() // without a round trip
		check(err)
		total += info.Size()
	}
	fmt.Println(total, "bytes")
	// Output: 3 bytes
}

func ExampleFS_ReadFile() {
	fsys, end := example()
	defer end()
	check(fsys.WriteFile(context.Background(), "motto", []byte("near"), 0o666))

	data, err := fsys.ReadFile("motto")
	fmt.Println(string(data), err)
	// Output: near <nil>
}

func ExampleFS_ReadSmallFile() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "config", make([]byte, 5000), 0o666))

	_, err := fsys.ReadSmallFile(ctx, "config", 4096)
	fmt.Println(errors.Is(err, syscall.EFBIG))
	// Output: true
}

func ExampleFS_ReadLink() {
	fsys, end := example()
	defer end()
	check(fsys.Symlink(context.Background(), "releases/2", "current"))

	target, err := fsys.ReadLink("current")
	fmt.Println(target, err)
	// Output: releases/2 <nil>
}

func ExampleFS_Sub() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.Mkdir(ctx, "site", 0o777))
	check(fsys.WriteFile(ctx, "site/index.html", []byte("<h1>Hello</h1>"), 0o666))

	site, err := fsys.Sub("site") // for http.FileServerFS, or a template
	check(err)
	data, err := fs.ReadFile(site, "index.html")
	fmt.Println(string(data), err)
	// Output: <h1>Hello</h1> <nil>
}

// Functions of io/fs take no context. This one bounds all that they do.
func ExampleFS_WithContext() {
	fsys, end := example()
	defer end()
	check(fsys.MkdirAll(context.Background(), "a/b", 0o777))

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check(fs.WalkDir(fsys.WithContext(ctx), ".", func(path string, _ fs.DirEntry, err error) error {
		fmt.Println(path)
		return err
	}))
	// Output:
	// .
	// a
	// a/b
}

func ExampleFS_Mkdir() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	check(fsys.Mkdir(ctx, "new", 0o777))
	fmt.Println(errors.Is(fsys.Mkdir(ctx, "new", 0o777), fs.ErrExist))
	// Output: true
}

func ExampleFS_MkdirAll() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	check(fsys.MkdirAll(ctx, "2026/12/01", 0o777))
	fmt.Println(fsys.MkdirAll(ctx, "2026/12/01", 0o777))
	// Output: <nil>
}

func ExampleFS_Remove() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.MkdirAll(ctx, "folder", 0o777))
	check(fsys.WriteFile(ctx, "folder/x", nil, 0o666))

	fmt.Println(errors.Is(fsys.Remove(ctx, "folder"), syscall.ENOTEMPTY))
	check(fsys.Remove(ctx, "folder/x"))
	check(fsys.Remove(ctx, "folder"))
	// Output: true
}

func ExampleFS_RemoveAll() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.MkdirAll(ctx, "a/b/c", 0o777))

	check(fsys.RemoveAll(ctx, "a"))
	fmt.Println(fsys.RemoveAll(ctx, "a"))
	// Output: <nil>
}

// What has the new name is replaced in one step.
func ExampleFS_Rename() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "config", []byte("old"), 0o666))

	check(fsys.WriteFile(ctx, "config.new", []byte("new"), 0o666))
	check(fsys.Rename(ctx, "config.new", "config"))
	data, err := fsys.ReadFile("config")
	fmt.Println(string(data), err)
	// Output: new <nil>
}

func ExampleFS_Link() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "one", []byte("shared"), 0o666))

	check(fsys.Link(ctx, "one", "two"))
	check(fsys.Remove(ctx, "one"))
	data, err := fsys.ReadFile("two")
	fmt.Println(string(data), err)
	// Output: shared <nil>
}

func ExampleFS_Symlink() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "v2", []byte("the second"), 0o666))

	check(fsys.Symlink(ctx, "v2", "latest"))
	data, err := fsys.ReadFile("latest")
	fmt.Println(string(data), err)
	// Output: the second <nil>
}

func ExampleFS_Chmod() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "precious", nil, 0o666))

	check(fsys.Chmod(ctx, "precious", 0o444))
	_, err := fsys.OpenFile(ctx, "precious", os.O_WRONLY, 0)
	fmt.Println(errors.Is(err, fs.ErrPermission))
	// Output: true
}

func ExampleFS_Chtimes() {
	fsys, end := example()
	defer end()
	ctx := context.Background()
	check(fsys.WriteFile(ctx, "file", nil, 0o666))

	check(fsys.Chtimes(ctx, "file", time.Time{}, time.Date(2020, 2, 29, 12, 0, 0, 0, time.UTC)))
	info, err := fsys.Stat("file")
	check(err)
	fmt.Println(info.ModTime().UTC())
	// Output: 2020-02-29 12:00:00 +0000 UTC
}

func ExampleFS_WriteFile() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	before := fsys.Stats().Write.Requests
	check(fsys.WriteFile(ctx, "small", []byte("in a single round trip"), 0o666))
	fmt.Println(fsys.Stats().Write.Requests - before)
	// Output: 1
}

func ExampleFS_WriteNewFile() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	check(fsys.WriteNewFile(ctx, "lock", []byte("mine"), 0o666))
	fmt.Println(errors.Is(fsys.WriteNewFile(ctx, "lock", []byte("yours"), 0o666), fs.ErrExist))
	// Output: true
}

func ExampleFS_Usage() {
	srv := smbtest.NewServer(smbtest.Config{Shares: []smbtest.Share{{Name: "share", Limit: 1 << 30}}})
	defer srv.Close()
	fsys, err := pagewire.Dial(context.Background(), srv.URL, nil)
	check(err)
	defer fsys.Close()

	u, err := fsys.Usage(context.Background())
	check(err)
	fmt.Println(u.Total>>20, "MiB,", u.Free>>20, "of them free")
	// Output: 1024 MiB, 1024 of them free
}

func ExampleFS_Stats() {
	fsys, end := example()
	defer end()
	ctx := context.Background()

	f, err := fsys.Create(ctx, "file")
	check(err)
	_, err = f.Write(make([]byte, 5000))
	check(err)
	fmt.Println(fsys.Stats().Cache.Dirty, "bytes are not yet on the server")
	check(f.Close())
	s := fsys.Stats()
	fmt.Println(s.Cache.Dirty, "are after", s.Write.Requests, "request of", s.Write.Largest)
	// Output:
	// 5000 bytes are not yet on the server
	// 0 are after 1 request of 5000
}

// Close writes what is not yet on the server, and says if that was not possible.
func ExampleFS_Close() {
	srv := smbtest.NewServer(smbtest.Config{Shares: []smbtest.Share{{Name: "share", Limit: 1 << 20}}})
	defer srv.Close()
	ctx := context.Background()
	fsys, err := pagewire.Dial(ctx, srv.URL, nil)
	check(err)

	f, err := fsys.Create(ctx, "too large")
	check(err)
	_, err = f.Write(make([]byte, 2<<20))
	check(err) // it is kept for now
	fmt.Println(errors.Is(fsys.Close(), syscall.ENOSPC))
	// Output: true
}
