package bench

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// made returns a result with one run a round for each client.
func made(w workload, seconds map[string][]float64) result {
	r := result{workload: w, bytes: 1 << 30, paths: map[string]path{}}
	for _, name := range []string{ours, smbclient, parallel} {
		if len(seconds[name]) == 0 {
			continue
		}
		r.clients = append(r.clients, name)
		for i, s := range seconds[name] {
			r.runs = append(r.runs, run{Client: name, Round: i + 1, Seconds: s, CPU: s / 2, Requests: 1024})
		}
	}
	return r
}

// TestRatio pairs the runs of a round: what slows a whole round down must not
// count.
func TestRatio(t *testing.T) {
	r := made(workload{"read", "plain", "default", "local", ""}, map[string][]float64{
		ours:      {1, 10, 1},
		smbclient: {2, 20, 1.5},
		parallel:  {1, 11, 3},
	})
	if got := r.ratio(smbclient, r.speed); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := r.ratio(smbclient, r.cpu); got != 0.5 {
		t.Errorf("ratio of CPU %v, want 0.5", got)
	}
	if got := r.fastest(); got != smbclient {
		t.Errorf("fastest is %s, want %s", got, smbclient)
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if err := summarize(&out, []result{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1024 MiB, medians of 3 rounds",
		"2.00 × smbclient, at least 1.60: met",
		"CPU 0.50 × smbclient's, at most 0.60: met",
		"2 of 2 targets met",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	r.protection = "sealed"
	if words, met := r.verdict(r.targets()[0]); !met || !strings.HasPrefix(words, "2.00 × smbclient") {
		t.Errorf("%s: %v, want it met against smbclient, the fastest", words, met)
	}
}

func TestListingTarget(t *testing.T) {
	r := made(workload{"list", "plain", "default", "local", ""}, map[string][]float64{ours: {1}})
	for _, tt := range []struct {
		requests, bytes int64
		met             bool
	}{{4, 1, true}, {5, 1, false}, {5, 65537, true}} {
		r.runs[0].Requests, r.runs[0].Entries = tt.requests, tt.bytes
		if words, met := r.verdict(r.targets()[0]); met != tt.met {
			t.Errorf("%s: met %v, want %v", words, met, tt.met)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(tt.all); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.all, got, tt.want)
		}
	}
}

func TestChosen(t *testing.T) {
	for _, tt := range []struct {
		only string
		want int
	}{
		{"", 24},
		{"read", 7},
		{"read,plain", 3},
		{"stream-read", 3},
		{"stream-read,stream-write,tuned", 2},
		{"small", 2},
		{"small,stream-write", 1},
		{"cached", 1},
		{"stream-read,sealed", 0},
		{"read,write,signed,tuned", 2},
		{"20ms", 2},
		{"list,sealed", 0},
	} {
		var got []workload
		for _, w := range workloads() {
			if w.chosen(strings.Split(tt.only, ",")) {
				got = append(got, w)
			}
		}
		if len(got) != tt.want {
			t.Errorf("%q chooses %d cases, want %d: %v", tt.only, len(got), tt.want, got)
		}
	}
	b := bench{Config: Config{Only: []string{"raed"}}}
	if err := b.defaults(); err == nil || !strings.Contains(err.Error(), `"raed"`) {
		t.Errorf("an unknown word gives %v", err)
	}
	for _, word := range []string{"20ms", "small", "cached"} {
		if !slices.Contains(Words(), word) {
			t.Errorf("Words lacks %s: %v", word, Words())
		}
	}
}
