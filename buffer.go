package pagewire

import (
	"math/bits"
	"sync"
)

// buffer is memory for one request. The runtime aligns what is as large to pages.
type buffer struct{ b []byte }

// buffers keeps what transfers need again and again, by size. There are as many
// as requests in flight.
type buffers struct{ classes [classes]sync.Pool }

const (
	smallestBuffer = claimUnit // a power of two
	classes        = 10        // up to 32 MiB
)

func class(n int) int {
	return max(bits.Len(uint(max(n, 1)-1))-bits.Len(uint(smallestBuffer-1)), 0)
}

// fit returns b, if n bytes fit into it, or else gives it back for one of that size.
func (s *buffers) fit(b *buffer, n int) *buffer {
	if b != nil && len(b.b) >= n {
		return b
	}
	s.put(b)
	c := class(n)
	if c >= classes {
		return &buffer{make([]byte, n)}
	}
	if b, ok := s.classes[c].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, smallestBuffer<<c)}
}

func (s *buffers) put(b *buffer) {
	if b == nil {
		return
	}
	if c := class(len(b.b)); c < classes {
		s.classes[c].Put(b)
	}
}
