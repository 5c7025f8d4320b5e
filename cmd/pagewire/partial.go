package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"
	"unicode/utf8"
)

// A file that takes several requests is written as NAME.partial, and gets its
// name when it is complete. NAME.partial.state is there while it is worth going
// on with the partial: it says which source the bytes are of and how many of
// them are safe. It is written every few seconds and when a copy ends early,
// and goes before the partial gets its name, so a state always belongs to the
// partial beside it. A partial without a state is begun anew.
const (
	partialSuffix = ".partial"
	stateSuffix   = ".partial.state"
	// saveEvery is how often the state of a copy under way is written.
	saveEvery = 5 * time.Second
	// maxState is more than any state has.
	maxState = 64 << 10
)

// maxName is how long a name may be in most places, in bytes.
const maxName = 255

// partialOf returns NAME.partial, and stateOf NAME.partial.state. A name that is
// too long for that is cut, and told from others by a hash.
func partialOf(name string) string { return stem(name) + partialSuffix }

func stateOf(name string) string { return stem(name) + stateSuffix }

func stem(name string) string {
	dir, base := path.Split(name)
	if len(base)+len(stateSuffix) <= maxName {
		return name
	}
	h := fnv.New64a()
	io.WriteString(h, base)
	hash := fmt.Sprintf("~%016x", h.Sum64())
	end := maxName - len(stateSuffix) - len(hash)
	for end > 0 && !utf8.RuneStart(base[end]) {
		end--
	}
	return dir + base[:end] + hash
}

// partialState is what NAME.partial.state holds.
type partialState struct {
	Source  string    `json:"source"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	Done    int64     `json:"done"` // bytes of the partial, from its start, that are the source's
}

// resume returns how much of a partial of the given size to keep for a copy
// that now would begin with the state want.
func (s partialState) resume(want partialState, partialSize int64) int64 {
	if s.Source != want.Source || s.Size != want.Size || !s.ModTime.Equal(want.ModTime) {
		return 0
	}
	if s.Done < 0 || s.Done > s.Size || s.Done > partialSize {
		return 0
	}
	return s.Done
}

// newState is the state of a copy of j before its first byte.
func newState(j job) partialState {
	return partialState{Source: j.src.place(j.from).name, Size: j.info.Size(), ModTime: j.info.ModTime()}
}

// findPartial returns how much of j is there from an earlier run, and whether
// there is a state, which has to go in the end.
func findPartial(ctx context.Context, j job) (have int64, stated bool, err error) {
	text, err := j.dst.readFile(ctx, stateOf(j.to), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if errors.Is(err, syscall.EFBIG) {
		return 0, true, nil // not ours
	}
	if err != nil {
		return 0, false, err
	}
	info, err := j.dst.lstat(ctx, partialOf(j.to))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return 0, true, nil
	}
	if err != nil {
		return 0, true, err
	}
	var found partialState
	if json.Unmarshal(text, &found) != nil {
		return 0, true, nil // torn: the writer died writing it
	}
	return found.resume(newState(j), info.Size()), true, nil
}

// save records that done bytes of the partial are the source's.
func (s partialState) save(ctx context.Context, j job, done int64) error {
	s.Done = done
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return j.dst.writeFile(ctx, stateOf(j.to), append(text, '\n'))
}

// keepSaving saves the progress of a copy into partial until stop is called,
// which tells whether anything was saved. Bytes count once they are durable.
func keepSaving(ctx context.Context, j job, partial stream, progress func() int64) (stop func() (saved bool)) {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	saved := false
	go func() {
		defer close(gone)
		t := time.NewTicker(saveEvery)
		defer t.Stop()
		state := newState(j)
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			done := progress()
			if partial.Sync() == nil {
				saved = true // or begun to be
				state.save(ctx, j, done)
			}
		}
	}()
	return func() bool {
		cancel()
		<-gone
		return saved
	}
}

// openPartial opens NAME.partial to be written from have on.
func openPartial(ctx context.Context, j job, have int64) (stream, error) {
	if have == 0 {
		return j.dst.create(ctx, partialOf(j.to))
	}
	f, err := j.dst.openOld(ctx, partialOf(j.to))
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return nil, closeKeeping(f, err)
	}
	return f, nil
}
