package pagecache

import "math/bits"

// maxRun is the largest run, and what a chunk of a file spans.
const (
	maxRunShift = 23
	maxRun      = 1 << maxRunShift
)

// arena is the memory of a cache: one region off the Go heap, as large as the
// budget, of which no page costs anything before it is first used. It is cut into
// blocks of one page, doubled any number of times, each as aligned as it is large.
//
// A binary tree over the pages says how large the largest free block below each
// node is. The first block that fits is taken, so that memory which was used
// before is used again.
type arena struct {
	memory    []byte
	pageShift int
	height    int     // of the tree, whose root stands for 1<<height pages
	largest   []uint8 // by node, the root being 1: 0 for nothing free, or 1 + log2 of pages
	free      int64   // bytes
	touched   []bool  // by pieces of maxRun: may have pages in memory
	idle      int     // pieces that are touched and wholly free
}

func newArena(memory []byte, pageSize int) *arena {
	a := &arena{memory: memory, pageShift: bits.TrailingZeros(uint(pageSize)), free: int64(len(memory))}
	pages := len(memory) >> a.pageShift
	a.height = max(bits.Len(uint(pages-1)), maxRunShift-a.pageShift)
	a.touched = make([]bool, 1<<a.height>>(maxRunShift-a.pageShift))
	a.largest = make([]uint8, 2<<a.height)
	for i := range pages {
		a.largest[1<<a.height+i] = 1
	}
	for node := 1<<a.height - 1; node > 0; node-- {
		a.join(node)
	}
	return a
}

// order returns log2 of the pages of the smallest block for n bytes.
func (a *arena) order(n int64) int { return max(bits.Len64(uint64(n-1))-a.pageShift, 0) }

// size returns how many bytes a block of an order has.
func (a *arena) size(order int) int64 { return 1 << (order + a.pageShift) }

// block returns the memory of the block at an offset.
func (a *arena) block(at int64, order int) []byte {
	n := a.size(order)
	return a.memory[at : at+n : at+n]
}

// level returns log2 of the pages that a node stands for.
func (a *arena) level(node int) int { return a.height + 1 - bits.Len(uint(node)) }

// join works out from its children what is free below a node.
func (a *arena) join(node int) {
	left, right := a.largest[2*node], a.largest[2*node+1]
	if whole := uint8(a.level(node)); left == whole && right == whole {
		a.largest[node] = whole + 1
	} else {
		a.largest[node] = max(left, right)
	}
}

// take returns where a block of an order is, or -1 if none is free.
func (a *arena) take(order int) int64 {
	want := uint8(order + 1)
	if a.largest[1] < want {
		return -1
	}
	node := 1
	for a.level(node) > order {
		if node *= 2; a.largest[node] < want {
			node++
		}
	}
	at := int64(node-1<<(a.height-order)) << (order + a.pageShift)
	if piece := at >> maxRunShift; !a.touched[piece] {
		a.touched[piece] = true
	} else if a.isFree(piece) {
		a.idle--
	}
	a.set(node, 0)
	a.free -= a.size(order)
	return at
}

// give takes a block back, and returns the piece that is wholly free with it, or -1.
func (a *arena) give(at int64, order int) int64 {
	a.set(1<<(a.height-order)+int(at>>(order+a.pageShift)), uint8(order+1))
	a.free += a.size(order)
	piece := at >> maxRunShift
	if !a.isFree(piece) {
		return -1
	}
	a.idle++
	return piece
}

// set says what is free below a node, and so below those above it.
func (a *arena) set(node int, largest uint8) {
	a.largest[node] = largest
	for node >>= 1; node > 0; node >>= 1 {
		a.join(node)
	}
}

// pieceNode is the node of a piece of maxRun.
func (a *arena) pieceNode(piece int64) int {
	return 1<<(a.height+a.pageShift-maxRunShift) + int(piece)
}

// isFree reports whether a piece is wholly free.
func (a *arena) isFree(piece int64) bool {
	return a.largest[a.pieceNode(piece)] == uint8(maxRunShift-a.pageShift+1)
}

// withdraw takes an idle piece, so that its pages can be given back to the system
// before it is given here again.
func (a *arena) withdraw(piece int64) {
	a.set(a.pieceNode(piece), 0)
	a.free -= maxRun
	a.idle--
	a.touched[piece] = false
}
