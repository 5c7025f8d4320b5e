package flow

import "time"

// progressPoints is how many points are kept. If more requests finish while one
// is under way, its rate is taken from the oldest.
const progressPoints = 512

// progress remembers when how many bytes had arrived, so that each request can
// tell what arrived while it was under way, without help from the connection.
// Instants are durations since the estimator's epoch.
type progress struct {
	total  int64
	n      int // points ever
	points [progressPoints]point
}

type point struct {
	at    time.Duration
	total int64
}

// at returns the i-th of the points ever added, one of the last progressPoints.
func (p *progress) at(i int) *point { return &p.points[i%progressPoints] }

// last returns when bytes arrived last; 0 if none have.
func (p *progress) last() time.Duration {
	if p.n == 0 {
		return 0
	}
	return p.at(p.n - 1).at
}

// add notes n bytes that arrived at done. It returns how many have arrived in
// what time: all since sent, or those since the oldest point.
func (p *progress) add(n int64, sent, done time.Duration) (bytes int64, took time.Duration, all bool) {
	done = max(done, p.last()) // several goroutines report
	from := point{at: sent}
	oldest := max(0, p.n-progressPoints)
	lo, hi := oldest, p.n // the first point after sent is in [lo, hi]
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); p.at(mid).at > sent {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	all = true
	switch {
	case lo > oldest:
		from.total = p.at(lo - 1).total
	case oldest > 0:
		from, all = *p.at(oldest), false
	}
	p.total += n
	*p.at(p.n) = point{done, p.total}
	p.n++
	return p.total - from.total, max(done-from.at, 1), all
}
