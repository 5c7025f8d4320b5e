package pagewire

import (
	"os"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// TestKeptBytesOfAFileBeingWritten closes a file, which another client then writes and
// keeps open: to Samba, and to Windows, its times need not tell that as long as it does.
func TestKeptBytesOfAFileBeingWritten(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	a, b := dial(t, sambaURL(srv), "actimeo=0"), dial(t, sambaURL(srv), "actimeo=0")
	if err := a.WriteFile(t.Context(), "file", []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	af := open(t, a, "file", os.O_RDWR)
	granted(t, af)
	reads(t, "a", af, []byte("old"))
	shut(t, af)
	bf := open(t, b, "file", os.O_RDWR)
	wrote(t, bf, []byte("old"), 0, []byte("new"), true)
	af = open(t, a, "file", os.O_RDWR)
	reads(t, "a, once b has written,", af, []byte("new"))
	shut(t, af, bf)
}
