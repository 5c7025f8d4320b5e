package pagewire

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

const (
	smallBlock = 4 << 10
	manyBlocks = 64 << 10 // 256 MiB
	wholeSize  = manyBlocks * smallBlock
	oneRequest = 1 << 20
)

// label marks a block, so that none passes for another.
func label(block []byte, i int64) {
	binary.LittleEndian.PutUint64(block, uint64(i))
	binary.LittleEndian.PutUint64(block[len(block)-8:], ^uint64(i))
}

func labelled(block []byte, i int64) bool {
	return binary.LittleEndian.Uint64(block) == uint64(i) && binary.LittleEndian.Uint64(block[len(block)-8:]) == ^uint64(i)
}

// counting is a client of a Samba server, whose requests are counted there.
type counting struct {
	t      *testing.T
	srv    *sambatest.Server
	fs     *FS
	before sambatest.Counters
}

func countAt(t *testing.T, srv *sambatest.Server, options string) *counting {
	t.Helper()
	before, err := srv.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &counting{t, srv, dial(t, sambaURL(srv), options), before}
}

// end closes the client, and returns what the server has counted.
func (c *counting) end() sambatest.Counters {
	c.t.Helper()
	if err := c.fs.Close(); err != nil {
		c.t.Error(err)
	}
	after, err := c.srv.Profile(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return after.Since(c.before)
}

// TestSmallBlocksMakeLargeRequests writes and reads a file as dd does, 4 KiB at a
// time, and reads it here and there.
func TestSmallBlocksMakeLargeRequests(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	const most = wholeSize / oneRequest * 105 / 100
	block := make([]byte, smallBlock)

	c := countAt(t, srv, "wsize=1M")
	f := open(t, c.fs, "big", os.O_WRONLY|os.O_CREATE)
	granted(t, f)
	for i := range int64(manyBlocks) {
		label(block, i)
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, f)
	own := c.fs.Stats()
	n := c.end()
	if got := n["smb2_write_count"]; got > most || n["smb2_write_inbytes"] < wholeSize {
		t.Errorf("writing took %d requests of %d bytes, want %d at most", got, n["smb2_write_inbytes"], most)
	}
	if own.Write.Requests != n["smb2_write_count"] || own.Write.Bytes != wholeSize || own.Write.Largest != oneRequest || own.Cache.Dirty != 0 {
		t.Errorf("counted here: %+v, dirty %d", own.Write, own.Cache.Dirty)
	}
	if info, err := os.Stat(filepath.Join(srv.Dir, "big")); err != nil || info.Size() != wholeSize {
		t.Fatalf("the server has %v, %v", info, err)
	}

	c = countAt(t, srv, "rsize=1M")
	f = open(t, c.fs, "big", os.O_RDONLY)
	granted(t, f)
	for i := int64(0); ; i++ {
		if _, err := io.ReadFull(f, block); err == io.EOF && i == manyBlocks {
			break
		} else if err != nil || !labelled(block, i) {
			t.Fatalf("block %d: %v, or not it", i, err)
		}
	}
	shut(t, f)
	own = c.fs.Stats()
	n = c.end()
	if got := n["smb2_read_count"]; got > most {
		t.Errorf("reading took %d requests, want %d at most", got, most)
	}
	if s := own.Cache; own.Read.Requests != n["smb2_read_count"] || own.Read.Largest != oneRequest || s.Hits < manyBlocks*95/100 || s.Ahead < wholeSize*9/10 || s.AheadUsed < s.Ahead*95/100 {
		t.Errorf("counted here: %+v, %+v", own.Read, s)
	}

	const some = 2000
	c = countAt(t, srv, "rsize=1M")
	f = open(t, c.fs, "big", os.O_RDONLY)
	granted(t, f)
	r := rand.New(rand.NewPCG(5, 6))
	seen := map[int64]bool{}
	for range some {
		i := r.Int64N(manyBlocks)
		seen[i] = true
		if _, err := f.ReadAt(block, i*smallBlock); err != nil || !labelled(block, i) {
			t.Fatalf("block %d: %v, or not it", i, err)
		}
	}
	for i := range seen { // which is all kept
		if _, err := f.ReadAt(block, i*smallBlock); err != nil || !labelled(block, i) {
			t.Fatalf("block %d, kept: %v, or not it", i, err)
		}
	}
	shut(t, f)
	own = c.fs.Stats()
	n = c.end()
	asked := int64(len(seen)) * smallBlock
	if got := n["smb2_read_outbytes"]; got < asked || got > asked*105/100 {
		t.Errorf("%d bytes asked for here and there made the server send %d", asked, got)
	}
	if got := own.Read.Bytes; got < asked || got > asked*105/100 || own.Cache.Hits < int64(len(seen))*95/100 {
		t.Errorf("counted here: %d bytes read, %+v", own.Read.Bytes, own.Cache)
	}
}

// TestSmallBlocksHereAndThere writes 4 KiB at a time in a jumble: what lies together in
// the end goes out together.
func TestSmallBlocksHereAndThere(t *testing.T) {
	srv := sambatest.Start(t, sambatest.Config{})
	c := countAt(t, srv, "wsize=1M,cachesize=256M")
	f := open(t, c.fs, "jumble", os.O_RDWR|os.O_CREATE)
	granted(t, f)
	const size = 12 << 20 // below what is written by itself
	block := make([]byte, smallBlock)
	for _, i := range rand.New(rand.NewPCG(7, 8)).Perm(size / smallBlock) {
		label(block, int64(i))
		if _, err := f.WriteAt(block, int64(i)*smallBlock); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(f.Sync(), f.Close())
	n := c.end()
	if got := n["smb2_write_count"]; err != nil || got != size/oneRequest {
		t.Errorf("%d MiB in a jumble took %d requests, %v", size>>20, got, err)
	}
	data, err := os.ReadFile(filepath.Join(srv.Dir, "jumble"))
	if err != nil || len(data) != size {
		t.Fatalf("the server has %d bytes, %v", len(data), err)
	}
	for i := range int64(size / smallBlock) {
		if !labelled(data[i*smallBlock:(i+1)*smallBlock], i) {
			t.Fatalf("the server has something else for block %d", i)
		}
	}
}
