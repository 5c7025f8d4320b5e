package vfs

import (
	"context"
	"strings"

	"github.com/pagewire/pagewire/internal/remote"
)

// Make makes a folder or a symbolic link.
func (f *FS) Make(ctx context.Context, p string, m remote.Make) (remote.Attr, error) {
	q := f.ask()
	attr, err := f.vol.Make(ctx, at(p), m)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.changeLocked(p) // something may be there, or is
		return remote.Attr{}, err
	}
	in := f.meetLocked(attr, nil)
	f.learnAtLocked(p, in, attr, q)
	f.bindLocked(p, in, q)
	return f.viewLocked(in, attr), nil
}

// Link gives a file a second name.
func (f *FS) Link(ctx context.Context, from, to string) error {
	err := f.vol.Link(ctx, at(from), at(to))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.changeLocked(to)
		return err
	}
	in := f.wasLocked(from)
	f.changeLocked(from)
	f.cameLocked(to, in)
	return nil
}

// cameLocked notes that a change made here let a path lead to what another one did.
// That is not as sure as if the server had said so, but a number lasts.
func (f *FS) cameLocked(p string, in *inode) {
	f.changeLocked(p)
	if in != nil {
		f.touchLocked(in)
		f.putLocked(&name{key: f.key(p), path: p, inode: in})
	}
}

// Rename moves what from leads to, with all that is below it, to to. If that is open
// here and to be replaced, it is put aside first, where its handles go on with it.
func (f *FS) Rename(ctx context.Context, from, to string, replace bool) error {
	aside := ""
	if replace && f.key(from) != f.key(to) && !f.sameFile(from, to) && f.holdsName(ctx, to) {
		attr, err := f.GetAttr(ctx, from)
		switch {
		case err != nil: // and so nothing need be put back
			return err
		case attr.Kind != remote.Dir:
			aside, _ = f.putAside(ctx, to) // or the server has to see to it
		}
	}
	err := f.rename(ctx, from, to, replace)
	switch {
	case aside == "":
	case err != nil:
		f.putBack(ctx, aside, to)
	default:
		f.removeAside(ctx, aside)
	}
	return err
}

// rename renames, and remembers that it did.
func (f *FS) rename(ctx context.Context, from, to string, replace bool) error {
	q := f.ask()
	_, err := f.vol.Rename(ctx, at(from), at(to), replace)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil { // be it that from is not there or that to is
		f.changeLocked(from)
		f.changeLocked(to)
		return err
	}
	var in *inode
	if n := f.knownLocked(from, q.at); n != nil {
		in = n.inode
	}
	if old := f.wasLocked(to); old == nil || old != f.wasLocked(from) {
		f.unnamedLocked(to)
		if f.key(from) != f.key(to) {
			f.namelessLocked(to)
		}
	}
	f.unnamedLocked(from)
	if in != nil && (in.kind == remote.Dir || in.attr.Links == 1) {
		f.bindLocked(from, nil, q)
	} else {
		f.changeLocked(from) // nothing was done if both were names of one file
	}
	f.moveLocked(from, to)
	f.cameLocked(to, in)
	return nil
}

// unnamedLocked notes that what a path leads to has lost that name. Whatever others it
// has have to be asked about: some may be ways to this one.
func (f *FS) unnamedLocked(p string) {
	if in := f.wasLocked(p); in != nil {
		f.touchLocked(in)
		in.unnamed = in.changed
	}
}

// namelessLocked notes that handles of a path have lost it.
func (f *FS) namelessLocked(p string) {
	for h := range f.paths[f.key(p)] {
		f.pathLocked(h, "")
	}
}

// moveLocked calls handles what they are called after a rename.
func (f *FS) moveLocked(from, to string) {
	key := f.key(from)
	for _, h := range f.handlesLocked(key) {
		f.pathLocked(h, to+tail(h.path, strings.Count(from, "/")+1))
	}
}

// handlesLocked returns the handles of what has a key or is below it.
func (f *FS) handlesLocked(key string) (all []*Handle) {
	for k, handles := range f.paths {
		if rest, ok := strings.CutPrefix(k, key); ok && (rest == "" || rest[0] == '/') {
			for h := range handles {
				all = append(all, h)
			}
		}
	}
	return all
}

// tail returns a path without its first n names, from the slash on.
func tail(p string, n int) string {
	for i := range len(p) {
		if p[i] == '/' {
			if n--; n == 0 {
				return p[i:]
			}
		}
	}
	return ""
}

// sameFile reports whether two names are known to be of one file.
func (f *FS) sameFile(a, b string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.wasLocked(a)
	return in != nil && in == f.wasLocked(b)
}

// Remove removes an empty folder or any other object, and only the kind the caller
// names. If it is open here, its handles go on with it.
func (f *FS) Remove(ctx context.Context, p string, dir bool) error {
	if !dir && f.holdsName(ctx, p) {
		if aside, err := f.putAside(ctx, p); err == nil {
			err = f.remove(ctx, aside, false)
			if err != nil {
				f.putBack(ctx, aside, p)
			}
			return err
		}
	}
	return f.remove(ctx, p, dir)
}

// remove removes, and remembers that it did.
func (f *FS) remove(ctx context.Context, p string, dir bool) error {
	q := f.ask()
	err := f.vol.Remove(ctx, at(p), dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.missedLocked(p, err, q)
		return err
	}
	was := f.wasLocked(p)
	f.namelessLocked(p)
	f.unnamedLocked(p)
	f.bindLocked(p, nil, q)
	if was != nil && was.names == 0 && was.kept != nil {
		f.dropLocked(was)
	}
	return nil
}
