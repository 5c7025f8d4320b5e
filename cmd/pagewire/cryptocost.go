package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"time"
)

// cryptoCost measures how many seconds this machine takes per byte to sign or,
// what replaces it, to seal with the algorithms named as in pagewire.Stats.
// It is 0 without either.
func cryptoCost(signing, sealing string) float64 {
	const chunk = 256 << 10
	buf := make([]byte, chunk, chunk+aes.BlockSize)
	once := cryptoOnce(signing, sealing, buf)
	if once == nil {
		return 0
	}
	once() // warms caches
	start, n := time.Now(), 0
	for time.Since(start) < 5*time.Millisecond {
		once()
		n += chunk
	}
	return time.Since(start).Seconds() / float64(n)
}

// cryptoOnce returns what does to buf as much work as one algorithm would. CMAC
// and CCM are made of a CBC chain, CCM of CTR too.
func cryptoOnce(signing, sealing string, buf []byte) func() {
	block, err := aes.NewCipher(make([]byte, keySize(sealing)))
	if err != nil {
		return nil
	}
	cbc := cipher.NewCBCEncrypter(block, make([]byte, aes.BlockSize))
	ctr := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil
	}
	nonce := make([]byte, gcm.NonceSize())
	switch {
	case strings.HasSuffix(sealing, "GCM"):
		return func() { gcm.Seal(buf[:0], nonce, buf, nil) }
	case strings.HasSuffix(sealing, "CCM"):
		return func() {
			cbc.CryptBlocks(buf, buf)
			ctr.XORKeyStream(buf, buf)
		}
	case sealing != "":
		return nil
	case strings.HasSuffix(signing, "GMAC"):
		tag := make([]byte, 0, gcm.Overhead())
		return func() { gcm.Seal(tag, nonce, nil, buf) }
	case strings.HasSuffix(signing, "CMAC"):
		return func() { cbc.CryptBlocks(buf, buf) }
	case strings.HasPrefix(signing, "HMAC"):
		mac := hmac.New(sha256.New, nonce)
		return func() {
			mac.Reset()
			mac.Write(buf)
			mac.Sum(nil)
		}
	}
	return nil
}

func keySize(algorithm string) int {
	if strings.Contains(algorithm, "256") {
		return 32
	}
	return 16
}
