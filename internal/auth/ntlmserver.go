package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/asn1"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
)

// ServerConfig is whom a server lets in, and what it calls itself.
type ServerConfig struct {
	Name   string // of the computer
	Domain string // empty for a server on its own: Name
	// Lookup returns the password of a user, in a domain as the client wrote it.
	Lookup func(user, domain string) (password string, ok bool)
	// Guest lets users in whom Lookup does not know; Anonymous, those without
	// a name.
	Guest, Anonymous bool
}

// Identity is who a client turned out to be.
type Identity struct {
	User, Domain     string
	Guest, Anonymous bool
}

// NTLMServer is the server's side of NTLMv2.
type NTLMServer struct {
	config     ServerConfig
	negotiate  []byte
	challenge  []byte
	nonce      [8]byte
	identity   Identity
	done       bool
	sessionKey []byte
	client     *signer
	server     *signer
}

// NewNTLMServer returns the start of a logon.
func NewNTLMServer(c ServerConfig) *NTLMServer {
	n := &NTLMServer{config: c}
	rand.Read(n.nonce[:])
	return n
}

func (n *NTLMServer) OID() asn1.ObjectIdentifier { return oidNTLMSSP }

// Identity returns who logged on, once Next is done.
func (n *NTLMServer) Identity() Identity { return n.identity }

// Next answers NEGOTIATE with CHALLENGE and judges AUTHENTICATE. It fails with
// ErrLogon or ErrMIC if that proves nothing.
func (n *NTLMServer) Next(token []byte) (out []byte, done bool, err error) {
	switch {
	case n.done:
		return nil, true, errors.New("NTLM: a token after the last one")
	case n.negotiate == nil:
		out, err = n.greet(token)
		return out, false, err
	default:
		err = n.judge(token)
		n.done = err == nil
		return nil, n.done, err
	}
}

func (n *NTLMServer) SessionKey() []byte { return n.sessionKey }

func (n *NTLMServer) MIC(msg []byte) []byte {
	if n.server == nil {
		return nil
	}
	return n.server.mic(msg)
}

// VerifyMIC takes a guest's MIC for good: it is by a key that only he knows.
func (n *NTLMServer) VerifyMIC(msg, mic []byte) error {
	if n.client == nil {
		return nil
	}
	return n.client.verify(msg, mic)
}

// greet makes a challenge. See [MS-NLMP] 3.2.5.1.1.
func (n *NTLMServer) greet(token []byte) ([]byte, error) {
	var m negotiateMsg
	r := byteio.NewReader(token)
	if err := m.Decode(&r); err != nil {
		return nil, fmt.Errorf("NTLM negotiate: %w", err)
	}
	if m.flags&needFlags != needFlags {
		return nil, errors.New("NTLM negotiate: the client does not do NTLMv2 with 128 bits")
	}
	name := strings.ToUpper(n.config.Name)
	domain := n.config.Domain
	if domain == "" {
		domain = name
	}
	c := challengeMsg{
		targetName:      name,
		flags:           m.flags&(wantFlags|flagSeal) | flagTargetTypeServer | flagTargetInfo,
		serverChallenge: n.nonce,
		targetInfo: appendAvPairs(nil, []avPair{
			{avNbDomainName, byteio.AppendUTF16(nil, domain)},
			{avNbComputerName, byteio.AppendUTF16(nil, name)},
			{avDNSDomainName, byteio.AppendUTF16(nil, n.config.Domain)},
			{avDNSComputerName, byteio.AppendUTF16(nil, n.config.Name)},
			{avTimestamp, appendFiletime(nil, time.Now())},
		}),
	}
	n.negotiate = append([]byte(nil), token...)
	n.challenge = c.Append(nil)
	return n.challenge, nil
}

// judge checks a client's proof. See [MS-NLMP] 3.2.5.1.2.
func (n *NTLMServer) judge(token []byte) error {
	var m authenticateMsg
	r := byteio.NewReader(token)
	if err := m.Decode(&r); err != nil {
		return fmt.Errorf("NTLM authenticate: %w", err)
	}
	n.identity = Identity{User: m.user, Domain: m.domain}
	if m.user == "" && len(m.ntResponse) == 0 {
		if n.identity.Anonymous = true; !n.config.Anonymous {
			return ErrLogon
		}
		return nil
	}
	password, ok := n.config.Lookup(m.user, m.domain)
	if !ok {
		if n.identity.Guest = true; !n.config.Guest {
			return ErrLogon
		}
		return nil
	}

	const proofSize = 16
	var cc clientChallenge
	r = byteio.NewReader(m.ntResponse)
	got := r.Bytes(proofSize)
	temp := m.ntResponse[min(proofSize, len(m.ntResponse)):]
	r = byteio.NewReader(temp)
	if err := cc.Decode(&r); err != nil {
		return fmt.Errorf("NTLMv2 response: %w", err)
	}
	key := responseKey(Credentials{User: m.user, Password: password, Domain: m.domain})
	want, baseKey := prove(key, n.nonce, temp)
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return ErrLogon
	}
	sessionKey := baseKey
	if m.flags&flagKeyExchange != 0 {
		if len(m.encryptedKey) != 16 {
			return fmt.Errorf("NTLM authenticate: %w", errNTLMMessage)
		}
		sessionKey = rc4Crypt(baseKey, m.encryptedKey)
	}
	if avFlagsOf(cc.pairs)&avFlagMICPresent != 0 {
		r := byteio.NewReader(token)
		mic := r.At(offNTLMMIC, 16)
		if r.Err() != nil ||
			subtle.ConstantTimeCompare(mic, ntlmMIC(sessionKey, n.negotiate, n.challenge, token)) != 1 {
			return ErrMIC
		}
	}
	n.sessionKey = sessionKey
	n.client, n.server = newSigners(sessionKey, m.flags)
	return nil
}
