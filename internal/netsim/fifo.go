package netsim

// blockSize is the unit in which bytes under way are kept.
const blockSize = 256 << 10

// fifo holds the bytes of a flow in blocks that the link lends, so that a
// large window costs memory only while it is in use.
type fifo struct {
	blocks queue[[]byte]
	head   int // bytes of the first block that are taken
	tail   int // bytes of the last block that are filled
}

// space returns free memory behind the last byte; grow tells how much was used.
func (q *fifo) space(l *Link) []byte {
	if q.blocks.len() == 0 || q.tail == blockSize {
		q.blocks.push(l.block())
		q.tail = 0
	}
	return q.blocks.back()[q.tail:]
}

func (q *fifo) grow(n int) { q.tail += n }

// data returns the bytes at the front, at least one and at most n of those that
// are there; shrink takes them away.
func (q *fifo) data(n int64) []byte {
	b := q.blocks.front()[q.head:]
	return b[:min(n, int64(len(b)))]
}

func (q *fifo) shrink(l *Link, n int) {
	q.head += n
	last := q.blocks.len() == 1
	if q.head == blockSize || last && q.head == q.tail {
		l.free = append(l.free, q.blocks.front())
		q.blocks.pop()
		q.head = 0
	}
}

// clear gives all memory back.
func (q *fifo) clear(l *Link) {
	l.free = append(l.free, q.blocks.all()...)
	*q = fifo{}
}

func (l *Link) block() []byte {
	if n := len(l.free); n > 0 {
		b := l.free[n-1]
		l.free = l.free[:n-1]
		return b
	}
	return make([]byte, blockSize)
}

// queue is a first-in, first-out list that reuses its memory.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) all() []T { return q.items[q.head:] }
func (q *queue[T]) front() T { return q.items[q.head] }
func (q *queue[T]) back() T  { return q.items[len(q.items)-1] }

func (q *queue[T]) push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) && q.head >= len(q.items)/2 {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	q.items = append(q.items, v)
}

func (q *queue[T]) pop() {
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
