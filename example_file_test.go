package pagewire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pagewire/pagewire"
)

// file returns a file that says something, on a server in this process.
func file(text string) (f *pagewire.File, end func()) {
	fsys, end := example()
	f, err := fsys.Create(context.Background(), "file")
	check(err)
	_, err = f.WriteAt([]byte(text), 0)
	check(err)
	return f, end // which closes the file as well
}

func ExampleFile_Read() {
	f, end := file("some words")
	defer end()

	p := make([]byte, 4)
	for {
		n, err := f.Read(p)
		if err == io.EOF {
			break
		}
		check(err)
		fmt.Printf("%q ", p[:n])
	}
	// Output: "some" " wor" "ds"
}

func ExampleFile_ReadAt() {
	f, end := file("some words")
	defer end()

	p := make([]byte, 5)
	n, err := f.ReadAt(p, 5)
	fmt.Println(string(p[:n]), err)
	n, err = f.ReadAt(p, 8)
	fmt.Println(string(p[:n]), err)
	// Output:
	// words <nil>
	// ds EOF
}

func ExampleFile_ReadAtContext() {
	f, end := file("some words")
	defer end()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := make([]byte, 4)
	n, err := f.ReadAtContext(ctx, p, 0)
	fmt.Println(string(p[:n]), err)
	// Output: some <nil>
}

func ExampleFile_Write() {
	f, end := file("")
	defer end()

	fmt.Fprintf(f, "%d bottles", 99)
	info, err := f.Stat() // which knows what is kept here
	check(err)
	fmt.Println(info.Size())
	// Output: 10
}

func ExampleFile_WriteAt() {
	f, end := file("some words")
	defer end()

	_, err := f.WriteAt([]byte("W"), 5)
	check(err)
	_, err = f.WriteTo(os.Stdout)
	check(err)
	// Output: some Words
}

func ExampleFile_WriteAtContext() {
	f, end := file("")
	defer end()

	ctx, cancel := context.WithCancel(context.Background())
	n, err := f.WriteAtContext(ctx, []byte("in time"), 0)
	fmt.Println(n, err)
	cancel()
	// Output: 7 <nil>
}

func ExampleFile_ReadFrom() {
	f, end := file("")
	defer end()

	n, err := io.Copy(f, strings.NewReader("from anywhere")) // calls ReadFrom
	fmt.Println(n, err)
	// Output: 13 <nil>
}

func ExampleFile_Seek() {
	f, end := file("some words")
	defer end()

	off, err := f.Seek(-5, io.SeekEnd)
	check(err)
	rest, err := io.ReadAll(f)
	fmt.Println(off, string(rest), err)
	// Output: 5 words <nil>
}

func ExampleFile_ReadDir() {
	fsys, end := example()
	defer end()
	for _, name := range []string{"a", "b", "c"} {
		check(fsys.WriteFile(context.Background(), name, nil, 0o666))
	}

	root, err := fsys.Open(".")
	check(err)
	defer root.Close()
	for {
		entries, err := root.(*pagewire.File).ReadDir(2)
		if err == io.EOF {
			break
		}
		check(err)
		fmt.Println(len(entries))
	}
	// Output:
	// 2
	// 1
}

func ExampleFile_Stat() {
	f, end := file("some words")
	defer end()

	info, err := f.Stat()
	check(err)
	fmt.Println(info.Name(), info.Size(), info.IsDir())
	// Output: file 10 false
}

func ExampleFile_Name() {
	f, end := file("")
	defer end()
	fmt.Println(f.Name())
	// Output: file
}

func ExampleFile_Truncate() {
	f, end := file("some words")
	defer end()

	check(f.Truncate(4))
	_, err := f.WriteTo(os.Stdout)
	check(err)
	// Output: some
}

// Sync returns when the server has all that was written, and its disk, too.
func ExampleFile_Sync() {
	f, end := file("some words")
	defer end()

	check(f.Sync())
	_, kept := f.Cached() // what is written next is kept here again
	fmt.Println(kept)
	// Output: true
}

func ExampleFile_Cached() {
	f, end := file("")
	defer end()

	reads, writes := f.Cached()
	fmt.Println("kept as long as nobody else wants the file:", reads, writes)
	// Output: kept as long as nobody else wants the file: true true
}

func ExampleFile_SetDeadline() {
	f, end := file("some words")
	defer end()

	check(f.Sync())
	check(f.SetDeadline(time.Now().Add(-time.Second)))
	err := f.Truncate(0)
	fmt.Println(errors.Is(err, os.ErrDeadlineExceeded))
	check(f.SetDeadline(time.Time{})) // never
	// Output: true
}

func ExampleFile_Progress() {
	f, end := file("some words")
	defer end()

	_, err := f.WriteTo(io.Discard)
	check(err)
	fmt.Println(f.Progress()) // which another goroutine may ask meanwhile
	// Output: 10
}

// Of what could not be written, Close is the last to tell.
func ExampleFile_Close() {
	f, end := file("some words")
	defer end()

	check(f.Close())
	fmt.Println(errors.Is(f.Close(), os.ErrClosed))
	// Output: true
}
