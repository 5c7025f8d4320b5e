package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/smbtest"
)

// TestExplainNamesTheLimit runs explain on servers of which each has one flaw.
// The race detector can make the CPU the narrower one.
func TestExplainNamesTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range []struct {
		name  string
		cfg   smbtest.Config
		limit string
	}{
		{"max read 16 KiB", smbtest.Config{MaxRead: 16 << 10}, byMaxRead},
		{"one credit", smbtest.Config{Credits: 1}, byCredits},
		{"50 ms", smbtest.Config{RTT: 50 * time.Millisecond}, byDelay},
		{"50 ms in the server", smbtest.Config{Delay: 50 * time.Millisecond}, byDelay},
		{"10 Mbit/s", smbtest.Config{Rate: 10e6}, byLink},
		{"signing forced", smbtest.Config{RequireSigning: true}, bySigning},
		{"sealing forced", smbtest.Config{RequireSealing: true}, bySealing},
		{"healthy", smbtest.Config{}, byCPU},
	} {
		if raceDetector && (c.cfg.Delay > 0 || c.cfg.RequireSealing) {
			continue // to save time
		}
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.cfg)
			write(t, s, map[string]string{"small": "s", "large": pattern(32 << 20)})
			var e explanation
			var out string
			// What else the machine does can spoil a measurement, but not three.
			for range 3 {
				start := time.Now()
				out = pw(t, 0, "explain", "--json", s.URL).stdout
				if err := json.Unmarshal([]byte(out), &e); err != nil {
					t.Fatal(err)
				}
				if e.Limit == c.limit || raceDetector && e.Limit == byCPU {
					break
				}
				t.Logf("in %v: %s", time.Since(start), out)
			}
			if e.Limit != c.limit && !(raceDetector && e.Limit == byCPU) {
				t.Errorf("limited by %q (%s), want %q", e.Limit, e.Advice, c.limit)
			}
			if e.Read <= 0 || e.RTT <= 0 || e.Dialect != "3.1.1" || e.Advice == "" {
				t.Errorf("incomplete: %s", out)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	got := pw(t, 0, "explain", s.URL).stdout
	wantPart(t, "an empty share", got, "measured  no data: no file here to read")
	if strings.Contains(got, "Limited by") {
		t.Errorf("a verdict without data: %s", got)
	}
	wantPart(t, "a server", pw(t, 0, "explain", strings.TrimSuffix(s.URL, "/share")).stdout, "no data: no share was named")

	got = pw(t, 0, "explain", "--write", s.URL).stdout
	wantPart(t, "--write", got, "; write ")
	wantPart(t, "--write", got, "Limited by ")
	want(t, "what is left", pw(t, 0, "ls", "-a", s.URL).stdout, "")

	write(t, s, map[string]string{"a/large": pattern(2 << 20), "empty": ""})
	wantPart(t, "a file", pw(t, 0, "explain", s.URL+"/a/large").stdout, "measured  read ")
	wantPart(t, "an empty file", pw(t, 0, "explain", s.URL+"/empty").stdout, "no data: empty is empty")
	pw(t, 1, "explain", s.URL+"/none")
}

func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PASSWD", "of another server")
	got := pw(t, 0, "demo", "--size", "8M")
	wantPart(t, "demo", got.stdout, "8 MiB to the server in ")
	wantPart(t, "demo", got.stdout, "8 MiB back from it in ")
	wantPart(t, "demo", got.stdout, "Limited by ")
	var d demoResult
	if err := json.Unmarshal([]byte(pw(t, 0, "demo", "--json", "--size", "5000001", "-o", "seal").stdout), &d); err != nil {
		t.Fatal(err)
	}
	for way, p := range map[string]passage{"write": d.Write, "read": d.Read} {
		var bytes int64
		for size, n := range p.Sizes {
			bytes += int64(size) * n
		}
		if bytes != 5000001 || p.Requests == 0 || p.Rate <= 0 {
			t.Errorf("%s: %+v carries %d bytes, want 5000001", way, p, bytes)
		}
	}
	if d.Again.Bytes != d.Read.Bytes || d.Again.Requests != 0 {
		t.Errorf("from the cache: %+v", d.Again)
	}
	if d.Connection.Cached == nil || !d.Connection.Cached.Writes {
		t.Errorf("cached: %+v", d.Connection.Cached)
	}
	if d.Connection.Sealing == "" || d.MaxInFlight < 2 {
		t.Errorf("%+v", d)
	}
}
