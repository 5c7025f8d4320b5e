package smb2msg

// AccessMask says what a handle may do, or what its owner wants to do. On a
// directory some bits have a second name. See [MS-SMB2] 2.2.13.1.
type AccessMask uint32

const (
	AccessReadData        AccessMask = 0x00000001
	AccessWriteData       AccessMask = 0x00000002
	AccessAppendData      AccessMask = 0x00000004
	AccessReadEA          AccessMask = 0x00000008
	AccessWriteEA         AccessMask = 0x00000010
	AccessExecute         AccessMask = 0x00000020
	AccessDeleteChild     AccessMask = 0x00000040
	AccessReadAttributes  AccessMask = 0x00000080
	AccessWriteAttributes AccessMask = 0x00000100
	AccessDelete          AccessMask = 0x00010000
	AccessReadControl     AccessMask = 0x00020000
	AccessWriteDAC        AccessMask = 0x00040000
	AccessWriteOwner      AccessMask = 0x00080000
	AccessSynchronize     AccessMask = 0x00100000
	AccessSystemSecurity  AccessMask = 0x01000000
	AccessMaximumAllowed  AccessMask = 0x02000000
	AccessGenericAll      AccessMask = 0x10000000
	AccessGenericExecute  AccessMask = 0x20000000
	AccessGenericWrite    AccessMask = 0x40000000
	AccessGenericRead     AccessMask = 0x80000000

	AccessListDirectory   = AccessReadData
	AccessAddFile         = AccessWriteData
	AccessAddSubdirectory = AccessAppendData
	AccessTraverse        = AccessExecute
)
