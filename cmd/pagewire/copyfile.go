package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/pagewire/pagewire"
)

// smallFile is how large a file from src may be to travel in one request, and so
// in one round trip, by readFile and writeFile: what one credit pays for to read,
// any server's largest request to write.
func smallFile(src tree) int {
	if _, ok := src.(remoteTree); ok {
		return 64 << 10
	}
	return 1 << 20
}

// job copies one file or symbolic link, and counts and reports how that went.
func (c *copier) job(ctx context.Context, j job) {
	if ctx.Err() != nil {
		return
	}
	err := checkTwin(ctx, j.dst, j.to, j.twin)
	switch {
	case err != nil:
	case j.info.Mode()&fs.ModeSymlink != 0:
		t := c.meter.begin(j.to, 0, 0, nothing)
		err = c.symlink(ctx, j)
		c.meter.end(t, 0, err)
	case j.info.Mode().IsRegular() && j.info.Size() <= int64(smallFile(j.src)):
		err = c.small(ctx, j)
		if errors.Is(err, errGrown) {
			err = c.stream(ctx, j)
		}
	default:
		err = c.stream(ctx, j)
	}
	if err != nil {
		c.fail(blame(j, err))
		return
	}
	c.done.Add(1)
	if c.events {
		c.event(fileEvent{"file", j.src.place(j.from).name, j.dst.place(j.to).name, j.info.Size(), c.verify})
	}
}

// targetError is an error of the target, where one of the source might be too.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// ofTarget marks err as an error of the target.
func ofTarget(err error) error {
	if err == nil {
		return nil
	}
	return targetError{err}
}

// blame names the end of j that err is about.
func blame(j job, err error) error {
	at := j.src.place(j.from)
	if e, ok := err.(targetError); ok {
		at, err = j.dst.place(j.to), e.error
	}
	return at.bareError("cp", err)
}

func nothing() int64 { return 0 }

// symlink copies a symbolic link as one.
func (c *copier) symlink(ctx context.Context, j job) error {
	target, err := j.src.readLink(ctx, j.from)
	if err != nil {
		return err
	}
	err = j.dst.symlink(ctx, target, j.to)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := j.dst.lstat(ctx, j.to); statErr == nil && info.IsDir() {
			return ofTarget(err)
		}
		if err = j.dst.remove(ctx, j.to); err == nil {
			err = j.dst.symlink(ctx, target, j.to)
		}
	}
	return ofTarget(err)
}

// errGrown means that a file is small no more.
var errGrown = errors.New("the file has grown")

// small copies a file in one round trip to each server.
func (c *copier) small(ctx context.Context, j job) error {
	t := c.meter.begin(j.to, j.info.Size(), 0, nothing)
	data, err := j.src.readFile(ctx, j.from, smallFile(j.src))
	if errors.Is(err, syscall.EFBIG) {
		err = errGrown
	}
	if err == nil {
		err = ofTarget(j.dst.writeFile(ctx, j.to, data))
	}
	if err == nil && c.verify {
		err = compare(ctx, j, j.to)
	}
	if err == nil && c.preserve {
		err = ofTarget(j.dst.chtimes(ctx, j.to, j.info.ModTime()))
	}
	if err == nil {
		err = c.keepReadOnly(ctx, j)
	}
	c.meter.end(t, int64(len(data)), err)
	return err
}

// stream copies a file in as many requests as it takes, by way of a partial.
func (c *copier) stream(ctx context.Context, j job) error {
	if c.verify && !j.info.Mode().IsRegular() {
		return errors.New("cannot be read again, as --verify would")
	}
	have, stated, err := findPartial(ctx, j)
	if err != nil {
		return ofTarget(err)
	}
	if stated && have == 0 { // it is not of the partial to come, which might be left without one of its own
		if err := j.dst.remove(ctx, stateOf(j.to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ofTarget(err)
		}
		stated = false
	}
	src, err := j.src.open(ctx, j.from)
	if err != nil {
		return err
	}
	defer src.Close()
	if _, err := src.Seek(have, io.SeekStart); have > 0 && err != nil {
		return err
	}
	dst, err := openPartial(ctx, j, have)
	if err != nil {
		return ofTarget(err)
	}
	progress := progressOf(dst, src)
	t := c.meter.begin(j.to, j.info.Size(), have, progress)
	stopSaving := keepSaving(ctx, j, dst, progress)
	n, err := pump(ctx, dst, src)
	stated = stopSaving() || stated
	if err == nil && have > 0 {
		err = ofTarget(dst.Truncate(have + n)) // an old partial may be longer
	}
	durable := false
	if err != nil { // what is good is for the next run to go on from
		dst.SetDeadline(time.Now().Add(grace))
		durable = dst.Sync() == nil
	}
	if closeErr := dst.Close(); err == nil {
		err = ofTarget(closeErr)
	}
	if err == nil && c.verify {
		err = compare(ctx, j, partialOf(j.to))
	}
	if err == nil {
		err = c.finish(ctx, j, stated)
	} else {
		giveUp(ctx, j, have+n, durable, err)
	}
	c.meter.end(t, n, err)
	return err
}

// finish gives a complete partial its name.
func (c *copier) finish(ctx context.Context, j job, stated bool) error {
	partial := partialOf(j.to)
	if c.preserve {
		if err := j.dst.chtimes(ctx, partial, j.info.ModTime()); err != nil {
			return ofTarget(err)
		}
	}
	if stated {
		if err := j.dst.remove(ctx, stateOf(j.to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ofTarget(err)
		}
	}
	if err := j.dst.rename(ctx, partial, j.to); err != nil {
		return ofTarget(err)
	}
	return c.keepReadOnly(ctx, j)
}

// giveUp leaves a partial of done good bytes for the next run, unless there is
// none, or no room for it. That takes a moment even if ctx has ended.
func giveUp(ctx context.Context, j job, done int64, durable bool, because error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	useless := done == 0 || !j.info.Mode().IsRegular() ||
		errors.Is(because, errDiffers) || errors.Is(because, syscall.ENOSPC) || errors.Is(because, syscall.EDQUOT)
	if !useless {
		if durable {
			newState(j).save(ctx, j, done)
		} // else, or if this fails, what was saved last still holds
		return
	}
	j.dst.remove(ctx, stateOf(j.to))
	j.dst.remove(ctx, partialOf(j.to))
}

// keepReadOnly keeps the read-only bit. It comes last: what is read-only refuses
// everything else.
func (c *copier) keepReadOnly(ctx context.Context, j job) error {
	if !c.preserve || j.info.Mode()&0o222 != 0 {
		return nil
	}
	return ofTarget(j.dst.chmod(ctx, j.to, 0o444))
}

// direct writes a source into what is no regular file, and so has no partial.
func (c *copier) direct(ctx context.Context, src tree, name string, info fs.FileInfo, target string) error {
	if info.IsDir() {
		return errors.New("a folder cannot be copied into " + printable(target))
	}
	c.meter.found(info.Size())
	from, err := src.open(ctx, name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return place{name: target}.bareError("cp", err)
	}
	t := c.meter.begin(src.place(name).name, info.Size(), 0, progressOf(to, from))
	n, err := pump(ctx, to, from)
	if closeErr := to.Close(); err == nil {
		err = ofTarget(closeErr)
	}
	c.meter.end(t, n, err)
	if e, ok := err.(targetError); ok {
		return place{name: target}.bareError("cp", e.error)
	}
	if err == nil {
		c.done.Add(1)
	}
	return err
}

// progressOf says how far pump is.
func progressOf(dst, src stream) func() int64 {
	if f, ok := dst.(*pagewire.File); ok {
		return f.Progress
	}
	if f, ok := src.(*pagewire.File); ok {
		return f.Progress
	}
	return nothing
}

// pump copies from src's offset to its end, many requests at a time at either
// end that is remote. Of the bytes that dst then has, the first n are good.
func pump(ctx context.Context, dst, src stream) (n int64, err error) {
	defer bind(ctx, dst)()
	defer bind(ctx, src)()
	from, fromRemote := src.(*pagewire.File)
	to, toRemote := dst.(*pagewire.File)
	switch {
	case fromRemote && toRemote:
		n, err = relay(to, from)
	case fromRemote:
		if n, err = from.WriteTo(dst); !isOf(err, from) {
			err = ofTarget(err)
		}
	case toRemote:
		if n, err = to.ReadFrom(src); isOf(err, to) {
			err = ofTarget(err)
		}
	default:
		n, err = io.Copy(dst, src)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// isOf reports whether a transfer failed at f rather than at its other end.
func isOf(err error, f *pagewire.File) bool {
	var pathErr *fs.PathError
	return errors.As(err, &pathErr) && pathErr.Path == f.Name()
}

// relay copies from server to server: one end reads ahead, the other writes behind.
func relay(dst, src *pagewire.File) (n int64, err error) {
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := src.WriteTo(w)
		w.CloseWithError(err)
		read <- err
	}()
	n, err = dst.ReadFrom(r)
	r.CloseWithError(errRelay)
	if readErr := <-read; readErr != nil && !errors.Is(readErr, errRelay) {
		return n, readErr
	}
	return n, ofTarget(err)
}

// errRelay ends the reading half of a relay once the writing half has ended.
var errRelay = errors.New("nobody writes what is read")
