package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

const (
	demoFile  = "demo.bin"
	demoShare = "demo"
)

func (r *run) demoCommand() *cobra.Command {
	var sizeFlag string
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Copy a file to a server and back, without having a server",
		Long: `Start an SMB server inside this process, in front of a temporary folder, copy a
file there and back, verify both copies, and tell how fast that was and what
limited it. The folder is in memory if there is room, else where TMPDIR says, and
takes twice the size of the file. It is removed in the end.`,
		Example: `  pagewire demo
  pagewire demo --size 256M
  pagewire demo -o seal`,
		Args: operands(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			size, err := parseSize(sizeFlag)
			if err != nil {
				return err
			}
			return r.demo(cmd.Context(), size)
		},
	}
	cmd.Flags().StringVar(&sizeFlag, "size", "1G", "`SIZE` of the file, in bytes or with K, M or G")
	return cmd
}

// parseSize reads 4096, 64K, 256M, 1G.
func parseSize(s string) (int64, error) {
	number, shift := s, 0
	if n := len(s) - 1; n >= 0 {
		if i := strings.IndexByte("KMGT", s[n]&^0x20); i >= 0 {
			number, shift = s[:n], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return 0, usagef("size %q is not a number above 0, with K, M, G or T behind it", s)
	}
	return n << shift, nil
}

// passage is one way of the demo.
type passage struct {
	Bytes    int64         `json:"bytes"`
	Seconds  float64       `json:"seconds"`
	Rate     float64       `json:"rate"`
	Requests int64         `json:"requests"` // READs or WRITEs that the server counted
	Sizes    map[int]int64 `json:"sizes"`    // how many of them had that many bytes
}

// demoResult is what demo --json prints.
type demoResult struct {
	Write       passage     `json:"write"`
	Read        passage     `json:"read"`
	Again       passage     `json:"again"` // from the cache
	MaxInFlight int         `json:"max_in_flight"`
	Connection  explanation `json:"connection"`
}

func (r *run) demo(ctx context.Context, size int64) error {
	parent, err := roomFor(2*size + 16<<20)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "pagewire-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"here", "there"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	r.printf("An SMB server inside this process shares %s; making %s of data.\n", filepath.Join(dir, "there"), exactSize(size))
	here := filepath.Join(dir, "here", demoFile)
	if err := writeDemoFile(ctx, here, size); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	const user, password = "user", "pass"
	r.credentials = func(context.Context) (pagewire.Credentials, error) { // whatever the environment has
		return pagewire.Credentials{User: user, Password: pagewire.NewSecret(password)}, nil
	}
	server := smbtest.NewServer(smbtest.Config{
		Users:  map[string]string{user: password},
		Shares: []smbtest.Share{{Name: demoShare, Dir: filepath.Join(dir, "there")}},
	})
	defer server.Close()
	// Before the server goes, so that it is not waited for.
	defer r.closeAll(ctx)

	var result demoResult
	there := server.URL + "/" + demoFile
	before := server.Stats()
	if result.Write, err = r.passage(ctx, here, there, size); err != nil {
		return err
	}
	after := server.Stats()
	result.Write.Requests, result.Write.Sizes = newSizes(after.WriteSizes, before.WriteSizes)
	// What comes back is compared with what is there, which is known to be good.
	if err := r.verified(ctx, here, there); err != nil {
		return err
	}
	if err := os.Remove(here); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	before = server.Stats()
	if result.Read, err = r.passage(ctx, there, here, size); err != nil {
		return err
	}
	after = server.Stats()
	result.Read.Requests, result.Read.Sizes = newSizes(after.ReadSizes, before.ReadSizes)
	if err := r.verified(ctx, there, here); err != nil {
		return err
	}
	result.MaxInFlight = after.MaxInFlight
	if result.Again, err = r.again(ctx, there, server.Stats); err != nil {
		return err
	}
	if err := r.explainDemo(ctx, there, &result.Connection); err != nil {
		return err
	}
	if r.json {
		return r.printJSON(result)
	}
	_, err = io.WriteString(r.out, result.String())
	return err
}

// passage copies a file, with a progress bar, and times that.
func (r *run) passage(ctx context.Context, from, to string, size int64) (passage, error) {
	src, dst, c, err := r.demoEnds(ctx, from, to)
	if err != nil {
		return passage{}, err
	}
	defer c.close()
	stop := c.showProgress()
	start := time.Now()
	err = c.all(ctx, []place{src}, dst)
	took := time.Since(start)
	stop()
	return passage{Bytes: size, Seconds: took.Seconds(), Rate: float64(size) / took.Seconds()}, err
}

func (r *run) demoEnds(ctx context.Context, from, to string) (src place, dst target, c *copier, err error) {
	if src, err = parsePlace(from); err != nil {
		return src, dst, nil, err
	}
	p, err := parsePlace(to)
	if err != nil {
		return src, dst, nil, err
	}
	c = newCopier(r, copyOptions{})
	c.events = false
	dst, err = c.target(ctx, p)
	return src, dst, c, p.error("demo", err)
}

// againSize is how much of the demo's file is read once more, at its end, which is
// still in the cache.
const againSize = 64 << 20

// again reads the end of a file that was just read.
func (r *run) again(ctx context.Context, arg string, stats func() smbtest.Stats) (passage, error) {
	p, err := parseRemote("demo", arg)
	if err != nil {
		return passage{}, err
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return passage{}, p.error("demo", err)
	}
	f, err := openRemote(ctx, fsys, p.path)
	if err != nil {
		return passage{}, p.error("demo", err)
	}
	defer f.Close()
	before := stats()
	if _, err = f.Seek(-againSize, io.SeekEnd); err != nil {
		_, err = f.Seek(0, io.SeekStart) // it is smaller than that
	}
	if err != nil {
		return passage{}, p.error("demo", err)
	}
	start := time.Now()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	took := time.Since(start)
	result := passage{Bytes: n, Seconds: took.Seconds(), Rate: float64(n) / took.Seconds()}
	result.Requests, result.Sizes = newSizes(stats().ReadSizes, before.ReadSizes)
	return result, p.error("demo", err)
}

// verified compares a file with its copy.
func (r *run) verified(ctx context.Context, from, to string) error {
	src, dst, c, err := r.demoEnds(ctx, from, to)
	if err != nil {
		return err
	}
	defer c.close()
	t, name, info, err := c.source(ctx, src)
	if err == nil {
		err = compare(ctx, job{src: t, dst: dst.tree, from: name, to: dst.name, info: info}, dst.name)
	}
	return src.error("demo", err)
}

// newSizes is how many requests of which sizes came between two counts.
func newSizes(after, before map[int]int64) (requests int64, sizes map[int]int64) {
	sizes = map[int]int64{}
	for size, n := range after {
		if n -= before[size]; n > 0 {
			sizes[size] = n
			requests += n
		}
	}
	return requests, sizes
}

func (r *run) explainDemo(ctx context.Context, arg string, e *explanation) error {
	p, err := parseRemote("demo", arg)
	if err != nil {
		return err
	}
	c, err := r.connect(ctx, p)
	if err != nil {
		return p.error("demo", err)
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("demo", err)
	}
	s, err := findSubject(ctx, fsys, p.path, false)
	if err != nil {
		return p.error("demo", err)
	}
	defer s.close()
	e.Cached = s.cached()
	return p.error("demo", e.run(ctx, probe{ping: c.client.Ping, read: s.read, size: s.size, stats: fsys.Stats}))
}

func (d demoResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to the server in %.2f s, %s, verified: %s.\n", exactSize(d.Write.Bytes), d.Write.Seconds, rate(d.Write.Rate), d.Write.requests("WRITE"))
	fmt.Fprintf(&b, "%s back from it in %.2f s, %s, verified: %s.\n", exactSize(d.Read.Bytes), d.Read.Seconds, rate(d.Read.Rate), d.Read.requests("READ"))
	fmt.Fprintf(&b, "The last %s of that once more, from the cache: %s, %s.\n", exactSize(d.Again.Bytes), rate(d.Again.Rate), d.Again.requests("READ"))
	fmt.Fprintf(&b, "The server counted these requests, and had up to %d of them at a time.\n\n", d.MaxInFlight)
	b.WriteString(d.Connection.String())
	return b.String()
}

// requests says how many requests of which sizes there were: 1024 WRITE requests of 1 MiB.
func (p passage) requests(kind string) string {
	sizes := slices.SortedFunc(maps.Keys(p.Sizes), func(a, b int) int { return int(p.Sizes[b] - p.Sizes[a]) })
	text := count(p.Requests, kind+" request")
	for i, size := range sizes {
		if i == 2 {
			return text + " and other sizes"
		}
		if len(sizes) == 1 {
			return text + " of " + exactSize(int64(size))
		}
		text += fmt.Sprintf(", %d of %s", p.Sizes[size], exactSize(int64(size)))
	}
	return text
}

// writeDemoFile writes a file of which no two blocks are alike.
func writeDemoFile(ctx context.Context, name string, size int64) error {
	const chunk, block = 1 << 20, 4 << 10
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	buf := make([]byte, chunk)
	rand.NewChaCha8([32]byte{}).Read(buf)
	for off := int64(0); off < size && err == nil; off += chunk {
		for i := 0; i < chunk; i += block {
			binary.LittleEndian.PutUint64(buf[i:], uint64(off)+uint64(i))
		}
		if err = ctx.Err(); err == nil {
			_, err = f.Write(buf[:min(chunk, size-off)])
		}
	}
	return closeKeeping(f, err)
}
