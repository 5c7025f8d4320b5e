package extent

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// span is how many numbers the model of a set has.
const span = 64

// draw returns a range within the model, which may be empty.
func draw(t *rapid.T, what string) Range {
	r := Range{Off: rapid.Int64Range(0, span).Draw(t, what+" off"), End: rapid.Int64Range(0, span).Draw(t, what+" end")}
	if r.End < r.Off && rapid.Bool().Draw(t, what+" swap") {
		r.Off, r.End = r.End, r.Off
	}
	return r
}

// ranges returns the pieces of r in which the model is what.
func ranges(model []bool, r Range, what bool) (all []Range) {
	for i := r.Off; i < r.End; i++ {
		switch n := len(all); {
		case model[i] != what:
		case n > 0 && all[n-1].End == i:
			all[n-1].End++
		default:
			all = append(all, Range{i, i + 1})
		}
	}
	return all
}

func TestSetIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		model := make([]bool, span)
		whole := Range{0, span}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := draw(t, "added")
				s.Add(r)
				for i := r.Off; i < r.End; i++ {
					model[i] = true
				}
			},
			"remove": func(t *rapid.T) {
				r := draw(t, "removed")
				s.Remove(r)
				for i := r.Off; i < r.End; i++ {
					model[i] = false
				}
			},
			"clear": func(*rapid.T) {
				s.Clear()
				clear(model)
			},
			"": func(t *rapid.T) {
				want := ranges(model, whole, true)
				if got := slices.Collect(s.All()); !slices.Equal(got, want) {
					t.Fatalf("ranges are %v, want %v", got, want)
				}
				sum := int64(0)
				for _, r := range want {
					sum += r.Len()
				}
				if s.Len() != len(want) || s.Bytes() != sum {
					t.Fatalf("%d ranges of %d, want %d of %d", s.Len(), s.Bytes(), len(want), sum)
				}

				r := draw(t, "asked")
				in, gaps := ranges(model, r, true), ranges(model, r, false)
				if got := slices.Collect(s.In(r)); !slices.Equal(got, in) {
					t.Fatalf("in %v are %v, want %v", r, got, in)
				}
				if got := slices.Collect(s.Gaps(r)); !slices.Equal(got, gaps) {
					t.Fatalf("gaps of %v are %v, want %v", r, got, gaps)
				}
				if got := s.Contains(r); got != (len(gaps) == 0) {
					t.Fatalf("Contains(%v) = %v", r, got)
				}
				if got := s.Overlaps(r); got != (len(in) > 0) {
					t.Fatalf("Overlaps(%v) = %v", r, got)
				}
				if got, ok := s.Gap(r); ok != (len(gaps) > 0) || ok && got != gaps[0] {
					t.Fatalf("Gap(%v) = %v, %v, want the first of %v", r, got, ok, gaps)
				}
				i := slices.IndexFunc(want, func(w Range) bool { return w.End > r.Off })
				if got, ok := s.First(r.Off); ok != (i >= 0) || ok && got != want[i] {
					t.Fatalf("First(%d) = %v, %v, want number %d of %v", r.Off, got, ok, i, want)
				}
			},
		})
	})
}

func TestRangeIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := draw(t, "r"), draw(t, "s")
		inR, inS, both := 0, 0, 0
		for i := range int64(span) {
			a, b := r.Off <= i && i < r.End, s.Off <= i && i < s.End
			if a {
				inR++
			}
			if b {
				inS++
			}
			if a && b {
				both++
			}
		}
		if r.Empty() != (inR == 0) || !r.Empty() && r.Len() != int64(inR) {
			t.Fatalf("%v has %d, Empty = %v", r, r.Len(), r.Empty())
		}
		if got := r.Overlaps(s); got != (both > 0) {
			t.Fatalf("%v.Overlaps(%v) = %v", r, s, got)
		}
		if got := r.Contains(s); got != (both == inS) {
			t.Fatalf("%v.Contains(%v) = %v", r, s, got)
		}
		if got := r.Intersect(s); got.Len() != int64(both) || both > 0 && (!r.Contains(got) || !s.Contains(got)) {
			t.Fatalf("%v.Intersect(%v) = %v", r, s, got)
		}
	})
}

func TestSetHoldsAllOfAFile(t *testing.T) {
	var s Set
	everything := Range{0, math.MaxInt64}
	s.Add(everything)
	s.Remove(Range{4096, 8192})
	s.Add(Range{math.MaxInt64 - 1, math.MaxInt64})
	if want := []Range{{0, 4096}, {8192, math.MaxInt64}}; !slices.Equal(slices.Collect(s.All()), want) {
		t.Errorf("ranges are %v, want %v", slices.Collect(s.All()), want)
	}
	if s.Bytes() != math.MaxInt64-4096 {
		t.Errorf("%d bytes", s.Bytes())
	}
	if gap, ok := s.Gap(everything); !ok || gap != (Range{4096, 8192}) {
		t.Errorf("gap is %v, %v", gap, ok)
	}
}

func TestGapsMayBeFilledMeanwhile(t *testing.T) {
	var s Set
	s.Add(Range{10, 20})
	s.Add(Range{30, 40})
	var got []Range
	for gap := range s.Gaps(Range{0, 50}) {
		got = append(got, gap)
		s.Add(gap)
	}
	if want := []Range{{0, 10}, {20, 30}, {40, 50}}; !slices.Equal(got, want) || !slices.Equal(slices.Collect(s.All()), []Range{{0, 50}}) {
		t.Errorf("gaps were %v, want %v; now there is %v", got, want, slices.Collect(s.All()))
	}
}

func TestIteratorsStop(t *testing.T) {
	var s Set
	s.Add(Range{10, 20})
	s.Add(Range{30, 40})
	for name, seq := range map[string]iter.Seq[Range]{"All": s.All(), "In": s.In(Range{0, 50}), "Gaps": s.Gaps(Range{0, 50})} {
		n := 0
		for range seq {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s yields %d times, want 1", name, n)
		}
	}
}

// scattered returns a set of n ranges of 10 with gaps of 10.
func scattered(n int64) *Set {
	var s Set
	for i := range n {
		s.Add(Range{20 * i, 20*i + 10})
	}
	return &s
}

func TestAllocs(t *testing.T) {
	s := scattered(100)
	sum := int64(0)
	end := int64(2000)
	s.Add(Range{3000, 3010}) // and there is room for one more
	s.Remove(Range{3000, 3010})
	for name, f := range map[string]func(){
		"append":   func() { s.Add(Range{end, end + 5}); end += 5 },
		"in order": func() { s.Add(Range{505, 515}); s.Add(Range{515, 520}); s.Remove(Range{510, 520}) },
		"hole":     func() { s.Remove(Range{503, 505}); s.Add(Range{503, 505}) },
		"look": func() {
			r, _ := s.First(777)
			gap, _ := s.Gap(Range{700, 900})
			if s.Contains(r) && !s.Overlaps(gap) {
				sum += r.Len() + gap.Len()
			}
		},
		"All": func() {
			for r := range s.All() {
				sum += r.Len()
			}
		},
		"In": func() {
			for r := range s.In(Range{95, 1905}) {
				sum += r.Len()
			}
		},
		"Gaps": func() {
			for r := range s.Gaps(Range{95, 1905}) {
				sum += r.Len()
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
	var used Set
	used.Add(Range{1, 2})
	if n := testing.AllocsPerRun(100, func() { used.Clear(); used.Add(Range{3, 4}) }); n != 0 {
		t.Errorf("a cleared set allocates %v times, want none", n)
	}
	if sum == 0 {
		t.Error("nothing was found")
	}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int64{1, 100, 10000} {
		b.Run(fmt.Sprintf("append/%d", n), func(b *testing.B) {
			s, off := scattered(n), 20*n
			for b.Loop() {
				s.Add(Range{off, off + 4096})
				off += 4096
			}
		})
		b.Run(fmt.Sprintf("hole/%d", n), func(b *testing.B) {
			s, hole := scattered(n), Range{20*(n/2) + 3, 20*(n/2) + 5}
			for b.Loop() {
				s.Remove(hole)
				s.Add(hole)
			}
		})
		b.Run(fmt.Sprintf("contains/%d", n), func(b *testing.B) {
			s, i := scattered(n), int64(0)
			for b.Loop() {
				if !s.Contains(Range{20 * i, 20*i + 10}) {
					b.Fatal("a range is missing")
				}
				i = (i + 7919) % n
			}
		})
		b.Run(fmt.Sprintf("gaps/%d", n), func(b *testing.B) {
			s := scattered(n)
			for b.Loop() {
				for gap := range s.Gaps(Range{20*(n/2) - 100, 20*(n/2) + 100}) {
					if gap.Empty() {
						b.Fatal("an empty gap")
					}
				}
			}
		})
	}
}
