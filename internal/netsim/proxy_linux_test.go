package netsim

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// serve runs a TCP server until the test ends and returns its address.
func serve(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return ln.Addr().String()
}

func echo(c net.Conn) { io.Copy(c, c) }

func dialProxy(t testing.TB, link *Link, target string) (*Proxy, net.Conn) {
	t.Helper()
	p, err := link.Proxy(target)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		p.Close()
	})
	return p, c
}

func TestProxyDelay(t *testing.T) {
	for _, rtt := range []time.Duration{0, 200 * time.Microsecond, 5500 * time.Microsecond, 20 * time.Millisecond} {
		p, c := dialProxy(t, New(Config{RTT: rtt}), serve(t, echo))
		const rounds = 20
		buf := make([]byte, 100)
		got := took(func() {
			for range rounds {
				c.Write(buf)
				if _, err := io.ReadFull(c, buf); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got < rounds*rtt {
			t.Errorf("%d round trips of %v took %v", rounds, rtt, got)
		}
		p.Close() // waits for what is being counted
		r := p.Report()
		t.Logf("RTT %v: %v each, woken %v late on average, %v at worst", rtt, got/rounds, r.Late, r.Latest)
		if r.Carried != [2]int64{100 * rounds, 100 * rounds} {
			t.Errorf("carried %v bytes, want %d each way", r.Carried, 100*rounds)
		}
	}
}

func TestProxyRate(t *testing.T) {
	for _, tt := range []struct {
		rate int64
		n    int
	}{{gbit, 32e6}, {10 * gbit, 128e6}, {0, 256e6}} {
		addr := serve(t, func(c net.Conn) {
			n, _ := io.Copy(io.Discard, c)
			if n != int64(tt.n) {
				t.Errorf("the server got %d bytes, want %d", n, tt.n)
			}
		})
		link := New(Config{Up: tt.rate, RTT: 20 * time.Millisecond})
		p, c := dialProxy(t, link, addr)
		got := took(func() {
			buf := make([]byte, 1<<20)
			for n := tt.n; n > 0; n -= min(n, len(buf)) {
				if _, err := c.Write(buf[:min(n, len(buf))]); err != nil {
					t.Fatal(err)
				}
			}
			c.(*net.TCPConn).CloseWrite()
			if _, err := c.Read(buf); err != io.EOF {
				t.Errorf("read %v, want the end of the file", err)
			}
		})
		least := 20 * time.Millisecond
		if tt.rate > 0 {
			least += time.Duration(int64(tt.n) * 8e9 / tt.rate)
		}
		if got < least {
			t.Errorf("%d bytes at %d bit/s took %v, less than %v", tt.n, tt.rate, got, least)
		}
		p.Close()
		r := p.Report()
		t.Logf("%d bytes at %d bit/s took %v, the link %v: %.3g bit/s, woken %v late on average, %v at worst",
			tt.n, tt.rate, got, least, r.Rate(Up), r.Late, r.Latest)
		if r.Carried[Up] != int64(tt.n) {
			t.Errorf("carried %d bytes, want %d", r.Carried[Up], tt.n)
		}
	}
}

func TestProxyFaults(t *testing.T) {
	link := New(Config{RTT: 2 * time.Millisecond})
	link.CutAfter(Down, 1000)
	p, c := dialProxy(t, link, serve(t, echo))
	c.Write(make([]byte, 3000))
	n, err := io.Copy(io.Discard, c)
	if n != 1000 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the cut %d bytes and %v, want 1000 and ECONNRESET", n, err)
	}

	link.Stall(Up)
	c, err = net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write(make([]byte, 10))
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read from a stalled link: %v, want a timeout", err)
	}
	link.Resume(Up)
	c.SetReadDeadline(time.Time{})
	if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
		t.Errorf("read after the stall: %v", err)
	}

	p.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlives the proxy")
	}
}

func TestProxyWithoutServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	_, c := dialProxy(t, New(Config{}), ln.Addr().String())
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a read without a server behind the proxy succeeded")
	}
}
