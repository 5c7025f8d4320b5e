package pagecache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/extent"
	"pgregory.net/rapid"
)

// lan is a window of eight requests of 1 MiB.
var lan = window{request: 1 << 20, most: 8 << 20}

// TestReadaheadDrawn has a line for each read, in KiB: "0-4 > 8-24" reads the first 4
// KiB, and expects that 8 to 24 are read ahead; without ">", nothing is. "!4-8" says
// that the engine has missed these, and "..N" that reads of the same length go on in
// order up to N, all that is read ahead for them being what is said.
func TestReadaheadDrawn(t *testing.T) {
	const large = 1 << 20 // a file's size in KiB
	for _, c := range []struct {
		name  string
		w     window
		size  int64 // KiB
		steps string
	}{
		{"the first read is all that is fetched", lan, large, `
			0-4`},
		{"the second in order starts the stream, the doubled window ends at borders", lan, large, `
			0-4
			4-8     > 8-24
			8-12
			12-16   > 24-512
			..252
			252-256 > 512-1024
			..508
			508-512 > 1024-2048
			..1020
			1020-1024 > 2048-5120
			..2044
			..2044
			2044-2048 > 5120-6144
			..3068
			3068-3072 > 6144-7168`},
		{"anywhere", lan, large, `
			700-704
			704-708 > 708-720`},
		{"reads of 128 KiB start with twice as much", lan, large, `
			0-128
			128-256 > 256-512
			256-384 > 512-768
			384-512 > 768-1536`},
		{"one read larger than a request", lan, large, `
			0-3072
			3072-6144 > 6144-12288
			6144-9216 > 12288-17408`},
		{"one as large as any window", lan, large, `
			0-65536
			65536-131072 > 131072-139264`},
		{"up to the end of the file", lan, 100, `
			0-4
			4-8   > 8-24
			8-12
			12-16 > 24-100
			..100
			100-104`},
		{"a read beyond the end", lan, 10, `
			0-8
			8-16
			16-24`},
		{"two streams", lan, large, `
			0-4
			1000-1004
			4-8       > 8-24
			1004-1008 > 1008-1024
			8-12
			1008-1012
			12-16     > 24-512`},
		{"four streams, and the least recently used gives way", lan, large, `
			0-4
			1000-1004
			2000-2004
			3000-3004
			4-8       > 8-24
			1004-1008 > 1008-1024
			2004-2008 > 2008-2024
			3004-3008 > 3008-3024
			4000-4004
			1008-1012
			8-12
			12-16     > 16-32`},
		{"neighbours swapped", lan, large, `
			4-8
			0-4
			12-16
			8-12  > 16-32
			20-24
			16-20 > 32-512
			28-32
			24-28`},
		{"a gap that is filled", lan, large, `
			0-4
			12-16
			8-12
			4-8   > 16-32
			16-20
			20-24 > 32-512`},
		{"gaps that are not: every other page", lan, large, `
			0-4
			8-12
			16-20
			24-28
			32-36
			40-44
			48-52
			56-60
			64-68`},
		{"a skip nearby is a start", lan, large, `
			0-4
			32-36
			36-40 > 40-56`},
		{"late reads change nothing", lan, large, `
			0-4
			8-12
			12-16 > 16-32
			4-8
			16-20
			20-24 > 32-512`},
		{"backward", lan, large, `
			100-104
			96-100
			92-96
			88-92
			84-88
			80-84
			20-24
			16-20
			12-16`},
		{"the same again", lan, large, `
			0-4
			0-4
			0-4
			4-8 > 8-24
			4-8
			0-4`},
		{"a jump within what was read ahead goes on", lan, large, `
			0-4
			4-8     > 8-24
			8-12
			12-16   > 24-512
			400-404
			404-408 > 512-1024
			408-412`},
		{"a jump out of it starts anew, and one back goes on", lan, large, `
			0-4
			4-8       > 8-24
			8-12
			12-16     > 24-512
			5000-5004
			5004-5008 > 5008-5024
			..16
			16-20
			..252
			252-256   > 512-1024`},
		{"what is lost is asked for again", lan, large, `
			0-4
			4-8   > 8-24
			8-12
			12-16 > 24-512
			16-20
			!16-20
			20-24 > 24-512
			!0-4
			24-28`},
		{"nothing may be read ahead", window{request: 1 << 20}, large, `
			0-4
			4-8
			8-12`},
		{"less than one request may be read ahead", window{request: 1 << 20, most: 64 << 10}, large, `
			0-4
			4-8   > 8-24
			8-12
			12-16 > 24-64
			..28
			28-32 > 64-96
			..60
			60-64 > 96-128`},
		{"one request", window{request: 1 << 20, most: 1 << 20}, large, `
			0-512
			512-1024  > 1024-2048
			1024-1536 > 2048-2560
			1536-2048 > 2560-3072`},
		{"less than a read", window{request: 1 << 20, most: 64 << 10}, large, `
			0-512
			512-1024  > 1024-1088
			1024-1536 > 1536-1600`},
		{"exactly so many", window{request: 1 << 20, most: 16 << 20, fixed: 4 << 20}, large, `
			0-4
			4-8       > 8-4096
			..1020
			1020-1024 > 4096-5120
			..2044
			2044-2048 > 5120-6144
			9000-9004
			9004-9008 > 9008-12288`},
		{"exactly one page", window{request: 1 << 20, most: 16 << 20, fixed: 4 << 10}, large, `
			0-4
			4-8  > 8-12
			8-12 > 12-16`},
		{"exactly a request and a half", window{request: 1 << 20, most: 16 << 20, fixed: 1536 << 10}, large, `
			0-256
			256-512  > 512-2048
			512-768
			768-1024 > 2048-2560`},
		{"exactly so many, within limits", window{request: 1 << 20, most: 2 << 20, fixed: 4 << 20}, large, `
			0-4
			4-8 > 8-2048`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a readahead
			var last extent.Range
			read := func(r extent.Range) string {
				last = r
				return draw(a.access(r, c.size<<10, c.w))
			}
			for line := range strings.Lines(c.steps) {
				step, want, _ := strings.Cut(strings.TrimSpace(line), ">")
				step, want = strings.TrimSpace(step), strings.TrimSpace(want)
				var got string
				switch {
				case step == "":
				case step[0] == '!':
					a.missed(parse(t, step[1:]))
				case strings.HasPrefix(step, ".."):
					end := parse(t, "0-"+step[2:]).End
					for n := last.Len(); last.End < end; {
						got += read(extent.Range{Off: last.End, End: last.End + n})
					}
				default:
					got = read(parse(t, step))
				}
				if got != want {
					t.Fatalf("%s: reads %q ahead, want %q; streams %+v", step, got, want, a.streams[:a.n])
				}
			}
		})
	}
}

func parse(t *testing.T, s string) (r extent.Range) {
	t.Helper()
	if _, err := fmt.Sscanf(s, "%d-%d", &r.Off, &r.End); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return extent.Range{Off: r.Off << 10, End: r.End << 10}
}

func draw(r extent.Range) string {
	if r.Empty() {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.Off>>10, r.End>>10)
}

// engine is what the policy is for, without the bytes: it fetches what it has not got,
// in requests that end at their multiples.
type engine struct {
	a        readahead
	w        window
	size     int64
	has      extent.Set
	read     int64 // bytes
	requests int
}

func (e *engine) do(r extent.Range) {
	ahead := e.a.access(r, e.size, e.w)
	e.read += r.Len()
	want := ahead
	if !e.has.Contains(r) {
		want.Off, want.End = r.Off, max(r.End, ahead.End)
	}
	for gap := range e.has.Gaps(want) {
		for !gap.Empty() {
			part := extent.Range{Off: gap.Off, End: min(gap.End, (gap.Off/e.w.request+1)*e.w.request)}
			e.requests++
			gap.Off = part.End
		}
	}
	e.has.Add(want)
}

func TestReadaheadStreamIsFewRequests(t *testing.T) {
	const size = 256 << 20
	shuffle := func(n int) func(*rand.Rand, []int64) {
		return func(rng *rand.Rand, reads []int64) {
			for len(reads) > 0 {
				part := reads[:min(n, len(reads))]
				rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
				reads = reads[len(part):]
			}
		}
	}
	none := func(*rand.Rand, []int64) {}
	for _, c := range []struct {
		name    string
		w       window
		read    int64
		disturb func(*rand.Rand, []int64)
		seeds   uint64
		most    int64 // requests
	}{
		{"4 KiB", lan, 4 << 10, none, 1, size >> 20 * 105 / 100},
		{"no power of two", lan, 10007, none, 1, size >> 20 * 105 / 100},
		{"128 KiB", lan, 128 << 10, none, 1, size >> 20 * 105 / 100},
		{"5 MiB", lan, 5 << 20, none, 1, size >> 20 * 105 / 100},
		{"two requests at most", window{request: 1 << 20, most: 2 << 20}, 4 << 10, none, 1, size >> 20 * 105 / 100},
		{"large requests", window{request: 4 << 20, most: 64 << 20}, 4 << 10, none, 1, size>>22 + 8},
		{"small requests", window{request: 64 << 10, most: 1 << 20}, 4 << 10, none, 1, size >> 16 * 105 / 100},
		{"no power of two a request", window{request: 1000000, most: 8 << 20}, 4 << 10, none, 1, size / 1000000 * 105 / 100},
		{"fixed", window{request: 1 << 20, most: 16 << 20, fixed: 4 << 20}, 4 << 10, none, 1, size >> 20 * 105 / 100},
		{"neighbours swapped", lan, 4 << 10, shuffle(2), 3, size>>20 + 16},
		{"in eights, shuffled", lan, 128 << 10, shuffle(8), 3, size>>20 + 32},
		{"in eights, shuffled, of a page", lan, 4 << 10, shuffle(8), 3, size>>20 + 32},
		{"in sixteens, shuffled", lan, 64 << 10, shuffle(16), 3, size>>20 + 48},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range c.seeds {
				e := engine{w: c.w, size: size}
				var reads []int64
				for off := int64(0); off < size; off += c.read {
					reads = append(reads, off)
				}
				c.disturb(rand.New(rand.NewPCG(seed, 0)), reads)
				for _, off := range reads {
					e.do(extent.Range{Off: off, End: min(off+c.read, size)})
				}
				if e.has.Bytes() != size || int64(e.requests) > c.most {
					t.Errorf("seed %d: %d requests for %d bytes, want at most %d", seed, e.requests, e.has.Bytes(), c.most)
				}
			}
		})
	}
}

func TestReadaheadOfInterleavedStreams(t *testing.T) {
	const size, streams = 256 << 20, 4
	e := engine{w: lan, size: size}
	rng := rand.New(rand.NewPCG(1, 2))
	var at [streams]int64
	for i := range at {
		at[i] = size / streams * int64(i)
	}
	for range size / (16 << 10) {
		i := rng.IntN(streams)
		if at[i] == size/streams*int64(i+1) {
			continue
		}
		e.do(extent.Range{Off: at[i], End: at[i] + 16<<10})
		at[i] += 16 << 10
	}
	if most := int(e.has.Bytes() >> 20 * 110 / 100); e.requests > most || e.read < size*9/10 {
		t.Errorf("%d requests for %d bytes, of which %d are read, want at most %d", e.requests, e.has.Bytes(), e.read, most)
	}
}

func TestReadaheadOfRandomReads(t *testing.T) {
	for _, c := range []struct {
		size, grain, read int64
		reads             int
		most              float64 // bytes read ahead per byte read
	}{
		{64 << 20, 4 << 10, 4 << 10, 20000, 0.01},
		{64 << 20, 1, 4 << 10, 20000, 0.01},
		{1 << 30, 4 << 10, 4 << 10, 20000, 0.001},
		{1 << 30, 512, 4 << 10, 20000, 0.001},
		{1 << 30, 64 << 10, 64 << 10, 20000, 0.01},
		{1 << 20, 4 << 10, 4 << 10, 256, 0.15}, // one read in 64 goes on at random where one of the last four ended
		{1 << 20, 512, 4 << 10, 256, 0.08},
	} {
		t.Run(fmt.Sprintf("%d of %d at multiples of %d in %d", c.reads, c.read, c.grain, c.size), func(t *testing.T) {
			read, ahead, seeds := int64(0), int64(0), uint64(3)
			if c.reads < 1000 {
				seeds = 50
			}
			for seed := range seeds {
				var a readahead
				rng := rand.New(rand.NewPCG(seed, uint64(c.size)))
				for range c.reads {
					off := rng.Int64N((c.size-c.read)/c.grain+1) * c.grain
					ahead += a.access(extent.Range{Off: off, End: off + c.read}, c.size, lan).Len()
					read += c.read
				}
			}
			if share := float64(ahead) / float64(read); share > c.most {
				t.Errorf("%d bytes ahead for %d bytes read: %.4f, want at most %v", ahead, read, share, c.most)
			} else {
				t.Logf("%.5f bytes ahead per byte read", share)
			}
		})
	}
}

// TestReadaheadKeepsItsWord draws readers that go on, skip, swap and jump.
func TestReadaheadKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a readahead
		size := rapid.OneOf(rapid.Int64Range(0, 1<<16), rapid.Int64Range(0, 1<<30), rapid.Just(int64(1<<62))).Draw(t, "size")
		w := window{
			request: rapid.OneOf(rapid.Map(rapid.IntRange(0, 23), func(n int) int64 { return 1 << n }), rapid.Int64Range(0, 1<<23)).Draw(t, "request"),
			most:    rapid.OneOf(rapid.Int64Range(0, 1<<26), rapid.Int64Range(0, 1<<14)).Draw(t, "most"),
			fixed:   rapid.SampledFrom([]int64{0, 0, 0, 1, 4096, 1 << 20, 1 << 24}).Draw(t, "fixed"),
		}
		step := rapid.OneOf(rapid.Int64Range(1, 1<<24), rapid.SampledFrom([]int64{4096, 128 << 10})).Draw(t, "read")
		var at [6]int64
		for range rapid.IntRange(1, 200).Draw(t, "reads") {
			i := rapid.IntRange(0, len(at)-1).Draw(t, "reader")
			at[i] = max(at[i]+rapid.SampledFrom([]int64{0, 0, 0, 0, 0, step, 3 * step, -step, -2 * step, 100 * step}).Draw(t, "skip"), 0)
			if rapid.IntRange(0, 30).Draw(t, "jump") == 0 {
				at[i] = rapid.Int64Range(0, size).Draw(t, "to")
			}
			r := extent.Range{Off: at[i], End: at[i] + rapid.SampledFrom([]int64{step, step, step, 1, 2 * step}).Draw(t, "len")}
			at[i] = r.End
			before := a
			ahead := a.access(r, size, w)
			if ahead == (extent.Range{}) {
				continue
			}
			if ahead.Empty() || ahead.Off < r.End || ahead.End > size {
				t.Fatalf("%v is read ahead for %v of a file of %d", ahead, r, size)
			}
			s := a.streams[0]
			if ahead.End-s.head > w.most || w.fixed > 0 && ahead.End-s.head > w.fixed || ahead.End-s.head > max(maxWindow, w.fixed) {
				t.Fatalf("%v is read ahead of %d, with %+v", ahead, s.head, w)
			}
			was := came(t, before, a)
			if ahead.Off < was.ahead || ahead.End != s.ahead {
				t.Fatalf("%v is read ahead by %+v, which was %+v", ahead, s, was)
			}
			if !s.forward || s.head == was.head && was.window > firstWindow {
				t.Fatalf("%v is read ahead by %+v, which has not moved from %+v", ahead, s, was)
			}
		}
	})
}

// came returns what the first stream was before: the one that is missing among the others.
func came(t *rapid.T, before, after readahead) stream {
next:
	for i := range before.streams[:before.n] {
		others := append([]stream{}, before.streams[:i]...)
		others = append(others, before.streams[i+1:before.n]...)
		if len(others) != after.n-1 {
			continue
		}
		for j := range others {
			if others[j] != after.streams[j+1] {
				continue next
			}
		}
		return before.streams[i]
	}
	t.Fatalf("no stream of %+v became the first of %+v", before, after)
	return stream{}
}

func TestReadaheadAllocs(t *testing.T) {
	a, off := readahead{}, int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		a.access(extent.Range{Off: off, End: off + 4096}, 1<<40, lan)
		a.access(extent.Range{Off: 1<<39 - off*7, End: 1<<39 - off*7 + 4096}, 1<<40, lan)
		off += 4096
	}); n != 0 {
		t.Errorf("an access allocates %v times", n)
	}
}

func BenchmarkReadahead(b *testing.B) {
	b.Run("stream", func(b *testing.B) {
		a, off := readahead{}, int64(0)
		for b.Loop() {
			a.access(extent.Range{Off: off, End: off + 4096}, 1<<62, lan)
			off += 4096
		}
	})
	b.Run("random", func(b *testing.B) {
		a, rng := readahead{}, rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			off := rng.Int64N(1 << 40)
			a.access(extent.Range{Off: off, End: off + 4096}, 1<<40, lan)
		}
	})
}
