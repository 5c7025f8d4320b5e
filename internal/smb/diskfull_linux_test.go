package smb

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

// TestDiskFull fills a small file system on the server's side.
func TestDiskFull(t *testing.T) {
	sambatest.Need(t)
	const size = 8 << 20
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
	full := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, ntstatus.DiskFull) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v, want %v", what, err, ntstatus.DiskFull)
		}
	}
	everyDialect(t, func(t *testing.T, cfg Config) {
		v := mount(t, srv, cfg)
		o, err := v.Open(patient(t), remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.TruncateNew}, nil)
		if err != nil {
			t.Fatal(err)
		}
		written, failed := int64(0), error(nil)
		for data := [][]byte{noise(1 << 20)}; failed == nil && written < 2*size; {
			var n int
			n, _, failed = o.File.WriteAt(patient(t), remote.Req{Open: o.Open, Off: written}, remote.Write{Data: data})
			written += int64(n)
		}
		full(t, "WriteAt", failed)
		if st := v.s.Info().Stats; st.Written != written || written > size {
			t.Errorf("%d bytes written, %d counted", written, st.Written)
		}
		_, err = v.WriteFile(patient(t), remote.At{Name: "other"}, remote.How{Create: remote.TruncateNew}, noise(60_000))
		full(t, "WriteFile", err)
		// There is room again as soon as there is room.
		if _, err := o.File.SetSize(patient(t), o.Open, 0); err != nil {
			t.Errorf("SetSize: %v", err)
		}
		if n, _, err := o.File.WriteAt(patient(t), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{noise(60_000)}}); n != 60_000 || err != nil {
			t.Errorf("WriteAt after that: %d bytes, %v", n, err)
		}
		if err := o.Open.Close(patient(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
		for _, name := range []string{"file", "other"} {
			if err := v.Remove(patient(t), remote.At{Name: name}, false); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Remove %s: %v", name, err)
			}
		}
	})
}
