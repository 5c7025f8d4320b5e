package vfs

// history knows which names were changed here and when, as far back as an answer may
// be on its way or be remembered.
type history struct {
	floor   uint64            // what was asked for before is not to be trusted
	changed map[string]uint64 // by key: the last change of a name, and so of all below
}

// maxChanges bounds a history. When it is full it starts over, and takes everything
// for changed.
const maxChanges = 4096

func newHistory() history { return history{changed: map[string]uint64{}} }

// change notes change number n.
func (h *history) change(key string, n uint64) {
	if len(h.changed) >= maxChanges {
		clear(h.changed)
		h.floor = n
	}
	h.changed[key] = n
}

// holds reports whether a name, and none above it, has changed since change number asked.
func (h *history) holds(key string, asked uint64) bool {
	if asked < h.floor {
		return false
	}
	for len(h.changed) > 0 && h.changed[key] <= asked {
		if key == "." {
			return true
		}
		key = parent(key)
	}
	return len(h.changed) == 0
}
