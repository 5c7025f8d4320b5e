package main

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		n                  int64
		size, exact, short string
	}{
		{0, "0 B", "0 B", "0"},
		{1023, "1023 B", "1023 B", "1023"},
		{1024, "1.0 KiB", "1 KiB", "1.0K"},
		{16384, "16.0 KiB", "16 KiB", "16K"},
		{10188, "9.9 KiB", "9.9 KiB", "9.9K"},
		{1<<20 - 1, "1.0 MiB", "1 MiB", "1.0M"},
		{8 << 20, "8.0 MiB", "8 MiB", "8.0M"},
		{33500000000, "31.2 GiB", "31.2 GiB", "31G"},
		{1<<63 - 1, "8.0 EiB", "8 EiB", "8.0E"},
	} {
		if got := size(c.n); got != c.size {
			t.Errorf("size(%d) = %q, want %q", c.n, got, c.size)
		}
		if got := exactSize(c.n); got != c.exact {
			t.Errorf("exactSize(%d) = %q, want %q", c.n, got, c.exact)
		}
		if got := shortSize(c.n); got != c.short {
			t.Errorf("shortSize(%d) = %q, want %q", c.n, got, c.short)
		}
	}
}

func TestRate(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0 kB/s", 850e3: "850 kB/s", 1.25e6: "1.2 MB/s", 83.2e6: "83 MB/s", 2.14e9: "2140 MB/s",
	} {
		if got := rate(v); got != want {
			t.Errorf("rate(%g) = %q, want %q", v, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		14 * time.Second: "0:14", 299 * time.Second: "4:59", 3723 * time.Second: "1:02:03", 400 * time.Millisecond: "0:00",
	} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		63 * time.Microsecond: "63 µs", 5500 * time.Microsecond: "5.5 ms", time.Millisecond: "1 ms",
		100 * time.Millisecond: "100 ms", 12 * time.Second: "12 s",
	} {
		if got := delay(d); got != want {
			t.Errorf("delay(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"plain.txt":         "plain.txt",
		"naïve 文件":          "naïve 文件",
		"a\x1b]0;owned\a.b": "a?]0;owned?.b",
		"line\nbreak":       "line?break",
		"bad\xff":           "bad?",
		"rtl\u202eexe.txt":  "rtl?exe.txt",
	} {
		if got := printable(name); got != want {
			t.Errorf("printable(%q) = %q, want %q", name, got, want)
		}
	}
}
