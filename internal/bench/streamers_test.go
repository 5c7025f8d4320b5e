package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// TestStreamed holds what a stream says against its case.
func TestStreamed(t *testing.T) {
	b := &bench{Config: Config{Self: "pagewire", Size: 256 << 20}, far: 256 << 20}
	all := map[string]client{}
	for _, c := range streamers(b) {
		all[c.name] = c
	}
	read := workload{"stream-read", "plain", "default", "local", ""}
	write := workload{"stream-write", "plain", "default", "local", ""}
	small := workload{"stream-read", "plain", "default", "local", "small"}
	good := Streamed{Bytes: 256 << 20, Block: largeCall, Kept: true, Requests: 256, Cache: cacheUse{Ahead: 1, Cached: 1}}
	bare := good
	bare.Kept, bare.Cache = false, cacheUse{}
	with := func(s Streamed, change func(*Streamed)) Streamed { change(&s); return s }
	for _, tt := range []struct {
		what string
		w    workload
		who  string
		s    Streamed
		part string // of the error; "": none
	}{
		{"good", read, through, good, ""},
		{"written without reading ahead", write, through, with(good, func(s *Streamed) { s.Cache.Ahead = 0 }), ""},
		{"not ahead", read, through, with(good, func(s *Streamed) { s.Cache.Ahead = 0 }), "nothing ahead"},
		{"no rights", write, through, with(good, func(s *Streamed) { s.Kept = false }), "keep nothing"},
		{"past the cache", write, through, with(good, func(s *Streamed) { s.Cache = cacheUse{} }), "its cache"},
		{"all evicted", write, through, with(good, func(s *Streamed) { s.Cache = cacheUse{Evicted: 1} }), ""},
		{"too few bytes", read, through, with(good, func(s *Streamed) { s.Bytes-- }), "bytes, not"},
		{"other calls", small, through, good, "calls of"},
		{"other requests", read, through, with(good, func(s *Streamed) { s.Requests++ }), "smbd 256"},
		{"uncached", read, past, bare, ""},
		{"uncached that is cached", read, past, good, "should not have"},
		{"uncached that hits", write, past, with(bare, func(s *Streamed) { s.Cache.Hits++ }), "should not have"},
	} {
		said, err := json.Marshal(tt.s)
		if err != nil {
			t.Fatal(err)
		}
		m := run{Op: tt.w.op, Bytes: 256 << 20, Requests: 256}
		err = m.streamed(tt.w, all[tt.who], said)
		if tt.part == "" && err != nil || tt.part != "" && (err == nil || !strings.Contains(err.Error(), tt.part)) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.part)
		}
	}
	m := run{}
	if err := m.streamed(read, all[through], []byte("pagewire: what?")); err == nil {
		t.Error("no JSON passes for some")
	}
}

// TestSmallCalls bounds the requests that small calls become: at 256 MiB, by 1.05
// for a MiB.
func TestSmallCalls(t *testing.T) {
	s := &Streamed{Kept: true, Cache: cacheUse{Ahead: 1, Cached: 1}}
	for _, op := range []string{"stream-read", "stream-write"} {
		w := workload{op, "plain", "default", "local", "small"}
		for requests, ok := range map[int64]bool{256: true, 268: true, 269: false, 65536: false} {
			err := readOrWroteThrough(w, run{Op: op, Bytes: 256 << 20, Requests: requests, Stream: s})
			if (err == nil) != ok {
				t.Errorf("%v with %d requests: %v, want it good: %v", w, requests, err, ok)
			}
			w := w
			w.calls = ""
			if err := readOrWroteThrough(w, run{Op: op, Bytes: 256 << 20, Requests: requests, Stream: s}); err != nil {
				t.Errorf("%v with %d requests: %v, want no bound", w, requests, err)
			}
		}
	}
}

// TestStreamCommands looks at who takes part where, and how.
func TestStreamCommands(t *testing.T) {
	b := &bench{Config: Config{Self: "pagewire", Size: 1 << 30}, dir: "/dir", far: farSize, kept: keptSize}
	e := endpoint{&sambatest.Server{User: "u", Share: "s"}, "h:1"}
	for _, tt := range []struct {
		w    workload
		want []string
	}{
		{workload{"stream-read", "plain", "tuned", "local", ""}, []string{
			"pagewire bench stream --block 1048576 read smb://u@h:1/s/big",
			"pagewire cp -o cache=none smb://u@h:1/s/big /dev/null",
			"pagewire bench stream -o cache=none --block 1048576 read smb://u@h:1/s/big"}},
		{workload{"stream-write", "plain", "default", "local", ""}, []string{
			"pagewire bench stream --block 1048576 write smb://u@h:1/s/written 1073741824",
			"pagewire cp -o cache=none /dir/big smb://u@h:1/s/written",
			"pagewire bench stream -o cache=none --block 1048576 write smb://u@h:1/s/written 1073741824"}},
		{workload{"stream-write", "plain", "default", "local", "small"}, []string{
			"pagewire bench stream -o rsize=1M,wsize=1M --block 4096 write smb://u@h:1/s/written 268435456",
			"pagewire cp -o cache=none,rsize=1M,wsize=1M /dir/far smb://u@h:1/s/written"}},
		{workload{"cached", "plain", "default", "local", ""}, []string{
			"pagewire bench stream --block 1048576 --again 8 read smb://u@h:1/s/kept"}},
		{workload{"stream-read", "signed", "default", "witness", ""}, nil},
	} {
		var got []string
		for _, c := range clients(b) {
			if args := c.command(e, tt.w); args != nil {
				got = append(got, strings.Join(args, " "))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v:\n%s\nwant\n%s", tt.w, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// TestCachedRow pairs each pass with the memmove beside it.
func TestCachedRow(t *testing.T) {
	m := run{Client: through, Round: 2, Bytes: 64 << 20, Seconds: 9, Requests: 64, Stream: &Streamed{Again: []pass{
		{Seconds: 0.02, CPU: 0.02, Memmove: 0.01, MemmoveCPU: 0.01},
		{Seconds: 0.4, CPU: 0.4, Memmove: 0.3, MemmoveCPU: 0.1},
		{Seconds: 0.02, CPU: 0.02, Memmove: 0.012, MemmoveCPU: 0.01},
	}}}
	r := result{
		workload: workload{"cached", "plain", "default", "local", ""},
		bytes:    64 << 20, clients: []string{through, memmove}, paths: map[string]path{through: {dialect: "SMB3_11"}},
		runs: m.passes(),
	}
	if n := len(r.runs); n != 6 || r.runs[0].Round != 4 || r.runs[5].Round != 6 {
		t.Errorf("%d runs, %+v; want six of rounds 4 to 6", n, r.runs)
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"cached, plain, default server, loopback: 64 MiB, medians of 3 rounds",
		"target: 0.60 × memmove, at least 0.50: met",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestStreamRow compares what went through the cache with what did not.
func TestStreamRow(t *testing.T) {
	r := result{
		workload: workload{"stream-read", "plain", "default", "local", "small"},
		bytes:    1 << 30, clients: []string{through, piped}, paths: map[string]path{},
		runs: []run{
			{Client: through, Round: 1, Seconds: 2, CPU: 3, Requests: 1024},
			{Client: piped, Round: 1, Seconds: 1, CPU: 1, Requests: 512},
		},
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"stream-read in calls of 4 KiB, plain, default server, loopback: 1024 MiB",
		"pagewire, through the cache 537 537–537 - 3.00 - 1024 × 1024 KiB",
		"pagewire cp 1074 1074–1074 0.50 1.00 3.00 512 × 2048 KiB",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "target") {
		t.Errorf("there is a target in\n%s", out.String())
	}
}
