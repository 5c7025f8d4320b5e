package smb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// File is an object of the server that is open here at least once.
type File struct {
	v    *Volume
	path string
	id   uint64 // the server's; 0: unknown, so never shared

	opens  int           // guarded by Volume.mu
	append chan struct{} // full from asking for the end to writing there
}

// Open is a handle.
type Open struct {
	f      *File
	id     smb2msg.FileID
	closed atomic.Bool
}

var dispositions = map[remote.Create]smb2msg.CreateDisposition{
	remote.Existing:    smb2msg.Open,
	remote.OrNew:       smb2msg.OpenIf,
	remote.New:         smb2msg.Create,
	remote.Truncate:    smb2msg.Overwrite,
	remote.TruncateNew: smb2msg.OverwriteIf,
}

// createRequest says how in SMB's words.
func createRequest(path string, how remote.How) *smb2msg.CreateRequest {
	m := &smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessReadAttributes | smb2msg.AccessSynchronize,
		FileAttributes:    fscc.AttributeNormal,
		CreateDisposition: dispositions[how.Create],
		CreateOptions:     smb2msg.OptionNonDirectoryFile,
		Name:              path,
		Contexts:          []smb2msg.CreateContext{{Name: smb2msg.ContextQFid}},
	}
	if how.Access&remote.ForRead != 0 {
		m.DesiredAccess |= smb2msg.AccessReadData
	}
	if how.Access&remote.ForWrite != 0 {
		m.DesiredAccess |= smb2msg.AccessWriteData | smb2msg.AccessAppendData | smb2msg.AccessWriteAttributes
	}
	if how.Access&remote.ForDelete != 0 {
		m.DesiredAccess |= smb2msg.AccessDelete
	}
	if how.Dir {
		m.CreateOptions = smb2msg.OptionDirectoryFile
	}
	if how.Stable {
		m.CreateOptions |= smb2msg.OptionWriteThrough
	}
	return m
}

// Open opens in one trip. It asks for no caching rights and is given none.
func (v *Volume) Open(ctx context.Context, at remote.At, how remote.How, _ remote.Events) (remote.Opened, error) {
	var opened remote.Opened
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		opened, create, err = v.open(ctx, path, how)
		return create, err
	})
	return opened, err
}

func (v *Volume) open(ctx context.Context, path string, how remote.How) (remote.Opened, *smbconn.Call, error) {
	create := v.createCall(createRequest(path, how))
	create.Late = v.closeLate
	if err := v.s.conn.Do(ctx, create); err != nil {
		return remote.Opened{}, create, err
	}
	if err := verdict(create); err != nil {
		return remote.Opened{}, create, unlessStopped(err)
	}
	var m smb2msg.CreateResponse
	if err := decode(create, &m); err != nil {
		return remote.Opened{}, create, err
	}
	attr := created(path, &m)
	f := v.file(path, attr.ID)
	return remote.Opened{File: f, Open: &Open{f: f, id: m.FileID}, Attr: attr}, nil, nil
}

// file returns the File of an object, one more open of which there is now.
func (v *Volume) file(path string, id uint64) *File {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.files[id]
	if f == nil {
		f = &File{v: v, path: path, id: id, append: make(chan struct{}, 1)}
		if id != 0 {
			v.files[id] = f
		}
	}
	f.opens++
	return f
}

// Close closes the handle. What the server says then is the last it says.
func (o *Open) Close(ctx context.Context) error {
	if o.closed.Swap(true) {
		return net.ErrClosed
	}
	v := o.f.v
	v.mu.Lock()
	if o.f.opens--; o.f.opens == 0 {
		delete(v.files, o.f.id)
	}
	v.mu.Unlock()
	return v.close(ctx, o.id)
}

// handle is the handle of an open that is open.
func (f *File) handle(o remote.Open) (smb2msg.FileID, error) {
	open, ok := o.(*Open)
	if !ok || open.f != f {
		panic(fmt.Sprintf("smb: %T %v is no open of %s", o, o, f.path))
	}
	if open.closed.Load() {
		return smb2msg.FileID{}, net.ErrClosed
	}
	return open.id, nil
}

// ReadAt sends one READ; its payload goes straight into the buffers.
func (f *File) ReadAt(ctx context.Context, req remote.Req, into [][]byte) (n int, eof bool, err error) {
	id, err := f.handle(req.Open)
	if err != nil {
		return 0, false, err
	}
	want := min(length(into), f.v.s.limits().Read)
	if want == 0 {
		return 0, false, nil
	}
	op := f.v.ops.Get().(*ioCall)
	n, status, err := op.read(ctx, id, req.Off, want, into)
	if err != nil {
		return 0, false, err // the call is the connection's now
	}
	f.v.ops.Put(op)
	if status == ntstatus.EndOfFile {
		return 0, true, nil
	}
	if status != ntstatus.Success {
		return 0, false, status
	}
	if n == 0 {
		return 0, false, fmt.Errorf("%w: READ of no bytes, which is not the end", smbconn.ErrProtocol)
	}
	return n, false, nil
}

// WriteAt sends one WRITE from where the data is.
func (f *File) WriteAt(ctx context.Context, req remote.Req, w remote.Write) (n int, stable bool, err error) {
	id, err := f.handle(req.Open)
	if err != nil {
		return 0, false, err
	}
	op := f.v.ops.Get().(*ioCall)
	n, status, err := op.write(ctx, id, req.Off, w)
	if err != nil {
		return 0, false, err
	}
	f.v.ops.Put(op)
	if status != ntstatus.Success {
		return 0, false, status
	}
	if w.Stable && !f.v.s.writesThrough() {
		if _, err := f.Commit(ctx, req.Open, nil); err != nil {
			return 0, false, err
		}
	}
	return n, w.Stable, nil
}

// Append asks for the end and writes there. Other clients may do the same at
// the same time; SMB has no word against that.
func (o *Open) Append(ctx context.Context, data [][]byte) (off int64, n int, err error) {
	select {
	case o.f.append <- struct{}{}:
		defer func() { <-o.f.append }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	attr, err := o.f.GetAttr(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	n, _, err = o.f.WriteAt(ctx, remote.Req{Open: o, Off: attr.Size}, remote.Write{Data: data})
	return attr.Size, n, err
}

// Commit makes the server flush the file, all of it.
func (f *File) Commit(ctx context.Context, open remote.Open, _ []remote.Span) ([]remote.Span, error) {
	id, err := f.handle(open)
	if err != nil {
		return nil, err
	}
	return nil, f.v.trip(ctx, f.v.newCall(smb2msg.CommandFlush, &smb2msg.FlushRequest{FileID: id}), &smb2msg.FlushResponse{})
}

// GetAttr asks about an open file.
func (f *File) GetAttr(ctx context.Context, open remote.Open) (remote.Attr, error) {
	id, err := f.handle(open)
	if err != nil {
		return remote.Attr{}, err
	}
	query := f.v.queryCall(smb2msg.InfoFile, fscc.ClassFileAll)
	setFile(query.Body, id)
	if err := f.v.s.conn.Do(ctx, query); err != nil {
		return remote.Attr{}, err
	}
	return f.v.allInfo(f.path, query)
}

// SetSize sets the size and asks what the file then is, in one trip.
func (f *File) SetSize(ctx context.Context, open remote.Open, size int64) (remote.Attr, error) {
	if size < 0 {
		return remote.Attr{}, syscall.EINVAL
	}
	id, err := f.handle(open)
	if err != nil {
		return remote.Attr{}, err
	}
	set := f.v.setCall(fscc.ClassFileEndOfFile, &fscc.FileEndOfFileInformation{EndOfFile: uint64(size)})
	query := f.v.queryCall(smb2msg.InfoFile, fscc.ClassFileAll)
	setFile(set.Body, id)
	setFile(query.Body, id)
	if err = f.v.s.conn.Do(ctx, set, query); errors.Is(err, smbconn.ErrCredits) {
		if err = f.v.s.conn.Do(ctx, set); err == nil {
			err = f.v.s.conn.Do(ctx, query)
		}
	}
	if err != nil {
		return remote.Attr{}, err
	}
	if err := verdict(set); err != nil {
		return remote.Attr{}, err
	}
	return f.v.allInfo(f.path, query)
}
