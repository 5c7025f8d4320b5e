package pagewire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

// A server's status keeps its code, and is the error that it means to Go.
func ExampleStatusError() {
	fsys, end := example()
	defer end()

	_, err := fsys.ReadFile("none")
	if status, ok := errors.AsType[*pagewire.StatusError](err); ok {
		fmt.Printf("%#x\n", status.Code)
	}
	fmt.Println(errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOENT))
	fmt.Println(err)
	// Output:
	// 0xc0000034
	// true true
	// read none: no such file or directory (STATUS_OBJECT_NAME_NOT_FOUND)
}

func ExampleNegotiateError() {
	srv := smbtest.NewServer(smbtest.Config{Dialects: []string{"2.1"}})
	defer srv.Close()

	_, err := pagewire.Dial(context.Background(), srv.URL, &pagewire.Config{Options: "vers=3"})
	if e, ok := errors.AsType[*pagewire.NegotiateError](err); ok {
		fmt.Println("offered:", e.Offered, "the server has:", e.Server)
	}
	// Output: offered: [3.0 3.0.2 3.1.1] the server has: [2.1 at the newest]
}

func ExampleCredentialsError() {
	_, err := pagewire.Dial(context.Background(), "//nas/media", &pagewire.Config{Options: "credentials=/none"})
	fmt.Println(errors.Is(err, pagewire.ErrAuth), errors.Is(err, fs.ErrNotExist))
	// Output: true true
}

func ExampleSourceError() {
	_, err := pagewire.ParseSource("ftp://nas/media")
	e, ok := errors.AsType[*pagewire.SourceError](err)
	fmt.Println(ok, e.Source)
	// Output: true ftp://nas/media
}

func ExampleOptionError() {
	_, err := pagewire.ParseOptions("guest,username=bob")
	e, ok := errors.AsType[*pagewire.OptionError](err)
	fmt.Println(ok, e.Option, "-", err)
	// Output: true guest - options guest and username contradict each other
}

// Wrong passwords and unknown users are all the same to a server.
func ExampleErrAuth() {
	srv := smbtest.NewServer(smbtest.Config{})
	defer srv.Close()

	_, err := pagewire.Dial(context.Background(), strings.Replace(srv.URL, "user:pass", "user:wrong", 1), nil)
	fmt.Println(errors.Is(err, pagewire.ErrAuth))
	// Output: true
}
