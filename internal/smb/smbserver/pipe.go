package smbserver

import (
	"strings"
	"sync"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/srvsvc"
)

// pipe is an open of the one named pipe there is, which tells shares.
type pipe struct {
	srv  *Server
	name string

	mu  sync.Mutex
	in  srvsvc.Assembler // guarded by mu, as what follows
	out [][]byte         // fragments, the first perhaps read in part
	max int              // fragment that the client takes
}

// openPipe opens a pipe of IPC$.
func (r *request) openPipe(m *smb2msg.CreateRequest) ntstatus.Status {
	if !strings.EqualFold(m.Name, srvsvc.Pipe) {
		return ntstatus.ObjectNameNotFound
	}
	o := &open{
		id: r.x.c.srv.nextID(), tree: r.tree,
		pipe: &pipe{srv: r.x.c.srv, name: srvsvc.Pipe, max: srvsvc.MaxFragment},
	}
	if !r.session.add(o) {
		return ntstatus.UserSessionDeleted
	}
	id := smb2msg.FileID{Persistent: o.id, Volatile: o.id}
	r.x.related.file = id
	return r.reply(&smb2msg.CreateResponse{CreateAction: smb2msg.ActionOpened, FileAttributes: 0x80, FileID: id})
}

// write takes bytes in, and has an answer once they make up a message.
func (p *pipe) write(data []byte) ntstatus.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, err := p.in.Add(data)
	switch {
	case err != nil:
		return ntstatus.PipeDisconnected
	case m == nil:
		return ntstatus.Success
	}
	answer, err := p.answerLocked(m)
	if err != nil {
		return ntstatus.PipeDisconnected
	}
	for len(answer) > 0 {
		r := byteio.NewReader(answer)
		r.Skip(8)
		n := int(r.Uint16())
		p.out = append(p.out, answer[:n])
		answer = answer[n:]
	}
	return ntstatus.Success
}

func (p *pipe) answerLocked(m *srvsvc.Message) ([]byte, error) {
	switch {
	case m.Type == srvsvc.TypeBind:
		bind, err := srvsvc.DecodeBind(m)
		if err != nil {
			return nil, err
		}
		p.max = min(p.max, bind.MaxFragment)
		return bind.AppendBindAck(nil, m.Call), nil
	case m.Type == srvsvc.TypeRequest && m.Opnum == srvsvc.OpShareEnum:
		var req srvsvc.ShareEnumRequest
		r := byteio.NewReader(m.Body)
		if err := req.Decode(&r); err != nil {
			return nil, err
		}
		reply := p.srv.enumerate(&req)
		out := srvsvc.Message{Type: srvsvc.TypeResponse, Call: m.Call, Body: reply.Append(nil)}
		return out.Append(nil, p.max), nil
	}
	out := srvsvc.Message{Type: srvsvc.TypeFault, Call: m.Call, Status: srvsvc.FaultOpRange}
	return out.Append(nil, p.max), nil
}

// enumerate lists the shares from where the client left off.
func (s *Server) enumerate(req *srvsvc.ShareEnumRequest) *srvsvc.ShareEnumResponse {
	reply := &srvsvc.ShareEnumResponse{Level: req.Level, Total: uint32(len(s.shares))}
	if req.Level != 1 {
		reply.Status = srvsvc.ErrorInvalidLevel
		return reply
	}
	for _, sh := range s.shares[min(int(req.Resume), len(s.shares)):] {
		out := srvsvc.Share{Name: sh.Name, Comment: sh.Comment, Type: srvsvc.ShareDisk}
		if sh.Tree == nil {
			out.Type = srvsvc.ShareIPC
		}
		if strings.HasSuffix(sh.Name, "$") {
			out.Type |= srvsvc.ShareSpecial
		}
		reply.Shares = append(reply.Shares, out)
	}
	return reply
}

// read takes up to n bytes of the first fragment. It reports whether that was all
// of the fragment.
func (p *pipe) read(n int) (data []byte, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.out) == 0 {
		return nil, true
	}
	data = p.out[0]
	if len(data) > n {
		p.out[0] = data[n:]
		return data[:n], false
	}
	p.out = p.out[1:]
	return data, true
}

func (r *request) readPipe(p *pipe, m *smb2msg.ReadRequest) ntstatus.Status {
	data, whole := p.read(int(m.Length))
	if len(data) == 0 {
		return ntstatus.PipeEmpty
	}
	r.reply(&smb2msg.ReadResponse{DataLength: uint32(len(data))})
	r.x.b = append(r.x.b, data...)
	if !whole {
		return ntstatus.BufferOverflow
	}
	return ntstatus.Success
}

func (r *request) writePipe(p *pipe, data []byte) ntstatus.Status {
	if status := p.write(data); status != ntstatus.Success {
		return status
	}
	return r.reply(&smb2msg.WriteResponse{Count: uint32(len(data))})
}
