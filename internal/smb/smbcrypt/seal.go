package smbcrypt

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
)

// TransformSize is the length of the header before sealed messages, and TagSize
// the room behind that sealing works in. See [MS-SMB2] 2.2.41.
const (
	TransformSize = 52
	TagSize       = 16

	protocolTransform = 0x424D53FD // 0xFD 'S' 'M' 'B'

	offTag        = 4
	offNonce      = 20
	offSize       = 36
	offSealFlags  = 42
	offSessionID  = 44
	flagEncrypted = 1
)

// ErrUnsealed says that bytes are no sealed message, or one for another session,
// or one that was sealed with another key or changed under way.
var ErrUnsealed = errors.New("sealed message does not open")

// Sealer seals and opens the messages of one session, all its channels included:
// they share the keys, so they share the nonces.
type Sealer struct {
	session uint64
	out, in cipher.AEAD
	prefix  [4]byte // random start of every nonce
	count   atomic.Uint64
}

// NewSealer returns a Sealer that seals with one key and opens with the other:
// Keys.Encrypt and Keys.Decrypt for a client, the reverse for a server.
func NewSealer(c Cipher, session uint64, sealKey, openKey []byte) (*Sealer, error) {
	s := &Sealer{session: session}
	var err error
	if s.out, err = newAEAD(c, sealKey); err != nil {
		return nil, err
	}
	if s.in, err = newAEAD(c, openKey); err != nil {
		return nil, err
	}
	rand.Read(s.prefix[:])
	return s, nil
}

func newAEAD(c Cipher, key []byte) (cipher.AEAD, error) {
	switch n := c.KeySize(); {
	case n == 0:
		return nil, errCipher
	case n != len(key):
		return nil, errKeySize
	}
	if c == AES128CCM || c == AES256CCM {
		return newCCM(newAES(key))
	}
	return cipher.NewGCM(newAES(key))
}

// Seal turns a frame, TransformSize bytes of any content and the messages to
// seal, into a sealed one, in place. As with append, the TagSize bytes behind
// the frame are lost; a frame without that capacity costs a copy.
func (s *Sealer) Seal(frame []byte) {
	head, plain := frame[:TransformSize], frame[TransformSize:]
	clear(head)
	binary.LittleEndian.PutUint32(head, protocolTransform)
	nonce := head[offNonce:][:s.out.NonceSize()]
	// The count has to be unique, the rest is for what may share a key some day.
	binary.LittleEndian.PutUint64(nonce, s.count.Add(1))
	copy(nonce[8:], s.prefix[:])
	binary.LittleEndian.PutUint32(head[offSize:], uint32(len(plain)))
	binary.LittleEndian.PutUint16(head[offSealFlags:], flagEncrypted)
	binary.LittleEndian.PutUint64(head[offSessionID:], s.session)

	room := slices.Grow(plain, TagSize)
	sealed := s.out.Seal(room[:0], nonce, room, head[offNonce:])
	copy(head[offTag:offNonce], sealed[len(plain):])
	if cap(plain) < len(sealed) {
		copy(plain, sealed)
	}
}

// Open returns the messages in a sealed frame, which it opens in place. The
// TagSize bytes behind the frame are lost as with Seal. After an error, which is
// ErrUnsealed, the frame is worth nothing.
func (s *Sealer) Open(frame []byte) ([]byte, error) {
	session, ok := SealedFor(frame)
	if !ok || session != s.session {
		return nil, ErrUnsealed
	}
	head, body := frame[:TransformSize], frame[TransformSize:]
	nonce := head[offNonce:][:s.in.NonceSize()]
	room := append(body, head[offTag:offNonce]...)
	plain, err := s.in.Open(room[:0], nonce, room, head[offNonce:])
	if err != nil {
		return nil, ErrUnsealed
	}
	return plain, nil
}

// SealedFor returns the session that a frame claims to be sealed for. It is not
// ok unless the frame is a sealed one of the length that it says.
func SealedFor(frame []byte) (session uint64, ok bool) {
	if len(frame) <= TransformSize ||
		binary.LittleEndian.Uint32(frame) != protocolTransform ||
		binary.LittleEndian.Uint16(frame[offSealFlags:]) != flagEncrypted ||
		uint64(binary.LittleEndian.Uint32(frame[offSize:])) != uint64(len(frame)-TransformSize) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(frame[offSessionID:]), true
}
