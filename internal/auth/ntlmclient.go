package auth

import (
	"crypto/rand"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
)

var oidNTLMSSP = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 2, 10}

// NTLM is the client's side of NTLMv2. It does nothing older, and sends a MIC
// whether or not the server says that it will look.
type NTLM struct {
	creds  Credentials
	target string

	negotiate  []byte
	done       bool
	sessionKey []byte
	client     *signer
	server     *signer

	// What a logon takes from outside; tests take it from the spec.
	random func([]byte)
	now    func() time.Time
}

// NewNTLM returns the start of a logon to a target such as "cifs/host".
func NewNTLM(c Credentials, target string) *NTLM {
	return &NTLM{creds: c, target: target, random: func(b []byte) { rand.Read(b) }, now: time.Now}
}

func (n *NTLM) OID() asn1.ObjectIdentifier { return oidNTLMSSP }

// Next sends NEGOTIATE and, given CHALLENGE, AUTHENTICATE.
func (n *NTLM) Next(token []byte) (out []byte, done bool, err error) {
	switch {
	case n.done:
		return nil, true, errors.New("NTLM: a token after the last one")
	case n.negotiate == nil:
		n.negotiate = (&negotiateMsg{wantFlags}).Append(nil)
		return n.negotiate, false, nil
	default:
		out, err = n.authenticate(token)
		n.done = err == nil
		return out, n.done, err
	}
}

func (n *NTLM) SessionKey() []byte { return n.sessionKey }

func (n *NTLM) MIC(msg []byte) []byte {
	if n.creds.Anonymous() {
		return nil
	}
	return n.client.mic(msg)
}

func (n *NTLM) VerifyMIC(msg, mic []byte) error { return n.server.verify(msg, mic) }

// authenticate answers a challenge. See [MS-NLMP] 3.1.5.1.2.
func (n *NTLM) authenticate(token []byte) ([]byte, error) {
	var c challengeMsg
	r := byteio.NewReader(token)
	if err := c.Decode(&r); err != nil {
		return nil, fmt.Errorf("NTLM challenge: %w", err)
	}
	if c.flags&needFlags != needFlags || len(c.targetInfo) == 0 {
		return nil, errors.New("NTLM challenge: the server does not do NTLMv2 with 128 bits")
	}
	if len(c.targetInfo) > maxTargetInfoBytes {
		return nil, errors.New("NTLM challenge: too much target information")
	}
	r = byteio.NewReader(c.targetInfo)
	pairs, err := decodeAvPairs(&r)
	if err != nil {
		return nil, err
	}

	m := authenticateMsg{flags: c.flags & wantFlags, domain: n.creds.Domain, user: n.creds.User}
	keyExchangeKey := make([]byte, 16)
	if n.creds.Anonymous() {
		m.flags |= flagAnonymous
		m.lmResponse = []byte{0}
	} else {
		keyExchangeKey = n.respond(&m, &c, pairs)
	}
	n.sessionKey = keyExchangeKey
	if m.flags&flagKeyExchange != 0 {
		n.sessionKey = make([]byte, 16)
		n.random(n.sessionKey)
		m.encryptedKey = rc4Crypt(keyExchangeKey, n.sessionKey)
	}
	n.client, n.server = newSigners(n.sessionKey, m.flags)

	out := m.Append(nil)
	if !n.creds.Anonymous() {
		copy(out[offNTLMMIC:], ntlmMIC(n.sessionKey, n.negotiate, token, out))
	}
	return out, nil
}

// respond fills in the responses and returns the session base key. See [MS-NLMP]
// 3.3.2.
func (n *NTLM) respond(m *authenticateMsg, c *challengeMsg, pairs []avPair) []byte {
	var cc clientChallenge
	n.random(cc.challenge[:])
	cc.time = findAv(pairs, avTimestamp, 8)
	fromServer := cc.time != nil
	if !fromServer {
		cc.time = appendFiletime(nil, n.now())
	}
	for _, p := range pairs {
		switch p.id {
		case avFlags, avSingleHost, avTargetName, avChannelBindings: // the client's to say
		default:
			cc.pairs = append(cc.pairs, p)
		}
	}
	cc.pairs = append(cc.pairs,
		avPair{avFlags, byteio.Append32(nil, avFlagsOf(pairs)|avFlagMICPresent)},
		avPair{avChannelBindings, make([]byte, 16)})
	if n.target != "" {
		cc.pairs = append(cc.pairs, avPair{avTargetName, byteio.AppendUTF16(nil, n.target)})
	}

	key := responseKey(n.creds)
	temp := cc.Append(nil)
	proof, baseKey := prove(key, c.serverChallenge, temp)
	m.ntResponse = append(proof, temp...)
	if fromServer {
		m.lmResponse = make([]byte, 24)
	} else {
		m.lmResponse = append(hmacMD5(key, c.serverChallenge[:], cc.challenge[:]), cc.challenge[:]...)
	}
	return baseKey
}
