package smbcrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
)

// CCM as SMB has it: nonces of 11 bytes, hence 4 for the length and the counter.
// See RFC 3610 2.1 to 2.3.
const (
	ccmNonceSize  = 11
	ccmLengthSize = 15 - ccmNonceSize
	ccmMaxPlain   = 1<<32 - 1
	ccmMaxAAD     = 0xFEFF // more takes another encoding, and nothing has more
)

var errOpen = errors.New("message authentication failed")

// ccm is AES-CCM.
//
// The standard library has no counter mode that can be restarted without an
// allocation, but its GCM is one: with a nonce of 12 bytes, GCM encrypts with
// the blocks that the nonce and a 32-bit counter from 2 on make, and CCM does so
// with its flags, its nonce and a counter from 1 on. GCM's own tag is wasted,
// which the slow chain of CCM's own makes up for many times.
type ccm struct {
	block  cipher.Block
	ctr    cipher.AEAD
	states sync.Pool // of *ccmState
}

// A ccmState serves one message at a time.
type ccmState struct {
	*cbcMAC
	block  [aes.BlockSize]byte // B0, then counter blocks
	stream [aes.BlockSize]byte
	tag    [aes.BlockSize]byte
}

func newCCM(block cipher.Block) (cipher.AEAD, error) {
	ctr, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	c := &ccm{block: block, ctr: ctr}
	c.states.New = func() any { return &ccmState{cbcMAC: newCBCMAC(block)} }
	return c, nil
}

func (c *ccm) NonceSize() int { return ccmNonceSize }
func (c *ccm) Overhead() int  { return aes.BlockSize }

func (c *ccm) Seal(dst, nonce, plaintext, aad []byte) []byte {
	if len(nonce) != ccmNonceSize || uint64(len(plaintext)) > ccmMaxPlain || len(aad) > ccmMaxAAD {
		panic("smbcrypt: CCM input of impossible size")
	}
	st := c.states.Get().(*ccmState)
	st.authenticate(nonce, plaintext, aad)
	ret := slices.Grow(dst, len(plaintext)+aes.BlockSize)
	ret = append(ret, plaintext...)
	c.crypt(st, nonce, ret[len(dst):])
	ret = append(ret, st.tag[:]...)
	c.states.Put(st)
	return ret
}

func (c *ccm) Open(dst, nonce, ciphertext, aad []byte) ([]byte, error) {
	n := len(ciphertext) - aes.BlockSize
	if n < 0 || uint64(n) > ccmMaxPlain || len(nonce) != ccmNonceSize || len(aad) > ccmMaxAAD {
		return nil, errOpen
	}
	ret := append(dst, ciphertext[:n]...)
	plain := ret[len(dst):]
	st := c.states.Get().(*ccmState)
	copy(st.tag[:], ciphertext[n:])
	c.crypt(st, nonce, plain)
	got := st.tag
	st.authenticate(nonce, plain, aad)
	ok := subtle.ConstantTimeCompare(got[:], st.tag[:]) == 1
	c.states.Put(st)
	if !ok {
		clear(plain)
		return nil, errOpen
	}
	return ret, nil
}

// authenticate leaves the tag, not yet encrypted, in st.tag. See RFC 3610 2.2.
func (st *ccmState) authenticate(nonce, plaintext, aad []byte) {
	st.block[0] = (aes.BlockSize-2)/2<<3 + ccmLengthSize - 1
	if len(aad) > 0 {
		st.block[0] |= 1 << 6
	}
	copy(st.block[1:], nonce)
	binary.BigEndian.PutUint32(st.block[12:], uint32(len(plaintext)))
	st.reset()
	st.write(st.block[:])
	if len(aad) > 0 {
		binary.BigEndian.PutUint16(st.block[:], uint16(len(aad)))
		st.write(st.block[:2])
		st.write(aad)
		st.pad()
	}
	st.write(plaintext)
	st.pad()
	st.tag = st.chain
}

// crypt encrypts or decrypts p in place, and st.tag. See RFC 3610 2.3.
func (c *ccm) crypt(st *ccmState, nonce, p []byte) {
	st.block[0] = ccmLengthSize - 1
	copy(st.block[1:], nonce)
	c.xorBlock(st, 0, st.tag[:])
	p = p[c.xorBlock(st, 1, p):]
	// GCM takes all that leaves it room for its tag, over bytes put back.
	n := max(0, len(p)-aes.BlockSize) &^ (aes.BlockSize - 1)
	if n > 0 {
		saved := [aes.BlockSize]byte(p[n:])
		c.ctr.Seal(p[:0], st.block[:12], p[:n], nil)
		copy(p[n:], saved[:])
	}
	for counter := uint32(2 + n/aes.BlockSize); n < len(p); counter++ {
		n += c.xorBlock(st, counter, p[n:])
	}
}

// xorBlock adds one block of key stream to p and returns how much that was.
func (c *ccm) xorBlock(st *ccmState, counter uint32, p []byte) int {
	binary.BigEndian.PutUint32(st.block[12:], counter)
	c.block.Encrypt(st.stream[:], st.block[:])
	return subtle.XORBytes(p, p, st.stream[:])
}
