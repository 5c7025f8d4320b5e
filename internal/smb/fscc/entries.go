package fscc

import "github.com/pagewire/pagewire/internal/byteio"

// nextEntry cuts the first entry off a list in which each entry begins with the
// distance to the next. The Reader stands behind that; rest is empty behind the
// last entry.
func nextEntry(name string, list []byte) (entry byteio.Reader, rest []byte, err error) {
	r := byteio.NewReader(list)
	next := int64(r.Uint32())
	if next == 0 {
		return r, nil, nil
	}
	if next < 4 || next >= int64(len(list)) {
		return r, nil, &MalformedError{name, "NextEntryOffset", errNextEntry}
	}
	entry = byteio.NewReader(r.At(0, next))
	entry.Skip(4)
	return entry, r.At(next, int64(len(list))-next), nil
}

// Stream is one stream of a file, the unnamed one being ::$DATA.
type Stream struct {
	StreamSize           uint64
	StreamAllocationSize uint64
	StreamName           string
}

// FileStreamInformation lists the streams of a file. See [MS-FSCC] 2.4.49.
type FileStreamInformation []Stream

func (m FileStreamInformation) Append(b []byte) []byte {
	for i, s := range m {
		here := len(b)
		b = byteio.Append32(b, 0)
		b = byteio.Append32(b, uint32(2*byteio.UTF16Len(s.StreamName)))
		b = byteio.Append64(b, s.StreamSize)
		b = byteio.Append64(b, s.StreamAllocationSize)
		b = byteio.AppendUTF16(b, s.StreamName)
		if i < len(m)-1 {
			b = byteio.Pad(b, here, 8)
			byteio.Put32(b[here:], uint32(len(b)-here))
		}
	}
	return b
}

// Decode takes all that lies ahead; nothing is no streams.
func (m *FileStreamInformation) Decode(r *byteio.Reader) error {
	const name = "FileStreamInformation"
	*m = nil
	for rest := r.Rest(); len(rest) > 0; {
		var e byteio.Reader
		var err error
		if e, rest, err = nextEntry(name, rest); err != nil {
			return r.Fail(err)
		}
		f := fields{&e}
		n := f.Uint32()
		s := Stream{StreamSize: f.Uint64(), StreamAllocationSize: f.Uint64()}
		s.StreamName = f.text("StreamName", n)
		if err := f.end(name); err != nil {
			return r.Fail(err)
		}
		*m = append(*m, s)
	}
	return fields{r}.end(name)
}

// Action says what happened to a file.
type Action uint32

const (
	ActionAdded          Action = 1
	ActionRemoved        Action = 2
	ActionModified       Action = 3
	ActionRenamedOldName Action = 4
	ActionRenamedNewName Action = 5
	ActionAddedStream    Action = 6
	ActionRemovedStream  Action = 7
	ActionModifiedStream Action = 8
)

// Change is one change in a directory.
type Change struct {
	Action   Action
	FileName string
}

// FileNotifyInformation lists changes in a directory. See [MS-FSCC] 2.7.1.
type FileNotifyInformation []Change

func (m FileNotifyInformation) Append(b []byte) []byte {
	for i, c := range m {
		here := len(b)
		b = byteio.Append32(b, 0)
		b = byteio.Append32(b, uint32(c.Action))
		b = byteio.Pad(appendText(b, c.FileName), here, 4)
		if i < len(m)-1 {
			byteio.Put32(b[here:], uint32(len(b)-here))
		}
	}
	return b
}

// Decode takes all that lies ahead; nothing is no changes.
func (m *FileNotifyInformation) Decode(r *byteio.Reader) error {
	const name = "FileNotifyInformation"
	*m = nil
	for rest := r.Rest(); len(rest) > 0; {
		var e byteio.Reader
		var err error
		if e, rest, err = nextEntry(name, rest); err != nil {
			return r.Fail(err)
		}
		f := fields{&e}
		c := Change{Action: Action(f.Uint32())}
		c.FileName = f.text("FileName", f.Uint32())
		if err := f.end(name); err != nil {
			return r.Fail(err)
		}
		*m = append(*m, c)
	}
	return fields{r}.end(name)
}
