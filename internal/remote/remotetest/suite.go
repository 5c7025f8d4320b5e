package remotetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
)

// Target is what Run tests.
type Target struct {
	Volume remote.Volume
	// Second is another client of the same tree; nil skips what needs one.
	Second remote.Volume
	Caps   Caps
}

// Caps says what the peer can do besides what all can. What it cannot is skipped.
type Caps struct {
	Symlinks bool
	Links    bool // hard links
	DOS      bool // it keeps the read-only and hidden attributes, and the time of birth
	FoldCase bool // names are found whatever their case
	Reserved bool // names may have : * ? " < > | \ and end in a space or dot

	LoneSurrogates bool // names may be any 16-bit units
	MaxName        int  // UTF-16 units; 0: 255
	MaxNameBytes   int  // in UTF-8, 0: as many as MaxName needs

	// Rights are those that the only client gets who asks for all of them, at least.
	Rights remote.Rights

	// Fill takes room from the volume until so many bytes are free. It is
	// called with -1 to undo that. The other tests need 128 MiB.
	Fill func(t *testing.T, free int64)
}

// patience is how long a test may take: it ends what hangs.
const patience = 30 * time.Second

// Run tests that a volume keeps to what package remote says. open is called at
// least once, and closes what it opened with t.Cleanup. The volume must be
// writable; what is in it already does not matter.
func Run(t *testing.T, open func(t *testing.T) Target) {
	target := open(t)
	root := &bed{T: t, Target: target, ctx: t.Context(), vol: target.Volume}
	base := root.mkdir(fmt.Sprintf("suite-%x", time.Now().UnixNano())).Node
	for i, test := range slices.Concat(openTests, dataTests, attrTests, dirTests, changeTests, nameTests, cancelTests, sharedTests) {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			b := &bed{T: t, Target: target, ctx: ctx, vol: target.Volume, dir: base}
			b.dir = b.mkdir(fmt.Sprintf("%02d", i)).Node
			test.run(b)
		})
	}
	t.Run("NothingWorksAfterClose", func(t *testing.T) { testAfterClose(t, open(t).Volume) })
}

type test struct {
	name string
	run  func(*bed)
}

// bed is what one test has: a folder of its own.
type bed struct {
	*testing.T
	Target
	ctx context.Context
	vol remote.Volume
	dir remote.Node
}

func (b *bed) at(name string) remote.At { return remote.At{Dir: b.dir, Name: name} }

// second returns the same bed, seen by the second client.
func (b *bed) second() *bed {
	if b.Second == nil {
		b.Skip("there is no second client")
	}
	c := *b
	c.vol = b.Second
	return &c
}

// ok ends the test if err is one.
func (b *bed) ok(err error, format string, args ...any) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// fails complains unless err is one of want, or any error if want is empty.
func (b *bed) fails(err error, want []error, format string, args ...any) {
	b.Helper()
	is := func(target error) bool { return errors.Is(err, target) }
	if err == nil || len(want) > 0 && !slices.ContainsFunc(want, is) {
		b.Errorf("%s: error %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// What an error may be. SMB servers do not agree on which of two to report.
func missing() []error    { return []error{fs.ErrNotExist} }
func exists() []error     { return []error{fs.ErrExist} }
func forbidden() []error  { return []error{fs.ErrPermission, syscall.EBADF} }
func isDir() []error      { return []error{syscall.EISDIR} }
func notDir() []error     { return []error{syscall.ENOTDIR} }
func notEmpty() []error   { return []error{syscall.ENOTEMPTY} }
func noSuchDir() []error  { return []error{fs.ErrNotExist, syscall.ENOTDIR} }
func isDirThere() []error { return []error{syscall.EISDIR, fs.ErrExist} }
func noSpace() []error    { return []error{syscall.ENOSPC} }
func cancelled() []error  { return []error{context.Canceled} }
func anyError() []error   { return nil }

func (b *bed) mkdir(name string) remote.Attr {
	b.Helper()
	attr, err := b.vol.Make(b.ctx, b.at(name), remote.Make{Kind: remote.Dir})
	b.ok(err, "Make folder %q", name)
	return attr
}

// put makes or replaces a file.
func (b *bed) put(name string, data []byte) remote.Attr {
	b.Helper()
	attr, err := b.vol.WriteFile(b.ctx, b.at(name), remote.How{Create: remote.TruncateNew, Access: remote.ForWrite}, data)
	b.ok(err, "WriteFile %q", name)
	return attr
}

// get returns all of a file.
func (b *bed) get(name string) []byte {
	b.Helper()
	h := b.open(name, remote.ForRead, remote.Existing)
	defer h.close()
	return h.read(0, int(h.Attr.Size)+1)
}

func (b *bed) attr(name string) remote.Attr {
	b.Helper()
	attr, err := b.vol.GetAttr(b.ctx, b.at(name))
	b.ok(err, "GetAttr %q", name)
	return attr
}

// gone complains if there is something.
func (b *bed) gone(name string) {
	b.Helper()
	_, err := b.vol.GetAttr(b.ctx, b.at(name))
	b.fails(err, missing(), "GetAttr of %q, which should be gone", name)
}

func (b *bed) names(dir remote.Node) []string {
	b.Helper()
	var names []string
	for page, err := range b.vol.ReadDir(b.ctx, remote.At{Node: dir}) {
		b.ok(err, "ReadDir")
		for _, e := range page {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// holds complains if the test's folder has other names in it.
func (b *bed) holds(want ...string) {
	b.Helper()
	slices.Sort(want)
	if got := b.names(b.dir); !slices.Equal(got, want) {
		b.Errorf("the folder has %q, want %q", got, want)
	}
}

// has complains if a file has other bytes.
func (b *bed) has(name string, want []byte) {
	b.Helper()
	if got := b.get(name); !bytes.Equal(got, want) {
		b.Errorf("%s: %s", name, differ(got, want))
	}
}

// handle is an open file.
type handle struct {
	remote.Opened
	b      *bed
	closed bool
}

func (b *bed) open(name string, access remote.Access, create remote.Create) *handle {
	b.Helper()
	o, err := b.vol.Open(b.ctx, b.at(name), remote.How{Access: access, Create: create}, nil)
	b.ok(err, "Open %q", name)
	h := &handle{Opened: o, b: b}
	b.Cleanup(h.close)
	return h
}

func (h *handle) close() {
	if h.closed {
		return
	}
	h.closed = true
	// Cleanups come after the test's context is done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.b.ctx), patience)
	defer cancel()
	if err := h.Open.Close(ctx); err != nil {
		h.b.Errorf("Close: %v", err)
	}
}

func (h *handle) req(off int64) remote.Req { return remote.Req{Open: h.Open, Off: off} }

// read returns what is in the file from off on, n bytes at most, in as many
// requests as that takes.
func (h *handle) read(off int64, n int) []byte {
	h.b.Helper()
	p := make([]byte, n)
	return p[:h.readInto(off, [][]byte{p})]
}

func (h *handle) readInto(off int64, into [][]byte) int {
	h.b.Helper()
	done, all := 0, size(into)
	for done < all {
		before := h.File.Limits().Read
		n, eof, err := h.File.ReadAt(h.b.ctx, h.req(off+int64(done)), part(into, done, before+1))
		h.b.ok(err, "ReadAt %d", off+int64(done))
		if limit := max(before, h.File.Limits().Read); n > limit || n > all-done || n < 0 {
			h.b.Fatalf("ReadAt returned %d bytes, asked for %d, the limit being %d", n, all-done, limit)
		}
		if done += n; eof {
			break
		}
		if n == 0 {
			h.b.Fatalf("ReadAt %d returned nothing, and it is not the end", off+int64(done))
		}
	}
	return done
}

// write writes all of data, in as many requests as that takes.
func (h *handle) write(off int64, data ...[]byte) {
	h.b.Helper()
	for done, all := 0, size(data); done < all; {
		before := h.File.Limits().Write
		n, _, err := h.File.WriteAt(h.b.ctx, h.req(off+int64(done)), remote.Write{Data: part(data, done, before+1)})
		h.b.ok(err, "WriteAt %d", off+int64(done))
		if limit := max(before, h.File.Limits().Write); n <= 0 || n > limit || n > all-done {
			h.b.Fatalf("WriteAt wrote %d bytes of %d, the limit being %d", n, all-done, limit)
		}
		done += n
	}
}

// part returns n bytes of the buffers from off on, or what there is.
func part(bufs [][]byte, off, n int) [][]byte {
	var out [][]byte
	for _, p := range bufs {
		skip := min(off, len(p))
		p, off = p[skip:], off-skip
		k := min(n, len(p))
		if n -= k; off == 0 && n+k > 0 {
			out = append(out, p[:k:k])
		}
	}
	return out
}

// noise returns n bytes that are the same for the same seed, and elsewhere others.
func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	var s [32]byte
	s[0], s[1] = byte(seed), byte(seed>>8)
	rand.NewChaCha8(s).Read(p)
	return p
}

// split cuts p into uneven pieces, an empty one among them.
func split(p []byte) [][]byte {
	var parts [][]byte
	for i := 0; len(p) > 0; i++ {
		n := min(len(p), []int{1, 4095, 0, 3, 8191, 511, 65537}[i%7])
		parts, p = append(parts, p[:n:n]), p[n:]
	}
	return parts
}

// differ says where got is not want.
func differ(got, want []byte) string {
	n := min(len(got), len(want))
	for i := range n {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d is %#x, want %#x (%d bytes, want %d)", i, got[i], want[i], len(got), len(want))
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}

// same complains if two Attrs of one object differ in what does not change by itself.
func (b *bed) same(what string, got, want remote.Attr) {
	b.Helper()
	var diffs []string
	diff := func(field string, got, want any) {
		if got != want {
			diffs = append(diffs, fmt.Sprintf("%s %v, want %v", field, got, want))
		}
	}
	if got.ID != 0 && want.ID != 0 {
		diff("ID", got.ID, want.ID)
	}
	if got.Links != 0 && want.Links != 0 && got.Kind == remote.Regular {
		diff("Links", got.Links, want.Links)
	}
	diff("Kind", got.Kind, want.Kind)
	diff("DOS", got.DOS, want.DOS)
	if got.Kind == remote.Regular {
		diff("Size", got.Size, want.Size)
	}
	diff("Born", got.Born.UTC(), want.Born.UTC())
	diff("Written", got.Written.UTC(), want.Written.UTC())
	if len(diffs) > 0 {
		b.Errorf("%s: %s", what, strings.Join(diffs, "; "))
	}
}
