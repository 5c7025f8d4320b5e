package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// TreeConnectRequest connects to a share; Path is \\server\share.
// See [MS-SMB2] 2.2.9.
type TreeConnectRequest struct {
	Flags uint16 // 3.1.1 only
	Path  string
}

const (
	treeConnectRequestSize  = 9
	treeConnectResponseSize = 16
)

func (m *TreeConnectRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, treeConnectRequestSize)
	b = byteio.Append16(b, m.Flags)
	b = byteio.Append16(b, HeaderSize+treeConnectRequestSize-1)
	b = byteio.Append16(b, uint16(2*byteio.UTF16Len(m.Path)))
	if m.Path == "" {
		return append(b, 0)
	}
	return byteio.AppendUTF16(b, m.Path)
}

func (m *TreeConnectRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(treeConnectRequestSize)
	m.Flags = d.Uint16()
	off, n := d.Uint16(), d.Uint16()
	m.Path = d.text("Path", int64(off), int64(n))
	return d.end("TREE_CONNECT request")
}

// ShareType says what kind of thing a share is.
type ShareType uint8

const (
	ShareTypeDisk  ShareType = 1
	ShareTypePipe  ShareType = 2
	ShareTypePrint ShareType = 3
)

// ShareFlags of a TreeConnectResponse. Offline caching is a number in a mask.
type ShareFlags uint32

const (
	ShareFlagManualCaching            ShareFlags = 0x00000000
	ShareFlagAutoCaching              ShareFlags = 0x00000010
	ShareFlagVDOCaching               ShareFlags = 0x00000020
	ShareFlagNoCaching                ShareFlags = 0x00000030
	ShareFlagCachingMask              ShareFlags = 0x00000030
	ShareFlagDFS                      ShareFlags = 0x00000001
	ShareFlagDFSRoot                  ShareFlags = 0x00000002
	ShareFlagRestrictExclusiveOpens   ShareFlags = 0x00000100
	ShareFlagForceSharedDelete        ShareFlags = 0x00000200
	ShareFlagAllowNamespaceCaching    ShareFlags = 0x00000400
	ShareFlagAccessBasedDirectoryEnum ShareFlags = 0x00000800
	ShareFlagForceLevelIIOplock       ShareFlags = 0x00001000
	ShareFlagEnableHashV1             ShareFlags = 0x00002000
	ShareFlagEnableHashV2             ShareFlags = 0x00004000
	ShareFlagEncryptData              ShareFlags = 0x00008000
	ShareFlagIdentityRemoting         ShareFlags = 0x00040000
	ShareFlagCompressData             ShareFlags = 0x00100000
	ShareFlagIsolatedTransport        ShareFlags = 0x00200000
)

// ShareCapabilities of a TreeConnectResponse.
type ShareCapabilities uint32

const (
	ShareCapDFS                    ShareCapabilities = 0x00000008
	ShareCapContinuousAvailability ShareCapabilities = 0x00000010
	ShareCapScaleout               ShareCapabilities = 0x00000020
	ShareCapCluster                ShareCapabilities = 0x00000040
	ShareCapAsymmetric             ShareCapabilities = 0x00000080
	ShareCapRedirectToOwner        ShareCapabilities = 0x00000100
)

// See [MS-SMB2] 2.2.10.
type TreeConnectResponse struct {
	ShareType     ShareType
	ShareFlags    ShareFlags
	Capabilities  ShareCapabilities
	MaximalAccess AccessMask
}

func (m *TreeConnectResponse) Append(b []byte) []byte {
	b = byteio.Append16(b, treeConnectResponseSize)
	b = append(b, byte(m.ShareType), 0)
	b = byteio.Append32(b, uint32(m.ShareFlags))
	b = byteio.Append32(b, uint32(m.Capabilities))
	return byteio.Append32(b, uint32(m.MaximalAccess))
}

func (m *TreeConnectResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(treeConnectResponseSize)
	m.ShareType = ShareType(d.Uint8())
	d.Skip(1)
	m.ShareFlags = ShareFlags(d.Uint32())
	m.Capabilities = ShareCapabilities(d.Uint32())
	m.MaximalAccess = AccessMask(d.Uint32())
	return d.end("TREE_CONNECT response")
}

// TreeDisconnectRequest lets go of a share. See [MS-SMB2] 2.2.11.
type TreeDisconnectRequest struct{}

func (*TreeDisconnectRequest) Append(b []byte) []byte { return appendEmpty(b) }

func (*TreeDisconnectRequest) Decode(r *byteio.Reader) error {
	return decodeEmpty(r, "TREE_DISCONNECT request")
}

// See [MS-SMB2] 2.2.12.
type TreeDisconnectResponse struct{}

func (*TreeDisconnectResponse) Append(b []byte) []byte { return appendEmpty(b) }

func (*TreeDisconnectResponse) Decode(r *byteio.Reader) error {
	return decodeEmpty(r, "TREE_DISCONNECT response")
}
