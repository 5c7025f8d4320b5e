package fscc

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readGolden reads a line that says who sent it and lines of hex.
func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", name+".hex"))
	if err != nil {
		t.Error(err)
		return nil
	}
	_, digits, _ := strings.Cut(string(text), "\n")
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// Foreign structures survive decoding and appending byte by byte. What no
// foreign program at hand sends is in TestSpecified.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		s    structure
	}{
		{"FileAllInformation", &FileAllInformation{}},
		{"FileAlternateNameInformation", &FileNameInformation{}},
		{"FileAttributeTagInformation", &FileAttributeTagInformation{}},
		{"FileBasicInformation", &FileBasicInformation{}},
		{"FileBasicInformation_set", &FileBasicInformation{}},
		{"FileDispositionInformation_set", &FileDispositionInformation{}},
		{"FileEaInformation", &FileEaInformation{}},
		{"FileEndOfFileInformation_set", &FileEndOfFileInformation{}},
		{"FileFsAttributeInformation", &FileFsAttributeInformation{}},
		{"FileFsDeviceInformation", &FileFsDeviceInformation{}},
		{"FileFsFullSizeInformation", &FileFsFullSizeInformation{}},
		{"FileFsSectorSizeInformation", &FileFsSectorSizeInformation{}},
		{"FileFsSizeInformation", &FileFsSizeInformation{}},
		{"FileFsVolumeInformation", &FileFsVolumeInformation{}},
		{"FileInternalInformation", &FileInternalInformation{}},
		{"FileLinkInformation_set", &FileLinkInformation{}},
		{"FileNetworkOpenInformation", &FileNetworkOpenInformation{}},
		{"FileNormalizedNameInformation", &FileNameInformation{}},
		{"FileNotifyInformation", &FileNotifyInformation{}},
		{"FilePositionInformation", &FilePositionInformation{}},
		{"FileRenameInformation_set", &FileRenameInformation{}},
		{"FileStandardInformation", &FileStandardInformation{}},
		{"FileStreamInformation", &FileStreamInformation{}},
		{"FSCTL_SET_REPARSE_POINT_request", &ReparsePoint{}},
	} {
		want := readGolden(t, c.name)
		s, err := decode(c.s, want)
		if got := s.Append(nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %+v, %v\ngot  %x\nwant %x", c.name, s, err, got, want)
		}
	}
}

func TestGoldenSymlink(t *testing.T) {
	p, err := decode(&ReparsePoint{}, readGolden(t, "FSCTL_SET_REPARSE_POINT_request"))
	if err != nil {
		t.Fatal(err)
	}
	want := p.(*ReparsePoint).Data
	link, err := decode(&SymbolicLinkReparseData{}, want)
	if got := link.Append(nil); err != nil || !bytes.Equal(got, want) || p.(*ReparsePoint).Tag != ReparseTagSymlink {
		t.Errorf("%+v, %v\ngot  %x\nwant %x", link, err, got, want)
	}
}

// Listings survive, except for what their sender leaves behind in padding.
func TestGoldenDirectories(t *testing.T) {
	for class, name := range map[Class]string{
		ClassFileDirectory:       "FileDirectoryInformation",
		ClassFileFullDirectory:   "FileFullDirectoryInformation",
		ClassFileBothDirectory:   "FileBothDirectoryInformation",
		ClassFileNames:           "FileNamesInformation",
		ClassFileIDBothDirectory: "FileIdBothDirectoryInformation",
		ClassFileIDFullDirectory: "FileIdFullDirectoryInformation",
	} {
		want := readGolden(t, name)
		w := NewDirWriter(nil, class, len(want))
		d := NewDirReader(class, want)
		for e := (DirEntry{}); d.Next(&e); {
			if !w.Append(&e) {
				t.Errorf("%s: no room for %+v", name, e)
			}
		}
		if got := w.Bytes(); d.Err() != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\ngot  %x\nwant %x", name, d.Err(), got, want)
		}
	}
}
