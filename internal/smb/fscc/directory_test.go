package fscc

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

var dirClasses = []Class{
	ClassFileDirectory, ClassFileFullDirectory, ClassFileBothDirectory, ClassFileNames,
	ClassFileIDBothDirectory, ClassFileIDFullDirectory, ClassFileIDExtdDirectory,
}

// only returns e with what class has.
func (e DirEntry) only(class Class) DirEntry {
	parts, _ := dirParts(class)
	got := DirEntry{FileIndex: e.FileIndex, FileName: e.FileName}
	if parts&dirAttributes != 0 {
		got.CreationTime, got.LastAccessTime, got.LastWriteTime, got.ChangeTime = e.CreationTime, e.LastAccessTime, e.LastWriteTime, e.ChangeTime
		got.EndOfFile, got.AllocationSize, got.FileAttributes = e.EndOfFile, e.AllocationSize, e.FileAttributes
	}
	if parts&dirEaSize != 0 {
		got.EaSize, got.ReparseTag = e.EaSize, e.ReparseTag
	}
	if parts&dirShortName != 0 {
		got.ShortName = e.ShortName
	}
	if parts&(dirFileID|dirFileID128) != 0 {
		got.FileID = e.FileID
	}
	if parts&dirFileID128 != 0 {
		got.FileIDHigh = e.FileIDHigh
	}
	return got
}

var dirEntries = []DirEntry{
	{FileAttributes: AttributeDirectory, ShortName: []byte{}, FileName: "."},
	{1, 2, 3, 4, 5, 6, 7, AttributeArchive, 8, 0, 9, 10, []byte("T\x00~\x001\x00"), "τέλος.odd"},
	{1, 2, 3, 4, 5, 6, 7, AttributeReparsePoint, 0, ReparseTagSymlink, 9, 10, []byte(strings.Repeat("S\x00", 12)), "link"},
}

func TestDirEntries(t *testing.T) {
	for _, class := range dirClasses {
		w := NewDirWriter([]byte("before"), class, 1<<16)
		for i := range dirEntries {
			if !w.Append(&dirEntries[i]) {
				t.Fatalf("class %d: no room", class)
			}
		}
		buf := w.Bytes()[len("before"):]
		d := NewDirReader(class, buf)
		var e DirEntry
		for _, want := range dirEntries {
			if !d.Next(&e) || !reflect.DeepEqual(e, want.only(class)) {
				t.Errorf("class %d: got %+v, %v; want %+v", class, e, d.Err(), want.only(class))
			}
		}
		if d.Next(&e) || d.Err() != nil {
			t.Errorf("class %d: one more entry %+v, %v; want the end", class, e, d.Err())
		}

		for n := range len(buf) {
			d := NewDirReader(class, buf[:n:n])
			for d.Next(&e) {
			}
			if n > 0 && !errors.Is(d.Err(), byteio.ErrShort) && !errors.Is(d.Err(), errNextEntry) {
				t.Errorf("class %d, %d of %d bytes: error %v, want one about the missing bytes", class, n, len(buf), d.Err())
			}
		}
	}
}

func TestDirWriterRespectsItsLimit(t *testing.T) {
	one := DirEntry{FileName: "odd"}
	size := func(entries int) int { // of ClassFileNames: 12 and 6 bytes each, aligned
		return 24*(entries-1) + 18
	}
	for entries := 1; entries < 4; entries++ {
		for _, c := range []struct{ max, want int }{{size(entries), entries}, {size(entries) - 1, entries - 1}} {
			w := NewDirWriter(nil, ClassFileNames, c.max)
			got := 0
			for w.Append(&one) {
				got++
			}
			if got != c.want || len(w.Bytes()) > c.max {
				t.Errorf("%d bytes: %d entries in %d bytes, want %d", c.max, got, len(w.Bytes()), c.want)
			}
			d := NewDirReader(ClassFileNames, w.Bytes())
			for range got {
				if e := (DirEntry{}); !d.Next(&e) || e.FileName != one.FileName {
					t.Errorf("%d bytes: got %+v, %v", c.max, e, d.Err())
				}
			}
			if d.Next(&DirEntry{}) || d.Err() != nil {
				t.Errorf("%d bytes: no end, or error %v", c.max, d.Err())
			}
		}
	}
}

func TestDirReaderRefusesLies(t *testing.T) {
	w := NewDirWriter(nil, ClassFileBothDirectory, 1<<16)
	for range 2 {
		w.Append(&DirEntry{FileName: "a"})
	}
	for _, c := range []struct {
		off   int
		value []byte
		field string
	}{
		{0, []byte{1}, "NextEntryOffset"},
		{0, []byte{0xFF, 0xFF, 0xFF, 0xFF}, "NextEntryOffset"},
		{60, []byte{1}, "FileName"},
		{60, []byte{0xFE, 0xFF, 0xFF, 0xFF}, ""},
		{68, []byte{26}, "ShortNameLength"},
		{68, []byte{3}, "ShortNameLength"},
	} {
		b := bytes.Clone(w.Bytes())
		copy(b[c.off:], c.value)
		d := NewDirReader(ClassFileBothDirectory, b)
		for e := (DirEntry{}); d.Next(&e); {
		}
		var malformed *MalformedError
		if !errors.As(d.Err(), &malformed) || malformed.Field != c.field {
			t.Errorf("%x at %d: error %v, want one about %q", c.value, c.off, d.Err(), c.field)
		}
	}
	if d := NewDirReader(ClassFileBasic, w.Bytes()); d.Next(&DirEntry{}) || d.Err() == nil {
		t.Errorf("a class that lists nothing: error %v, want one", d.Err())
	}
}

// listing is what a directory of n files looks like.
func listing(n int) []byte {
	w := NewDirWriter(nil, ClassFileIDBothDirectory, n*256)
	for i := range n {
		w.Append(&DirEntry{FileAttributes: AttributeArchive, FileID: uint64(i), FileName: fmt.Sprintf("file number %06d.dat", i)})
	}
	return w.Bytes()
}

func TestDirReaderAllocates(t *testing.T) {
	const entries = 100
	buf := listing(entries)
	var e DirEntry
	names := testing.AllocsPerRun(10, func() {
		byteio.UTF16(buf[104:][:2*22])
	})
	got := testing.AllocsPerRun(10, func() {
		for d := NewDirReader(ClassFileIDBothDirectory, buf); d.Next(&e); {
		}
	})
	if want := names * entries; got > want {
		t.Errorf("%v allocations for %d entries, want %v for their names and no others", got, entries, want)
	}
}

func BenchmarkDirReader(b *testing.B) {
	const entries = 10_000
	buf := listing(entries)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		var e DirEntry
		for d := NewDirReader(ClassFileIDBothDirectory, buf); d.Next(&e); {
			n++
		}
		if n != entries {
			b.Fatalf("%d entries, want %d", n, entries)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
