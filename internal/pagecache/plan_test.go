package pagecache

import (
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/extent"
)

// In a drawing each character is a byte of the file: "#" is dirty, "." is not. A plan
// is drawn below it, each piece with a letter of its own.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name    string
		dirty   string
		p       plan
		written string
	}{
		{"whole requests", "################", plan{request: 4},
			"aaaabbbbccccdddd"},
		{"at borders, wherever it starts", "..##########....", plan{request: 4},
			"..aabbbbcccc...."},
		{"what is left at the end", "##########......", plan{request: 4},
			"aaaabbbbcc......"},
		{"not what may be added to", "##########......", plan{request: 4, whole: true},
			"aaaabbbb........"},
		{"a hole ends a request", "##.#####.#######", plan{request: 4},
			"aa.bcccc.dddeeee"},
		{"nor what has holes", "##.#####.#######", plan{request: 4, whole: true},
			"...abbbb.cccdddd"},
		{"not where somebody writes", "####.##...##....", plan{request: 4, growing: 7},
			"aaaa......bb...."},
		{"but all the same if it is whole", "########........", plan{request: 4, growing: 8},
			"aaaabbbb........"},
		{"from somewhere", "################", plan{request: 4, at: 5},
			".....aaabbbbcccc"},
		{"to somewhere", "################", plan{request: 4, to: 10},
			"aaaabbbbcc......"},
		{"small requests", "#####...", plan{request: 1},
			"abcde..."},
		{"large ones", "####.###", plan{request: 100},
			"aaaa.bbb"},
		{"odd ones", "#########", plan{request: 3},
			"aaabbbccc"},
		{"nothing", "........", plan{request: 4},
			"........"},
		{"backwards", "########", plan{request: 4, at: 6, to: 6},
			"........"},
	} {
		var dirty extent.Set
		for i, b := range c.dirty {
			if b == '#' {
				dirty.Add(extent.Range{Off: int64(i), End: int64(i) + 1})
			}
		}
		if c.p.to == 0 {
			c.p.to = int64(len(c.dirty))
		}
		if c.p.growing == 0 {
			c.p.growing = -1
		}
		got := []byte(strings.Repeat(".", len(c.dirty)))
		for letter := byte('a'); ; letter++ {
			r, ok := c.p.next(dirty.First)
			if !ok {
				break
			}
			for i := r.Off; i < r.End; i++ {
				got[i] = letter
			}
		}
		if string(got) != c.written {
			t.Errorf("%s:\n  dirty   %s\n  written %s\n  want    %s", c.name, c.dirty, got, c.written)
		}
	}
}

func TestPlanEndsAtChunks(t *testing.T) {
	var dirty extent.Set // which never goes over the end of a chunk, see chunk
	dirty.Add(extent.Range{Off: maxRun - 50, End: maxRun})
	p := plan{to: maxFile, request: 60 << 10, whole: true, growing: -1}
	if r, ok := p.next(dirty.First); !ok || r.Len() != 50 {
		t.Errorf("%v, %v, want the last bytes of the chunk", r, ok)
	}
}

// However much is scattered about, a plan is made at once, and goes on the next time.
func TestPlanLooksAtFew(t *testing.T) {
	var dirty extent.Set
	for i := range int64(10_000) {
		dirty.Add(extent.Range{Off: i * 128, End: i*128 + 10})
	}
	want := extent.Range{Off: 500 << 10, End: 501 << 10}
	dirty.Add(want)
	p := plan{to: maxFile, request: 1 << 10, whole: true, growing: -1}
	for p.at < p.to {
		looked := 0
		r, ok := p.next(func(at int64) (extent.Range, bool) { looked++; return dirty.First(at) })
		if looked > looks {
			t.Fatalf("looked at %d ranges", looked)
		}
		if ok {
			if r != want {
				t.Errorf("%v, want %v", r, want)
			}
			return
		}
	}
	t.Error("what is whole was not found")
}
