package auth

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

// tokens of a logon are what fuzzing starts from.
func tokens(t testing.TB) (all [][]byte) {
	err := logon(initiator(t, Credentials{User: "bob", Password: "Pässw0rd"}), NewAcceptor(server()),
		func(_ int, token []byte) []byte {
			all = append(all, token)
			return token
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func addAll(f *testing.F, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
		f.Add(s[:len(s)/2])
	}
}

func FuzzNegTokenInit(f *testing.F) {
	addAll(f, tokens(f)[0], Hint())
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b negTokenInit
		if a.Decode(in) != nil {
			return
		}
		if err := b.Decode(a.Append(nil)); err != nil || len(a.mechTypes) != len(b.mechTypes) || !bytes.Equal(a.mechToken, b.mechToken) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}

func FuzzNegTokenResp(f *testing.F) {
	addAll(f, tokens(f)[1:]...)
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b negTokenResp
		if a.Decode(in) != nil {
			return
		}
		if err := b.Decode(a.Append(nil)); err != nil || a.state != b.state || !bytes.Equal(a.responseToken, b.responseToken) ||
			!bytes.Equal(a.mechListMIC, b.mechListMIC) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}

// FuzzClient lets a server say anything after the client's first token.
func FuzzClient(f *testing.F) {
	all := tokens(f)
	addAll(f, all[1], all[3])
	f.Fuzz(func(t *testing.T, in []byte) {
		c := initiator(t, Credentials{User: "bob"})
		c.Next(nil)
		if _, done, err := c.Next(in); done && err == nil {
			t.Error("one token of a server ends a logon")
		}
	})
}

// FuzzServer lets a client say anything, as its first and as its last token.
func FuzzServer(f *testing.F) {
	all := tokens(f)
	addAll(f, all[0], all[2])
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, done, err := NewAcceptor(server()).Next(in); done && err == nil {
			t.Error("one token of a client ends a logon")
		}
		a := NewAcceptor(server())
		a.Next(all[0])
		if _, done, err := a.Next(in); done && err == nil {
			t.Error("a token that answers no challenge ends a logon")
		}
	})
}

func FuzzChallenge(f *testing.F) {
	var r negTokenResp
	if err := r.Decode(tokens(f)[1]); err != nil {
		f.Fatal(err)
	}
	addAll(f, r.responseToken)
	f.Fuzz(func(t *testing.T, in []byte) {
		n := NewNTLM(Credentials{User: "bob"}, "cifs/nas")
		n.Next(nil)
		n.Next(in)
		var a, b challengeMsg
		if in := byteio.NewReader(in); a.Decode(&in) != nil || len(a.targetInfo) > maxTargetInfoBytes {
			return
		}
		back := byteio.NewReader(a.Append(nil))
		if err := b.Decode(&back); err != nil || a.targetName != b.targetName || !bytes.Equal(a.targetInfo, b.targetInfo) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}

func FuzzAuthenticate(f *testing.F) {
	var r negTokenResp
	if err := r.Decode(tokens(f)[2]); err != nil {
		f.Fatal(err)
	}
	addAll(f, r.responseToken)
	f.Fuzz(func(t *testing.T, in []byte) {
		s := server()
		s.Next((&negotiateMsg{wantFlags}).Append(nil))
		if _, done, err := s.Next(in); done && err == nil {
			t.Error("a proof was guessed")
		}
		var a, b authenticateMsg
		if in := byteio.NewReader(in); a.Decode(&in) != nil {
			return
		}
		back := byteio.NewReader(a.Append(nil))
		if err := b.Decode(&back); err != nil || a.user != b.user || a.domain != b.domain || !bytes.Equal(a.ntResponse, b.ntResponse) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}

func FuzzClientChallenge(f *testing.F) {
	addAll(f, unhex(f, specTemp), (&clientChallenge{time: make([]byte, 8), pairs: []avPair{{avFlags, []byte{2, 0, 0, 0}}}}).Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b clientChallenge
		if in := byteio.NewReader(in); a.Decode(&in) != nil {
			return
		}
		back := byteio.NewReader(a.Append(nil))
		if err := b.Decode(&back); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}
