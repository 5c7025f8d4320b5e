package smb

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/smbtest"
)

// requests is how many of each command.
type requests map[smb2msg.Command]int64

// sent runs do and returns what it sent.
func sent(t *testing.T, v *Volume, what string, do func() error) requests {
	t.Helper()
	before := v.s.Info().Stats.Requests
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	n := requests{}
	for c, after := range v.s.Info().Stats.Requests {
		if d := after - before[c]; d > 0 {
			n[c] = d
		}
	}
	return n
}

// trips are operations, each with the requests that it sends in one frame.
var trips = []struct {
	name string
	do   func(ctx context.Context, v *Volume) error
	want requests
}{
	{"GetAttr", func(ctx context.Context, v *Volume) error {
		_, err := v.GetAttr(ctx, remote.At{Name: "file"})
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandQueryInfo: 1, smb2msg.CommandClose: 1}},
	{"GetAttr of the root", func(ctx context.Context, v *Volume) error {
		_, err := v.GetAttr(ctx, remote.At{})
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandQueryInfo: 1, smb2msg.CommandClose: 1}},
	{"ReadFile", func(ctx context.Context, v *Volume) error {
		n, attr, err := v.ReadFile(ctx, remote.At{Name: "file"}, make([]byte, 4096))
		if err == nil && (n != 7 || attr.Size != 7) {
			err = fmt.Errorf("%d bytes of %d", n, attr.Size)
		}
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandRead: 1, smb2msg.CommandClose: 1}},
	{"WriteFile", func(ctx context.Context, v *Volume) error {
		_, err := v.WriteFile(ctx, remote.At{Name: "file"}, remote.How{Create: remote.TruncateNew}, []byte("content"))
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandWrite: 1, smb2msg.CommandClose: 1}},
	{"stable WriteFile", func(ctx context.Context, v *Volume) error {
		_, err := v.WriteFile(ctx, remote.At{Name: "file"}, remote.How{Create: remote.TruncateNew, Stable: true}, []byte("content"))
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandWrite: 1, smb2msg.CommandFlush: 1, smb2msg.CommandClose: 1}},
	{"Rename", func(ctx context.Context, v *Volume) error {
		_, err := v.Rename(ctx, remote.At{Name: "file"}, remote.At{Name: "renamed"}, false)
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandSetInfo: 1, smb2msg.CommandClose: 1}},
	{"Link", func(ctx context.Context, v *Volume) error {
		return v.Link(ctx, remote.At{Name: "renamed"}, remote.At{Name: "file"})
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandSetInfo: 1, smb2msg.CommandClose: 1}},
	{"SetAttr of everything", func(ctx context.Context, v *Volume) error {
		size, dos, at := int64(5), uint32(0x20), time.Unix(1e9, 0)
		attr, err := v.SetAttr(ctx, remote.At{Name: "file"}, remote.SetAttr{Size: &size, DOS: &dos, Written: at, Accessed: at})
		if err == nil && (attr.Size != size || !attr.Written.Equal(at)) {
			err = fmt.Errorf("it is %+v", attr)
		}
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandSetInfo: 2, smb2msg.CommandQueryInfo: 1, smb2msg.CommandClose: 1}},
	{"Remove", func(ctx context.Context, v *Volume) error {
		return v.Remove(ctx, remote.At{Name: "renamed"}, false)
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandSetInfo: 1, smb2msg.CommandClose: 1}},
	{"Make a folder", func(ctx context.Context, v *Volume) error {
		_, err := v.Make(ctx, remote.At{Name: "dir"}, remote.Make{Kind: remote.Dir})
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandClose: 1}},
	{"Remove a folder", func(ctx context.Context, v *Volume) error {
		return v.Remove(ctx, remote.At{Name: "dir"}, true)
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandSetInfo: 1, smb2msg.CommandClose: 1}},
	{"StatFS", func(ctx context.Context, v *Volume) error {
		_, err := v.StatFS(ctx)
		return err
	}, requests{smb2msg.CommandCreate: 1, smb2msg.CommandQueryInfo: 3, smb2msg.CommandClose: 1}},
}

// TestTripsOnTestServer counts what each operation sends, and in how many frames:
// always one.
func TestTripsOnTestServer(t *testing.T) {
	eachProtection(t, func(t *testing.T, cfg Config, _ Info) {
		inBubble(t, smbtest.Config{}, cfg, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
			if err := srv.WriteFile("file", []byte("content")); err != nil {
				t.Fatal(err)
			}
			for _, trip := range trips {
				frames := srv.Stats().Frames
				got := sent(t, v, trip.name, func() error { return trip.do(t.Context(), v) })
				if !maps.Equal(got, trip.want) {
					t.Errorf("%s sent %v, want %v", trip.name, got, trip.want)
				}
				if n := srv.Stats().Frames - frames; n != 1 {
					t.Errorf("%s took %d frames, want one", trip.name, n)
				}
			}
		})
	})
}

// TestTripsOnARealServer compares with what the server itself has counted.
func TestTripsOnARealServer(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	if err := os.WriteFile(filepath.Join(srv.Dir, "file"), []byte("content"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(srv.Dir, "file"), 0o666); err != nil {
		t.Fatal(err)
	}
	before, err := srv.Profile(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	v := mount(t, srv, Config{})
	all := requests{}
	for _, trip := range trips {
		got := sent(t, v, trip.name, func() error { return trip.do(patient(t), v) })
		if !maps.Equal(got, trip.want) {
			t.Errorf("%s sent %v, want %v", trip.name, got, trip.want)
		}
		for c, n := range got {
			all[c] += n
		}
	}
	if err := v.s.Close(patient(t)); err != nil {
		t.Error(err)
	}
	compareProfile(t, srv, before, all)
}

// profiled are smbd's names for commands.
var profiled = map[smb2msg.Command]string{
	smb2msg.CommandCreate: "smb2_create_count", smb2msg.CommandClose: "smb2_close_count", smb2msg.CommandRead: "smb2_read_count",
	smb2msg.CommandWrite: "smb2_write_count", smb2msg.CommandFlush: "smb2_flush_count", smb2msg.CommandQueryInfo: "smb2_getinfo_count",
	smb2msg.CommandSetInfo: "smb2_setinfo_count", smb2msg.CommandQueryDirectory: "smb2_find_count",
}

func compareProfile(t *testing.T, srv *sambatest.Server, before sambatest.Counters, want requests) {
	t.Helper()
	after, err := srv.Profile(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	got := after.Since(before)
	for c, name := range profiled {
		if got[name] != want[c] {
			t.Errorf("the server counted %d of %s, want %d", got[name], name, want[c])
		}
	}
}

// TestListingTakesFewRequests lists 10,000 files: an open, a close, a last
// question that there is no more, and no more than one question for each 64 KiB
// of entries.
func TestListingTakesFewRequests(t *testing.T) {
	const files = 10_000
	name := func(i int) string { return fmt.Sprintf("a file with a longer name %05d", i) }
	const entry = (104 + 2*31 + 7) &^ 7 // See [MS-FSCC] 2.4.17.
	const most = 3 + (files*entry+64<<10-1)/(64<<10)
	list := func(t *testing.T, v *Volume) requests {
		t.Helper()
		seen := map[string]bool{}
		got := sent(t, v, "ReadDir", func() error {
			for page, err := range v.ReadDir(t.Context(), remote.At{}) {
				if err != nil {
					return err
				}
				for _, e := range page {
					seen[e.Name] = true
				}
			}
			return nil
		})
		if len(seen) != files || !seen[name(0)] || !seen[name(files-1)] {
			t.Errorf("%d files are listed, want %d", len(seen), files)
		}
		total := int64(0)
		for _, n := range got {
			total += n
		}
		if total > most || got[smb2msg.CommandCreate] != 1 || got[smb2msg.CommandClose] != 1 || len(got) != 3 {
			t.Errorf("sent %v, want %d requests at most, all but two of them questions", got, most)
		}
		return got
	}
	t.Run("Samba", func(t *testing.T) {
		srv := sambatest.Start(t, sambatest.Config{})
		for i := range files {
			if err := os.WriteFile(filepath.Join(srv.Dir, name(i)), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		before, err := srv.Profile(patient(t))
		if err != nil {
			t.Fatal(err)
		}
		v := mount(t, srv, Config{})
		got := list(t, v)
		if err := v.s.Close(patient(t)); err != nil {
			t.Error(err)
		}
		compareProfile(t, srv, before, got)
	})
	for _, d := range []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB311} {
		t.Run("test server/"+d.String(), func(t *testing.T) {
			inBubble(t, smbtest.Config{}, Config{Dialects: []smb2msg.Dialect{d}}, func(t *testing.T, srv *smbtest.Server, v *Volume, c *counted) {
				for i := range files {
					if err := srv.WriteFile(name(i), nil); err != nil {
						t.Fatal(err)
					}
				}
				list(t, v)
			})
		})
	}
}
