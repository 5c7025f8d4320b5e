package smbconn

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// Negotiated is what client and server agreed on.
type Negotiated struct {
	Dialect      smb2msg.Dialect
	Capabilities smb2msg.Capabilities // the server's
	ServerGUID   [16]byte
	ServerMode   smb2msg.SecurityMode
	MaxTransact  int
	MaxRead      int
	MaxWrite     int
	Cipher       smbcrypt.Cipher // 0: none in common
	Signing      smbcrypt.Signing
	Token        []byte           // the server's first security token
	Preauth      smbcrypt.Preauth // after the NEGOTIATE response; 3.1.1 only
	Offered      smb2msg.NegotiateRequest
	RoundTrip    time.Duration // of the negotiation
	Clock        time.Duration // how far the server's clock was ahead of ours then, about
}

// NegotiateError says that the two sides have no dialect in common.
type NegotiateError struct {
	Offered []string
	Server  []string // empty: could not be found out
	Err     error    // the server's answer
}

func (e *NegotiateError) Error() string {
	server := "did not say what it speaks"
	if len(e.Server) > 0 {
		server = "speaks " + strings.Join(e.Server, ", ")
	}
	return fmt.Sprintf("no common dialect: offered %s; the server %s (%v)",
		strings.Join(e.Offered, ", "), server, e.Err)
}

func (e *NegotiateError) Unwrap() error { return e.Err }

const (
	// CreditUnit is the payload that one credit pays for. See [MS-SMB2] 3.1.5.2.
	CreditUnit = 64 << 10
	// smallest that the server's limits may be, as the rest of this package
	// divides by them.
	smallestLimit = 4 << 10
)

// Charge is how many credits a payload of n bytes costs.
func Charge(n int) int { return max(1, (n+CreditUnit-1)/CreditUnit) }

// DefaultDialects are offered when nobody says which.
func DefaultDialects() []smb2msg.Dialect {
	return []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311}
}

// offer builds the NEGOTIATE request. See [MS-SMB2] 3.2.4.2.2.2.
func (cfg *Config) offer() smb2msg.NegotiateRequest {
	m := smb2msg.NegotiateRequest{
		SecurityMode: smb2msg.SigningEnabled,
		Dialects:     cfg.Dialects,
	}
	if len(m.Dialects) == 0 {
		m.Dialects = DefaultDialects()
	}
	if cfg.Sign {
		m.SecurityMode = smb2msg.SigningRequired
	}
	newest := slices.Max(m.Dialects)
	if newest > smb2msg.SMB202 {
		m.Capabilities = smb2msg.CapLargeMTU | smb2msg.CapLeasing
		m.ClientGUID = cfg.ClientGUID
		if m.ClientGUID == ([16]byte{}) {
			rand.Read(m.ClientGUID[:])
		}
	}
	if newest >= smb2msg.SMB300 {
		m.Capabilities |= smb2msg.CapEncryption
	}
	if newest >= smb2msg.SMB311 {
		c := &m.Contexts
		c.HashAlgorithms = []uint16{smb2msg.HashSHA512}
		c.Salt = make([]byte, 32)
		rand.Read(c.Salt)
		ciphers := cfg.Ciphers
		if ciphers == nil {
			ciphers = []smbcrypt.Cipher{smbcrypt.AES128GCM, smbcrypt.AES128CCM, smbcrypt.AES256GCM, smbcrypt.AES256CCM}
		}
		for _, id := range ciphers {
			c.Ciphers = append(c.Ciphers, uint16(id))
		}
		signings := cfg.Signings
		if signings == nil {
			signings = []smbcrypt.Signing{smbcrypt.AESGMAC, smbcrypt.AESCMAC, smbcrypt.HMACSHA256}
		}
		for _, id := range signings {
			c.SigningAlgorithms = append(c.SigningAlgorithms, uint16(id))
		}
		c.NetName = cfg.ServerName
	}
	return m
}

// negotiate settles the dialect and everything that comes with it.
func (c *Conn) negotiate(ctx context.Context) error {
	c.Offered = c.cfg.offer()
	call := &Call{Command: smb2msg.CommandNegotiate, Body: &c.Offered}
	err := c.Do(ctx, call)
	if err == nil && call.Header.Status != ntstatus.Success {
		err = call.Header.Status
	}
	if err != nil {
		if ctx.Err() == nil && disagrees(err) {
			return c.disagreement(ctx, err)
		}
		return fmt.Errorf("negotiate: %w", err)
	}
	var m smb2msg.NegotiateResponse
	r := byteio.NewReader(call.reply)
	r.Skip(smb2msg.HeaderSize)
	if err := m.Decode(&r); err != nil {
		return fmt.Errorf("negotiate: %w", malformed("%w", err))
	}
	if err := c.agree(&m); err != nil {
		return fmt.Errorf("negotiate: %w", err)
	}
	c.RoundTrip = call.Done.Sub(call.Sent)
	c.Clock = m.SystemTime.Time().Sub(call.Done)
	if c.Dialect == smb2msg.SMB311 {
		c.Preauth.Update(call.frame)
		c.Preauth.Update(call.reply)
	}
	c.cfg.Logger.Debug("negotiated", "dialect", c.Dialect, "signing", c.Signing, "cipher", c.Cipher,
		"maxread", c.MaxRead, "maxwrite", c.MaxWrite)
	return nil
}

// agree checks the server's choice and keeps it. See [MS-SMB2] 3.2.5.2.
func (c *Conn) agree(m *smb2msg.NegotiateResponse) error {
	if !slices.Contains(c.Offered.Dialects, m.Dialect) {
		return malformed("server chose dialect %v, which was not offered", m.Dialect)
	}
	n := Negotiated{
		Offered:      c.Offered,
		Dialect:      m.Dialect,
		Capabilities: m.Capabilities,
		ServerGUID:   m.ServerGUID,
		ServerMode:   m.SecurityMode,
		Signing:      smbcrypt.DefaultSigning(uint16(m.Dialect)),
		Token:        slices.Clone(m.SecurityBuffer),
	}
	limit := int64(maxFrame - 64<<10)
	if m.Dialect == smb2msg.SMB202 || m.Capabilities&smb2msg.CapLargeMTU == 0 {
		limit = CreditUnit // one credit pays for all there is
	}
	for _, l := range []struct {
		to   *int
		size uint32
	}{{&n.MaxTransact, m.MaxTransactSize}, {&n.MaxRead, m.MaxReadSize}, {&n.MaxWrite, m.MaxWriteSize}} {
		if l.size < smallestLimit {
			return malformed("server takes requests of %d bytes at most", l.size)
		}
		*l.to = int(min(int64(l.size), limit))
	}

	switch ctx := &m.Contexts; {
	case m.Dialect == smb2msg.SMB311:
		if !slices.Equal(ctx.HashAlgorithms, []uint16{smb2msg.HashSHA512}) {
			return malformed("server chose preauthentication hash %v", ctx.HashAlgorithms)
		}
		if len(ctx.Ciphers) == 1 && ctx.Ciphers[0] != smb2msg.CipherNone {
			if !slices.Contains(c.Offered.Contexts.Ciphers, ctx.Ciphers[0]) {
				return malformed("server chose %v, which was not offered", smbcrypt.Cipher(ctx.Ciphers[0]))
			}
			n.Cipher = smbcrypt.Cipher(ctx.Ciphers[0])
		}
		if len(ctx.SigningAlgorithms) == 1 {
			if !slices.Contains(c.Offered.Contexts.SigningAlgorithms, ctx.SigningAlgorithms[0]) {
				return malformed("server chose %v, which was not offered", smbcrypt.Signing(ctx.SigningAlgorithms[0]))
			}
			n.Signing = smbcrypt.Signing(ctx.SigningAlgorithms[0])
		}
	case m.Dialect >= smb2msg.SMB300 && m.Capabilities&smb2msg.CapEncryption != 0:
		n.Cipher = smbcrypt.AES128CCM
	}
	if c.cfg.Seal && n.Cipher == 0 {
		return fmt.Errorf("server cannot seal with %v", m.Dialect)
	}
	c.Negotiated = n
	c.largest.Store(int64(max(n.MaxRead, n.MaxTransact)))
	return nil
}

// ValidateRequest repeats what was offered, for FSCTL_VALIDATE_NEGOTIATE_INFO.
func (n *Negotiated) ValidateRequest() smb2msg.ValidateNegotiateInfoRequest {
	return smb2msg.ValidateNegotiateInfoRequest{
		Capabilities: n.Offered.Capabilities,
		GUID:         n.Offered.ClientGUID,
		SecurityMode: n.Offered.SecurityMode,
		Dialects:     n.Offered.Dialects,
	}
}

// Validate checks that the server, under its signature, still says what it
// said unsigned. See [MS-SMB2] 3.2.5.5.
func (n *Negotiated) Validate(m *smb2msg.ValidateNegotiateInfoResponse) error {
	if m.Dialect != n.Dialect || m.GUID != n.ServerGUID || m.SecurityMode != n.ServerMode || m.Capabilities != n.Capabilities {
		return fmt.Errorf("%w: somebody changed the negotiation", ErrSignature)
	}
	return nil
}
