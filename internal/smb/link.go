package smb

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// behind is where path leads when the link that the server met on it is put in
// place. Only relative links are followed, and none beyond the share's root:
// what lies elsewhere on the server is not this volume's. See [MS-SMB2] 2.2.2.2.1.1.
func behind(path string, link smb2msg.SymlinkErrorResponse) (string, error) {
	units := byteio.AppendUTF16(nil, path)
	rest := int(link.UnparsedPathLength)
	switch {
	case rest == 0:
		return "", errLinkLast
	case rest > len(units) || rest%2 != 0:
		return "", errLinkLength
	case !link.Relative:
		return "", errLinkAway
	}
	parsed := strings.Trim(byteio.UTF16(units[:len(units)-rest]), `\`)
	dir := parsed[:max(0, strings.LastIndexByte(parsed, '\\'))]
	target := strings.ReplaceAll(link.SubstituteName, "/", `\`)
	return clean(join(dir, target) + `\` + strings.Trim(byteio.UTF16(units[len(units)-rest:]), `\`))
}

// clean resolves "." and ".." in a path.
func clean(path string) (string, error) {
	var out []string
	for name := range strings.SplitSeq(path, `\`) {
		switch name {
		case "", ".":
		case "..":
			if len(out) == 0 {
				return "", errLinkAway
			}
			out = out[:len(out)-1]
		default:
			out = append(out, name)
		}
	}
	return strings.Join(out, `\`), nil
}

// ReadLink returns where a symbolic link points, as a local path.
func (v *Volume) ReadLink(ctx context.Context, at remote.At) (string, error) {
	var target string
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		target, create, err = v.readLink(ctx, path)
		return create, err
	})
	if strings.ContainsRune(target, 0) {
		return "", fmt.Errorf("link to %q: %w", target, syscall.EINVAL)
	}
	return target, err
}

func (v *Volume) readLink(ctx context.Context, path string) (string, *smbconn.Call, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadAttributes,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     smb2msg.OptionOpenReparsePoint,
		Name:              path,
	})
	get := v.newCall(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode:           smb2msg.FsctlGetReparsePoint,
		FileID:            smb2msg.RelatedFileID,
		MaxOutputResponse: min(maxReparse, v.room()),
		Flags:             smb2msg.IoctlIsFsctl,
	})
	if err := v.chain(ctx, create, get, v.closeCall()); err != nil {
		return "", create, err
	}
	if err := verdict(create); err != nil {
		return "", create, unlessStopped(err)
	}
	switch err := verdict(get); {
	case err == nil:
	case v.s.cfg.MFSymlinks:
		target, ok, err := v.mfRead(ctx, path)
		if err == nil && !ok {
			err = notALink(path)
		}
		return target, nil, err
	case errors.Is(err, ntstatus.NotAReparsePoint), errors.Is(err, ntstatus.InvalidDeviceRequest), errors.Is(err, ntstatus.NotSupported):
		return "", nil, notALink(path)
	default:
		return "", nil, err
	}
	var out smb2msg.IoctlResponse
	if err := decode(get, &out); err != nil {
		return "", nil, err
	}
	var point fscc.ReparsePoint
	if err := decodeBytes(out.Output, &point); err != nil {
		return "", nil, err
	}
	target, err := v.target(point)
	if errors.Is(err, errNoLink) {
		err = notALink(path)
	}
	return target, nil, err
}

var errNoLink = errors.New("no symbolic link")

// target is where a reparse point leads, for the kinds that are symbolic links.
func (v *Volume) target(point fscc.ReparsePoint) (string, error) {
	switch point.Tag {
	case fscc.ReparseTagSymlink:
		var m fscc.SymbolicLinkReparseData
		if err := decodeBytes(point.Data, &m); err != nil {
			return "", err
		}
		if !m.Relative {
			return v.localPath(m.PrintName), nil
		}
		return v.localPath(m.SubstituteName), nil
	case fscc.ReparseTagNFS:
		var m fscc.NFSReparseData
		if err := decodeBytes(point.Data, &m); err != nil {
			return "", err
		}
		if m.Type == fscc.NFSTypeLnk {
			return m.Target, nil
		}
	case fscc.ReparseTagLXSymlink:
		var m fscc.LXSymlinkReparseData
		err := decodeBytes(point.Data, &m)
		return m.Target, err
	}
	return "", errNoLink
}

// maxReparse is the largest reparse data buffer, and symlinkHead what a symbolic
// link has there before its names. See [MS-FSCC] 2.1.2.
const (
	maxReparse  = 16 << 10
	symlinkHead = 20
)

func notALink(path string) error {
	return fmt.Errorf("%s is no symbolic link: %w", path, syscall.EINVAL)
}

// unlessStopped leaves STATUS_STOPPED_ON_SYMLINK to Volume.at.
func unlessStopped(err error) error {
	if err == ntstatus.StoppedOnSymlink {
		return nil
	}
	return err
}

// localPath turns the path in a link, whose separators are backslashes, into a
// local one.
func (v *Volume) localPath(wire string) string {
	parts := strings.Split(wire, `\`)
	for i, p := range parts {
		if name, ok := v.s.cfg.Mapping.local(p); ok {
			parts[i] = name
		}
	}
	return strings.Join(parts, "/")
}

// wirePath is the reverse.
func (v *Volume) wirePath(local string) (string, error) {
	parts := strings.Split(local, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			continue
		}
		name, err := v.s.cfg.Mapping.wire(p)
		if err != nil {
			return "", err
		}
		parts[i] = name
	}
	return strings.Join(parts, `\`), nil
}

// symlink makes a symbolic link: a reparse point or, with mfsymlinks, a file.
func (v *Volume) symlink(ctx context.Context, path, target string) (*smbconn.Call, error) {
	if target == "" || strings.ContainsRune(target, 0) {
		return nil, fmt.Errorf("link to %q: %w", target, syscall.EINVAL)
	}
	if v.s.cfg.MFSymlinks {
		content, err := mfEncode(target)
		if err != nil {
			return nil, err
		}
		_, create, err := v.writeFile(ctx, path, remote.How{Create: remote.New}, content)
		return create, err
	}
	wire, err := v.wirePath(target)
	if err != nil {
		return nil, err
	}
	if names := 2 * 2 * byteio.UTF16Len(wire); names+symlinkHead > maxReparse {
		return nil, fmt.Errorf("link to %d characters: %w", byteio.UTF16Len(wire), syscall.ENAMETOOLONG)
	}
	point := fscc.NewReparsePoint(fscc.ReparseTagSymlink, &fscc.SymbolicLinkReparseData{
		SubstituteName: wire,
		PrintName:      wire,
		Relative:       !strings.HasPrefix(target, "/"),
	})
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessWriteAttributes | smb2msg.AccessDelete | smb2msg.AccessSynchronize,
		FileAttributes:    fscc.AttributeNormal,
		CreateDisposition: smb2msg.Create,
		CreateOptions:     smb2msg.OptionNonDirectoryFile | smb2msg.OptionOpenReparsePoint,
		Name:              path,
	})
	set := v.newCall(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode: smb2msg.FsctlSetReparsePoint,
		FileID:  smb2msg.RelatedFileID,
		Input:   point.Append(nil),
		Flags:   smb2msg.IoctlIsFsctl,
	})
	if err := v.chain(ctx, create, set, v.closeCall()); err != nil {
		return create, err
	}
	if err := verdict(create); err != nil {
		return create, unlessStopped(err)
	}
	if err := verdict(set); err != nil {
		// What is there now is an empty file, which nobody asked for.
		if _, e := v.remove(context.WithoutCancel(ctx), path, false); e != nil {
			err = errors.Join(err, e)
		}
		return nil, fmt.Errorf("the server makes no symbolic links (mfsymlinks may help): %w: %w", syscall.EOPNOTSUPP, err)
	}
	return nil, nil
}

// Files that macOS and mount.cifs's mfsymlinks take for symbolic links: a
// magic, the length of the target, its MD5 sum, the target, padding.
const (
	mfSize   = 1067
	mfMagic  = "XSym\n"
	mfTarget = mfSize - len(mfMagic) - 4 - 1 - 32 - 1 // room for the target
)

func mfEncode(target string) ([]byte, error) {
	if len(target) > mfTarget {
		return nil, fmt.Errorf("link to %d characters: %w", len(target), syscall.ENAMETOOLONG)
	}
	sum := md5.Sum([]byte(target))
	b := fmt.Appendf(make([]byte, 0, mfSize), "%s%04d\n%x\n%s", mfMagic, len(target), sum, target)
	if len(b) < mfSize {
		b = append(b, '\n')
	}
	for len(b) < mfSize {
		b = append(b, ' ')
	}
	return b, nil
}

// mfDecode returns the target, if b is a link.
func mfDecode(b []byte) (string, bool) {
	const lenAt, sumAt, targetAt = len(mfMagic), len(mfMagic) + 5, len(mfMagic) + 5 + 33
	if len(b) != mfSize || string(b[:lenAt]) != mfMagic {
		return "", false
	}
	n, err := strconv.ParseUint(string(b[lenAt:lenAt+4]), 10, 16)
	if err != nil || n == 0 || n > uint64(mfTarget) {
		return "", false
	}
	target := b[targetAt : targetAt+int(n)]
	sum := md5.Sum(target)
	if string(b[sumAt:sumAt+32]) != hex.EncodeToString(sum[:]) || strings.ContainsRune(string(target), 0) {
		return "", false
	}
	return string(target), true
}

// mfRead looks into a file that has the size of such a link.
func (v *Volume) mfRead(ctx context.Context, path string) (target string, ok bool, err error) {
	b := make([]byte, mfSize+1)
	n, _, _, err := v.readFile(ctx, path, b)
	if err != nil {
		return "", false, err
	}
	target, ok = mfDecode(b[:n])
	return target, ok, nil
}
