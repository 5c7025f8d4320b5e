package smbserver

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// small is the largest payload without large MTU.
const small = 64 << 10

var errTwice = errors.New("second NEGOTIATE")

// negotiate answers a NEGOTIATE. See [MS-SMB2] 3.3.5.4.
func (r *request) negotiate() ntstatus.Status {
	c, s := r.x.c, r.x.c.srv
	if c.terms.Load() != nil {
		r.x.fatal = errTwice
		return ntstatus.Success
	}
	var m smb2msg.NegotiateRequest
	if !r.decode(&m) {
		return ntstatus.InvalidParameter
	}
	var dialect smb2msg.Dialect
	for _, d := range m.Dialects {
		if slices.Contains(s.cfg.Dialects, d) {
			dialect = max(dialect, d)
		}
	}
	if dialect == 0 {
		return ntstatus.NotSupported
	}
	if dialect == smb2msg.SMB311 && !slices.Contains(m.Contexts.HashAlgorithms, smb2msg.HashSHA512) {
		if len(m.Contexts.HashAlgorithms) == 0 {
			return ntstatus.InvalidParameter
		}
		return ntstatus.SmbNoPreauthIntegrityHashOverlap
	}
	// The request outlives the frame it came in.
	m.Contexts.Salt, m.Dialects = nil, slices.Clone(m.Dialects)
	t := s.settle(dialect, &m)
	if dialect == smb2msg.SMB311 {
		t.preauth.Update(r.msg)
		r.after = func(reply []byte) {
			t.preauth.Update(reply)
			c.terms.Store(t)
		}
	} else {
		c.terms.Store(t)
	}
	return r.replyNegotiate(t)
}

// settle says what a dialect and the client's wishes come to.
func (s *Server) settle(dialect smb2msg.Dialect, m *smb2msg.NegotiateRequest) *terms {
	t := &terms{
		dialect: dialect, client: *m,
		transact: s.cfg.MaxTransact, read: s.cfg.MaxRead, write: s.cfg.MaxWrite,
		security: smb2msg.SigningEnabled,
		signing:  smbcrypt.DefaultSigning(uint16(dialect)),
	}
	if s.cfg.RequireSigning {
		t.security |= smb2msg.SigningRequired
	}
	switch dialect {
	case smb2msg.SMB202, smb2msg.Wildcard:
		t.transact, t.read, t.write = min(t.transact, small), min(t.read, small), min(t.write, small)
	default:
		t.multiCredit = true
		t.capabilities |= smb2msg.CapLargeMTU
		if !s.cfg.NoLeases {
			t.capabilities |= smb2msg.CapLeasing
		}
	}
	switch dialect {
	case smb2msg.SMB300, smb2msg.SMB302:
		if m.Capabilities&smb2msg.CapEncryption != 0 && slices.Contains(s.cfg.Ciphers, smbcrypt.AES128CCM) {
			t.cipher = smbcrypt.AES128CCM
			t.capabilities |= smb2msg.CapEncryption
		}
	case smb2msg.SMB311:
		t.cipher, _ = choose(s.cfg.Ciphers, m.Contexts.Ciphers)
		if signing, ok := choose(s.cfg.Signings, m.Contexts.SigningAlgorithms); ok {
			t.signing = signing
		}
	}
	return t
}

// choose returns the first of ours that is among theirs.
func choose[T ~uint16](ours []T, theirs []uint16) (T, bool) {
	for _, v := range ours {
		if slices.Contains(theirs, uint16(v)) {
			return v, true
		}
	}
	return 0, false
}

func (r *request) replyNegotiate(t *terms) ntstatus.Status {
	s := r.x.c.srv
	m := smb2msg.NegotiateResponse{
		SecurityMode:    t.security,
		Dialect:         t.dialect,
		ServerGUID:      s.guid,
		Capabilities:    t.capabilities,
		MaxTransactSize: uint32(t.transact),
		MaxReadSize:     uint32(t.read),
		MaxWriteSize:    uint32(t.write),
		SystemTime:      fscc.FiletimeOf(time.Now()),
		SecurityBuffer:  auth.Hint(),
	}
	if t.dialect == smb2msg.SMB311 {
		m.Contexts.HashAlgorithms = []uint16{smb2msg.HashSHA512}
		m.Contexts.Salt = make([]byte, 32)
		rand.Read(m.Contexts.Salt)
		if len(t.client.Contexts.Ciphers) > 0 {
			m.Contexts.Ciphers = []uint16{uint16(t.cipher)}
		}
		if len(t.client.Contexts.SigningAlgorithms) > 0 {
			m.Contexts.SigningAlgorithms = []uint16{uint16(t.signing)}
		}
	}
	return r.reply(&m)
}

// multiProtocol chooses among the dialects of an SMB1 NEGOTIATE, 0 if there is
// none to choose. See [MS-SMB2] 3.3.5.3.1 and 3.3.5.3.2.
func (s *Server) multiProtocol(names string) smb2msg.Dialect {
	if strings.Contains(names, "\x02SMB 2.???\x00") && slices.ContainsFunc(s.cfg.Dialects, func(d smb2msg.Dialect) bool {
		return d > smb2msg.SMB202
	}) {
		return smb2msg.Wildcard
	}
	if strings.Contains(names, "\x02SMB 2.002\x00") && slices.Contains(s.cfg.Dialects, smb2msg.SMB202) {
		return smb2msg.SMB202
	}
	return 0
}
