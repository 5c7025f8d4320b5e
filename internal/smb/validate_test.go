package smb

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// TestWhenNegotiationIsValidated counts the questions whether the negotiation was
// what it seemed: they are asked when 3.x was offered and less than 3.1.1 came
// back, and never by guests, who have no key to check the answer with.
func TestWhenNegotiationIsValidated(t *testing.T) {
	all := append([]smb2msg.Dialect{smb2msg.SMB202}, smbconn.DefaultDialects()...)
	old := all[:2]
	for _, c := range []struct {
		server  []string
		offered []smb2msg.Dialect
		chosen  string
		want    int64
	}{
		{nil, all, "3.1.1", 0},
		{nil, old, "2.1", 0},
		{nil, all[:1], "2.0.2", 0},
		{nil, all[:4], "3.0.2", 1},
		{nil, all[:3], "3.0", 1},
		{nil, []smb2msg.Dialect{smb2msg.SMB300}, "3.0", 1},
		{[]string{"2.0.2", "2.1", "3.0", "3.0.2"}, all, "3.0.2", 1},
		{[]string{"2.0.2", "2.1", "3.0"}, all, "3.0", 1},
		{[]string{"2.0.2", "2.1"}, all, "2.1", 1},
		{[]string{"2.0.2"}, all, "2.0.2", 1},
		{[]string{"2.0.2", "2.1"}, old, "2.1", 0},
		{[]string{"2.1"}, []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB311}, "2.1", 1},
	} {
		for who, client := range map[string]Config{
			"user":   {Credentials: auth.Credentials{User: "user", Password: "pass"}},
			"guest":  {Credentials: auth.Credentials{User: "mallory", Password: "x"}, Guest: true},
			"nobody": {Anonymous: true},
		} {
			srv := smbtest.NewUnstarted(smbtest.Config{Dialects: c.server, Guest: true, Anonymous: true})
			client.Dialects = c.offered
			nc, err := srv.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			s, err := Dial(t.Context(), nc, "server", client)
			if err != nil {
				t.Fatalf("%v offered as %s to %v: %v", c.offered, who, c.server, err)
			}
			if _, err := s.Mount(t.Context(), "share"); err != nil {
				t.Errorf("%v offered as %s to %v: Mount: %v", c.offered, who, c.server, err)
			}
			want := c.want
			if who != "user" {
				want = 0
			}
			i := s.Info()
			if got := i.Stats.Requests[smb2msg.CommandIoctl]; got != want || i.Dialect != c.chosen {
				t.Errorf("%v offered as %s to %v: %s, %d questions; want %s, %d", c.offered, who, c.server, i.Dialect, got, c.chosen, want)
			}
			s.Close(t.Context())
			srv.Close()
		}
	}
}

// Where things are in NEGOTIATE. See [MS-SMB2] 2.2.3 and 2.2.4.
const (
	requestDialectCount = smb2msg.HeaderSize + 2
	requestSecurity     = smb2msg.HeaderSize + 4
	requestCapabilities = smb2msg.HeaderSize + 8
	requestGUID         = smb2msg.HeaderSize + 12
	requestDialects     = smb2msg.HeaderSize + 36

	responseSecurity     = smb2msg.HeaderSize + 2
	responseDialect      = smb2msg.HeaderSize + 4
	responseGUID         = smb2msg.HeaderSize + 8
	responseCapabilities = smb2msg.HeaderSize + 24
)

// first changes the first frame only, which is the NEGOTIATE.
func first(change func(b []byte)) func(int, []byte) {
	return func(n int, b []byte) {
		if n == 0 {
			change(b)
		}
	}
}

// TestSomebodyChangesTheNegotiation puts a man in the middle, who cannot sign. No
// share may be mounted through what he has changed.
func TestSomebodyChangesTheNegotiation(t *testing.T) {
	put16 := func(at int, v uint16) func([]byte) {
		return func(b []byte) { byteio.Put16(b[at:], v) }
	}
	toggle := func(at int) func([]byte) { return func(b []byte) { b[at] ^= 1 } }
	upTo302 := []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302}
	upTo300 := upTo302[:2]
	encryption := func(at int) func([]byte) {
		return func(b []byte) { b[at] ^= byte(smb2msg.CapEncryption) }
	}
	// context finds a negotiate context of a response and changes its last byte.
	context := func(kind uint16, value byte) func([]byte) {
		return func(b []byte) {
			off := int(binary.LittleEndian.Uint32(b[smb2msg.HeaderSize+60:]))
			for range binary.LittleEndian.Uint16(b[smb2msg.HeaderSize+6:]) {
				n := int(binary.LittleEndian.Uint16(b[off+2:]))
				if binary.LittleEndian.Uint16(b[off:]) == kind {
					b[off+8+n-2] = value
					return
				}
				off = (off + 8 + n + 7) &^ 7
			}
			t.Errorf("no context %d", kind)
		}
	}
	srv := sambatest.Start(t, sambatest.Config{})
	for name, c := range map[string]struct {
		offered []smb2msg.Dialect // nil: all
		relay   relay
		fine    bool // nothing is wrong
	}{
		"nothing, 3.1.1": {nil, relay{}, true},
		"nothing, 3.0.2": {upTo302, relay{}, true},
		"nothing, 3.0":   {upTo300, relay{}, true},

		"offers 3.0.2 at most":           {nil, relay{up: first(put16(requestDialectCount, 3))}, false},
		"offers 3.0 at most":             {nil, relay{up: first(put16(requestDialectCount, 2))}, false},
		"offers 2.1 at most":             {nil, relay{up: first(put16(requestDialectCount, 1))}, false},
		"offers 3.0 instead of 3.0.2":    {upTo302, relay{up: first(put16(requestDialectCount, 2))}, false},
		"offers 2.1 instead of 3.0.2":    {upTo302, relay{up: first(put16(requestDialectCount, 1))}, false},
		"offers 2.1 instead of 3.0":      {upTo300, relay{up: first(put16(requestDialectCount, 1))}, false},
		"offers 2.1 thrice":              {upTo302, relay{up: first(func(b []byte) { put16(requestDialects+2, 0x210)(b); put16(requestDialects+4, 0x210)(b) })}, false},
		"has the client want signatures": {upTo302, relay{up: first(put16(requestSecurity, 2))}, false},
		"has the client not seal":        {upTo302, relay{up: first(encryption(requestCapabilities))}, false},
		"is another client":              {upTo302, relay{up: first(toggle(requestGUID))}, false},

		"chooses 3.0 for 3.0.2":          {upTo302, relay{down: first(put16(responseDialect, 0x300))}, false},
		"chooses 2.1 for 3.0.2":          {upTo302, relay{down: first(put16(responseDialect, 0x210))}, false},
		"chooses 2.1 for 3.0":            {upTo300, relay{down: first(put16(responseDialect, 0x210))}, false},
		"chooses 3.0.2 for 3.0":          {nil, relay{up: first(put16(requestDialectCount, 2)), down: first(put16(responseDialect, 0x302))}, false},
		"chooses 3.0.2 for 3.1.1":        {nil, relay{down: first(put16(responseDialect, 0x302))}, false},
		"chooses 2.1 for 3.1.1":          {nil, relay{down: first(put16(responseDialect, 0x210))}, false},
		"has the server not seal":        {upTo302, relay{down: first(encryption(responseCapabilities))}, false},
		"has the server want signatures": {upTo302, relay{down: first(put16(responseSecurity, 3))}, false},
		"is another server":              {upTo302, relay{down: first(toggle(responseGUID))}, false},

		"has the client want signatures, 3.1.1": {nil, relay{up: first(put16(requestSecurity, 2))}, false},
		"is another client, 3.1.1":              {nil, relay{up: first(toggle(requestGUID))}, false},
		"is another server, 3.1.1":              {nil, relay{down: first(toggle(responseGUID))}, false},
		"has the server want signatures, 3.1.1": {nil, relay{down: first(put16(responseSecurity, 3))}, false},
		"chooses another cipher":                {nil, relay{down: first(context(2, byte(smb2msg.CipherAES128CCM)))}, false},
		"chooses another signing algorithm":     {nil, relay{down: first(context(8, byte(smb2msg.SigningAESCMAC)))}, false},
		"changes the log-on": {nil, relay{up: func(n int, b []byte) {
			if n == 1 {
				b[smb2msg.HeaderSize+3] ^= 2 // SecurityMode
			}
		}}, false},
		"changes what the log-on brought, 3.1.1": {nil, relay{down: func(n int, b []byte) {
			if n == 2 {
				b[smb2msg.HeaderSize+2] |= byte(smb2msg.SessionFlagIsGuest)
			}
		}}, false},
		"changes what the log-on brought, 3.0.2": {upTo302, relay{down: func(n int, b []byte) {
			if n == 2 {
				b[smb2msg.HeaderSize+2] |= byte(smb2msg.SessionFlagIsNull)
			}
		}}, false},
		"changes the share, 3.1.1": {nil, relay{up: func(n int, b []byte) {
			if n == 3 {
				b[len(b)-2] ^= 1
			}
		}}, false},
		"answers the question himself": {upTo302, relay{
			up: first(put16(requestDialectCount, 2)),
			down: func(n int, b []byte) {
				const statusAt, flagsAt = 8, 16
				if n == 4 { // TREE_CONNECT was 3
					binary.LittleEndian.PutUint32(b[statusAt:], uint32(ntstatus.FileClosed))
					b[flagsAt] &^= byte(smb2msg.FlagSigned)
				}
			},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			addr := c.relay.listen(t, srv.Addr)
			cfg := Config{Dialects: c.offered, Credentials: auth.Credentials{User: srv.User, Password: srv.Password}}
			s, err := Dial(patient(t), dialTCP(t, addr), "127.0.0.1", cfg)
			if err == nil {
				defer s.Close(patient(t))
				_, err = s.Mount(patient(t), srv.Share)
			}
			if c.fine {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("mounted with %+v", s.Info())
			}
			detected := []error{smbconn.ErrSignature, smbconn.ErrDisconnected, ErrGuest, ntstatus.AccessDenied, smbconn.ErrProtocol}
			if !slices.ContainsFunc(detected, func(e error) bool { return errors.Is(err, e) }) {
				t.Errorf("%v", err)
			}
		})
	}
}
