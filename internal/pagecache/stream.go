package pagecache

import (
	"context"

	"github.com/pagewire/pagewire/internal/extent"
	"github.com/pagewire/pagewire/internal/remote"
)

// Stream hands the file from off on to take, in order and from where it lies, while
// what follows is read ahead. What take is given is good until it returns, and is not
// to be changed. Stream ends with the file, with an error of either side, or, kept
// being false, where bytes may not be kept.
func (o *Open) Stream(ctx context.Context, off int64, take func([]byte) error) (n int64, kept bool, err error) {
	if err := o.check(remote.ForRead, off); err != nil {
		return 0, true, err
	}
	if o.direct.Load() {
		return 0, false, nil
	}
	f := o.file
	var scratch []byte
	for {
		step, _ := f.request(remote.Reading)
		next := extent.Range{Off: off + n, End: (off+n)/step*step + step}
		ahead := o.note(next)
		for !next.Empty() {
			runs, r, found := f.view(next)
			if found == direct {
				return n, false, nil
			}
			if found == all && r.Empty() {
				return n, true, nil
			}
			if found == all {
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
				continue
			}
			if scratch == nil {
				scratch = make([]byte, f.cache.page)
			}
			m, err := o.load(ctx, next, ahead, scratch)
			if m > 0 { // there was no memory
				if takeErr := take(scratch[:m]); takeErr != nil {
					return n, true, takeErr
				}
				n += int64(m)
				next.Off += int64(m)
			}
			if err != nil {
				return n, true, err
			}
			ahead = extent.Range{}
		}
	}
}

// view pins the runs of the valid bytes that r begins with.
func (f *File) view(r extent.Range) ([]*run, extent.Range, found) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.keepsLocked(remote.CacheRead) {
		return nil, r, direct
	}
	r.End = min(r.End, f.size, chunkEnd(r.Off))
	if r.Len() <= 0 {
		return nil, extent.Range{}, all
	}
	c := f.chunkLocked(r.Off)
	if c == nil {
		return nil, r, absent
	}
	valid, ok := c.valid.First(r.Off)
	if !ok || valid.Off > r.Off {
		return nil, r, absent
	}
	r.End = min(r.End, valid.End)
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
