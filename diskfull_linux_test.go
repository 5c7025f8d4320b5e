package pagewire

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/smbtest"
)

// TestDiskFull writes more than the server has room for. What is kept here does not
// know that yet: Sync and Close tell, once to each open.
func TestDiskFull(t *testing.T) {
	const room = 8 << 20
	t.Run("smbtest", func(t *testing.T) {
		srv := startServer(t, smbtest.Config{Shares: []smbtest.Share{{Name: "share", Limit: room}}})
		diskFull(t, func() *FS { return dial(t, srv.URL, "") }, room)
	})
	t.Run("samba", func(t *testing.T) {
		sambatest.Need(t)
		dir, err := os.MkdirTemp("", "disk-") // not t.TempDir, which only root may enter
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=777"); err != nil {
			t.Skip("mount: ", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
		srv := sambatest.Start(t, sambatest.Config{Dir: dir})
		diskFull(t, func() *FS { return dial(t, sambaURL(srv), "") }, room)
	})
}

func diskFull(t *testing.T, connect func() *FS, room int) {
	full := func(what string, err error) {
		t.Helper()
		var pe *fs.PathError
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &pe) || pe.Path != "file" {
			t.Errorf("%s: %v, want ENOSPC", what, err)
		}
	}
	fine := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	data := randomBytes(room + 4<<20)
	fsys := connect()
	one, two, three := open(t, fsys, "file", os.O_RDWR|os.O_CREATE), open(t, fsys, "file", os.O_RDWR), open(t, fsys, "file", os.O_RDONLY)
	if n, err := one.WriteAt(data, 0); n != len(data) || err != nil {
		t.Fatalf("WriteAt: %d, %v; want it to be kept", n, err)
	}
	full("the first Sync", one.Sync())
	fine("the second Sync", one.Sync())
	full("Sync of another open", two.Sync())
	late := open(t, fsys, "file", os.O_RDWR)
	fine("Close of who came later", late.Close())
	fine("Close of who was told", one.Close())
	fine("Close of who was told", two.Close())
	full("Close of who only reads", three.Close())

	// What had room is there, and there is room again as soon as there is.
	f := open(t, fsys, "file", os.O_RDWR)
	granted(t, f)
	fine("Truncate", f.Truncate(0))
	f.WriteAt(data[:room/2], 0)
	fine("Sync of what has room", f.Sync())
	f.WriteAt(data, 0)
	full("Close", f.Close())
	fine("Remove", fsys.Remove(t.Context(), "file"))

	// Closing the file system tells as well.
	f = open(t, fsys, "file", os.O_RDWR|os.O_CREATE)
	granted(t, f)
	f.WriteAt(data, 0)
	full("FS.Close", fsys.Close())
	fsys = connect()
	fine("Remove", fsys.Remove(t.Context(), "file"))
	if got := fsys.Stats().Cache.Dirty; got != 0 {
		t.Errorf("%d bytes are dirty still", got)
	}
}
