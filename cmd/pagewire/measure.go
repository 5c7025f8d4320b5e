package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire"
)

const (
	// measureFor bounds how long reads are measured: the run is to be over before
	// anybody wonders, on a slow link too.
	measureFor = 3 * time.Second
	// stepFor is how long a step lasts at least.
	stepFor = 150 * time.Millisecond
	// requestFor is how long the transfer of one request may take.
	requestFor = 50 * time.Millisecond
	// deepest is the most bytes in flight, largest the most in one request.
	deepest = 16 << 20
	largest = 1 << 20
	pings   = 12
)

// probe is what a measurement needs of a connection.
type probe struct {
	ping  func(context.Context) error
	read  func(ctx context.Context, p []byte, off int64) (int, error)
	size  int64 // of the file that read reads; 0: there is none
	stats func() pagewire.Stats
}

// measure times echoes, and reads with ever more of them in flight until that no
// longer pays or nothing allows more.
func (p probe) measure(ctx context.Context) (m measurement, err error) {
	if m.RTT, err = p.roundTrip(ctx); err != nil {
		return m, err
	}
	if p.size > 0 {
		if err = p.measureReads(ctx, &m); err != nil {
			return m, err
		}
	}
	s := p.stats()
	m.MaxRead, m.Credits, m.Signing, m.Sealing = s.MaxRead, s.MaxCredits, s.Signing, s.Cipher
	m.Crypto = cryptoCost(s.Signing, s.Cipher)
	return m, nil
}

// roundTrip returns the time of the fastest echo.
func (p probe) roundTrip(ctx context.Context) (time.Duration, error) {
	var fastest time.Duration
	for i, begin := 0, time.Now(); i < pings && (i < 2 || time.Since(begin) < measureFor/3); i++ {
		start := time.Now()
		if err := p.ping(ctx); err != nil {
			return 0, err
		}
		if d := time.Since(start); i == 0 || d < fastest {
			fastest = d
		}
	}
	return fastest, nil
}

func (p probe) measureReads(ctx context.Context, m *measurement) error {
	size, transfer, err := p.requestSize(ctx, m.RTT)
	if err != nil {
		return err
	}
	// Not measured: it makes the server grant credits, and TCP open its window.
	if warm := min(8, int(5*requestFor/transfer)); warm > 1 {
		if _, err := p.step(ctx, p.depth(warm, size), size, m.RTT); err != nil {
			return err
		}
	}
	for end := time.Now().Add(measureFor); ; {
		depth := 1
		if n := len(m.Steps); n > 0 {
			depth = p.depth(2*m.Steps[n-1].Depth, size)
			if depth <= m.Steps[n-1].Depth || settled(m.Steps) || time.Now().After(end) {
				break
			}
		}
		s, err := p.step(ctx, depth, size, m.RTT)
		if err != nil {
			return err
		}
		m.Steps = append(m.Steps, s)
	}
	m.Burst, err = p.burst(ctx, m.Steps[0], m.RTT)
	return err
}

// requestSize chooses how large reads are to be: as large as allowed, but not so
// large that one takes long to transfer. Of three reads the fastest counts:
// whatever else goes on only makes them slower.
func (p probe) requestSize(ctx context.Context, rtt time.Duration) (size int, transfer time.Duration, err error) {
	for size = int(min(4<<10, p.size)); ; {
		st := p.stats()
		allowed := int(min(largest, p.size, int64(st.MaxRead), int64(max(st.MaxCredits, 1))*creditBytes))
		buf := make([]byte, size)
		for i := range 3 {
			start := time.Now()
			if n, err := p.read(ctx, buf, p.offset(int64(i), size)); err != nil && (err != io.EOF || n == 0) {
				return 0, 0, err
			}
			if d := max(time.Since(start)-rtt, 1); i == 0 || d < transfer {
				transfer = d
			}
			if transfer > 10*requestFor {
				break
			}
		}
		if size >= allowed || 4*transfer > requestFor {
			return size, transfer, nil
		}
		size = min(4*size, allowed)
	}
}

// depth is want, or what credits and deepest allow of it.
func (p probe) depth(want, size int) int {
	credits := max((size+creditBytes-1)/creditBytes, 1)
	return max(min(want, p.stats().MaxCredits/credits, deepest/size), 1)
}

// settled reports whether the last step brought next to nothing, since requests
// queue.
func settled(steps []step) bool {
	if len(steps) < 3 {
		return false
	}
	first, before, last := steps[0], steps[len(steps)-2], steps[len(steps)-1]
	return float64(last.Latency) > 2*queueing*float64(first.Latency) && last.Rate < 1.1*before.Rate
}

// reply is one read that came back.
type reply struct {
	at    time.Time
	took  time.Duration
	bytes int
}

// step reads with depth requests of size bytes in flight, for long enough to tell
// a rate.
func (p probe) step(ctx context.Context, depth, size int, rtt time.Duration) (step, error) {
	least := max(stepFor, 3*rtt)
	var (
		wg      sync.WaitGroup
		next    atomic.Int64
		mu      sync.Mutex
		failed  error   // guarded by mu
		replies []reply // guarded by mu
	)
	start, cpu := time.Now(), processTime()
	for range depth {
		wg.Go(func() {
			buf := make([]byte, size)
			var own []reply
			var err error
			for i := 0; err == nil && (i == 0 || time.Since(start) < least); i++ {
				sent, n := time.Now(), 0
				n, err = p.read(ctx, buf, p.offset(next.Add(1)-1, size))
				at := time.Now()
				own = append(own, reply{at, at.Sub(sent), n})
				if err == io.EOF && n > 0 {
					err = nil
				}
			}
			mu.Lock()
			defer mu.Unlock()
			replies = append(replies, own...)
			if failed == nil {
				failed = err
			}
		})
	}
	wg.Wait()
	took := max(time.Since(start), 1)
	s := step{Depth: depth, Size: size, Cores: (processTime() - cpu).Seconds() / took.Seconds()}
	s.Rate, s.Latency = evaluate(replies, depth, start)
	return s, failed
}

// evaluate returns the rate of replies, depth of which were waited for all the
// time since start, and the latency that one of four stays below: whoever else
// uses the machine makes some slow, while a queue makes all of them wait. The
// first depth of them do not count: nobody was before them.
func evaluate(replies []reply, depth int, start time.Time) (rate float64, latency time.Duration) {
	slices.SortFunc(replies, func(a, b reply) int { return a.at.Compare(b.at) })
	if len(replies) >= 2*depth {
		start, replies = replies[depth-1].at, replies[depth:]
	}
	bytes := 0
	for _, r := range replies {
		bytes += r.bytes
	}
	took := max(replies[len(replies)-1].at.Sub(start), 1)
	slices.SortFunc(replies, func(a, b reply) int { return cmp.Compare(a.took, b.took) })
	return float64(bytes) / took.Seconds(), replies[len(replies)/4].took
}

// offset is where the i-th read begins: one after the other, and over again.
func (p probe) offset(i int64, size int) int64 {
	return i % max(p.size/int64(size), 1) * int64(size)
}

// burst returns the rate at which the bytes of one reply come: what a larger one
// takes longer than a small one. It is 0 if delay hides the difference.
func (p probe) burst(ctx context.Context, large step, rtt time.Duration) (float64, error) {
	small, err := p.step(ctx, 1, max(large.Size/16, 1), rtt)
	if err != nil {
		return 0, err
	}
	longer := large.Latency - small.Latency
	if longer < max(large.Latency/20, 100*time.Microsecond) {
		return 0, nil
	}
	return float64(large.Size-small.Size) / longer.Seconds(), nil
}
