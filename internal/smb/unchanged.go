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

	// Since then:
	ours  bool      // a WRITE of ours was sent
	end   int64     // where the last of these ends
	heard time.Time // when the last was sent to which the server said yes; zero: none was
}

// slack is how far the server's clock may be off by our reckoning, and how long a
// server may take to note what it was told.
const slack = time.Second

// fate is what a file turns out to be once it is open again.
type fate uint8

const (
	unchanged fate = iota // but for our own writes
	changed               // by somebody else
	undone                // the server has lost what it said it had written
)

// judge compares what is known with what the server has now. lost is when the
// connection was: nothing of ours came later. That and heard are on the server's clock.
//
//	size and times as before ............................. unchanged
//	anything else, and nothing of ours was sent .......... changed
//	we wrote, and the size is none that this explains .... changed
//	we wrote, and something changed after lost ........... changed
//	we wrote, and nothing changed since what it said yes to ... undone
//	we wrote, and the last change was between ............ unchanged
func (k knowledge) judge(now remote.Attr, lost time.Time) fate {
	same := now.Size == k.size && now.Written.Equal(k.written) && now.Changed.Equal(k.changed)
	switch {
	case !k.ours && same:
		return unchanged
	case !k.ours:
		return changed
	case now.Size < k.size || now.Size > max(k.size, k.end):
		return changed
	case now.Changed.After(lost.Add(slack)):
		return changed
	case !k.heard.IsZero() && !now.Changed.IsZero() && now.Changed.Before(k.heard.Add(-slack)):
		return undone
	}
	return unchanged
}
