package smbserver

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/internal/memfs"
)

// statAttr fills in what only a Linux stat has.
func statAttr(info fs.FileInfo, a *memfs.Attr) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	a.ID, a.Links, a.UID, a.GID = st.Ino, uint32(st.Nlink), st.Uid, st.Gid
	a.Alloc = st.Blocks * 512
	a.Accessed = time.Unix(st.Atim.Unix())
	a.Changed = time.Unix(st.Ctim.Unix())
}

func statFS(d *os.File) (memfs.StatFS, error) {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(d.Fd()), &st); err != nil {
		return memfs.StatFS{}, err
	}
	return memfs.StatFS{
		Total: int64(st.Blocks) * st.Bsize,
		Free:  int64(st.Bavail) * st.Bsize,
		Nodes: int64(st.Files),
	}, nil
}

// Punch makes a hole: FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE.
func (f folderFile) Punch(off, size int64) error {
	if size == 0 {
		return nil
	}
	return syscall.Fallocate(int(f.Fd()), 2|1, off, size)
}
