package main

import (
	"testing"
	"time"
)

func TestExplanation(t *testing.T) {
	const ms = time.Millisecond
	m := measurement{
		RTT: 100 * ms, MaxRead: 8 << 20, Credits: 128, Signing: "AES-GMAC", Burst: 125e6,
		Steps: []step{
			{Depth: 1, Size: 1 << 20, Rate: 9.7e6, Latency: 108 * ms},
			{Depth: 8, Size: 1 << 20, Rate: 83e6, Latency: 109 * ms},
		},
	}
	e := explanation{Server: "nas:445", Dialect: "3.1.1", MaxWrite: 8 << 20, Plan: plan{2, 4 << 20}, Read: 83e6, measurement: m}
	e.Limit, e.Advice = verdict(m)
	want := `server    nas:445, SMB 3.1.1, RTT 100 ms
security  signed AES-GMAC, not sealed
limits    read 8 MiB, write 8 MiB, 128 credits
plan      2 × 4 MiB in flight
measured  read 83 MB/s; link 125 MB/s
Limited by credits: 128 × 64 KiB per 109 ms. Raise the server's "smb2 max credits"; expect about 119 MB/s.
`
	if got := e.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	e = explanation{Server: "nas:445", Dialect: "2.1", NoData: "no file here", measurement: measurement{RTT: ms, Credits: 1, MaxRead: 1 << 20}}
	want = `server    nas:445, SMB 2.1, RTT 1 ms
security  not signed, not sealed
limits    read 1 MiB, write 0 B, 1 credit
measured  no data: no file here
`
	if got := e.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
