package smb

import (
	"context"
	"fmt"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/internal/smb/srvsvc"
)

// Shares asks the server what shares it has, through its srvsvc pipe.
func (s *Session) Shares(ctx context.Context) ([]srvsvc.Share, error) {
	v, _, err := s.connect(ctx, "IPC$")
	if err != nil {
		return nil, fmt.Errorf("list shares: %w", err)
	}
	defer v.Close(context.WithoutCancel(ctx))
	shares, err := v.shares(ctx)
	if err != nil {
		return nil, fmt.Errorf("list shares: %w", err)
	}
	return shares, nil
}

// What a server may send at most.
const (
	maxShares = 1 << 16
	maxParts  = 1 << 14 // of one answer
)

func (v *Volume) shares(ctx context.Context) ([]srvsvc.Share, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadData | smb2msg.AccessWriteData,
		CreateDisposition: smb2msg.Open,
		Name:              srvsvc.Pipe,
	})
	create.Late = v.closeLate
	var opened smb2msg.CreateResponse
	if err := v.trip(ctx, create, &opened); err != nil {
		return nil, err
	}
	defer v.close(ctx, opened.FileID)

	call := uint32(1)
	ack, err := v.transceive(ctx, opened.FileID, srvsvc.AppendBind(nil, call))
	if err != nil {
		return nil, err
	}
	if _, err := srvsvc.DecodeBindAck(ack, call); err != nil {
		return nil, err
	}
	var all []srvsvc.Share
	for resume := uint32(0); ; {
		call++
		answer, err := v.transceive(ctx, opened.FileID, srvsvc.AppendShareEnum(nil, call, v.s.server, resume))
		if err != nil {
			return nil, err
		}
		shares, next, more, err := srvsvc.DecodeShareEnum(answer, call)
		if err != nil {
			return nil, err
		}
		all = append(all, shares...)
		if !more {
			return all, nil
		}
		if len(shares) == 0 || len(all) > maxShares {
			return nil, fmt.Errorf("%w: the server promises more than %d shares and sends %d", smbconn.ErrProtocol, len(all), len(shares))
		}
		resume = next
	}
}

// transceive writes a message to a pipe and reads the answer, however long.
func (v *Volume) transceive(ctx context.Context, id smb2msg.FileID, message []byte) (*srvsvc.Message, error) {
	var answer srvsvc.Assembler
	call := v.newCall(smb2msg.CommandIoctl, &smb2msg.IoctlRequest{
		CtlCode:           smb2msg.FsctlPipeTransceive,
		FileID:            id,
		Input:             message,
		MaxOutputResponse: min(srvsvc.MaxFragment, v.room()),
		Flags:             smb2msg.IoctlIsFsctl,
	})
	var out smb2msg.IoctlResponse
	if err := v.trip(ctx, call, &out, ntstatus.BufferOverflow); err != nil {
		return nil, err
	}
	part := out.Output
	for range maxParts {
		m, err := answer.Add(part)
		if m != nil || err != nil {
			return m, err
		}
		read := v.newCall(smb2msg.CommandRead, &smb2msg.ReadRequest{FileID: id, Length: uint32(min(srvsvc.MaxFragment, v.s.conn.MaxRead))})
		var more smb2msg.ReadResponse
		if err := v.trip(ctx, read, &more, ntstatus.BufferOverflow); err != nil {
			return nil, err
		}
		part = more.Data
	}
	return nil, fmt.Errorf("%w: an answer in more than %d parts", smbconn.ErrProtocol, maxParts)
}
