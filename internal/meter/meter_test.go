package meter

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		if got := m.Snapshot(); got != (Traffic{}) {
			t.Errorf("a new meter has %+v", got)
		}
		first := m.Begin()
		<-time.After(3 * time.Millisecond)
		second := m.Begin()
		<-time.After(time.Millisecond)
		m.Done(first, 1<<20, nil)
		m.Done(second, 4096, errors.New("failed"))
		third := m.Begin()
		got := m.Snapshot()
		sizes, latencies := got.Sizes, got.Latencies
		got.Sizes, got.Latencies = Histogram{}, Histogram{}
		if want := (Traffic{Requests: 2, Bytes: 1<<20 + 4096, Errors: 1, InFlight: 1, MaxInFlight: 2, Largest: 1 << 20}); got != want {
			t.Errorf("Snapshot() = %+v, want %+v", got, want)
		}
		if got, want := slices.Collect(sizes.All()), []Bucket{{2049, 4096, 1}, {1<<19 + 1, 1 << 20, 1}}; !slices.Equal(got, want) {
			t.Errorf("sizes %v, want %v", got, want)
		}
		if got, want := slices.Collect(latencies.All()), []Bucket{{513, 1024, 1}, {2049, 4096, 1}}; !slices.Equal(got, want) {
			t.Errorf("latencies %v, want %v", got, want)
		}
		<-time.After(time.Nanosecond)
		m.Done(third, 0, nil)
		after := m.Snapshot()
		if got, want := slices.Collect(after.Latencies.Sub(latencies).All()), []Bucket{{0, 1, 1}}; !slices.Equal(got, want) {
			t.Errorf("the last one took %v, want %v", got, want)
		}
		if after.Requests != 3 || after.InFlight != 0 || after.MaxInFlight != 2 {
			t.Errorf("at the end %+v", after)
		}
	})
}

// TestMeterConcurrent has many use a meter at once, while somebody looks.
func TestMeterConcurrent(t *testing.T) {
	const workers, each = 8, 500
	var m Meter
	var work, watch sync.WaitGroup
	stop := make(chan struct{})
	watch.Go(func() {
		for last := (Traffic{}); ; {
			now := m.Snapshot()
			if now.Requests < last.Requests || now.Bytes < last.Bytes || now.InFlight < 0 || now.InFlight > workers {
				t.Errorf("after %+v came %+v", last, now)
			}
			last = now
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for w := range workers {
		work.Go(func() {
			for i := range each {
				var err error
				if i%10 == 0 {
					err = errors.ErrUnsupported
				}
				m.Done(m.Begin(), w+1, err)
			}
		})
	}
	work.Wait()
	close(stop)
	watch.Wait()
	got := m.Snapshot()
	if got.Requests != workers*each || got.Bytes != each*workers*(workers+1)/2 || got.Errors != workers*each/10 {
		t.Errorf("%d requests, %d bytes, %d errors", got.Requests, got.Bytes, got.Errors)
	}
	if got.InFlight != 0 || got.MaxInFlight < 1 || got.MaxInFlight > workers || got.Largest != workers || got.Latencies.Count() != workers*each {
		t.Errorf("got %+v", got)
	}
}

func TestMeterAlloc(t *testing.T) {
	var m Meter
	err := errors.New("failed")
	if n := testing.AllocsPerRun(100, func() { m.Done(m.Begin(), 1<<20, err) }); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if s := m.Snapshot(); s.Sizes.Quantile(0.5) != 1<<20 || s.Sizes.Sub(s.Sizes).Count() != 0 {
			t.Error("wrong sizes")
		}
	}); n != 0 {
		t.Errorf("a snapshot allocates %v times", n)
	}
}
