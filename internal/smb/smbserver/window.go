package smbserver

import "sync"

// Grant says how a server hands out credits. NEGOTIATE and SESSION_SETUP always
// get what they ask for; the policy is for what comes after.
type Grant int

const (
	GrantAsked   Grant = iota // what the client asks for
	GrantAll                  // everything at the first occasion, whatever was asked
	GrantCharged              // what the request was charged: the balance never changes
	GrantOne                  // one a reply: the balance falls to one
)

// window is the sequence of MessageIds that a client may use, each of them once.
// It never lets the client have more than max credits, those of its requests
// that are being served included. See [MS-SMB2] 3.3.1.1 and 3.3.1.2.
type window struct {
	max    int
	policy Grant

	mu     sync.Mutex
	low    uint64   // guarded by mu: all ids below have been used
	high   uint64   // guarded by mu: the next id to grant
	used   []uint64 // guarded by mu: bits of the ids from low to high, as a ring
	unused int      // guarded by mu: ids granted and not used
	busy   int      // guarded by mu: charged to requests without a reply
}

func newWindow(max int, policy Grant) *window {
	// The ring leaves a client room to let a few low ids wait.
	return &window{max: max, policy: policy, high: 1, unused: 1, used: make([]uint64, max/16+2)}
}

func (w *window) bit(id uint64) (word *uint64, mask uint64) {
	id %= uint64(len(w.used)) * 64
	return &w.used[id/64], 1 << (id % 64)
}

// take uses n ids from id on. Unless all of them are there to be used, the
// connection has to end. See [MS-SMB2] 3.3.5.2.3.
func (w *window) take(id uint64, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id < w.low || id >= w.high || uint64(n) > w.high-id {
		return false
	}
	for i := range uint64(n) {
		if word, mask := w.bit(id + i); *word&mask != 0 {
			return false
		}
	}
	for i := range uint64(n) {
		word, mask := w.bit(id + i)
		*word |= mask
	}
	for w.low < w.high {
		word, mask := w.bit(w.low)
		if *word&mask == 0 {
			break
		}
		*word &^= mask
		w.low++
	}
	w.unused -= n
	w.busy += n
	return true
}

// give returns the credits to grant in the reply to a request that asked for some
// and was charged some. setUp says that no session is there yet.
func (w *window) give(asked, charged int, setUp bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy -= charged
	n := max(asked, 1)
	if !setUp {
		switch w.policy {
		case GrantAll:
			n = w.max
		case GrantCharged:
			n = charged
		case GrantOne:
			n = 1
		}
	}
	return w.grantLocked(min(n, w.max-w.unused-w.busy))
}

// force grants n credits whatever the maximum says.
func (w *window) force(n, charged int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy -= charged
	return w.grantLocked(n)
}

func (w *window) grantLocked(n int) int {
	n = max(0, min(n, len(w.used)*64-int(w.high-w.low), 1<<16-1))
	w.high += uint64(n)
	w.unused += n
	return n
}
