package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pagewire/pagewire/internal/byteio"
)

// NegotiateFlags of NTLM. See [MS-NLMP] 2.2.2.5.
const (
	flagUnicode          = 0x00000001
	flagRequestTarget    = 0x00000004
	flagSign             = 0x00000010
	flagSeal             = 0x00000020
	flagNTLM             = 0x00000200
	flagAnonymous        = 0x00000800
	flagAlwaysSign       = 0x00008000
	flagTargetTypeServer = 0x00020000
	flagExtendedSecurity = 0x00080000
	flagTargetInfo       = 0x00800000
	flagVersion          = 0x02000000
	flag128              = 0x20000000
	flagKeyExchange      = 0x40000000
	flag56               = 0x80000000
)

// What both sides of ours ask for, and what they cannot do without: no server or
// client that is younger than NTLMv2 itself lacks it.
const (
	wantFlags = flagUnicode | flagRequestTarget | flagSign | flagNTLM | flagAlwaysSign | flagExtendedSecurity |
		flagTargetInfo | flagVersion | flag128 | flagKeyExchange | flag56
	needFlags = flagUnicode | flagExtendedSecurity | flag128
)

const (
	typeNegotiate    = 1
	typeChallenge    = 2
	typeAuthenticate = 3
)

const (
	ntlmSignature = "NTLMSSP\x00"

	// What goes in is the version of a Windows that knows it all, 10.0, and of
	// NTLMSSP, 15. See [MS-NLMP] 2.2.2.10.
	ntlmVersion = 0x0F000000_0000000A
)

var errNTLMMessage = errors.New("malformed NTLM message")

// readHeader checks the start that the messages share. See [MS-NLMP] 2.2.1.
func readHeader(r *byteio.Reader, typ uint32) error {
	if string(r.Bytes(int64(len(ntlmSignature)))) != ntlmSignature || r.Uint32() != typ {
		return r.Fail(errNTLMMessage)
	}
	return r.Err()
}

// readField takes the length and offset of a field, and the field.
func readField(r *byteio.Reader) []byte {
	n := r.Uint16()
	r.Skip(2) // maximum length
	return r.At(int64(r.Uint32()), int64(n))
}

// A fieldWriter appends a message whose fields lie behind its fixed part.
type fieldWriter struct{ b []byte }

func newFieldWriter(typ uint32) fieldWriter {
	return fieldWriter{byteio.Append32([]byte(ntlmSignature), typ)}
}

// reserve appends room for a length and an offset, and returns where.
func (w *fieldWriter) reserve() int {
	w.b = byteio.AppendZero(w.b, 8)
	return len(w.b) - 8
}

func (w *fieldWriter) fill(at int, p []byte) {
	byteio.Put16(w.b[at:], uint16(len(p)))
	byteio.Put16(w.b[at+2:], uint16(len(p)))
	byteio.Put32(w.b[at+4:], uint32(len(w.b)))
	w.b = append(w.b, p...)
}

// negotiateMsg opens a logon. Names of domain and workstation, which nobody
// uses, are left out and skipped. See [MS-NLMP] 2.2.1.1.
type negotiateMsg struct{ flags uint32 }

func (m *negotiateMsg) Append(b []byte) []byte {
	b = append(b, ntlmSignature...)
	b = byteio.Append32(b, typeNegotiate)
	b = byteio.Append32(b, m.flags)
	b = byteio.AppendZero(b, 16)
	return byteio.Append64(b, ntlmVersion)
}

func (m *negotiateMsg) Decode(r *byteio.Reader) error {
	readHeader(r, typeNegotiate)
	m.flags = r.Uint32()
	return r.Err()
}

// challengeMsg is the server's answer. See [MS-NLMP] 2.2.1.2.
type challengeMsg struct {
	targetName      string
	flags           uint32
	serverChallenge [8]byte
	targetInfo      []byte
}

func (m *challengeMsg) Append(b []byte) []byte {
	w := newFieldWriter(typeChallenge)
	name := w.reserve()
	w.b = byteio.Append32(w.b, m.flags)
	w.b = append(w.b, m.serverChallenge[:]...)
	w.b = byteio.AppendZero(w.b, 8)
	info := w.reserve()
	w.b = byteio.Append64(w.b, ntlmVersion)
	w.fill(name, byteio.AppendUTF16(nil, m.targetName))
	w.fill(info, m.targetInfo)
	return append(b, w.b...)
}

// Decode aliases the message in targetInfo.
func (m *challengeMsg) Decode(r *byteio.Reader) error {
	readHeader(r, typeChallenge)
	m.targetName = byteio.UTF16(readField(r))
	m.flags = r.Uint32()
	r.Copy(m.serverChallenge[:])
	if m.flags&flagTargetInfo != 0 {
		r.Skip(8)
		m.targetInfo = readField(r)
	}
	return r.Err()
}

// authenticateMsg is the client's proof. See [MS-NLMP] 2.2.1.3.
type authenticateMsg struct {
	lmResponse, ntResponse    []byte
	domain, user, workstation string
	encryptedKey              []byte
	flags                     uint32
}

const offNTLMMIC = 72

func (m *authenticateMsg) Append(b []byte) []byte {
	w := newFieldWriter(typeAuthenticate)
	lm, nt := w.reserve(), w.reserve()
	domain, user, workstation := w.reserve(), w.reserve(), w.reserve()
	key := w.reserve()
	w.b = byteio.Append32(w.b, m.flags)
	w.b = byteio.Append64(w.b, ntlmVersion)
	w.b = byteio.AppendZero(w.b, 16) // the MIC, which needs the whole message
	w.fill(domain, byteio.AppendUTF16(nil, m.domain))
	w.fill(user, byteio.AppendUTF16(nil, m.user))
	w.fill(workstation, byteio.AppendUTF16(nil, m.workstation))
	w.fill(lm, m.lmResponse)
	w.fill(nt, m.ntResponse)
	w.fill(key, m.encryptedKey)
	return append(b, w.b...)
}

// Decode aliases the message.
func (m *authenticateMsg) Decode(r *byteio.Reader) error {
	readHeader(r, typeAuthenticate)
	m.lmResponse, m.ntResponse = readField(r), readField(r)
	domain, user, workstation := readField(r), readField(r), readField(r)
	m.encryptedKey = readField(r)
	m.flags = r.Uint32()
	m.domain, m.user, m.workstation = byteio.UTF16(domain), byteio.UTF16(user), byteio.UTF16(workstation)
	return r.Err()
}

// AvIds of attributes. See [MS-NLMP] 2.2.2.1.
const (
	avEOL              = 0
	avNbComputerName   = 1
	avNbDomainName     = 2
	avDNSComputerName  = 3
	avDNSDomainName    = 4
	avFlags            = 6
	avTimestamp        = 7
	avSingleHost       = 8
	avTargetName       = 9
	avChannelBindings  = 10
	avFlagMICPresent   = 0x00000002
	maxTargetInfoBytes = 0xF000 // so that what we add leaves lengths in 16 bits
)

// avPair is an attribute of a server, or of a client's view of it.
type avPair struct {
	id    uint16
	value []byte
}

// decodeAvPairs reads pairs up to their end mark. Values alias r's message.
func decodeAvPairs(r *byteio.Reader) (pairs []avPair, err error) {
	for {
		id, n := r.Uint16(), r.Uint16()
		value := r.Bytes(int64(n))
		if r.Err() != nil {
			return nil, fmt.Errorf("NTLM target information: %w", r.Err())
		}
		if id == avEOL {
			return pairs, nil
		}
		pairs = append(pairs, avPair{id, value})
	}
}

func appendAvPairs(b []byte, pairs []avPair) []byte {
	for _, p := range pairs {
		b = byteio.Append16(b, p.id)
		b = byteio.Append16(b, uint16(len(p.value)))
		b = append(b, p.value...)
	}
	return byteio.AppendZero(b, 4)
}

// findAv returns the value of a pair of n bytes, nil without one.
func findAv(pairs []avPair, id uint16, n int) []byte {
	i := slices.IndexFunc(pairs, func(p avPair) bool { return p.id == id })
	if i < 0 || len(pairs[i].value) != n {
		return nil
	}
	return pairs[i].value
}

func avFlagsOf(pairs []avPair) uint32 {
	if v := findAv(pairs, avFlags, 4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}
