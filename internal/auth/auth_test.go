package auth

import (
	"bytes"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseUser(t *testing.T) {
	for in, want := range map[string]Credentials{
		"":            {},
		"bob":         {User: "bob"},
		`DOM\bob`:     {User: "bob", Domain: "DOM"},
		"DOM/bob":     {User: "bob", Domain: "DOM"},
		"bob@realm.x": {User: "bob@realm.x"},
		`DOM\bob/x`:   {User: "bob/x", Domain: "DOM"},
		`\bob`:        {User: "bob"},
	} {
		if got := ParseUser(in); got != want {
			t.Errorf("ParseUser(%q) = {%q %q}, want {%q %q}", in, got.Domain, got.User, want.Domain, want.User)
		}
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	c := Credentials{User: "bob", Password: "s3cret", Domain: "DOM"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("logon", "as", c, "p", &c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("logon", "as", c, "p", &c)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&log, verb+verb, c, &c)
		fmt.Fprintf(&log, verb, struct{ C Credentials }{c})
	}
	if err := json.NewEncoder(&log).Encode(struct{ C Credentials }{c}); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%s", "%x", "%X", "%d"} {
		if s := strings.Trim(fmt.Sprintf(form, []byte(c.Password)), "[]"); strings.Contains(log.String(), s) {
			t.Errorf("the password printed as %q: %s", s, log.String())
		}
	}
	if got, want := c.String(), `DOM\bob`; got != want || !strings.Contains(log.String(), want) {
		t.Errorf("String = %q, want %q, and in %s", got, want, log.String())
	}
	if got := (Credentials{}).String(); got != "anonymous" {
		t.Errorf("nobody prints as %q", got)
	}
}

// server is the one that tests log on to: bob has a password, eve an empty one.
func server() *NTLMServer {
	return NewNTLMServer(ServerConfig{Name: "nas", Lookup: func(user, domain string) (string, bool) {
		switch {
		case strings.EqualFold(user, "bob") && domain == "":
			return "Pässw0rd", true
		case user == "eve" && domain == "DOM":
			return "", true
		case user == "eve@realm" && domain == "":
			return "upn", true
		}
		return "", false
	}})
}

// logon runs a whole logon. tamper may change what goes over the wire, tokens
// being numbered from 0.
func logon(c *Initiator, s *Acceptor, tamper func(i int, token []byte) []byte) error {
	var token []byte
	clientDone, serverDone := false, false
	for i := 0; !clientDone; i++ {
		var err error
		if i%2 == 0 {
			if serverDone && len(token) == 0 {
				return errors.New("no last token")
			}
			token, clientDone, err = c.Next(token)
		} else {
			token, serverDone, err = s.Next(token)
		}
		if err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
		if clientDone {
			break
		}
		if tamper != nil {
			token = tamper(i, bytes.Clone(token))
		}
	}
	switch {
	case !serverDone:
		return errors.New("the server is not done")
	case !bytes.Equal(c.SessionKey(), s.SessionKey()):
		return errors.New("the keys differ")
	}
	return nil
}

func initiator(t testing.TB, c Credentials) *Initiator {
	t.Helper()
	i, err := NewInitiator(Hint(), NewNTLM(c, "cifs/nas"))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestLogon(t *testing.T) {
	for _, c := range []Credentials{
		{User: "bob", Password: "Pässw0rd"},
		{User: "BOB", Password: "Pässw0rd"},
		{User: "eve", Domain: "DOM"},
		{User: "eve@realm", Password: "upn"},
	} {
		s := server()
		client := initiator(t, c)
		if err := logon(client, NewAcceptor(s), nil); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if got, want := s.Identity(), (Identity{User: c.User, Domain: c.Domain}); got != want {
			t.Errorf("%v logged on as %+v", c, got)
		}
		if got := len(client.SessionKey()); got != 16 {
			t.Errorf("%v: session key of %d bytes", c, got)
		}
		if _, _, err := client.Next(nil); err == nil {
			t.Errorf("%v: a token more was taken", c)
		}
	}
}

func TestLogonFails(t *testing.T) {
	for _, c := range []Credentials{
		{User: "bob", Password: "Pässw0rd "},
		{User: "bob"},
		{User: "bob", Password: "Pässw0rd", Domain: "DOM"},
		{User: "mallory", Password: "Pässw0rd"},
		{},
	} {
		if err := logon(initiator(t, c), NewAcceptor(server()), nil); !errors.Is(err, ErrLogon) {
			t.Errorf("%v: %v, want ErrLogon", c, err)
		}
	}
}

func TestGuestAndAnonymous(t *testing.T) {
	for _, c := range []struct {
		creds Credentials
		want  Identity
	}{
		{Credentials{User: "mallory", Password: "x"}, Identity{User: "mallory", Guest: true}},
		{Credentials{}, Identity{Anonymous: true}},
	} {
		s := server()
		s.config.Guest, s.config.Anonymous = true, true
		a := NewAcceptor(s)
		if err := logon(initiator(t, c.creds), a, nil); err == nil || err.Error() != "the keys differ" {
			t.Errorf("%v: %v, want keys that differ", c.creds, err)
		}
		if got := s.Identity(); got != c.want || a.SessionKey() != nil {
			t.Errorf("%v logged on as %+v with key %x", c.creds, got, a.SessionKey())
		}
	}
	s := server()
	s.config.Guest = true
	if err := logon(initiator(t, Credentials{User: "bob", Password: "x"}), NewAcceptor(s), nil); !errors.Is(err, ErrLogon) {
		t.Errorf("a wrong password of a known user: %v, want ErrLogon", err)
	}
}

// Whatever is changed on the way, no logon succeeds, and nothing panics. Only what
// no MIC covers may change: how the last tokens are wrapped.
func TestTampering(t *testing.T) {
	creds := Credentials{User: "bob", Password: "Pässw0rd"}
	var sizes []int
	logon(initiator(t, creds), NewAcceptor(server()), func(i int, token []byte) []byte {
		sizes = append(sizes, len(token))
		return token
	})
	if len(sizes) != 4 {
		t.Fatalf("%d tokens, want 4", len(sizes))
	}
	try := func(what string, i, at int, change func([]byte) []byte) {
		err := logon(initiator(t, creds), NewAcceptor(server()), func(n int, token []byte) []byte {
			if n == i {
				return change(token)
			}
			return token
		})
		if err == nil {
			t.Errorf("token %d with byte %d %s: the logon succeeded", i, at, what)
		}
	}
	for i, size := range sizes {
		for at := range size {
			try("cut off", i, at, func(b []byte) []byte { return b[:at] })
			if i < 3 && !(i == 0 && at < 40) { // which is the wrapping, in part ignored
				try("changed", i, at, func(b []byte) []byte { b[at] ^= 1; return b })
			}
		}
	}
	last := sizes[3]
	for at := last - 16; at < last; at++ {
		try("changed", 3, at, func(b []byte) []byte { b[at] ^= 0x80; return b })
	}
}

func TestNoCommonMechanism(t *testing.T) {
	hint := (&negTokenInit{mechTypes: []asn1.ObjectIdentifier{{1, 2, 840, 113554, 1, 2, 2}}}).Append(nil)
	_, err := NewInitiator(hint, NewNTLM(Credentials{}, ""))
	if err == nil || !strings.Contains(err.Error(), "server offers Kerberos") || !strings.Contains(err.Error(), "this client NTLM") {
		t.Errorf("NewInitiator: %v; want an error that names Kerberos and NTLM", err)
	}
	if _, err := NewInitiator([]byte{1, 2}, NewNTLM(Credentials{}, "")); err == nil {
		t.Error("NewInitiator took garbage for a hint")
	}
}

// A client that would rather have had Kerberos has to prove that nobody struck
// that from its list.
func TestSecondChoice(t *testing.T) {
	kerberos := asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}
	for _, c := range []struct {
		name string
		mic  func(*NTLM, []byte) []byte
		want error
	}{
		{"good", func(n *NTLM, list []byte) []byte { return n.MIC(list) }, nil},
		{"missing", func(*NTLM, []byte) []byte { return nil }, ErrMIC},
		{"wrong list", func(n *NTLM, list []byte) []byte { return n.MIC(list[1:]) }, ErrMIC},
	} {
		n := NewNTLM(Credentials{User: "bob", Password: "Pässw0rd"}, "")
		a := NewAcceptor(server())
		first := negTokenInit{mechToken: []byte("a ticket")}
		first.mechTypes = append(first.mechTypes, kerberos, oidNTLMSSP)
		list := mechTypeList(first.mechTypes)

		step := func(token []byte, wantState negState) (r negTokenResp, err error) {
			out, _, err := a.Next(token)
			if err == nil {
				if err := r.Decode(out); err != nil {
					t.Fatal(err)
				}
				if r.state != wantState {
					t.Errorf("%s: state %d, want %d", c.name, r.state, wantState)
				}
			}
			return r, err
		}
		r, err := step(first.Append(nil), stateRequestMIC)
		if err != nil || !r.supportedMech.Equal(oidNTLMSSP) || r.responseToken != nil {
			t.Fatalf("answer to a foreign mechanism: %+v, %v", r, err)
		}
		negotiate, _, _ := n.Next(nil)
		if r, err = step((&negTokenResp{state: stateNone, responseToken: negotiate}).Append(nil), stateIncomplete); err != nil {
			t.Fatal(err)
		}
		authenticate, _, err := n.Next(r.responseToken)
		if err != nil {
			t.Fatal(err)
		}
		last := negTokenResp{state: stateNone, responseToken: authenticate, mechListMIC: c.mic(n, list)}
		r, err = step(last.Append(nil), stateCompleted)
		if !errors.Is(err, c.want) {
			t.Errorf("%s MIC: %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			if err := n.VerifyMIC(list, r.mechListMIC); err != nil {
				t.Errorf("the server's MIC: %v", err)
			}
		}
	}
}

func TestServerDoneTooEarly(t *testing.T) {
	for name, token := range map[string][]byte{
		"empty":    nil,
		"accepted": (&negTokenResp{state: stateCompleted}).Append(nil),
		"MIC":      (&negTokenResp{state: stateCompleted, mechListMIC: make([]byte, 16)}).Append(nil),
	} {
		c := initiator(t, Credentials{User: "bob"})
		c.Next(nil)
		if _, done, err := c.Next(token); err == nil || done {
			t.Errorf("%s: done %v, %v; want an error", name, done, err)
		}
	}
	c := initiator(t, Credentials{User: "bob"})
	c.Next(nil)
	if _, _, err := c.Next((&negTokenResp{state: stateReject}).Append(nil)); !errors.Is(err, ErrLogon) {
		t.Errorf("reject: %v, want ErrLogon", err)
	}
}
