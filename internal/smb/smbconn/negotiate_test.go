package smbconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// negotiation runs New against a server that is serve.
func negotiation(t *testing.T, cfg Config, serve func(p *peer)) (*Conn, error) {
	t.Helper()
	client, server := netsim.New(netsim.Config{}).Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(&peer{t, server})
	}()
	c, err := New(t.Context(), client, cfg)
	t.Cleanup(func() {
		if c != nil {
			c.Close()
		}
		server.Close()
		<-done
	})
	return c, err
}

// agreeing is a response that every offer of all dialects may get.
func agreeing(d smb2msg.Dialect) smb2msg.NegotiateResponse {
	m := smb2msg.NegotiateResponse{Dialect: d, MaxReadSize: 1 << 20, MaxWriteSize: 1 << 20, MaxTransactSize: 1 << 20}
	if d > smb2msg.SMB202 {
		m.Capabilities = smb2msg.CapLargeMTU
	}
	if d >= smb2msg.SMB300 {
		m.Capabilities |= smb2msg.CapEncryption
	}
	if d == smb2msg.SMB311 {
		m.Contexts = smb2msg.NegotiateContexts{
			HashAlgorithms:    []uint16{smb2msg.HashSHA512},
			Ciphers:           []uint16{smb2msg.CipherAES256GCM},
			SigningAlgorithms: []uint16{smb2msg.SigningAESGMAC},
		}
	}
	return m
}

// TestClientGUID is about who holds leases: who is named, else somebody new.
// 2.0.2 has no leases.
func TestClientGUID(t *testing.T) {
	guid := [16]byte{1, 2, 3}
	named := Config{ClientGUID: guid}
	if got := named.offer().ClientGUID; got != guid {
		t.Errorf("offered as %x, want %x", got, guid)
	}
	var unnamed Config
	if a, b := unnamed.offer(), unnamed.offer(); a.ClientGUID == b.ClientGUID {
		t.Errorf("two clients are %x", a.ClientGUID)
	}
	named.Dialects = []smb2msg.Dialect{smb2msg.SMB202}
	if m := named.offer(); m.ClientGUID != ([16]byte{}) || m.Capabilities != 0 {
		t.Errorf("2.0.2 is offered as %x with %x", m.ClientGUID, m.Capabilities)
	}
}

func TestNegotiateTakesWhatWasOffered(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		change func(m *smb2msg.NegotiateResponse)
		want   Negotiated // of which Dialect, sizes, Cipher and Signing count
		err    error      // with ErrProtocol: what else does not matter
	}{
		"3.1.1": {want: Negotiated{Dialect: smb2msg.SMB311, MaxRead: 1 << 20, MaxWrite: 1 << 20, MaxTransact: 1 << 20,
			Cipher: smbcrypt.AES256GCM, Signing: smbcrypt.AESGMAC}},
		"3.1.1 without choices": {change: func(m *smb2msg.NegotiateResponse) {
			m.Contexts.Ciphers, m.Contexts.SigningAlgorithms = nil, nil
		}, want: Negotiated{Dialect: smb2msg.SMB311, MaxRead: 1 << 20, MaxWrite: 1 << 20, MaxTransact: 1 << 20, Signing: smbcrypt.AESCMAC}},
		"3.1.1 that shares no cipher": {change: func(m *smb2msg.NegotiateResponse) {
			m.Contexts.Ciphers = []uint16{smb2msg.CipherNone}
		}, want: Negotiated{Dialect: smb2msg.SMB311, MaxRead: 1 << 20, MaxWrite: 1 << 20, MaxTransact: 1 << 20, Signing: smbcrypt.AESGMAC}},
		"3.0": {change: func(m *smb2msg.NegotiateResponse) { *m = agreeing(smb2msg.SMB300) },
			want: Negotiated{Dialect: smb2msg.SMB300, MaxRead: 1 << 20, MaxWrite: 1 << 20, MaxTransact: 1 << 20,
				Cipher: smbcrypt.AES128CCM, Signing: smbcrypt.AESCMAC}},
		"2.1 with limits beyond the frame": {change: func(m *smb2msg.NegotiateResponse) {
			*m = agreeing(smb2msg.SMB210)
			m.MaxReadSize, m.MaxWriteSize, m.MaxTransactSize = 1<<32-1, 1<<31, 1<<24
		}, want: Negotiated{Dialect: smb2msg.SMB210, MaxRead: maxFrame - 64<<10, MaxWrite: maxFrame - 64<<10, MaxTransact: maxFrame - 64<<10}},
		"2.1 without large requests": {change: func(m *smb2msg.NegotiateResponse) {
			*m = agreeing(smb2msg.SMB210)
			m.Capabilities = 0
		}, want: Negotiated{Dialect: smb2msg.SMB210, MaxRead: CreditUnit, MaxWrite: CreditUnit, MaxTransact: CreditUnit}},
		"2.0.2": {cfg: Config{Dialects: []smb2msg.Dialect{smb2msg.SMB202}},
			change: func(m *smb2msg.NegotiateResponse) { *m = agreeing(smb2msg.SMB202) },
			want:   Negotiated{Dialect: smb2msg.SMB202, MaxRead: CreditUnit, MaxWrite: CreditUnit, MaxTransact: CreditUnit}},

		"a dialect that was not offered":           {change: func(m *smb2msg.NegotiateResponse) { m.Dialect = smb2msg.SMB202 }, err: ErrProtocol},
		"the wildcard":                             {change: func(m *smb2msg.NegotiateResponse) { m.Dialect = smb2msg.Wildcard }, err: ErrProtocol},
		"a cipher that was not offered":            {cfg: Config{Ciphers: []smbcrypt.Cipher{smbcrypt.AES128GCM}}, err: ErrProtocol},
		"a signing algorithm that was not offered": {cfg: Config{Signings: []smbcrypt.Signing{smbcrypt.AESCMAC}}, err: ErrProtocol},
		"two ciphers": {change: func(m *smb2msg.NegotiateResponse) {
			m.Contexts.Ciphers = []uint16{smb2msg.CipherAES128GCM, smb2msg.CipherAES128CCM}
		}, err: ErrProtocol},
		"another hash": {change: func(m *smb2msg.NegotiateResponse) { m.Contexts.HashAlgorithms = []uint16{2} }, err: ErrProtocol},
		"no hash":      {change: func(m *smb2msg.NegotiateResponse) { m.Contexts.HashAlgorithms = nil }, err: ErrProtocol},
		"no reads":     {change: func(m *smb2msg.NegotiateResponse) { m.MaxReadSize = 0 }, err: ErrProtocol},
		"tiny writes":  {change: func(m *smb2msg.NegotiateResponse) { m.MaxWriteSize = 100 }, err: ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, err := negotiation(t, c.cfg, func(p *peer) {
					m := agreeing(smb2msg.SMB311)
					if c.change != nil {
						c.change(&m)
					}
					p.reply(p.expect(smb2msg.CommandNegotiate), ntstatus.Success, 1, &m)
				})
				if c.err != nil {
					var none *NegotiateError
					if !errors.Is(err, c.err) || errors.As(err, &none) {
						t.Errorf("%v, want %v", err, c.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				n := conn.Negotiated
				got := Negotiated{Dialect: n.Dialect, MaxRead: n.MaxRead, MaxWrite: n.MaxWrite, MaxTransact: n.MaxTransact,
					Cipher: n.Cipher, Signing: n.Signing}
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("%+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// TestNegotiateSealed demands what not every dialect can do.
func TestNegotiateSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := negotiation(t, Config{Seal: true}, func(p *peer) {
			m := agreeing(smb2msg.SMB210)
			p.reply(p.expect(smb2msg.CommandNegotiate), ntstatus.Success, 1, &m)
		})
		if err == nil {
			t.Error("2.1 seals, it seems")
		}
	})
}

// TestNegotiateFails is about which failures are a lack of a common dialect, and
// how they are worded.
func TestNegotiateFails(t *testing.T) {
	status := func(s ntstatus.Status) func(p *peer) {
		return func(p *peer) {
			p.reply(p.expect(smb2msg.CommandNegotiate), s, 1, &smb2msg.ErrorResponse{})
		}
	}
	for name, c := range map[string]struct {
		serve func(p *peer)
		err   error
		none  bool // no common dialect
	}{
		"not supported": {status(ntstatus.NotSupported), ntstatus.NotSupported, true},
		"hung up":       {func(p *peer) { p.frame(); p.nc.Close() }, ErrDisconnected, true},
		"SMB1": {func(p *peer) {
			p.frame()
			p.send([]byte("\xffSMB"), make([]byte, 60))
		}, ErrProtocol, true},
		"full":     {status(ntstatus.InsufficientResources), ntstatus.InsufficientResources, false},
		"garbage":  {func(p *peer) { p.frame(); p.send(pattern(100, 1)) }, ErrProtocol, false},
		"too long": {func(p *peer) { p.frame(); p.nc.Write([]byte{0, 2, 0, 0}) }, ErrProtocol, false},
		"no body": {func(p *peer) {
			p.send(message(p.expect(smb2msg.CommandNegotiate), ntstatus.Success, 1, &smb2msg.NegotiateResponse{})[:70])
		}, ErrProtocol, false},
		"silent": {func(p *peer) { p.frame() }, ErrTimeout, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := negotiation(t, Config{}, c.serve)
				var none *NegotiateError
				if got := errors.As(err, &none); got != c.none || !errors.Is(err, c.err) {
					t.Fatalf("%v (no common dialect: %v), want %v (%v)", err, got, c.err, c.none)
				}
				if want := []string{"2.1", "3.0", "3.0.2", "3.1.1"}; c.none && !slices.Equal(none.Offered, want) {
					t.Errorf("offered %q, want %q", none.Offered, want)
				}
			})
		})
	}
}

// TestProbeEnds redials a server that takes connections and says nothing.
func TestProbeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := netsim.New(netsim.Config{})
		cfg := Config{Redial: func(context.Context) (net.Conn, error) {
			client, server := link.Pipe()
			t.Cleanup(func() { server.Close() })
			return client, nil
		}}
		begin := time.Now()
		_, err := negotiation(t, cfg, func(p *peer) {
			p.reply(p.expect(smb2msg.CommandNegotiate), ntstatus.NotSupported, 1, &smb2msg.ErrorResponse{})
		})
		var none *NegotiateError
		if !errors.As(err, &none) || len(none.Server) > 0 {
			t.Errorf("%v, want a *NegotiateError that doesn't know the server's dialects", err)
		}
		if waited := time.Since(begin); waited > 15*time.Second {
			t.Errorf("took %v", waited)
		}
	})
}

// TestNoEchoBeforeTheDialect lets a server think about the dialect for so long
// that it would be asked whether it lives, if there were words for it already.
func TestNoEchoBeforeTheDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *peer
		c, err := negotiation(t, Config{Timeout: 40 * time.Second}, func(q *peer) {
			p = q
			h := p.expect(smb2msg.CommandNegotiate)
			<-time.After(35 * time.Second)
			m := agreeing(smb2msg.SMB210)
			p.reply(h, ntstatus.Success, 10, &m)
		})
		if err != nil {
			t.Fatal(err)
		}
		start(t.Context(), c, readCall(make([]byte, 1)))
		p.expect(smb2msg.CommandRead)
	})
}

// TestReplyRightBehindTheNegotiation makes the reader look at a frame while the
// negotiation may not have settled yet how large it may be.
func TestReplyRightBehindTheNegotiation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := negotiation(t, Config{}, func(p *peer) {
			h := p.expect(smb2msg.CommandNegotiate)
			m := agreeing(smb2msg.SMB210)
			p.reply(h, ntstatus.Success, 10, &m)
			p.reply(h, ntstatus.Success, 10, &m)
		})
		if err == nil {
			synctest.Wait()
			err = c.Err()
		}
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("%v, want %v", err, ErrProtocol)
		}
	})
}

// script is a connection to a server that has said everything before it is asked.
type script struct {
	net.Conn
	io.Reader
}

func (s script) Read(p []byte) (int, error)  { return s.Reader.Read(p) }
func (s script) Write(p []byte) (int, error) { return len(p), nil }

// FuzzProbe takes any answer to the question what a server speaks.
func FuzzProbe(f *testing.F) {
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	smb1 := append([]byte("\xffSMB\x72"), make([]byte, 60)...)
	smb1[32] = 17
	f.Add(frame(smb1))
	wildcard, newest := agreeing(smb2msg.Wildcard), agreeing(smb2msg.SMB311)
	h := smb2msg.Header{Command: smb2msg.CommandNegotiate}
	f.Add(slices.Concat(frame(message(h, 0, 1, &wildcard)), frame(message(h, 0, 1, &newest))))
	f.Add(frame(message(h, ntstatus.NotSupported, 1, &smb2msg.ErrorResponse{})))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := probe(script{Reader: bytes.NewReader(b)}); err == nil && len(got) > 1 {
			t.Errorf("%q", got)
		}
	})
}
