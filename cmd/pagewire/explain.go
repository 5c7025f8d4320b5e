package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

const (
	// searched is how many entries of a folder are looked at for a file to read.
	searched = 10000
	// writeAtMost is how much --write writes, if it does not take too long.
	writeAtMost = 64 << 20
)

func (r *run) explainCommand() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "explain [flags] SOURCE",
		Short: "Measure a server and tell what limits its speed",
		Long: `Measure a server for a few seconds and tell what limits its speed, and what to do
about it. Everything printed was measured or negotiated in this run.

SOURCE is a file to read, or a folder, of which the largest file is read. With
--write a temporary file of at most 64 MiB is written there, read and removed.`,
		Example: `  pagewire explain //nas/media
  pagewire explain --write //nas/scratch
  pagewire explain --json //nas/media/raw/a.mov`,
		Args: operands(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parsePlace(args[0])
			if err == nil && !p.remote {
				_, err = parseRemote("explain", args[0])
			}
			if err != nil {
				return err
			}
			return p.error("explain", r.explain(cmd.Context(), p, write))
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write a temporary file, and read that")
	return cmd
}

// explanation is what explain prints.
type explanation struct {
	Server   string  `json:"server"`
	Dialect  string  `json:"dialect"`
	MaxWrite int     `json:"max_write"`
	Plan     plan    `json:"plan"`
	Read     float64 `json:"read"`  // bytes per second; 0: not measured
	Write    float64 `json:"write"` // likewise
	Limit    string  `json:"limit,omitempty"`
	Advice   string  `json:"advice,omitempty"`
	NoData   string  `json:"no_data,omitempty"` // why nothing was read
	Cached   *cached `json:"cached,omitempty"`  // what may be kept of the file
	measurement
}

// cached says what may be kept of a file without asking the server each time.
type cached struct {
	Reads  bool `json:"reads"`
	Writes bool `json:"writes"`
}

func (c cached) String() string {
	switch {
	case c.Writes:
		return "may keep what is read and what is written"
	case c.Reads:
		return "may keep what is read; somebody else has the file open, too, or the server grants no more"
	}
	return "may keep nothing: the server grants no lease or oplock for this file now, or the option cache says so"
}

// plan is what pagewire keeps in flight to read a large file.
type plan struct {
	Requests int `json:"requests"`
	Size     int `json:"size"`
}

func (r *run) explain(ctx context.Context, p place, write bool) error {
	c, err := r.connect(ctx, p)
	if err != nil {
		return err
	}
	pr := probe{ping: c.client.Ping, stats: c.client.Stats}
	e := explanation{NoData: "no share was named to read from"}
	if p.source.Share != "" {
		fsys, err := r.open(ctx, p)
		if err != nil {
			return err
		}
		pr.stats = fsys.Stats
		s, err := findSubject(ctx, fsys, p.path, write)
		if err != nil {
			return err
		}
		defer s.close()
		pr.read, pr.size = s.read, s.size
		e.NoData, e.Write, e.Cached = s.noData, s.written, s.cached()
	}
	if err := e.run(ctx, pr); err != nil {
		return err
	}
	if r.json {
		return r.printJSON(e)
	}
	_, err = io.WriteString(r.out, e.String())
	return err
}

// run measures and judges.
func (e *explanation) run(ctx context.Context, pr probe) error {
	m, err := pr.measure(ctx)
	if err != nil {
		return err
	}
	s := pr.stats()
	m.SameHost = sameHost(ctx, s.Server)
	e.measurement = m
	e.Server, e.Dialect, e.MaxWrite = s.Server, s.Dialect, s.MaxWrite
	if len(m.Steps) > 0 {
		e.Read = m.best().Rate
		e.Plan = plan{s.Read.Window, s.Read.Size}
	}
	e.Limit, e.Advice = verdict(m)
	return nil
}

func (e *explanation) String() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("server", "%s, SMB %s, RTT %s", printable(e.Server), e.Dialect, delay(e.RTT))
	signed, sealed := "not signed", "not sealed"
	if e.Signing != "" {
		signed = "signed " + e.Signing
	}
	if e.Sealing != "" {
		signed, sealed = "sealed "+e.Sealing, "which signs too"
	}
	line("security", "%s, %s", signed, sealed)
	line("limits", "read %s, write %s, %s", exactSize(int64(e.MaxRead)), exactSize(int64(e.MaxWrite)), count(e.Credits, "credit"))
	if e.Cached != nil {
		line("cache", "%s", e.Cached)
	}
	if e.Read == 0 {
		line("measured", "no data: %s", e.NoData)
		return b.String()
	}
	if e.Plan.Requests > 0 {
		line("plan", "%d × %s in flight", e.Plan.Requests, exactSize(int64(e.Plan.Size)))
	}
	measured := "read " + rate(e.Read)
	if e.Write > 0 {
		measured += "; write " + rate(e.Write)
	}
	if e.Burst > 1.1*e.Read && (e.Limit == byCredits || e.Limit == byDelay || e.Limit == byMaxRead) {
		measured += "; link " + rate(e.Burst)
	}
	line("measured", "%s", measured)
	fmt.Fprintf(&b, "Limited by %s: %s\n", e.Limit, e.Advice)
	return b.String()
}

// subject is the file that explain reads.
type subject struct {
	file    *pagewire.File
	size    int64
	written float64 // the rate at which it was written, if it was
	noData  string  // why there is none
	remove  func()  // if it is temporary
}

func (s *subject) read(ctx context.Context, p []byte, off int64) (int, error) {
	return s.file.ReadAtContext(ctx, p, off)
}

func (s *subject) cached() *cached {
	if s.file == nil {
		return nil
	}
	reads, writes := s.file.Cached()
	return &cached{reads, writes}
}

func (s *subject) close() {
	if s.file != nil {
		s.file.Close()
	}
	if s.remove != nil {
		s.remove()
	}
}

// findSubject opens the file name, or the largest one in the folder name, or,
// if it may write, a temporary one.
func findSubject(ctx context.Context, fsys *pagewire.FS, name string, write bool) (*subject, error) {
	info, err := fs.Stat(fsys.WithContext(ctx), name)
	if err != nil {
		return nil, err
	}
	dir := name
	if !info.IsDir() {
		dir = path.Dir(name)
	}
	switch {
	case write:
		return writeSubject(ctx, fsys, dir)
	case info.IsDir():
		if name, info, err = largestFile(ctx, fsys, name); err != nil {
			return nil, err
		}
		if name == "" {
			return &subject{noData: "no file here to read; name one, or let --write write one"}, nil
		}
	}
	if info.Size() == 0 {
		return &subject{noData: fmt.Sprintf("%s is empty; name another file, or let --write write one", printable(name))}, nil
	}
	f, err := fsys.OpenFile(ctx, name, os.O_RDONLY|pagewire.O_DIRECT, 0)
	return &subject{file: f, size: info.Size()}, err
}

// largestFile returns the largest file in dir, or no name if there is none with
// anything in it.
func largestFile(ctx context.Context, fsys *pagewire.FS, dir string) (name string, info fs.FileInfo, err error) {
	n := 0
	for e, err := range fsys.Entries(ctx, dir) {
		if err != nil {
			return "", nil, err
		}
		i, err := e.Info()
		if err == nil && i.Mode().IsRegular() && i.Size() > 0 && (info == nil || i.Size() > info.Size()) {
			name, info = path.Join(dir, e.Name()), i
		}
		if n++; n == searched {
			break
		}
	}
	return name, info, nil
}

// writeSubject writes a temporary file, for about a second.
func writeSubject(ctx context.Context, fsys *pagewire.FS, dir string) (*subject, error) {
	name := path.Join(dir, ".pagewire-explain-"+strings.ToLower(rand.Text()[:10]))
	f, err := fsys.OpenFile(ctx, name, os.O_RDWR|os.O_CREATE|os.O_EXCL|pagewire.O_DIRECT, 0o600)
	if err != nil {
		return nil, err
	}
	s := &subject{file: f, remove: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		fsys.Remove(ctx, name)
	}}
	defer bind(ctx, f)()
	random := make([]byte, 1<<20) // which no server stores or sends as less
	rand.Read(random)
	for n := int64(256 << 10); n <= writeAtMost && err == nil; n *= 4 {
		if _, err = f.Seek(0, io.SeekStart); err != nil {
			break
		}
		start := time.Now()
		s.size, err = f.ReadFrom(io.LimitReader(repeat(random), n))
		took := max(time.Since(start), 1)
		s.written = float64(s.size) / took.Seconds()
		if took > 400*time.Millisecond {
			break
		}
	}
	if err != nil {
		s.close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return s, nil
}

// repeat reads its bytes over and over.
type repeat []byte

func (r repeat) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], r)
	}
	return n, nil
}

// sameHost reports whether server, as host:port, is an address of this machine.
func sameHost(ctx context.Context, server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range found {
		if ip.IsLoopback() {
			return true
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.IP(ip.Unmap().AsSlice())) {
				return true
			}
		}
	}
	return false
}
