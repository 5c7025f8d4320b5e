package memfs

import (
	"io"
	"math"
	"slices"
	"syscall"
)

// Contents are chunks of up to chunkSize bytes by their number. A chunk may be
// shorter than that, or missing: the rest reads as zeros, and takes no space.
const (
	chunkSize = 256 << 10
	blockSize = 4 << 10 // what space is counted in
)

// space is what a chunk of n bytes counts for.
func space(n int) int64 { return int64(n+blockSize-1) &^ (blockSize - 1) }

// kindLocked returns the error of treating n as a file.
func (n *Node) kindLocked() error {
	switch {
	case n.attr.Mode.IsDir():
		return syscall.EISDIR
	case !n.attr.Mode.IsRegular():
		return syscall.EINVAL
	}
	return nil
}

// ReadAt reads like an io.ReaderAt: it returns io.EOF when less than len(p)
// bytes lie between off and the end.
func (n *Node) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, syscall.EINVAL
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if err := n.kindLocked(); err != nil {
		return 0, err
	}
	left := n.attr.Size - off
	if left <= 0 {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	var eof error
	if int64(len(p)) > left {
		p, eof = p[:left], io.EOF
	}
	for done := 0; done < len(p); {
		at := int(off % chunkSize)
		part := p[done:min(len(p), done+chunkSize-at)]
		var got int
		if c := n.chunks[off/chunkSize]; at < len(c) {
			got = copy(part, c[at:])
		}
		clear(part[got:])
		done += len(part)
		off += int64(len(part))
	}
	return len(p), eof
}

// WriteAt writes all of p, or nothing if there is no space for it.
func (n *Node) WriteAt(p []byte, off int64) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writeLocked(p, off)
}

// Append writes p at the end, wherever that is, and says where it was.
func (n *Node) Append(p []byte) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	off := n.attr.Size
	_, err := n.writeLocked(p, off)
	return off, err
}

func (n *Node) writeLocked(p []byte, off int64) (int, error) {
	if err := n.kindLocked(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	if off > math.MaxInt64-chunkSize-int64(len(p)) {
		return 0, syscall.EFBIG
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := n.claimLocked(n.growthLocked(off, int64(len(p)))); err != nil {
		return 0, err
	}
	end := off + int64(len(p))
	for rest := p; len(rest) > 0; {
		at := int(off % chunkSize)
		part := rest[:min(len(rest), chunkSize-at)]
		n.chunks[off/chunkSize] = put(n.chunks[off/chunkSize], part, at)
		rest = rest[len(part):]
		off += int64(len(part))
	}
	n.attr.Size = max(n.attr.Size, end)
	n.changedLocked(true)
	return len(p), nil
}

// growthLocked is the space that writing size bytes at off would take.
func (n *Node) growthLocked(off, size int64) (grow int64) {
	for size > 0 {
		at := off % chunkSize
		part := min(size, chunkSize-at)
		have := len(n.chunks[off/chunkSize])
		grow += space(max(have, int(at+part))) - space(have)
		size -= part
		off += part
	}
	return grow
}

// claimLocked accounts for grow more (or less) space.
func (n *Node) claimLocked(grow int64) error {
	if !n.gone {
		if err := n.fs.take(grow); err != nil {
			return err
		}
	}
	n.attr.Alloc += grow
	return nil
}

// put overwrites chunk c from at with p, and grows it as needed. Memory that p
// will cover is not cleared first.
func put(c, p []byte, at int) []byte {
	if end := at + len(p); len(c) > 0 && end > cap(c) {
		// Small files stay small, and a chunk that fills up is copied few times.
		c = append(make([]byte, 0, min(chunkSize, max(end, 4*len(c)))), c...)
	}
	if gap := at - len(c); gap > 0 {
		c = slices.Grow(c, gap+len(p))[:at]
		clear(c[at-gap:])
	}
	if have := copy(c[at:], p); have < len(p) {
		c = append(c, p[have:]...)
	}
	return c
}

// Truncate sets the size. What a file grows by reads as zeros.
func (n *Node) Truncate(to int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.kindLocked(); err != nil {
		return err
	}
	if to < 0 {
		return syscall.EINVAL
	}
	if to > math.MaxInt64-chunkSize {
		return syscall.EFBIG
	}
	if to < n.attr.Size {
		n.cutLocked(to)
	}
	n.attr.Size = to
	n.changedLocked(true)
	return nil
}

// cutLocked gives up the contents from off on.
func (n *Node) cutLocked(off int64) {
	var freed int64
	for i, c := range n.chunks {
		keep := max(0, min(int64(len(c)), off-i*chunkSize))
		freed += space(len(c)) - space(int(keep))
		if keep == 0 {
			delete(n.chunks, i)
		} else {
			n.chunks[i] = c[:keep]
		}
	}
	_ = n.claimLocked(-freed) // giving back never fails
}

// Punch makes size bytes at off read as zeros and gives back whole chunks among
// them. The size of the file stays.
func (n *Node) Punch(off, size int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.kindLocked(); err != nil {
		return err
	}
	if off < 0 || size < 0 {
		return syscall.EINVAL
	}
	end := off + min(size, math.MaxInt64-off)
	var freed int64
	for i, c := range n.chunks {
		from := max(0, off-i*chunkSize)
		to := min(int64(len(c)), end-i*chunkSize)
		switch {
		case from >= to:
		case from == 0 && to == int64(len(c)):
			freed += space(len(c))
			delete(n.chunks, i)
		default:
			clear(c[from:to])
		}
	}
	_ = n.claimLocked(-freed)
	n.changedLocked(true)
	return nil
}
