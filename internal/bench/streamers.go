package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// What streaming through the cache costs is measured between clients that are all
// pagewire, so that nothing else differs.
const (
	through = "pagewire, through the cache"
	piped   = "pagewire cp" // past the cache, as there was none
	past    = "pagewire, cache=none"
	memmove = "memmove" // in the process that reads again
)

const (
	keptName  = "kept" // a file that fits into the cache, to be read again
	keptSize  = 64 << 20
	again     = 8 // times
	smallCall = 4 << 10
	largeCall = 1 << 20

	// smallExtra is how many requests more than one a MiB small calls may take to
	// get going: a twentieth of those for farSize.
	smallExtra = farSize >> 20 / 20
)

// streams reports whether the case is one that compares pagewire with itself.
func (w workload) streams() bool { return strings.HasPrefix(w.op, "stream-") || w.op == "cached" }

// callSize returns how many bytes a call of the program has.
func (w workload) callSize() int {
	if w.calls == "small" {
		return smallCall
	}
	return largeCall
}

// options of pagewire that a case needs, and some more.
func (w workload) options(more ...string) []string {
	if w.calls == "small" {
		more = append(more, "rsize=1M", "wsize=1M")
	}
	if len(more) == 0 {
		return nil
	}
	return []string{"-o", strings.Join(more, ",")}
}

// streamers lists the clients of these cases.
func streamers(b *bench) []client {
	stream := func(options ...string) func(endpoint, workload) []string {
		return func(e endpoint, w workload) []string {
			if w.protection != "plain" {
				return nil
			}
			args := append([]string{b.Self, "bench", "stream"}, w.options(options...)...)
			args = append(args, "--block", fmt.Sprint(w.callSize()))
			switch w.op {
			case "stream-read":
				return append(args, "read", e.url(w.source()))
			case "stream-write":
				return append(args, "write", e.url(writtenName), fmt.Sprint(b.size(w)))
			case "cached":
				return append(args, "--again", fmt.Sprint(again), "read", e.url(w.source()))
			}
			return nil
		}
	}
	none := stream("cache=none")
	return []client{
		{name: through, command: stream(), check: readOrWroteThrough},
		{name: piped, command: func(e endpoint, w workload) []string {
			if w.protection != "plain" {
				return nil
			}
			args := append([]string{b.Self, "cp"}, w.options("cache=none")...)
			switch w.op {
			case "stream-read":
				return append(args, e.url(w.source()), os.DevNull)
			case "stream-write":
				return append(args, b.local(w.source()), e.url(writtenName))
			}
			return nil
		}},
		{name: past, command: func(e endpoint, w workload) []string {
			if w.op == "cached" || w.calls == "small" { // a round trip for each call: that takes long, and tells nothing
				return nil
			}
			return none(e, w)
		}, check: keptNothing},
	}
}

// readOrWroteThrough fails unless a stream went through the cache.
func readOrWroteThrough(w workload, m run) error {
	s := m.Stream
	switch {
	case !s.Kept:
		return errors.New("the server let it keep nothing")
	case s.Cache.Cached+s.Cache.Evicted == 0:
		return errors.New("nothing came into its cache")
	case reads(w.op) && s.Cache.Ahead == 0:
		return errors.New("it read nothing ahead")
	}
	if most := (m.Bytes+largeCall-1)/largeCall + smallExtra; w.calls == "small" && m.Requests > most {
		return fmt.Errorf("smbd counted %d requests for %d bytes in small calls, more than %d", m.Requests, m.Bytes, most)
	}
	return nil
}

// keptNothing fails unless a stream went past the cache.
func keptNothing(_ workload, m run) error {
	if s := m.Stream; s.Kept || s.Cache != (cacheUse{}) {
		return fmt.Errorf("it used a cache that it should not have: %+v", s.Cache)
	}
	return nil
}

// streamed takes what a stream says of itself, and holds it against what smbd and
// the case say.
func (m *run) streamed(w workload, c client, stdout []byte) error {
	m.Stream = &Streamed{}
	if err := json.Unmarshal(stdout, m.Stream); err != nil {
		return fmt.Errorf("%w in %s", err, tail(stdout))
	}
	switch s := m.Stream; {
	case s.Bytes != m.Bytes:
		return fmt.Errorf("it moved %d bytes, not %d", s.Bytes, m.Bytes)
	case s.Block != w.callSize():
		return fmt.Errorf("it did so in calls of %d bytes, not %d", s.Block, w.callSize())
	case s.Requests != m.Requests:
		return fmt.Errorf("it counted %d requests, smbd %d", s.Requests, m.Requests)
	}
	return c.check(w, *m)
}

// passes makes runs of the times a file was read again: what was read, and memmove
// beside it, by turns. That they took no request, the count of bytes has shown.
func (m run) passes() (all []run) {
	for i, p := range m.Stream.Again {
		r := m
		r.Round = (m.Round-1)*len(m.Stream.Again) + i + 1
		r.Requests, r.All = 0, 0
		r.Seconds, r.CPU = p.Seconds, p.CPU
		if i > 0 {
			r.Stream = nil // said once
		}
		moved := r
		moved.Client, moved.Stream = memmove, nil
		moved.Seconds, moved.CPU = p.Memmove, p.MemmoveCPU
		all = append(all, r, moved)
	}
	return all
}
