package smb

import (
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/smbtest"
)

// TestOneOfTwoCameBack and is closed. The rights that came back with it hold as long as
// the server knows of another open, and somebody hears of their end.
func TestOneOfTwoCameBack(t *testing.T) {
	for what, refused := range map[string]bool{"the other follows": false, "the other is refused": true} {
		t.Run(what, func(t *testing.T) {
			lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
				l.write(t, "file", []byte("content"))
				c := make(told, 64)
				closing, staying := l.open(t, "file", allRights, obliging{c}), l.open(t, "file", allRights, obliging{c})
				back := func(o remote.Opened) bool { return o.Open.(*lastingOpen).handle.Load().s.alive() }
				for again := true; again; again = back(closing) && back(staying) { // which both may be by chance
					<-time.After(apart)
					l.cut()
					if last := c.trusts(t, remote.Unsure, remote.Current); last.Rights != allRights {
						t.Errorf("told of %+v", last)
					}
				}
				if back(staying) {
					closing, staying = staying, closing
				}
				if refused {
					l.faults(func(r smbtest.Request) smbtest.Fault {
						if r.Command == "CREATE" {
							return smbtest.Fault{Status: ntstatus.AccessDenied}
						}
						return smbtest.Fault{}
					})
				}
				if err := closing.Open.Close(t.Context()); err != nil {
					t.Error(err)
				}
				l.faults(func(smbtest.Request) smbtest.Fault { return smbtest.Fault{} })
				if refused {
					if last := c.trusts(t, remote.Current); last.Rights != 0 {
						t.Errorf("told of %+v, want no rights", last)
					}
				}
				other := dialTest(t, l.srv, Config{})
				if _, err := other.WriteFile(t.Context(), remote.At{Name: "file"}, remote.How{Create: remote.Truncate}, []byte("foreign")); err != nil {
					t.Error(err)
				}
				other.s.Close(t.Context())
				if told := c.caught(t); !refused && len(told) == 0 {
					t.Error("nobody has heard of what somebody else wrote")
				}
				if err := readAt(t.Context(), staying, 0, []byte("foreign")); err != nil {
					t.Error(err)
				}
				if err := staying.Open.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
