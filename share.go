package pagewire

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/internal/meter"
	"github.com/pagewire/pagewire/internal/pagecache"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/vfs"
)

// link is what all file systems of one connection share.
type link struct {
	options Options
	server  string       // host:port
	logger  *slog.Logger // nil: nobody listens
	about   func(*Stats) // adds what the connection knows; nil: nothing
	cache   *Cache
	private bool           // the cache is the link's own
	buffers buffers        // of transfers
	meters  [2]meter.Meter // by direction
	crowd   [2]crowd       // by direction
	trip    atomic.Int64   // the shortest round trip, in ns; 0: none yet

	mounting sync.Mutex
	mounted  map[*share]bool // guarded by mounting
}

func newLink(o Options, cache *Cache) (*link, error) {
	l := &link{options: o, cache: cache, mounted: map[*share]bool{}}
	if cache == nil {
		var err error
		if l.cache, err = NewCache(CacheConfig{Size: o.cacheSize(os.DirFS("/")), PageSize: o.PageSize}); err != nil {
			return nil, err
		}
		l.private = true
	}
	return l, nil
}

func (l *link) shares() []*share {
	l.mounting.Lock()
	defer l.mounting.Unlock()
	return slices.Collect(maps.Keys(l.mounted))
}

// crowd is who shares a window: transfers and, together, their workers.
type crowd struct{ transfers, workers atomic.Int32 }

// share is one volume over a link.
type share struct {
	*link
	vol     remote.Volume
	files   *vfs.FS
	name    string                      // //host/share, as a link may spell it
	release func(context.Context) error // gives up the connection too, if it is the share's own

	closed atomic.Bool // set under mu
	mu     sync.Mutex
	open   map[*File]bool // guarded by mu
}

func newShare(l *link, vol remote.Volume, name string) *share {
	s := &share{link: l, vol: vol, name: name, open: map[*File]bool{}}
	s.files = vfs.New(vol, l.cache.pages, l.options.vfs(l))
	l.mounting.Lock()
	defer l.mounting.Unlock()
	l.mounted[s] = true
	return s
}

// vfs says to the layer of names and attributes what the options demand.
func (o *Options) vfs(l *link) vfs.Config {
	cfg := vfs.Config{
		AttrTime:    attrTimeOf(o.AttrTime),
		DirAttrTime: attrTimeOf(o.DirAttrTime),
		ServerIno:   !o.NoServerInodes,
		Silly:       true, // as SMB needs it
		Logger:      l.logger,
		File: pagecache.FileConfig{
			Ahead:     int64(o.ReadAhead),
			NoCommit:  o.NoStrictSync,
			Reads:     &l.meters[remote.Reading],
			Writes:    &l.meters[remote.Writing],
			Temporary: mayWorkLater,
		},
	}
	switch o.Cache {
	case CacheNone:
		cfg.File.Mode = pagecache.None
	case CacheLoose, CacheSingleClient:
		cfg.File.Mode = pagecache.Loose
	case CacheReadOnly:
		cfg.File.Mode = pagecache.ReadOnly
	}
	return cfg
}

// attrTimeOf is what a time means to vfs, which has 0 for its default.
func attrTimeOf(d *time.Duration) time.Duration {
	switch {
	case d == nil:
		return 0
	case *d == 0:
		return -1
	}
	return *d
}

// mayWorkLater reports whether what failed is worth trying again.
func mayWorkLater(err error) bool { return errors.Is(err, ErrDisconnected) }

// add notes that a file is open, unless the share is closed.
func (s *share) add(f *File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return false
	}
	s.open[f] = true
	return true
}

func (s *share) remove(f *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, f)
}

// close closes what is open, which writes what is dirty, and gives up the volume.
func (s *share) close(ctx context.Context) error {
	s.mu.Lock()
	open := s.open
	s.open = nil
	again := s.closed.Swap(true)
	s.mu.Unlock()
	if again {
		return &fs.PathError{Op: "close", Path: s.name, Err: fs.ErrClosed}
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		places = make(chan struct{}, closers)
	)
	for f := range open {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := f.close(ctx); err != nil && !errors.Is(err, fs.ErrClosed) {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s.files.Close()
	s.mounting.Lock()
	delete(s.mounted, s)
	s.mounting.Unlock()
	err := s.vol.Close(ctx)
	if s.release != nil {
		if releaseErr := s.release(ctx); err == nil {
			err = releaseErr
		}
	}
	return errors.Join(failed, pathError("close", s.name, ctx, err))
}

// closers is how many files are closed at once.
const closers = 16

// Stats is a snapshot of what a connection is and has done, for all that use it.
type Stats struct {
	Server  string // host:port
	Dialect string // "3.1.1"
	Signing string // "AES-GMAC"; "": not signed
	Cipher  string // "AES-128-GCM"; "": not sealed
	Guest   bool   // the server does not know the user

	RTT time.Duration // the shortest round trip of an idle connection

	MaxRead, MaxWrite, MaxTransact int // bytes in one request, as the server allows

	Credits    int // that the connection has now, those in use included
	MaxCredits int // and the most it had

	Requests    int64 // of every kind
	MaxInFlight int   // of every kind at one time

	Read, Write Traffic
	Cache       CacheStats
}

// Traffic is what went on in one direction with the bytes of files.
type Traffic struct {
	Requests, Bytes, Errors int64 // of finished requests
	InFlight, MaxInFlight   int   // requests
	Largest                 int   // bytes that one request carried

	Sizes     Histogram[int64] // bytes in a request
	Latencies Histogram[time.Duration]

	// Window is how many requests are best in flight, by what was measured, and
	// Size how large they are.
	Window, Size int
}

func (t *Traffic) set(m *meter.Meter) {
	s := m.Snapshot()
	t.Requests, t.Bytes, t.Errors = s.Requests, s.Bytes, s.Errors
	t.InFlight, t.MaxInFlight, t.Largest = s.InFlight, s.MaxInFlight, s.Largest
	t.Sizes, t.Latencies = buckets(s.Sizes, int64(1)), buckets(s.Latencies, time.Microsecond)
}

// buckets makes a histogram public.
func buckets[T ~int64](h meter.Histogram, unit T) Histogram[T] {
	var all Histogram[T]
	for b := range h.All() {
		all = append(all, Bucket[T]{UpTo: T(b.High) * unit, Count: b.Count})
	}
	return all
}

// Histogram counts by powers of two, the smallest first, and leaves out what has not
// occurred.
type Histogram[T ~int64] []Bucket[T]

// Bucket counts what was at most UpTo and more than half of it.
type Bucket[T ~int64] struct {
	UpTo  T
	Count int64
}

// Quantile returns the bound that a part q, from 0 to 1, of all stayed within; 0 if
// there is nothing.
func (h Histogram[T]) Quantile(q float64) T {
	total := int64(0)
	for _, b := range h {
		total += b.Count
	}
	rank := min(max(int64(math.Ceil(q*float64(total))), 1), total)
	for _, b := range h {
		if rank -= b.Count; rank <= 0 {
			return b.UpTo
		}
	}
	return 0
}

// tripTook keeps the shortest round trip.
func (l *link) tripTook(d time.Duration) {
	for old := l.trip.Load(); (old == 0 || int64(d) < old) && !l.trip.CompareAndSwap(old, int64(d)); old = l.trip.Load() {
	}
}

func (l *link) stats() Stats {
	s := Stats{Server: l.server, RTT: time.Duration(l.trip.Load())}
	if l.about != nil {
		l.about(&s)
	}
	s.Read.set(&l.meters[remote.Reading])
	s.Write.set(&l.meters[remote.Writing])
	s.Cache = l.cache.Stats()
	return s
}

func (s *share) stats() Stats {
	st := s.link.stats()
	for _, way := range []struct {
		direction remote.Direction
		traffic   *Traffic
	}{{remote.Reading, &st.Read}, {remote.Writing, &st.Write}} {
		w := s.vol.Flow().Window(way.direction)
		way.traffic.Window, way.traffic.Size = w.Requests, w.Size
	}
	return st
}
