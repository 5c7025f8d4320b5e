package bench

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// TestPeers runs the harness, with files too small to measure anything.
func TestPeers(t *testing.T) {
	sambatest.Need(t)
	if why := missing(); why != "" {
		t.Skip(why)
	}
	self := filepath.Join(t.TempDir(), "pagewire")
	if out, err := exec.Command("go", "build", "-o", self, "../../cmd/pagewire").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var out, rows bytes.Buffer
	err := Peers(t.Context(), Config{
		Self: self, Out: &out, JSON: &rows,
		Rounds: 1, Size: 3<<20 + 1, Files: 150,
		Only: []string{"default"},
	})
	t.Logf("\n%s", out.String())
	if err != nil {
		t.Fatal(err)
	}
	clients := map[string]int{}
	for line := range strings.Lines(rows.String()) {
		var m run
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in row %s", err, line)
		}
		clients[m.Client]++
		if m.Seconds <= 0 || m.Op != "cached" && (m.CPU <= 0 || m.Requests <= 0) {
			t.Errorf("nothing was measured: %s", line)
		}
	}
	// Reads and writes in three protections, two from afar, two trees, a list; streams
	// in large and small calls; what is read again.
	for name, want := range map[string]int{
		ours: 11, smbclient: 9, parallel: 6, ioCopy: 6, workers: 2, goSMB2: 1,
		through: 4 + again, piped: 4, past: 2, memmove: again,
	} {
		if clients[name] != want {
			t.Errorf("%s ran %d times, want %d", name, clients[name], want)
		}
	}
	for _, want := range []string{"signed AES-128-GMAC", "sealed AES-128-GCM", "20 ms round trip", "calls of 4 KiB", " of 13 targets met"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %q", want)
		}
	}
}
