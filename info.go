package pagewire

import (
	"io/fs"
	"path"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// Attr is what a server knows of a file beyond fs.FileInfo, whose Sys returns an
// *Attr. Zero times, ID and Links mean that the server has none.
type Attr struct {
	ID    uint64 // unique on the share
	Links uint32
	DOS   uint32 // [MS-FSCC] 2.6 file attributes
	Alloc int64  // bytes on the disk

	Born, Accessed, Written, Changed time.Time
}

// The attributes that modes are made of. See [MS-FSCC] 2.6.
const (
	dosReadOnly = 0x01
	dosNormal   = 0x80 // stands for no attribute, since 0 means to leave them alone
)

// fileInfo is an fs.FileInfo, and an fs.DirEntry that knows all of it.
type fileInfo struct {
	name string
	mode fs.FileMode
	attr remote.Attr
}

func (s *share) info(name string, attr remote.Attr) *fileInfo {
	return &fileInfo{name: path.Base(name), mode: s.options.mode(attr), attr: attr}
}

// mode is what mount.cifs makes of the attributes without Unix extensions. On a
// folder, the read-only attribute does not mean that.
func (o *Options) mode(attr remote.Attr) fs.FileMode {
	mode := fs.FileMode(0o755)
	switch attr.Kind {
	case remote.Dir:
		if o.DirMode != 0 {
			mode = o.DirMode
		}
		return fs.ModeDir | mode
	case remote.Symlink:
		return fs.ModeSymlink | 0o777
	}
	if o.FileMode != 0 {
		mode = o.FileMode
	}
	if attr.DOS&dosReadOnly != 0 {
		mode &^= 0o222
	}
	if attr.Kind == remote.Other {
		mode |= fs.ModeIrregular
	}
	return mode
}

func (i *fileInfo) Name() string               { return i.name }
func (i *fileInfo) Size() int64                { return i.attr.Size }
func (i *fileInfo) Mode() fs.FileMode          { return i.mode }
func (i *fileInfo) Type() fs.FileMode          { return i.mode.Type() }
func (i *fileInfo) ModTime() time.Time         { return i.attr.Written }
func (i *fileInfo) IsDir() bool                { return i.mode.IsDir() }
func (i *fileInfo) Info() (fs.FileInfo, error) { return i, nil }
func (i *fileInfo) String() string             { return fs.FormatFileInfo(i) }

func (i *fileInfo) Sys() any {
	a := &i.attr
	return &Attr{
		ID: a.ID, Links: a.Links, DOS: a.DOS, Alloc: a.Alloc,
		Born: a.Born, Accessed: a.Accessed, Written: a.Written, Changed: a.Changed,
	}
}
