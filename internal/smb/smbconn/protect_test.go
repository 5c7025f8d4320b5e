package smbconn

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

const sessionID = 0x1122334455667788

// keys are both sides of a session's protection.
type keys struct {
	client Security
	signer *smbcrypt.Signer
	sealer *smbcrypt.Sealer // the server's
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{client: Security{SessionID: sessionID}}
	up, down := pattern(16, 1), pattern(16, 2)
	var errs [4]error
	k.client.Signer, errs[0] = smbcrypt.NewSigner(smbcrypt.AESCMAC, up)
	k.signer, errs[1] = smbcrypt.NewSigner(smbcrypt.AESCMAC, up)
	k.client.Sealer, errs[2] = smbcrypt.NewSealer(smbcrypt.AES128GCM, sessionID, up, down)
	k.sealer, errs[3] = smbcrypt.NewSealer(smbcrypt.AES128GCM, sessionID, down, up)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return k
}

// sign signs a reply.
func (k *keys) sign(b []byte) []byte {
	b[flagsAt] |= byte(smb2msg.FlagSigned)
	k.signer.Sign(b)
	return b
}

// seal seals replies.
func (k *keys) seal(b ...[]byte) []byte {
	frame := append(make([]byte, smbcrypt.TransformSize), bytes.Join(b, nil)...)
	k.sealer.Seal(frame)
	return frame
}

// open opens a sealed request, and takes a plain one as it is.
func (k *keys) open(t *testing.T, b []byte) smb2msg.Header {
	t.Helper()
	if smb2msg.ProtocolOf(b) == smb2msg.ProtocolTransform {
		var err error
		if b, err = k.sealer.Open(b); err != nil {
			t.Fatal(err)
		}
	}
	return header(t, b)
}

func flip(b []byte, at int) []byte {
	b[at] ^= 1
	return b
}

// TestProtectionOfReplies sends replies that are signed or sealed, or should be.
func TestProtectionOfReplies(t *testing.T) {
	const want = 1000
	reply := func(h smb2msg.Header) []byte { return bytes.Join(data(h, pattern(want, 1)), nil) }
	refused := func(h smb2msg.Header) []byte {
		return message(h, ntstatus.AccessDenied, 1, &smb2msg.ErrorResponse{})
	}
	interim := func(h smb2msg.Header) []byte {
		h.Flags, h.AsyncID = smb2msg.FlagAsync, 5
		return message(h, ntstatus.Pending, 1, &smb2msg.ErrorResponse{})
	}
	oplockBreak := func(h smb2msg.Header) []byte {
		h.Command, h.MessageID = smb2msg.CommandOplockBreak, unsolicited
		return message(h, ntstatus.Success, 0, &smb2msg.OplockBreak{})
	}
	frames := func(b ...[]byte) [][]byte { return b }
	type settings struct {
		sign, seal         bool // the session
		callSign, callSeal bool // the request
	}
	for name, c := range map[string]struct {
		settings
		frames func(h smb2msg.Header, k *keys) [][]byte
		err    error
	}{
		"optional: unsigned":      {settings{}, func(h smb2msg.Header, k *keys) [][]byte { return frames(reply(h)) }, nil},
		"optional: signed":        {settings{}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.sign(reply(h))) }, nil},
		"optional: signed, wrong": {settings{}, func(h smb2msg.Header, k *keys) [][]byte { return frames(flip(k.sign(reply(h)), 100)) }, ErrSignature},
		"optional: sealed":        {settings{}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.seal(reply(h))) }, nil},
		"optional: no signature where the request has one": {settings{callSign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(reply(h))
		}, ErrSignature},

		"signing: signed":   {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.sign(reply(h))) }, nil},
		"signing: unsigned": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(reply(h)) }, ErrSignature},
		"signing: unsigned error": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(refused(h))
		}, ErrSignature},
		"signing: a bit of the payload is wrong": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(flip(k.sign(reply(h)), 500))
		}, ErrSignature},
		"signing: a bit of the header is wrong": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(flip(k.sign(reply(h)), 14))
		}, ErrSignature},
		"signing: a bit of the signature is wrong": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(flip(k.sign(reply(h)), 63))
		}, ErrSignature},
		"signing: unsigned interim": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(interim(h), k.sign(reply(h)))
		}, nil},
		"signing: unsigned after an interim": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(interim(h), reply(h))
		}, ErrSignature},
		"signing: sealed instead": {settings{sign: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.seal(reply(h))) }, nil},

		"sealing: sealed": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.seal(reply(h))) }, nil},
		"sealing: sealed interim": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(k.seal(interim(h)), k.seal(reply(h)))
		}, nil},
		"sealing: plain":         {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(reply(h)) }, ErrSignature},
		"sealing: signed":        {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.sign(reply(h))) }, ErrSignature},
		"sealing: plain error":   {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(refused(h)) }, ErrSignature},
		"sealing: plain interim": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(interim(h)) }, ErrSignature},
		"sealing: plain break":   {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(oplockBreak(h)) }, ErrSignature},
		"sealing: plain break of no session": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			reply := k.seal(reply(h))
			h.SessionID = 0
			return frames(oplockBreak(h), reply)
		}, nil},
		"sealing: a bit is wrong": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(flip(k.seal(reply(h)), 300))
		}, ErrSignature},
		"sealing: for another session": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(flip(k.seal(reply(h)), smbcrypt.TransformSize-8))
		}, ErrProtocol},
		"sealing: another session's reply inside": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			h.SessionID++
			return frames(k.seal(reply(h)))
		}, ErrProtocol},
		"sealing: replayed": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			b := k.seal(reply(h))
			return frames(bytes.Clone(b), b)
		}, ErrProtocol},
		"sealing: more than was asked for": {settings{seal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(k.seal(data(h, pattern(want+1, 1))...))
		}, ErrProtocol},

		"sealed share: sealed": {settings{callSeal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.seal(reply(h))) }, nil},
		"sealed share: plain":  {settings{callSeal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(reply(h)) }, ErrSignature},
		"sealed share: signed": {settings{callSeal: true}, func(h smb2msg.Header, k *keys) [][]byte { return frames(k.sign(reply(h))) }, ErrSignature},
		"sealed share: plain interim": {settings{callSeal: true}, func(h smb2msg.Header, k *keys) [][]byte {
			return frames(interim(h))
		}, ErrSignature},

		"another session's reply": {settings{}, func(h smb2msg.Header, k *keys) [][]byte { h.SessionID++; return frames(reply(h)) }, ErrProtocol},
		"no session's reply":      {settings{}, func(h smb2msg.Header, k *keys) [][]byte { h.SessionID = 0; return frames(reply(h)) }, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p := connect(t, 64, Config{})
				k := newKeys(t)
				k.client.Sign, k.client.Seal = c.sign, c.seal
				conn.Secure(k.client)
				call := readCall(make([]byte, want))
				call.Sign, call.Seal = c.callSign, c.callSeal
				done := start(t.Context(), conn, call)
				b := p.frame()
				if got, want := smb2msg.ProtocolOf(b) == smb2msg.ProtocolTransform, c.seal || c.callSeal; got != want {
					t.Errorf("request sealed %v, want %v", got, want)
				}
				h := k.open(t, b)
				if got, want := h.Flags&smb2msg.FlagSigned != 0, (c.sign || c.callSign) && !c.seal; got != want {
					t.Errorf("request signed %v, want %v", got, want)
				}
				h.Flags = 0
				for _, f := range c.frames(h, k) {
					p.send(f)
				}
				err := <-done
				if c.err != nil && err == nil { // the first frame was good, a later one is not
					synctest.Wait()
					err = conn.Err()
				}
				if !errors.Is(err, c.err) {
					t.Fatalf("%v, want %v", err, c.err)
				}
				if err == nil && call.N != want {
					t.Errorf("%d bytes, want %d", call.N, want)
				}
				if strings.Contains(name, "error") && !strings.Contains(err.Error(), "ACCESS_DENIED") {
					t.Errorf("%q does not say what the reply said", err)
				}
			})
		})
	}
}

// TestProtectionOfLateReplies lets the caller leave before a reply comes that
// should have been signed or sealed: it must not pass because of that.
func TestProtectionOfLateReplies(t *testing.T) {
	for name, security := range map[string]struct{ sign, seal bool }{"unsigned": {sign: true}, "plain": {seal: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p := connect(t, 64, Config{})
				k := newKeys(t)
				k.client.Sign, k.client.Seal = security.sign, security.seal
				conn.Secure(k.client)
				ctx, cancel := context.WithCancel(t.Context())
				done := start(ctx, conn, readCall(make([]byte, 10)))
				b := p.frame()
				h := k.open(t, b)
				h.Flags = 0
				cancel()
				<-done
				p.frame() // the CANCEL
				p.send(data(h, pattern(10, 1))...)
				synctest.Wait()
				if err := conn.Err(); !errors.Is(err, ErrSignature) {
					t.Errorf("%v, want %v", err, ErrSignature)
				}
			})
		})
	}
}

// TestProtectionIsThatOfTheRequest checks that a reply has to be protected as its
// request was, not as the messages are by the time it comes.
func TestProtectionIsThatOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, p := connect(t, 64, Config{})
		done := start(t.Context(), conn, &Call{Command: smb2msg.CommandEcho, Body: &smb2msg.EchoRequest{}})
		h := p.expect(smb2msg.CommandEcho)
		k := newKeys(t)
		k.client.Sign = true
		conn.Secure(k.client)
		p.reply(h, ntstatus.Success, 1, &smb2msg.EchoResponse{})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
