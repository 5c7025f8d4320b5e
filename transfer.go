package pagewire

import (
	"context"
	"io"
	"io/fs"

	"github.com/pagewire/pagewire/internal/remote"
)

// randomAccess is what transfers use of an *os.File, or of a *File: regular ones
// are written and read at any offset by every worker itself.
type randomAccess interface {
	io.Seeker
	Stat() (fs.FileInfo, error)
}

// place returns where a regular local file stands, and how long it is.
func place(f randomAccess) (off, size int64, ok bool) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, 0, false
	}
	off, err = f.Seek(0, io.SeekCurrent)
	return off, info.Size(), err == nil
}

// WriteTo writes the rest of the file to w, with as many requests in flight as
// the connection is worth.
//
// Into a regular file, such as an *os.File that is not opened for appending,
// pieces are written as they come. After an error, what lies beyond the n bytes
// returned is undefined there.
func (f *File) WriteTo(w io.Writer) (n int64, err error) {
	if err := f.usable("read", remote.ForRead); err != nil {
		return 0, err
	}
	ctx := f.deadline.context()
	off := <-f.pos
	defer func() { f.pos <- off + n }()
	size := f.handle.Size() // which only says how many requests make sense
	f.progress.Store(0)
	n, kept, err := f.stream(ctx, off, w)
	if err == nil && kept {
		err = f.endsAt(ctx, off+n, size)
	}
	if err != nil || kept {
		return n, f.fail(ctx, "read", err)
	}
	m, err := f.download(ctx, off+n, size, w)
	return n + m, f.fail(ctx, "read", err)
}

// stream writes the rest of the file to w from the cache, as far as there may be one.
func (f *File) stream(ctx context.Context, off int64, w io.Writer) (n int64, kept bool, err error) {
	_, kept, err = f.handle.Stream(ctx, off, func(p []byte) error {
		m, err := w.Write(p)
		m = min(max(m, 0), len(p))
		n += int64(m)
		f.progress.Store(n)
		switch {
		case err != nil:
			return localError{err}
		case m < len(p):
			return localError{io.ErrShortWrite}
		}
		return nil
	})
	return n, kept, err
}

// download writes the rest of the file to w past the cache.
func (f *File) download(ctx context.Context, off, size int64, w io.Writer) (n int64, err error) {
	p := &pipeline{file: f, dir: remote.Reading, base: off}
	p.start(ctx, size-off)
	to, isRandom := w.(interface {
		randomAccess
		io.WriterAt
	})
	if isRandom {
		if at, _, ok := place(to); ok {
			if _, err := to.WriteAt(nil, at); err == nil { // which fails if it appends
				if n, err = p.intoFile(to, to, at); err == nil {
					err = f.endsAt(ctx, off+n, size)
				}
				return n, err
			}
		}
	}
	p.move = p.inOrder(w)
	if n, err = p.run(); err == nil {
		err = f.endsAt(ctx, off+n, size)
	}
	return n, err
}

// endsAt fails unless end, where the server ended a file that seemed to be size
// long, is as far as it goes. Half a file must not pass for the whole.
func (f *File) endsAt(ctx context.Context, end, size int64) error {
	if end >= size {
		return nil
	}
	attr, err := f.attr(ctx, true)
	if err == nil && attr.Size > end {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (p *pipeline) intoFile(to io.WriterAt, seeker io.Seeker, at int64) (int64, error) {
	p.move = func(w *worker) error {
		n, err := w.fetch()
		if err != nil {
			return err
		}
		if _, err = to.WriteAt(w.piece[:p.endIn(w, n)], at+w.off); err != nil {
			p.abort(localError{err})
		}
		return err
	}
	n, err := p.run()
	if _, seekErr := seeker.Seek(at+n, io.SeekStart); err == nil && seekErr != nil {
		err = localError{seekErr}
	}
	return n, err
}

// inOrder returns a move that writes each piece when all before it is written.
func (p *pipeline) inOrder(to io.Writer) func(*worker) error {
	return func(w *worker) error {
		n, err := w.fetch()
		if err := w.await(); err != nil {
			return err
		}
		if n = p.endIn(w, n); n > 0 {
			m, writeErr := to.Write(w.piece[:n])
			if m < n && writeErr == nil {
				writeErr = io.ErrShortWrite
			}
			w.moved = min(max(m, 0), n)
			if writeErr != nil {
				err = localError{writeErr}
			}
		}
		if err != nil {
			p.abort(err) // nobody else's turn comes
		}
		return err
	}
}

// ReadFrom writes what r has left into the file at its offset, with as many
// requests in flight as the connection is worth. A regular file, such as an
// *os.File, is read by all of them at once; of anything else, a request's worth
// is gathered before it is sent.
//
// When it returns, nothing is left to be sent. After an error, what lies beyond
// the n bytes returned is undefined.
func (f *File) ReadFrom(r io.Reader) (n int64, err error) {
	if err := f.usable("write", remote.ForWrite); err != nil {
		return 0, err
	}
	ctx := f.deadline.context()
	f.progress.Store(0)
	if f.appends {
		return io.CopyBuffer(struct{ io.Writer }{f}, r, make([]byte, 1<<20))
	}
	off := <-f.pos
	defer func() { f.pos <- off + n }()
	p := &pipeline{file: f, dir: remote.Writing, base: off}
	from, isRandom := r.(interface {
		randomAccess
		io.ReaderAt
	})
	if isRandom {
		if at, size, ok := place(from); ok {
			p.start(ctx, size-at)
			n, err = p.outOfFile(from, from, at)
			return n, f.fail(ctx, "write", err)
		}
	}
	p.from = localReader{r}
	p.start(ctx, 0)
	p.move = func(w *worker) error { return w.store(w.n) }
	n, err = p.run()
	return n, f.fail(ctx, "write", err)
}

func (p *pipeline) outOfFile(from io.ReaderAt, seeker io.Seeker, at int64) (int64, error) {
	p.move = func(w *worker) error {
		n, err := from.ReadAt(w.piece, at+w.off)
		switch {
		case err == io.EOF:
			p.endAt(w.off + int64(n))
		case err != nil:
			return localError{err}
		}
		return w.store(n)
	}
	n, err := p.run()
	if _, seekErr := seeker.Seek(at+n, io.SeekStart); err == nil && seekErr != nil {
		err = localError{seekErr}
	}
	return n, err
}

// localError keeps an error of the other side of a transfer from being taken for
// one of the file.
type localError struct{ error }

type localReader struct{ io.Reader }

func (r localReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = localError{err}
	}
	return n, err
}

// Progress returns how many bytes of the running, or else of the last, WriteTo or
// ReadFrom have come through without a gap.
func (f *File) Progress() int64 { return f.progress.Load() }
