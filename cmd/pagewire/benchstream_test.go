package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/bench"
	"github.com/pagewire/pagewire/smbtest"
)

func TestBenchStream(t *testing.T) {
	s := newServer(t, smbtest.Config{})
	stream := func(args ...string) (done bench.Streamed) {
		t.Helper()
		out := pw(t, 0, append([]string{"bench", "stream"}, args...)...).stdout
		if strings.Count(out, "\n") != 1 || json.Unmarshal([]byte(out), &done) != nil {
			t.Fatalf("%v printed %s, want a line of JSON", args, out)
		}
		return done
	}
	u := s.URL + "/file"
	if done := stream("write", u, "3M"); done.Op != "write" || done.Bytes != 3<<20 || done.Block != 1<<20 {
		t.Errorf("wrote %+v, want 3 MiB in calls of 1 MiB", done)
	}
	if done := stream("-o", "cache=none", "--block", "64K", "read", u); done.Op != "read" || done.Bytes != 3<<20 ||
		done.Block != 64<<10 || done.Requests < 48 || done.Kept {
		t.Errorf("read %+v, want 3 MiB in calls of 64 KiB, each a request", done)
	}
	if done := stream("--again", "2", "-o", "cache=ro", "read", u); len(done.Again) != 2 || !done.Kept || done.Cache.Hits < 6 {
		t.Errorf("read %+v, want it read twice again from the cache", done)
	}

	for _, args := range [][]string{
		{"write", u},
		{"read", u, "1M"},
		{"copy", u},
		{"write", u, "0"},
		{"write", "--again", "1", u, "1M"},
		{"read", "--again", "-1", u},
		{"read", "--block", "511", u},
		{"read", "--block", "65M", u},
		{"read", "local"},
	} {
		pw(t, 2, append([]string{"bench", "stream"}, args...)...)
	}
	wantPart(t, "no such file", pw(t, 1, "bench", "stream", "read", s.URL+"/none").stderr, "bench stream ")
	wantPart(t, "a folder", pw(t, 1, "bench", "stream", "read", s.URL).stderr, "bench stream ")
	if help := pw(t, 0, "bench", "--help").stdout; strings.Contains(help, "stream") || !strings.Contains(help, "peers") {
		t.Errorf("help shows what it should hide:\n%s", help)
	}
}
