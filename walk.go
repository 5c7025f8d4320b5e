package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/remote"
)

// maxLinks is how many symbolic links on the way to one file are followed, as in Linux.
const maxLinks = 40

// validName is fs.ValidPath for servers' names, whose surrogates may stand alone
// and then are no UTF-8.
func validName(name string) bool {
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "x")
	}
	return fs.ValidPath(name) && strings.IndexByte(name, 0) < 0
}

// full returns the path on the share of what f calls name.
func (f *FS) full(name string) (string, error) {
	switch {
	case !validName(name):
		return "", fs.ErrInvalid
	case f.share.closed.Load():
		return "", fs.ErrClosed
	}
	return path.Join(f.dir, name), nil
}

// follow does something to name, in as few round trips as that takes if no
// symbolic link is on the way. Only if one turns out to be, the way is walked
// link by link. last says whether one at the end is followed, too.
func (f *FS) follow(ctx context.Context, name string, last bool, do func(full string) error) error {
	full, err := f.full(name)
	if err != nil {
		return err
	}
	err = do(full)
	if !f.mayBeLink(full, err) {
		return err
	}
	target, walkErr := f.resolve(ctx, full, last)
	switch {
	case walkErr != nil:
		return walkErr
	case target == full:
		return err
	}
	return do(target)
}

// errLink is what do returns if it met a link at the end where it wants none.
var errLink = syscall.ELOOP

// mayBeLink reports whether a link on the way explains err. Those that are files
// to the server, it cannot know.
func (f *FS) mayBeLink(full string, err error) bool {
	switch {
	case err == nil:
		return false
	case f.share.options.MFSymlinks && strings.Contains(full, "/"):
		return errors.Is(err, errLink) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist)
	}
	return errors.Is(err, errLink)
}

// resolve returns the path without links that full leads to.
func (f *FS) resolve(ctx context.Context, full string, last bool) (string, error) {
	done, rest := ".", strings.Split(full, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", errOutside
			}
			done = path.Dir(done)
			continue
		}
		here := path.Join(done, name)
		if len(rest) == 0 && !last {
			return here, nil
		}
		attr, err := f.share.files.GetAttr(ctx, here)
		if len(rest) == 0 && errors.Is(err, fs.ErrNotExist) {
			return here, nil // it may be made
		}
		if err != nil {
			return "", err
		}
		if attr.Kind != remote.Symlink {
			done = here
			continue
		}
		if links++; links > maxLinks {
			return "", errLink
		}
		target, err := f.share.files.ReadLink(ctx, here)
		if err != nil {
			return "", err
		}
		if target, err = f.within(target); err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			done = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

// within turns the target of a link into a path that is relative, or that begins
// with a slash at the root of the share.
func (f *FS) within(target string) (string, error) {
	if rest, ok := strings.CutPrefix(target, f.share.name); ok && f.share.name != "" && (rest == "" || rest[0] == '/') {
		return "/" + rest, nil // spelled with its server
	}
	isDrive := len(target) > 1 && target[1] == ':' && (len(target) == 2 || target[2] == '/')
	if target == "" || isDrive || strings.HasPrefix(target, "/") {
		return "", errOutside
	}
	return target, nil
}
