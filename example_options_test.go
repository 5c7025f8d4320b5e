package pagewire_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

// One cache may serve any number of file systems, which then share its memory.
func ExampleNewCache() {
	cache, err := pagewire.NewCache(pagewire.CacheConfig{Size: 64 << 20})
	check(err)
	defer cache.Close()
	for range 2 {
		srv := smbtest.NewServer(smbtest.Config{})
		defer srv.Close()
		fsys, err := pagewire.Dial(context.Background(), srv.URL, &pagewire.Config{Cache: cache})
		check(err)
		defer fsys.Close()
		f, err := fsys.Create(context.Background(), "file")
		check(err)
		_, err = f.Write(make([]byte, 1<<20))
		check(err)
	}
	fmt.Println(cache.Stats().Dirty>>20, "MiB of", cache.Stats().Size>>20)
	// Output: 2 MiB of 64
}

func ExampleCache_Stats() {
	cache, err := pagewire.NewCache(pagewire.CacheConfig{})
	check(err)
	defer cache.Close()
	fmt.Println(cache.Stats().Cached, "bytes in use")
	// Output: 0 bytes in use
}

func ExampleCache_Close() {
	cache, err := pagewire.NewCache(pagewire.CacheConfig{Size: 8 << 20, PageSize: 64 << 10})
	check(err)
	fmt.Println(cache.Close()) // after the file systems that use it
	// Output: <nil>
}

func ExampleParseSource() {
	for _, s := range []string{"smb://WORK;bob:secret@nas:4450/my%20share/folder", `//nas/media`} {
		src, err := pagewire.ParseSource(s)
		check(err)
		fmt.Println(src.Host, src.Port, src.Share, src.Path)
	}
	// Output:
	// nas 4450 my share folder
	// nas 0 media .
}

// A source shows no password.
func ExampleSource_String() {
	src, err := pagewire.ParseSource("smb://bob:secret@nas/media")
	check(err)
	fmt.Println(src)
	// Output: smb://bob@nas/media
}

func ExampleIsSource() {
	for _, arg := range []string{"//nas/media", "nas:/export", "./odd:name", "file"} {
		fmt.Println(arg, pagewire.IsSource(arg))
	}
	// Output:
	// //nas/media true
	// nas:/export true
	// ./odd:name false
	// file false
}

func ExampleParseOptions() {
	o, err := pagewire.ParseOptions("vers=3.1.1,seal,rsize=1M,cache=none")
	check(err)
	fmt.Println(o.Version, o.Seal, o.ReadSize, o.Cache)
	_, err = pagewire.ParseOptions("rsise=1M")
	fmt.Println(err)
	// Output:
	// 3.1.1 true 1048576 none
	// unknown option "rsise" (did you mean rsize?)
}

func ExampleOptions_String() {
	o, err := pagewire.ParseOptions("seal,username=bob,password=secret,rsize=64K")
	check(err)
	fmt.Println(o)
	// Output: rw,username=bob,seal,rsize=65536
}

func ExampleAllOptions() {
	for o := range pagewire.AllOptions() {
		if o.Name == "actimeo" {
			fmt.Printf("%s=%s: %s\n", o.Name, o.Value, o.Help)
		}
	}
	// Output: actimeo=SECONDS: keep the attributes of files and folders so long before the server is asked again (default: 1)
}

func ExampleCacheMode_String() {
	fmt.Println(pagewire.CacheMode(""), pagewire.CacheNone)
	// Output: strict none
}

// A secret does not show itself, however it is printed.
func ExampleNewSecret() {
	c := pagewire.Credentials{User: "bob", Password: pagewire.NewSecret("hunter2")}
	fmt.Printf("%v %+v %#v\n", c, c.Password, c.Password)
	slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Info("logs on", "password", c.Password)
	// Output:
	// bob with a password secret pagewire.Secret(secret)
	// level=INFO msg="logs on" password=secret
}

// Half of the requests were for 4 KiB at most, and all for 8 KiB at most.
func ExampleHistogram_Quantile() {
	h := pagewire.Histogram[int64]{{UpTo: 4096, Count: 10}, {UpTo: 8192, Count: 10}}
	fmt.Println(h.Quantile(0.5), h.Quantile(1))
	// Output: 4096 8192
}
