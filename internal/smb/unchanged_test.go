package smb

import (
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

func TestJudge(t *testing.T) {
	// Seconds of the server's clock.
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	attr := func(size int64, written, changed float64) remote.Attr {
		return remote.Attr{Size: size, Written: at(written), Changed: at(changed)}
	}
	// A file of 100 bytes, last changed at 10; the connection is lost at 100.
	quiet := knowledge{size: 100, written: at(10), changed: at(10)}
	// The same, after a WRITE of ours up to 150, sent at 50, that has not been answered.
	sent := quiet
	sent.ours, sent.end = true, 150
	// It has been.
	heard := sent
	heard.heard = at(50)
	// A SetSize to 40 was sent, and may have happened or not.
	cut := quiet
	cut.ours, cut.size, cut.end = true, 40, 100
	// Something that leaves no bytes, a rename, say.
	touched := quiet
	touched.ours = true

	for name, c := range map[string]struct {
		k    knowledge
		now  remote.Attr
		want fate
	}{
		// Nothing of ours: whatever differs is somebody else's.
		"as before":                    {quiet, attr(100, 10, 10), unchanged},
		"longer":                       {quiet, attr(101, 10, 10), changed},
		"shorter":                      {quiet, attr(99, 10, 10), changed},
		"written later":                {quiet, attr(100, 11, 10), changed},
		"written earlier, as restored": {quiet, attr(100, 9, 10), changed},
		"changed in place":             {quiet, attr(100, 10, 11), changed},
		"changed while it was lost":    {quiet, attr(100, 120, 120), changed},
		"changed within the slack":     {quiet, attr(100, 10.5, 10.5), changed},

		// Ours is unanswered: it may have happened, in part.
		"it did not happen":           {sent, attr(100, 10, 10), unchanged},
		"it did":                      {sent, attr(150, 50, 50), unchanged},
		"half of it did":              {sent, attr(120, 50, 50), unchanged},
		"it happened last of all":     {sent, attr(150, 100, 100), unchanged},
		"the clocks are off a little": {sent, attr(150, 100.9, 100.9), unchanged},
		"longer than ours makes it":   {sent, attr(151, 50, 50), changed},
		"shorter than it was":         {sent, attr(99, 50, 50), changed},
		"emptied":                     {sent, attr(0, 50, 50), changed},
		"of our size, but later":      {sent, attr(150, 130, 130), changed},
		// Whoever sets the time of the last write back cannot set that of the change.
		"written long ago, but later": {sent, attr(150, 10, 130), changed},

		// Ours is answered: it must have left a trace.
		"the trace":                      {heard, attr(150, 50, 50), unchanged},
		"the trace a little early":       {heard, attr(150, 49.5, 49.5), unchanged},
		"later ones of ours":             {heard, attr(150, 70, 70), unchanged},
		"no trace":                       {heard, attr(100, 10, 10), undone},
		"no trace, but of the size":      {heard, attr(150, 30, 30), undone},
		"no trace, and somebody after":   {heard, attr(100, 130, 130), changed},
		"a server that tells no changes": {heard, remote.Attr{Size: 150, Written: at(50)}, unchanged},

		"the size was set":              {cut, attr(40, 60, 60), unchanged},
		"the size was not set":          {cut, attr(100, 10, 10), unchanged},
		"the size was set by another":   {cut, attr(39, 60, 60), changed},
		"the size grew instead":         {cut, attr(101, 60, 60), changed},
		"touched":                       {touched, attr(100, 10, 60), unchanged},
		"touched, and by another":       {touched, attr(100, 10, 130), changed},
		"touched, and longer":           {touched, attr(101, 60, 60), changed},
		"touched, and nothing happened": {touched, attr(100, 10, 10), unchanged},
	} {
		if got := c.k.judge(c.now, at(100), time.Time{}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}

	// The server has noticed nothing until we logged on anew at 120, and has closed our
	// handles then.
	for name, c := range map[string]struct {
		k    knowledge
		now  remote.Attr
		want fate
	}{
		"the time of closing":              {heard, attr(150, 120, 120), unchanged},
		"it is about that":                 {heard, attr(150, 119.5, 120.8), unchanged},
		"what was put off":                 {heard, attr(150, 102, 102), unchanged},
		"before, so it was somebody else":  {heard, attr(150, 110, 110), changed},
		"after, so it was somebody else":   {heard, attr(150, 122, 122), changed},
		"then, but shorter":                {heard, attr(99, 120, 120), changed},
		"then, but longer":                 {heard, attr(151, 120, 120), changed},
		"it had noticed, and closed there": {heard, attr(150, 100, 100), unchanged},
		"then, but there was nothing ours": {quiet, attr(100, 120, 120), changed},
	} {
		if got := c.k.judge(c.now, at(100), at(120)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
