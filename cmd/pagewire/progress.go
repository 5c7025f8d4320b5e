package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	// rateSpan is how far back the shown rate looks.
	rateSpan = 5 * time.Second
	// ownLine is the size from which a file is worth a progress line of its own.
	ownLine = 32 << 20
	// logEvery is how often progress is told where there is no terminal.
	logEvery = 10 * time.Second
)

// meter counts what a copy has done. It is safe for concurrent use.
type meter struct {
	start time.Time
	now   func() time.Time

	bytes, files           atomic.Int64 // of files that are done with
	totalBytes, totalFiles atomic.Int64 // found so far
	walked                 atomic.Bool  // the totals are final

	mu      sync.Mutex
	active  map[*transfer]struct{} // guarded by mu
	latest  string                 // guarded by mu
	samples []sample               // guarded by mu; the oldest first
}

// transfer is one file on its way.
type transfer struct {
	name     string
	size     int64
	have     int64        // bytes that were there before
	progress func() int64 // bytes that have come since
}

type sample struct {
	at    time.Time
	bytes int64
}

func newMeter(now func() time.Time) *meter {
	return &meter{start: now(), now: now, active: map[*transfer]struct{}{}}
}

// found adds a file that is to be copied.
func (m *meter) found(size int64) {
	m.totalFiles.Add(1)
	m.totalBytes.Add(size)
}

// begin starts the count of one file, of which have bytes are there already;
// progress says how many more there are.
func (m *meter) begin(name string, size, have int64, progress func() int64) *transfer {
	t := &transfer{name, size, have, progress}
	m.totalBytes.Add(-have)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active[t] = struct{}{}
	m.latest = name
	return t
}

// end ends the count of t, of which n bytes have come. It counts as done unless
// it failed.
func (m *meter) end(t *transfer, n int64, err error) {
	if err == nil {
		m.files.Add(1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.active, t)
	m.bytes.Add(n)
}

// snapshot is what a progress line shows.
type snapshot struct {
	Name        string  `json:"name"`
	Done        int64   `json:"done"`  // of the file, or of all where files are small
	Total       int64   `json:"total"` // likewise
	Rate        float64 `json:"rate"`  // bytes per second, of late
	Files       int64   `json:"files"`
	TotalFiles  int64   `json:"total_files"`
	TotalsFinal bool    `json:"totals_final"`
}

func (m *meter) snapshot() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, bytes := m.now(), m.bytes.Load()
	s := snapshot{
		Name: m.latest, Total: m.totalBytes.Load(),
		Files: m.files.Load(), TotalFiles: m.totalFiles.Load(), TotalsFinal: m.walked.Load(),
	}
	var largest int64 = ownLine - 1
	for t := range m.active {
		n := t.progress()
		bytes += n
		if t.size > largest {
			largest = t.size
			s.Name, s.Done, s.Total = t.name, t.have+n, t.size
		}
	}
	if largest < ownLine {
		s.Done = bytes
	}
	m.samples = append(m.samples, sample{now, bytes})
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= rateSpan {
		m.samples = m.samples[1:]
	}
	from := sample{at: m.start}
	if len(m.samples) > 1 {
		from = m.samples[0]
	}
	if d := now.Sub(from.at); d > 0 {
		s.Rate = float64(bytes-from.bytes) / d.Seconds()
	}
	return s
}

// percent is rounded down, so that 100 means done.
func (s snapshot) percent() int64 {
	if s.Total <= 0 {
		return 100
	}
	return int64(min(float64(s.Done)/float64(s.Total), 1) * 100)
}

// figures is the line but for its name: 62%  2.5/4.0 GiB  112 MB/s  ETA 0:14  37/210 files.
func (s snapshot) figures() string {
	eta, more := "-:--", ""
	if left := s.Total - s.Done; s.Rate > 0 && left >= 0 && float64(left)/s.Rate < 100*3600 {
		eta = clock(time.Duration(float64(left) / s.Rate * float64(time.Second)))
	}
	if !s.TotalsFinal {
		more = "+"
	}
	return fmt.Sprintf("%d%%  %s  %s  ETA %s  %d/%d%s files",
		s.percent(), sizeOf(s.Done, s.Total), rate(s.Rate), eta, s.Files, s.TotalFiles, more)
}

// sizeOf writes both sizes in the unit of the whole: 2.5/4.0 GiB.
func sizeOf(done, total int64) string {
	whole := size(total)
	number, unit, _ := strings.Cut(whole, " ")
	if unit == "B" {
		return fmt.Sprintf("%d/%s", done, whole)
	}
	v := float64(done)
	for _, u := range "KMGTPE" {
		if v /= 1024; unit[0] == byte(u) {
			break
		}
	}
	return fmt.Sprintf("%.1f/%s %s", v, number, unit)
}

// String is the whole line.
func (s snapshot) String() string { return printable(s.Name) + "  " + s.figures() }

// bar is the line with a bar in it, no wider than width. The name gives way
// first, by its front, since names of one folder differ at the end.
func (s snapshot) bar(width int) string {
	const shortest = 12
	figures, name := s.figures(), printable(s.Name)
	room := width - utf8.RuneCountInString(figures) - 4
	if room < 4 {
		return ellipsis(figures, width)
	}
	if n := utf8.RuneCountInString(name); n > room {
		return ellipsis(name, room) + "  " + figures
	} else if room -= n; room < shortest {
		return name + "  " + figures
	}
	room = min(room-2, 40)
	full := int(int64(room) * s.percent() / 100)
	return name + "  [" + strings.Repeat("=", full) + strings.Repeat(" ", room-full) + "]  " + figures
}

// ellipsis shortens s to n runes from the front.
func ellipsis(s string, n int) string {
	r := []rune(s)
	switch {
	case len(r) <= n:
		return s
	case n <= 1:
		return ""
	}
	return "…" + string(r[len(r)-n+1:])
}

// progress shows a meter until stop is called: as a bar on a terminal, which
// lets what is written to above pass over it, else as a line now and then.
type progress struct {
	above io.Writer
	stop  func()
}

// showBar draws m on the terminal w.
func showBar(w io.Writer, m *meter) progress {
	p := mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(200*time.Millisecond))
	filler := mpb.BarFillerFunc(func(w io.Writer, st decor.Statistics) error {
		_, err := io.WriteString(w, m.snapshot().bar(st.AvailableWidth))
		return err
	})
	b, err := p.Add(1, filler, mpb.BarFillerTrim())
	if err != nil {
		return progress{above: w, stop: func() {}}
	}
	return progress{above: p, stop: func() {
		b.Abort(true)
		p.Wait()
	}}
}

// logLines calls emit with a snapshot of m every so often.
func logLines(m *meter, every time.Duration, emit func(snapshot)) progress {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				emit(m.snapshot())
			case <-done:
				return
			}
		}
	}()
	return progress{stop: func() {
		close(done)
		<-gone
	}}
}

// summary is the last line: 210 files, 31.2 GiB in 4:59, 112 MB/s.
func summary(files, bytes int64, took time.Duration) string {
	perSecond := 0.0
	if took > 0 {
		perSecond = float64(bytes) / took.Seconds()
	}
	in := clock(took)
	if took < 10*time.Second {
		in = fmt.Sprintf("%.1f s", took.Seconds())
	}
	return fmt.Sprintf("%s, %s in %s, %s", count(files, "file"), size(bytes), in, rate(perSecond))
}
