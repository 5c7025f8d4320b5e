package fscc

import "github.com/pagewire/pagewire/internal/byteio"

// FileFsVolumeInformation names a volume. See [MS-FSCC] 2.5.9.
type FileFsVolumeInformation struct {
	VolumeCreationTime Filetime
	VolumeSerialNumber uint32
	SupportsObjects    bool
	VolumeLabel        string
}

func (m *FileFsVolumeInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, uint64(m.VolumeCreationTime))
	b = byteio.Append32(b, m.VolumeSerialNumber)
	b = byteio.Append32(b, uint32(2*byteio.UTF16Len(m.VolumeLabel)))
	b = appendBool(b, m.SupportsObjects)
	b = append(b, 0)
	return byteio.AppendUTF16(b, m.VolumeLabel)
}

func (m *FileFsVolumeInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.VolumeCreationTime = f.filetime()
	m.VolumeSerialNumber = f.Uint32()
	n := f.Uint32()
	m.SupportsObjects = f.bool()
	f.Skip(1)
	m.VolumeLabel = f.text("VolumeLabel", n)
	return f.end("FileFsVolumeInformation")
}

// FileFsSizeInformation has the space of a volume as its user sees it.
// See [MS-FSCC] 2.5.8.
type FileFsSizeInformation struct {
	TotalAllocationUnits     uint64
	AvailableAllocationUnits uint64
	SectorsPerAllocationUnit uint32
	BytesPerSector           uint32
}

func (m *FileFsSizeInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, m.TotalAllocationUnits)
	b = byteio.Append64(b, m.AvailableAllocationUnits)
	b = byteio.Append32(b, m.SectorsPerAllocationUnit)
	return byteio.Append32(b, m.BytesPerSector)
}

func (m *FileFsSizeInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.TotalAllocationUnits = f.Uint64()
	m.AvailableAllocationUnits = f.Uint64()
	m.SectorsPerAllocationUnit = f.Uint32()
	m.BytesPerSector = f.Uint32()
	return f.end("FileFsSizeInformation")
}

// FileFsFullSizeInformation tells the user's free space from all free space.
// See [MS-FSCC] 2.5.4.
type FileFsFullSizeInformation struct {
	TotalAllocationUnits           uint64
	CallerAvailableAllocationUnits uint64
	ActualAvailableAllocationUnits uint64
	SectorsPerAllocationUnit       uint32
	BytesPerSector                 uint32
}

func (m *FileFsFullSizeInformation) Append(b []byte) []byte {
	b = byteio.Append64(b, m.TotalAllocationUnits)
	b = byteio.Append64(b, m.CallerAvailableAllocationUnits)
	b = byteio.Append64(b, m.ActualAvailableAllocationUnits)
	b = byteio.Append32(b, m.SectorsPerAllocationUnit)
	return byteio.Append32(b, m.BytesPerSector)
}

func (m *FileFsFullSizeInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.TotalAllocationUnits = f.Uint64()
	m.CallerAvailableAllocationUnits = f.Uint64()
	m.ActualAvailableAllocationUnits = f.Uint64()
	m.SectorsPerAllocationUnit = f.Uint32()
	m.BytesPerSector = f.Uint32()
	return f.end("FileFsFullSizeInformation")
}

// DeviceType of a FileFsDeviceInformation.
const (
	DeviceTypeCDROM uint32 = 0x02
	DeviceTypeDisk  uint32 = 0x07
)

// FileFsDeviceInformation says what a volume is on. See [MS-FSCC] 2.5.10.
type FileFsDeviceInformation struct{ DeviceType, Characteristics uint32 }

func (m *FileFsDeviceInformation) Append(b []byte) []byte {
	return byteio.Append32(byteio.Append32(b, m.DeviceType), m.Characteristics)
}

func (m *FileFsDeviceInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.DeviceType = f.Uint32()
	m.Characteristics = f.Uint32()
	return f.end("FileFsDeviceInformation")
}

// FileSystemAttributes of a FileFsAttributeInformation.
const (
	FSCaseSensitiveSearch      uint32 = 0x00000001
	FSCasePreservedNames       uint32 = 0x00000002
	FSUnicodeOnDisk            uint32 = 0x00000004
	FSPersistentACLs           uint32 = 0x00000008
	FSSupportsSparseFiles      uint32 = 0x00000040
	FSSupportsReparsePoints    uint32 = 0x00000080
	FSSupportsObjectIDs        uint32 = 0x00010000
	FSNamedStreams             uint32 = 0x00040000
	FSReadOnlyVolume           uint32 = 0x00080000
	FSSupportsHardLinks        uint32 = 0x00400000
	FSSupportsOpenByFileID     uint32 = 0x01000000
	FSSupportsBlockRefcounting uint32 = 0x08000000
	FSSupportsPosixUnlink      uint32 = 0x00000400
)

// FileFsAttributeInformation says what a file system can do.
// See [MS-FSCC] 2.5.1.
type FileFsAttributeInformation struct {
	FileSystemAttributes       uint32
	MaximumComponentNameLength uint32 // in characters
	FileSystemName             string
}

func (m *FileFsAttributeInformation) Append(b []byte) []byte {
	b = byteio.Append32(b, m.FileSystemAttributes)
	b = byteio.Append32(b, m.MaximumComponentNameLength)
	return appendText(b, m.FileSystemName)
}

func (m *FileFsAttributeInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.FileSystemAttributes = f.Uint32()
	m.MaximumComponentNameLength = f.Uint32()
	m.FileSystemName = f.text("FileSystemName", f.Uint32())
	return f.end("FileFsAttributeInformation")
}

// FileFsSectorSizeInformation says which blocks a volume likes.
// See [MS-FSCC] 2.5.7.
type FileFsSectorSizeInformation struct {
	LogicalBytesPerSector                 uint32
	PhysicalBytesPerSectorForAtomicity    uint32
	PhysicalBytesPerSectorForPerformance  uint32
	EffectivePhysicalBytesPerSectorAtomic uint32 // FileSystemEffectivePhysicalBytesPerSectorForAtomicity
	Flags                                 uint32
	ByteOffsetForSectorAlignment          uint32
	ByteOffsetForPartitionAlignment       uint32
}

func (m *FileFsSectorSizeInformation) Append(b []byte) []byte {
	b = byteio.Append32(b, m.LogicalBytesPerSector)
	b = byteio.Append32(b, m.PhysicalBytesPerSectorForAtomicity)
	b = byteio.Append32(b, m.PhysicalBytesPerSectorForPerformance)
	b = byteio.Append32(b, m.EffectivePhysicalBytesPerSectorAtomic)
	b = byteio.Append32(b, m.Flags)
	b = byteio.Append32(b, m.ByteOffsetForSectorAlignment)
	return byteio.Append32(b, m.ByteOffsetForPartitionAlignment)
}

func (m *FileFsSectorSizeInformation) Decode(r *byteio.Reader) error {
	f := fields{r}
	m.LogicalBytesPerSector = f.Uint32()
	m.PhysicalBytesPerSectorForAtomicity = f.Uint32()
	m.PhysicalBytesPerSectorForPerformance = f.Uint32()
	m.EffectivePhysicalBytesPerSectorAtomic = f.Uint32()
	m.Flags = f.Uint32()
	m.ByteOffsetForSectorAlignment = f.Uint32()
	m.ByteOffsetForPartitionAlignment = f.Uint32()
	return f.end("FileFsSectorSizeInformation")
}
