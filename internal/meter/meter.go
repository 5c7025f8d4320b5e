// Package meter counts the requests for bytes of files: how many there were, how
// large they were, how long they took and how many were in flight at once. It knows
// neither what they were for nor who asked; each direction has a Meter of its own.
// It starts no goroutines and has no lock.
package meter

import (
	"sync/atomic"
	"time"
)

// Meter counts requests. Its zero value is ready, and it is safe for concurrent
// use. A request costs it a few atomic additions and no allocation.
type Meter struct {
	bytes, errors         atomic.Int64
	flying, peak, largest atomic.Int64
	sizes, latencies      counters
}

// Begin notes that a request goes out. Give what it returns to Done.
func (m *Meter) Begin() (start time.Time) {
	raise(&m.peak, m.flying.Add(1))
	return time.Now()
}

// Done notes that a request that began at start has carried n bytes and ended with
// err, be it that of the server or of who gave it up.
func (m *Meter) Done(start time.Time, n int, err error) {
	took := time.Since(start)
	m.flying.Add(-1)
	m.bytes.Add(int64(n))
	if err != nil {
		m.errors.Add(1)
	}
	raise(&m.largest, int64(n))
	m.latencies.add(int64((took + time.Microsecond - 1) / time.Microsecond))
	m.sizes.add(int64(n))
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// Traffic is what a Meter has counted.
type Traffic struct {
	Requests, Bytes, Errors int64     // of requests that are done, the failed ones included
	InFlight, MaxInFlight   int       // requests
	Largest                 int       // bytes that one request carried
	Sizes                   Histogram // of requests, in bytes
	Latencies               Histogram // from Begin to Done, in microseconds, rounded up
}

// Snapshot returns what was counted so far. A request that is done meanwhile may be
// in some of the numbers and not in others.
func (m *Meter) Snapshot() Traffic {
	t := Traffic{
		Bytes: m.bytes.Load(), Errors: m.errors.Load(),
		InFlight: int(m.flying.Load()), MaxInFlight: int(m.peak.Load()),
		Largest: int(m.largest.Load()),
		Sizes:   m.sizes.load(), Latencies: m.latencies.load(),
	}
	t.Requests = t.Sizes.Count()
	return t
}
