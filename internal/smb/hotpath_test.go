package smb

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// mount connects to the share of a real server.
func mount(t testing.TB, srv *sambatest.Server, cfg Config) *Volume {
	t.Helper()
	ctx := context.Background()
	nc, err := net.Dial("tcp", srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = auth.Credentials{User: srv.User, Password: srv.Password}
	s, err := Dial(ctx, nc, "127.0.0.1", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(ctx) })
	v, err := s.Mount(ctx, srv.Share)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// open opens a file of size zero bytes on the share.
func open(t testing.TB, srv *sambatest.Server, v *Volume, name string, size int64) remote.Opened {
	t.Helper()
	path := filepath.Join(srv.Dir, name)
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	o, err := v.Open(context.Background(), remote.At{Name: name}, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Open.Close(context.Background()) })
	return o
}

var protections = []struct {
	name string
	cfg  Config
}{
	{"plain", Config{}},
	{"GMAC", Config{Sign: true}},
	{"CMAC", Config{Sign: true, Dialects: []smb2msg.Dialect{smb2msg.SMB302}}},
	{"HMAC", Config{Sign: true, Dialects: []smb2msg.Dialect{smb2msg.SMB210}}},
	{"GCM", Config{Seal: true}},
	{"CCM", Config{Seal: true, Dialects: []smb2msg.Dialect{smb2msg.SMB300}}},
}

// TestHotPathAllocatesNothing counts what READs and WRITEs allocate in this
// process, against a server in another.
func TestHotPathAllocatesNothing(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	for _, p := range protections {
		v := mount(t, srv, p.cfg)
		o := open(t, srv, v, "file", 1<<20)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		buf := [][]byte{make([]byte, 512<<10)}
		req := remote.Req{Open: o.Open}
		for name, do := range map[string]func() (int, error){
			"READ":  func() (int, error) { n, _, err := o.File.ReadAt(ctx, req, buf); return n, err },
			"WRITE": func() (int, error) { n, _, err := o.File.WriteAt(ctx, req, remote.Write{Data: buf}); return n, err },
		} {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				once := func() {
					if n, err := do(); n != 512<<10 || err != nil {
						t.Fatalf("%s: %d bytes, %v; want all", name, n, err)
					}
				}
				for range 10 {
					once()
				}
				const runs = 200
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range runs {
					once()
				}
				runtime.ReadMemStats(&after)
				// The runtime itself allocates now and then; a request must not.
				if got := after.Mallocs - before.Mallocs; got > runs/4 {
					t.Errorf("%d allocations in %d requests, want none", got, runs)
				}
			})
		}
	}
}

func benchmark(b *testing.B, io func(o remote.Opened, req remote.Req, buf [][]byte) (int, error)) {
	srv := sambatest.Start(b, sambatest.Config{})
	const size, request, inFlight = 1 << 30, 1 << 20, 8
	for _, p := range protections {
		b.Run(p.name, func(b *testing.B) {
			v := mount(b, srv, p.cfg)
			o := open(b, srv, v, "file", size)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				var at atomic.Int64
				var wg sync.WaitGroup
				for range inFlight {
					wg.Go(func() {
						buf := [][]byte{make([]byte, request)}
						for {
							off := at.Add(request) - request
							if off >= size {
								return
							}
							if n, err := io(o, remote.Req{Open: o.Open, Off: off}, buf); n != request || err != nil {
								b.Errorf("%d bytes, %v", n, err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	benchmark(b, func(o remote.Opened, req remote.Req, buf [][]byte) (int, error) {
		n, _, err := o.File.ReadAt(context.Background(), req, buf)
		return n, err
	})
}

func BenchmarkWrite(b *testing.B) {
	benchmark(b, func(o remote.Opened, req remote.Req, buf [][]byte) (int, error) {
		n, _, err := o.File.WriteAt(context.Background(), req, remote.Write{Data: buf})
		return n, err
	})
}
