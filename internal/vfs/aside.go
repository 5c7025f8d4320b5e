package vfs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// To SMB, the name of an open file stays until its last handle is closed, and cannot
// be given to another one. Programs expect neither. So a file that is open here and is
// to lose its name is first given one that nobody sees, and removed under that. The
// server forgets it with the last handle.

const (
	asidePrefix = ".pagewire"
	asideDigits = 16
)

// isAside reports whether a name is one of those.
func isAside(name string) bool {
	digits, ok := strings.CutPrefix(name, asidePrefix)
	if !ok || len(digits) != asideDigits {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// holdsName reports whether the server would mind if what a path leads to lost that
// name, as it is open here.
func (f *FS) holdsName(ctx context.Context, p string) bool {
	if !f.cfg.Silly {
		return false
	}
	f.mu.Lock()
	open := len(f.paths[f.key(p)]) > 0
	f.mu.Unlock()
	if !open {
		return false
	}
	attr, err := f.GetAttr(ctx, p) // it may be another object by now
	f.mu.Lock()
	defer f.mu.Unlock()
	for h := range f.paths[f.key(p)] {
		if err == nil && h.inode.number == attr.ID {
			return true
		}
	}
	return false
}

// putAside gives a file a name that nobody sees, in the same folder.
func (f *FS) putAside(ctx context.Context, p string) (aside string, err error) {
	var b [asideDigits / 2]byte
	rand.Read(b[:])
	aside = join(parent(p), asidePrefix+hex.EncodeToString(b[:]))
	err = f.rename(ctx, p, aside, false)
	if err != nil && ctx.Err() != nil { // it may have come about
		ctx, cancel := grace(ctx)
		defer cancel()
		f.rename(ctx, aside, p, false)
	}
	return aside, err
}

// putBack undoes putAside.
func (f *FS) putBack(ctx context.Context, aside, p string) {
	ctx, cancel := grace(ctx)
	defer cancel()
	if err := f.rename(ctx, aside, p, false); err != nil {
		f.cfg.Logger.Warn("a file could not be given its name back", "name", p, "is", aside, "err", err)
	}
}

// removeAside removes a file that was replaced.
func (f *FS) removeAside(ctx context.Context, aside string) {
	ctx, cancel := grace(ctx)
	defer cancel()
	if err := f.remove(ctx, aside, false); err != nil {
		f.cfg.Logger.Warn("a file that was replaced could not be removed", "name", aside, "err", err)
	}
}
