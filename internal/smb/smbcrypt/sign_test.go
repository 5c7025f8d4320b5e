package smbcrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
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

func newSigner(t testing.TB, alg Signing, key []byte) *Signer {
	t.Helper()
	s, err := NewSigner(alg, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCMAC has the four examples of RFC 4493 4.
func TestCMAC(t *testing.T) {
	key := newCMACKey(unhex(t, "2b7e151628aed2a6abf7158809cf4f3c"))
	msg := unhex(t, "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"+
		"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
	m := &cmac{key: key, cbcMAC: newCBCMAC(key.block)}
	for n, want := range map[int]string{
		0:  "bb1d6929e95937287fa37d129b756746",
		16: "070a16b46b4d4144f79bdd9dd04a287c",
		40: "dfa66747de9ae63030ca32611497c827",
		64: "51f0bebf7e3b9d92fc49741779363cfe",
	} {
		for cut := range n + 1 {
			var got [16]byte
			m.reset(nil)
			m.write(msg[:cut])
			m.write(msg[cut:n])
			m.sum(&got)
			if hex.EncodeToString(got[:]) != want {
				t.Errorf("CMAC of %d bytes cut at %d = %x, want %s", n, cut, got, want)
			}
		}
	}
}

// contiguous is what a Signer has to compute, in the plainest way there is.
func contiguous(t testing.TB, alg Signing, key, msg []byte) []byte {
	t.Helper()
	msg = bytes.Clone(msg)
	clear(msg[48:64])
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	switch alg {
	case HMACSHA256:
		h := hmac.New(sha256.New, key)
		h.Write(msg)
		return h.Sum(nil)[:16]
	case AESGMAC:
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		nonce := make([]byte, 12)
		copy(nonce, msg[24:32])
		nonce[8] = msg[16] & 1
		if msg[12] == 0x0C && msg[13] == 0 {
			nonce[8] |= 2
		}
		return gcm.Seal(nil, nonce, nil, msg)
	default:
		var k1, chain [16]byte
		block.Encrypt(k1[:], k1[:])
		k1 = double(k1)
		last := double(k1)
		if len(msg)%16 == 0 {
			last = k1
		} else {
			msg = append(msg, 0x80)
			msg = append(msg, make([]byte, -len(msg)&15)...)
		}
		for i := range last {
			msg[len(msg)-16+i] ^= last[i]
		}
		for ; len(msg) > 0; msg = msg[16:] {
			for i := range chain {
				chain[i] ^= msg[i]
			}
			block.Encrypt(chain[:], chain[:])
		}
		return chain[:]
	}
}

var signings = []Signing{HMACSHA256, AESCMAC, AESGMAC}

// cutUp cuts msg behind its header in up to n places.
func cutUp(r *rand.Rand, msg []byte, n int) (segs [][]byte) {
	first := HeaderSize + r.IntN(min(100, len(msg)-HeaderSize)+1)
	segs, msg = append(segs, msg[:first]), msg[first:]
	for ; n > 0 && len(msg) > 0; n-- {
		i := r.IntN(len(msg) + 1)
		segs, msg = append(segs, msg[:i]), msg[i:]
	}
	return append(segs, msg)
}

func TestSignPieces(t *testing.T) {
	for _, alg := range signings {
		t.Run(alg.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			key := []byte("0123456789abcdef")
			s := newSigner(t, alg, key)
			for range 2000 {
				msg := make([]byte, HeaderSize+r.IntN([]int{1, 20, 300, 20000}[r.IntN(4)]))
				for i := range msg {
					msg[i] = byte(r.Uint32())
				}
				if r.IntN(2) == 0 {
					copy(msg[12:], []byte{0x0C, 0}) // CANCEL
				}
				want := contiguous(t, alg, key, msg)
				segs := cutUp(r, msg, r.IntN(4))
				s.Sign(segs...)
				if got := msg[48:64]; !bytes.Equal(got, want) {
					t.Fatalf("signature of %d bytes = %x, want %x", len(msg), got, want)
				}
				signed := bytes.Clone(msg)
				if !s.Verify(cutUp(r, msg, r.IntN(4))...) {
					t.Fatalf("%d bytes do not verify", len(msg))
				}
				if !bytes.Equal(msg, signed) {
					t.Fatal("Verify changed the message")
				}
				i := r.IntN(len(msg))
				msg[i] ^= 1 << r.IntN(8)
				if s.Verify(segs...) {
					t.Fatalf("%d bytes verify with byte %d changed", len(msg), i)
				}
			}
		})
	}
}

// A message with its first piece changed has another signature, so each goroutine
// would notice if it met another's state.
func TestSignConcurrently(t *testing.T) {
	for _, alg := range signings {
		s := newSigner(t, alg, make([]byte, 16))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				head, body := make([]byte, 80), bytes.Repeat([]byte{byte(i)}, 5000)
				head[24] = byte(i)
				want := contiguous(t, alg, make([]byte, 16), append(bytes.Clone(head), body...))
				for range 200 {
					s.Sign(head, body)
					if !bytes.Equal(head[48:64], want) || !s.Verify(head, body) {
						t.Errorf("%v: signature = %x, want %x", alg, head[48:64], want)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestVerifyShort(t *testing.T) {
	for _, alg := range signings {
		s := newSigner(t, alg, make([]byte, 16))
		for n := range HeaderSize {
			if s.Verify(make([]byte, n)) {
				t.Errorf("%v: %d bytes verify", alg, n)
			}
		}
		if s.Verify() {
			t.Errorf("%v: nothing verifies", alg)
		}
	}
}

func TestSignerRefuses(t *testing.T) {
	if _, err := NewSigner(3, make([]byte, 16)); err == nil {
		t.Error("NewSigner took an unknown algorithm")
	}
	for _, alg := range signings {
		if _, err := NewSigner(alg, make([]byte, 15)); err == nil {
			t.Errorf("NewSigner(%v) took a key of 15 bytes", alg)
		}
	}
}

// TestGFMul has H and the product of a step of NIST's GCM test case 2, where the
// hash of one block of ciphertext is known.
func TestGFMul(t *testing.T) {
	at := func(s string) element { return load((*[16]byte)(unhex(t, s))) }
	h := at("66e94bd4ef8a2c3b884cfa59ca342b2e")
	if got, want := at("0388dace60b6a392f328c2b971b2fe78").mul(h), at("5e2ec746917062882c85b0685353deb7"); got != want {
		t.Errorf("product = %x, want %x", got, want)
	}
	one := element{hi: 1 << 63}
	if got := h.mul(one); got != h {
		t.Errorf("h × 1 = %x, want %x", got, h)
	}
}

func TestSignAllocs(t *testing.T) {
	if raceEnabled() {
		t.Skip("sync.Pool drops items under the race detector")
	}
	head, body := make([]byte, 112), make([]byte, 65536)
	for _, alg := range signings {
		s := newSigner(t, alg, make([]byte, 16))
		if n := testing.AllocsPerRun(100, func() { s.Sign(head, body) }); n != 0 {
			t.Errorf("%v: Sign allocates %v times", alg, n)
		}
		if n := testing.AllocsPerRun(100, func() { s.Verify(head, body) }); n != 0 {
			t.Errorf("%v: Verify allocates %v times", alg, n)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	for _, alg := range signings {
		for _, size := range []int{0, 4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%v/%d", alg, size), func(b *testing.B) {
				s := newSigner(b, alg, make([]byte, 16))
				head, body := make([]byte, 112), make([]byte, size)
				b.SetBytes(int64(len(head) + len(body)))
				b.ReportAllocs()
				for b.Loop() {
					s.Sign(head, body)
				}
			})
		}
	}
}
