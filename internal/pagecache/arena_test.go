package pagecache

import (
	"testing"

	"pgregory.net/rapid"
)

func TestArenaGivesOutEachByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := 1 << rapid.IntRange(12, 20).Draw(t, "page shift")
		pages := rapid.IntRange(1, 70).Draw(t, "pages")
		if rapid.Bool().Draw(t, "large") {
			pages += 3 * maxRun / page
		}
		a := newArena(make([]byte, pages*page), page)
		type block struct {
			at    int64
			order int
		}
		owner := make([]int, pages) // by page; 0: free
		var held []block
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				b := held[i]
				held = append(held[:i], held[i+1:]...)
				a.give(b.at, b.order)
				for p := range 1 << b.order {
					owner[int(b.at)/page+p] = 0
				}
				continue
			}
			order := rapid.IntRange(0, maxRunShift-a.pageShift).Draw(t, "order")
			at := a.take(order)
			if at < 0 {
				if free := longestFree(owner, 1<<order); free {
					t.Fatalf("no block of %d pages, although one is free: %v", 1<<order, owner)
				}
				continue
			}
			if at%a.size(order) != 0 || at+a.size(order) > int64(pages*page) {
				t.Fatalf("block of order %d at %d in %d pages of %d", order, at, pages, page)
			}
			for p := range 1 << order {
				if i := int(at)/page + p; owner[i] != 0 {
					t.Fatalf("page %d is given out twice", i)
				} else {
					owner[i] = step + 1
				}
			}
			held = append(held, block{at, order})
		}
		free := 0
		for _, o := range owner {
			if o == 0 {
				free++
			}
		}
		if a.free != int64(free*page) {
			t.Fatalf("free = %d, want %d", a.free, free*page)
		}
	})
}

// longestFree reports whether n aligned pages are free together.
func longestFree(owner []int, n int) bool {
next:
	for at := 0; at+n <= len(owner); at += n {
		for _, o := range owner[at : at+n] {
			if o != 0 {
				continue next
			}
		}
		return true
	}
	return false
}
