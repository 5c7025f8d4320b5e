package smb

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// granter stands between a client and a server. It grants the rights that the
// test says, and breaks them when the test says so, without the server's knowing.
type granter struct {
	t      *testing.T
	client net.Conn
	server net.Conn

	// grant changes the reply to a CREATE of one file alone and returns frames
	// to send before it and, in the same write, after it. Set before a request.
	grant func(c *creation) (before, after [][]byte)
	held  chan struct{}   // if set, replies to CREATE wait until it is closed
	mute  bool            // acknowledgments are not answered
	late  ntstatus.Status // what they are answered with, if it is not success

	acks chan []byte // bodies of OPLOCK_BREAK requests

	mu    sync.Mutex // a write to the client
	asked map[uint64]*creation
}

// creation is a CREATE and its reply.
type creation struct {
	smb2msg.CreateRequest
	smb2msg.CreateResponse
	lease *smb2msg.Lease // that is asked for
}

// give grants a lease.
func (c *creation) give(state smb2msg.LeaseState, epoch uint16) {
	c.CreateResponse.OplockLevel = smb2msg.OplockLease
	c.giveContext(&smb2msg.Lease{LeaseKey: c.lease.LeaseKey, LeaseState: state, V2: c.lease.V2, Epoch: epoch})
}

func (c *creation) giveContext(l *smb2msg.Lease) {
	c.CreateResponse.Contexts = append(c.CreateResponse.Contexts, smb2msg.NewCreateContext(smb2msg.ContextRqLs, l))
}

// granting runs test in virtual time with a volume whose rights the test grants.
// Nobody is logged on, so that nothing is signed.
func granting(t *testing.T, d smb2msg.Dialect, test func(t *testing.T, v *Volume, g *granter, srv *smbtest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := smbtest.NewUnstarted(smbtest.Config{Anonymous: true})
		defer srv.Close()
		server, err := srv.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		mine, client := netsim.New(netsim.Config{}).Pipe()
		g := &granter{t: t, client: client, server: server, acks: make(chan []byte, 1000), asked: make(map[uint64]*creation)}
		var bg sync.WaitGroup
		bg.Go(g.up)
		bg.Go(g.down)
		defer bg.Wait()
		defer server.Close()
		defer client.Close()
		s, err := Dial(t.Context(), mine, "server", Config{Anonymous: true, Dialects: []smb2msg.Dialect{d}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		v, err := s.Mount(t.Context(), "share")
		if err != nil {
			t.Fatal(err)
		}
		test(t, v, g, srv)
	})
}

func readFrame(nc net.Conn) ([]byte, smb2msg.Header, bool) {
	var prefix [4]byte
	var h smb2msg.Header
	if _, err := io.ReadFull(nc, prefix[:]); err != nil {
		return nil, h, false
	}
	frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(nc, frame); err != nil {
		return nil, h, false
	}
	r := byteio.NewReader(frame)
	return frame, h, h.Decode(&r) == nil
}

func framed(frames ...[]byte) (b []byte) {
	for _, f := range frames {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

// send sends frames to the client in one write.
func (g *granter) send(frames ...[]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client.Write(framed(frames...))
}

// up relays requests, those for rights as if they asked for none.
func (g *granter) up() {
	const level = smb2msg.HeaderSize + 3
	defer g.server.Close()
	for {
		frame, h, ok := readFrame(g.client)
		if !ok {
			return
		}
		switch {
		case h.Command == smb2msg.CommandOplockBreak:
			g.acks <- frame[smb2msg.HeaderSize:]
			if !g.mute {
				h.Flags, h.Credits, h.Status = smb2msg.FlagServerToRedir, 1, g.late
				g.send(append(h.Append(nil), frame[smb2msg.HeaderSize:]...))
			}
			continue
		case h.Command == smb2msg.CommandCreate && h.NextCommand == 0:
			c := &creation{}
			r := byteio.NewReader(frame)
			r.Skip(smb2msg.HeaderSize)
			if err := c.CreateRequest.Decode(&r); err != nil {
				g.t.Errorf("CREATE: %v", err)
			}
			if r, ok := smb2msg.FindContext(c.CreateRequest.Contexts, smb2msg.ContextRqLs); ok {
				c.lease = &smb2msg.Lease{}
				if err := c.lease.Decode(&r); err != nil {
					g.t.Errorf("CREATE: %v", err)
				}
			}
			g.mu.Lock()
			g.asked[h.MessageID] = c
			g.mu.Unlock()
			frame[level] = 0
		}
		g.server.Write(framed(frame))
	}
}

// down relays replies.
func (g *granter) down() {
	const capabilities = smb2msg.HeaderSize + 24
	defer g.client.Close()
	for {
		frame, h, ok := readFrame(g.server)
		if !ok {
			return
		}
		if h.Command == smb2msg.CommandNegotiate {
			frame[capabilities] |= byte(smb2msg.CapLeasing)
		}
		g.mu.Lock()
		c := g.asked[h.MessageID]
		g.mu.Unlock()
		if c == nil || h.Status == ntstatus.Pending {
			g.send(frame)
			continue
		}
		if held := g.held; held != nil {
			<-held
		}
		var before, after [][]byte
		if h.Status == ntstatus.Success && g.grant != nil {
			r := byteio.NewReader(frame)
			r.Skip(smb2msg.HeaderSize)
			if err := c.CreateResponse.Decode(&r); err != nil {
				g.t.Errorf("CREATE: %v", err)
			}
			before, after = g.grant(c)
			frame = c.CreateResponse.Append(h.Append(nil))
		}
		g.send(append(append(before, frame), after...)...)
	}
}

// notice is a message that nobody asked for.
func notice(m smbconn.Body) []byte {
	h := smb2msg.Header{Command: smb2msg.CommandOplockBreak, MessageID: 1<<64 - 1, Flags: smb2msg.FlagServerToRedir}
	return m.Append(h.Append(nil))
}

// broken is the notice of a lease break that is to be acknowledged.
func broken(key [16]byte, epoch uint16, to smb2msg.LeaseState) []byte {
	return notice(&smb2msg.LeaseBreakNotification{NewEpoch: epoch, Flags: smb2msg.LeaseBreakAckRequired, LeaseKey: key, NewLeaseState: to})
}

// ack is the next acknowledgment, which has to come.
func (g *granter) ack() smb2msg.LeaseBreak {
	g.t.Helper()
	synctest.Wait()
	var m smb2msg.LeaseBreak
	select {
	case b := <-g.acks:
		r := byteio.NewReader(b)
		if err := m.Decode(&r); err != nil {
			g.t.Errorf("acknowledgment: %v", err)
		}
	default:
		g.t.Error("no acknowledgment came")
	}
	return m
}

// oplockAck is the same for an oplock.
func (g *granter) oplockAck() smb2msg.OplockBreak {
	g.t.Helper()
	synctest.Wait()
	var m smb2msg.OplockBreak
	select {
	case b := <-g.acks:
		r := byteio.NewReader(b)
		if err := m.Decode(&r); err != nil {
			g.t.Errorf("acknowledgment: %v", err)
		}
	default:
		g.t.Error("no acknowledgment came")
	}
	return m
}

// noAck complains about one.
func (g *granter) noAck(when string) {
	g.t.Helper()
	synctest.Wait()
	select {
	case b := <-g.acks:
		g.t.Errorf("%s: an acknowledgment was sent: %x", when, b)
	default:
	}
}

// key is the key of the only lease of a path.
func key(t *testing.T, v *Volume, path string) [16]byte {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.caching.paths[path]
	if l == nil {
		t.Fatalf("%s has no lease", path)
	}
	return l.key
}

// nothingLeft complains about what should have ended with the last open.
func nothingLeft(t *testing.T, v *Volume) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &v.caching
	if n := len(c.asking) + len(c.leases) + len(c.paths) + len(c.oplocks) + len(c.early) + c.acks + len(v.files); n != 0 {
		t.Errorf("files %v, %+v are left", v.files, c)
	}
}

// asking is how to open for all rights.
func askingFor(r remote.Rights) remote.How {
	return remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.OrNew, Rights: r}
}
