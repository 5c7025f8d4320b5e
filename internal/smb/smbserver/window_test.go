package smbserver

import (
	"testing"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"pgregory.net/rapid"
)

// TestWindow compares a window with a set of ids, for a client that does as it
// likes.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 2, 7, 64, 300}).Draw(t, "max")
		w := newWindow(limit, Grant(rapid.IntRange(0, 3).Draw(t, "policy")))
		free := map[uint64]bool{0: true}
		high := uint64(1)
		var busy []int // charges of requests without a reply
		charged := 0
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				id := uint64(rapid.IntRange(0, int(high)+2).Draw(t, "id"))
				if len(free) > 0 && rapid.Bool().Draw(t, "lowest") {
					for id = 0; !free[id]; id++ {
					}
				}
				n := rapid.IntRange(1, 3).Draw(t, "charge")
				want := true
				for i := range uint64(n) {
					want = want && free[id+i]
				}
				if got := w.take(id, n); got != want {
					t.Fatalf("take(%d, %d) = %v, want %v", id, n, got, want)
				}
				if want {
					for i := range uint64(n) {
						delete(free, id+i)
					}
					busy, charged = append(busy, n), charged+n
				}
			},
			"give": func(t *rapid.T) {
				if len(busy) == 0 {
					t.Skip()
				}
				n := busy[0]
				busy, charged = busy[1:], charged-n
				got := w.give(rapid.IntRange(0, 400).Draw(t, "asked"), n, false)
				for range got {
					free[high] = true
					high++
				}
				if got < 0 || len(free)+charged > limit {
					t.Fatalf("granted %d: %d to use and %d in use, want at most %d", got, len(free), charged, limit)
				}
				if len(free)+charged == 0 {
					t.Fatal("the client is left without a credit")
				}
			},
		})
	})
}

func echo(h smb2msg.Header) message {
	h.Command = smb2msg.CommandEcho
	return message{hdr: h, body: &smb2msg.EchoRequest{}}
}

func TestGrants(t *testing.T) {
	for _, c := range []struct {
		cfg           Config
		asked, charge uint16
		want          uint16
	}{
		{Config{}, 10, 1, 10},
		{Config{}, 0, 1, 1},
		{Config{Credits: 20}, 100, 4, 4}, // all the others are there
		{Config{Credits: 20, Grant: GrantAll}, 0, 2, 2},
		{Config{Grant: GrantCharged}, 10, 3, 3},
		{Config{Grant: GrantOne}, 10, 3, 1},
	} {
		conn := logOn(t, start(t, c.cfg))
		conn.send(echo(smb2msg.Header{Credits: c.asked, CreditCharge: c.charge}))
		if got := conn.receive()[0].Credits; got != c.want {
			t.Errorf("%+v, asking for %d, charged %d: granted %d, want %d", c.cfg, c.asked, c.charge, got, c.want)
		}
	}
	// With one credit, there is always exactly one.
	conn := logOn(t, start(t, Config{Credits: 1}))
	for range 3 {
		conn.send(echo(smb2msg.Header{Credits: 100}))
		if got := conn.receive()[0].Credits; got != 1 {
			t.Errorf("of one credit, %d were granted", got)
		}
	}
}

// TestMessageIDs uses ids that are not there to be used.
func TestMessageIDs(t *testing.T) {
	for name, h := range map[string]func(c *client) smb2msg.Header{
		"used":         func(c *client) smb2msg.Header { return smb2msg.Header{MessageID: 1} },
		"too far":      func(c *client) smb2msg.Header { return smb2msg.Header{MessageID: c.next + 10000} },
		"charge":       func(c *client) smb2msg.Header { return smb2msg.Header{CreditCharge: 10000} },
		"twice at one": func(c *client) smb2msg.Header { return smb2msg.Header{MessageID: c.next + 3, CreditCharge: 2} },
	} {
		t.Run(name, func(t *testing.T) {
			c := logOn(t, start(t, Config{}))
			if name == "twice at one" {
				c.send(echo(smb2msg.Header{MessageID: c.next + 4}))
				c.receive()
			}
			c.send(echo(h(c)))
			c.ended()
		})
	}
	// Any order will do, each once.
	c := logOn(t, start(t, Config{}))
	base := c.next
	for _, i := range []uint64{5, 1, 0, 4, 2, 3} {
		c.send(echo(smb2msg.Header{MessageID: base + i}))
		if got := c.receive()[0]; got.Status != ntstatus.Success || got.MessageID != base+i {
			t.Fatalf("ECHO %d: %v for %d", base+i, got.Status, got.MessageID)
		}
	}
}

// TestCreditCharge sends requests that cost more than they pay.
func TestCreditCharge(t *testing.T) {
	s := start(t, Config{MaxRead: 1 << 20, MaxTransact: 1 << 20}, "file")
	c := logOn(t, s)
	id := c.open("file")
	for _, tc := range []struct {
		charge uint16
		length uint32
		want   ntstatus.Status
	}{
		{0, 65536, ntstatus.Success},
		{0, 65537, ntstatus.InvalidParameter},
		{1, 65536, ntstatus.Success},
		{1, 65537, ntstatus.InvalidParameter},
		{2, 131072, ntstatus.Success},
		{16, 1 << 20, ntstatus.Success},
		{17, 1<<20 + 1, ntstatus.InvalidParameter},
	} {
		for _, m := range []message{
			{hdr: smb2msg.Header{Command: smb2msg.CommandRead}, body: &smb2msg.ReadRequest{FileID: id, Length: tc.length}},
			{hdr: smb2msg.Header{Command: smb2msg.CommandQueryInfo}, body: &smb2msg.QueryInfoRequest{
				InfoType: smb2msg.InfoFile, FileInfoClass: 4, FileID: id, OutputBufferLength: tc.length,
			}},
		} {
			m.hdr.CreditCharge, m.hdr.Credits = tc.charge, 64
			c.send(m)
			if r := c.receive()[0]; r.Status != tc.want {
				t.Errorf("%v of %d bytes for %d credits: %v, want %v", r.Command, tc.length, tc.charge, r.Status, tc.want)
			}
		}
	}
}
