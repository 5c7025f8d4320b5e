package smb2msg

import "github.com/pagewire/pagewire/internal/byteio"

// CtlCode says what an IOCTL is about.
type CtlCode uint32

// See [MS-SMB2] 2.2.31 and [MS-FSCC] 2.3.
const (
	FsctlDFSGetReferrals           CtlCode = 0x00060194
	FsctlDFSGetReferralsEx         CtlCode = 0x000601B0
	FsctlSetReparsePoint           CtlCode = 0x000900A4
	FsctlGetReparsePoint           CtlCode = 0x000900A8
	FsctlDeleteReparsePoint        CtlCode = 0x000900AC
	FsctlSetSparse                 CtlCode = 0x000900C4
	FsctlQueryAllocatedRanges      CtlCode = 0x000940CF
	FsctlSetZeroData               CtlCode = 0x000980C8
	FsctlFileLevelTrim             CtlCode = 0x00098208
	FsctlDuplicateExtentsToFile    CtlCode = 0x00098344
	FsctlPipePeek                  CtlCode = 0x0011400C
	FsctlPipeWait                  CtlCode = 0x00110018
	FsctlPipeTransceive            CtlCode = 0x0011C017
	FsctlSrvCopychunk              CtlCode = 0x001440F2
	FsctlSrvCopychunkWrite         CtlCode = 0x001480F2
	FsctlSrvEnumerateSnapshots     CtlCode = 0x00144064
	FsctlSrvRequestResumeKey       CtlCode = 0x00140078
	FsctlLMRRequestResiliency      CtlCode = 0x001401D4
	FsctlQueryNetworkInterfaceInfo CtlCode = 0x001401FC
	FsctlValidateNegotiateInfo     CtlCode = 0x00140204
)

// IoctlIsFsctl is the only flag that servers accept.
const IoctlIsFsctl uint32 = 1

// IoctlRequest asks for a file system control; Input is the structure that
// CtlCode wants. See [MS-SMB2] 2.2.31.
type IoctlRequest struct {
	CtlCode           CtlCode
	FileID            FileID // all ones for codes that concern no file
	Input             []byte
	MaxInputResponse  uint32
	MaxOutputResponse uint32
	Flags             uint32
}

const (
	ioctlRequestSize  = 57
	ioctlResponseSize = 49
)

func (m *IoctlRequest) Append(b []byte) []byte {
	b = byteio.Append16(b, ioctlRequestSize)
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, uint32(m.CtlCode))
	b = m.FileID.append(b)
	b = byteio.Append32(b, uint32(offset(ioctlRequestSize, len(m.Input))))
	b = byteio.Append32(b, uint32(len(m.Input)))
	b = byteio.Append32(b, m.MaxInputResponse)
	b = byteio.Append64(b, 0)
	b = byteio.Append32(b, m.MaxOutputResponse)
	b = byteio.Append32(b, m.Flags)
	b = byteio.Append32(b, 0)
	return appendBuffer(b, m.Input)
}

func (m *IoctlRequest) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(ioctlRequestSize)
	d.Skip(2)
	m.CtlCode = CtlCode(d.Uint32())
	m.FileID = d.fileID()
	off, n := d.Uint32(), d.Uint32()
	m.MaxInputResponse = d.Uint32()
	d.Skip(8) // output, of which a request has none
	m.MaxOutputResponse = d.Uint32()
	m.Flags = d.Uint32()
	d.Skip(4)
	m.Input = d.buffer("Input", int64(off), int64(n))
	return d.end("IOCTL request")
}

// IoctlResponse has the result in Output. Input is as good as always empty.
// See [MS-SMB2] 2.2.32.
type IoctlResponse struct {
	CtlCode CtlCode
	FileID  FileID
	Input   []byte
	Output  []byte
	Flags   uint32
}

func (m *IoctlResponse) Append(b []byte) []byte {
	const buffers = HeaderSize + ioctlResponseSize - 1
	input := (len(m.Input) + 7) &^ 7
	b = byteio.Append16(b, ioctlResponseSize)
	b = byteio.Append16(b, 0)
	b = byteio.Append32(b, uint32(m.CtlCode))
	b = m.FileID.append(b)
	b = byteio.Append32(b, buffers)
	b = byteio.Append32(b, uint32(len(m.Input)))
	b = byteio.Append32(b, uint32(buffers+input))
	b = byteio.Append32(b, uint32(len(m.Output)))
	b = byteio.Append32(b, m.Flags)
	b = byteio.Append32(b, 0)
	b = append(b, m.Input...)
	b = byteio.AppendZero(b, input-len(m.Input))
	return append(b, m.Output...)
}

func (m *IoctlResponse) Decode(r *byteio.Reader) error {
	d := body{r}
	d.size(ioctlResponseSize)
	d.Skip(2)
	m.CtlCode = CtlCode(d.Uint32())
	m.FileID = d.fileID()
	inOff, in := d.Uint32(), d.Uint32()
	outOff, out := d.Uint32(), d.Uint32()
	m.Flags = d.Uint32()
	d.Skip(4)
	m.Input = d.buffer("Input", int64(inOff), int64(in))
	m.Output = d.buffer("Output", int64(outOff), int64(out))
	return d.end("IOCTL response")
}
