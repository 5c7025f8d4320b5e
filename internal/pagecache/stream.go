package pagecache

import (
	"context"
	"io"
	"math"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// Stream hands the file from off on to take, in order and from where it lies, while
// what follows is read ahead. What take is given is good until it returns, and is not
// to be changed. Stream ends with the file, with an error of either side, or, kept
// being false, where bytes may not be kept.
func (o *Open) Stream(ctx context.Context, off int64, take func([]byte) error) (n int64, kept bool, err error) {
	if err := o.check(remote.ForRead, off, 0); err != nil {
		return 0, true, err
	}
	if o.direct.Load() {
		return 0, false, nil
	}
	f := o.file
	var next, ahead extent.Range
	var scratch []byte
	for {
		if next.Empty() {
			step, _ := f.request(remote.Reading)
			next = upTo(extent.Range{Off: off + n, End: math.MaxInt64}, step)
			ahead = o.note(next)
		}
		runs, r, found := f.view(next)
		switch {
		case found == direct:
			return n, false, nil
		case found == absent:
			if scratch == nil {
				scratch = make([]byte, copyPiece)
			}
			m, err := o.load(ctx, next, ahead, scratch)
			if m > 0 { // there was no memory
				if takeErr := take(scratch[:m]); takeErr != nil {
					return n, true, takeErr
				}
				n += int64(m)
				next.Off += int64(m)
			}
			switch {
			case err == io.EOF:
				return n, true, nil
			case err != nil:
				return n, true, err
			}
			ahead = extent.Range{}
		case r.Empty():
			return n, true, nil
		default:
			if !ahead.Empty() {
				o.prefetch(ahead)
				ahead = extent.Range{}
			}
			for _, m := range runs {
				if err == nil {
					part := m.bytes(r)
					if err = take(part); err == nil {
						n += int64(len(part))
					}
				}
				f.cache.unpin(m)
			}
			if err != nil {
				return n, true, err
			}
			next.Off = r.End
		}
	}
}

// view pins the runs of the valid bytes that r begins with.
func (f *File) view(r extent.Range) ([]*run, extent.Range, found) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c, r, what := f.presentLocked(r)
	if r.Empty() {
		return nil, r, what
	}
	var runs []*run
	for _, m := range c.runs[c.find(r.Off):] {
		if m.r.Off >= r.End {
			break
		}
		m.touch()
		f.cache.pin(m)
		runs = append(runs, m)
	}
	return runs, r, all
}
