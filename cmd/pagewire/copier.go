package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire"
)

const (
	// largeFile is what fills any wire by itself.
	largeFile = 32 << 20
	// smallAtATime and walkers bound what is in flight for files and for folders.
	smallAtATime = 16
	walkers      = 8
	// maxPath is where a path ends, as for Linux. Without it, the copy of a folder
	// into itself under another name of its server would not.
	maxPath = 4096
	// waiting is how many files may be found before they are copied.
	waiting = 4096
)

// job is a file or a symbolic link to copy.
type job struct {
	src, dst tree
	from, to string
	info     fs.FileInfo // of the source
	twin     string      // see twins
}

// folder is a folder to copy.
type folder struct {
	src, dst tree
	from, to string
	modTime  time.Time
	twin     string // see twins
}

// twins finds names of one folder that differ in case only. Most servers take
// them for one, and what was copied first would be lost. So the later one waits
// until the other is there, and is copied if the server then sees two.
type twins map[string]string

// of returns the twin of name, the last one of a path, or "".
func (t twins) of(name string) string {
	key := strings.ToLower(name)
	first, ok := t[key]
	if !ok {
		t[key] = name
	}
	if first == name {
		return ""
	}
	return first
}

// checkTwin fails if the server takes name for its twin.
func checkTwin(ctx context.Context, dst tree, name, twin string) error {
	if twin == "" {
		return nil
	}
	a, errA := dst.lstat(ctx, name)
	b, errB := dst.lstat(ctx, twin)
	if errA != nil || errB != nil {
		return nil // there are not two, and other errors come up again
	}
	x, okX := a.Sys().(*pagewire.Attr)
	y, okY := b.Sys().(*pagewire.Attr)
	if os.SameFile(a, b) || okX && okY && x.ID == y.ID {
		return fmt.Errorf("to its server, the name is that of %s, which was copied", printable(dst.place(twin).name))
	}
	return nil
}

// copier copies trees. Folders are walked by a few goroutines, each of which
// makes a folder in the target before it hands on the files in it. Small files
// are copied by many others, large ones by one, so that neither waits for the
// other; with -j, all share that many. copy joins them all.
type copier struct {
	*run
	copyOptions
	events bool // are written, as JSON
	meter  *meter
	stop   context.CancelCauseFunc // ends the whole copy; set by all

	smalls, larges chan job
	done, failed   atomic.Int64

	mu       sync.Mutex // guards what follows
	first    error      // of those that failed
	over     bool       // what fails now, fails because of that
	later    []job      // see enqueue
	rest     []folder   // with a twin
	finished []folder   // whose times are set at the end
	locals   []localTree
}

func newCopier(r *run, o copyOptions) *copier {
	return &copier{run: r, copyOptions: o, events: r.json, meter: newMeter(time.Now)}
}

// close closes the folders of this machine; shares stay open until the run ends.
func (c *copier) close() {
	for _, t := range c.locals {
		t.root.Close()
	}
}

func (c *copier) local(dir string) (localTree, error) {
	t, err := openLocalTree(dir)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.locals = append(c.locals, t)
	}
	return t, err
}

func (c *copier) remote(ctx context.Context, p place) (remoteTree, error) {
	f, err := c.open(ctx, p)
	p.path, p.source.Path = ".", "."
	p.name = p.source.String()
	return remoteTree{f, p}, err
}

// all copies every source to its place in to. What fails is reported as it does.
func (c *copier) all(ctx context.Context, from []place, to target) error {
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	c.smalls = make(chan job, waiting)
	c.larges = make(chan job, waiting)
	var workers sync.WaitGroup
	work := func(jobs <-chan job, n int) {
		for range n {
			workers.Go(func() {
				for j := range jobs {
					c.job(ctx, j)
				}
			})
		}
	}
	if c.parallel > 0 {
		close(c.larges)
		c.larges = c.smalls
		work(c.smalls, c.parallel)
	} else {
		work(c.smalls, smallAtATime)
		work(c.larges, 1)
	}

	var folders []folder
	taken, same := map[string]bool{}, twins{}
	for _, p := range from {
		name := targetName(p, to)
		if to.isDir && name != to.name && taken[name] {
			c.fail(p.error("cp", errors.New("another source has that name already")))
			continue
		}
		taken[name] = true
		f, ok, err := c.operand(ctx, p, to, same)
		switch {
		case err != nil:
			c.fail(p.bareError("cp", err))
		case ok && f.twin != "":
			c.rest = append(c.rest, f)
		case ok:
			folders = append(folders, f)
		}
	}
	for c.walk(ctx, folders); len(c.rest) > 0 && ctx.Err() == nil; c.walk(ctx, folders) {
		folders, c.rest = c.rest, nil
	}
	c.meter.walked.Store(true)
	close(c.smalls)
	if c.parallel == 0 {
		close(c.larges)
	}
	workers.Wait()

	later := make(chan job, len(c.later))
	for _, j := range c.later {
		later <- j
	}
	close(later)
	work(later, max(c.parallel, 1))
	workers.Wait()
	c.finishFolders(ctx)
	return c.result(ctx)
}

// result is what cp ends with.
func (c *copier) result(ctx context.Context) error {
	done, failed := c.done.Load(), c.failed.Load()
	switch {
	case failed == 0 && ctx.Err() != nil:
		return context.Cause(ctx)
	case failed == 0:
		return nil
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return reportedError{context.Canceled}
	case done > 0:
		return reportedError{&partialError{failed, done + failed}}
	}
	return reportedError{c.first}
}

// fail reports err and counts it. What would befall every other file as well
// ends the copy.
func (c *copier) fail(err error) {
	c.failed.Add(1)
	c.mu.Lock()
	if c.first == nil {
		c.first = err
	}
	over := c.over
	c.over = over || hopeless(err)
	c.mu.Unlock()
	if over {
		return
	}
	if c.events {
		c.event(errorEvent{"error", err.Error()})
	}
	c.report(err)
	if hopeless(err) {
		c.stop(err)
	}
}

// hopeless reports whether after err no other file can be copied either.
func hopeless(err error) bool {
	for _, target := range []error{
		context.Canceled, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS,
		pagewire.ErrDisconnected, pagewire.ErrSignature, pagewire.ErrAuth,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// operand starts the copy of a source: a folder is returned, a file enqueued.
func (c *copier) operand(ctx context.Context, from place, to target, same twins) (f folder, isFolder bool, err error) {
	src, name, info, err := c.source(ctx, from)
	if err != nil {
		return f, false, err
	}
	if to.direct != "" {
		return f, false, c.direct(ctx, src, name, info, to.direct)
	}
	dst := targetName(from, to)
	switch {
	case info.IsDir() && !c.recursive:
		return f, false, errors.New("is a folder, which needs -r")
	case intoItself(from, to.tree, dst) && (info.IsDir() || strings.EqualFold(from.path, dst)):
		return f, false, errors.New("would be copied into itself")
	case info.IsDir():
		return folder{src, to.tree, name, dst, info.ModTime(), same.of(dst)}, true, nil
	}
	var old fs.FileInfo
	if c.update {
		if old, err = to.tree.lstat(ctx, dst); errors.Is(err, fs.ErrNotExist) {
			old, err = nil, nil
		}
		if err != nil {
			return f, false, err
		}
	}
	c.enqueue(ctx, job{src: src, dst: to.tree, from: name, to: dst, info: info, twin: same.of(dst)}, old)
	return f, false, nil
}

// enqueue hands j to those who copy files of its size, unless it is to stay
// because old, what is there, is as new.
func (c *copier) enqueue(ctx context.Context, j job, old fs.FileInfo) {
	if c.update && old != nil && !kept(j.info.ModTime()).After(kept(old.ModTime())) {
		return
	}
	size := j.info.Size()
	if !j.info.Mode().IsRegular() {
		size = 0
	}
	c.meter.found(size)
	// A file may have the name that another one has while it is on its way, if
	// both come from one folder. It waits until the other is there.
	if j.twin != "" || strings.HasSuffix(j.to, partialSuffix) || strings.HasSuffix(j.to, stateSuffix) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.later = append(c.later, j)
		return
	}
	jobs := c.smalls
	if size >= largeFile {
		jobs = c.larges
	}
	select {
	case jobs <- j:
	case <-ctx.Done():
	}
}

// kept is what a server keeps of a time. See [MS-DTYP] 2.3.3.
func kept(t time.Time) time.Time { return t.Truncate(100 * time.Nanosecond) }

// walk copies folders, those in them, and enqueues their files. Those found last
// go first, which keeps few of them waiting.
func (c *copier) walk(ctx context.Context, folders []folder) {
	var mu sync.Mutex
	more := sync.NewCond(&mu)
	busy := 0 // guarded by mu, as folders
	push := func(f folder) {
		mu.Lock()
		defer mu.Unlock()
		folders = append(folders, f)
		more.Signal()
	}
	next := func() (f folder, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for len(folders) == 0 && busy > 0 {
			more.Wait()
		}
		if len(folders) == 0 || ctx.Err() != nil {
			more.Broadcast()
			return f, false
		}
		f, folders = folders[len(folders)-1], folders[:len(folders)-1]
		busy++
		return f, true
	}
	finish := func() {
		mu.Lock()
		defer mu.Unlock()
		busy--
		more.Broadcast()
	}
	var wg sync.WaitGroup
	for range walkers {
		wg.Go(func() {
			for {
				f, ok := next()
				if !ok {
					return
				}
				if err := c.folder(ctx, f, push); err != nil {
					c.fail(blame(job{src: f.src, dst: f.dst, from: f.from, to: f.to}, err))
				}
				finish()
			}
		})
	}
	wg.Wait()
}

// folder makes the copy of f and hands on what is in it.
func (c *copier) folder(ctx context.Context, f folder, push func(folder)) error {
	if len(f.to) > maxPath {
		return syscall.ENAMETOOLONG
	}
	old, err := c.makeFolder(ctx, f)
	if err != nil {
		return ofTarget(err)
	}
	if c.preserve {
		c.mu.Lock()
		c.finished = append(c.finished, f)
		c.mu.Unlock()
	}
	same := twins{}
	for e, err := range f.src.entries(ctx, f.from) {
		if err != nil {
			return err
		}
		if err := checkName(e.Name()); err != nil {
			c.fail(f.src.place(f.from).error("cp", fmt.Errorf("%q: %w", e.Name(), err)))
			continue
		}
		from, to := path.Join(f.from, e.Name()), path.Join(f.to, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
			c.fail(f.src.place(from).bareError("cp", err))
		case info.IsDir():
			sub := folder{f.src, f.dst, from, to, info.ModTime(), same.of(to)}
			if sub.twin == "" {
				push(sub)
				break
			}
			c.mu.Lock()
			c.rest = append(c.rest, sub)
			c.mu.Unlock()
		case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
			c.enqueue(ctx, job{src: f.src, dst: f.dst, from: from, to: to, info: info, twin: same.of(to)}, old[e.Name()])
		default:
			c.fail(f.src.place(from).error("cp", errors.New("neither file nor folder, left out")))
		}
	}
	return nil
}

// makeFolder makes the copy of f. If it is there and -u has to know, it returns
// what is in it.
func (c *copier) makeFolder(ctx context.Context, f folder) (old map[string]fs.FileInfo, err error) {
	if f.to != "." {
		err = f.dst.mkdir(ctx, f.to)
		if err == nil {
			return nil, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		// A link to a folder is not one: it may lead anywhere.
		info, err := f.dst.lstat(ctx, f.to)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is in the way, and no folder", printable(f.dst.place(f.to).name))
		}
		if err := checkTwin(ctx, f.dst, f.to, f.twin); err != nil {
			return nil, err
		}
	}
	if !c.update {
		return nil, nil
	}
	old = map[string]fs.FileInfo{}
	for e, err := range f.dst.entries(ctx, f.to) {
		if err != nil {
			return nil, err
		}
		if info, err := e.Info(); err == nil {
			old[e.Name()] = info
		}
	}
	return old, nil
}

// finishFolders gives folders their times, which every file in them has moved.
func (c *copier) finishFolders(ctx context.Context) {
	for _, f := range c.finished {
		if ctx.Err() != nil {
			return
		}
		if err := f.dst.chtimes(ctx, f.to, f.modTime); err != nil {
			c.fail(f.dst.place(f.to).bareError("cp", err))
		}
	}
}
