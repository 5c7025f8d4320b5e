package remotetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/internal/remote"
)

var dirTests = []test{
	{"ReadDirOfFewEntries", testListFew},
	{"ReadDirOfAThousandEntries", testListMany},
	{"ReadDirOfWhatIsNoFolder", testListWrong},
	{"ReadDirEndsWhenItsConsumerDoes", testListBreak},
	{"ReadDirEndsWhenCancelled", testListCancel},
	{"ReadDirTwiceAtOnce", testListTwice},
	{"ReadDirOfAFolderThatIsRemoved", testListRemoved},
}

func testListFew(b *bed) {
	b.holds()
	b.put("one", make([]byte, 7))
	b.holds("one")
	b.mkdir("two")
	b.put("two/hidden", nil)
	b.put("three", nil)
	want := map[string]remote.Attr{"one": b.attr("one"), "two": b.attr("two"), "three": b.attr("three")}
	for page, err := range b.vol.ReadDir(b.ctx, remote.At{Node: b.dir}) {
		b.ok(err, "ReadDir")
		for _, e := range page {
			b.listed(e, want[e.Name])
			delete(want, e.Name)
		}
	}
	for name := range want {
		b.Errorf("%q is not listed, or twice", name)
	}
}

// listed complains if an entry says anything else than GetAttr, by name and by the entry's node.
func (b *bed) listed(e remote.Entry, want remote.Attr) {
	b.Helper()
	b.same("entry "+e.Name, e.Attr, want)
	a, err := b.vol.GetAttr(b.ctx, remote.At{Node: e.Attr.Node})
	b.ok(err, "GetAttr of the node of entry %s", e.Name)
	b.same("the node of entry "+e.Name, a, want)
}

// fill makes n files with long names, which need several pages.
func (b *bed) fill(dir string, n int) []string {
	b.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%04d %s", i, strings.Repeat("x", i%200))
	}
	b.each(n, func(i int) error {
		how := remote.How{Access: remote.ForWrite, Create: remote.New}
		_, err := b.vol.WriteFile(b.ctx, b.at(dir+"/"+names[i]), how, make([]byte, i%7))
		return err
	})
	return names
}

// each calls do for 0 to n-1, several at once.
func (b *bed) each(n int, do func(i int) error) {
	b.Helper()
	const workers = 16
	var errs [workers]error
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	wg.Wait()
	b.ok(errors.Join(errs[:]...), "%d at once", workers)
}

func testListMany(b *bed) {
	dir := b.mkdir("dir")
	want := b.fill("dir", 1000)
	var all []remote.Entry // the pages are ours, so they must stay as they are
	for page, err := range b.vol.ReadDir(b.ctx, b.at("dir")) {
		b.ok(err, "ReadDir")
		all = append(all, page...)
	}
	slices.SortFunc(all, func(x, y remote.Entry) int { return strings.Compare(x.Name, y.Name) })
	if len(all) != len(want) {
		b.Errorf("ReadDir gave %d entries, want %d", len(all), len(want))
	}
	for i, e := range all[:min(len(all), len(want))] {
		if e.Name != want[i] || e.Attr.Size != int64(i%7) || e.Attr.Kind != remote.Regular {
			b.Fatalf("entry %d is %q of size %d, want %q of %d", i, e.Name, e.Attr.Size, want[i], i%7)
		}
		if i%101 == 0 {
			b.listed(e, b.attr("dir/"+e.Name))
		}
	}
	if got := b.names(dir.Node); !slices.Equal(got, want) {
		b.Errorf("the second time, ReadDir gave %d entries, want %d", len(got), len(want))
	}
}

func testListWrong(b *bed) {
	b.put("file", nil)
	for name, want := range map[string][]error{"file": notDir(), "missing": missing(), "file/missing": noSuchDir()} {
		rounds := 0
		for page, err := range b.vol.ReadDir(b.ctx, b.at(name)) {
			if rounds++; len(page) > 0 {
				b.Errorf("ReadDir of %q gave %d entries", name, len(page))
			}
			b.fails(err, want, "ReadDir of %q", name)
		}
		if rounds != 1 {
			b.Errorf("ReadDir of %q gave %d pages and errors, want one error", name, rounds)
		}
	}
}

// testListBreak stops listing early. A folder that is still open somewhere
// could not be removed and made again.
func testListBreak(b *bed) {
	b.mkdir("dir")
	names := b.fill("dir", 220)
	for range 5 {
		for page, err := range b.vol.ReadDir(b.ctx, b.at("dir")) {
			b.ok(err, "ReadDir")
			b.attr("dir/" + page[0].Name) // a listing is in no one's way
			break
		}
	}
	b.removeAll("dir", names)
	b.mkdir("dir")
	b.holds("dir")
}

func (b *bed) removeAll(dir string, names []string) {
	b.Helper()
	b.each(len(names), func(i int) error { return b.vol.Remove(b.ctx, b.at(dir+"/"+names[i]), false) })
	b.ok(b.vol.Remove(b.ctx, b.at(dir), true), "Remove %q", dir)
}

func testListCancel(b *bed) {
	b.mkdir("dir")
	names := b.fill("dir", 220)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for page, err := range b.vol.ReadDir(ctx, b.at("dir")) {
		b.fails(err, cancelled(), "ReadDir, cancelled before, which gave %d entries", len(page))
	}
	ctx, cancel = context.WithCancel(b.ctx)
	defer cancel()
	n := 0
	for page, err := range b.vol.ReadDir(ctx, b.at("dir")) {
		if err != nil {
			b.fails(err, cancelled(), "ReadDir, cancelled meanwhile")
			break
		}
		cancel()
		n += len(page)
	}
	if n == 0 || n > len(names) {
		b.Errorf("ReadDir, cancelled meanwhile, gave %d entries of %d", n, len(names))
	}
}

func testListTwice(b *bed) {
	b.mkdir("dir")
	names := b.fill("dir", 150)
	one, stopOne := iter.Pull2(b.vol.ReadDir(b.ctx, b.at("dir")))
	defer stopOne()
	two, stopTwo := iter.Pull2(b.vol.ReadDir(b.ctx, b.at("dir")))
	defer stopTwo()
	counts := [2]int{}
	for more := [2]bool{true, true}; more[0] || more[1]; {
		for i, next := range []func() ([]remote.Entry, error, bool){one, two} {
			if more[i] {
				page, err, ok := next()
				b.ok(err, "ReadDir")
				counts[i], more[i] = counts[i]+len(page), ok
			}
		}
	}
	if counts != [2]int{len(names), len(names)} {
		b.Errorf("two listings gave %v entries, want %d each", counts, len(names))
	}
}

// testListRemoved is rm -r, which removes what it is listing. A name may come
// twice: Samba on a tmpfs starts over when the name it had come to is gone.
func testListRemoved(b *bed) {
	b.mkdir("dir")
	names := b.fill("dir", 220)
	first := true
	for page, err := range b.vol.ReadDir(b.ctx, b.at("dir")) {
		if err != nil {
			break // that the folder is gone may be one
		}
		for _, e := range page {
			if !slices.Contains(names, e.Name) {
				b.Errorf("%q was never there", e.Name)
			}
		}
		if first {
			first = false
			b.removeAll("dir", names)
		}
	}
	if first {
		b.Error("ReadDir gave nothing")
	}
	b.holds()
	b.mkdir("dir")
}
