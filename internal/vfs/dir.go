package vfs

import (
	"context"
	"iter"

	"github.com/pagewire/pagewire/internal/remote"
)

// ReadDir yields what is in a folder, page by page as it comes: see remote.Volume.
// Everything in it is remembered, so that an ls -l asks nothing else. Files that have
// lost their names here are left out.
func (f *FS) ReadDir(ctx context.Context, p string) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		// A page is asked for while the one before it is being used, so what it says is
		// no older than the end of what was done with the one before that.
		q := f.ask()
		next := q
		for page, err := range f.vol.ReadDir(ctx, at(p)) {
			if err != nil {
				f.mu.Lock()
				f.missedLocked(p, err, q)
				f.mu.Unlock()
				yield(nil, err)
				return
			}
			if page = f.listed(p, page, q); len(page) > 0 && !yield(page, nil) {
				return
			}
			q, next = next, f.ask()
		}
	}
}

// listed remembers a page of a folder, and makes it what faces see.
func (f *FS) listed(dir string, page []remote.Entry, q question) []remote.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := page[:0]
	for _, e := range page {
		if isAside(e.Name) {
			continue
		}
		p := join(dir, e.Name)
		in := f.meetLocked(e.Attr, f.wasLocked(p))
		// A server keeps what a listing says apart from the file. It may be behind
		// while the file is open, and what other names of it led to.
		if len(in.handles) == 0 && in.attr.Links <= 1 {
			f.learnAtLocked(p, in, e.Attr, q)
		}
		f.rememberLocked(p, in, q)
		e.Attr = f.viewLocked(in, e.Attr)
		kept = append(kept, e)
	}
	clear(page[len(kept):])
	return kept
}
