package smb2msg

import (
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
)

// OplockLevel is the right to cache that is asked for or given.
type OplockLevel uint8

const (
	OplockNone      OplockLevel = 0x00
	OplockII        OplockLevel = 0x01
	OplockExclusive OplockLevel = 0x08
	OplockBatch     OplockLevel = 0x09
	OplockLease     OplockLevel = 0xFF // see the Lease context
)

// ImpersonationLevel says how far a server may act in the client's name.
type ImpersonationLevel uint32

const (
	ImpersonationAnonymous      ImpersonationLevel = 0
	ImpersonationIdentification ImpersonationLevel = 1
	ImpersonationImpersonation  ImpersonationLevel = 2
	ImpersonationDelegate       ImpersonationLevel = 3
)

// ShareAccess says what others may do meanwhile.
type ShareAccess uint32

const (
	ShareRead   ShareAccess = 1
	ShareWrite  ShareAccess = 2
	ShareDelete ShareAccess = 4 // renaming too
)

// CreateDisposition says what to do if the file exists, and if not.
type CreateDisposition uint32

const (
	Supersede   CreateDisposition = 0 // replace or create
	Open        CreateDisposition = 1 // open or fail
	Create      CreateDisposition = 2 // fail or create
	OpenIf      CreateDisposition = 3 // open or create
	Overwrite   CreateDisposition = 4 // truncate or fail
	OverwriteIf CreateDisposition = 5 // truncate or create
)

// CreateOptions are the flags of an open.
type CreateOptions uint32

const (
	OptionDirectoryFile           CreateOptions = 0x00000001
	OptionWriteThrough            CreateOptions = 0x00000002
	OptionSequentialOnly          CreateOptions = 0x00000004
	OptionNoIntermediateBuffering CreateOptions = 0x00000008
	OptionSynchronousIOAlert      CreateOptions = 0x00000010
	OptionSynchronousIONonalert   CreateOptions = 0x00000020
	OptionNonDirectoryFile        CreateOptions = 0x00000040
	OptionCompleteIfOplocked      CreateOptions = 0x00000100
	OptionNoEAKnowledge           CreateOptions = 0x00000200
	OptionRandomAccess            CreateOptions = 0x00000800
	OptionDeleteOnClose           CreateOptions = 0x00001000
	OptionOpenByFileID            CreateOptions = 0x00002000
	OptionOpenForBackupIntent     CreateOptions = 0x00004000
	OptionNoCompression           CreateOptions = 0x00008000
	OptionOpenRemoteInstance      CreateOptions = 0x00000400
	OptionDisallowExclusive       CreateOptions = 0x00020000
	OptionReserveOpfilter         CreateOptions = 0x00100000
	OptionOpenReparsePoint        CreateOptions = 0x00200000
	OptionOpenNoRecall            CreateOptions = 0x00400000
	OptionOpenForFreeSpaceQuery   CreateOptions = 0x00800000
)

// CreateRequest opens or creates a file or a pipe. Name is relative to the
// share, has backslashes and no leading one. See [MS-SMB2] 2.2.13.
type CreateRequest struct {
	OplockLevel        OplockLevel
	ImpersonationLevel ImpersonationLevel
	DesiredAccess      AccessMask
	FileAttributes     fscc.FileAttributes
	ShareAccess        ShareAccess
	CreateDisposition  CreateDisposition
	CreateOptions      CreateOptions
	Name               string
	Contexts           []CreateContext
}

const (
	createRequestSize  = 57
	createResponseSize = 89
)

func (m *CreateRequest) Append(b []byte) []byte {
	start := len(b) - HeaderSize
	b = byteio.Append16(b, createRequestSize)
	b = append(b, 0, byte(m.OplockLevel))
	b = byteio.Append32(b, uint32(m.ImpersonationLevel))
	b = byteio.AppendZero(b, 16)
	b = byteio.Append32(b, uint32(m.DesiredAccess))
	b = byteio.Append32(b, uint32(m.FileAttributes))
	b = byteio.Append32(b, uint32(m.ShareAccess))
	b = byteio.Append32(b, uint32(m.CreateDisposition))
	b = byteio.Append32(b, uint32(m.CreateOptions))
	b = byteio.Append16(b, HeaderSize+createRequestSize-1)
	b = byteio.Append16(b, uint16(2*byteio.UTF16Len(m.Name)))
	contexts := len(b)
	b = byteio.AppendZero(b, 8)
	b = byteio.AppendUTF16(b, m.Name)
	if m.Name == "" && len(m.Contexts) == 0 {
		return append(b, 0)
	}
	return appendCreateContexts(b, start, contexts, m.Contexts)
}

func (m *CreateRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(createRequestSize)
	d.Skip(1)
	m.OplockLevel = OplockLevel(d.Uint8())
	m.ImpersonationLevel = ImpersonationLevel(d.Uint32())
	d.Skip(16)
	m.DesiredAccess = AccessMask(d.Uint32())
	m.FileAttributes = fscc.FileAttributes(d.Uint32())
	m.ShareAccess = ShareAccess(d.Uint32())
	m.CreateDisposition = CreateDisposition(d.Uint32())
	m.CreateOptions = CreateOptions(d.Uint32())
	off, n := d.Uint16(), d.Uint16()
	contexts, length := d.Uint32(), d.Uint32()
	m.Name = d.text("Name", int64(off), int64(n))
	m.Contexts = d.createContexts(int64(contexts), int64(length))
	return d.end("CREATE request")
}

// CreateFlagReparsePoint in a CreateResponse: the path ends in a reparse point.
const CreateFlagReparsePoint uint8 = 1

// CreateAction says what a CREATE did.
type CreateAction uint32

const (
	ActionSuperseded  CreateAction = 0
	ActionOpened      CreateAction = 1
	ActionCreated     CreateAction = 2
	ActionOverwritten CreateAction = 3
)

// See [MS-SMB2] 2.2.14.
type CreateResponse struct {
	OplockLevel    OplockLevel
	Flags          uint8
	CreateAction   CreateAction
	CreationTime   fscc.Filetime
	LastAccessTime fscc.Filetime
	LastWriteTime  fscc.Filetime
	ChangeTime     fscc.Filetime
	AllocationSize uint64
	EndOfFile      uint64
	FileAttributes fscc.FileAttributes
	FileID         FileID
	Contexts       []CreateContext
}

func (m *CreateResponse) Append(b []byte) []byte {
	start := len(b) - HeaderSize
	b = byteio.Append16(b, createResponseSize)
	b = append(b, byte(m.OplockLevel), m.Flags)
	b = byteio.Append32(b, uint32(m.CreateAction))
	b = byteio.Append64(b, uint64(m.CreationTime))
	b = byteio.Append64(b, uint64(m.LastAccessTime))
	b = byteio.Append64(b, uint64(m.LastWriteTime))
	b = byteio.Append64(b, uint64(m.ChangeTime))
	b = byteio.Append64(b, m.AllocationSize)
	b = byteio.Append64(b, m.EndOfFile)
	b = byteio.Append32(b, uint32(m.FileAttributes))
	b = byteio.Append32(b, 0)
	b = m.FileID.append(b)
	contexts := len(b)
	b = byteio.AppendZero(b, 8)
	return appendCreateContexts(b, start, contexts, m.Contexts)
}

func (m *CreateResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(createResponseSize)
	m.OplockLevel = OplockLevel(d.Uint8())
	m.Flags = d.Uint8()
	m.CreateAction = CreateAction(d.Uint32())
	m.CreationTime = d.filetime()
	m.LastAccessTime = d.filetime()
	m.LastWriteTime = d.filetime()
	m.ChangeTime = d.filetime()
	m.AllocationSize = d.Uint64()
	m.EndOfFile = d.Uint64()
	m.FileAttributes = fscc.FileAttributes(d.Uint32())
	d.Skip(4)
	m.FileID = d.fileID()
	contexts, length := d.Uint32(), d.Uint32()
	m.Contexts = d.createContexts(int64(contexts), int64(length))
	return d.end("CREATE response")
}
