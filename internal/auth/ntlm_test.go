package auth

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
)

// The values of [MS-NLMP] 4.2.1 and 4.2.4.
var specCreds = Credentials{User: "User", Password: "Password", Domain: "Domain"}

const (
	specTargetInfo = "02000c0044006f006d00610069006e0001000c00530065007200760065007200" + "00000000"
	specTemp       = "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000" + specTargetInfo + "00000000"
	specChallenge  = "4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef00000000000000002400240044000000" +
		"060070170000000f530065007200760065007200" + specTargetInfo
)

func TestSpecNTLMv2(t *testing.T) {
	serverChallenge := [8]byte(unhex(t, "0123456789abcdef"))
	key := responseKey(specCreds)
	if got, want := key, unhex(t, "0c868a403bfd7a93a3001ef22ef02e3f"); !bytes.Equal(got, want) {
		t.Errorf("ResponseKeyNT = %x, want %x", got, want)
	}
	temp := unhex(t, specTemp)
	proof, base := prove(key, serverChallenge, temp)
	if got, want := proof, unhex(t, "68cd0ab851e51c96aabc927bebef6a1c"); !bytes.Equal(got, want) {
		t.Errorf("NTProofStr = %x, want %x", got, want)
	}
	if got, want := base, unhex(t, "8de40ccadbc14a82f15cb0ad0de95ca3"); !bytes.Equal(got, want) {
		t.Errorf("SessionBaseKey = %x, want %x", got, want)
	}
	sessionKey := bytes.Repeat([]byte{0x55}, 16)
	if got, want := rc4Crypt(base, sessionKey), unhex(t, "c5dad2544fc9799094ce1ce90bc9d03e"); !bytes.Equal(got, want) {
		t.Errorf("EncryptedRandomSessionKey = %x, want %x", got, want)
	}
	client, _ := newSigners(sessionKey, flagKeyExchange)
	if got, want := client.signKey, unhex(t, "4788dc861b4782f35d43fd98fe1a2d39"); !bytes.Equal(got, want) {
		t.Errorf("SignKey = %x, want %x", got, want)
	}
	if got, want := client.sealKey, unhex(t, "59f600973cc4960a25480a7c196e4c58"); !bytes.Equal(got, want) {
		t.Errorf("SealKey = %x, want %x", got, want)
	}

	var cc clientChallenge
	r := byteio.NewReader(temp)
	if err := cc.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if got := cc.Append(nil); !bytes.Equal(got, temp) {
		t.Errorf("temp comes back as %x, want %x", got, temp)
	}
}

// TestSpecAuthenticate answers the challenge of [MS-NLMP] 4.2.4.3. What we add to
// the spec's answer, the client's own attributes and a MIC, is checked by itself.
func TestSpecAuthenticate(t *testing.T) {
	challenge := unhex(t, specChallenge)
	n := NewNTLM(specCreds, "cifs/Server")
	n.now = func() time.Time { return time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC) }
	n.random = func(b []byte) {
		fill := byte(0x55)
		if len(b) == 8 {
			fill = 0xAA
		}
		copy(b, bytes.Repeat([]byte{fill}, len(b)))
	}
	negotiate, _, _ := n.Next(nil)
	token, done, err := n.Next(challenge)
	if err != nil || !done {
		t.Fatalf("done %v, %v", done, err)
	}
	var m authenticateMsg
	r := byteio.NewReader(token)
	if err := m.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if got, want := m.lmResponse, unhex(t, "86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"); !bytes.Equal(got, want) {
		t.Errorf("LMv2 response = %x, want %x", got, want)
	}
	if m.user != "User" || m.domain != "Domain" || m.workstation != "" {
		t.Errorf("names are %q, %q, %q", m.user, m.domain, m.workstation)
	}
	if got, want := n.SessionKey(), bytes.Repeat([]byte{0x55}, 16); !bytes.Equal(got, want) {
		t.Errorf("session key = %x, want %x", got, want)
	}
	var cc clientChallenge
	r = byteio.NewReader(m.ntResponse[16:])
	if err := cc.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if got := avFlagsOf(cc.pairs); got != avFlagMICPresent {
		t.Errorf("MsvAvFlags = %#x, want 2", got)
	}
	if got, want := findAv(cc.pairs, avTargetName, 22), byteio.AppendUTF16(nil, "cifs/Server"); !bytes.Equal(got, want) {
		t.Errorf("MsvAvTargetName = %q, want %q", got, want)
	}
	if got := findAv(cc.pairs, avChannelBindings, 16); !bytes.Equal(got, make([]byte, 16)) {
		t.Errorf("MsvAvChannelBindings = %x, want zeros", got)
	}

	s := NewNTLMServer(ServerConfig{Lookup: func(user, domain string) (string, bool) {
		return "Password", user == "User" && domain == "Domain"
	}})
	s.negotiate, s.challenge, s.nonce = negotiate, challenge, [8]byte(unhex(t, "0123456789abcdef"))
	if _, done, err := s.Next(token); err != nil || !done {
		t.Errorf("the server: done %v, %v", done, err)
	}
}

// A server's time goes into the answer, and no LMv2 response then.
func TestTimestampOfServer(t *testing.T) {
	info := appendAvPairs(nil, []avPair{
		{avTimestamp, []byte("8 bytes!")}, {avFlags, []byte{1, 0, 0, 0}}, {avTargetName, []byte("x\x00")},
	})
	c := challengeMsg{flags: wantFlags, targetInfo: info}
	n := NewNTLM(specCreds, "")
	n.Next(nil)
	token, _, err := n.Next(c.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	var m authenticateMsg
	r := byteio.NewReader(token)
	if err := m.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.lmResponse, make([]byte, 24)) {
		t.Errorf("LM response = %x, want 24 zeros", m.lmResponse)
	}
	var cc clientChallenge
	r = byteio.NewReader(m.ntResponse[16:])
	if err := cc.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if string(cc.time) != "8 bytes!" || avFlagsOf(cc.pairs) != 3 || findAv(cc.pairs, avTargetName, 2) != nil {
		t.Errorf("time %q, pairs %v", cc.time, cc.pairs)
	}
}

func TestWeakServersAreRefused(t *testing.T) {
	info := appendAvPairs(nil, []avPair{{avNbDomainName, []byte("D\x00")}})
	for name, c := range map[string]challengeMsg{
		"no Unicode":           {flags: wantFlags &^ flagUnicode, targetInfo: info},
		"no extended security": {flags: wantFlags &^ flagExtendedSecurity, targetInfo: info},
		"no 128 bits":          {flags: wantFlags &^ flag128, targetInfo: info},
		"no target info flag":  {flags: wantFlags &^ flagTargetInfo, targetInfo: info},
		"no target info":       {flags: wantFlags},
		"endless target info":  {flags: wantFlags, targetInfo: info[:len(info)-4]},
		"huge target info":     {flags: wantFlags, targetInfo: make([]byte, 0xFFF0)},
	} {
		n := NewNTLM(specCreds, "")
		n.Next(nil)
		if token, done, err := n.Next(c.Append(nil)); err == nil || done || token != nil || n.SessionKey() != nil {
			t.Errorf("%s: token %x, done %v, %v", name, token, done, err)
		}
	}
}

func TestAnonymousMessage(t *testing.T) {
	n := NewNTLM(Credentials{}, "cifs/nas")
	n.Next(nil)
	c := challengeMsg{flags: wantFlags, targetInfo: appendAvPairs(nil, nil)}
	token, _, err := n.Next(c.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	var m authenticateMsg
	r := byteio.NewReader(token)
	if err := m.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if m.flags&flagAnonymous == 0 || string(m.lmResponse) != "\x00" || len(m.ntResponse) != 0 || m.user != "" {
		t.Errorf("flags %#x, LM response %x, NT response %x, user %q", m.flags, m.lmResponse, m.ntResponse, m.user)
	}
	if n.MIC(nil) != nil {
		t.Error("nobody signs")
	}
}

// securityBuffer takes the token out of a NEGOTIATE response or a SESSION_SETUP
// message. See [MS-SMB2] 2.2.4, 2.2.5 and 2.2.6.
func securityBuffer(msg []byte, fromServer bool) []byte {
	at := 64 + 12
	switch {
	case binary.LittleEndian.Uint16(msg[12:]) == 0:
		at = 64 + 56
	case fromServer:
		at = 64 + 4
	}
	off, n := binary.LittleEndian.Uint16(msg[at:]), binary.LittleEndian.Uint16(msg[at+2:])
	return msg[off : off+n]
}

// TestSamba judges logons of smbclient to smbd 4.17, captured with their session
// keys: tokens, proofs and MICs of both sides.
func TestSamba(t *testing.T) {
	text, err := os.ReadFile("../smb/smbcrypt/testdata/samba.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(text), "case ")[1:]
	for _, c := range cases {
		var key []byte
		var tokens [][]byte
		for _, line := range strings.Split(c, "\n")[1:] {
			f := strings.Fields(line)
			if len(f) == 3 && f[1] == "Session" {
				key = unhex(t, f[2])
			}
			// The NEGOTIATE request, its reply, and two of SESSION_SETUP.
			if len(f) == 2 && len(tokens) < 6 {
				msg := unhex(t, f[1])
				if len(tokens) == 0 {
					tokens = append(tokens, nil)
					continue
				}
				tokens = append(tokens, securityBuffer(msg, f[0] == "S"))
			}
		}
		if len(tokens) != 6 || key == nil {
			t.Fatalf("%d tokens, key %x", len(tokens), key)
		}

		var hint, first negTokenInit
		var challenge, authenticate, last negTokenResp
		for _, err := range []error{hint.Decode(tokens[1]), first.Decode(tokens[2]), challenge.Decode(tokens[3]),
			authenticate.Decode(tokens[4]), last.Decode(tokens[5])} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !hasMech(hint.mechTypes, oidNTLMSSP) {
			t.Errorf("smbd hints at %s", mechNamesOf(hint.mechTypes))
		}
		if got := first.Append(nil); !bytes.Equal(got, tokens[2]) {
			t.Errorf("smbclient's first token comes back as %x, want %x", got, tokens[2])
		}
		for i, r := range []negTokenResp{challenge, authenticate, last} {
			if got := r.Append(nil); !bytes.Equal(got, tokens[3+i]) {
				t.Errorf("token %d comes back as %x, want %x", i, got, tokens[3+i])
			}
		}

		var cm challengeMsg
		r := byteio.NewReader(challenge.responseToken)
		if err := cm.Decode(&r); err != nil {
			t.Fatal(err)
		}
		s := NewNTLMServer(ServerConfig{Lookup: func(user, _ string) (string, bool) { return "Passw0rd", user == "root" }})
		if _, _, err := s.Next(first.mechToken); err != nil {
			t.Fatal(err)
		}
		s.challenge, s.nonce = challenge.responseToken, cm.serverChallenge
		if _, done, err := s.Next(authenticate.responseToken); err != nil || !done {
			t.Fatalf("smbclient's proof: done %v, %v", done, err)
		}
		if !bytes.Equal(s.SessionKey(), key) {
			t.Errorf("session key = %x, want %x", s.SessionKey(), key)
		}
		list := mechTypeList(first.mechTypes)
		if err := s.VerifyMIC(list, authenticate.mechListMIC); err != nil {
			t.Errorf("smbclient's mechListMIC: %v", err)
		}
		if got, want := s.MIC(list), last.mechListMIC; !bytes.Equal(got, want) {
			t.Errorf("mechListMIC = %x, want smbd's %x", got, want)
		}
	}
	if len(cases) != 9 {
		t.Errorf("%d logons, want 9", len(cases))
	}
}
