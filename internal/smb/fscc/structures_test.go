package fscc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

type structure interface {
	Append([]byte) []byte
	Decode(*byteio.Reader) error
}

var (
	basic    = FileBasicInformation{1, 2, 3, 4, AttributeHidden}
	standard = FileStandardInformation{1 << 40, 1 << 39, 2, true, true}
)

// samples has every structure, with no field left zero.
var samples = []structure{
	&basic,
	&standard,
	&FileInternalInformation{1 << 60},
	&FileEaInformation{7},
	&FilePositionInformation{1 << 40},
	&FileNameInformation{`\d\τέλος`},
	&FileAllInformation{basic, standard, FileInternalInformation{5}, FileEaInformation{6}, 7, FilePositionInformation{8}, 9, 10,
		FileNameInformation{`\d\τέλος`}},
	&FileNetworkOpenInformation{1, 2, 3, 4, 5, 6, AttributeArchive},
	&FileAttributeTagInformation{AttributeReparsePoint, ReparseTagSymlink},
	&FileIDInformation{1, [16]byte{2, 3, 15: 4}},
	&FileEndOfFileInformation{1 << 40},
	&FileAllocationInformation{1 << 40},
	&FileDispositionInformation{true},
	&FileDispositionInformationEx{DispositionDelete | DispositionPosixSemantics},
	&FileRenameInformation{true, `d\f`},
	&FileRenameInformation{true, "f"},
	&FileRenameInformationEx{RenameReplaceIfExists, `d\f`},
	&FileLinkInformation{true, `d\f`},
	&FileFsVolumeInformation{1, 2, true, "far"},
	&FileFsSizeInformation{1, 2, 3, 4},
	&FileFsFullSizeInformation{1, 2, 3, 4, 5},
	&FileFsDeviceInformation{DeviceTypeDisk, 2},
	&FileFsAttributeInformation{FSUnicodeOnDisk, 255, "NTFS"},
	&FileFsSectorSizeInformation{1, 2, 3, 4, 5, 6, 7},
	&FileStreamInformation{{1, 2, "::$DATA"}, {3, 4, ":s:$DATA"}},
	&FileNotifyInformation{{ActionRenamedOldName, "a"}, {ActionRenamedNewName, "bcd"}},
	&ReparsePoint{Tag: ReparseTagSymlink, Data: []byte("some data")},
	&ReparsePoint{Tag: 0x20000017, GUID: [16]byte{1, 15: 2}, Data: []byte("some data")},
	&SymbolicLinkReparseData{`..\τέλος`, "τέλος", true},
	&MountPointReparseData{`\??\C:\d`, `C:\d`},
	&NFSReparseData{Type: NFSTypeLnk, Target: "../τέλος"},
	&NFSReparseData{Type: NFSTypeChr, Major: 8, Minor: 1},
	&NFSReparseData{Type: NFSTypeFifo},
	&LXSymlinkReparseData{"../τέλος"},
}

func decode(s structure, b []byte) (structure, error) {
	got := reflect.New(reflect.TypeOf(s).Elem()).Interface().(structure)
	r := byteio.NewReader(b)
	err := got.Decode(&r)
	return got, err
}

func TestRoundTrip(t *testing.T) {
	for _, s := range samples {
		got, err := decode(s, s.Append(nil))
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%T: got %+v, %v; want %+v", s, got, err, s)
		}
		if got := s.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), s.Append(nil)...)) {
			t.Errorf("%T: what is there already changes what is appended", s)
		}
	}
}

// What is cut off is either missed or was padding.
func TestTruncated(t *testing.T) {
	for _, s := range samples {
		b := s.Append(nil)
		for n := range len(b) {
			got, err := decode(s, b[:n:n])
			var malformed *MalformedError
			switch {
			case err == nil:
				if !takesRest(s) && !reflect.DeepEqual(got, s) {
					t.Errorf("%T, %d of %d bytes: got %+v, want %+v or an error", s, n, len(b), got, s)
				}
			case !errors.As(err, &malformed) || malformed.Message == "":
				t.Errorf("%T, %d of %d bytes: error %q, want a MalformedError", s, n, len(b), err)
			}
		}
	}
}

// takesRest says whether a part of s can be a whole, too.
func takesRest(s structure) bool {
	switch s.(type) {
	case *FileStreamInformation, *FileNotifyInformation, *NFSReparseData, *LXSymlinkReparseData:
		return true
	}
	return false
}

func TestLies(t *testing.T) {
	for _, c := range []struct {
		s     structure
		off   int
		value []byte
		field string
	}{
		{&FileNameInformation{"abc"}, 0, []byte{5}, "FileName"},
		{&FileNameInformation{"abc"}, 0, []byte{8}, ""},
		{&FileNameInformation{"abc"}, 0, []byte{0xFE, 0xFF, 0xFF, 0xFF}, ""},
		{&FileRenameInformation{FileName: "abc"}, 16, []byte{0xFE, 0xFF, 0xFF, 0xFF}, ""},
		{&FileStreamInformation{{}, {}}, 0, []byte{3}, "NextEntryOffset"},
		{&FileStreamInformation{{}, {}}, 0, []byte{48}, "NextEntryOffset"},
		{&FileNotifyInformation{{}, {}}, 0, []byte{0xFF, 0xFF, 0xFF, 0xFF}, "NextEntryOffset"},
		{&FileNotifyInformation{{}, {}}, 0, []byte{8}, ""},
		{&SymbolicLinkReparseData{"ab", "cd", false}, 0, []byte{6}, "SubstituteName"},
		{&SymbolicLinkReparseData{"ab", "cd", false}, 6, []byte{5}, "PrintName"},
		{&MountPointReparseData{"ab", "cd"}, 4, []byte{0xFE, 0xFF}, "PrintName"},
		{&NFSReparseData{Type: NFSTypeFifo}, 0, []byte{0}, "Type"},
		{&NFSReparseData{Type: NFSTypeLnk, Target: ""}, 8, []byte{0}, "DataBuffer"},
		{&LXSymlinkReparseData{"a"}, 0, []byte{1}, "Version"},
	} {
		b := c.s.Append(nil)
		b = append(b, make([]byte, max(0, c.off+len(c.value)-len(b)))...)
		copy(b[c.off:], c.value)
		got, err := decode(c.s, b)
		var malformed *MalformedError
		if !errors.As(err, &malformed) || malformed.Field != c.field {
			t.Errorf("%T with %x at %d: %+v, error %v, want one about %q", c.s, c.value, c.off, got, err, c.field)
		}
	}
}

// Bytes after the pictures in [MS-FSCC] and, for LX, as Linux writes them, of
// what Samba 4.17 neither sends nor takes.
func TestSpecified(t *testing.T) {
	for _, c := range []struct {
		s    structure
		want string
	}{
		{&FileDispositionInformationEx{DispositionDelete | DispositionPosixSemantics}, "03000000"},
		{&FileRenameInformationEx{RenameReplaceIfExists | RenamePosixSemantics, "ab"},
			"03000000 00000000 0000000000000000 04000000 61006200"},
		{&FileRenameInformation{false, "a"}, "00 00000000000000 0000000000000000 02000000 6100 0000"}, // at least 24
		{&FileAllocationInformation{4096}, "0010000000000000"},
		{&FileIDInformation{1, [16]byte{2}}, "0100000000000000 02000000000000000000000000000000"},
		{&ReparsePoint{Tag: ReparseTagLXFIFO}, "24000080 0000 0000"},
		{&ReparsePoint{Tag: 0x17, GUID: [16]byte{1, 2}, Data: []byte{3}}, "17000000 0100 0000 01020000000000000000000000000000 03"},
		{&MountPointReparseData{`\??\C:`, "C:"},
			"0000 0c00 0e00 0400 5c003f003f005c0043003a00 0000 43003a00 0000"},
		{&NFSReparseData{Type: NFSTypeLnk, Target: "a"}, "4c4e4b0100000000 6100"},
		{&NFSReparseData{Type: NFSTypeChr, Major: 1, Minor: 3}, "4348520000000000 01000000 03000000"},
		{&NFSReparseData{Type: NFSTypeBlk, Major: 8, Minor: 1}, "424c4b0000000000 08000000 01000000"},
		{&NFSReparseData{Type: NFSTypeFifo}, "4649464f00000000"},
		{&NFSReparseData{Type: NFSTypeSock}, "534f434b00000000"},
		{&LXSymlinkReparseData{"a"}, "02000000 61"},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.s.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%+v: got %x, want %x", c.s, got, want)
		}
	}
}

func TestNewReparsePoint(t *testing.T) {
	link := SymbolicLinkReparseData{"ab", "cd", true}
	p := NewReparsePoint(ReparseTagSymlink, &link)
	decoded, err := decode(&p, p.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(&link, decoded.(*ReparsePoint).Data)
	if err != nil || !reflect.DeepEqual(got, &link) {
		t.Errorf("got %+v, %v; want %+v", got, err, link)
	}
}
