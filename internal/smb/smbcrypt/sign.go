package smbcrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"hash"
	"sync"
)

// HeaderSize is the length of an SMB2 header, and where its fields are that
// signing looks at. See [MS-SMB2] 2.2.1.2.
const (
	HeaderSize = 64

	offCommand   = 12
	offFlags     = 16
	offMessageID = 24
	offSignature = 48
)

// headSize is how much of a message's first segment is copied so that its
// signature counts as zero: READ and WRITE headers whole, in full AES blocks.
const headSize = 128

// Signer signs and verifies messages with one key.
type Signer struct {
	states sync.Pool // of *signState
}

// A signState serves one message at a time.
type signState struct {
	mac  mac
	head [headSize]byte
	sum  [16]byte
}

// mac is one signing algorithm. A message starts with reset, which sees the
// header; write takes it all, header included, in pieces.
type mac interface {
	reset(header []byte)
	write(p []byte)
	sum(out *[16]byte)
}

// NewSigner returns a Signer for a key of 16 bytes.
func NewSigner(alg Signing, key []byte) (*Signer, error) {
	if len(key) != 16 {
		return nil, errKeySize
	}
	var fresh func() mac
	switch alg {
	case HMACSHA256:
		fresh = func() mac { return &hmacMAC{Hash: hmac.New(sha256.New, key)} }
	case AESCMAC:
		k := newCMACKey(key)
		fresh = func() mac { return &cmac{key: k, cbcMAC: newCBCMAC(k.block)} }
	case AESGMAC:
		k := newGMACKey(key)
		fresh = func() mac { return &gmac{key: k} }
	default:
		return nil, errSigning
	}
	s := new(Signer)
	s.states.New = func() any { return &signState{mac: fresh()} }
	return s, nil
}

// Sign puts a signature into the message whose pieces segs are. The first piece
// has at least the header, with the flag SMB2_FLAGS_SIGNED already set, and of a
// compound the message goes up to where the next begins, padding included.
// See [MS-SMB2] 3.1.4.1.
func (s *Signer) Sign(segs ...[]byte) {
	st := s.states.Get().(*signState)
	st.compute(segs)
	copy(segs[0][offSignature:HeaderSize], st.sum[:])
	s.states.Put(st)
}

// Verify reports whether a message, as Sign has it, carries its signature. It
// writes to none of it. See [MS-SMB2] 3.1.5.1.
func (s *Signer) Verify(segs ...[]byte) bool {
	if len(segs) == 0 || len(segs[0]) < HeaderSize {
		return false
	}
	st := s.states.Get().(*signState)
	st.compute(segs)
	ok := subtle.ConstantTimeCompare(segs[0][offSignature:HeaderSize], st.sum[:]) == 1
	s.states.Put(st)
	return ok
}

// compute leaves the signature in st.sum.
func (st *signState) compute(segs [][]byte) {
	n := copy(st.head[:], segs[0])
	clear(st.head[offSignature:HeaderSize])
	st.mac.reset(st.head[:HeaderSize])
	st.mac.write(st.head[:n])
	st.mac.write(segs[0][n:])
	for _, seg := range segs[1:] {
		st.mac.write(seg)
	}
	st.mac.sum(&st.sum)
}

// hmacMAC is HMAC-SHA256 cut to 16 bytes, for 2.0.2 and 2.1.
type hmacMAC struct {
	hash.Hash
	full [sha256.Size]byte
}

func (m *hmacMAC) reset([]byte)      { m.Reset() }
func (m *hmacMAC) write(p []byte)    { m.Write(p) }
func (m *hmacMAC) sum(out *[16]byte) { copy(out[:], m.Sum(m.full[:0])) }

// newAES returns the block cipher for a key whose size has been checked.
func newAES(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	return block
}
