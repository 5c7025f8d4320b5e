package remotetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/internal/remote"
)

// The tests here do the same at random to a volume and to a simple model of
// it. Their seeds are fixed, so that they fail again.
const modelSteps = 120

// trace is what was done so far, told when it went wrong.
type trace struct {
	b     *bed
	steps []string
}

func (t *trace) add(format string, args ...any) {
	t.steps = append(t.steps, fmt.Sprintf(format, args...))
}

func (t *trace) fatal(format string, args ...any) {
	t.b.Helper()
	last := t.steps[max(0, len(t.steps)-12):]
	t.b.Fatalf("%s, after\n%s", fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

func (t *trace) ok(err error) {
	t.b.Helper()
	if err != nil {
		t.fatal("error %v", err)
	}
}

// testFileModel does to one file, through two opens and by name, what can be
// done to a slice of bytes.
func testFileModel(b *bed) {
	const maxSize = 150_000
	rnd := rand.New(rand.NewPCG(1, 2))
	var want []byte
	opens := []*handle{
		b.open("file", remote.ForRead|remote.ForWrite, remote.New),
		b.open("file", remote.ForRead|remote.ForWrite, remote.Existing),
	}
	t := &trace{b: b}
	for step := range modelSteps {
		h := opens[rnd.IntN(2)]
		off, data := rnd.IntN(maxSize/2), noise(uint64(step), rnd.IntN(1<<rnd.IntN(17)))
		switch rnd.IntN(8) {
		case 0, 1:
			t.add("write %d at %d", len(data), off)
			h.write(int64(off), split(data)...)
			if len(data) > 0 && len(want) < off+len(data) {
				want = append(want, make([]byte, off+len(data)-len(want))...)
			}
			copy(want[min(off, len(want)):], data)
		case 2:
			data = data[:min(len(data), max(0, maxSize-len(want)))]
			t.add("append %d", len(data))
			at, n, err := h.Open.Append(b.ctx, split(data))
			t.ok(err)
			if len(data) > 0 && at != int64(len(want)) {
				t.fatal("Append went to %d, want %d", at, len(want))
			}
			want = append(want, data[:n]...)
		case 3:
			t.add("set size %d", off)
			_, err := h.File.SetSize(b.ctx, h.Open, int64(off))
			t.ok(err)
			want = append(want[:min(off, len(want))], make([]byte, max(0, off-len(want)))...)
		case 4:
			data = data[:min(len(data), b.vol.Limits().Write)]
			t.add("write file %d", len(data))
			_, err := b.vol.WriteFile(b.ctx, b.at("file"), remote.How{Access: remote.ForWrite}, data)
			t.ok(err)
			want = append(bytes.Clone(data), want[min(len(data), len(want)):]...)
		case 5:
			t.add("commit")
			redo, err := h.File.Commit(b.ctx, h.Open, []remote.Span{{Len: int64(len(want))}})
			t.ok(err)
			if len(redo) > 0 {
				t.fatal("Commit wants %v again", redo)
			}
		case 6:
			p := make([]byte, rnd.IntN(maxSize))
			t.add("read file %d", len(p))
			n, attr, err := b.vol.ReadFile(b.ctx, b.at("file"), p)
			t.ok(err)
			if attr.Size != int64(len(want)) || !bytes.Equal(p[:n], want[:min(n, len(want))]) {
				t.fatal("size %d, want %d; %s", attr.Size, len(want), differ(p[:n], want[:min(n, len(want))]))
			}
		default:
			n := rnd.IntN(maxSize)
			t.add("read %d at %d", n, off)
			from := min(off, len(want))
			if got, want := h.read(int64(off), n), want[from:min(from+n, len(want))]; !bytes.Equal(got, want) {
				t.fatal("%s", differ(got, want))
			}
		}
	}
	if got := opens[0].read(0, len(want)+1); !bytes.Equal(got, want) {
		t.fatal("%s", differ(got, want))
	}
	if a, err := opens[1].File.GetAttr(b.ctx, opens[1].Open); err != nil || a.Size != int64(len(want)) {
		t.fatal("GetAttr: size %d, %v, want %d", a.Size, err, len(want))
	}
}

// testTreeModel makes, moves and removes files and folders, and compares with a
// map from path to content, in which folders end in a slash.
func testTreeModel(b *bed) {
	rnd := rand.New(rand.NewPCG(3, 4))
	tree := map[string]string{}
	t := &trace{b: b}
	is := func(path string) bool { _, ok := tree[path]; return ok }
	dirs := func() []string {
		all := []string{""}
		for path := range tree {
			if strings.HasSuffix(path, "/") {
				all = append(all, path)
			}
		}
		slices.Sort(all)
		return all
	}
	anything := func() string {
		all := slices.Sorted(maps.Keys(tree))
		if len(all) == 0 {
			return "none"
		}
		return all[rnd.IntN(len(all))]
	}
	for step := range modelSteps {
		all := dirs()
		fresh := all[rnd.IntN(len(all))] + fmt.Sprint("n", rnd.IntN(5))
		taken := is(fresh) || is(fresh+"/")
		there := anything()
		name, isDir := strings.CutSuffix(there, "/")
		switch op := rnd.IntN(6); {
		case op <= 1 && strings.Count(fresh, "/") < 4:
			t.add("make folder %s", fresh)
			_, err := b.vol.Make(b.ctx, b.at(fresh), remote.Make{Kind: remote.Dir})
			if (err == nil) == taken {
				t.fatal("error %v, taken %v", err, taken)
			}
			if !taken {
				tree[fresh+"/"] = ""
			}
		case op == 2:
			t.add("write %s", fresh)
			text := fmt.Sprint("step ", step)
			_, err := b.vol.WriteFile(b.ctx, b.at(fresh), remote.How{Access: remote.ForWrite, Create: remote.TruncateNew}, []byte(text))
			if (err == nil) == is(fresh+"/") {
				t.fatal("error %v, a folder is there %v", err, is(fresh+"/"))
			}
			if err == nil {
				tree[fresh] = text
			}
		case op == 3 && len(tree) > 0:
			inside := isDir && strings.HasPrefix(fresh+"/", there)
			t.add("rename %s to %s", name, fresh)
			_, err := b.vol.Rename(b.ctx, b.at(name), b.at(fresh), false)
			if same := name == fresh; !same && (err == nil) == (taken || inside) {
				t.fatal("error %v, taken %v, inside itself %v", err, taken, inside)
			} else if err == nil && !same {
				for path, text := range maps.Clone(tree) {
					if below, ok := strings.CutPrefix(path, there); ok && (isDir || below == "") {
						delete(tree, path)
						if isDir {
							below = "/" + below
						}
						tree[fresh+below] = text
					}
				}
			}
		case op == 4 && len(tree) > 0:
			full := false
			for path := range tree {
				full = full || isDir && path != there && strings.HasPrefix(path, there)
			}
			t.add("remove %s", there)
			err := b.vol.Remove(b.ctx, b.at(name), isDir)
			if (err == nil) == full {
				t.fatal("error %v, something in it %v", err, full)
			}
			if err == nil {
				delete(tree, there)
			}
		default:
			t.add("look at %s", name)
			a, err := b.vol.GetAttr(b.ctx, b.at(name))
			if is(there) && (err != nil || (a.Kind == remote.Dir) != isDir || !isDir && a.Size != int64(len(tree[there]))) {
				t.fatal("kind %d, size %d, %v, want %q", a.Kind, a.Size, err, tree[there])
			}
		}
	}
	got := map[string]string{}
	b.walk("", got)
	if !maps.Equal(got, tree) {
		t.fatal("the tree is %q, want %q", got, tree)
	}
}

// walk puts what is in a folder and below into tree.
func (b *bed) walk(dir string, tree map[string]string) {
	at := remote.At{Node: b.dir}
	if dir != "" {
		at = b.at(strings.TrimSuffix(dir, "/"))
	}
	for page, err := range b.vol.ReadDir(b.ctx, at) {
		b.ok(err, "ReadDir %q", dir)
		for _, e := range page {
			if path := dir + e.Name; e.Attr.Kind == remote.Dir {
				tree[path+"/"] = ""
				b.walk(path+"/", tree)
			} else {
				tree[path] = string(b.get(path))
			}
		}
	}
}
