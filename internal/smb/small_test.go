package smb

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/smbtest"
)

// TestNewFileIsWrittenWholeOrNotThere lets the server fail in each way that
// leaves it with a file and without its bytes.
func TestNewFileIsWrittenWholeOrNotThere(t *testing.T) {
	for name, fault := range map[string]smbtest.Fault{
		"refused": {Status: 0xC000007F}, // STATUS_DISK_FULL
		"short":   {Short: 3},
	} {
		t.Run(name, func(t *testing.T) {
			srv := smbtest.NewServer(smbtest.Config{Faults: func(r smbtest.Request) smbtest.Fault {
				if r.Command == "WRITE" {
					return fault
				}
				return smbtest.Fault{}
			}})
			defer srv.Close()
			v := dialTest(t, srv, Config{})
			at := remote.At{Name: "file"}
			if _, err := v.WriteFile(t.Context(), at, remote.How{Create: remote.New}, []byte("0123456789")); err == nil {
				t.Error("no error")
			}
			if _, err := v.GetAttr(t.Context(), at); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what is left: %v, want %v", err, fs.ErrNotExist)
			}
		})
	}
}
