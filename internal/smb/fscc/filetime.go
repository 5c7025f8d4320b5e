package fscc

import "time"

// Filetime counts 100 ns since 1601, in UTC. Zero means no time or, in a
// request, leave it alone; what else is not positive is an instruction to the
// server. See [MS-DTYP] 2.3.3 and [MS-FSCC] 2.4.7.
type Filetime int64

const (
	// FiletimeFreeze stops the server from updating a time for what later
	// happens through the handle, FiletimeThaw lets it do so again.
	FiletimeFreeze Filetime = -1
	FiletimeThaw   Filetime = -2

	maxFiletime      = 1<<63 - 1
	epochDifference  = 11644473600 // seconds from 1601 to 1970
	ticksPerSecond   = 10_000_000
	nanosPerTick     = 100
	lastUnixFiletime = maxFiletime/ticksPerSecond - epochDifference
)

// FiletimeOf rounds t down to 100 ns. The zero time becomes 0; what lies before
// or after all file times becomes the first or last of them.
func FiletimeOf(t time.Time) Filetime {
	if t.IsZero() {
		return 0
	}
	s := t.Unix()
	if s < -epochDifference {
		return 1
	}
	if s > lastUnixFiletime {
		return maxFiletime
	}
	f := Filetime((s+epochDifference)*ticksPerSecond + int64(t.Nanosecond()/nanosPerTick))
	if f < 0 { // the last second is not a whole one
		return maxFiletime
	}
	return max(1, f)
}

// Time returns the zero time for values that name no time.
func (f Filetime) Time() time.Time {
	if f <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(f)/ticksPerSecond-epochDifference, int64(f)%ticksPerSecond*nanosPerTick).UTC()
}
