package smbserver

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// withFault runs a test against a server that does f to the first ECHO. Time is
// that of a bubble.
func withFault(t *testing.T, name string, f Fault, test func(t *testing.T, c *client)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, Config{}, "file")
			s.SetFaults(func(r Request) Fault {
				if r.Command == "ECHO" && r.N == 1 {
					return f
				}
				return Fault{}
			})
			test(t, logOn(t, s))
		})
	})
}

// mids are the MessageIds of n replies in a row.
func (c *client) mids(n int) (ids []uint64) {
	for range n {
		ids = append(ids, c.receive()[0].MessageID)
	}
	return ids
}

func TestFaults(t *testing.T) {
	withFault(t, "drop", Fault{Drop: true}, func(t *testing.T, c *client) {
		base := c.next
		c.send(echo(smb2msg.Header{}))
		c.send(echo(smb2msg.Header{}))
		if got := c.mids(1); got[0] != base+1 {
			t.Errorf("got the reply to %d, want that to %d alone", got, base+1)
		}
	})
	withFault(t, "cut", Fault{CutAt: 30}, func(t *testing.T, c *client) {
		c.send(echo(smb2msg.Header{}))
		if got, err := io.ReadAll(c.br); len(got) != 30 || err != nil {
			t.Errorf("got %d bytes, %v; want 30", len(got), err)
		}
	})
	withFault(t, "status", Fault{Status: ntstatus.InsufficientResources}, func(t *testing.T, c *client) {
		if got := c.do(smb2msg.CommandEcho, &smb2msg.EchoRequest{}).Status; got != ntstatus.InsufficientResources {
			t.Errorf("got %v", got)
		}
		if got := c.do(smb2msg.CommandEcho, &smb2msg.EchoRequest{}).Status; got != ntstatus.Success {
			t.Errorf("the next one got %v", got)
		}
	})
	withFault(t, "hold", Fault{Hold: 2}, func(t *testing.T, c *client) {
		base := c.next
		for range 4 {
			c.send(echo(smb2msg.Header{}))
			synctest.Wait()
		}
		if got, want := c.mids(4), []uint64{base + 1, base + 2, base, base + 3}; !slices.Equal(got, want) {
			t.Errorf("replies to %d, want %d", got, want)
		}
	})
	withFault(t, "duplicate", Fault{Duplicate: true}, func(t *testing.T, c *client) {
		base := c.next
		c.send(echo(smb2msg.Header{}))
		if got := c.mids(2); got[0] != base || got[1] != base {
			t.Errorf("replies to %d, want %d twice", got, base)
		}
	})
	withFault(t, "delay", Fault{Delay: time.Second}, func(t *testing.T, c *client) {
		base, from := c.next, time.Now()
		c.send(echo(smb2msg.Header{}))
		synctest.Wait()
		c.send(echo(smb2msg.Header{}))
		if got, want := c.mids(2), []uint64{base + 1, base}; !slices.Equal(got, want) || time.Since(from) != time.Second {
			t.Errorf("replies to %d after %v, want %d after 1s", got, time.Since(from), want)
		}
	})
	withFault(t, "interim", Fault{Interim: true, Delay: time.Second}, func(t *testing.T, c *client) {
		c.send(echo(smb2msg.Header{Credits: 5}))
		first, second := c.receive()[0], c.receive()[0]
		if first.Status != ntstatus.Pending || first.AsyncID == 0 || first.Credits != 5 {
			t.Errorf("first %v with AsyncId %d and %d credits", first.Status, first.AsyncID, first.Credits)
		}
		if second.Status != ntstatus.Success || second.AsyncID != first.AsyncID || second.Credits != 0 || second.MessageID != first.MessageID {
			t.Errorf("then %+v", second.Header)
		}
	})
	withFault(t, "interim, cancelled", Fault{Interim: true, Delay: time.Hour}, func(t *testing.T, c *client) {
		from := time.Now()
		c.send(echo(smb2msg.Header{}))
		id := c.receive()[0].AsyncID
		c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandCancel, Flags: smb2msg.FlagAsync, AsyncID: id}, body: &smb2msg.CancelRequest{}})
		if r := c.receive()[0]; r.Status != ntstatus.Cancelled || time.Since(from) != 0 {
			t.Errorf("got %v after %v", r.Status, time.Since(from))
		}
	})
	credits := 7
	withFault(t, "credits", Fault{Credits: &credits}, func(t *testing.T, c *client) {
		c.send(echo(smb2msg.Header{Credits: 1}))
		if got := c.receive()[0].Credits; got != 7 {
			t.Errorf("granted %d, want 7", got)
		}
	})
	withFault(t, "corrupt", Fault{Corrupt: -1}, func(t *testing.T, c *client) {
		c.send(echo(smb2msg.Header{}))
		if got := c.receive()[0].msg; got[len(got)-1] != 1 {
			t.Errorf("got %x", got)
		}
	})
	withFault(t, "mutate", Fault{Mutate: func(p []byte) []byte { return append(p, "more"...) }}, func(t *testing.T, c *client) {
		c.sign = true
		c.send(echo(smb2msg.Header{}))
		if got := c.receive()[0].msg; !bytes.HasSuffix(got, []byte("more")) {
			t.Errorf("got %x", got)
		}
	})
	withFault(t, "signature", Fault{BadSignature: true}, func(t *testing.T, c *client) {
		c.sign = true
		c.send(echo(smb2msg.Header{}))
		frame, err := c.readFrame()
		if err != nil || c.signer.Verify(frame) {
			t.Errorf("got a reply with a good signature, or none: %v", err)
		}
	})
	withFault(t, "seal", Fault{BadSignature: true}, func(t *testing.T, c *client) {
		c.seal = true
		c.send(echo(smb2msg.Header{}))
		frame, err := c.readFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.sealer.Open(frame); err != smbcrypt.ErrUnsealed {
			t.Errorf("a bad seal opens: %v", err)
		}
	})
}

// TestFaultChoice looks at what faults are chosen by.
func TestFaultChoice(t *testing.T) {
	s := start(t, Config{}, "dir/file")
	var got []Request
	s.SetFaults(func(r Request) Fault {
		r.MessageID = 0
		got = append(got, r)
		if r.Command == "READ" || r.Command == "WRITE" {
			return Fault{Short: 3}
		}
		return Fault{}
	})
	c := connect(t, s)
	c.negotiate()
	c.setUp("user", "pass")
	c.tree = c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\share`}).TreeID
	id := c.open(`dir\file`)
	if data, _ := c.read(id, 2, 100); string(data) != "nte" {
		t.Errorf("a short READ has %q", data)
	}
	r := c.do(smb2msg.CommandWrite, &smb2msg.WriteRequest{FileID: id, Offset: 1, Length: 5}, []byte("hello")...)
	var resp smb2msg.WriteResponse
	if c.body(r, &resp); resp.Count != 3 {
		t.Errorf("a short WRITE has %d", resp.Count)
	}
	c.send(
		message{hdr: smb2msg.Header{Command: smb2msg.CommandCreate}, body: opening("none")},
		chained(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: id}),
	)
	c.receive()
	want := []Request{
		{Command: "NEGOTIATE", N: 1, Conn: 1, Last: true},
		{Command: "SESSION_SETUP", N: 1, Conn: 1, Last: true},
		{Command: "SESSION_SETUP", N: 2, Conn: 1, Last: true},
		{Command: "TREE_CONNECT", N: 1, Conn: 1, Last: true},
		{Command: "CREATE", N: 1, Conn: 1, Name: "dir/file", Last: true},
		{Command: "READ", N: 1, Conn: 1, Name: "dir/file", Offset: 2, Length: 100, Last: true},
		{Command: "WRITE", N: 1, Conn: 1, Name: "dir/file", Offset: 1, Length: 5, Last: true},
		{Command: "CREATE", N: 2, Conn: 1, Name: "none"},
		{Command: "CLOSE", N: 1, Conn: 1, Name: "dir/file", Compound: 1, Last: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("chosen by\n%+v, want\n%+v", got, want)
	}
}

// TestDelay delays every request, and no more for there being many.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 50 * time.Millisecond
		s := start(t, Config{Delay: delay}, "file")
		from := time.Now()
		c := logOn(t, s)
		if got, want := time.Since(from), 4*delay; got != want {
			t.Errorf("logging on took %v, want %v", got, want)
		}
		from = time.Now()
		for range 30 {
			c.send(echo(smb2msg.Header{}))
		}
		c.mids(30)
		if got := time.Since(from); got != delay {
			t.Errorf("30 requests at once took %v, want %v", got, delay)
		}
		if got := s.Stats(); got.MaxInFlight != 30 || got.InFlight != 0 {
			t.Errorf("%d were in flight and %d are, want 30 and none", got.MaxInFlight, got.InFlight)
		}
	})
}

// TestConnectionLost ends connections with requests in every state.
func TestConnectionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, "file")
		c := logOn(t, s)
		id := c.open("")
		c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandChangeNotify}, body: &smb2msg.ChangeNotifyRequest{FileID: id}})
		c.receive()
		s.SetFaults(func(r Request) Fault {
			if r.N == 1 {
				return Fault{Delay: time.Hour}
			}
			return Fault{Hold: 5}
		})
		c.send(echo(smb2msg.Header{}))
		c.send(echo(smb2msg.Header{}))
		synctest.Wait()
		s.CloseConnections()
		c.ended()
		from := time.Now()
		s.Close()
		if took := time.Since(from); took != 0 {
			t.Errorf("closing took %v", took)
		}
		if n := s.Stats().InFlight; n != 0 {
			t.Errorf("%d requests are in flight on no connection", n)
		}
	})
}
