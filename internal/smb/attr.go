package smb

import (
	"context"
	"errors"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// room is how large an answer may be: one credit pays for so much anyway, unless
// the server allows less.
func (v *Volume) room() uint32 { return uint32(min(smbconn.CreditUnit, v.s.conn.MaxTransact)) }

// queryCall asks for an information class of the file that the chain opened.
func (v *Volume) queryCall(kind smb2msg.InfoType, class fscc.Class) *smbconn.Call {
	return v.newCall(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{
		InfoType:           kind,
		FileInfoClass:      class,
		OutputBufferLength: v.room(),
		FileID:             smb2msg.RelatedFileID,
	})
}

// setCall changes an information class of the file that the chain opened.
func (v *Volume) setCall(class fscc.Class, info interface{ Append([]byte) []byte }) *smbconn.Call {
	return v.newCall(smb2msg.CommandSetInfo, &smb2msg.SetInfoRequest{
		InfoType:      smb2msg.InfoFile,
		FileInfoClass: class,
		FileID:        smb2msg.RelatedFileID,
		Buffer:        info.Append(nil),
	})
}

// info decodes what a queryCall brought.
func (v *Volume) info(query *smbconn.Call, m decoder) error {
	if err := verdict(query); err != nil {
		return err
	}
	var out smb2msg.QueryInfoResponse
	if err := decode(query, &out); err != nil {
		return err
	}
	return decodeBytes(out.Output, m)
}

// GetAttr asks for everything about an object in one trip; a reparse point
// takes a second, to learn of what kind it is.
func (v *Volume) GetAttr(ctx context.Context, at remote.At) (remote.Attr, error) {
	var attr remote.Attr
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		attr, create, err = v.getAttr(ctx, path)
		return create, err
	})
	return attr, err
}

func (v *Volume) getAttr(ctx context.Context, path string) (remote.Attr, *smbconn.Call, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadAttributes,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     smb2msg.OptionOpenReparsePoint,
		Name:              path,
	})
	query := v.queryCall(smb2msg.InfoFile, fscc.ClassFileAll)
	if err := v.chain(ctx, create, query, v.closeCall()); err != nil {
		return remote.Attr{}, create, err
	}
	if err := verdict(create); err != nil {
		return remote.Attr{}, create, unlessStopped(err)
	}
	attr, err := v.allInfo(path, query)
	if err == nil {
		err = v.settleKind(ctx, path, &attr, 0)
	}
	return attr, nil, err
}

// allInfo turns a FileAllInformation into attributes.
func (v *Volume) allInfo(path string, query *smbconn.Call) (remote.Attr, error) {
	var all fscc.FileAllInformation
	if err := v.info(query, &all); err != nil {
		return remote.Attr{}, err
	}
	return remote.Attr{
		Node:     remote.Node(path),
		ID:       fileID(all.Internal.IndexNumber),
		Kind:     kindOf(all.Basic.FileAttributes),
		Links:    all.Standard.NumberOfLinks,
		DOS:      uint32(all.Basic.FileAttributes),
		Size:     size(all.Standard.EndOfFile),
		Alloc:    size(all.Standard.AllocationSize),
		Born:     all.Basic.CreationTime.Time(),
		Accessed: all.Basic.LastAccessTime.Time(),
		Written:  all.Basic.LastWriteTime.Time(),
		Changed:  all.Basic.ChangeTime.Time(),
	}, nil
}

// created turns a CREATE response into attributes. What opened like a file or a
// folder is one, whatever reparse tag it has.
func created(path string, m *smb2msg.CreateResponse) remote.Attr {
	attr := remote.Attr{
		Node:     remote.Node(path),
		Kind:     kindOf(m.FileAttributes &^ fscc.AttributeReparsePoint),
		DOS:      uint32(m.FileAttributes),
		Size:     size(m.EndOfFile),
		Alloc:    size(m.AllocationSize),
		Born:     m.CreationTime.Time(),
		Accessed: m.LastAccessTime.Time(),
		Written:  m.LastWriteTime.Time(),
		Changed:  m.ChangeTime.Time(),
	}
	if r, ok := smb2msg.FindContext(m.Contexts, smb2msg.ContextQFid); ok {
		var id smb2msg.QueryOnDiskIDResponse
		if id.Decode(&r) == nil {
			attr.ID = fileID(id.DiskFileID)
		}
	}
	return attr
}

// size keeps a server's sizes within what files can have.
func size(n uint64) int64 { return int64(min(n, 1<<63-1)) }

// fileID is zero for both ways in which servers say that they have none.
func fileID(id uint64) uint64 {
	if id == 1<<64-1 {
		return 0
	}
	return id
}

// kindOf is what attributes tell alone; of a reparse point it is Other.
func kindOf(a fscc.FileAttributes) remote.Kind {
	switch {
	case a&fscc.AttributeReparsePoint != 0:
		return remote.Other
	case a&fscc.AttributeDirectory != 0:
		return remote.Dir
	}
	return remote.Regular
}

// settleKind finds out what attributes alone don't tell: of what kind a
// reparse point is, unless tag says it already, and whether a file is one of
// those that mfsymlinks takes for links.
func (v *Volume) settleKind(ctx context.Context, path string, attr *remote.Attr, tag fscc.ReparseTag) error {
	switch {
	case attr.Kind == remote.Other:
		if tag == 0 {
			var err error
			if tag, err = v.reparseTag(ctx, path); err != nil {
				return err
			}
		}
		attr.Kind = v.reparseKind(attr, tag)
		if tag == fscc.ReparseTagNFS {
			// A link, or a device, a socket, a pipe.
			if target, _, err := v.readLink(ctx, path); err == nil {
				attr.Kind, attr.Size = remote.Symlink, int64(len(target))
			}
		}
	case attr.Kind == remote.Regular && attr.Size == mfSize && v.s.cfg.MFSymlinks:
		target, ok, err := v.mfRead(ctx, path)
		if err != nil && !errors.As(err, new(ntstatus.Status)) {
			return err
		}
		if ok { // what may not be read is a file
			attr.Kind, attr.Size = remote.Symlink, int64(len(target))
		}
	}
	return nil
}

// reparseKind is what a reparse point is to a local user. What holds data or
// folders in its own way (deduplication, cloud storage) is what it would be
// without its tag.
func (v *Volume) reparseKind(attr *remote.Attr, tag fscc.ReparseTag) remote.Kind {
	switch tag {
	case fscc.ReparseTagSymlink, fscc.ReparseTagLXSymlink:
		return remote.Symlink
	case fscc.ReparseTagNFS, fscc.ReparseTagAFUnix, fscc.ReparseTagLXFIFO, fscc.ReparseTagLXChr,
		fscc.ReparseTagLXBlk, fscc.ReparseTagAppExecLink:
		return remote.Other
	}
	return kindOf(fscc.FileAttributes(attr.DOS) &^ fscc.AttributeReparsePoint)
}

func (v *Volume) reparseTag(ctx context.Context, path string) (fscc.ReparseTag, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadAttributes,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     smb2msg.OptionOpenReparsePoint,
		Name:              path,
	})
	query := v.queryCall(smb2msg.InfoFile, fscc.ClassFileAttributeTag)
	if err := v.chain(ctx, create, query, v.closeCall()); err != nil {
		return 0, err
	}
	if err := verdict(create); err != nil {
		return 0, err
	}
	var m fscc.FileAttributeTagInformation
	err := v.info(query, &m)
	return m.ReparseTag, err
}

// settable are the attributes that a client sets. See [MS-FSCC] 2.6.
const settable = fscc.AttributeReadonly | fscc.AttributeHidden | fscc.AttributeSystem | fscc.AttributeArchive |
	fscc.AttributeTemporary | fscc.AttributeOffline | fscc.AttributeNotContentIndexed

// basicInfo is a change as the server wants it: zero fields stay as they are,
// so that "no attribute" needs a bit of its own.
func basicInfo(set remote.SetAttr) (m fscc.FileBasicInformation, any bool) {
	for _, t := range []struct {
		to   *fscc.Filetime
		from time.Time
	}{{&m.CreationTime, set.Born}, {&m.LastAccessTime, set.Accessed}, {&m.LastWriteTime, set.Written}} {
		if !t.from.IsZero() {
			*t.to, any = fscc.FiletimeOf(t.from), true
		}
	}
	if set.DOS != nil {
		m.FileAttributes, any = fscc.FileAttributes(*set.DOS)&settable, true
		if m.FileAttributes == 0 {
			m.FileAttributes = fscc.AttributeNormal
		}
	}
	return m, any
}

// SetAttr changes an object and says what it then is, in one trip.
func (v *Volume) SetAttr(ctx context.Context, at remote.At, set remote.SetAttr) (remote.Attr, error) {
	var attr remote.Attr
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		attr, create, err = v.setAttr(ctx, path, set)
		return create, err
	})
	return attr, err
}

func (v *Volume) setAttr(ctx context.Context, path string, set remote.SetAttr) (remote.Attr, *smbconn.Call, error) {
	access, options := smb2msg.AccessReadAttributes, smb2msg.OptionOpenReparsePoint
	var changes []*smbconn.Call
	if set.Size != nil {
		// First, so that it doesn't undo a time of writing.
		access |= smb2msg.AccessWriteData
		options |= smb2msg.OptionNonDirectoryFile
		changes = append(changes, v.setCall(fscc.ClassFileEndOfFile, &fscc.FileEndOfFileInformation{EndOfFile: uint64(*set.Size)}))
	}
	if m, any := basicInfo(set); any {
		access |= smb2msg.AccessWriteAttributes
		changes = append(changes, v.setCall(fscc.ClassFileBasic, &m))
	}
	if len(changes) == 0 {
		return v.getAttr(ctx, path)
	}
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     access,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     options,
		Name:              path,
	})
	query := v.queryCall(smb2msg.InfoFile, fscc.ClassFileAll)
	calls := append([]*smbconn.Call{create}, changes...)
	calls = append(calls, query, v.closeCall())
	if err := v.chain(ctx, calls...); err != nil {
		return remote.Attr{}, create, err
	}
	if err := verdict(create); err != nil {
		return remote.Attr{}, create, unlessStopped(err)
	}
	for _, c := range changes {
		if err := verdict(c); err != nil {
			return remote.Attr{}, nil, err
		}
	}
	attr, err := v.allInfo(path, query)
	if err == nil {
		err = v.settleKind(ctx, path, &attr, 0)
	}
	return attr, nil, err
}
