package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// measurement is all that the verdict is drawn from: what one run of explain
// saw of one server.
type measurement struct {
	SameHost bool          `json:"same_host"` // the server runs on this machine
	RTT      time.Duration `json:"rtt"`       // of the fastest echo
	MaxRead  int           `json:"max_read"`  // the largest read the server answers
	Credits  int           `json:"credits"`   // the most the server granted

	Signing string  `json:"signing,omitempty"` // algorithm; empty if off
	Sealing string  `json:"sealing,omitempty"`
	Crypto  float64 `json:"crypto"` // seconds this machine takes to sign or seal a byte

	Steps []step  `json:"steps"` // reads, ever more in flight; empty if none could be made
	Burst float64 `json:"burst"` // bytes per second within one reply; 0 if it cannot be told from the delay
}

// step is one measurement of reads of Size bytes, Depth in flight all the time.
type step struct {
	Depth   int           `json:"depth"`
	Size    int           `json:"size"`
	Rate    float64       `json:"rate"` // bytes per second
	Latency time.Duration `json:"latency"`
	Cores   float64       `json:"cores"` // CPU time of this process per second
}

// best is the step with the highest rate.
func (m measurement) best() step {
	return slices.MaxFunc(m.Steps, func(a, b step) int { return cmp.Compare(a.Rate, b.Rate) })
}

// What a transfer can be limited by.
const (
	byMaxRead = "max read"
	byCredits = "credits"
	byDelay   = "delay"
	byLink    = "link"
	bySigning = "signing"
	bySealing = "sealing"
	byCPU     = "CPU"
)

const (
	// creditBytes is what one credit pays for. See [MS-SMB2] 3.1.5.2.
	creditBytes = 64 << 10
	// queueing is how much longer than alone a request takes among others once
	// the bottleneck is busy all the time. Below it the wire still has room.
	queueing = 1.6
	// A share of CPU below this is not worth an advice.
	worthwhile = 0.02
)

// verdict names what limits reads, and says what to do about it. Both are empty
// if no data was read.
//
// As long as requests take no longer together than alone, the rate is what is
// in flight per round trip, so the limit is whatever keeps more from being in
// flight. Once they queue, something is busy all the time: this machine, if it
// spends its time on it, else the link.
func verdict(m measurement) (limit, advice string) {
	if len(m.Steps) == 0 {
		return "", ""
	}
	first, last, best := m.Steps[0], m.Steps[len(m.Steps)-1], m.best()
	if last.Depth == first.Depth || float64(last.Latency) < queueing*float64(first.Latency) {
		if limit, advice = m.notEnoughInFlight(last); limit != "" {
			return limit, advice
		}
	}
	// On its own machine the server burns the CPU too, so less of ours tells.
	busy := 0.8
	if m.SameHost {
		busy = 0.25
	}
	if best.Cores < busy {
		return byLink, fmt.Sprintf("%s with %d × %s in flight, and more of them only wait longer. Nothing here to fix, "+
			"unless the link should be faster than that: then look at the server's disks and CPU.",
			rate(best.Rate), best.Depth, exactSize(int64(best.Size)))
	}
	return m.busy(best)
}

// notEnoughInFlight tells what kept last from having more in flight. It does not
// know if that was nothing but this program, on a path without delay.
func (m measurement) notEnoughInFlight(last step) (limit, advice string) {
	window, allowed := last.Depth*last.Size, m.Credits*min(creditBytes, m.MaxRead)
	switch {
	case 2*window <= allowed && 2*m.RTT < last.Latency:
		return "", ""
	case 2*window <= allowed:
		return byDelay, fmt.Sprintf("%s in flight per %s. Nothing is wrong with server and link; "+
			"a nearer server helps, or several files at a time.", exactSize(int64(window)), delay(last.Latency))
	case m.MaxRead < creditBytes:
		return byMaxRead, fmt.Sprintf("%s × %s per %s, where a credit pays for 64 KiB. Raise the server's \"smb2 max read\"%s.",
			count(m.Credits, "credit"), exactSize(int64(m.MaxRead)), delay(last.Latency), m.expect(last.Rate*creditBytes/float64(m.MaxRead)))
	}
	return byCredits, fmt.Sprintf("%d × 64 KiB per %s. Raise the server's \"smb2 max credits\"%s.",
		m.Credits, delay(last.Latency), m.expect(m.Burst))
}

// expect says what a cure should bring, if that was measured: no more than
// what the link carried within one reply.
func (m measurement) expect(rateThen float64) string {
	if m.Burst > 0 {
		rateThen = min(rateThen, m.Burst)
	} else {
		rateThen = 0
	}
	if rateThen < 1.1*m.best().Rate {
		return ""
	}
	return "; expect about " + rate(0.95*rateThen)
}

// busy tells what the CPU is busy with.
func (m measurement) busy(best step) (limit, advice string) {
	if m.MaxRead < creditBytes {
		return byMaxRead, fmt.Sprintf("%s in each request, where a credit pays for 64 KiB: the CPU is busy with %.0f requests a second. "+
			"Raise the server's \"smb2 max read\".", exactSize(int64(m.MaxRead)), best.Rate/float64(best.Size))
	}
	if share := m.Crypto * best.Rate / best.Cores; share >= worthwhile {
		share = min(share, 0.9)
		then := rate(best.Rate / (1 - share))
		if m.Sealing != "" {
			return bySealing, fmt.Sprintf("%s takes %.0f %% of the CPU time. Where nobody listens in, set the server's "+
				"\"smb encrypt = if_required\" and do without seal; expect about %s.", m.Sealing, 100*share, then)
		}
		if m.Signing != "" {
			return bySigning, fmt.Sprintf("%s takes %.0f %% of the CPU time. On a network you trust, set the server's "+
				"\"server signing = auto\" and do without sign; expect about %s.", m.Signing, 100*share, then)
		}
	}
	return byCPU, fmt.Sprintf("this machine spends %.1f cores on %s. Nothing to fix: server, link and limits leave room.",
		best.Cores, rate(best.Rate))
}
