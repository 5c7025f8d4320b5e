package fscc

import (
	"reflect"
	"testing"
)

// fuzz feeds a decoder. What it accepts must survive appending and decoding.
func fuzz[T any, S interface {
	*T
	structure
}](f *testing.F) {
	for _, s := range samples {
		if s, ok := s.(S); ok {
			f.Add(s.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 16 << 10 // of reparse data: names that overlap may outgrow 16-bit offsets
		if len(b) > most {
			return
		}
		s, err := decode(S(new(T)), b)
		if err != nil {
			return
		}
		again, err := decode(s, s.Append(nil))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%+v becomes %+v, %v", s, again, err)
		}
	})
}

func FuzzFileBasicInformation(f *testing.F)         { fuzz[FileBasicInformation](f) }
func FuzzFileStandardInformation(f *testing.F)      { fuzz[FileStandardInformation](f) }
func FuzzFileInternalInformation(f *testing.F)      { fuzz[FileInternalInformation](f) }
func FuzzFileEaInformation(f *testing.F)            { fuzz[FileEaInformation](f) }
func FuzzFilePositionInformation(f *testing.F)      { fuzz[FilePositionInformation](f) }
func FuzzFileNameInformation(f *testing.F)          { fuzz[FileNameInformation](f) }
func FuzzFileAllInformation(f *testing.F)           { fuzz[FileAllInformation](f) }
func FuzzFileNetworkOpenInformation(f *testing.F)   { fuzz[FileNetworkOpenInformation](f) }
func FuzzFileAttributeTagInformation(f *testing.F)  { fuzz[FileAttributeTagInformation](f) }
func FuzzFileIDInformation(f *testing.F)            { fuzz[FileIDInformation](f) }
func FuzzFileEndOfFileInformation(f *testing.F)     { fuzz[FileEndOfFileInformation](f) }
func FuzzFileAllocationInformation(f *testing.F)    { fuzz[FileAllocationInformation](f) }
func FuzzFileDispositionInformation(f *testing.F)   { fuzz[FileDispositionInformation](f) }
func FuzzFileDispositionInformationEx(f *testing.F) { fuzz[FileDispositionInformationEx](f) }
func FuzzFileRenameInformation(f *testing.F)        { fuzz[FileRenameInformation](f) }
func FuzzFileRenameInformationEx(f *testing.F)      { fuzz[FileRenameInformationEx](f) }
func FuzzFileLinkInformation(f *testing.F)          { fuzz[FileLinkInformation](f) }
func FuzzFileFsVolumeInformation(f *testing.F)      { fuzz[FileFsVolumeInformation](f) }
func FuzzFileFsSizeInformation(f *testing.F)        { fuzz[FileFsSizeInformation](f) }
func FuzzFileFsFullSizeInformation(f *testing.F)    { fuzz[FileFsFullSizeInformation](f) }
func FuzzFileFsDeviceInformation(f *testing.F)      { fuzz[FileFsDeviceInformation](f) }
func FuzzFileFsAttributeInformation(f *testing.F)   { fuzz[FileFsAttributeInformation](f) }
func FuzzFileFsSectorSizeInformation(f *testing.F)  { fuzz[FileFsSectorSizeInformation](f) }
func FuzzFileStreamInformation(f *testing.F)        { fuzz[FileStreamInformation](f) }
func FuzzFileNotifyInformation(f *testing.F)        { fuzz[FileNotifyInformation](f) }
func FuzzReparsePoint(f *testing.F)                 { fuzz[ReparsePoint](f) }
func FuzzSymbolicLinkReparseData(f *testing.F)      { fuzz[SymbolicLinkReparseData](f) }
func FuzzMountPointReparseData(f *testing.F)        { fuzz[MountPointReparseData](f) }
func FuzzNFSReparseData(f *testing.F)               { fuzz[NFSReparseData](f) }
func FuzzLXSymlinkReparseData(f *testing.F)         { fuzz[LXSymlinkReparseData](f) }

func FuzzDirReader(f *testing.F) {
	for i, class := range dirClasses {
		w := NewDirWriter(nil, class, 1<<16)
		for i := range dirEntries {
			w.Append(&dirEntries[i])
		}
		f.Add(uint8(i), w.Bytes())
	}
	read := func(class Class, b []byte) (list []DirEntry, err error) {
		d := NewDirReader(class, b)
		for e := (DirEntry{}); d.Next(&e); {
			list = append(list, e)
		}
		return list, d.Err()
	}
	f.Fuzz(func(t *testing.T, i uint8, b []byte) {
		class := dirClasses[int(i)%len(dirClasses)]
		list, err := read(class, b)
		if err != nil {
			return
		}
		w := NewDirWriter(nil, class, 1<<30)
		for i := range list {
			w.Append(&list[i])
		}
		if again, err := read(class, w.Bytes()); err != nil || !reflect.DeepEqual(again, list) {
			t.Errorf("%+v becomes %+v, %v", list, again, err)
		}
	})
}
