package pagewire_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"strings"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

func ExampleDial() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	ctx := context.Background()
	fsys, err := pagewire.Dial(ctx, srv.URL, &pagewire.Config{Options: "vers=3.1.1,sign"})
	if err != nil {
		log.Fatal(err)
	}
	defer fsys.Close()

	if err := fsys.MkdirAll(ctx, "reports/2026", 0o777); err != nil {
		log.Fatal(err)
	}
	if err := fsys.WriteFile(ctx, "reports/2026/january.txt", []byte("all is well\n"), 0o666); err != nil {
		log.Fatal(err)
	}
	fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		fmt.Println(path)
		return err
	})
	s := fsys.Stats()
	fmt.Println("SMB", s.Dialect, "signed with", s.Signing)
	// Output:
	// .
	// reports
	// reports/2026
	// reports/2026/january.txt
	// SMB 3.1.1 signed with AES-GMAC
}

func ExampleFile_WriteTo() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	ctx := context.Background()
	fsys, err := pagewire.Dial(ctx, srv.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer fsys.Close()

	f, err := fsys.Create(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(f, strings.NewReader("Hello over there.\n")); err != nil {
		log.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(os.Stdout, f); err != nil { // reads ahead
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: Hello over there.
}

func ExampleClient_Shares() {
	srv := smbtest.NewServer(smbtest.Config{Shares: []smbtest.Share{
		{Name: "media", Comment: "films and music"}, {Name: "backup$"},
	}})
	defer srv.Close()

	ctx := context.Background()
	client, err := pagewire.Connect(ctx, srv.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	shares, err := client.Shares(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range shares {
		if s.Kind == pagewire.DiskShare && !s.Hidden {
			fmt.Println(s.Name, "-", s.Comment)
		}
	}
	// Output: media - films and music
}
