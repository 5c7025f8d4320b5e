package vfs

import (
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/remote"
)

// at returns where a path is: the protocol walks it.
func at(p string) remote.At {
	if p == "." {
		return remote.At{}
	}
	return remote.At{Name: p}
}

// parent returns the folder that a path, or a key, is in.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

// join returns the path of a name in a folder.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// key is what a path is remembered by. Paths that may be the same to the server have
// the same key; that others may have it too costs a request now and then, since what
// is remembered says what it was asked about. Folding goes up and down so that letters
// with several small forms meet.
func (f *FS) key(p string) string {
	if f.cfg.CaseSensitive {
		return p
	}
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(p))
		}
	}
	return strings.ToLower(p)
}
