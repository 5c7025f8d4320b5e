package auth

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"crypto/subtle"
	"encoding/binary"
	"strings"
	"time"

	"golang.org/x/crypto/md4" //lint:ignore SA1019 [MS-NLMP] 3.3.2 hashes passwords with it

	"github.com/pagewire/pagewire/internal/byteio"
)

func hmacMD5(key []byte, data ...[]byte) []byte {
	h := hmac.New(md5.New, key)
	for _, d := range data {
		h.Write(d)
	}
	return h.Sum(nil)
}

// rc4Crypt runs a key's stream over data from its start.
func rc4Crypt(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		panic(err) // our keys have 16 bytes
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// responseKey is NTOWFv2. See [MS-NLMP] 3.3.2.
func responseKey(c Credentials) []byte {
	h := md4.New()
	h.Write(byteio.AppendUTF16(nil, c.Password))
	return hmacMD5(h.Sum(nil), byteio.AppendUTF16(nil, strings.ToUpper(c.User)+c.Domain))
}

// clientChallenge is what a client signs next to the server's challenge, all but
// the signature of an NTLMv2 response. See [MS-NLMP] 2.2.2.7.
type clientChallenge struct {
	time      []byte // FILETIME
	challenge [8]byte
	pairs     []avPair
}

func (c *clientChallenge) Append(b []byte) []byte {
	b = append(b, 1, 1, 0, 0, 0, 0, 0, 0)
	b = append(b, c.time...)
	b = append(b, c.challenge[:]...)
	b = byteio.AppendZero(b, 4)
	b = appendAvPairs(b, c.pairs)
	return byteio.AppendZero(b, 4)
}

// Decode aliases the message.
func (c *clientChallenge) Decode(r *byteio.Reader) error {
	if version, highest := r.Uint8(), r.Uint8(); version != 1 || highest != 1 {
		return r.Fail(errNTLMMessage)
	}
	r.Skip(6)
	c.time = r.Bytes(8)
	r.Copy(c.challenge[:])
	r.Skip(4)
	var err error
	c.pairs, err = decodeAvPairs(r)
	return err
}

// prove returns NTProofStr and the key that both sides can compute with the
// password. See [MS-NLMP] 3.3.2.
func prove(responseKey []byte, serverChallenge [8]byte, temp []byte) (proof, baseKey []byte) {
	proof = hmacMD5(responseKey, serverChallenge[:], temp)
	return proof, hmacMD5(responseKey, proof)
}

// ntlmMIC covers the three messages. The third has zeros for it, or it is taken
// for zeros. See [MS-NLMP] 3.1.5.1.2.
func ntlmMIC(key, negotiate, challenge, authenticate []byte) []byte {
	var zero [16]byte
	return hmacMD5(key, negotiate, challenge, authenticate[:offNTLMMIC], zero[:], authenticate[offNTLMMIC+len(zero):])
}

// signer signs what one side sends. See [MS-NLMP] 3.4.5.2 and 3.4.5.3.
type signer struct {
	signKey, sealKey []byte
	keyExchange      bool
}

// newSigners returns those of both sides.
func newSigners(sessionKey []byte, flags uint32) (client, server *signer) {
	derive := func(direction string) *signer {
		key := func(use string) []byte {
			h := md5.New()
			h.Write(sessionKey)
			h.Write([]byte("session key to " + direction + " " + use + " key magic constant\x00"))
			return h.Sum(nil)
		}
		return &signer{key("signing"), key("sealing"), flags&flagKeyExchange != 0}
	}
	return derive("client-to-server"), derive("server-to-client")
}

// mic signs the first message, which in SMB is the only one. See [MS-NLMP]
// 2.2.2.9.2 and 3.4.4.2.
func (s *signer) mic(msg []byte) []byte {
	const version, seq = 1, 0
	sum := hmacMD5(s.signKey, byteio.Append32(nil, seq), msg)[:8]
	if s.keyExchange {
		sum = rc4Crypt(s.sealKey, sum)
	}
	b := byteio.Append32(nil, version)
	b = append(b, sum...)
	return byteio.Append32(b, seq)
}

func (s *signer) verify(msg, mic []byte) error {
	if subtle.ConstantTimeCompare(s.mic(msg), mic) != 1 {
		return ErrMIC
	}
	return nil
}

// appendFiletime appends t in 100 ns since 1601. See [MS-DTYP] 2.3.3.
func appendFiletime(b []byte, t time.Time) []byte {
	const from1601 = 11644473600 * 1e7
	return binary.LittleEndian.AppendUint64(b, uint64(t.Unix()*1e7+int64(t.Nanosecond()/100)+from1601))
}
