package smbcrypt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
)

// exchange is one case of testdata/samba.txt: what smbclient and smbd 4.17 said
// to each other and the keys that they had. testdata/capture.sh made it.
type exchange struct {
	dialect uint16
	alg     string // of signing or sealing
	sealed  bool
	keys    map[string][]byte
	msgs    []message
}

type message struct {
	fromServer bool
	b          []byte
}

func exchanges(t *testing.T) (all []*exchange) {
	t.Helper()
	text, err := os.ReadFile("testdata/samba.txt")
	if err != nil {
		t.Fatal(err)
	}
	var x *exchange
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch f[0] {
		case "case":
			dialect, err := strconv.ParseUint(f[1], 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			x = &exchange{dialect: uint16(dialect), sealed: f[2] == "seal", alg: f[3], keys: map[string][]byte{}}
			all = append(all, x)
		case "key":
			x.keys[f[1]] = unhex(t, f[2])
		default:
			x.msgs = append(x.msgs, message{f[0] == "S", unhex(t, f[1])})
		}
	}
	if len(all) != 9 {
		t.Fatalf("%d exchanges, want 9", len(all))
	}
	return all
}

// preauth hashes what comes before the last reply to SESSION_SETUP.
func (x *exchange) preauth() *Preauth {
	var p Preauth
	for _, m := range x.msgs {
		const sessionSetup = 1
		if m.b[offCommand] == sessionSetup && m.fromServer && binary.LittleEndian.Uint32(m.b[8:]) == 0 {
			break
		}
		p.Update(m.b[:10], m.b[10:])
	}
	return &p
}

func (x *exchange) cipher() Cipher {
	for _, c := range allCiphers {
		if x.alg == c.String() {
			return c
		}
	}
	return AES128CCM
}

func TestKeysOfSamba(t *testing.T) {
	for _, x := range exchanges(t) {
		got := DeriveKeys(x.dialect, x.cipher(), append(x.keys["Session"], make([]byte, 16)...)[:x.cipher().KeySize()], x.preauth())
		for name, got := range map[string][]byte{
			"Signing": got.Sign, "ServerIn": got.Encrypt, "ServerOut": got.Decrypt, "App": got.App,
		} {
			if want := x.keys[name]; !bytes.Equal(got, want) {
				t.Errorf("%#x %s: %s key = %x, want %x", x.dialect, x.alg, name, got, want)
			}
		}
	}
}

func TestSignaturesOfSamba(t *testing.T) {
	for _, x := range exchanges(t) {
		alg := DefaultSigning(x.dialect)
		for _, a := range signings {
			if x.alg == a.String() {
				alg = a
			}
		}
		s := newSigner(t, alg, x.keys["Signing"])
		signed := 0
		for i, m := range x.msgs {
			const flagSigned = 8
			if x.sealed || m.b[offFlags]&flagSigned == 0 {
				continue
			}
			signed++
			if next := binary.LittleEndian.Uint32(m.b[20:]); next != 0 {
				t.Errorf("message %d is a compound", i)
			}
			if !s.Verify(m.b) || !s.Verify(m.b[:66], m.b[66:]) {
				t.Errorf("%#x %s: message %d does not verify", x.dialect, x.alg, i)
			}
		}
		if !x.sealed && signed < 15 {
			t.Errorf("%#x %s: %d signed messages", x.dialect, x.alg, signed)
		}
	}
}

func TestSealedBySamba(t *testing.T) {
	for _, x := range exchanges(t) {
		if !x.sealed {
			continue
		}
		sealed := 0
		for i, m := range x.msgs {
			session, ok := SealedFor(m.b)
			if !ok {
				continue
			}
			sealed++
			open, seal := x.keys["ServerIn"], x.keys["ServerOut"]
			if m.fromServer {
				open, seal = seal, open
			}
			s, err := NewSealer(x.cipher(), session, seal, open)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := s.Open(m.b)
			if err != nil || !bytes.HasPrefix(plain, []byte("\xFESMB")) {
				t.Errorf("%#x %s: message %d opened to %x, %v", x.dialect, x.alg, i, plain, err)
			}
		}
		if sealed < 15 {
			t.Errorf("%#x %s: %d sealed messages", x.dialect, x.alg, sealed)
		}
	}
}

func TestKeysBefore30(t *testing.T) {
	k := DeriveKeys(0x0210, 0, []byte("0123456789abcdef0123"), nil)
	if string(k.Sign) != "0123456789abcdef" || string(k.App) != "0123456789abcdef" || k.Encrypt != nil || k.Decrypt != nil {
		t.Errorf("keys of 2.1: %q %q %q %q", k.Sign, k.App, k.Encrypt, k.Decrypt)
	}
	if k := DeriveKeys(0x0202, 0, []byte("01234567"), nil); string(k.Sign) != "01234567\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("a short session key makes %q", k.Sign)
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	secret := []byte("secretsecretsecr")
	k := DeriveKeys(0x0210, 0, secret, nil)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("keys", "k", k, "p", &k)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&log, verb+verb, k, &k)
	}
	for _, form := range []string{"%s", "%x", "%X", "%d"} {
		if s := strings.Trim(fmt.Sprintf(form, secret), "[]"); strings.Contains(log.String(), s) {
			t.Errorf("a key printed: %s", log.String())
		}
	}
}
