package vfs

import (
	"context"
	"errors"
	"io"

	"github.com/pagewire/pagewire/internal/remote"
)

// ReadFile reads a file from its start, in one trip: see remote.Volume. If it is being
// written here, it is read where its bytes are.
func (f *FS) ReadFile(ctx context.Context, p string, b []byte) (n int, attr remote.Attr, err error) {
	f.mu.Lock()
	q := f.askLocked(f.wasLocked(p))
	written := f.writerLocked(p) != nil
	f.mu.Unlock()
	if written {
		return f.readOpen(ctx, p, b)
	}

	n, attr, err = f.vol.ReadFile(ctx, at(p), b)

	f.mu.Lock()
	if err != nil {
		defer f.mu.Unlock()
		f.missedLocked(p, err, q)
		return 0, remote.Attr{}, err
	}
	in := f.foundLocked(p, attr, q)
	attr = f.viewLocked(in, attr)
	written = in.writer() != nil // by another name
	f.mu.Unlock()
	if written {
		return f.readOpen(ctx, p, b)
	}
	return n, attr, nil
}

func (f *FS) readOpen(ctx context.Context, p string, b []byte) (n int, attr remote.Attr, err error) {
	h, err := f.Open(ctx, p, remote.How{Access: remote.ForRead})
	if err != nil {
		return 0, remote.Attr{}, err
	}
	if n, err = h.ReadAt(ctx, b, 0); err == nil || errors.Is(err, io.EOF) {
		attr, err = h.Attr(ctx, false)
	}
	return n, attr, errors.Join(err, h.Close(ctx))
}

// WriteFile writes b at the start of a file, in one trip: see remote.Volume. If it is
// being written here, it is written where its bytes are.
func (f *FS) WriteFile(ctx context.Context, p string, how remote.How, b []byte) (remote.Attr, error) {
	f.mu.Lock()
	q := f.askLocked(f.wasLocked(p))
	written := how.Create != remote.New && f.writerLocked(p) != nil
	f.mu.Unlock()
	if written {
		return f.writeOpen(ctx, p, how, b)
	}

	attr, err := f.vol.WriteFile(ctx, at(p), how, b)
	if err != nil {
		f.failed(p, how.Create, err, q)
		return remote.Attr{}, err
	}

	f.mu.Lock()
	in := f.meetLocked(attr, f.wasLocked(p))
	if in.file != nil {
		in.file.Forget()
	}
	f.setLocked(in, attr, q)
	if makes(how.Create) {
		f.bindLocked(p, in, q)
	} else {
		f.rememberLocked(p, in, q)
	}
	attr = f.viewLocked(in, attr)
	written = in.writer() != nil // by another name
	f.mu.Unlock()
	if written {
		return f.writeOpen(ctx, p, how, b)
	}
	return attr, nil
}

func (f *FS) writeOpen(ctx context.Context, p string, how remote.How, b []byte) (attr remote.Attr, err error) {
	how.Access |= remote.ForWrite
	h, err := f.Open(ctx, p, how)
	if err != nil {
		return remote.Attr{}, err
	}
	if _, err = h.WriteAt(ctx, b, 0); err == nil {
		attr, err = h.Attr(ctx, false)
	}
	return attr, errors.Join(err, h.Close(ctx))
}
