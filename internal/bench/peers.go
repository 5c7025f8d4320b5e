// Package bench measures pagewire beside other clients on this machine.
//
// It owns the workloads, the order of the runs, the arithmetic and the tables.
// Everybody is measured alike: a process of its own, from its start to its end,
// against a real server whose counters must agree with what was asked for.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/sambatest"
)

// Config says what Peers measures. Zero fields but Self and Out have defaults.
type Config struct {
	Self   string    // our own executable
	Out    io.Writer // tables
	JSON   io.Writer // every single run, one object a line; nil: nowhere
	Rounds int       // of each case: 7, or 3 if quick
	Size   int64     // of the file: 1 GiB, or 256 MiB if quick
	Files  int       // in the tree and the folder: 10,000, or 2,000 if quick
	Quick  bool
	Only   []string // see Words; cases need one of those given for each aspect
}

// The aspects of a case, and the words for them.
var aspects = [5][]string{
	{"read", "write", "upload", "download", "list", "stream-read", "stream-write", "cached"},
	{"plain", "signed", "sealed"},
	{"default", "tuned"}, // the server's settings
	{"local", "20ms"},    // the link
	{"small"},            // the calls of a program that streams, unless they are large
}

// Words returns what Config.Only may hold.
func Words() []string { return slices.Concat(aspects[:]...) }

const (
	fileSize = 4 << 10 // of the files in trees
	farSize  = 256 << 20
	farRTT   = 20 * time.Millisecond
)

// workload is one case: what to do, with which server, over which link.
type workload struct {
	op, protection, setting, link string
	calls                         string // "small" or ""
}

func (w workload) String() string {
	where := map[string]string{"local": "loopback", "20ms": "20 ms round trip"}[w.link]
	op := w.op
	if w.calls != "" {
		op += fmt.Sprintf(" in calls of %d KiB", w.callSize()>>10)
	}
	return fmt.Sprintf("%s, %s, %s server, %s", op, w.protection, w.setting, where)
}

// workloads lists all cases, grouped by what the server needs.
func workloads() (all []workload) {
	for _, setting := range aspects[2] {
		for _, protection := range aspects[1] {
			add := func(op, link, calls string) {
				all = append(all, workload{op, protection, setting, link, calls})
			}
			add("read", "local", "")
			add("write", "local", "")
			if protection == "plain" {
				add("stream-read", "local", "")
				add("stream-write", "local", "")
			}
			if protection == "plain" && setting == "default" {
				add("stream-read", "local", "small")
				add("stream-write", "local", "small")
				add("cached", "local", "")
				add("read", "20ms", "")
				add("write", "20ms", "")
				add("upload", "local", "")
				add("download", "local", "")
				add("list", "local", "")
			}
		}
	}
	return all
}

// chosen reports whether only lets the case through.
func (w workload) chosen(only []string) bool {
	for i, word := range []string{w.op, w.protection, w.setting, w.link, w.calls} {
		mentioned := slices.ContainsFunc(aspects[i], func(a string) bool { return slices.Contains(only, a) })
		if mentioned && !slices.Contains(only, word) {
			return false
		}
	}
	return true
}

// trees reports whether the case is about many files.
func (w workload) trees() bool { return w.op == "upload" || w.op == "download" || w.op == "list" }

// size returns how many bytes the case moves.
func (b *bench) size(w workload) int64 {
	switch {
	case w.trees():
		return int64(b.Files) * fileSize
	case w.op == "cached":
		return b.kept
	case w.link == "20ms" || w.calls == "small":
		return b.far
	}
	return b.Size
}

// bench is one run of Peers.
type bench struct {
	Config
	dir     string // in memory: everything local
	far     int64  // size of the file for the far link, and for small calls
	kept    int64  // size of the file that is read again
	driver  string // the program that drives go-smb2
	results []result
}

// Peers starts Samba servers and copies files to and from them with pagewire,
// smbclient and cloudsoda/go-smb2 in alternation, and prints how they compare; so
// it does with pagewire through its cache and past it.
func Peers(ctx context.Context, cfg Config) (err error) {
	b := &bench{Config: cfg}
	if err := b.defaults(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if why := missing(); why != "" {
		return errors.New("bench: " + why)
	}
	if b.dir, err = os.MkdirTemp(memory(), "pagewire-bench-"); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.run(ctx); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

func (b *bench) defaults() error {
	for _, word := range b.Only {
		if !slices.Contains(Words(), word) {
			return fmt.Errorf("nothing is called %q; there are %s", word, strings.Join(Words(), ", "))
		}
	}
	full := Config{Rounds: 7, Size: 1 << 30, Files: 10_000}
	if b.Quick {
		full = Config{Rounds: 3, Size: 256 << 20, Files: 2_000}
	}
	if b.Rounds == 0 {
		b.Rounds = full.Rounds
	}
	if b.Size == 0 {
		b.Size = full.Size
	}
	if b.Files == 0 {
		b.Files = full.Files
	}
	b.far, b.kept = min(b.Size, farSize), min(b.Size, keptSize)
	return nil
}

// machine says where the figures come from.
func machine(ctx context.Context) string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	samba, _ := exec.CommandContext(ctx, "smbclient", "--version").Output()
	return fmt.Sprintf("%d CPUs, %s %s, %s, Samba %s", runtime.NumCPU(), runtime.GOOS, bytes.TrimSpace(kernel),
		runtime.Version(), strings.TrimPrefix(strings.TrimSpace(string(samba)), "Version "))
}

// memory returns a folder on tmpfs, if there is one.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.driver, err = buildDriver(ctx, b.dir); err != nil {
		return err
	}
	if err := b.makeFiles(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(b.Out, "%s\n\n", machine(ctx)); err != nil {
		return err
	}
	var s *server
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, w := range workloads() {
		if !w.chosen(b.Only) {
			continue
		}
		if s == nil || s.protection != w.protection || s.setting != w.setting {
			if s != nil {
				if err := s.Close(); err != nil {
					return err
				}
			}
			if s, err = b.startServer(ctx, w); err != nil {
				return err
			}
		}
		r, err := b.measureAll(ctx, s, w)
		if err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
		b.results = append(b.results, r)
		if err := r.print(b.Out); err != nil {
			return err
		}
	}
	return summarize(b.Out, b.results)
}

// Names in the share and in bench.dir.
const (
	bigName     = "big"     // the file to read
	farName     = "far"     // the file to read from afar, or in small calls
	treeName    = "tree"    // the tree to copy
	listName    = "list"    // the folder to list
	writtenName = "written" // what a client writes, removed before
)

// makeFiles makes the local originals.
func (b *bench) makeFiles() error {
	for name, size := range map[string]int64{bigName: b.Size, farName: b.far, keptName: b.kept, witnessName: witnessSize} {
		if err := makeFile(filepath.Join(b.dir, name), size); err != nil {
			return err
		}
	}
	const perFolder = 100
	for i := range b.Files {
		folder := filepath.Join(b.dir, treeName, fmt.Sprintf("folder-%03d", i/perFolder))
		if i%perFolder == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := makeFile(filepath.Join(folder, fmt.Sprintf("file-%05d.txt", i)), fileSize); err != nil {
			return err
		}
	}
	return nil
}

// makeFile fills a file with bytes that neither repeat nor compress.
func makeFile(name string, size int64) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
	return err
}

// server is a Samba server with everything to read in its share.
type server struct {
	*sambatest.Server
	protection, setting string
	paths               map[string]path // by client, as smbd sees it
}

// startServer starts the server that w needs, and looks at how each client
// talks to it.
func (b *bench) startServer(ctx context.Context, w workload) (*server, error) {
	var c sambatest.Config
	switch w.protection {
	case "signed":
		c.Global = append(c.Global, "server signing = mandatory")
	case "sealed":
		c.Global = append(c.Global, "smb encrypt = required")
	}
	if w.setting == "tuned" {
		c.Global = append(c.Global, "use sendfile = yes", "aio read size = 0")
	}
	run, err := sambatest.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &server{Server: run, protection: w.protection, setting: w.setting, paths: map[string]path{}}
	if err := b.fill(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, c := range clients(b) {
		if s.paths[c.name], err = b.witness(ctx, s, c); err != nil {
			return nil, errors.Join(fmt.Errorf("%s, %s server: %s: %w", s.protection, s.setting, c.name, err), s.Close())
		}
		if s.paths[c.name] == (path{}) {
			s.paths[c.name] = s.paths[parallel] // the same program, which talks one way
		}
	}
	return s, nil
}

// fill puts into the share what clients read.
func (b *bench) fill(s *server) error {
	for _, name := range []string{bigName, farName, keptName, witnessName} {
		if err := copyFile(filepath.Join(s.Dir, name), filepath.Join(b.dir, name)); err != nil {
			return err
		}
	}
	if s.protection != "plain" || s.setting != "default" {
		return nil // only reads and writes are measured
	}
	if err := os.CopyFS(filepath.Join(s.Dir, treeName), os.DirFS(filepath.Join(b.dir, treeName))); err != nil {
		return err
	}
	folder := filepath.Join(s.Dir, listName)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for i := range b.Files {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file-%05d.txt", i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	_, err = io.Copy(dst, src)
	return err
}

// measureAll runs all rounds of a case. The first in the order changes with
// each round, so that nobody always comes after the same client.
func (b *bench) measureAll(ctx context.Context, s *server, w workload) (r result, err error) {
	r = result{workload: w, bytes: b.size(w), paths: s.paths}
	e := endpoint{Server: s.Server, addr: s.Addr}
	if w.trees() {
		r.files = b.Files
	}
	if w.link == "20ms" {
		proxy, err := netsim.New(netsim.Config{RTT: farRTT}).Proxy(s.Addr)
		if err != nil {
			return r, err
		}
		defer func() {
			err = errors.Join(err, proxy.Close())
			late := proxy.Report().Late.Round(time.Microsecond)
			r.note = fmt.Sprintf("the link moved bytes %v late on average", late)
		}()
		e.addr = proxy.Addr()
	}
	var takePart []client
	for _, c := range clients(b) {
		if c.command(e, w) != nil {
			takePart = append(takePart, c)
			r.clients = append(r.clients, c.name)
		}
	}
	if w.op == "cached" {
		r.clients = append(r.clients, memmove)
	}
	for round := range b.Rounds {
		for i := range takePart {
			c := takePart[(round+i)%len(takePart)]
			m, err := b.measure(ctx, e, w, c, r.bytes)
			if err != nil {
				return r, fmt.Errorf("round %d: %s: %w", round+1, c.name, err)
			}
			m.Round = round + 1
			runs := []run{m}
			if w.op == "cached" {
				runs = m.passes()
			}
			for _, m := range runs {
				r.runs = append(r.runs, m)
				if err := m.write(b.JSON); err != nil {
					return r, err
				}
			}
		}
	}
	return r, nil
}
