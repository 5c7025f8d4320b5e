package smb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// answer puts a body, and a status, into the replies to one command.
func answer(command string, status ntstatus.Status, body smbconn.Body) func(smbtest.Request) smbtest.Fault {
	return func(r smbtest.Request) smbtest.Fault {
		if r.Command != command {
			return smbtest.Fault{}
		}
		return smbtest.Fault{Mutate: func(b []byte) []byte {
			const statusAt = 8
			b = slices.Clone(b[:smb2msg.HeaderSize])
			binary.LittleEndian.PutUint32(b[statusAt:], uint32(status))
			return body.Append(b)
		}}
	}
}

// listing is a page of a folder.
func listing(names ...string) smbconn.Body {
	w := fscc.NewDirWriter(nil, listClass, 1<<20)
	for _, name := range names {
		w.Append(&fscc.DirEntry{FileName: name, FileAttributes: fscc.AttributeNormal})
	}
	return &smb2msg.QueryDirectoryResponse{Output: w.Bytes()}
}

// names lists the root.
func names(ctx context.Context, v *Volume) (all []string, err error) {
	for page, err := range v.ReadDir(ctx, remote.At{}) {
		if err != nil {
			return all, err
		}
		for _, e := range page {
			all = append(all, e.Name)
		}
	}
	return all, nil
}

// TestListingsThatDoNotGetOn answers every question for the next page alike.
func TestListingsThatDoNotGetOn(t *testing.T) {
	for name, body := range map[string]smbconn.Body{
		"nothing":                listing(),
		"the folder":             listing(".", ".."),
		"the same page":          listing("a", "b"),
		"a name nobody may have": listing("a/b"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				c.fault = answer("QUERY_DIRECTORY", ntstatus.Success, body)
				_, err := names(ctx, v)
				check(t, "ReadDir", err, smbconn.ErrProtocol)
				if n := c.of("QUERY_DIRECTORY"); n > maxAgain+3 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// TestNamesThatNoFileMayHave come from a server, between two that are fine.
func TestNamesThatNoFileMayHave(t *testing.T) {
	bad := []string{"", ".", "..", "/", "a/b", "../a", `a\b`, `..\a`, "nul\x00", "\x00", "\uF029", "\uF029\uF029", ".\uF029",
		strings.Repeat("x", 256)}
	for mapping, want := range map[Mapping][]string{
		MapPOSIX: {"a", "z"},
		MapChars: {"a", "\uF029", "\uF029\uF029", ".\uF029", "z"},
		MapNone:  {"a", "\uF029", "\uF029\uF029", ".\uF029", "z"},
	} {
		inBubble(t, smbtest.Config{}, Config{Mapping: mapping}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
			c.fault = func(r smbtest.Request) smbtest.Fault {
				if c.of("QUERY_DIRECTORY") > 1 {
					return smbtest.Fault{}
				}
				return answer("QUERY_DIRECTORY", ntstatus.Success, listing(slices.Concat([]string{"a"}, bad, []string{"z"})...))(r)
			}
			got, err := names(t.Context(), v)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("mapping %d: %q, %v; want %q", mapping, got, err, want)
			}
		})
	}
}

// TestRequestsThatMoveNothing succeed without a byte: whoever asks again until
// all is there would do so for ever.
func TestRequestsThatMoveNothing(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		if err := srv.WriteFile("file", []byte("content")); err != nil {
			t.Fatal(err)
		}
		o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Open.Close(t.Context())
		c.fault = answer("READ", ntstatus.Success, &smb2msg.ReadResponse{})
		_, eof, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open}, [][]byte{make([]byte, 10)})
		if eof {
			t.Error("ReadAt says that the file ends")
		}
		check(t, "ReadAt", err, smbconn.ErrProtocol)
		c.fault = answer("WRITE", ntstatus.Success, &smb2msg.WriteResponse{})
		_, _, err = o.File.WriteAt(t.Context(), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{make([]byte, 10)}})
		check(t, "WriteAt", err, smbconn.ErrProtocol)
		c.fault = answer("WRITE", ntstatus.Success, &smb2msg.WriteResponse{Count: 11})
		_, _, err = o.File.WriteAt(t.Context(), remote.Req{Open: o.Open}, remote.Write{Data: [][]byte{make([]byte, 10)}})
		check(t, "WriteAt of more than there was", err, smbconn.ErrProtocol)
		_, err = v.WriteFile(t.Context(), remote.At{Name: "new"}, remote.How{Create: remote.New}, make([]byte, 10))
		check(t, "WriteFile of more than there was", err, smbconn.ErrProtocol)
	})
}

// TestLogOnWithoutEnd asks for one more token for ever.
func TestLogOnWithoutEnd(t *testing.T) {
	incomplete := []byte{0xA1, 7, 0x30, 5, 0xA0, 3, 0x0A, 1, 1}
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{})
		defer srv.Close()
		var legs atomic.Int64
		srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
			if r.Command == "SESSION_SETUP" && legs.Add(1) > 1 {
				return answer("SESSION_SETUP", ntstatus.MoreProcessingRequired, &smb2msg.SessionSetupResponse{SecurityBuffer: incomplete})(r)
			}
			return smbtest.Fault{}
		})
		nc, err := srv.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = Dial(ctx, nc, "server", Config{Credentials: auth.Credentials{User: "user", Password: "pass"}})
		if err == nil || ctx.Err() != nil {
			t.Errorf("Dial: %v, want an error in time", err)
		}
		if n := legs.Load(); n > 20 {
			t.Errorf("%d legs", n)
		}
	})
}

// TestLinksWithoutEnd stops every path at a link.
func TestLinksWithoutEnd(t *testing.T) {
	stop := func(link smb2msg.SymlinkErrorResponse) func(smbtest.Request) smbtest.Fault {
		return answer("CREATE", ntstatus.StoppedOnSymlink, &smb2msg.ErrorResponse{Data: link.Append(nil)})
	}
	link := func(target string, relative bool) (m smb2msg.SymlinkErrorResponse) {
		m.UnparsedPathLength = 4
		m.SubstituteName, m.PrintName, m.Relative = target, target, relative
		return m
	}
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		for name, l := range map[string]smb2msg.SymlinkErrorResponse{
			"a circle":        link("dir", true),
			"away":            link(`..\..\etc`, true),
			"another machine": link(`\??\UNC\other\share`, false),
			"ever longer":     link(strings.Repeat(`name\`, 3000)+"dir", true),
			"no rest":         {UnparsedPathLength: 0, SymbolicLinkReparseData: link("x", true).SymbolicLinkReparseData},
			"a rest too long": {UnparsedPathLength: 1000, SymbolicLinkReparseData: link("x", true).SymbolicLinkReparseData},
			"an odd rest":     {UnparsedPathLength: 3, SymbolicLinkReparseData: link("x", true).SymbolicLinkReparseData},
		} {
			c.fault = stop(l)
			before := c.of("CREATE")
			_, err := v.Open(t.Context(), remote.At{Name: "dir/f"}, remote.How{Access: remote.ForRead}, nil)
			if !errors.Is(err, ntstatus.StoppedOnSymlink) {
				t.Errorf("%s: %v, want %v", name, err, ntstatus.StoppedOnSymlink)
			}
			if n := c.of("CREATE") - before; n > maxSymlinks {
				t.Errorf("%s: %d opens", name, n)
			}
		}
		c.fault = answer("CREATE", ntstatus.StoppedOnSymlink, &smb2msg.ErrorResponse{Data: []byte("what")})
		_, err := v.GetAttr(t.Context(), remote.At{Name: "dir/f"})
		check(t, "garbage", err, ntstatus.StoppedOnSymlink)
	})
}

// TestLinkWithANul reads links to what no local path can be.
func TestLinkWithANul(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		if err := srv.WriteFile("link", nil); err != nil {
			t.Fatal(err)
		}
		for tag, data := range map[fscc.ReparseTag]smbconn.Body{
			fscc.ReparseTagSymlink:   &fscc.SymbolicLinkReparseData{SubstituteName: "a\x00b", PrintName: "a\x00b", Relative: true},
			fscc.ReparseTagNFS:       &fscc.NFSReparseData{Type: fscc.NFSTypeLnk, Target: "a\x00b"},
			fscc.ReparseTagLXSymlink: &fscc.LXSymlinkReparseData{Target: "a\x00b"},
		} {
			point := fscc.NewReparsePoint(tag, data)
			c.fault = answer("IOCTL", ntstatus.Success, &smb2msg.IoctlResponse{Output: point.Append(nil)})
			target, err := v.ReadLink(t.Context(), remote.At{Name: "link"})
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("tag %#x: %q, %v; want %v", tag, target, err, syscall.EINVAL)
			}
		}
	})
}

// TestSizesBeyondAllBounds are not negative, whatever they are.
func TestSizesBeyondAllBounds(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		full := fscc.FileFsFullSizeInformation{TotalAllocationUnits: 1<<63 - 1, CallerAvailableAllocationUnits: 1 << 62,
			ActualAvailableAllocationUnits: 1 << 62, SectorsPerAllocationUnit: 1<<32 - 1, BytesPerSector: 1<<32 - 1}
		c.fault = answer("QUERY_INFO", ntstatus.Success, &smb2msg.QueryInfoResponse{Output: full.Append(nil)})
		st, err := v.StatFS(t.Context())
		if err != nil || st.Block < 0 || st.Total < st.Free || st.Free < st.Avail || st.Avail <= 0 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// TestSharesWithoutEnd gets an empty answer from the pipe for ever.
func TestSharesWithoutEnd(t *testing.T) {
	inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c.fault = func(r smbtest.Request) smbtest.Fault {
			f := answer("IOCTL", ntstatus.Success, &smb2msg.IoctlResponse{})(r)
			if r.Command == "READ" {
				f = answer("READ", ntstatus.Success, &smb2msg.ReadResponse{})(r)
			}
			return f
		}
		_, err := v.s.Shares(ctx)
		check(t, "Shares", err, smbconn.ErrProtocol)
	})
}

// TestRepliesCutShort cuts every reply after the connection is set up, at every
// length, and lets every operation meet that.
func TestRepliesCutShort(t *testing.T) {
	ops := map[string]func(ctx context.Context, v *Volume) error{
		"GetAttr": func(ctx context.Context, v *Volume) error {
			_, err := v.GetAttr(ctx, remote.At{Name: "file"})
			return err
		},
		"SetAttr": func(ctx context.Context, v *Volume) error {
			_, err := v.SetAttr(ctx, remote.At{Name: "file"}, remote.SetAttr{Written: time.Unix(1, 0)})
			return err
		},
		"ReadFile": func(ctx context.Context, v *Volume) error {
			_, _, err := v.ReadFile(ctx, remote.At{Name: "file"}, make([]byte, 100))
			return err
		},
		"WriteFile": func(ctx context.Context, v *Volume) error {
			_, err := v.WriteFile(ctx, remote.At{Name: "file"}, remote.How{Create: remote.TruncateNew}, []byte("new content"))
			return err
		},
		"Open": func(ctx context.Context, v *Volume) error {
			o, err := v.Open(ctx, remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
			if err != nil {
				return err
			}
			_, err1 := o.File.GetAttr(ctx, o.Open)
			_, err2 := o.File.SetSize(ctx, o.Open, 5)
			_, err3 := o.File.Commit(ctx, o.Open, nil)
			_, _, err4 := o.File.ReadAt(ctx, remote.Req{Open: o.Open}, [][]byte{make([]byte, 5)})
			_, _, err5 := o.Open.Append(ctx, [][]byte{[]byte("more")})
			return errors.Join(err1, err2, err3, err4, err5, o.Open.Close(ctx))
		},
		"ReadDir": func(ctx context.Context, v *Volume) error { _, err := names(ctx, v); return err },
		"ReadLink": func(ctx context.Context, v *Volume) error {
			_, err := v.ReadLink(ctx, remote.At{Name: "link"})
			return err
		},
		"Rename": func(ctx context.Context, v *Volume) error {
			_, err := v.Rename(ctx, remote.At{Name: "file"}, remote.At{Name: "file"}, true)
			return err
		},
		"StatFS": func(ctx context.Context, v *Volume) error { _, err := v.StatFS(ctx); return err },
		"Shares": func(ctx context.Context, v *Volume) error { _, err := v.s.Shares(ctx); return err },
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
				if err := srv.WriteFile("file", []byte("content")); err != nil {
					t.Fatal(err)
				}
				if _, err := srv.FS("share").Root().Symlink("link", "file"); err != nil {
					t.Fatal(err)
				}
				if err := op(t.Context(), v); err != nil {
					t.Fatalf("uncut: %v", err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for n := range 200 {
					c.fault = func(r smbtest.Request) smbtest.Fault {
						return smbtest.Fault{Mutate: func(b []byte) []byte { return bytes.Clone(b[:min(len(b), smb2msg.HeaderSize+n)]) }}
					}
					err := op(ctx, v)
					if ctx.Err() != nil {
						t.Fatalf("cut to %d bytes: %v", n, err)
					}
					if err == nil && n < 4 && name != "Rename" { // whose replies say nothing but that it is done
						t.Errorf("cut to %d bytes: no error", n)
					}
					c.fault = nil
					if errors.Is(err, smbconn.ErrDisconnected) { // a READ went wrong, of which nothing can be believed
						v = dialTest(t, srv, Config{})
					}
				}
			})
		})
	}
}

// TestFaultsOfTheWire lets a READ meet what can happen to a reply, in every dialect
// and under every protection.
func TestFaultsOfTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		fault smbtest.Fault
		err   func(cfg Config) error
	}{
		"wrong signature": {smbtest.Fault{BadSignature: true}, func(cfg Config) error {
			if cfg.Sign || cfg.Seal {
				return smbconn.ErrSignature
			}
			return nil
		}},
		"a bit of the payload": {smbtest.Fault{Corrupt: -1}, func(cfg Config) error {
			if cfg.Sign || cfg.Seal {
				return smbconn.ErrSignature
			}
			return nil // nobody can know
		}},
		"a bit of the protocol's name": {smbtest.Fault{Corrupt: 2}, func(Config) error { return smbconn.ErrProtocol }},
		"dropped":                      {smbtest.Fault{Drop: true}, func(Config) error { return smbconn.ErrTimeout }},
		"refused":                      {smbtest.Fault{Status: ntstatus.FileLockConflict}, func(Config) error { return ntstatus.FileLockConflict }},
		"slow":                         {smbtest.Fault{Delay: 10 * time.Minute, Interim: true}, func(Config) error { return nil }},
		"twice":                        {smbtest.Fault{Duplicate: true}, func(Config) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			eachProtection(t, func(t *testing.T, cfg Config, _ Info) {
				want := c.err(cfg)
				inBubble(t, smbtest.Config{}, cfg, func(t *testing.T, srv *smbtest.Server, v *Volume, n *counted) {
					if err := srv.WriteFile("file", noise(1000)); err != nil {
						t.Fatal(err)
					}
					o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead}, nil)
					if err != nil {
						t.Fatal(err)
					}
					n.fault = func(r smbtest.Request) smbtest.Fault {
						if r.Command == "READ" {
							return c.fault
						}
						return smbtest.Fault{}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					got, _, err := o.File.ReadAt(ctx, remote.Req{Open: o.Open}, [][]byte{make([]byte, 1000)})
					if !errors.Is(err, want) || err == nil && got != 1000 || err != nil && got != 0 {
						t.Errorf("%d bytes, %v; want %v", got, err, want)
					}
					if c.fault.Duplicate { // the second one is nobody's
						synctest.Wait()
						_, err = v.GetAttr(ctx, remote.At{})
						check(t, "GetAttr", err, smbconn.ErrProtocol)
					}
				})
			})
		})
	}
}

// TestConnectionCutAnywhere ends the connection at every byte of the replies.
func TestConnectionCutAnywhere(t *testing.T) {
	for n := 1; n < 120; n += 7 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, smbtest.Config{}, Config{}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
				if err := srv.WriteFile("file", make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				o, err := v.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead}, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.fault = func(r smbtest.Request) smbtest.Fault { return smbtest.Fault{CutAt: n} }
				got, eof, err := o.File.ReadAt(t.Context(), remote.Req{Open: o.Open}, [][]byte{make([]byte, 100)})
				if !errors.Is(err, smbconn.ErrDisconnected) || got != 0 || eof {
					t.Errorf("%d bytes, end of file %v, %v; want none and %v", got, eof, err, smbconn.ErrDisconnected)
				}
				check(t, "GetAttr", func() error { _, err := v.GetAttr(t.Context(), remote.At{}); return err }(), smbconn.ErrDisconnected)
				check(t, "Close", o.Open.Close(t.Context()), smbconn.ErrDisconnected)
			})
		})
	}
}
