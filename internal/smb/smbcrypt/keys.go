package smbcrypt

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
)

// DeriveKey is the key derivation of SP800-108 in counter mode with HMAC-SHA256
// and 32-bit counter and length, for up to 256 bits. label includes the NUL that
// ends it. See [MS-SMB2] 3.1.4.2.
func DeriveKey(key, label, context []byte, bits int) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte{0, 0, 0, 1})
	mac.Write(label)
	mac.Write([]byte{0})
	mac.Write(context)
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(bits)))
	return mac.Sum(nil)[:bits/8]
}

// Keys are what a logon yields. They print as nothing, whatever the verb.
type Keys struct {
	Sign    []byte
	Encrypt []byte // client to server; nil before 3.0
	Decrypt []byte // server to client; nil before 3.0
	App     []byte // for the layers above; the session key itself before 3.0
}

// Format keeps the keys out of whatever is printed.
func (Keys) Format(f fmt.State, _ rune) { io.WriteString(f, "smbcrypt.Keys{…}") }

// LogValue keeps the keys out of logs.
func (k Keys) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }

// DeriveKeys derives the keys of a session, or of a further channel of it, which
// uses Sign alone. sessionKey is what the security mechanism produced, in full;
// preauth matters to dialect 3.1.1 alone. See [MS-SMB2] 3.2.5.3.1 and 3.3.5.5.3.
func DeriveKeys(dialect uint16, c Cipher, sessionKey []byte, preauth *Preauth) Keys {
	// All but the ciphers' keys come from 16 bytes, be the mechanism's key
	// longer or, as DES keys of old Kerberos are, shorter.
	short := make([]byte, 16)
	copy(short, sessionKey)
	full, bits := short, 128
	if c.KeySize() == 32 {
		full, bits = sessionKey, 256
	}
	switch {
	case dialect < 0x0300:
		return Keys{Sign: short, App: short}
	case dialect < 0x0311:
		return Keys{
			Sign:    DeriveKey(short, []byte("SMB2AESCMAC\x00"), []byte("SmbSign\x00"), 128),
			Encrypt: DeriveKey(short, []byte("SMB2AESCCM\x00"), []byte("ServerIn \x00"), 128),
			Decrypt: DeriveKey(short, []byte("SMB2AESCCM\x00"), []byte("ServerOut\x00"), 128),
			App:     DeriveKey(short, []byte("SMB2APP\x00"), []byte("SmbRpc\x00"), 128),
		}
	default:
		return Keys{
			Sign:    DeriveKey(short, []byte("SMBSigningKey\x00"), preauth[:], 128),
			Encrypt: DeriveKey(full, []byte("SMBC2SCipherKey\x00"), preauth[:], bits),
			Decrypt: DeriveKey(full, []byte("SMBS2CCipherKey\x00"), preauth[:], bits),
			App:     DeriveKey(short, []byte("SMBAppKey\x00"), preauth[:], 128),
		}
	}
}

// Preauth is the preauthentication integrity hash of 3.1.1, zero at the start of
// a connection. See [MS-SMB2] 3.1.1.1 and 3.2.5.2.
type Preauth [64]byte

// Update takes in one message, given in any number of pieces.
func (p *Preauth) Update(msg ...[]byte) {
	h := sha512.New()
	h.Write(p[:])
	for _, m := range msg {
		h.Write(m)
	}
	h.Sum(p[:0])
}
