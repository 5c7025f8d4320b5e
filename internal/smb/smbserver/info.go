package smbserver

import (
	"strings"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

const (
	volumeID   = 0x7061676577697265
	sector     = 512
	perCluster = 8
)

// info is an answer to QUERY_INFO. A buffer that has no room for the fixed part
// is refused, one that is too small for all gets what fits.
type info struct {
	data  interface{ Append([]byte) []byte }
	fixed int // 0: all of it
}

// queryInfo answers what a file or its volume is like. See [MS-SMB2] 3.3.5.20.
func (r *request) queryInfo() ntstatus.Status {
	var m smb2msg.QueryInfoRequest
	if !r.decode(&m) || !r.fitsTransact(m.OutputBufferLength, len(m.Input)) {
		return ntstatus.InvalidParameter
	}
	o, status := r.lookup(m.FileID)
	if status != ntstatus.Success {
		return status
	}
	if o.pipe != nil {
		return ntstatus.NotSupported
	}
	var i info
	switch m.InfoType {
	case smb2msg.InfoFile:
		i, status = o.fileInfo(m.FileInfoClass)
	case smb2msg.InfoFilesystem:
		i, status = o.tree.share.volumeInfo(m.FileInfoClass)
	case smb2msg.InfoSecurity:
		i.data = everybody{}
	default:
		status = ntstatus.NotSupported
	}
	if status != ntstatus.Success {
		return status
	}
	data := i.data.Append(nil)
	if i.fixed == 0 {
		i.fixed = len(data)
	}
	switch limit := int(m.OutputBufferLength); {
	case m.InfoType == smb2msg.InfoSecurity && limit < len(data):
		r.detail = byteio.Append32(nil, uint32(len(data)))
		return ntstatus.BufferTooSmall
	case limit < i.fixed:
		return ntstatus.InfoLengthMismatch
	case limit < len(data):
		data, status = data[:limit], ntstatus.BufferOverflow
	}
	r.reply(&smb2msg.QueryInfoResponse{Output: data})
	return status
}

// everybody is a security descriptor with a null DACL: nobody is denied anything.
// See [MS-DTYP] 2.4.6.
type everybody struct{}

func (everybody) Append(b []byte) []byte {
	b = append(b, 1, 0, 0x04, 0x80) // SE_DACL_PRESENT, SE_SELF_RELATIVE
	return byteio.AppendZero(b, 16)
}

// number is a structure of one integer, or several.
type number []uint32

func (n number) Append(b []byte) []byte {
	for _, v := range n {
		b = byteio.Append32(b, v)
	}
	return b
}

// fileInfo is about a file. See [MS-FSCC] 2.4.
func (o *open) fileInfo(class fscc.Class) (info, ntstatus.Status) {
	a, err := o.object().Attr()
	if err != nil {
		return info{}, statusOf(err)
	}
	attrs := attributes(&a)
	basic := fscc.FileBasicInformation{
		CreationTime: fscc.FiletimeOf(a.Born), LastAccessTime: fscc.FiletimeOf(a.Accessed),
		LastWriteTime: fscc.FiletimeOf(a.Written), ChangeTime: fscc.FiletimeOf(a.Changed), FileAttributes: attrs,
	}
	switch class {
	case fscc.ClassFileBasic, fscc.ClassFileAll, fscc.ClassFileNetworkOpen, fscc.ClassFileAttributeTag:
		if o.access&smb2msg.AccessReadAttributes == 0 {
			return info{}, ntstatus.AccessDenied
		}
	}
	switch class {
	case fscc.ClassFileBasic:
		return info{data: &basic}, ntstatus.Success
	case fscc.ClassFileStandard:
		standard := o.standard(&a)
		return info{data: &standard}, ntstatus.Success
	case fscc.ClassFileInternal:
		return info{data: &fscc.FileInternalInformation{IndexNumber: a.ID}}, ntstatus.Success
	case fscc.ClassFileEa, fscc.ClassFileMode, fscc.ClassFileAlignment:
		return info{data: number{0}}, ntstatus.Success
	case fscc.ClassFileAccess:
		return info{data: number{uint32(o.access)}}, ntstatus.Success
	case fscc.ClassFilePosition:
		return info{data: number{0, 0}}, ntstatus.Success
	case fscc.ClassFileCompression:
		size := uint64(size(&a))
		return info{data: number{uint32(size), uint32(size >> 32), 0, 0}}, ntstatus.Success
	case fscc.ClassFileAll:
		const fixed = 100
		return info{&fscc.FileAllInformation{
			Basic: basic, Standard: o.standard(&a),
			Internal:    fscc.FileInternalInformation{IndexNumber: a.ID},
			AccessFlags: uint32(o.access),
			Name:        fscc.FileNameInformation{FileName: `\` + o.wirePath()},
		}, fixed}, ntstatus.Success
	case fscc.ClassFileNormalizedName:
		return info{&fscc.FileNameInformation{FileName: o.wirePath()}, 4}, ntstatus.Success
	case fscc.ClassFileNetworkOpen:
		return info{data: &fscc.FileNetworkOpenInformation{
			CreationTime: basic.CreationTime, LastAccessTime: basic.LastAccessTime,
			LastWriteTime: basic.LastWriteTime, ChangeTime: basic.ChangeTime,
			AllocationSize: uint64(allocation(&a)), EndOfFile: uint64(size(&a)), FileAttributes: attrs,
		}}, ntstatus.Success
	case fscc.ClassFileAttributeTag:
		tag := fscc.FileAttributeTagInformation{FileAttributes: attrs}
		if attrs&fscc.AttributeReparsePoint != 0 {
			tag.ReparseTag = fscc.ReparseTagSymlink
		}
		return info{data: &tag}, ntstatus.Success
	case fscc.ClassFileStream:
		if o.isDir {
			return info{data: number{}}, ntstatus.Success
		}
		return info{data: fscc.FileStreamInformation{{
			StreamSize: uint64(size(&a)), StreamAllocationSize: uint64(allocation(&a)), StreamName: "::$DATA",
		}}}, ntstatus.Success
	case fscc.ClassFileAlternateName:
		return info{}, ntstatus.ObjectNameNotFound
	case fscc.ClassFileFullEa:
		return info{}, ntstatus.NoEasOnFile
	}
	return info{}, ntstatus.InvalidInfoClass
}

func (o *open) standard(a *memfs.Attr) fscc.FileStandardInformation {
	o.tree.share.mu.Lock()
	defer o.tree.share.mu.Unlock()
	return fscc.FileStandardInformation{
		AllocationSize: uint64(allocation(a)), EndOfFile: uint64(size(a)), NumberOfLinks: a.Links,
		DeletePending: o.inode.deleted || o.deleteOnClose, Directory: o.isDir,
	}
}

func (o *open) wirePath() string { return strings.ReplaceAll(o.path(), "/", `\`) }

// volumeInfo is about a volume. See [MS-FSCC] 2.5.
func (s *share) volumeInfo(class fscc.Class) (info, ntstatus.Status) {
	const cluster = sector * perCluster
	st, err := s.Tree.Stat()
	if err != nil {
		return info{}, statusOf(err)
	}
	total, free := uint64(st.Total)/cluster, uint64(st.Free)/cluster
	switch class {
	case fscc.ClassFileFsVolume:
		return info{&fscc.FileFsVolumeInformation{VolumeSerialNumber: volumeID & 0xFFFFFFFF, VolumeLabel: s.Name}, 18}, ntstatus.Success
	case fscc.ClassFileFsSize:
		return info{data: &fscc.FileFsSizeInformation{
			TotalAllocationUnits: total, AvailableAllocationUnits: free,
			SectorsPerAllocationUnit: perCluster, BytesPerSector: sector,
		}}, ntstatus.Success
	case fscc.ClassFileFsFullSize:
		return info{data: &fscc.FileFsFullSizeInformation{
			TotalAllocationUnits: total, CallerAvailableAllocationUnits: free, ActualAvailableAllocationUnits: free,
			SectorsPerAllocationUnit: perCluster, BytesPerSector: sector,
		}}, ntstatus.Success
	case fscc.ClassFileFsDevice:
		const mounted, remote = 0x20, 0x10
		return info{data: &fscc.FileFsDeviceInformation{DeviceType: fscc.DeviceTypeDisk, Characteristics: mounted | remote}}, ntstatus.Success
	case fscc.ClassFileFsAttribute:
		flags := fscc.FSCaseSensitiveSearch | fscc.FSCasePreservedNames | fscc.FSUnicodeOnDisk |
			fscc.FSSupportsSparseFiles | fscc.FSSupportsReparsePoints | fscc.FSSupportsHardLinks
		if s.ReadOnly {
			flags |= fscc.FSReadOnlyVolume
		}
		// Clients know what to expect of this name, of others they do not.
		return info{&fscc.FileFsAttributeInformation{
			FileSystemAttributes: flags, MaximumComponentNameLength: maxComponent, FileSystemName: "NTFS",
		}, 12}, ntstatus.Success
	case fscc.ClassFileFsSectorSize:
		return info{data: &fscc.FileFsSectorSizeInformation{
			LogicalBytesPerSector: sector, PhysicalBytesPerSectorForAtomicity: cluster,
			PhysicalBytesPerSectorForPerformance: cluster, EffectivePhysicalBytesPerSectorAtomic: cluster,
		}}, ntstatus.Success
	}
	return info{}, ntstatus.InvalidInfoClass
}
