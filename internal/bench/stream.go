package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/pagewire/pagewire"
)

// Stream says how a file is streamed.
type Stream struct {
	FS    *pagewire.FS
	Name  string
	Block int                  // bytes in a call
	CPU   func() time.Duration // that this process has used
}

// Streamed is how that went, and what the library says about it.
type Streamed struct {
	Op          string   `json:"op"`
	Block       int      `json:"block"`
	Bytes       int64    `json:"bytes"`
	Seconds     float64  `json:"seconds"` // from opening to closing, without what came again
	CPU         float64  `json:"cpu_seconds"`
	Kept        bool     `json:"kept"`     // what was moved might be kept
	Requests    int64    `json:"requests"` // that moved bytes
	All         int64    `json:"all_requests"`
	Sizes       []bucket `json:"sizes"`
	MaxInFlight int      `json:"max_in_flight"`
	Cache       cacheUse `json:"cache"`
	Again       []pass   `json:"again,omitempty"`
}

// bucket counts the requests of at most so many bytes, and more than half of it.
type bucket struct {
	UpTo  int64 `json:"up_to"`
	Count int64 `json:"count"`
}

// cacheUse is pagewire.CacheStats, as far as a stream leaves traces there.
type cacheUse struct {
	Hits        int64 `json:"hits"`
	Misses      int64 `json:"misses"`
	Ahead       int64 `json:"ahead"`
	AheadUsed   int64 `json:"ahead_used"`
	AheadWasted int64 `json:"ahead_wasted"`
	Cached      int64 `json:"cached"`
	Evicted     int64 `json:"evicted"`
}

// pass is one more reading of a file, and moving as many bytes within memory.
type pass struct {
	Seconds    float64 `json:"seconds"`
	CPU        float64 `json:"cpu_seconds"`
	Memmove    float64 `json:"memmove_seconds"`
	MemmoveCPU float64 `json:"memmove_cpu_seconds"`
}

// againMost is the largest file to read again, since memmove needs as much memory.
const againMost = 1 << 30

// Read reads the file to its end as a program would, call by call into one
// buffer, and then again so many times.
func (s Stream) Read(ctx context.Context, again int) (done Streamed, err error) {
	watch := s.start()
	f, err := s.FS.OpenFile(ctx, s.Name, os.O_RDONLY, 0)
	if err != nil {
		return done, err
	}
	defer bind(ctx, f)()
	buf := make([]byte, s.Block)
	n, err := readAll(f, buf)
	seconds, cpu := watch.stop()
	var passes []pass
	if err == nil && again > 0 {
		passes, err = s.readAgain(f, buf, n, again)
	}
	kept, _ := f.Cached()
	watch = s.start()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	closing, closingCPU := watch.stop()
	if err != nil {
		return done, err
	}
	done = Streamed{Op: "read", Bytes: n, Seconds: seconds + closing, CPU: cpu + closingCPU, Kept: kept, Again: passes}
	st := s.FS.Stats()
	s.count(&done, st, st.Read)
	return done, nil
}

func readAll(f io.Reader, buf []byte) (n int64, err error) {
	for {
		m, err := f.Read(buf)
		n += int64(m)
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// readAgain reads size bytes some times more, each time beside memmove: the same
// calls from memory of that size to the same buffer.
func (s Stream) readAgain(f io.ReadSeeker, buf []byte, size int64, times int) (all []pass, err error) {
	if size > againMost {
		return nil, fmt.Errorf("%s has %d bytes; what is read again may have %d", s.Name, size, againMost)
	}
	memory := bytes.Repeat(buf, int(size)/len(buf)+1)[:size]
	for range times {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		var p pass
		watch := s.start()
		n, err := readAll(f, buf)
		p.Seconds, p.CPU = watch.stop()
		switch {
		case err != nil:
			return nil, err
		case n != size:
			return nil, fmt.Errorf("%s had %d bytes at first, and then %d", s.Name, size, n)
		}
		watch = s.start()
		for from := memory; len(from) > 0; {
			from = from[copy(buf, from):]
		}
		p.Memmove, p.MemmoveCPU = watch.stop()
		all = append(all, p)
	}
	return all, nil
}

// Write writes size bytes as a program would, call by call from one buffer, and
// closes the file.
func (s Stream) Write(ctx context.Context, size int64) (done Streamed, err error) {
	b := newBlock(s.Block)
	watch := s.start()
	f, err := s.FS.OpenFile(ctx, s.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return done, err
	}
	defer bind(ctx, f)()
	var n int64
	for call := int64(0); n < size && err == nil; call++ {
		var m int
		m, err = f.Write(b.of(call, size-n))
		n += int64(m)
	}
	_, kept := f.Cached()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return done, err
	}
	done = Streamed{Op: "write", Bytes: n, Kept: kept}
	done.Seconds, done.CPU = watch.stop()
	st := s.FS.Stats()
	s.count(&done, st, st.Write)
	return done, nil
}

func (s Stream) count(done *Streamed, st pagewire.Stats, t pagewire.Traffic) {
	done.Block, done.Requests, done.All, done.MaxInFlight = s.Block, t.Requests, st.Requests, t.MaxInFlight
	for _, b := range t.Sizes {
		done.Sizes = append(done.Sizes, bucket{b.UpTo, b.Count})
	}
	c := st.Cache
	done.Cache = cacheUse{
		Hits: c.Hits, Misses: c.Misses,
		Ahead: c.Ahead, AheadUsed: c.AheadUsed, AheadWasted: c.AheadWasted,
		Cached: c.Cached, Evicted: c.Evicted,
	}
}

// bind makes ctx bound every call on f, until stop.
func bind(ctx context.Context, f *pagewire.File) (stop func() bool) {
	return context.AfterFunc(ctx, func() { f.SetDeadline(time.Unix(1, 0)) })
}

// stopwatch takes the time and the CPU time that something takes.
type stopwatch struct {
	start time.Time
	used  time.Duration
	cpu   func() time.Duration
}

func (s Stream) start() stopwatch { return stopwatch{time.Now(), s.CPU(), s.CPU} }

func (w stopwatch) stop() (seconds, cpu float64) {
	return time.Since(w.start).Seconds(), (w.cpu() - w.used).Seconds()
}

// block is what a stream writes with each call: bytes that do not compress,
// behind the number of the call, so that none can pass for another.
type block []byte

func newBlock(size int) block {
	b := make(block, size)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// of returns what a call writes if so many bytes are left.
func (b block) of(call, left int64) []byte {
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, uint64(call))
	}
	return b[:min(int64(len(b)), left)]
}

// wroteStream wants a file to be what a stream writes.
func wroteStream(name string, size int64, blockSize int) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != size {
		return fmt.Errorf("%s has %d bytes, not %d", name, info.Size(), size)
	}
	b, got := newBlock(blockSize), make([]byte, blockSize)
	var n int64
	for call := int64(0); n < size; call++ {
		want := b.of(call, size-n)
		if _, err := io.ReadFull(f, got[:len(want)]); err != nil {
			return err
		}
		if !bytes.Equal(got[:len(want)], want) {
			return fmt.Errorf("%s has other bytes than it should from %d on", name, n)
		}
		n += int64(len(want))
	}
	return nil
}
