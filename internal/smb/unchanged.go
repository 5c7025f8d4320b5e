package smb

import (
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// knowledge is what is known of a file on the server. After a lost connection it
// tells whether somebody else has changed the file meanwhile.
type knowledge struct {
	size             int64
	written, changed time.Time // as the server last told

	// Of our own changes, which a server may note in its times as late as when it
	// closes the handle:
	ours  bool      // there were any since the handles were opened
	end   int64     // where the last one ends that was sent since the size was told
	heard time.Time // when the last was sent to which the server said yes; zero: none was
}

// slack is how far the server's clock may be off by our reckoning, and how long a
// server may take to note what it was told.
const slack = time.Second

// putOff is how long Samba may put off noting a WRITE in a file's times.
const putOff = 2 * time.Second

// fate is what a file turns out to be once it is open again.
type fate uint8

const (
	unchanged fate = iota // but for our own writes
	changed               // by somebody else
	undone                // the server has lost what it said it had written
)

// judge compares what is known with what the server has now. lost is when the
// connection was: nothing of ours came later. But if the server may have noticed only
// from the new log-on, which is not zero then, it has noted our last changes after that,
// or when it closed our handles. All times are on the server's clock.
//
//	size and times as before ............................. unchanged
//	anything else, and nothing of ours was sent .......... changed
//	we wrote, and the size is none that this explains .... changed
//	we wrote, and something changed after lost ........... changed
//	we wrote, and nothing changed since the last yes ..... undone
//	we wrote, and the last change was between ............ unchanged
func (k knowledge) judge(now remote.Attr, lost, logon time.Time) fate {
	same := now.Size == k.size && now.Written.Equal(k.written) && now.Changed.Equal(k.changed)
	late := now.Changed.After(lost.Add(slack))
	if !logon.IsZero() && (!now.Changed.After(lost.Add(putOff+slack)) || now.Changed.Sub(logon).Abs() <= slack) {
		late = false
	}
	switch {
	case !k.ours && same:
		return unchanged
	case !k.ours:
		return changed
	case now.Size < k.size || now.Size > max(k.size, k.end):
		return changed
	case late:
		return changed
	case !k.heard.IsZero() && !now.Changed.IsZero() && now.Changed.Before(k.heard.Add(-slack)):
		return undone
	}
	return unchanged
}
