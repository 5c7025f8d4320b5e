package smb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// decoder is the body of a reply.
type decoder interface {
	Decode(*byteio.Reader) error
}

// newCall makes a call of the volume's tree.
func (v *Volume) newCall(cmd smb2msg.Command, body smbconn.Body) *smbconn.Call {
	return &smbconn.Call{Command: cmd, Body: body, TreeID: v.tree, Seal: v.seal}
}

// verdict is what the server says of a call, as an error. Statuses in ok are none.
func verdict(call *smbconn.Call, ok ...ntstatus.Status) error {
	status := call.Header.Status
	if status == ntstatus.Success {
		return nil
	}
	for _, s := range ok {
		if s == status {
			return nil
		}
	}
	return status
}

// decode reads the body of a call's reply.
func decode(call *smbconn.Call, m decoder) error {
	r := byteio.NewReader(call.Reply())
	r.Skip(smb2msg.HeaderSize)
	return decodeReader(&r, m)
}

// decodeBytes reads a structure that fills p.
func decodeBytes(p []byte, m decoder) error {
	r := byteio.NewReader(p)
	return decodeReader(&r, m)
}

func decodeReader(r *byteio.Reader, m decoder) error {
	if err := m.Decode(r); err != nil {
		return fmt.Errorf("%w: %w", smbconn.ErrProtocol, err)
	}
	return nil
}

// trip sends one call and decodes its reply; statuses in ok count as success.
func (v *Volume) trip(ctx context.Context, call *smbconn.Call, m decoder, ok ...ntstatus.Status) error {
	if err := v.s.conn.Do(ctx, call); err != nil {
		return err
	}
	if err := verdict(call, ok...); err != nil {
		return err
	}
	return decode(call, m)
}

// chain opens a file with the first call, works on it with those in the middle
// and closes it with the last, in one round trip. A server whose credits don't
// pay for that gets the calls one after another.
func (v *Volume) chain(ctx context.Context, calls ...*smbconn.Call) error {
	err := v.s.conn.Do(ctx, calls...)
	if errors.Is(err, smbconn.ErrCredits) {
		err = v.oneByOne(ctx, calls)
	}
	if err != nil {
		return err
	}
	if first, last := calls[0], calls[len(calls)-1]; verdict(first) == nil && verdict(last) != nil {
		// The server left the rest of the chain alone after a failure in it.
		var m smb2msg.CreateResponse
		if err := decode(first, &m); err != nil {
			return err
		}
		v.closeLater(m.FileID)
	}
	return nil
}

// oneByOne does what chain promises, in as many trips as there are calls.
func (v *Volume) oneByOne(ctx context.Context, calls []*smbconn.Call) error {
	first, rest := calls[0], calls[1:]
	first.Late = v.closeLate
	if err := v.s.conn.Do(ctx, first); err != nil {
		return err
	}
	if err := verdict(first); err != nil {
		for _, c := range rest {
			c.Header.Status = first.Header.Status
		}
		return nil
	}
	var m smb2msg.CreateResponse
	if err := decode(first, &m); err != nil {
		return err
	}
	for i, c := range rest {
		setFile(c.Body, m.FileID)
		if err := v.s.conn.DoUpTo(ctx, c, func(charge int) { shrink(c, charge) }); err != nil {
			if closing := i == len(rest)-1; !closing || c.Sent.IsZero() {
				v.closeLater(m.FileID)
			}
			return err
		}
	}
	return nil
}

// setFile puts a handle where a compound has RelatedFileID.
func setFile(body smbconn.Body, id smb2msg.FileID) {
	switch m := body.(type) {
	case *smb2msg.ReadRequest:
		m.FileID = id
	case *smb2msg.WriteRequest:
		m.FileID = id
	case *smb2msg.FlushRequest:
		m.FileID = id
	case *smb2msg.QueryInfoRequest:
		m.FileID = id
	case *smb2msg.SetInfoRequest:
		m.FileID = id
	case *smb2msg.QueryDirectoryRequest:
		m.FileID = id
	case *smb2msg.IoctlRequest:
		m.FileID = id
	case *smb2msg.CloseRequest:
		m.FileID = id
	default:
		panic(fmt.Sprintf("smb: %T in a chain", body))
	}
}

// shrink makes a call fit into what charge credits pay for.
func shrink(c *smbconn.Call, charge int) {
	n := uint32(charge * smbconn.CreditUnit)
	switch m := c.Body.(type) {
	case *smb2msg.ReadRequest:
		m.Length = min(m.Length, n)
	case *smb2msg.WriteRequest:
		m.Length = min(m.Length, n)
		c.Out = clip(c.Out, int(m.Length))
	case *smb2msg.QueryDirectoryRequest:
		m.OutputBufferLength = min(m.OutputBufferLength, n)
	case *smb2msg.QueryInfoRequest:
		m.OutputBufferLength = min(m.OutputBufferLength, n)
	case *smb2msg.IoctlRequest:
		m.MaxOutputResponse = min(m.MaxOutputResponse, n)
	}
}

// length is how many bytes bufs have.
func length(bufs [][]byte) int {
	n := 0
	for _, p := range bufs {
		n += len(p)
	}
	return n
}

// clip returns the first n bytes of bufs.
func clip(bufs [][]byte, n int) [][]byte {
	out := make([][]byte, 0, len(bufs))
	for _, p := range bufs {
		p = p[:min(len(p), n)]
		if n -= len(p); len(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// patience bounds what goes on after the caller has left.
const patience = time.Minute

// closeLate closes the file of a CREATE whose caller gave up before the answer.
func (v *Volume) closeLate(create *smbconn.Call) {
	var m smb2msg.CreateResponse
	if verdict(create) == nil && decode(create, &m) == nil {
		v.closeNow(m.FileID)
	}
}

// close closes a handle, in the end even if ctx has ended. It never asks twice:
// by then the server could have given the same handle to somebody else.
func (v *Volume) close(ctx context.Context, id smb2msg.FileID) error {
	call := v.newCall(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: id})
	err := v.s.conn.Do(ctx, call)
	if err == nil {
		return verdict(call)
	}
	if call.Sent.IsZero() {
		v.closeLater(id)
	}
	return err
}

// closeLater closes a handle nobody has, without making anybody wait.
func (v *Volume) closeLater(id smb2msg.FileID) {
	v.s.conn.Go(func() { v.closeNow(id) })
}

func (v *Volume) closeNow(id smb2msg.FileID) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	call := v.newCall(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: id})
	if err := v.s.conn.Do(ctx, call); err == nil {
		err = verdict(call)
		v.s.cfg.Logger.Debug("closed an abandoned handle", "share", v.share, "err", err)
	}
}

// The calls that chains are made of.

func (v *Volume) createCall(m *smb2msg.CreateRequest) *smbconn.Call {
	m.ImpersonationLevel = smb2msg.ImpersonationImpersonation
	m.ShareAccess = smb2msg.ShareRead | smb2msg.ShareWrite | smb2msg.ShareDelete
	return v.newCall(smb2msg.CommandCreate, m)
}

func (v *Volume) closeCall() *smbconn.Call {
	return v.newCall(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: smb2msg.RelatedFileID})
}
