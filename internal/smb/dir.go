package smb

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

const (
	// listClass has all that GetAttr tells but the number of links.
	listClass = fscc.ClassFileIDBothDirectory
	// listBuffer is what one page may have, unless the server wants less.
	listBuffer = 1 << 20
)

// page is a page of a listing, or why there is none.
type page struct {
	entries []remote.Entry
	first   string // name on it, as the server has it
	last    bool
	err     error
}

// ReadDir lists a folder: the first page comes with the open, and each further
// one is on its way while the consumer has the one before.
func (v *Volume) ReadDir(ctx context.Context, at remote.At) iter.Seq2[[]remote.Entry, error] {
	return func(yield func([]remote.Entry, error) bool) {
		consumer, stop := context.WithCancel(ctx)
		pages := make(chan page)
		go func() {
			defer close(pages)
			v.list(ctx, consumer, at, pages)
		}()
		defer func() {
			stop()
			for range pages { // until the goroutine is done
			}
		}()
		for p := range pages {
			if p.err != nil {
				yield(nil, p.err)
				return
			}
			if len(p.entries) > 0 && !yield(p.entries, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // what came is not all
			yield(nil, err)
		}
	}
}

// maxAgain is how often a page may start as the one before it. A Samba server
// on a tmpfs starts over when the name it had come to is removed meanwhile.
const maxAgain = 100

// list sends the pages of a folder until the consumer has enough.
func (v *Volume) list(ctx, consumer context.Context, at remote.At, pages chan<- page) {
	send := func(p page) bool {
		select {
		case pages <- p:
			return p.err == nil
		case <-consumer.Done():
			return false
		}
	}
	var first *smbconn.Call
	var id smb2msg.FileID
	var path string
	err := v.at(at, func(p string) (create *smbconn.Call, err error) {
		path = p
		first, id, create, err = v.openDir(consumer, p)
		return create, err
	})
	if err != nil {
		send(page{err: err})
		return
	}
	// While somebody waits for it, so that what follows finds the folder closed.
	defer v.close(ctx, id)
	before, again := "", 0
	for query := first; ; query = v.listCall(id) {
		if query != first {
			err := v.s.conn.DoUpTo(consumer, query, func(charge int) { shrink(query, charge) })
			if err != nil {
				send(page{err: err})
				return
			}
		}
		p := v.page(consumer, path, query)
		if again++; p.first != before {
			again = 0
		}
		if p.err == nil && !p.last && (p.first == "" || again > maxAgain) {
			p.err = fmt.Errorf("%w: the listing does not get on", smbconn.ErrProtocol)
		}
		if !send(p) || p.last {
			return
		}
		before = p.first
	}
}

// openDir opens a folder and asks for its first page, in one trip.
func (v *Volume) openDir(ctx context.Context, path string) (*smbconn.Call, smb2msg.FileID, *smbconn.Call, error) {
	create := v.createCall(&smb2msg.CreateRequest{
		DesiredAccess:     smb2msg.AccessListDirectory | smb2msg.AccessReadAttributes | smb2msg.AccessSynchronize,
		CreateDisposition: smb2msg.Open,
		CreateOptions:     smb2msg.OptionDirectoryFile,
		Name:              path,
	})
	create.Late = v.closeLate
	query := v.listCall(smb2msg.RelatedFileID)
	var m smb2msg.CreateResponse
	err := v.s.conn.Do(ctx, create, query)
	together := !errors.Is(err, smbconn.ErrCredits)
	if !together {
		err = v.s.conn.Do(ctx, create)
	}
	if err != nil {
		return nil, m.FileID, create, err
	}
	if err := verdict(create); err != nil {
		return nil, m.FileID, create, unlessStopped(err)
	}
	if err := decode(create, &m); err != nil {
		return nil, m.FileID, nil, err
	}
	if !together {
		setFile(query.Body, m.FileID)
		if err := v.s.conn.DoUpTo(ctx, query, func(charge int) { shrink(query, charge) }); err != nil {
			v.closeLater(m.FileID)
			return nil, m.FileID, nil, err
		}
	}
	return query, m.FileID, nil, nil
}

// listCall asks for the next page.
func (v *Volume) listCall(id smb2msg.FileID) *smbconn.Call {
	n := min(listBuffer, v.s.conn.MaxTransact, v.s.affordable())
	call := v.newCall(smb2msg.CommandQueryDirectory, &smb2msg.QueryDirectoryRequest{
		FileInformationClass: listClass,
		FileID:               id,
		OutputBufferLength:   uint32(n),
		FileName:             "*",
	})
	call.Charge = smbconn.Charge(n)
	return call
}

// page reads the answer to a listCall.
func (v *Volume) page(ctx context.Context, dir string, query *smbconn.Call) page {
	switch status := query.Header.Status; status {
	case ntstatus.Success:
	case ntstatus.NoMoreFiles, ntstatus.NoSuchFile:
		return page{last: true}
	default:
		return page{err: status}
	}
	var m smb2msg.QueryDirectoryResponse
	if err := decode(query, &m); err != nil {
		return page{err: err}
	}
	var p page
	var e fscc.DirEntry
	r := fscc.NewDirReader(listClass, m.Output)
	for r.Next(&e) {
		if p.first == "" {
			p.first = e.FileName
		}
		if e.FileName == "." || e.FileName == ".." {
			continue
		}
		name, ok := v.s.cfg.Mapping.local(e.FileName)
		if !ok {
			v.s.cfg.Logger.Info("left out a name that no local file can have", "folder", dir, "name", e.FileName)
			continue
		}
		p.entries = append(p.entries, remote.Entry{Name: name, Attr: entryAttr(dir, &e)})
		attr := &p.entries[len(p.entries)-1].Attr
		if err := v.settleKind(ctx, string(attr.Node), attr, e.ReparseTag); err != nil && ctx.Err() != nil {
			return page{err: err}
		}
	}
	if err := r.Err(); err != nil {
		return page{err: fmt.Errorf("%w: %w", smbconn.ErrProtocol, err)}
	}
	return p
}

func entryAttr(dir string, e *fscc.DirEntry) remote.Attr {
	return remote.Attr{
		Node:     remote.Node(join(dir, e.FileName)),
		ID:       fileID(e.FileID),
		Kind:     kindOf(e.FileAttributes),
		DOS:      uint32(e.FileAttributes),
		Size:     size(e.EndOfFile),
		Alloc:    size(e.AllocationSize),
		Born:     e.CreationTime.Time(),
		Accessed: e.LastAccessTime.Time(),
		Written:  e.LastWriteTime.Time(),
		Changed:  e.ChangeTime.Time(),
	}
}
