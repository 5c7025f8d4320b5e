package flow

import (
	"fmt"
	"testing"
	"time"
)

const (
	gbit = 1e9 / 8 // bytes a second
	mib  = 1 << 20
)

// pipe simulates a path with a first-in, first-out queue, and a reader or
// writer that keeps in flight what the estimator says. Time starts at 0 and
// passes only here.
type pipe struct {
	rate    float64
	delay   time.Duration
	writes  bool
	limits  Limits
	appMost int // requests the application asks for at a time; 0: all

	e         Estimator
	now, free time.Duration // free: when the path has carried all it was given
	flying    []Sample      // in the order they finish
	delivered int64
	window    Window
}

func (p *pipe) stamp(d time.Duration) time.Time { return time.Unix(1e9, 0).Add(d) }

func (p *pipe) send(size int) {
	carry := time.Duration(float64(size) / p.rate * 1e9)
	s := Sample{Bytes: size, Sent: p.stamp(p.now)}
	if p.writes {
		// The bytes go first, then there is the delay.
		p.free = max(p.free, p.now) + carry
		s.Done = p.stamp(p.free + p.delay)
		s.FirstByte = s.Done
	} else {
		first := max(p.free, p.now+p.delay)
		p.free = first + carry
		s.FirstByte, s.Done = p.stamp(first), p.stamp(p.free)
	}
	p.flying = append(p.flying, s)
}

// run lets a duration pass and returns the bytes delivered in it.
func (p *pipe) run(d time.Duration) int64 {
	end, before := p.now+d, p.delivered
	for {
		p.window = p.e.Window(p.limits)
		most := p.window.Requests
		if p.appMost > 0 {
			most = min(most, p.appMost)
		}
		for len(p.flying) < most {
			p.send(p.window.Size)
		}
		s := p.flying[0]
		if s.Done.After(p.stamp(end)) {
			p.now = end
			return p.delivered - before
		}
		p.now = s.Done.Sub(p.stamp(0))
		p.flying = p.flying[1:]
		p.delivered += int64(s.Bytes)
		p.e.Sample(s)
	}
}

// share returns what part of the path's capacity d brings.
func (p *pipe) share(d time.Duration) float64 {
	return float64(p.run(d)) / p.rate / d.Seconds()
}

// roundTrip is the delay and what one request takes on an empty path.
func (p *pipe) roundTrip() time.Duration {
	return p.delay + time.Duration(mib/p.rate*1e9)
}

func (p *pipe) String() string {
	kind := "read"
	if p.writes {
		kind = "write"
	}
	return fmt.Sprintf("%s %.3g bit/s %v", kind, p.rate*8, p.delay)
}

var plenty = Limits{MaxSize: 8 * mib, MaxInFlight: 512 * mib}

func eachPath(t *testing.T, f func(*testing.T, *pipe)) {
	for _, writes := range []bool{false, true} {
		for _, rate := range []float64{gbit / 10, gbit, 10 * gbit} {
			for _, delay := range []float64{0.1, 1, 5.5, 20, 100} {
				p := &pipe{rate: rate, delay: time.Duration(delay * 1e6), writes: writes, limits: plenty}
				t.Run(p.String(), func(t *testing.T) { f(t, p) })
			}
		}
	}
}

func TestFillsThePath(t *testing.T) {
	eachPath(t, func(t *testing.T, p *pipe) {
		p.run(8 * p.roundTrip())
		if got := p.share(10 * p.roundTrip()); got < 0.9 {
			t.Errorf("after 8 round trips: %.3f of the path, want at least 0.9; %+v", got, p.window)
		}
		p.run(20 * p.roundTrip())
		if got := p.share(3*time.Second + 50*p.roundTrip()); got < 0.95 {
			t.Errorf("%.3f of the path, want at least 0.95; %+v", got, p.window)
		}
		if got := p.e.Why(); got != Path {
			t.Errorf("bound by %v, want %v", got, Path)
		}
		// The queue stays short.
		want := int(2*p.rate*p.delay.Seconds()) + 2*p.window.Size
		if got := p.window.Requests * p.window.Size; got > want+p.window.Size {
			t.Errorf("%+v makes %d bytes in flight, want at most %d", p.window, got, want)
		}
		if rate, delay := p.e.Path(); rate < 0.95*p.rate || rate > 1.1*p.rate || delay > p.delay*5/4+time.Duration(minSize/p.rate*1e9) {
			t.Errorf("estimated %.4g bytes/s and %v, want %.4g and %v", rate, delay, p.rate, p.delay)
		}
	})
}

// TestKeepsTheDelay runs for long enough to have to measure the delay anew.
func TestKeepsTheDelay(t *testing.T) {
	eachPath(t, func(t *testing.T, p *pipe) {
		p.run(5 * time.Second)
		want := p.window
		if got := p.share(25 * time.Second); got < 0.93 {
			t.Errorf("%.3f of the path in 25 s, want at least 0.93", got)
		}
		if got := p.window; got.Requests > want.Requests+want.Requests/4+1 || got.Size != want.Size {
			t.Errorf("the window went from %+v to %+v in 25 s", want, got)
		}
	})
}

type path struct {
	rate  float64
	delay time.Duration
}

func TestFollowsChange(t *testing.T) {
	base := path{gbit, 10 * time.Millisecond}
	for _, to := range []path{
		{10 * gbit, base.delay},
		{gbit / 10, base.delay},
		{gbit, 100 * time.Millisecond},
		{gbit, time.Millisecond},
	} {
		for _, writes := range []bool{false, true} {
			p := &pipe{rate: base.rate, delay: base.delay, writes: writes, limits: plenty}
			p.run(2 * time.Second)
			p.rate, p.delay = to.rate, to.delay
			p.run(20 * p.roundTrip())
			if got := p.share(20 * p.roundTrip()); got < 0.9 {
				t.Errorf("%v: %.3f of the path 20 round trips after the change, want at least 0.9; %+v", p, got, p.window)
			}
			p.run(25 * time.Second)
			want := int(2.5*p.rate*p.delay.Seconds()) + 3*p.window.Size
			if got := p.window.Requests * p.window.Size; got > want {
				t.Errorf("%v: %+v makes %d bytes in flight, want at most %d", p, p.window, got, want)
			}
		}
	}
}

// TestRamp is the path of a fast server far away.
func TestRamp(t *testing.T) {
	p := &pipe{rate: 500e6, delay: 20 * time.Millisecond, limits: plenty}
	p.run(8 * p.delay)
	if got := p.window.Requests * p.window.Size; got < 12*mib || got > 40*mib {
		t.Errorf("after 8 round trips %+v, want 12 MiB to 40 MiB", p.window)
	}
	p.run(time.Second)
	if got := p.window.Requests * p.window.Size; got < 12*mib || got > 20*mib {
		t.Errorf("after a second %+v, want 12 MiB to 20 MiB", p.window)
	}
}

// TestLoopback is a server on the same machine.
func TestLoopback(t *testing.T) {
	p := &pipe{rate: 3e9, delay: 300 * time.Microsecond, limits: plenty}
	p.run(time.Second)
	if got := p.window.Requests * p.window.Size; got < 8*mib || got > 12*mib || p.window.Size != 2*mib {
		t.Errorf("%+v, want 8 MiB to 12 MiB in requests of 2 MiB", p.window)
	}
}

func TestLimits(t *testing.T) {
	long := path{10 * gbit, 100 * time.Millisecond}
	short := path{gbit, 100 * time.Microsecond}
	for _, tt := range []struct {
		path   path
		limits Limits
		want   Window
		why    Bound
	}{
		{long, Limits{MaxSize: 8 * mib, MaxInFlight: 8 * mib}, Window{16, mib / 2}, InFlight},
		{long, Limits{MaxSize: mib, MaxInFlight: 32 * mib}, Window{32, mib}, InFlight},
		{long, Limits{MaxSize: mib, MaxInFlight: 512 * mib}, Window{152, mib}, Size},
		{short, Limits{MaxSize: 8 * mib, MaxInFlight: 512 << 10}, Window{3, 128 << 10}, InFlight},
		{short, Limits{MaxSize: 16 << 10, MaxInFlight: 512 << 10}, Window{12, 16 << 10}, Size},
		{short, Limits{MaxSize: 64 << 10, MaxInFlight: 64 << 10}, Window{2, 64 << 10}, InFlight},
		{short, Limits{MaxSize: 64 << 10, MaxInFlight: 0}, Window{2, 64 << 10}, InFlight},
		{short, plenty, Window{3, mib}, Path},
	} {
		p := &pipe{rate: tt.path.rate, delay: tt.path.delay, limits: tt.limits}
		p.run(4 * time.Second)
		if p.window != tt.want || p.e.Why() != tt.why {
			t.Errorf("%v with %+v: %+v because of %v, want %+v because of %v",
				p, tt.limits, p.window, p.e.Why(), tt.want, tt.why)
		}
	}
}

// TestIdleApplication asks for little at a time, then for all there is.
func TestIdleApplication(t *testing.T) {
	p := &pipe{rate: 10 * gbit, delay: 20 * time.Millisecond, limits: plenty}
	p.run(time.Second)
	p.appMost = 2
	p.run(5 * time.Second)
	p.appMost = 0
	p.run(p.delay)
	if got := p.share(5 * p.delay); got < 0.95 {
		t.Errorf("%.3f of the path after a time of little work, want at least 0.95; %+v", got, p.window)
	}

	p = &pipe{rate: 10 * gbit, delay: 20 * time.Millisecond, limits: plenty, appMost: 1}
	p.run(5 * time.Second)
	if got := p.e.Why(); got != Growth {
		t.Errorf("bound by %v before the window was ever in use, want %v", got, Growth)
	}
}

// TestHiccup stops the server for a moment now and then.
func TestHiccup(t *testing.T) {
	p := &pipe{rate: gbit, delay: 5 * time.Millisecond, limits: plenty}
	p.run(time.Second)
	want := p.window
	for range 20 {
		p.free = max(p.free, p.now) + 50*time.Millisecond
		p.run(500 * time.Millisecond)
	}
	if got := p.window; got.Requests > want.Requests+1 {
		t.Errorf("a server that hesitates made the window grow from %+v to %+v", want, got)
	}
}

func TestOddSamples(t *testing.T) {
	at := time.Unix(1e9, 0)
	var e Estimator
	e.Sample(Sample{Bytes: 0, Sent: at, FirstByte: at, Done: at.Add(time.Second)})
	e.Sample(Sample{Bytes: mib, Sent: at, FirstByte: at, Done: at})
	if rate, delay := e.Path(); rate != 0 || delay != 0 {
		t.Errorf("samples that say nothing gave %g bytes/s and %v", rate, delay)
	}
	// Reported in another order than finished.
	for _, ms := range []time.Duration{30, 10, 20} {
		e.Sample(Sample{Bytes: mib, Sent: at, FirstByte: at.Add(5 * time.Millisecond), Done: at.Add(ms * time.Millisecond)})
	}
	if rate, _ := e.Path(); rate > 3*mib/0.03+1 {
		t.Errorf("3 MiB in 30 ms gave %g bytes/s", rate)
	}
}

func TestNoAllocation(t *testing.T) {
	var e Estimator
	s := Sample{Bytes: mib, Sent: time.Unix(1e9, 0)}
	if n := testing.AllocsPerRun(1000, func() {
		s.Sent = s.Sent.Add(time.Millisecond)
		s.FirstByte, s.Done = s.Sent.Add(5*time.Millisecond), s.Sent.Add(6*time.Millisecond)
		e.Sample(s)
		e.Window(plenty)
	}); n != 0 {
		t.Errorf("%v allocations a request, want 0", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	var e Estimator
	s := Sample{Bytes: mib, Sent: time.Unix(1e9, 0)}
	for b.Loop() {
		s.Sent = s.Sent.Add(time.Millisecond)
		s.FirstByte, s.Done = s.Sent.Add(5*time.Millisecond), s.Sent.Add(6*time.Millisecond)
		e.Sample(s)
		e.Window(plenty)
	}
}
