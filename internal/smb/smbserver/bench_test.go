package smbserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// dialTCP connects over loopback.
func dialTCP(t testing.TB, s *Server) *client {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(far)
	t.Cleanup(func() { nc.Close() })
	return &client{t: t, nc: nc, br: bufio.NewReader(nc)}
}

// stream is READs or WRITEs of the same range of a file that a client sends
// without allocating anything or looking closely at the replies.
type stream struct {
	c      *client
	frame  []byte // not sealed
	sealed []byte
	reply  []byte
	mid    uint64
}

func newStream(c *client, cmd smb2msg.Command, id smb2msg.FileID, size int, mode string) *stream {
	m := message{hdr: smb2msg.Header{Command: cmd, CreditCharge: uint16((size-1)/65536 + 1), Credits: 512}}
	if cmd == smb2msg.CommandRead {
		m.body = &smb2msg.ReadRequest{FileID: id, Length: uint32(size)}
	} else {
		m.body = &smb2msg.WriteRequest{FileID: id, Length: uint32(size)}
		m.data = make([]byte, size)
	}
	s := &stream{c: c, mid: c.next, reply: make([]byte, size+4096)}
	c.sign = mode == "signed"
	s.frame = c.frame(m)
	c.seal = mode == "sealed"
	n := len(s.frame) + smbcrypt.TransformSize
	s.sealed = make([]byte, n, n+smbcrypt.TagSize)
	return s
}

func (s *stream) send() {
	binary.LittleEndian.PutUint64(s.frame[lengthSize+24:], s.mid)
	s.mid += uint64(binary.LittleEndian.Uint16(s.frame[lengthSize+6:]))
	frame := s.frame
	switch {
	case s.c.sign:
		s.c.signer.Sign(frame[lengthSize:])
	case s.c.seal:
		copy(s.sealed[headroom:], frame[lengthSize:])
		s.c.sealer.Seal(s.sealed[lengthSize:])
		frame = s.sealed
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthSize))
	}
	if _, err := s.c.nc.Write(frame); err != nil {
		s.c.t.Error(err)
	}
}

func (s *stream) receive() {
	prefix := s.reply[:lengthSize]
	if _, err := io.ReadFull(s.c.br, prefix); err != nil {
		s.c.t.Fatal(err)
	}
	msg := s.reply[:binary.BigEndian.Uint32(prefix)]
	if _, err := io.ReadFull(s.c.br, msg); err != nil {
		s.c.t.Fatal(err)
	}
	if s.c.seal {
		return
	}
	if status := ntstatus.Status(binary.LittleEndian.Uint32(msg[8:])); status != ntstatus.Success {
		s.c.t.Fatal(status)
	}
}

// dataFile connects over loopback, with credits, and opens a file of some size.
func dataFile(t testing.TB, size int) (*client, smb2msg.FileID) {
	fs := memfs.New(memfs.Config{})
	if err := fs.WriteFile("file", make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Shares: []Share{{Name: "share", Tree: Memory(fs)}}})
	c := dialTCP(t, s)
	c.negotiate()
	c.setUp("user", "pass")
	c.tree = c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\share`}).TreeID
	id := c.open("file")
	c.send(echo(smb2msg.Header{Credits: 2048}))
	c.receive()
	return c, id
}

// onData runs f for READs and WRITEs of one size under each protection.
func onData(f func(name string, cmd smb2msg.Command, mode string)) {
	for _, mode := range []string{"plain", "signed", "sealed"} {
		for _, cmd := range []smb2msg.Command{smb2msg.CommandRead, smb2msg.CommandWrite} {
			f(mode+"/"+cmd.String(), cmd, mode)
		}
	}
}

// BenchmarkData keeps eight READs or WRITEs of 1 MiB in flight.
func BenchmarkData(b *testing.B) {
	const size, depth = 1 << 20, 8
	onData(func(name string, cmd smb2msg.Command, mode string) {
		b.Run(name, func(b *testing.B) {
			c, id := dataFile(b, size)
			s := newStream(c, cmd, id, size, mode)
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			slots := make(chan struct{}, depth)
			go func() {
				for range b.N {
					slots <- struct{}{}
					s.send()
				}
			}()
			for range b.N {
				s.receive()
				<-slots
			}
		})
	})
}

// TestDataAllocs counts what a READ and a WRITE allocate in the server and in a
// client that allocates nothing.
func TestDataAllocs(t *testing.T) {
	const size = 256 << 10
	onData(func(name string, cmd smb2msg.Command, mode string) {
		t.Run(name, func(t *testing.T) {
			c, id := dataFile(t, size)
			s := newStream(c, cmd, id, size, mode)
			got := testing.AllocsPerRun(200, func() {
				s.send()
				s.receive()
			})
			if got >= 1 {
				t.Errorf("%v allocations per request, want none", got)
			}
		})
	})
}
