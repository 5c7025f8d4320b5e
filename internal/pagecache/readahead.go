package pagecache

import "github.com/pagewire/pagewire/internal/extent"

type window struct{ request, most, fixed int64 }

type readahead struct{ next, ahead, grown int64 }

func (a *readahead) access(r extent.Range, size int64, w window) extent.Range {
	seq := r.Off == a.next && r.Off != 0
	a.next = r.End
	if !seq {
		a.ahead, a.grown = r.End, 0
		return extent.Range{}
	}
	if a.ahead-r.End > max(a.grown/2, 0) && a.grown > 0 {
		return extent.Range{}
	}
	a.grown = min(max(2*a.grown, 2*r.Len(), 128<<10), w.most)
	from := max(a.ahead, r.End)
	to := min((r.End+a.grown+w.request-1)/w.request*w.request, size)
	a.ahead = max(a.ahead, to)
	return extent.Range{Off: from, End: max(to, from)}
}
