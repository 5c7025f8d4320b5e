package smb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// Volume is a connected share. It implements remote.Volume.
type Volume struct {
	s     *Session
	share string
	tree  uint32
	seal  bool // the share demands it

	ops sync.Pool // *ioCall

	mu      sync.Mutex
	files   map[uint64]*File // open, by the server's id; guarded by mu, as is caching
	caching caching
}

var _ remote.Volume = (*Volume)(nil)

// Mount connects to a share. See [MS-SMB2] 3.2.4.2.4.
func (s *Session) Mount(ctx context.Context, share string) (*Volume, error) {
	v, kind, err := s.connect(ctx, share)
	if err == nil && kind != smb2msg.ShareTypeDisk {
		v.Close(context.WithoutCancel(ctx))
		err = fmt.Errorf("it holds no files: %w", ntstatus.BadDeviceType)
	}
	if err != nil {
		return nil, fmt.Errorf("share %s: %w", share, err)
	}
	return v, nil
}

func (s *Session) connect(ctx context.Context, share string) (*Volume, smb2msg.ShareType, error) {
	v := &Volume{s: s, share: share, files: make(map[uint64]*File)}
	v.ops.New = func() any { return newIOCall(v) }
	call := v.newCall(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{
		Path: `\\` + s.server + `\` + share,
	})
	// With 3.1.1 the signature of this request is what proves that nobody
	// changed the dialogue before.
	call.Sign = s.conn.Dialect == smb2msg.SMB311 && !s.guest
	var m smb2msg.TreeConnectResponse
	if err := v.trip(ctx, call, &m); err != nil {
		return nil, 0, err
	}
	v.tree = call.Header.TreeID
	if m.ShareFlags&smb2msg.ShareFlagEncryptData != 0 {
		if s.conn.Security().Sealer == nil {
			return nil, 0, fmt.Errorf("the share demands sealing, which is not possible here: %w", ntstatus.AccessDenied)
		}
		v.seal = true
	}
	if err := v.validate(ctx); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	s.volumes = append(s.volumes, v)
	s.mu.Unlock()
	return v, m.ShareType, nil
}

// validate repeats the negotiation under signature where it was not hashed:
// whenever 3.x was offered and something older than 3.1.1 came back, so that
// nobody on the way can lower the dialect. See [MS-SMB2] 3.2.5.5.
func (v *Volume) validate(ctx context.Context) error {
	n := &v.s.conn.Negotiated
	if v.s.guest || n.Dialect == smb2msg.SMB311 {
		return nil
	}
	if slices.Max(n.Offered.Dialects) < smb2msg.SMB300 {
		return nil
	}
	request := n.ValidateRequest()
	call := v.newCall(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode:           smb2msg.FsctlValidateNegotiateInfo,
		FileID:            smb2msg.RelatedFileID,
		Input:             request.Append(nil),
		MaxOutputResponse: validateOutput,
		Flags:             smb2msg.IoctlIsFsctl,
	})
	call.Sign = true
	if err := v.s.conn.Do(ctx, call); err != nil {
		return err
	}
	switch call.Header.Status {
	case ntstatus.Success:
	case ntstatus.InvalidDeviceRequest, ntstatus.NotSupported, ntstatus.FileClosed:
		// Servers before 3.0 don't know the question. That they said so is
		// signed, which is all that matters.
		if n.Dialect < smb2msg.SMB300 {
			return nil
		}
		return fmt.Errorf("%w: the server does not vouch for the negotiation: %w", smbconn.ErrSignature, call.Header.Status)
	default:
		return fmt.Errorf("validate the negotiation: %w", call.Header.Status)
	}
	var out smb2msg.IoctlResponse
	if err := decode(call, &out); err != nil {
		return err
	}
	var m smb2msg.ValidateNegotiateInfoResponse
	if err := decodeBytes(out.Output, &m); err != nil {
		return err
	}
	return n.Validate(&m)
}

const validateOutput = 24 // the response has just this size

// Sealed says whether messages of this share are sealed.
func (v *Volume) Sealed() bool { return v.seal || v.s.conn.Security().Seal }

// Session is the session the share belongs to.
func (v *Volume) Session() *Session { return v.s }

// Close disconnects from the share; the session stays.
func (v *Volume) Close(ctx context.Context) error {
	defer v.s.unmounted(v)
	call := v.newCall(smb2msg.CommandTreeDisconnect, &smb2msg.TreeDisconnectRequest{})
	if err := v.s.conn.Do(ctx, call); err != nil {
		return err
	}
	return verdict(call)
}

// StatFS asks for size and name of the file system in one trip.
func (v *Volume) StatFS(ctx context.Context) (remote.StatFS, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadAttributes,
		CreateDisposition: smb2msg.Open,
	})
	size := v.queryCall(smb2msg.InfoFilesystem, fscc.ClassFileFsFullSize)
	attr := v.queryCall(smb2msg.InfoFilesystem, fscc.ClassFileFsAttribute)
	label := v.queryCall(smb2msg.InfoFilesystem, fscc.ClassFileFsVolume)
	var st remote.StatFS
	if err := v.chain(ctx, create, size, attr, label, v.closeCall()); err != nil {
		return st, err
	}
	if err := verdict(create); err != nil {
		return st, err
	}
	var full fscc.FileFsFullSizeInformation
	if err := v.info(size, &full); err != nil {
		return st, err
	}
	block := uint64(full.SectorsPerAllocationUnit) * uint64(full.BytesPerSector)
	st.Block = times(1, block)
	st.Total = times(full.TotalAllocationUnits, block)
	st.Free = times(full.ActualAvailableAllocationUnits, block)
	st.Avail = times(full.CallerAvailableAllocationUnits, block)
	// Names are nice to have.
	var a fscc.FileFsAttributeInformation
	if v.info(attr, &a) == nil {
		st.Type = a.FileSystemName
	}
	var vol fscc.FileFsVolumeInformation
	if v.info(label, &vol) == nil {
		st.Label = vol.VolumeLabel
	}
	return st, nil
}

// times multiplies what a server says, as far as an int64 goes.
func times(units, block uint64) int64 {
	high, low := bits.Mul64(units, block)
	if high > 0 {
		return math.MaxInt64
	}
	return size(low)
}

// maxSymlinks bounds how many links one path is followed through.
const maxSymlinks = 40

// at runs do with the path that at stands for. When the server stops at a
// symbolic link before the path's end, do runs again with the path behind it; a
// link at the very end is not followed, which is ELOOP.
func (v *Volume) at(at remote.At, do func(path string) (*smbconn.Call, error)) error {
	path, err := v.s.cfg.Mapping.path(at)
	if err != nil {
		return err
	}
	for range maxSymlinks {
		create, err := do(path)
		if err != nil || create == nil || create.Header.Status != ntstatus.StoppedOnSymlink {
			return err
		}
		var m smb2msg.ErrorResponse
		if err := decode(create, &m); err != nil {
			return err
		}
		link, err := m.Symlink()
		if err != nil {
			return fmt.Errorf("%w: %w", ntstatus.StoppedOnSymlink, err)
		}
		if path, err = behind(path, link); err == nil {
			err = fitting(path)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ntstatus.StoppedOnSymlink, err)
		}
	}
	return ntstatus.StoppedOnSymlink
}

var (
	errLinkLast   = errors.New("the path names a symbolic link")
	errLinkAway   = errors.New("a symbolic link leads off the share")
	errLinkLength = errors.New("malformed symbolic link error")
)
