package smbconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// TestListsOfBuffersAreTheCallersAgain lets callers leave and change what they
// passed, before the reply comes.
func TestListsOfBuffersAreTheCallersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 64, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		into := [][]byte{make([]byte, 1000)}
		reading := start(ctx, c, readCall(into...))
		read := p.expect(smb2msg.CommandRead)
		out := [][]byte{make([]byte, 1000)}
		writing := start(ctx, c, &Call{Command: smb2msg.CommandWrite, Body: &smb2msg.WriteRequest{Length: 1000}, Out: out})
		write := p.expect(smb2msg.CommandWrite)
		cancel()
		<-reading
		<-writing
		into[0], out[0] = nil, nil
		p.expect(smb2msg.CommandCancel)
		p.expect(smb2msg.CommandCancel)
		p.send(data(read, pattern(1000, 1))...)
		p.reply(write, ntstatus.Success, 1, &smb2msg.WriteResponse{Count: 1000})
		synctest.Wait()
		if err := c.Err(); err != nil {
			t.Errorf("the connection ended: %v", err)
		}
		if got := c.Stats().Written; got != 1000 {
			t.Errorf("%d bytes written, want 1000", got)
		}
	})
}

// stubborn is a connection whose Read, once told to, returns only when it is
// let go, and has data even though Close came before.
type stubborn struct {
	net.Conn
	hold chan struct{} // non-nil: reading waits until it is closed
	held []byte
}

func (s *stubborn) Read(p []byte) (int, error) {
	if s.hold != nil {
		<-s.hold
		return copy(p, s.held), nil
	}
	return s.Conn.Read(p)
}

// TestDeadConnectionLeavesNoBufferInUse ends a connection whose reader is in
// the middle of one reply to a compound, and has not had the others.
func TestDeadConnectionLeavesNoBufferInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := netsim.New(netsim.Config{}).Pipe()
		defer server.Close()
		s := &stubborn{Conn: client}
		p := &peer{t, server}
		c := newConn(s, Config{})
		c.credits.balance = 10
		c.start()

		buf := make([]byte, 1000)
		create := &Call{Command: smb2msg.CommandCreate, Body: &smb2msg.CreateRequest{Name: "f"}}
		done := start(t.Context(), c, create, readCall(buf))
		p.frame()
		h := smb2msg.Header{Command: smb2msg.CommandRead, MessageID: 1}
		reply := bytes.Join(data(h, pattern(1000, 1)), nil)
		s.hold, s.held = make(chan struct{}), reply[readHead+100:]
		server.Write(binary.BigEndian.AppendUint32(nil, uint32(len(reply))))
		server.Write(reply[:readHead+100])
		synctest.Wait()

		closed := make(chan struct{})
		go func() { c.Close(); close(closed) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("Do returned (%v) with the reader still in its buffer", err)
		default:
		}
		close(s.hold)
		<-closed
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v, want %v", err, net.ErrClosed)
		}
	})
}
