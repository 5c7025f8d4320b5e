// Package smbcrypt signs, seals and derives keys as SMB 2.0.2 to 3.1.1 do.
//
// It owns the algorithms and the nonces. It refuses to know what a message
// means: of a message it reads the header fields that enter a nonce, and no
// other. Nothing here waits or does I/O; everything may be used by several
// goroutines at once, except a Preauth.
package smbcrypt

import (
	"errors"
	"fmt"
)

// Cipher is an encryption algorithm. See [MS-SMB2] 2.2.3.1.2.
type Cipher uint16

const (
	AES128CCM Cipher = 1
	AES128GCM Cipher = 2
	AES256CCM Cipher = 3
	AES256GCM Cipher = 4
)

var ciphers = map[Cipher]struct {
	name       string
	key, nonce int
}{
	AES128CCM: {"AES-128-CCM", 16, ccmNonceSize},
	AES128GCM: {"AES-128-GCM", 16, 12},
	AES256CCM: {"AES-256-CCM", 32, ccmNonceSize},
	AES256GCM: {"AES-256-GCM", 32, 12},
}

func (c Cipher) String() string {
	if s, ok := ciphers[c]; ok {
		return s.name
	}
	return fmt.Sprintf("cipher %#x", uint16(c))
}

// KeySize returns how long a key is in bytes, 0 for an unknown cipher.
func (c Cipher) KeySize() int { return ciphers[c].key }

// Signing is a signing algorithm. See [MS-SMB2] 2.2.3.1.7.
type Signing uint16

const (
	HMACSHA256 Signing = 0
	AESCMAC    Signing = 1
	AESGMAC    Signing = 2
)

// DefaultSigning returns the algorithm of a dialect where none was negotiated.
func DefaultSigning(dialect uint16) Signing {
	if dialect < 0x0300 {
		return HMACSHA256
	}
	return AESCMAC
}

func (s Signing) String() string {
	switch s {
	case HMACSHA256:
		return "HMAC-SHA256"
	case AESCMAC:
		return "AES-CMAC"
	case AESGMAC:
		return "AES-GMAC"
	}
	return fmt.Sprintf("signing %#x", uint16(s))
}

var (
	errSigning = errors.New("unknown signing algorithm")
	errCipher  = errors.New("unknown cipher")
	errKeySize = errors.New("wrong key size")
)
