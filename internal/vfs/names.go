package vfs

import (
	"container/list"
	"time"
)

// name is what a path was found to lead to.
type name struct {
	key, path string
	inode     *inode // nil: nothing is there
	asked     question
	until     time.Time // it is to be asked again; what it names keeps its number meanwhile
}

// names is a bounded table of names, of which the one goes first that was not used for
// longest. It knows nothing of time or change: see FS.knownLocked.
type names struct {
	max   int
	byKey map[string]*list.Element
	order list.List // of *name, the last used last
}

func newNames(max int) names { return names{max: max, byKey: map[string]*list.Element{}} }

// get returns the name that is remembered by key, or nil.
func (t *names) get(key string) *name {
	e := t.byKey[key]
	if e == nil {
		return nil
	}
	t.order.MoveToBack(e)
	return e.Value.(*name)
}

// put remembers n, and returns what that made it forget: the name that had this key,
// or the oldest if there are too many.
func (t *names) put(n *name) (out *name) {
	if e := t.byKey[n.key]; e != nil {
		out = e.Value.(*name)
		e.Value = n
		t.order.MoveToBack(e)
		return out
	}
	if t.order.Len() >= t.max {
		out = t.order.Remove(t.order.Front()).(*name)
		delete(t.byKey, out.key)
	}
	t.byKey[n.key] = t.order.PushBack(n)
	return out
}
