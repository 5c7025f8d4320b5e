package smbcrypt

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// slowCCM is RFC 3610 for nonces and tags of any length, block by block.
func slowCCM(block cipher.Block, tagLen int, nonce, plaintext, aad []byte) []byte {
	q := 15 - len(nonce)
	b := make([]byte, 16)
	b[0] = byte((tagLen-2)/2<<3 | q - 1)
	copy(b[1:], nonce)
	for i := range q {
		b[15-i] = byte(len(plaintext) >> (8 * i))
	}
	if len(aad) > 0 {
		b[0] |= 1 << 6
		b = binary.BigEndian.AppendUint16(b, uint16(len(aad)))
		b = append(b, aad...)
		b = append(b, make([]byte, -len(b)&15)...)
	}
	b = append(b, plaintext...)
	b = append(b, make([]byte, -len(b)&15)...)
	mac := make([]byte, 16)
	for ; len(b) > 0; b = b[16:] {
		for i := range mac {
			mac[i] ^= b[i]
		}
		block.Encrypt(mac, mac)
	}
	stream := func(counter int) []byte {
		a := make([]byte, 16)
		a[0] = byte(q - 1)
		copy(a[1:], nonce)
		for i := range q {
			a[15-i] = byte(counter >> (8 * i))
		}
		block.Encrypt(a, a)
		return a
	}
	var out []byte
	for i, c := range plaintext {
		out = append(out, c^stream(i/16 + 1)[i%16])
	}
	for i, c := range stream(0)[:tagLen] {
		out = append(out, mac[i]^c)
	}
	return out
}

// TestSlowCCM holds the yardstick against packet vectors 1 and 2 of RFC 3610 8.
func TestSlowCCM(t *testing.T) {
	block := newAES(unhex(t, "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf"))
	for _, c := range []struct{ nonce, plain, want string }{
		{"00000003020100a0a1a2a3a4a5", "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e",
			"588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0"},
		{"00000004030201a0a1a2a3a4a5", "08090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
			"72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3ba091d56e10400916"},
	} {
		got := slowCCM(block, 8, unhex(t, c.nonce), unhex(t, c.plain), unhex(t, "0001020304050607"))
		if !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("nonce %s: got %x, want %s", c.nonce, got, c.want)
		}
	}
}

func TestCCM(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, keySize := range []int{16, 32} {
		key := sha256.Sum256([]byte("key"))
		block := newAES(key[:keySize])
		ccm, err := newCCM(block)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 400 {
			if n > 300 {
				n = r.IntN(20000)
			}
			nonce, plain, aad := make([]byte, 11), make([]byte, n), make([]byte, r.IntN(70))
			for _, b := range [][]byte{nonce, plain, aad} {
				for i := range b {
					b[i] = byte(r.Uint32())
				}
			}
			want := slowCCM(block, 16, nonce, plain, aad)
			got := ccm.Seal([]byte("ab"), nonce, plain, aad)
			if string(got[:2]) != "ab" || !bytes.Equal(got[2:], want) {
				t.Fatalf("%d bytes sealed = %x, want 6162 and %x", n, got, want)
			}
			back, err := ccm.Open([]byte("cd"), nonce, got[2:], aad)
			if err != nil || string(back[:2]) != "cd" || !bytes.Equal(back[2:], plain) {
				t.Fatalf("%d bytes do not open: %v", n, err)
			}
			in := append(make([]byte, 0, n+16), plain...)
			if ccm.Seal(in[:0], nonce, in, aad); !bytes.Equal(in[:n+16], want) {
				t.Fatalf("%d bytes sealed in place = %x, want %x", n, in[:n+16], want)
			}
			bad := bytes.Clone(want)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			if _, err := ccm.Open(nil, nonce, bad, aad); err == nil {
				t.Fatalf("%d bytes open though changed", n)
			}
		}
	}
}

const testSession = 0x1122334455667788

// pair returns the Sealers of both ends.
func pair(t testing.TB, c Cipher) (client, server *Sealer) {
	t.Helper()
	out, in := bytes.Repeat([]byte{1}, c.KeySize()), bytes.Repeat([]byte{2}, c.KeySize())
	client, err := NewSealer(c, testSession, out, in)
	if err != nil {
		t.Fatal(err)
	}
	if server, err = NewSealer(c, testSession, in, out); err != nil {
		t.Fatal(err)
	}
	return client, server
}

var allCiphers = []Cipher{AES128CCM, AES128GCM, AES256CCM, AES256GCM}

func TestSealOpen(t *testing.T) {
	for _, c := range allCiphers {
		t.Run(c.String(), func(t *testing.T) {
			client, server := pair(t, c)
			nonces := map[string]bool{}
			for _, n := range []int{1, 15, 16, 17, 31, 32, 33, 47, 48, 64, 1000, 65536} {
				for _, spare := range []int{0, 15, TagSize, 100} {
					plain := bytes.Repeat([]byte{byte(n)}, n)
					frame := append(make([]byte, TransformSize, TransformSize+n+spare), plain...)
					client.Seal(frame)
					if nonce := string(frame[20:36]); nonces[nonce] {
						t.Fatalf("nonce %x twice", nonce)
					} else {
						nonces[nonce] = true
					}
					if bytes.Contains(frame, plain) && n >= 15 {
						t.Errorf("%d bytes are sealed as they were", n)
					}
					want := []byte{0xFD, 'S', 'M', 'B'}
					if got := frame[:4]; !bytes.Equal(got, want) {
						t.Errorf("ProtocolId = %x, want %x", got, want)
					}
					want = binary.LittleEndian.AppendUint32(nil, uint32(n))
					want = binary.LittleEndian.AppendUint64(append(want, 0, 0, 1, 0), testSession)
					if got := frame[36:52]; !bytes.Equal(got, want) {
						t.Errorf("header ends in %x, want %x", got, want)
					}
					if _, err := client.Open(bytes.Clone(frame)); err == nil {
						t.Error("a client opens what it sealed")
					}
					got, err := server.Open(frame)
					if err != nil || !bytes.Equal(got, plain) {
						t.Fatalf("%d bytes, %d spare: not opened: %v", n, spare, err)
					}
					if spare >= TagSize && &got[0] != &frame[TransformSize] {
						t.Errorf("%d bytes, %d spare: not opened in place", n, spare)
					}
				}
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range allCiphers {
		client, server := pair(t, c)
		frame := make([]byte, TransformSize+40)
		client.Seal(frame)
		for i := range frame {
			for bit := range 8 {
				bad := bytes.Clone(frame)
				bad[i] ^= 1 << bit
				if _, err := server.Open(bad); !errors.Is(err, ErrUnsealed) {
					t.Errorf("%v: opened with bit %d of byte %d changed: %v", c, bit, i, err)
				}
			}
			if _, err := server.Open(bytes.Clone(frame[:i])); !errors.Is(err, ErrUnsealed) {
				t.Errorf("%v: opened when cut to %d bytes: %v", c, i, err)
			}
		}
		if _, err := server.Open(append(bytes.Clone(frame), 0)); !errors.Is(err, ErrUnsealed) {
			t.Errorf("%v: opened with a byte more: %v", c, err)
		}
	}
}

func TestSealerRefuses(t *testing.T) {
	if _, err := NewSealer(5, 1, nil, nil); err == nil {
		t.Error("NewSealer took an unknown cipher")
	}
	for _, c := range allCiphers {
		good, bad := make([]byte, c.KeySize()), make([]byte, c.KeySize()-1)
		if _, err := NewSealer(c, 1, good, bad); err == nil {
			t.Errorf("NewSealer(%v) took a short key to open with", c)
		}
		if _, err := NewSealer(c, 1, bad, good); err == nil {
			t.Errorf("NewSealer(%v) took a short key to seal with", c)
		}
	}
}

func TestSealAllocs(t *testing.T) {
	if raceEnabled() {
		t.Skip("sync.Pool drops items under the race detector")
	}
	for _, c := range allCiphers {
		client, server := pair(t, c)
		frame := make([]byte, TransformSize+65536, TransformSize+65536+TagSize)
		n := testing.AllocsPerRun(100, func() {
			client.Seal(frame)
			if _, err := server.Open(frame); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v: Seal and Open allocate %v times", c, n)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, c := range allCiphers {
		client, _ := pair(f, c)
		frame := make([]byte, TransformSize+100)
		client.Seal(frame)
		f.Add(frame)
		f.Add(frame[:TransformSize+1])
		f.Add(frame[:3])
	}
	var servers []*Sealer
	for _, c := range allCiphers {
		_, server := pair(f, c)
		servers = append(servers, server)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, s := range servers {
			in := bytes.Clone(frame)
			if plain, err := s.Open(in); err == nil && len(plain) != len(in)-TransformSize {
				t.Errorf("%d bytes opened to %d", len(in), len(plain))
			}
		}
	})
}

func TestNames(t *testing.T) {
	var got []string
	for _, c := range append(allCiphers, 7) {
		got = append(got, c.String())
	}
	for _, s := range append(signings, 9) {
		got = append(got, s.String())
	}
	want := "AES-128-CCM AES-128-GCM AES-256-CCM AES-256-GCM cipher 0x7 HMAC-SHA256 AES-CMAC AES-GMAC signing 0x9"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("names are %q, want %q", s, want)
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, c := range allCiphers {
		client, server := pair(b, c)
		for _, size := range []int{200, 1 << 20} {
			frame := make([]byte, TransformSize+size, TransformSize+size+TagSize)
			b.Run(fmt.Sprintf("%v/%d", c, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					client.Seal(frame)
					if _, err := server.Open(frame); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
