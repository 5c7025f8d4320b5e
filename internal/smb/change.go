package smb

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// Make makes a folder or a symbolic link.
func (v *Volume) Make(ctx context.Context, at remote.At, m remote.Make) (remote.Attr, error) {
	var attr remote.Attr
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		switch m.Kind {
		case remote.Dir:
			attr, create, err = v.mkdir(ctx, path)
		case remote.Symlink:
			if create, err = v.symlink(ctx, path, m.Target); create == nil && err == nil {
				attr, create, err = v.getAttr(ctx, path)
			}
		default:
			err = syscall.EOPNOTSUPP
		}
		return create, err
	})
	return attr, err
}

func (v *Volume) mkdir(ctx context.Context, path string) (remote.Attr, *smbconn.Call, error) {
	create := v.createCall(createRequest(path, remote.How{Create: remote.New, Dir: true}))
	if err := v.chain(ctx, create, v.closeCall()); err != nil {
		return remote.Attr{}, create, err
	}
	if err := verdict(create); err != nil {
		return remote.Attr{}, create, unlessStopped(err)
	}
	var m smb2msg.CreateResponse
	err := decode(create, &m)
	return created(path, &m), nil, err
}

// Rename renames in one trip.
func (v *Volume) Rename(ctx context.Context, from, to remote.At, replace bool) (remote.Node, error) {
	target, err := v.s.cfg.Mapping.path(to)
	if err != nil {
		return "", err
	}
	err = v.at(from, func(path string) (*smbconn.Call, error) {
		create, err := v.change(ctx, path, smb2msg.AccessDelete, 0, fscc.ClassFileRename,
			&fscc.FileRenameInformation{ReplaceIfExists: replace, FileName: target})
		if create == nil && err == nil {
			v.renamed(path, target)
		}
		return create, err
	})
	return remote.Node(target), err
}

// Link gives a file a second name.
func (v *Volume) Link(ctx context.Context, from, to remote.At) error {
	target, err := v.s.cfg.Mapping.path(to)
	if err != nil {
		return err
	}
	return v.at(from, func(path string) (*smbconn.Call, error) {
		return v.change(ctx, path, smb2msg.AccessWriteAttributes, 0, fscc.ClassFileLink,
			&fscc.FileLinkInformation{FileName: target})
	})
}

// Remove removes in one trip, but for files that are read-only.
func (v *Volume) Remove(ctx context.Context, at remote.At, dir bool) error {
	return v.at(at, func(path string) (*smbconn.Call, error) {
		create, err := v.remove(ctx, path, dir)
		if !errors.Is(err, ntstatus.CannotDelete) {
			return create, err
		}
		// Unix deletes what may not be written, Windows doesn't.
		none := uint32(0)
		attr, _, err := v.getAttr(ctx, path)
		if err != nil || fscc.FileAttributes(attr.DOS)&fscc.AttributeReadonly == 0 {
			return nil, ntstatus.CannotDelete
		}
		if _, _, err := v.setAttr(ctx, path, remote.SetAttr{DOS: &none}); err != nil {
			return nil, fmt.Errorf("%w: %w", ntstatus.CannotDelete, err)
		}
		if _, err = v.remove(ctx, path, dir); err != nil {
			_, _, e := v.setAttr(ctx, path, remote.SetAttr{DOS: &attr.DOS})
			err = errors.Join(err, e)
		}
		return nil, err
	})
}

func (v *Volume) remove(ctx context.Context, path string, dir bool) (*smbconn.Call, error) {
	option := smb2msg.OptionNonDirectoryFile
	if dir {
		option = smb2msg.OptionDirectoryFile
	}
	return v.change(ctx, path, smb2msg.AccessDelete, option, fscc.ClassFileDisposition,
		&fscc.FileDispositionInformation{DeletePending: true})
}

// change opens, sets one piece of information and closes.
func (v *Volume) change(ctx context.Context, path string, access smb2msg.AccessMask, options smb2msg.CreateOptions,
	class fscc.Class, info interface{ Append([]byte) []byte }) (*smbconn.Call, error) {

	m := &smb2msg.CreateRequest{
		DesiredAccess:     access | smb2msg.AccessReadAttributes,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     options | smb2msg.OptionOpenReparsePoint,
		Name:              path,
	}
	if class == fscc.ClassFileRename {
		v.lend(m) // what is open here stays so, and what is kept of it stays right
	}
	create := v.createCall(m)
	set := v.setCall(class, info)
	if err := v.chain(ctx, create, set, v.closeCall()); err != nil {
		return create, err
	}
	if err := verdict(create); err != nil {
		return create, unlessStopped(err)
	}
	return nil, verdict(set)
}
