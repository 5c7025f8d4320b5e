package pagecache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/remote/remotetest"
	"pgregory.net/rapid"
)

// TestModel does to a file, through the cache, what a drawn script says, and the same
// to a slice of bytes. See script for what may happen, and modelrun_test.go for what
// has to hold whatever happens. Some scripts, in which nothing fails, are played in
// more than one mode.
func TestModel(t *testing.T) {
	bytes := noise(4 << 20)
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScript(rt)
		s.play(t, rt, bytes)
		if s.faultless() {
			s.mode = (s.mode + 1) % (ReadOnly + 1)
			s.play(t, rt, bytes)
		}
	})
}

// script is what happens: rounds, one after the other, of lanes that run side by side,
// each in a region of its own. So it is known at any time what each byte should be,
// although lanes share pages, opens and the memory.
type script struct {
	seed                 uint64
	page, budget, origin int64 // the file is touched from origin on only
	limit                int64 // and never longer than this
	size                 int64 // at first
	mode, other          Mode  // of the two clients
	file                 FileConfig
	server               remotetest.Config
	opens                int
	rounds               []round
}

func (s *script) faultless() bool {
	return !slices.ContainsFunc(s.rounds, func(r round) bool { return r.faults.read+r.faults.write > 0 })
}

// round is what happens at the same time.
type round struct {
	faults  faults
	lanes   []lane
	recalls []recall
	end     ending
}

type ending uint8

const (
	goOn ending = iota
	syncAll
	rest // until what is dirty has aged
)

// faults is what goes wrong.
type faults struct {
	delay                 time.Duration // of a request at most
	read, write           int           // how many in a hundred fail
	lasting               bool          // failed writes are not to be tried again
	shortRead, shortWrite int           // what a request carries at most
}

type recall struct {
	after time.Duration
	lose  remote.Rights
}

// lane is what one goroutine does.
type lane struct {
	foreign bool // as the other client
	acts    []act
}

type verb uint8

const (
	toRead verb = iota
	toReadOn
	toWrite
	toWriteOn
	toAppend
	toTruncate
	toSync
	toStream
	toReopen
	toForget
	verbs
)

// act is one thing to do.
type act struct {
	verb   verb
	open   int
	off, n int64
	from   int           // where in the noise the bytes are
	cancel time.Duration // 0: never
	pause  time.Duration // before it
}

func (v verb) String() string {
	return [...]string{"read", "read on", "write", "write on", "append", "truncate", "sync", "stream", "reopen", "forget"}[v]
}

const (
	chunkBorder = int64(maxRun)
	allRights   = remote.CacheRead | remote.CacheWrite | remote.CacheHandle
)

func drawScript(t *rapid.T) *script {
	s := &script{
		seed: rapid.Uint64().Draw(t, "seed"),
		page: 1 << rapid.SampledFrom([]int{12, 12, 12, 13, 14, 16, 18, 20}).Draw(t, "page"),
		mode: rapid.SampledFrom([]Mode{Strict, Strict, Strict, Strict, None, Loose, ReadOnly}).Draw(t, "mode"),
	}
	s.other = rapid.SampledFrom([]Mode{Strict, None}).Draw(t, "mode of the other")
	s.budget = s.page * rapid.SampledFrom([]int64{minBudget, 7, 16, 64}).Draw(t, "pages")
	s.budget = min(s.budget, max(minBudget*s.page, 7<<20))
	s.limit = min(max(3*s.page, rapid.SampledFrom([]int64{100, 20_000, 100_000, 500_000}).Draw(t, "limit")), 16*s.page)
	if rapid.IntRange(0, 15).Draw(t, "far") == 15 { // across the border of chunks
		s.origin = chunkBorder - min(s.limit/2/s.page, 2)*s.page - 100
		s.limit += s.origin
	}
	s.size = s.origin + rapid.Int64Range(0, s.limit-s.origin).Draw(t, "size")
	s.file = FileConfig{
		Ahead:    rapid.SampledFrom([]int64{0, 0, s.page, 5000, 8 * s.page}).Draw(t, "ahead"),
		NoCommit: rapid.Bool().Draw(t, "no commit"),
	}
	request := func(what string) int {
		return rapid.SampledFrom([]int{1 << 20, int(s.page), int(2 * s.page), int(s.page / 2), 5000, 64 << 10}).Draw(t, what)
	}
	s.server = remotetest.Config{
		Limits:  remote.Limits{Read: request("largest read"), Write: request("largest write")},
		Window:  remote.Window{Requests: rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "requests")},
		Rights:  rapid.SampledFrom([]remote.Rights{allRights, allRights, allRights, remote.CacheRead, 0}).Draw(t, "rights"),
		Sending: rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond}).Draw(t, "sending"),
	}
	s.opens = rapid.IntRange(1, 3).Draw(t, "opens")
	s.rounds = rapid.SliceOfN(rapid.Custom(s.drawRound), 1, 8).Draw(t, "rounds")
	return s
}

func (s *script) drawRound(t *rapid.T) (r round) {
	r.faults.delay = rapid.SampledFrom([]time.Duration{0, time.Millisecond, 50 * time.Millisecond}).Draw(t, "delay")
	switch rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 4}).Draw(t, "faults") {
	case 1:
		r.faults.shortRead, r.faults.shortWrite = rapid.IntRange(500, 5000).Draw(t, "short reads"), rapid.IntRange(500, 5000).Draw(t, "short writes")
	case 2:
		r.faults.read = rapid.IntRange(1, 50).Draw(t, "failing reads")
	case 3:
		r.faults.write = rapid.IntRange(1, 50).Draw(t, "busy writes")
	case 4:
		r.faults.write, r.faults.lasting = rapid.IntRange(1, 50).Draw(t, "failing writes"), true
	}
	r.lanes = rapid.SliceOfN(rapid.Custom(s.drawLane), 1, 4).Draw(t, "lanes")
	r.recalls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) recall {
		return recall{after: drawTime(t, "after"), lose: remote.Rights(rapid.IntRange(1, 7).Draw(t, "lose"))}
	}), 0, 3).Draw(t, "recalls")
	r.end = rapid.SampledFrom([]ending{goOn, goOn, syncAll, rest}).Draw(t, "end")
	return r
}

func (s *script) drawLane(t *rapid.T) (l lane) {
	l.foreign = rapid.IntRange(0, 3).Draw(t, "foreign") == 0
	l.acts = rapid.SliceOfN(rapid.Custom(s.drawAct), 1, 8).Draw(t, "acts")
	return l
}

func (s *script) drawAct(t *rapid.T) act {
	a := act{
		verb:  verb(rapid.IntRange(0, int(verbs)-1).Draw(t, "verb")),
		open:  rapid.IntRange(0, 2).Draw(t, "open"),
		n:     rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 3*s.page), rapid.Just(s.page)).Draw(t, "n"),
		from:  rapid.IntRange(0, 1000).Draw(t, "from"),
		pause: drawTime(t, "pause"),
	}
	a.off = rapid.OneOf(
		rapid.Int64Range(0, s.limit-s.origin),
		rapid.Map(rapid.Int64Range(0, (s.limit-s.origin)/s.page), func(i int64) int64 { return i * s.page }),
	).Draw(t, "off")
	if rapid.IntRange(0, 5).Draw(t, "hasty") == 0 {
		a.cancel = time.Microsecond + drawTime(t, "cancel")
	}
	return a
}

func drawTime(t *rapid.T, what string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond}).Draw(t, what)
}

// play plays the script in virtual time.
func (s *script) play(t *testing.T, rt *rapid.T, bytes []byte) {
	p := &player{script: s, rng: rand.New(rand.NewPCG(s.seed, 0)), bytes: bytes}
	synctest.Test(t, func(*testing.T) { p.play() })
	if len(p.problems) > 0 {
		rt.Fatalf("mode %d, page %d, budget %d: %s\n%s", s.mode, s.page, s.budget, p.problems[0], strings.Join(p.trace[max(0, p.traced-80):p.traced], "\n"))
	}
}

var (
	errRead    = errors.New("no such sector")
	errBusy    = errors.New("busy")
	errLasting = fmt.Errorf("made up: %w", syscall.ENOSPC)
)

// player is a script that is played.
type player struct {
	*script
	bytes []byte // noise to write
	hosts [2]*host
	model []byte // as long as limit, with zeros behind the end; each lane has its part of it
	end   int64  // the size; the last lane's
	lanes []*runner

	began time.Time

	mu sync.Mutex
	// guarded by mu
	rng      *rand.Rand
	faults   faults
	problems []string
	trace    []string
	traced   int // how much of trace was there when the first problem was
}

// host is one client.
type host struct {
	fake  *remotetest.Fake
	cache *Cache
	file  *File
	opens []*Open
	heard []bool // by open: that bytes were lost
	lost  int    // writes that failed for good behind everybody's back; guarded by player.mu
}

func (p *player) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.problems = append(p.problems, fmt.Sprintf(format, args...)); len(p.problems) == 1 {
		p.traced = len(p.trace)
	}
}

// note keeps what happened, to be told if it comes to the worst.
func (p *player) note(h *host, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteLocked(h, format, args...)
}

func (p *player) noteLocked(h *host, format string, args ...any) {
	line := fmt.Sprintf("%8s ", time.Since(p.began))
	if h == p.hosts[1] {
		line += "other: "
	}
	p.trace = append(p.trace, line+fmt.Sprintf(format, args...))
}

// start makes the clients, of which only the first has opens from the start.
func (p *player) start() {
	p.model, p.end = make([]byte, p.limit), p.size
	copy(p.model[p.origin:p.end], p.bytes)
	for i := range p.hosts {
		h := &host{}
		cfg, mode := p.server, p.mode
		cfg.Check = p.fail
		cfg.Hook = func(ctx context.Context, op remotetest.Op) error { return p.hook(ctx, h, op) }
		if i == 0 {
			h.fake = remotetest.New(cfg)
		} else {
			h.fake, mode = p.hosts[0].fake.Another(cfg), p.other
		}
		var err error
		if h.cache, err = New(Config{PageSize: int(p.page), Budget: p.budget, Heap: true}); err != nil {
			panic(err)
		}
		file := p.file
		file.Mode = mode
		file.Temporary = func(err error) bool { return errors.Is(err, errBusy) }
		h.file = h.cache.NewFile(file)
		p.hosts[i] = h
	}
	p.hosts[0].fake.Put(name, p.model[:p.end])
	for range p.opens {
		p.hosts[0].open(p)
	}
}

// open adds an open.
func (h *host) open(p *player) {
	o, err := h.attach(ctx)
	if err != nil {
		p.fail("open: %v", err)
		return
	}
	h.opens, h.heard = append(h.opens, o), append(h.heard, false)
}

func (h *host) attach(ctx context.Context) (*Open, error) {
	access := remote.ForRead | remote.ForWrite
	opened, err := h.fake.Open(ctx, remote.At{Name: name}, remote.How{Access: access, Rights: h.file.Wants()}, h.file)
	if err != nil {
		return nil, err
	}
	return h.file.Attach(opened, access, false), nil
}

// hook is what the server does before it serves a request.
func (p *player) hook(ctx context.Context, h *host, op remotetest.Op) (err error) {
	p.mu.Lock()
	delay := time.Duration(p.rng.Int64N(int64(p.faults.delay) + 1))
	p.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.noteLocked(h, "  > %s %d at %d: %v", op.Call, op.Len, op.Off, err) }()
	percent := p.rng.IntN(100)
	switch op.Call {
	case "ReadAt":
		if percent < p.faults.read {
			return errRead
		}
	case "WriteAt", "Append":
		switch {
		case percent >= p.faults.write:
		case !p.faults.lasting:
			return errBusy
		default:
			if op.Class == remote.Back {
				h.lost++
			}
			return errLasting
		}
	}
	return nil
}

func (p *player) play() {
	p.began = time.Now()
	p.start()
	for i, r := range p.rounds {
		p.note(nil, "round %d: %+v", i+1, r.faults)
		p.round(r)
		if len(p.problems) > 0 {
			p.problems[0] = fmt.Sprintf("round %d of %d: %s", i+1, len(p.rounds), p.problems[0])
			break
		}
	}
	p.finish()
}

// shared reports whether the other client may change the file: not in a mode that
// does not want to hear of it.
func (s *script) shared() bool { return s.mode == Strict || s.mode == None }

// round runs the lanes side by side.
func (p *player) round(r round) {
	foreign := false
	for _, l := range r.lanes {
		foreign = foreign || l.foreign && p.shared()
	}
	// What cannot be written is not seen by the other client, nor what is lost by
	// anybody. So all that is at risk is what the round itself writes.
	if r.faults.write > 0 {
		p.syncAll()
	}
	if foreign {
		p.hosts[1].open(p)
		p.hosts[1].open(p)
	}
	if len(p.problems) > 0 {
		return
	}
	p.set(r.faults)
	var base []byte
	if r.faults.lasting {
		base = bytes.Clone(p.model)
	}
	p.lanes = nil
	borders := max(p.end-p.origin, 0)
	var wg sync.WaitGroup
	for i, l := range r.lanes {
		region := extent.Range{
			Off: p.origin + borders*int64(i)/int64(len(r.lanes)),
			End: p.origin + borders*int64(i+1)/int64(len(r.lanes)),
		}
		tail := i == len(r.lanes)-1
		if tail {
			region.End = p.limit
		}
		h := p.hosts[0]
		if l.foreign && p.shared() {
			h = p.hosts[1]
		}
		run := &runner{player: p, host: h, region: region, tail: tail, faults: r.faults, base: base, least: p.end, most: p.end}
		p.lanes = append(p.lanes, run)
		wg.Go(func() { run.run(l.acts) })
	}
	for _, c := range r.recalls {
		wg.Go(func() {
			<-time.After(c.after)
			start := time.Now()
			p.note(nil, "recall %d", c.lose)
			if err := p.hosts[0].fake.Recall(ctx, name, c.lose); err != nil {
				p.fail("recall: %v", err)
			}
			if took := time.Since(start); took >= 35*time.Second {
				p.fail("the server waited %v for its rights", took)
			}
			p.note(nil, "recalled %d", c.lose)
		})
	}
	wg.Wait()
	p.set(faults{})
	p.hosts[0].invariants(p)
	p.hosts[1].invariants(p)
	unsure := false
	for _, l := range p.lanes {
		unsure = unsure || len(l.maybe) > 0 || l.least != l.most
		if l.tail {
			p.end = l.most
		}
	}
	if r.faults.write > 0 || unsure || r.end == syncAll {
		p.syncAll()
	}
	if foreign {
		p.closeAll(p.hosts[1])
	}
	if r.end == rest {
		<-time.After(3 * maxAge)
		p.compare("on the server after a while", p.stored())
	}
}

func (p *player) stored() []byte {
	data, _ := p.hosts[0].fake.Bytes(name)
	return data
}

// set sets what goes wrong from now on.
func (p *player) set(f faults) {
	p.mu.Lock()
	p.faults = f
	p.mu.Unlock()
	for _, h := range p.hosts {
		h.fake.Set(func(c *remotetest.Config) { c.ShortRead, c.ShortWrite = f.shortRead, f.shortWrite })
	}
}

// syncAll writes everything, and looks at the result; faults are over. What no lane
// can know is what the server has.
func (p *player) syncAll() {
	for i, h := range p.hosts {
		for j, o := range h.opens {
			err := o.Sync(ctx)
			p.hear(h, j, err)
			if err != nil && !errors.Is(err, errLasting) {
				p.fail("client %d, open %d: sync: %v", i, j, err)
			}
		}
		for j, o := range h.opens {
			if h.lost > 0 && !h.heard[j] {
				p.fail("client %d, open %d does not hear of lost writes", i, j)
			}
			if err := o.Sync(ctx); err != nil {
				p.fail("client %d, open %d: sync again: %v", i, j, err)
			}
			h.heard[j] = false
		}
		h.lost = 0
	}
	synctest.Wait() // until the sizes are known after what went wrong
	server := p.stored()
	p.adopt(server)
	p.compare("on the server", server)
	for i, h := range p.hosts {
		if len(h.opens) == 0 {
			continue
		}
		got := make([]byte, p.limit+1-p.origin)
		n, err := h.opens[0].ReadAt(ctx, got, p.origin)
		if err != io.EOF {
			p.fail("client %d: reading all: %v", i, err)
		}
		p.compare(fmt.Sprintf("at client %d", i), append(make([]byte, p.origin), got[:n]...))
		if size := h.file.Size(); size != p.end && h.file.Keeps(remote.CacheRead) {
			p.fail("client %d: size is %d, want %d", i, size, p.end)
		}
	}
}

// hear notes that an open was told that bytes are lost.
func (p *player) hear(h *host, i int, err error) {
	if !errors.Is(err, errLasting) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.lost == 0 {
		p.problems = append(p.problems, "an open is told of lost writes that there are none of")
	}
	h.heard[i] = true
}

// compare compares with all of the file.
func (p *player) compare(where string, got []byte) {
	if int64(len(got)) != p.end {
		p.fail("%d bytes %s, want %d", len(got), where, p.end)
		return
	}
	if i := differ(got, p.model[:p.end]); i >= 0 {
		p.fail("byte %d of %d %s is %#x, want %#x", i, p.end, where, got[i], p.model[i])
	}
}

// differ returns where two slices of a length differ first, or -1.
func differ(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func (p *player) closeAll(h *host) {
	for _, o := range h.opens {
		if err := o.Close(ctx); err != nil {
			p.fail("close: %v", err)
		}
	}
	h.opens, h.heard = nil, nil
}

// finish closes everything, and looks at what is left.
func (p *player) finish() {
	sound := len(p.problems) == 0
	for _, h := range p.hosts {
		p.closeAll(h)
	}
	if sound {
		p.compare("on the server at last", p.stored())
		h := p.hosts[0]
		h.open(p)
		p.syncAll()
		p.closeAll(h)
	}
	synctest.Wait() // for what nobody waits for: memory that is given back
	for i, h := range p.hosts {
		if sound {
			h.invariants(p)
			h.leaks(p, i)
		}
		if err := h.cache.Close(); err != nil {
			p.fail("closing the cache: %v", err)
		}
	}
}
