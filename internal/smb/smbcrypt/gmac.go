package smbcrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// gmac is AES-GMAC, for 3.1.1: GCM with a message as additional data and nothing
// to encrypt. The standard library's GCM is fast, but wants the message in one
// piece, and a payload is too big to be copied next to its header.
//
// So each piece is hashed by itself, and the hashes are put together. For blocks
// X1…Xm of additional data, of L bits, a tag is
//
//	E(J0) + X1·H^(m+1) + … + Xm·H^2 + L·H
//
// Let S(X) be the middle part, with L·H and E(J0) taken off the tag of X alone.
// Then S(X‖Y) = S(X)·H^n + S(Y), n being the number of Y's blocks.
// See SP800-38D 6.4 and 7.1, and [MS-SMB2] 3.1.4.1 for the nonce.
type gmac struct {
	key   *gmacKey
	nonce [12]byte
	mask  element // E(J0)
	hash  element // S of the blocks so far
	bytes uint64  // the message so far
	n     int     // bytes in part
	part  [aes.BlockSize]byte
	tag   [aes.BlockSize]byte
}

type gmacKey struct {
	block cipher.Block
	aead  cipher.AEAD
	// powers[i] is H^(2^i), for pieces of up to 2^len(powers) blocks.
	powers [40]element
}

func newGMACKey(key []byte) *gmacKey {
	k := &gmacKey{block: newAES(key)}
	aead, err := cipher.NewGCM(k.block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	k.aead = aead
	var h [aes.BlockSize]byte
	k.block.Encrypt(h[:], h[:])
	k.powers[0] = load(&h)
	for i := 1; i < len(k.powers); i++ {
		k.powers[i] = k.powers[i-1].mul(k.powers[i-1])
	}
	return k
}

// Header fields that enter the nonce. See [MS-SMB2] 2.2.1.2.
const (
	commandCancel     = 0x000C
	flagServerToRedir = 0x00000001

	nonceServer = 1
	nonceCancel = 2
)

func (m *gmac) reset(header []byte) {
	*m = gmac{key: m.key}
	copy(m.nonce[:8], header[offMessageID:])
	if binary.LittleEndian.Uint32(header[offFlags:])&flagServerToRedir != 0 {
		m.nonce[8] |= nonceServer
	}
	if binary.LittleEndian.Uint16(header[offCommand:]) == commandCancel {
		m.nonce[8] |= nonceCancel
	}
	copy(m.tag[:], m.nonce[:])
	m.tag[15] = 1 // J0
	m.key.block.Encrypt(m.tag[:], m.tag[:])
	m.mask = load(&m.tag)
}

// write copies what joins two pieces to a block, at most.
func (m *gmac) write(p []byte) {
	m.bytes += uint64(len(p))
	if m.n > 0 {
		n := copy(m.part[m.n:], p)
		m.n += n
		p = p[n:]
		if m.n < len(m.part) {
			return
		}
		m.blocks(m.part[:])
	}
	whole := len(p) &^ (aes.BlockSize - 1)
	m.blocks(p[:whole])
	m.n = copy(m.part[:], p[whole:])
}

// blocks takes in a piece of whole blocks; only the last may be partial.
func (m *gmac) blocks(p []byte) {
	if len(p) == 0 {
		return
	}
	m.key.aead.Seal(m.tag[:0], m.nonce[:], nil, p)
	own := load(&m.tag).add(m.mask).add(m.key.length(uint64(len(p))))
	if m.hash != (element{}) {
		n := (len(p) + aes.BlockSize - 1) / aes.BlockSize
		for ; n > 0; n &= n - 1 {
			m.hash = m.hash.mul(m.key.powers[bits.TrailingZeros(uint(n))])
		}
	}
	m.hash = m.hash.add(own)
}

func (m *gmac) sum(out *[16]byte) {
	m.blocks(m.part[:m.n])
	m.hash.add(m.mask).add(m.key.length(m.bytes)).store(out)
}

// length returns L·H for so many bytes of additional data.
func (k *gmacKey) length(n uint64) element { return k.powers[0].mul(element{hi: n * 8}) }

// element is a polynomial of GF(2^128) as GHASH has it: the coefficient of x^0
// is the top bit of hi, that of x^127 the lowest of lo.
type element struct{ hi, lo uint64 }

func load(b *[16]byte) element {
	return element{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (e element) store(b *[16]byte) {
	binary.BigEndian.PutUint64(b[:8], e.hi)
	binary.BigEndian.PutUint64(b[8:], e.lo)
}

func (e element) add(f element) element { return element{e.hi ^ f.hi, e.lo ^ f.lo} }

// mul takes the same time for whatever it multiplies. See SP800-38D 6.3.
func (e element) mul(f element) (z element) {
	for _, word := range [2]uint64{e.hi, e.lo} {
		for range 64 {
			take := -(word >> 63)
			word <<= 1
			z.hi ^= f.hi & take
			z.lo ^= f.lo & take
			reduce := -(f.lo & 1) & (0xE1 << 56)
			f.lo = f.lo>>1 | f.hi<<63
			f.hi = f.hi>>1 ^ reduce
		}
	}
	return z
}
