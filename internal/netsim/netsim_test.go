package netsim

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	mbit = int64(1e6)
	gbit = int64(1e9)
)

// took returns how long f takes on the bubble's clock.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// send writes n bytes in calls of chunk and closes.
func send(t *testing.T, w *Conn, n, chunk int) {
	buf := make([]byte, chunk)
	for n > 0 {
		m, err := w.Write(buf[:min(n, chunk)])
		if err != nil {
			t.Errorf("write: %v", err)
			return
		}
		n -= m
	}
	w.CloseWrite()
}

func receive(t *testing.T, r io.Reader, want int) {
	t.Helper()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 1<<20))
	if err != nil || n != int64(want) {
		t.Errorf("received %d bytes, error %v; want %d", n, err, want)
	}
}

func TestTransferIsExact(t *testing.T) {
	for _, tt := range []struct {
		rate     int64
		rtt      time.Duration
		n, chunk int
		want     time.Duration
	}{
		{gbit, 20 * time.Millisecond, 25e6, 1 << 20, 10*time.Millisecond + 200*time.Millisecond},
		{gbit, 20 * time.Millisecond, 10e6, 1000, 10*time.Millisecond + 80*time.Millisecond},
		{gbit, 20 * time.Millisecond, 1, 1, 10*time.Millisecond + 8*time.Nanosecond},
		{10 * gbit, 100 * time.Millisecond, 150e6, 4 << 20, 50*time.Millisecond + 120*time.Millisecond},
		{10 * gbit, 0, 25e6, 25e6, 20 * time.Millisecond},
		{3 * mbit, 3 * time.Millisecond, 1e6, 1 << 16, 1500*time.Microsecond + 2666666667},
		{0, 20 * time.Millisecond, 25e6, 1 << 20, 10 * time.Millisecond},
		{0, 0, 25e6, 1 << 20, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := New(Config{Up: tt.rate, RTT: tt.rtt}).Pipe()
			got := took(func() {
				go send(t, c, tt.n, tt.chunk)
				receive(t, s, tt.n)
			})
			// The end of the file takes the delay too, and is never early.
			want := max(tt.want, tt.rtt/2)
			if got < want || got > want+time.Nanosecond {
				t.Errorf("%d bytes at %d bit/s and RTT %v took %v, want %v", tt.n, tt.rate, tt.rtt, got, want)
			}
		})
	}
}

func TestBytesSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := New(Config{Down: 10 * gbit, RTT: time.Millisecond}).Pipe()
		data := make([]byte, 5<<20+17)
		rand.NewChaCha8([32]byte{1}).Read(data)
		go func() {
			rnd := rand.New(rand.NewPCG(1, 2))
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 1+rnd.IntN(300_000))
				if _, err := s.Write(rest[:n]); err != nil {
					t.Errorf("write: %v", err)
				}
				rest = rest[n:]
			}
			s.Close()
		}()
		rnd := rand.New(rand.NewPCG(3, 4))
		h := sha256.New()
		buf := make([]byte, 300_000)
		for {
			n, err := c.Read(buf[:1+rnd.IntN(len(buf)-1)])
			h.Write(buf[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if want := sha256.Sum256(data); !bytes.Equal(h.Sum(nil), want[:]) {
			t.Error("other bytes arrived than were sent")
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed peer: %v, want EPIPE", err)
		}
	})
}

// TestRoundTrip asks in a small message and gets a large one.
func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := New(Config{Up: gbit, Down: gbit, RTT: 5 * time.Millisecond}).Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			req := make([]byte, 100)
			for {
				if _, err := io.ReadFull(s, req); err != nil {
					return
				}
				s.Write(make([]byte, 80))
				s.Write(make([]byte, 1<<20))
			}
		}()
		reply := make([]byte, 80+1<<20)
		const each = 5*time.Millisecond + 800*time.Nanosecond + (80+1<<20)*8*time.Nanosecond
		got := took(func() {
			for range 10 {
				c.Write(make([]byte, 100))
				if _, err := io.ReadFull(c, reply); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got != 10*each {
			t.Errorf("10 round trips took %v, want %v", got, 10*each)
		}
		c.Close()
		<-served
	})
}

func TestFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{Up: gbit, RTT: 20 * time.Millisecond})
		const n = 5e6 // 40 ms alone
		var done [4]time.Duration
		start := time.Now()
		finished := make(chan struct{})
		for i := range done {
			c, s := link.Pipe()
			size := n * (i + 1)
			go send(t, c, size, 1<<20)
			go func() {
				receive(t, s, size)
				done[i] = time.Since(start)
				finished <- struct{}{}
			}()
		}
		for range done {
			<-finished
		}
		// Four share until the first is through, then three, and so on.
		at := 10 * time.Millisecond
		for i := range done {
			at += time.Duration(len(done)-i) * 40 * time.Millisecond
			if d := (done[i] - at).Abs(); d > time.Microsecond {
				t.Errorf("connection %d took %v, want %v", i, done[i], at)
			}
		}
	})
}

// TestSmallBesideLarge wants a small message not to wait for another
// connection's queue.
func TestSmallBesideLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{Up: gbit, RTT: 10 * time.Millisecond})
		c1, s1 := link.Pipe()
		go send(t, c1, 100e6, 1<<20)
		received := make(chan struct{})
		go func() {
			receive(t, s1, 100e6)
			close(received)
		}()
		c2, s2 := link.Pipe()
		<-time.After(100 * time.Millisecond)
		got := took(func() {
			c2.Write(make([]byte, 1000))
			io.ReadFull(s2, make([]byte, 1000))
		})
		if want := 5*time.Millisecond + 2*8*time.Microsecond; (got - want).Abs() > 100*time.Nanosecond {
			t.Errorf("1000 bytes beside a full queue took %v, want %v", got, want)
		}
		<-received
	})
}

func TestSenderBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ queue, want int64 }{{0, 2.5e6}, {1 << 20, 1 << 20}} {
			c, s := New(Config{Up: gbit, RTT: 20 * time.Millisecond, Queue: tt.queue}).Pipe()
			c.SetWriteDeadline(time.Now().Add(time.Nanosecond))
			n, err := c.Write(make([]byte, 10e6))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("write: %v, want a timeout", err)
			}
			if int64(n) > tt.want || int64(n) < tt.want*3/4 {
				t.Errorf("the queue took %d bytes, want %d", n, tt.want)
			}
			// Nobody reads: what the link and the receiver hold is bounded too.
			c.SetWriteDeadline(time.Now().Add(time.Hour))
			m, _ := c.Write(make([]byte, 100e6))
			if got, limit := int64(n+m), 2*tt.want+2.5e6+slack; got > limit {
				t.Errorf("%d bytes were taken that nobody reads, want at most %d", got, limit)
			}
			c.Close()
			s.Close()
		}
	})
}

func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{Up: gbit, RTT: 20 * time.Millisecond})
		c, s := link.Pipe()
		time.AfterFunc(400*time.Millisecond, func() {
			link.Change(Config{Up: gbit / 10, RTT: 2 * time.Millisecond})
		})
		got := took(func() {
			go send(t, c, 100e6, 1<<20)
			receive(t, s, 100e6)
		})
		if want := 400*time.Millisecond + 4*time.Second + time.Millisecond; got != want {
			t.Errorf("half of it at a tenth of the rate took %v, want %v", got, want)
		}
	})
}

func TestStall(t *testing.T) {
	for _, rate := range []int64{0, gbit} {
		synctest.Test(t, func(t *testing.T) {
			link := New(Config{Up: rate, RTT: 20 * time.Millisecond})
			c, s := link.Pipe()
			link.Stall(Up)
			time.AfterFunc(time.Minute, func() { link.Resume(Up) })
			got := took(func() {
				go send(t, c, 1000, 1000)
				receive(t, s, 1000)
			})
			want := time.Minute + 10*time.Millisecond
			if rate > 0 {
				want += 8 * time.Microsecond
			}
			if got != want {
				t.Errorf("at %d bit/s a stall of a minute took %v, want %v", rate, got, want)
			}
		})
	}
}

func TestCutAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{Up: gbit, RTT: 20 * time.Millisecond})
		link.CutAfter(Up, 1e6)
		c, s := link.Pipe()
		start := time.Now()
		idle := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			idle <- err
		}()
		go func() {
			for {
				if _, err := c.Write(make([]byte, 1<<16)); err != nil {
					idle <- err
					return
				}
			}
		}()
		n, err := io.Copy(io.Discard, s)
		if n != 1e6 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("received %d bytes and %v, want 1000000 and ECONNRESET", n, err)
		}
		for range 2 {
			if err := <-idle; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the sender got %v, want ECONNRESET", err)
			}
		}
		if got, want := time.Since(start), 18*time.Millisecond; got != want {
			t.Errorf("the connection died after %v, want %v", got, want)
		}
	})
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{RTT: 20 * time.Millisecond})
		c, s := link.Pipe()
		c.Write(make([]byte, 100))
		<-time.After(10 * time.Millisecond)
		c.Write(make([]byte, 1000))
		link.Cut()
		n, err := io.Copy(io.Discard, s)
		if n != 100 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("received %d bytes and %v, want the 100 that had arrived and ECONNRESET", n, err)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v, want ECONNRESET", err)
		}
	})
}

func TestBlackhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := New(Config{RTT: 20 * time.Millisecond})
		c, s := link.Pipe()
		c.Write(make([]byte, 10))
		link.Blackhole(Up)
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		c.SetWriteDeadline(time.Now().Add(time.Hour))
		if _, err := c.Write(make([]byte, 1<<30)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing on without an answer: %v, want a timeout", err)
		}
		s.SetReadDeadline(time.Now().Add(time.Hour))
		n, err := io.Copy(io.Discard, s)
		var timeout net.Error
		if n != 10 || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("received %d bytes and %v, want 10 and a timeout", n, err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := New(Config{RTT: 20 * time.Millisecond}).Pipe()
		blocked := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			blocked <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-blocked; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a blocked read got %v, want net.ErrClosed", err)
		}
		got := took(func() {
			if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("the peer read %d, %v, want the end of the file", n, err)
			}
		})
		if got != 10*time.Millisecond {
			t.Errorf("the peer heard of it after %v, want 10ms", got)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v, want net.ErrClosed", err)
		}
	})
}

func TestMulDiv(t *testing.T) {
	for _, tt := range []struct {
		a, b, c, want int64
		rest          bool
	}{
		{7, 3, 2, 10, true},
		{1e12, 1e12, 1e15, 1e9, false},
		{1 << 62, 1 << 62, 1, 1<<63 - 1, false},
		{-5, 3, 1, 0, false},
	} {
		if got, rest := mulDiv(tt.a, tt.b, tt.c); got != tt.want || rest != tt.rest {
			t.Errorf("mulDiv(%d, %d, %d) = %d, %v; want %d, %v", tt.a, tt.b, tt.c, got, rest, tt.want, tt.rest)
		}
	}
}

// BenchmarkPipe moves 1 MiB messages through an ideal link in virtual time.
func BenchmarkPipe(b *testing.B) {
	for _, bb := range []struct {
		name string
		cfg  Config
	}{
		{"unlimited", Config{RTT: 20 * time.Millisecond}},
		{"1Gbit", Config{Up: gbit, RTT: 20 * time.Millisecond}},
		{"10Gbit", Config{Up: 10 * gbit, RTT: 20 * time.Millisecond}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c, s := New(bb.cfg).Pipe()
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			go func() {
				buf := make([]byte, 1<<20)
				for range b.N {
					c.Write(buf)
				}
				c.Close()
			}()
			io.CopyBuffer(struct{ io.Writer }{io.Discard}, s, make([]byte, 1<<20))
		})
	}
}
