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
	v      *Volume
	id     uint64        // the server's; 0: unknown
	append chan struct{} // full from asking for the end to writing there

	// guarded by Volume.mu
	path    string
	opens   int
	events  remote.Events // of the first open that had any
	leases  []*lease      // one for each path it is open by
	oplocks []*Open       // those of its handles that have one
	rights  remote.Rights // what all these allow
	epoch   uint64        // raised with each change of rights
}

// Open is a handle.
type Open struct {
	f      *File
	id     smb2msg.FileID
	lease  *lease              // nil: it was opened without
	level  smb2msg.OplockLevel // its oplock, if it has one; guarded by Volume.mu
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

// Open opens in one trip, and asks for the caching rights in it. See [MS-SMB2]
// 3.2.4.3.5 and 3.2.4.3.8.
func (v *Volume) Open(ctx context.Context, at remote.At, how remote.How, events remote.Events) (remote.Opened, error) {
	var opened remote.Opened
	err := v.at(at, func(path string) (create *smbconn.Call, err error) {
		opened, create, err = v.open(ctx, path, how, events)
		return create, err
	})
	return opened, err
}

func (v *Volume) open(ctx context.Context, path string, how remote.How, events remote.Events) (remote.Opened, *smbconn.Call, error) {
	for again := false; ; again = true {
		m := createRequest(path, how)
		a := v.ask(m, how, events)
		create := v.createCall(m)
		create.Late = v.closeLate
		opened, err := v.opened(ctx, path, create, a, events)
		outgrown := err == ntstatus.InvalidParameter && v.outgrown(a)
		v.asked(a)
		switch {
		case outgrown && !again:
		case err != nil:
			return remote.Opened{}, create, unlessStopped(err)
		default:
			return opened, nil, nil
		}
	}
}

// opened sends a CREATE and makes an open of what it brings.
func (v *Volume) opened(ctx context.Context, path string, create *smbconn.Call, a *asking, events remote.Events) (remote.Opened, error) {
	var m smb2msg.CreateResponse
	if err := v.trip(ctx, create, &m); err != nil {
		return remote.Opened{}, err
	}
	attr := created(path, &m)
	o := &Open{id: m.FileID}
	var ack func()
	v.mu.Lock()
	f := v.file(path, attr.ID, a)
	o.f = f
	if f.events == nil {
		f.events = events
	}
	switch {
	case a == nil, attr.Kind != remote.Regular:
	case a.lease != nil:
		o.takeLease(a, &m)
	case o.takeOplock(a, &m):
		level := o.level
		ack = func() { v.giveUp(o.id, level) }
	}
	tell := v.lowered(f, nil)
	opened := remote.Opened{File: f, Open: o, Attr: attr, Rights: f.rights, Epoch: f.epoch}
	v.mu.Unlock()
	tell()
	if ack != nil {
		v.answer(ack)
	}
	return opened, nil
}

// file returns the File of an object, one more open of which there is now. An
// object without an ID is shared by those who share a lease. v.mu is held.
func (v *Volume) file(path string, id uint64, a *asking) *File {
	f := v.files[id]
	if id == 0 && a != nil && a.lease != nil {
		f = a.lease.file
	}
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
	f, v := o.f, o.f.v
	v.mu.Lock()
	if f.opens--; f.opens == 0 {
		delete(v.files, f.id)
	}
	o.dropLease()
	o.dropOplock()
	tell := v.lowered(f, nil)
	v.mu.Unlock()
	tell()
	err := v.close(ctx, o.id)
	v.closedUnder(o.lease)
	return err
}

// node is where the file is now.
func (f *File) node() string {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	return f.path
}

// handle is the handle of an open that is open.
func (f *File) handle(o remote.Open) (smb2msg.FileID, error) {
	open, ok := o.(*Open)
	if !ok || open.f != f {
		panic(fmt.Sprintf("smb: %T %v is no open of %s", o, o, f.node()))
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
	return f.v.allInfo(f.node(), query)
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
	return f.v.allInfo(f.node(), query)
}
