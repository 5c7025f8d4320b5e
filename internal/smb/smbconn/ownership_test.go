package smbconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

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

// TestCancelledReadOnASocket is TestCancelledReadGivesItsBuffersBack for the way
// that payloads take from a real socket.
func TestCancelledReadOnASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := &peer{t, server}
	c := newConn(client, Config{})
	if c.src.raw == nil && canReadv {
		t.Fatal("payloads take a detour")
	}
	c.credits.balance = 100
	c.largest.Store(1 << 20)
	c.start()
	defer c.Close()

	// Where the reader is when the caller leaves, nobody knows: try many places.
	for part := 0; part <= 65536; part += 1311 {
		const size = 65536
		buf := make([]byte, size)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Do(ctx, readCall(buf[:1000], buf[1000:50_000], buf[50_000:])) }()
		reply := bytes.Join(data(p.expect(smb2msg.CommandRead), pattern(size, 1)), nil)
		server.Write(binary.BigEndian.AppendUint32(nil, uint32(len(reply))))
		server.Write(reply[:readHead+part])
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) || err == nil && part < size {
			t.Fatalf("%d bytes sent: %v, want %v", part, err, context.Canceled)
		} else if err == nil {
			break // it was faster
		}
		canary := pattern(size, 99)
		copy(buf, canary)
		p.expect(smb2msg.CommandCancel)
		server.Write(reply[readHead+part:])
		// The next reply is behind all of it.
		next := make([]byte, size)
		go func() { done <- c.Do(t.Context(), readCall(next[:1], next[1:])) }()
		p.send(data(p.expect(smb2msg.CommandRead), pattern(size, 2))...)
		if err := <-done; err != nil {
			t.Fatalf("%d bytes sent: the next read: %v", part, err)
		}
		if !bytes.Equal(buf, canary) {
			t.Errorf("%d bytes sent: the buffer was written to after the read returned", part)
		}
		if !bytes.Equal(next, pattern(size, 2)) {
			t.Errorf("%d bytes sent: the next reply is not what was sent", part)
		}
	}
}

// TestCancelledReadBehindAStuckWrite gives up on a read that is not on the wire
// yet, since somebody else's write is stuck there. It is sent all the same, for
// the server waits for its MessageId, and then cancelled.
func TestCancelledReadBehindAStuckWrite(t *testing.T) {
	for _, seal := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link := netsim.New(netsim.Config{})
			c, p := connectOver(t, link, 64, Config{})
			k := newKeys(t)
			k.client.Seal = seal
			c.Secure(k.client)
			link.Stall(netsim.Up)
			const size = 1 << 20
			var writes []<-chan error
			for range sealedAtOnce + 1 {
				writes = append(writes, start(t.Context(), c, &Call{Command: smb2msg.CommandWrite, Body: &smb2msg.WriteRequest{Length: size},
					Out: [][]byte{make([]byte, size)}, Charge: 1}))
			}
			ctx, cancel := context.WithCancel(t.Context())
			buf := make([]byte, 10)
			begin := time.Now()
			reading := start(ctx, c, readCall(buf))
			cancel()
			if err := <-reading; !errors.Is(err, context.Canceled) || time.Since(begin) > 0 {
				t.Errorf("%v after %v, want %v at once", err, time.Since(begin), context.Canceled)
			}
			link.Resume(netsim.Up)
			seen := map[smb2msg.Command]int{}
			for range len(writes) + 2 {
				h := k.open(t, p.frame())
				h.Flags = 0
				seen[h.Command]++
				var reply []byte
				switch h.Command {
				case smb2msg.CommandWrite:
					reply = message(h, ntstatus.Success, 1, &smb2msg.WriteResponse{Count: size})
				case smb2msg.CommandRead:
					reply = bytes.Join(data(h, pattern(10, 1)), nil)
				case smb2msg.CommandCancel:
					if seen[smb2msg.CommandRead] == 0 {
						t.Error("cancelled before it was sent")
					}
					continue
				}
				if seal {
					reply = k.seal(reply)
				}
				p.send(reply)
			}
			for _, w := range writes {
				if err := <-w; err != nil {
					t.Errorf("write: %v", err)
				}
			}
			synctest.Wait()
			if seen[smb2msg.CommandRead] != 1 || seen[smb2msg.CommandCancel] != 1 || !bytes.Equal(buf, make([]byte, 10)) {
				t.Errorf("sent %v; buffer %x", seen, buf)
			}
			if err := c.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
