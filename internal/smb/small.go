package smb

import (
	"context"
	"errors"
	"fmt"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// ReadFile reads the start of a file in one trip.
func (v *Volume) ReadFile(ctx context.Context, at remote.At, p []byte) (n int, attr remote.Attr, err error) {
	err = v.at(at, func(path string) (create *smbconn.Call, err error) {
		n, attr, create, err = v.readFile(ctx, path, p)
		return create, err
	})
	return n, attr, err
}

func (v *Volume) readFile(ctx context.Context, path string, p []byte) (int, remote.Attr, *smbconn.Call, error) {
	create := v.createCall(createRequest(path, remote.How{Access: remote.ForRead}))
	calls := []*smbconn.Call{create}
	p = p[:min(len(p), v.s.limits().Read)]
	read := v.newCall(smb2msg.CommandRead, &smb2msg.ReadRequest{
		Length: uint32(len(p)),
		FileID: smb2msg.RelatedFileID,
	})
	if len(p) > 0 {
		read.Into, read.Charge = [][]byte{p}, smbconn.Charge(len(p))
		calls = append(calls, read)
	}
	if err := v.chain(ctx, append(calls, v.closeCall())...); err != nil {
		return 0, remote.Attr{}, create, err
	}
	if err := verdict(create); err != nil {
		return 0, remote.Attr{}, create, unlessStopped(err)
	}
	var m smb2msg.CreateResponse
	if err := decode(create, &m); err != nil {
		return 0, remote.Attr{}, nil, err
	}
	attr := created(path, &m)
	if len(p) == 0 {
		return 0, attr, nil, nil
	}
	if err := verdict(read, ntstatus.EndOfFile, ntstatus.BufferOverflow); err != nil {
		return 0, attr, nil, err
	}
	// The file may have grown between the two.
	attr.Size = max(attr.Size, int64(read.N))
	return read.N, attr, nil, nil
}

// WriteFile makes a file of p in one trip.
func (v *Volume) WriteFile(ctx context.Context, at remote.At, how remote.How, p []byte) (attr remote.Attr, err error) {
	err = v.at(at, func(path string) (create *smbconn.Call, err error) {
		attr, create, err = v.writeFile(ctx, path, how, p)
		return create, err
	})
	return attr, err
}

func (v *Volume) writeFile(ctx context.Context, path string, how remote.How, p []byte) (remote.Attr, *smbconn.Call, error) {
	if limit := v.s.limits().Write; len(p) > limit {
		return remote.Attr{}, nil, fmt.Errorf("%d bytes for one request of %d", len(p), limit)
	}
	how.Access |= remote.ForWrite
	create, end := v.createCall(createRequest(path, how)), v.closeCall()
	end.Body = &smb2msg.CloseRequest{Flags: smb2msg.ClosePostQueryAttrib, FileID: smb2msg.RelatedFileID}
	calls := []*smbconn.Call{create}
	if len(p) > 0 {
		write := v.newCall(smb2msg.CommandWrite, &smb2msg.WriteRequest{
			Length: uint32(len(p)),
			FileID: smb2msg.RelatedFileID,
		})
		write.Out, write.Charge = [][]byte{p}, smbconn.Charge(len(p))
		calls = append(calls, write)
	}
	if how.Stable {
		calls = append(calls, v.newCall(smb2msg.CommandFlush, &smb2msg.FlushRequest{FileID: smb2msg.RelatedFileID}))
	}
	calls = append(calls, end)
	if err := v.chain(ctx, calls...); err != nil {
		return remote.Attr{}, create, err
	}
	if err := verdict(create); err != nil {
		return remote.Attr{}, create, unlessStopped(err)
	}
	var m smb2msg.CreateResponse
	if err := decode(create, &m); err != nil {
		return remote.Attr{}, nil, err
	}
	attr := created(path, &m)
	if err := written(calls[1:], len(p)); err != nil {
		if how.Create == remote.New {
			_, e := v.remove(context.WithoutCancel(ctx), path, false)
			err = errors.Join(err, e)
		}
		return attr, nil, err
	}
	var last smb2msg.CloseResponse
	if err := decode(end, &last); err != nil {
		return attr, nil, err
	}
	if last.Flags&smb2msg.ClosePostQueryAttrib != 0 {
		attr.Size, attr.Alloc = size(last.EndOfFile), size(last.AllocationSize)
		attr.Written, attr.Changed = last.LastWriteTime.Time(), last.ChangeTime.Time()
	} else {
		attr.Size = max(attr.Size, int64(len(p)))
	}
	return attr, nil, nil
}

// written says why what follows the CREATE has not written n bytes.
func written(calls []*smbconn.Call, n int) error {
	for _, c := range calls {
		if err := verdict(c); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	var done smb2msg.WriteResponse
	if err := decode(calls[0], &done); err != nil {
		return err
	}
	if int(done.Count) != n {
		return fmt.Errorf("%w: %d bytes written of %d", smbconn.ErrProtocol, done.Count, n)
	}
	return nil
}
