package smbserver

import (
	"math/bits"
	"sync"
)

// buffers are pools of memory for frames, one for every power of two.
type buffers struct{ pools [bufferClasses]sync.Pool }

const (
	smallestBuffer = 12 // log2
	bufferClasses  = 14 // up to 32 MiB
	bufferSlack    = 1 << 10
)

// buffer is memory for a frame. Its length is its capacity.
type buffer struct {
	b    []byte
	pool *sync.Pool
}

// get returns a buffer of at least n bytes. A power of two and the headers
// around it fit into the class of that power.
func (p *buffers) get(n int) *buffer {
	class := max(0, bits.Len(uint(max(0, n-bufferSlack-1)))-smallestBuffer)
	if class >= bufferClasses {
		return &buffer{b: make([]byte, n)}
	}
	pool := &p.pools[class]
	if b, ok := pool.Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 1<<(smallestBuffer+class)+bufferSlack), pool}
}

func (b *buffer) free() {
	if b != nil && b.pool != nil {
		b.pool.Put(b)
	}
}
