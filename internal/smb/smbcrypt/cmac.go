package smbcrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// cbcMAC chains a message through AES-CBC for its last block alone, the core of
// CMAC and CCM. It holds back the last block, whole or not, because what is done
// to that is up to its user.
type cbcMAC struct {
	mode    cipher.BlockMode
	chain   [aes.BlockSize]byte // what mode will add to its next block
	first   bool                // the next block begins a message: chain is left over
	n       int                 // bytes held back in last
	last    [aes.BlockSize]byte
	scratch [4096]byte // ciphertext that nobody wants
}

func newCBCMAC(block cipher.Block) *cbcMAC {
	m := new(cbcMAC)
	m.mode = cipher.NewCBCEncrypter(block, m.chain[:])
	return m
}

func (m *cbcMAC) reset() { m.first, m.n = true, 0 }

func (m *cbcMAC) write(p []byte) {
	if room := aes.BlockSize - m.n; len(p) > room {
		copy(m.last[m.n:], p[:room])
		m.block()
		p = p[room:]
		for len(p) > aes.BlockSize {
			n := min(len(m.scratch), (len(p)-1)&^(aes.BlockSize-1))
			m.mode.CryptBlocks(m.scratch[:n], p[:n])
			copy(m.chain[:], m.scratch[n-aes.BlockSize:n])
			p = p[n:]
		}
	}
	m.n += copy(m.last[m.n:], p)
}

// block takes in the block held back, which is whole.
func (m *cbcMAC) block() {
	if m.first {
		// A BlockMode cannot be reset, but its leftover can be undone.
		subtle.XORBytes(m.last[:], m.last[:], m.chain[:])
		m.first = false
	}
	m.mode.CryptBlocks(m.chain[:], m.last[:])
	m.n = 0
}

// pad fills up the block held back with zeros and takes it in.
func (m *cbcMAC) pad() {
	if m.n > 0 {
		clear(m.last[m.n:])
		m.block()
	}
}

// cmac is AES-CMAC, for 3.0 and 3.0.2. See RFC 4493.
type cmac struct {
	key *cmacKey
	*cbcMAC
}

type cmacKey struct {
	block  cipher.Block
	k1, k2 [aes.BlockSize]byte // added to a last block that is whole, or that is not
}

func newCMACKey(key []byte) *cmacKey {
	k := &cmacKey{block: newAES(key)}
	k.block.Encrypt(k.k1[:], k.k1[:])
	k.k1 = double(k.k1)
	k.k2 = double(k.k1)
	return k
}

// double multiplies by x in the field that CMAC uses. See RFC 4493 2.3.
func double(b [aes.BlockSize]byte) (d [aes.BlockSize]byte) {
	var carry byte
	for i := len(b) - 1; i >= 0; i-- {
		d[i] = b[i]<<1 | carry
		carry = b[i] >> 7
	}
	d[len(d)-1] ^= -carry & 0x87
	return d
}

func (m *cmac) reset([]byte) { m.cbcMAC.reset() }

func (m *cmac) sum(out *[16]byte) {
	k := &m.key.k1
	if m.n < aes.BlockSize {
		clear(m.last[m.n:])
		m.last[m.n] = 0x80
		k = &m.key.k2
	}
	subtle.XORBytes(m.last[:], m.last[:], k[:])
	m.block()
	*out = m.chain
}
