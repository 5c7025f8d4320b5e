package remotetest

import (
	"bytes"
	"hash/maphash"
	"slices"
	"unsafe"
)

// poison is in the buffers of a read until bytes come.
const poison = 0xDB

// loan is the buffers of one call while they are the Fake's. A nil loan is of a
// Fake that does not check.
type loan struct {
	tree  *tree
	call  string
	bufs  [][]byte
	fill  bool // the Fake writes into them
	sum   uint64
	check func(format string, args ...any)

	served, changed bool
}

var seed = maphash.MakeSeed()

// lend begins a call.
func (f *Fake) lend(call string, bufs [][]byte, fill bool) *loan {
	l := &loan{tree: f.tree, call: call, bufs: bufs, fill: fill}
	if other := l.begin(f); other != "" {
		l.check("remotetest: %s was lent a buffer that %s has", call, other)
	}
	if l.check == nil {
		return nil
	}
	if fill {
		for _, p := range bufs {
			copy(p, []byte{poison})
			for n := 1; n < len(p); n *= 2 {
				copy(p[n:], p[:n]) // the race detector looks at each call, not each byte
			}
		}
	} else {
		l.sum = l.hash()
	}
	return l
}

// begin returns the call that has one of the buffers already, if one has.
func (l *loan) begin(f *Fake) string {
	l.tree.mu.Lock()
	defer l.tree.mu.Unlock()
	l.check = f.cfg.Check
	if l.check == nil {
		return ""
	}
	other := ""
	for _, o := range l.tree.loans {
		if (l.fill || o.fill) && overlap(l.bufs, o.bufs) {
			other = o.call
		}
	}
	l.tree.loans = append(l.tree.loans, l)
	return other
}

// filling looks at the buffers of a read a last time before bytes come.
func (l *loan) filling() {
	if l == nil {
		return
	}
	l.served = true
	for _, p := range l.bufs {
		if bytes.Count(p, []byte{poison}) != len(p) {
			l.changed = true
		}
	}
}

// end gives the buffers back, and complains if the caller changed them.
func (l *loan) end() {
	if l == nil {
		return
	}
	switch {
	case !l.fill:
		l.changed = l.hash() != l.sum
	case !l.served:
		l.filling()
	}
	l.tree.mu.Lock()
	l.tree.loans = slices.DeleteFunc(l.tree.loans, func(o *loan) bool { return o == l })
	l.tree.mu.Unlock()
	if l.changed {
		l.check("remotetest: a buffer was changed during %s", l.call)
	}
}

func (l *loan) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range l.bufs {
		h.Write(p)
	}
	return h.Sum64()
}

func overlap(a, b [][]byte) bool {
	for _, p := range a {
		for _, q := range b {
			if len(p) == 0 || len(q) == 0 {
				continue
			}
			from, to := uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&q[0]))
			if from < to+uintptr(len(q)) && to < from+uintptr(len(p)) {
				return true
			}
		}
	}
	return false
}
