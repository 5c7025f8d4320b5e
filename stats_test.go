package pagewire

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/smbtest"
)

// plausible checks what holds of all statistics at any time.
func plausible(t *testing.T, s Stats) {
	t.Helper()
	if c := s.Cache; c.Dirty < 0 || c.Dirty > c.Cached || c.Cached > c.Size || c.AheadUsed+c.AheadWasted > c.Ahead || min(c.Hits, c.Misses, c.AheadUsed, c.AheadWasted, c.Evicted) < 0 {
		t.Errorf("the cache: %+v", c)
	}
	for name, tr := range map[string]Traffic{"read": s.Read, "write": s.Write} {
		sizes, bytes, latencies := int64(0), int64(0), int64(0)
		for _, b := range tr.Sizes {
			sizes += b.Count
			bytes += b.Count * b.UpTo
		}
		for _, b := range tr.Latencies {
			latencies += b.Count
		}
		if sizes != tr.Requests || latencies != tr.Requests || tr.Bytes > bytes || tr.Bytes < (bytes-sizes)/2 {
			t.Errorf("%s: %d requests of %d bytes, %d of them up to %d by sizes, %d by latencies", name, tr.Requests, tr.Bytes, sizes, bytes, latencies)
		}
		if tr.InFlight > tr.MaxInFlight || tr.Requests > 0 && tr.MaxInFlight == 0 || tr.Errors > tr.Requests || int64(tr.Largest) > tr.Sizes.Quantile(1) {
			t.Errorf("%s: %+v", name, tr)
		}
	}
	if s.Read.Requests+s.Write.Requests > s.Requests || s.Credits > s.MaxCredits || s.MaxInFlight < s.Read.MaxInFlight {
		t.Errorf("%+v", s)
	}
}

// TestStats writes, reads, and reads ahead for nothing, and compares what was counted
// with what was done.
func TestStats(t *testing.T) {
	const size, unit, block = 6<<20 + 5, 1 << 20, 64 << 10
	srv := sambatest.Start(t, sambatest.Config{})
	data := randomBytes(size)
	options := "rsize=1M,wsize=1M"
	stats := func(fsys *FS) Stats {
		t.Helper()
		s := fsys.Stats()
		plausible(t, s)
		return s
	}

	fsys := dial(t, sambaURL(srv), options)
	if s := stats(fsys); s.Server != srv.Addr || s.Dialect != "3.1.1" || s.Cipher != "" || s.Guest || s.RTT <= 0 || s.MaxRead != 8<<20 || s.MaxWrite != 8<<20 || s.Cache.Cached != 0 {
		t.Errorf("at first: %+v", s)
	}
	f := open(t, fsys, "a", os.O_RDWR|os.O_CREATE)
	granted(t, f)
	for off := 0; off < size; off += block {
		f.WriteAt(data[off:min(off+block, size)], int64(off))
	}
	if s := stats(fsys); s.Cache.Dirty != size || s.Cache.Cached < size || s.Write.Requests != 0 {
		t.Errorf("written: %+v, %d requests", s.Cache, s.Write.Requests)
	}
	for what, info := range map[string]func() (os.FileInfo, error){
		"File.Stat": f.Stat,
		"FS.Stat":   func() (os.FileInfo, error) { return fsys.Stat("a") },
		"FS.Lstat":  func() (os.FileInfo, error) { return fsys.Lstat("a") },
		"FS.ReadDir": func() (os.FileInfo, error) {
			entries, err := fsys.ReadDir(".")
			if err != nil {
				return nil, err
			}
			return entries[0].Info()
		},
	} {
		if info, err := info(); err != nil || info.Size() != size {
			t.Errorf("%s of what is dirty: %v, %v; want size %d", what, info, err, size)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	s := stats(fsys)
	if s.Cache.Dirty != 0 || s.Cache.Cached < size || s.Write.Requests != 7 || s.Write.Bytes != size || s.Write.Largest != unit || s.Write.Errors != 0 || s.Write.Sizes[0] != (Bucket[int64]{8, 1}) || s.Write.Sizes[1] != (Bucket[int64]{unit, 6}) {
		t.Errorf("synced: %+v, %+v", s.Cache, s.Write)
	}
	p := make([]byte, block)
	for range 2 {
		f.Seek(0, io.SeekStart)
		for {
			if _, err := f.Read(p); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	calls := int64(2 * ((size+block-1)/block + 1)) // and one that finds the end
	if s := stats(fsys); s.Cache.Hits != calls || s.Cache.Misses != 0 || s.Read.Requests != 0 || s.Cache.Ahead != 0 {
		t.Errorf("read where it is kept, by %d calls: %+v, %d requests", calls, s.Cache, s.Read.Requests)
	}
	shut(t, f)

	// By another client, which has to fetch it.
	cache, err := NewCache(CacheConfig{Size: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(srv.Dir, "big"), make([]byte, 128<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	fsys = dialWith(t, sambaURL(srv), options, cache)
	f = open(t, fsys, "a", os.O_RDONLY)
	granted(t, f)
	var got bytes.Buffer
	calls = 0
	for {
		n, err := f.Read(p)
		calls++
		if got.Write(p[:n]); err != nil {
			break
		}
	}
	s = stats(fsys)
	if !bytes.Equal(got.Bytes(), data) || s.Read.Bytes != size || s.Read.Errors != 0 || s.Write.Requests != 0 {
		t.Errorf("fetched: %d bytes, %+v", got.Len(), s.Read)
	}
	if c := s.Cache; c.Hits+c.Misses != calls || c.Misses == 0 || c.Ahead < size/2 || c.AheadUsed != c.Ahead || c.AheadWasted != 0 || c.Evicted != 0 {
		t.Errorf("fetched by %d calls: %+v", calls, c)
	}
	shut(t, f)

	// The start of a file, and no more of what was read ahead.
	f = open(t, fsys, "big", os.O_RDONLY)
	granted(t, f)
	for range 64 {
		if _, err := f.Read(p); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, f)
	s = stats(fsys)
	if s.Cache.Ahead <= s.Cache.AheadUsed {
		t.Errorf("nothing was read ahead for nothing: %+v", s.Cache)
	}
	if err := fsys.Close(); err != nil {
		t.Error(err)
	}
	if c := cache.Stats(); c.Cached != 0 || c.AheadUsed+c.AheadWasted != c.Ahead || c.AheadWasted == 0 || c.AheadUsed != s.Cache.AheadUsed {
		t.Errorf("closed: %+v", c)
	}
	if err := cache.Close(); err != nil {
		t.Error(err)
	}
}

// TestErrorsAreCounted has the server refuse to read and to write.
func TestErrorsAreCounted(t *testing.T) {
	srv := startServer(t, smbtest.Config{})
	srv.WriteFile("a", make([]byte, 1000))
	fsys := dial(t, srv.URL, "")
	f := open(t, fsys, "a", os.O_RDWR)
	granted(t, f)
	refused := smbtest.Fault{Status: ntstatus.AccessDenied}
	srv.SetFaults(func(r smbtest.Request) smbtest.Fault {
		if r.Command == "READ" || r.Command == "WRITE" {
			return refused
		}
		return smbtest.Fault{}
	})
	if _, err := f.ReadAt(make([]byte, 10), 0); err == nil {
		t.Error("ReadAt succeeded")
	}
	f.WriteAt(make([]byte, 10), 0)
	if err := f.Sync(); err == nil {
		t.Error("Sync succeeded")
	}
	s := fsys.Stats()
	plausible(t, s)
	if s.Read.Errors != 1 || s.Read.Requests != 1 || s.Write.Errors != 1 || s.Write.Requests != 1 || s.Read.Bytes != 0 || s.Write.Bytes != 0 || s.Cache.Dirty != 0 {
		t.Errorf("read %+v, write %+v, %+v", s.Read, s.Write, s.Cache)
	}
	srv.SetFaults(nil)
	shut(t, f)
}
