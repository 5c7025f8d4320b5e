// Package remote is the seam between what caches files and what speaks a
// protocol. Above it nobody knows SMB from NFS; below it nobody knows pages.
//
// It owns the words both sides use and the rules they keep, and no behaviour.
// It imports nothing of the project and has no lock and no goroutine.
//
// Buffers belong to the callee until it returns. A cancelled read gives them
// back at once, whatever the server still sends. A cancelled write returns only
// when its request is wholly sent, was never started, or the connection is dead.
// Bytes count only once status, length and signature are known to be good.
package remote

import (
	"context"
	"iter"
	"time"
)

// Volume is one exported tree: an SMB share, an NFS file system.
// It is safe for concurrent use.
type Volume interface {
	// Open gives a handle, the attributes and the caching rights in one trip.
	// events may be nil when how asks for no rights.
	Open(ctx context.Context, at At, how How, events Events) (Opened, error)

	// GetAttr never follows a symbolic link.
	GetAttr(ctx context.Context, at At) (Attr, error)
	SetAttr(ctx context.Context, at At, set SetAttr) (Attr, error)

	// ReadFile opens, reads into p from the start and closes, in one trip.
	// It reads less than len(p) where the file ends or the server's largest
	// read does: n < attr.Size says that more is there.
	ReadFile(ctx context.Context, at At, p []byte) (n int, attr Attr, err error)
	// WriteFile opens, writes p at the start and closes, in one trip. p fits
	// into one request; see Limits. A file that is New and cannot be written is
	// removed again.
	WriteFile(ctx context.Context, at At, how How, p []byte) (Attr, error)

	// ReadDir yields the entries of a folder page by page, the next page being
	// fetched while the consumer has this one. "." and ".." are left out, and
	// so are names that no local file could have; a page is the consumer's.
	ReadDir(ctx context.Context, at At) iter.Seq2[[]Entry, error]

	Make(ctx context.Context, at At, m Make) (Attr, error)
	ReadLink(ctx context.Context, at At) (string, error)
	// Rename replaces an existing target only if replace says so. It returns
	// the object's new Node; whatever lay below the old one has new ones too.
	Rename(ctx context.Context, from, to At, replace bool) (Node, error)
	Link(ctx context.Context, from, to At) error
	// Remove removes an empty folder or any other object, and only the kind
	// the caller names.
	Remove(ctx context.Context, at At, dir bool) error
	StatFS(ctx context.Context) (StatFS, error)

	// Limits and Flow are those a File of this volume starts with.
	Limits() Limits
	Flow() Flow
	Close(ctx context.Context) error
}

// Node names an object as its protocol does: an SMB path, an NFS filehandle.
// Callers keep it and hand it back; only its protocol looks inside. The root is
// the empty Node.
type Node string

// At says where an object is: Node itself, or, if Name is set, Name in Dir.
// Name may be a path of several names with slashes between them, which the
// protocol walks in the same trip; "." and ".." are not names.
type At struct {
	Dir, Node Node
	Name      string
}

// Kind is what sort of object an Attr describes.
type Kind uint8

const (
	Regular Kind = iota
	Dir
	Symlink
	Other // devices, sockets, pipes and foreign reparse points
)

// Attr describes an object. Zero times, ID and Links mean that the server has none.
type Attr struct {
	Node  Node
	ID    uint64 // unique on the volume
	Kind  Kind
	Links uint32
	DOS   uint32 // [MS-FSCC] 2.6 file attributes; 0 if the protocol has none
	Size  int64
	Alloc int64

	Born, Accessed, Written, Changed time.Time
}

// SetAttr says what to change; zero fields stay as they are.
type SetAttr struct {
	Born, Accessed, Written time.Time
	Size                    *int64
	DOS                     *uint32 // as Attr.DOS
}

// Entry is a name in a folder, with everything known of what it names.
type Entry struct {
	Name string
	Attr Attr
}

// Make says what to create: a folder, or a symbolic link to Target.
type Make struct {
	Kind   Kind
	Target string
}

// StatFS is the size of a volume in bytes, and what its server calls it.
type StatFS struct {
	Total, Free, Avail int64 // Avail: free to this user
	Block              int64 // the smallest allocation
	Label, Type        string
}

// Access says what an open wants to do.
type Access uint8

const (
	ForRead Access = 1 << iota
	ForWrite
	ForDelete
)

// Create says what an open makes of what is there.
type Create uint8

const (
	Existing    Create = iota // fails if nothing is there
	OrNew                     // makes an empty file if nothing is there
	New                       // fails if something is there
	Truncate                  // empties what is there, fails if nothing is
	TruncateNew               // empties what is there or makes an empty file
)

// How is how to open.
type How struct {
	Access Access
	Create Create
	Dir    bool   // a folder is wanted; without it one is refused
	Stable bool   // writes reach the disk before they are acknowledged
	Rights Rights // what to ask for; the server gives what it likes
}

// Opened is what an open yields. Close of Open ends this open; File lives as
// long as any open of the same object does.
type Opened struct {
	File   File
	Open   Open
	Attr   Attr
	Rights Rights
	Epoch  uint64
}

// Open is one open of a File.
type Open interface {
	// Append writes at the end of the file, wherever that is, and says where it was.
	Append(ctx context.Context, data [][]byte) (off int64, n int, err error)
	// Close gives up the handle, and says what went wrong doing so.
	Close(ctx context.Context) error
}

// File is one object of the server, shared by its opens.
type File interface {
	// ReadAt sends one request for at most Limits().Read bytes and fills the
	// buffers in order. n may fall short of them without the end of the file.
	ReadAt(ctx context.Context, req Req, into [][]byte) (n int, eof bool, err error)
	// WriteAt sends one request of at most Limits().Write bytes. Without stable
	// the bytes are safe only after Commit.
	WriteAt(ctx context.Context, req Req, w Write) (n int, stable bool, err error)
	// Commit makes what was written durable. What it returns must be written again.
	Commit(ctx context.Context, open Open, spans []Span) (redo []Span, err error)
	GetAttr(ctx context.Context, open Open) (Attr, error)
	SetSize(ctx context.Context, open Open, size int64) (Attr, error)
	Limits() Limits
	Flow() Flow
}

// Req is what a read and a write have in common.
type Req struct {
	Open  Open
	Off   int64
	Class Class
}

// Class says who waits for a request, and so what goes first.
type Class uint8

const (
	Demand Class = iota // a caller waits for these bytes
	Ahead               // read before anybody asks
	Back                // written back
)

// Write is the bytes of one write: exactly those that changed. Head and Tail
// offer valid neighbours up to Limits().Block for devices that write whole blocks.
type Write struct {
	Data       [][]byte
	Head, Tail []byte
	Stable     bool
}

// Span is a range of a file.
type Span struct{ Off, Len int64 }

// Limits is what one request may carry now. They change as credits come and
// go, so a planner reads them anew for every plan.
type Limits struct {
	Read, Write int   // bytes in one request
	Block       int64 // what devices write whole; 0: exact bytes
}

// Direction tells reads from writes.
type Direction uint8

const (
	Reading Direction = iota
	Writing
)

// Flow says how much to keep in flight. One Flow serves all that share a path
// to a server, and hears of every request that took it.
type Flow interface {
	Window(Direction) Window
}

// Window is Requests requests of Size bytes each.
type Window struct{ Requests, Size int }

// Rights are what a client may keep without asking: bytes read, bytes written,
// the handle itself. A server grants them with a lease, an oplock, a delegation.
type Rights uint8

const (
	CacheRead Rights = 1 << iota
	CacheWrite
	CacheHandle
)

// Events is told what happens to an open file. It never blocks and never calls
// down. A File tells the Events of the open that made it, as long as it lives.
type Events interface{ Rights(Change) }

// Change is a change of rights; of two, the one with the larger Epoch is newer.
// Ack, if there is one, is called by By at the latest, once nothing is cached
// beyond Rights; nil means that the change is a grant, or that the rights are
// gone already.
type Change struct {
	Node   Node
	Rights Rights
	Epoch  uint64
	Trust  Trust
	By     time.Time
	Ack    func(error)
}

// Trust says whether what is kept of a file is what the server has.
type Trust uint8

const (
	// Current: it is, as far as Rights go.
	Current Trust = iota
	// Unsure: the connection is lost. Nothing kept may be used, nor forgotten,
	// until the next change says more.
	Unsure
	// Outdated: somebody else has changed the file since. What is kept is worth
	// nothing, and what was to be written must not be.
	Outdated
	// Undone: as Outdated, since the server has lost some of what it had said was written.
	Undone
)
