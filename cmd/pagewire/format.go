package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// size writes n bytes in binary units, as in 31.2 GiB.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := scale(float64(n), 1024)
	return fmt.Sprintf("%.1f %ciB", v, unit)
}

// exactSize is size without a fraction where n is whole in its unit: 8 MiB.
func exactSize(n int64) string {
	return strings.Replace(size(n), ".0 ", " ", 1)
}

// shortSize writes n as ls -h and df -h do: 4.0K, 31G.
func shortSize(n int64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	v, unit := scale(float64(n), 1024)
	if v < 9.95 {
		return fmt.Sprintf("%.1f%c", v, unit)
	}
	return fmt.Sprintf("%.0f%c", v, unit)
}

// scale brings v below base, or as near as the units allow. A value that would
// print as base itself moves up a unit.
func scale(v, base float64) (float64, byte) {
	const units = "KMGTPE"
	i := 0
	for v /= base; v >= base-0.05 && i < len(units)-1; i++ {
		v /= base
	}
	return v, units[i]
}

// rate writes bytes per second in decimal units, as links are sold: 112 MB/s.
func rate(bytesPerSecond float64) string {
	v, unit := bytesPerSecond/1e6, "MB/s"
	if v < 1 {
		v, unit = bytesPerSecond/1e3, "kB/s"
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// clock writes d as a stopwatch does: 0:14, 4:59, 1:02:03.
func clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// delay writes a round trip with two significant digits: 100 ms, 5.5 ms, 63 µs.
func delay(d time.Duration) string {
	v, unit := float64(d)/1e6, "ms"
	switch {
	case d < time.Millisecond:
		v, unit = float64(d)/1e3, "µs"
	case d >= 10*time.Second:
		v, unit = float64(d)/1e9, "s"
	}
	if v < 9.95 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// count writes n things, as in 1 file, 210 files.
func count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable replaces what a name must not send to a terminal: a server that
// names its files can otherwise move the cursor or retitle the window.
func printable(s string) string {
	clean := func(r rune) bool { return unicode.IsGraphic(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !clean(r) }) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if clean(r) && r != utf8.RuneError {
			return r
		}
		return '?'
	}, s)
}
