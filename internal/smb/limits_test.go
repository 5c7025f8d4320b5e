package smb

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

// TestRemoteOnSmallServers runs the suite of the seam on servers that take small
// requests, or few.
func TestRemoteOnSmallServers(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect smb2msg.Dialect
		cfg     smbtest.Config
	}{
		{"small reads and writes", smb2msg.SMB210, smbtest.Config{MaxRead: 16 << 10, MaxWrite: 16 << 10}},
		{"small transactions", smb2msg.SMB202, smbtest.Config{MaxTransact: 4 << 10}},
		{"small everything, one credit", smb2msg.SMB311, smbtest.Config{MaxRead: 8 << 10, MaxWrite: 8 << 10, MaxTransact: 4 << 10, Credits: 1}},
		{"one credit", smb2msg.SMB202, smbtest.Config{Credits: 1}},
		{"two credits", smb2msg.SMB210, smbtest.Config{Credits: 2}},
		{"three credits, one a reply", smb2msg.SMB311, smbtest.Config{Credits: 3, Grant: smbtest.GrantOne}},
		{"what was charged", smb2msg.SMB311, smbtest.Config{Grant: smbtest.GrantCharged}},
		{"everything at once", smb2msg.SMB210, smbtest.Config{Grant: smbtest.GrantAll, Credits: 512}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := smbtest.NewServer(c.cfg)
			defer srv.Close()
			remotetest.Run(t, func(t *testing.T) remotetest.Target {
				client := Config{Dialects: []smb2msg.Dialect{c.dialect}}
				return remotetest.Target{
					Volume: dialTest(t, srv, client),
					Second: dialTest(t, srv, client),
					Caps:   remotetest.Caps{Symlinks: true, Links: true, DOS: true, FoldCase: true, Reserved: true, LoneSurrogates: true},
				}
			})
		})
	}
}

// TestPathsThatAreTooLong asks for paths whose length does not fit into a CREATE:
// cut to what does fit, they would name other files, and the first one the root.
func TestPathsThatAreTooLong(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		name := strings.Repeat("n", 255)
		dir := strings.Repeat(name+`\`, 128)[:32768-1]
		for _, at := range []remote.At{
			{Dir: remote.Node(dir[:32768-2]), Name: "x"}, // 65536 bytes, which is 0
			{Node: remote.Node(dir + "x")},
			{Name: strings.ReplaceAll(dir, `\`, "/") + "/" + name},
			{Dir: remote.Node(dir), Name: strings.Repeat(name+"/", 200) + "x"},
		} {
			_, err := v.GetAttr(t.Context(), at)
			check(t, "GetAttr", err, syscall.ENAMETOOLONG)
			_, err = v.Open(t.Context(), at, remote.How{Access: remote.ForRead}, nil)
			check(t, "Open", err, syscall.ENAMETOOLONG)
			_, err = v.Make(t.Context(), at, remote.Make{Kind: remote.Dir})
			check(t, "Make", err, syscall.ENAMETOOLONG)
			check(t, "Remove", v.Remove(t.Context(), at, true), syscall.ENAMETOOLONG)
			_, err = v.Rename(t.Context(), remote.At{Name: "x"}, at, true)
			check(t, "Rename", err, syscall.ENAMETOOLONG)
		}
		if n := c.of("CREATE"); n > 0 {
			t.Errorf("%d paths were sent", n)
		}
	})
}

// TestLinksThatAreTooLong makes links whose target does not fit into the
// structures for it.
func TestLinksThatAreTooLong(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		for _, n := range []int{4 << 10, 8 << 10, 16<<10 - 1, 32 << 10, 64 << 10} {
			_, err := v.Make(t.Context(), remote.At{Name: "link"}, remote.Make{Kind: remote.Symlink, Target: strings.Repeat("t", n)})
			check(t, fmt.Sprintf("Make link to %d characters", n), err, syscall.ENAMETOOLONG)
		}
		if n := c.of("CREATE"); n > 0 {
			t.Errorf("%d links were made", n)
		}
	})
}

// TestStableWrite flushes where a WRITE cannot say that it wants
// to be stable.
func TestStableWrite(t *testing.T) {
	for d, flushes := range map[smb2msg.Dialect]int{smb2msg.SMB202: 1, smb2msg.SMB210: 0, smb2msg.SMB311: 0} {
		inBubble(t, smbtest.Config{}, Config{Dialects: []smb2msg.Dialect{d}}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
			o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForWrite, Create: remote.New}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Open.Close(t.Context())
			w := remote.Write{Data: [][]byte{make([]byte, 10)}, Stable: true}
			if n, stable, err := o.File.WriteAt(t.Context(), remote.Req{Open: o.Open}, w); n != 10 || !stable || err != nil {
				t.Errorf("%v: %d bytes, stable %v, %v", d, n, stable, err)
			}
			if got := c.of("FLUSH"); got != flushes {
				t.Errorf("%v: %d FLUSHes, want %d", d, got, flushes)
			}
		})
	}
}

func check(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
