package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/pagewire/pagewire"
)

// errDiffers means that a copy is not what its source is.
var errDiffers = errors.New("the copy differs from its source")

// compare reads the source of j and the file name of its target again, and
// fails unless they are the same.
func compare(ctx context.Context, j job, name string) error {
	if j.info.Size() <= int64(smallFile(j.src)) {
		err := compareSmall(ctx, j, name)
		if !errors.Is(err, syscall.EFBIG) {
			return err
		}
	}
	a, err := j.src.reopen(ctx, j.from)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := j.dst.reopen(ctx, name)
	if err != nil {
		return ofTarget(err)
	}
	defer b.Close()
	defer bind(ctx, a)()
	defer bind(ctx, b)()
	err = compareStreams(a, b)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// compareSmall is compare for two files of which each takes one request.
func compareSmall(ctx context.Context, j job, name string) error {
	want, err := j.src.readFile(ctx, j.from, smallFile(j.src))
	if err != nil {
		return err
	}
	got, err := j.dst.readFile(ctx, name, smallFile(j.src))
	if err != nil {
		return ofTarget(err)
	}
	if !bytes.Equal(got, want) {
		return errDiffers
	}
	return nil
}

// compareStreams reads a and b to their ends, remote ones many requests ahead.
func compareStreams(a, b io.Reader) error {
	r, wait := ahead(b)
	c := &comparer{other: r, buf: make([]byte, 1<<20)}
	var err error
	if f, ok := a.(*pagewire.File); ok {
		_, err = f.WriteTo(c)
	} else {
		_, err = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{a}, make([]byte, 1<<20))
	}
	if err == nil {
		switch n, more := io.ReadFull(r, c.buf[:1]); {
		case n > 0:
			err = fmt.Errorf("%w: it goes on after %d bytes", errDiffers, c.at)
		case more != io.EOF:
			err = more
		}
	}
	wait(err)
	return err
}

// ahead turns a remote file into a reader that reads ahead. wait ends that.
func ahead(b io.Reader) (r io.Reader, wait func(error)) {
	f, ok := b.(*pagewire.File)
	if !ok {
		return b, func(error) {}
	}
	pr, pw := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, err := f.WriteTo(pw)
		pw.CloseWithError(err)
	}()
	return pr, func(err error) {
		pr.CloseWithError(err)
		<-read
	}
}

// comparer fails a write of anything but what other has next.
type comparer struct {
	other io.Reader
	buf   []byte
	at    int64
}

func (c *comparer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		want := p[n:min(len(p), n+len(c.buf))]
		got := c.buf[:len(want)]
		k, err := io.ReadFull(c.other, got)
		if i := mismatch(got[:k], want[:k]); i < k {
			return n + i, fmt.Errorf("%w at byte %d", errDiffers, c.at+int64(i))
		}
		n += k
		c.at += int64(k)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return n, fmt.Errorf("%w: it ends after %d bytes", errDiffers, c.at)
		}
		if err != nil {
			return n, ofTarget(err)
		}
	}
	return n, nil
}

// mismatch returns the index of the first byte in which a and b, equally long,
// differ.
func mismatch(a, b []byte) int {
	if bytes.Equal(a, b) {
		return len(a)
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
