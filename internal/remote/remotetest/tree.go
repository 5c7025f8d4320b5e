package remotetest

import (
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/pagewire/pagewire/internal/remote"
)

// [MS-FSCC] 2.6.
const (
	dosReadOnly = 0x01
	dosHidden   = 0x02
	dosDir      = 0x10
	dosArchive  = 0x20
	dosNormal   = 0x80
	dosReparse  = 0x400
	dosSettable = 0x2127 // what a client may set: read-only, hidden, system, archive, temporary, not indexed
)

const maxName = 255 // UTF-16 units

// tree is what several Fakes share. Nodes are paths, as SMB's are.
type tree struct {
	mu       sync.Mutex
	foldCase bool
	capacity int64
	used     int64
	lastID   uint64
	root     *object
	loans    []*loan
}

type object struct {
	id     uint64
	kind   remote.Kind
	links  uint32
	dos    uint32
	data   []byte
	target string
	names  map[string]entry // of a folder, by tree.key
	unsafe []undo           // oldest first
	opens  map[*file]bool   // by any client

	born, accessed, written, changed time.Time
}

type entry struct {
	name string
	obj  *object
}

// undo is how the file was before a write that is not committed.
type undo struct {
	by       *file
	off, len int64
	old      []byte
	size     int64
}

// place is where a name is, or would be.
type place struct {
	dir  *object // nil: this is the root
	name string
	node remote.Node
	obj  *object // nil: nothing is there
}

func (t *tree) join(cfg Config) *Fake {
	cfg.FoldCase, cfg.Capacity = t.foldCase, t.capacity
	return &Fake{tree: t, cfg: cfg, files: map[*object]*file{}, counts: map[string]int{}}
}

// now has the grain of every time here.
func now() time.Time { return time.Now().UTC().Truncate(100) }

func (t *tree) newObject(kind remote.Kind) *object {
	t.lastID++
	n := now()
	o := &object{id: t.lastID, kind: kind, links: 1, opens: map[*file]bool{}, born: n, accessed: n, written: n, changed: n}
	switch kind {
	case remote.Dir:
		o.names = map[string]entry{}
	case remote.Regular:
		o.dos = dosArchive
	}
	return o
}

func (t *tree) key(name string) string {
	if t.foldCase && utf8.ValidString(name) {
		return strings.ToLower(strings.ToUpper(name))
	}
	return name
}

func checkName(name string) error {
	units := 0
	for i := range len(name) {
		switch b := name[i]; {
		case b == 0:
			return syscall.EINVAL
		case b >= 0xF0:
			units += 2
		case b < 0x80 || b >= 0xC0:
			units++
		}
	}
	switch {
	case name == "" || name == "." || name == "..":
		return syscall.EINVAL
	case units > maxName:
		return syscall.ENAMETOOLONG
	}
	return nil
}

// locate finds what at names. It is no error if nothing is there, but it is one
// if there is no such folder.
func (t *tree) locate(at remote.At) (place, error) {
	path := string(at.Node)
	if at.Name != "" {
		path = string(join(at.Dir, at.Name))
	}
	p := place{obj: t.root}
	if path == "" {
		return p, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := checkName(name); err != nil {
			return place{}, err
		}
		switch {
		case p.obj == nil:
			return place{}, syscall.ENOENT
		case p.obj.kind == remote.Symlink:
			return place{}, syscall.ELOOP
		case p.obj.kind != remote.Dir:
			return place{}, syscall.ENOTDIR
		}
		p = place{dir: p.obj, name: name, node: join(p.node, name), obj: p.obj.names[t.key(name)].obj}
	}
	return p, nil
}

// find is locate for what has to be there.
func (t *tree) find(at remote.At) (place, error) {
	p, err := t.locate(at)
	if err == nil && p.obj == nil {
		err = syscall.ENOENT
	}
	return p, err
}

// insert puts o where p is.
func (t *tree) insert(p *place, o *object) {
	p.dir.names[t.key(p.name)] = entry{p.name, o}
	p.dir.touch()
	p.obj = o
}

// remove takes the name at p away; an object without names lives on in its opens.
func (t *tree) remove(p place) {
	delete(p.dir.names, t.key(p.name))
	p.dir.touch()
	p.obj.links--
	p.obj.changed = now()
	t.release(p.obj)
}

// release gives the room of an object back that nothing refers to.
func (t *tree) release(o *object) {
	if o.links == 0 && len(o.opens) == 0 {
		t.used -= int64(len(o.data))
		o.data, o.unsafe = nil, nil
	}
}

func (t *tree) forget(f *file) {
	delete(f.obj.opens, f)
	t.release(f.obj)
}

func (t *tree) put(path string, data []byte) {
	p := place{obj: t.root}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		p = place{dir: p.obj, name: part, obj: p.obj.names[t.key(part)].obj}
		switch {
		case p.obj != nil:
		case i < len(parts)-1:
			t.insert(&p, t.newObject(remote.Dir))
		default:
			t.insert(&p, t.newObject(remote.Regular))
		}
	}
	t.used += int64(len(data) - len(p.obj.data))
	p.obj.data, p.obj.unsafe = data, nil
	p.obj.modified()
}

// each calls fn for every object that has a name.
func (t *tree) each(fn func(*object)) {
	seen := map[*object]bool{}
	var walk func(o *object)
	walk = func(o *object) {
		if seen[o] {
			return
		}
		seen[o] = true
		fn(o)
		for _, e := range o.names {
			walk(e.obj)
		}
	}
	walk(t.root)
}

// touch notes that a folder has changed.
func (o *object) touch() {
	o.written = now()
	o.changed = o.written
}

// modified notes that the bytes of a file have changed.
func (o *object) modified() {
	o.touch()
	o.dos |= dosArchive
}

func (o *object) attr(node remote.Node) remote.Attr {
	a := remote.Attr{
		Node: node, ID: o.id, Kind: o.kind, Links: o.links, DOS: o.dos, Size: int64(len(o.data)),
		Born: o.born, Accessed: o.accessed, Written: o.written, Changed: o.changed,
	}
	a.Alloc = (a.Size + blockSize - 1) / blockSize * blockSize
	switch {
	case o.kind == remote.Dir:
		a.DOS |= dosDir
	case o.kind == remote.Symlink:
		a.DOS |= dosReparse
	case a.DOS == 0:
		a.DOS = dosNormal
	}
	return a
}

const blockSize = 4096

// resize cuts o or fills it up with zeros.
func (t *tree) resize(o *object, size int64) error {
	more := size - int64(len(o.data))
	switch {
	case size < 0:
		return syscall.EINVAL
	case more > 0 && t.capacity > 0 && t.used+more > t.capacity:
		return syscall.ENOSPC
	case more > 0:
		o.data = append(o.data, make([]byte, more)...)
	default:
		o.data = o.data[:size]
	}
	t.used += more
	return nil
}
