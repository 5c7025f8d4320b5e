package main

import (
	"strings"
	"testing"
	"time"
)

// steps draws what a path shows that holds delay and carries bytesPerSecond:
// requests of size, twice as many at each step, up to depth.
func steps(delay time.Duration, bytesPerSecond float64, size, depth int, cores float64) []step {
	var out []step
	for d := 1; d <= depth; d *= 2 {
		transfer := float64(size) / bytesPerSecond
		latency := max(delay.Seconds()+transfer, float64(d)*transfer)
		rate := float64(d*size) / latency
		out = append(out, step{
			Depth: d, Size: size, Rate: rate, Cores: cores * rate / bytesPerSecond,
			Latency: time.Duration(latency * float64(time.Second)),
		})
	}
	return out
}

func TestVerdict(t *testing.T) {
	const ms = time.Millisecond
	plain := measurement{RTT: ms / 5, MaxRead: 8 << 20, Credits: 512}
	with := func(change func(*measurement)) measurement {
		m := plain
		change(&m)
		return m
	}
	for _, c := range []struct {
		name   string
		m      measurement
		limit  string
		advice string // a part of it
	}{
		{"nothing measured", plain, "", ""},
		{"1 Gbit/s", with(func(m *measurement) {
			m.Steps = steps(ms/5, 117e6, 1<<20, 16, 0.05)
		}), byLink, "117 MB/s"},
		{"1 Gbit/s, 20 ms", with(func(m *measurement) {
			m.Steps = steps(20*ms, 117e6, 1<<20, 16, 0.05)
		}), byLink, "117 MB/s"},
		{"10 Mbit/s to this machine", with(func(m *measurement) {
			m.SameHost, m.Steps = true, steps(ms/10, 1.25e6, 64<<10, 4, 0.02)
		}), byLink, "1.2 MB/s"},
		{"slow link, signed", with(func(m *measurement) {
			m.Signing, m.Crypto, m.Steps = "AES-CMAC", 1e-9, steps(ms/5, 12e6, 256<<10, 8, 0.02)
		}), byLink, "12 MB/s"},
		{"slow link, small reads", with(func(m *measurement) {
			m.MaxRead, m.Steps = 16<<10, steps(ms/5, 12e6, 16<<10, 64, 0.05)
		}), byLink, "12 MB/s"},
		{"50 ms", with(func(m *measurement) {
			m.RTT, m.Steps = 50*ms, steps(50*ms, 2e9, 1<<20, 8, 0.5)
		}), byDelay, "8 MiB in flight per 51 ms"},
		{"the README's server", with(func(m *measurement) {
			m.RTT, m.Credits, m.Burst, m.Steps = 100*ms, 128, 125e6, steps(100*ms, 125e6, 4<<20, 2, 0.1)
		}), byCredits, `128 × 64 KiB per 134 ms. Raise the server's "smb2 max credits"; expect about 119 MB/s.`},
		{"one credit", with(func(m *measurement) {
			m.SameHost, m.Credits, m.Steps = true, 1, steps(ms/20, 2e9, 64<<10, 1, 0.5)
		}), byCredits, "1 × 64 KiB"},
		{"one credit for little", with(func(m *measurement) {
			m.Credits, m.MaxRead, m.Steps = 1, 16<<10, steps(10*ms, 2e9, 16<<10, 1, 0.5)
		}), byMaxRead, "1 credit × 16 KiB per 10 ms"},
		{"16 KiB, many credits", with(func(m *measurement) {
			m.SameHost, m.MaxRead, m.Steps = true, 16<<10, steps(ms/20, 600e6, 16<<10, 64, 1.4)
		}), byMaxRead, "16 KiB in each request"},
		{"signed", with(func(m *measurement) {
			m.SameHost, m.Signing, m.Crypto, m.Steps = true, "AES-GMAC", 0.12e-9, steps(ms/20, 1.5e9, 1<<20, 16, 1.5)
		}), bySigning, "AES-GMAC takes 12 % of the CPU time"},
		{"sealed", with(func(m *measurement) {
			m.Sealing, m.Signing, m.Crypto, m.Steps = "AES-128-CCM", "AES-CMAC", 1.2e-9, steps(ms/20, 500e6, 1<<20, 16, 1)
		}), bySealing, "AES-128-CCM takes 60 % of the CPU time"},
		{"healthy", with(func(m *measurement) {
			m.SameHost, m.Steps = true, steps(ms/20, 2e9, 1<<20, 16, 1.5)
		}), byCPU, "Nothing to fix"},
		{"healthy, shallow", with(func(m *measurement) {
			m.SameHost, m.Steps = true, steps(ms, 2e9, 1<<20, 2, 1)
		}), byCPU, "Nothing to fix"},
		{"slow disks that work in parallel", with(func(m *measurement) {
			m.Steps = steps(20*ms, 2e9, 1<<20, 16, 0.2)
		}), byLink, "look at the server's disks"},
		{"healthy, fast network", with(func(m *measurement) {
			m.Steps = steps(ms/20, 2e9, 1<<20, 16, 1)
		}), byCPU, "Nothing to fix"},
	} {
		limit, advice := verdict(c.m)
		if limit != c.limit || !strings.Contains(advice, c.advice) {
			t.Errorf("%s: verdict %q, %q; want %q with %q", c.name, limit, advice, c.limit, c.advice)
		}
	}
}

func TestExpectNeverExceedsTheLink(t *testing.T) {
	m := measurement{RTT: time.Millisecond, MaxRead: 16 << 10, Credits: 1, Burst: 20e6}
	m.Steps = steps(time.Millisecond, 20e6, 16<<10, 1, 0.1)
	if _, advice := verdict(m); !strings.Contains(advice, "expect about 19 MB/s") {
		t.Errorf("advice %q, want the link's 19 MB/s in it", advice)
	}
}
