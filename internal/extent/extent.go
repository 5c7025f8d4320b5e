// Package extent is ranges of int64 and sets of them: the bytes of a file that are
// valid, dirty, under way.
//
// It imports nothing and starts nothing. A Set is not safe for concurrent use.
package extent

import (
	"iter"
	"slices"
)

// Range is the numbers from Off up to, but not including, End.
type Range struct{ Off, End int64 }

func (r Range) Len() int64 { return r.End - r.Off }

func (r Range) Empty() bool { return r.End <= r.Off }

// Intersect returns what is in both; it is empty if that is nothing.
func (r Range) Intersect(s Range) Range {
	r.Off, r.End = max(r.Off, s.Off), min(r.End, s.End)
	return Range{r.Off, max(r.Off, r.End)}
}

func (r Range) Overlaps(s Range) bool { return max(r.Off, s.Off) < min(r.End, s.End) }

func (r Range) Contains(s Range) bool { return s.Empty() || r.Off <= s.Off && s.End <= r.End }

// Set is a set of numbers, kept as ranges that neither overlap nor touch. Its zero
// value is empty.
type Set struct {
	ranges []Range // in order
	bytes  int64
}

// search returns the first range that ends behind off.
func (s *Set) search(off int64) int {
	n := len(s.ranges)
	if n == 0 || s.ranges[n-1].End <= off {
		return n
	}
	i, j := 0, n-1
	for i < j {
		if h := (i + j) / 2; s.ranges[h].End <= off {
			i = h + 1
		} else {
			j = h
		}
	}
	return i
}

// Add adds what is in r.
func (s *Set) Add(r Range) {
	if r.Empty() {
		return
	}
	i := s.search(r.Off)
	if i > 0 && s.ranges[i-1].End == r.Off {
		i--
	}
	j := i
	for ; j < len(s.ranges) && s.ranges[j].Off <= r.End; j++ {
		r.Off, r.End = min(r.Off, s.ranges[j].Off), max(r.End, s.ranges[j].End)
		s.bytes -= s.ranges[j].Len()
	}
	s.bytes += r.Len()
	if j == i {
		s.ranges = slices.Insert(s.ranges, i, r)
		return
	}
	s.ranges[i] = r
	s.ranges = slices.Delete(s.ranges, i+1, j)
}

// Remove removes what is in r.
func (s *Set) Remove(r Range) {
	if r.Empty() {
		return
	}
	i := s.search(r.Off)
	if i < len(s.ranges) && s.ranges[i].Off < r.Off && s.ranges[i].End > r.End { // a hole
		right := Range{r.End, s.ranges[i].End}
		s.ranges[i].End = r.Off
		s.bytes -= r.Len()
		s.ranges = slices.Insert(s.ranges, i+1, right)
		return
	}
	if i < len(s.ranges) && s.ranges[i].Off < r.Off {
		s.bytes -= s.ranges[i].End - r.Off
		s.ranges[i].End = r.Off
		i++
	}
	j := i
	for ; j < len(s.ranges) && s.ranges[j].End <= r.End; j++ {
		s.bytes -= s.ranges[j].Len()
	}
	if j < len(s.ranges) && s.ranges[j].Off < r.End {
		s.bytes -= r.End - s.ranges[j].Off
		s.ranges[j].Off = r.End
	}
	s.ranges = slices.Delete(s.ranges, i, j)
}

// Clear removes everything.
func (s *Set) Clear() { s.ranges, s.bytes = s.ranges[:0], 0 }

// Contains reports whether all of r is in the set.
func (s *Set) Contains(r Range) bool {
	if r.Empty() {
		return true
	}
	i := s.search(r.Off)
	return i < len(s.ranges) && s.ranges[i].Contains(r)
}

// Overlaps reports whether any of r is in the set.
func (s *Set) Overlaps(r Range) bool {
	i := s.search(r.Off)
	return i < len(s.ranges) && s.ranges[i].Overlaps(r)
}

// First returns the first range that ends behind off.
func (s *Set) First(off int64) (Range, bool) {
	if i := s.search(off); i < len(s.ranges) {
		return s.ranges[i], true
	}
	return Range{}, false
}

// Gap returns the first part of r that is not in the set.
func (s *Set) Gap(r Range) (Range, bool) {
	i := s.search(r.Off)
	if i < len(s.ranges) && s.ranges[i].Off <= r.Off {
		r.Off = s.ranges[i].End
		i++
	}
	if i < len(s.ranges) {
		r.End = min(r.End, s.ranges[i].Off)
	}
	return r, !r.Empty()
}

// All yields the ranges in order. The set is not to be changed meanwhile.
func (s *Set) All() iter.Seq[Range] { return slices.Values(s.ranges) }

// In yields what of r is in the set, in order. The set is not to be changed meanwhile.
func (s *Set) In(r Range) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for i := s.search(r.Off); i < len(s.ranges) && s.ranges[i].Overlaps(r); i++ {
			if !yield(s.ranges[i].Intersect(r)) {
				return
			}
		}
	}
}

// Gaps yields what of r is not in the set, in order. The set may grow meanwhile by
// what was yielded.
func (s *Set) Gaps(r Range) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for {
			gap, ok := s.Gap(r)
			if !ok || !yield(gap) {
				return
			}
			r.Off = gap.End
		}
	}
}

// Len returns how many ranges there are.
func (s *Set) Len() int { return len(s.ranges) }

// Bytes returns how many numbers are in the set.
func (s *Set) Bytes() int64 { return s.bytes }
