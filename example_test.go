package pagewire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"strings"
	"time"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

// example returns a share that holds nothing, of a server in this process.
func example() (fsys *pagewire.FS, end func()) {
	srv := smbtest.NewServer(smbtest.Config{})
	fsys, err := pagewire.Dial(context.Background(), srv.URL, nil)
	check(err)
	return fsys, func() {
		check(fsys.Close())
		srv.Close()
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

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

// A server with a name and a password for its URL is not needed where Credentials says
// who logs on, and DialContext how the server is reached.
func ExampleDial_config() {
	srv := smbtest.NewUnstarted(smbtest.Config{Users: map[string]string{"alice": "wonder"}})
	defer srv.Close()

	fsys, err := pagewire.Dial(context.Background(), "//nas/share", &pagewire.Config{
		Options:     "vers=3.1.1,seal,cachesize=64M",
		DialContext: srv.Dial,
		Credentials: func(context.Context) (pagewire.Credentials, error) {
			return pagewire.Credentials{User: "alice", Password: pagewire.NewSecret("wonder")}, nil
		},
	})
	check(err)
	defer fsys.Close()
	fmt.Println(fsys.Stats().Cipher)
	// Output: AES-128-GCM
}

func ExampleConnect() {
	srv := smbtest.NewServer(smbtest.Config{Shares: []smbtest.Share{{Name: "media"}, {Name: "backup"}}})
	defer srv.Close()

	ctx := context.Background()
	client, err := pagewire.Connect(ctx, srv.URL, nil)
	check(err)
	defer client.Close()

	for _, name := range []string{"media", "backup"} {
		fsys, err := client.Share(ctx, name)
		check(err)
		check(fsys.WriteFile(ctx, "was here", nil, 0o666))
		check(fsys.Close())
	}
	fmt.Println(srv.Stats().Connections, "connection")
	// Output: 1 connection
}

func ExampleClient_Share() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	ctx := context.Background()
	client, err := pagewire.Connect(ctx, srv.URL, nil)
	check(err)
	defer client.Close()

	_, err = client.Share(ctx, "nope")
	fmt.Println(errors.Is(err, fs.ErrNotExist), err)
	// Output: true mount //127.0.0.1/nope: no such share (STATUS_BAD_NETWORK_NAME)
}

func ExampleClient_Ping() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	ctx := context.Background()
	client, err := pagewire.Connect(ctx, srv.URL, nil)
	check(err)
	defer client.Close()

	check(client.Ping(ctx))
	fmt.Println("alive, and nearer than a second:", client.Stats().RTT < time.Second)
	// Output: alive, and nearer than a second: true
}

func ExampleClient_Stats() {
	srv := smbtest.NewServer(smbtest.Config{Dialects: []string{"2.1"}})
	defer srv.Close()

	client, err := pagewire.Connect(context.Background(), srv.URL, nil)
	check(err)
	defer client.Close()

	s := client.Stats()
	fmt.Printf("SMB %s, %d MiB a read\n", s.Dialect, s.MaxRead>>20)
	// Output: SMB 2.1, 8 MiB a read
}

// Shutdown writes what is dirty, for as long as its context allows.
func ExampleClient_Shutdown() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	ctx := context.Background()
	client, err := pagewire.Connect(ctx, srv.URL, nil)
	check(err)
	fsys, err := client.Share(ctx, "share")
	check(err)
	f, err := fsys.Create(ctx, "notes")
	check(err)
	fmt.Fprint(f, "kept here until now")

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	check(client.Shutdown(ctx))
	data, err := srv.ReadFile("notes")
	fmt.Println(string(data), err)
	// Output: kept here until now <nil>
}

func ExampleClient_Close() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	client, err := pagewire.Connect(context.Background(), srv.URL, nil)
	check(err)
	check(client.Close())
	fmt.Println(client.Ping(context.Background()) != nil)
	// Output: true
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
