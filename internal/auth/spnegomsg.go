package auth

import (
	"encoding/asn1"
	"errors"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"
)

var (
	oidSPNEGO = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 2}

	errSPNEGO = errors.New("malformed SPNEGO token")
)

// mechNames are for error messages.
var mechNames = map[string]string{
	oidNTLMSSP.String():      "NTLM",
	"1.2.840.113554.1.2.2":   "Kerberos",
	"1.2.840.48018.1.2.2":    "Kerberos (old Microsoft OID)",
	"1.2.840.113554.1.2.2.3": "Kerberos user to user",
	"1.3.6.1.5.2.5":          "IAKERB",
	"1.3.6.1.5.2.7":          "PKU2U",
	"1.3.6.1.4.1.311.2.2.30": "NegoEx",
}

func mechName(oid asn1.ObjectIdentifier) string {
	if name, ok := mechNames[oid.String()]; ok {
		return name
	}
	return oid.String()
}

// Context tags of fields.
func tag(n uint8) der.Tag { return der.Tag(n).Constructed().ContextSpecific() }

// negTokenInit is a client's first token and, as NegTokenInit2, what a server
// hints at in advance. See RFC 4178 4.2.1 and [MS-SPNG] 2.2.1.
type negTokenInit struct {
	mechTypes []asn1.ObjectIdentifier
	mechToken []byte
	hint      string // from servers
}

// mechTypeList is what mechListMIC signs.
func mechTypeList(mechs []asn1.ObjectIdentifier) []byte {
	var b cryptobyte.Builder
	b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, m := range mechs {
			b.AddASN1ObjectIdentifier(m)
		}
	})
	return b.BytesOrPanic()
}

func (t *negTokenInit) Append(dst []byte) []byte {
	b := cryptobyte.NewBuilder(dst)
	b.AddASN1(der.Tag(0).Constructed()|0x40, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidSPNEGO)
		b.AddASN1(tag(0), func(b *cryptobyte.Builder) {
			b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(tag(0), func(b *cryptobyte.Builder) { b.AddBytes(mechTypeList(t.mechTypes)) })
				addOctets(b, 2, t.mechToken)
				if t.hint != "" {
					b.AddASN1(tag(3), func(b *cryptobyte.Builder) {
						b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
							b.AddASN1(tag(0), func(b *cryptobyte.Builder) {
								b.AddASN1(der.GeneralString, func(b *cryptobyte.Builder) { b.AddBytes([]byte(t.hint)) })
							})
						})
					})
				}
			})
		})
	})
	return b.BytesOrPanic()
}

// Decode aliases the token. What follows mechToken is not looked at: a MIC has
// no place in a first token, and hints say nothing.
func (t *negTokenInit) Decode(token []byte) error {
	s := cryptobyte.String(token)
	var app, init, seq, list cryptobyte.String
	var oid asn1.ObjectIdentifier
	if !s.ReadASN1(&app, der.Tag(0).Constructed()|0x40) || !s.Empty() ||
		!app.ReadASN1ObjectIdentifier(&oid) || !oid.Equal(oidSPNEGO) ||
		!app.ReadASN1(&init, tag(0)) || !app.Empty() ||
		!init.ReadASN1(&seq, der.SEQUENCE) || !init.Empty() ||
		!seq.ReadASN1(&list, tag(0)) {
		return errSPNEGO
	}
	var mechs cryptobyte.String
	if !list.ReadASN1(&mechs, der.SEQUENCE) || !list.Empty() {
		return errSPNEGO
	}
	for !mechs.Empty() {
		var m asn1.ObjectIdentifier
		if !mechs.ReadASN1ObjectIdentifier(&m) {
			return errSPNEGO
		}
		t.mechTypes = append(t.mechTypes, m)
	}
	if !seq.SkipOptionalASN1(tag(1)) || !readOctets(&seq, 2, &t.mechToken) {
		return errSPNEGO
	}
	return nil
}

// negState says how far a negotiation is. See RFC 4178 4.2.2.
type negState int

const (
	stateNone       negState = -1 // no state in the token
	stateCompleted  negState = 0
	stateIncomplete negState = 1
	stateReject     negState = 2
	stateRequestMIC negState = 3
)

// negTokenResp is any later token of either side. See RFC 4178 4.2.2.
type negTokenResp struct {
	state         negState
	supportedMech asn1.ObjectIdentifier
	responseToken []byte
	mechListMIC   []byte
}

func (t *negTokenResp) Append(dst []byte) []byte {
	b := cryptobyte.NewBuilder(dst)
	b.AddASN1(tag(1), func(b *cryptobyte.Builder) {
		b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
			if t.state != stateNone {
				b.AddASN1(tag(0), func(b *cryptobyte.Builder) { b.AddASN1Enum(int64(t.state)) })
			}
			if t.supportedMech != nil {
				b.AddASN1(tag(1), func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(t.supportedMech) })
			}
			addOctets(b, 2, t.responseToken)
			addOctets(b, 3, t.mechListMIC)
		})
	})
	return b.BytesOrPanic()
}

// Decode aliases the token.
func (t *negTokenResp) Decode(token []byte) error {
	s := cryptobyte.String(token)
	var resp, seq, field cryptobyte.String
	if !s.ReadASN1(&resp, tag(1)) || !s.Empty() || !resp.ReadASN1(&seq, der.SEQUENCE) || !resp.Empty() {
		return errSPNEGO
	}
	var has bool
	t.state = stateNone
	if !seq.ReadOptionalASN1(&field, &has, tag(0)) {
		return errSPNEGO
	}
	if has {
		var state int
		if !field.ReadASN1Enum(&state) || !field.Empty() || state < 0 || state > int(stateRequestMIC) {
			return errSPNEGO
		}
		t.state = negState(state)
	}
	if !seq.ReadOptionalASN1(&field, &has, tag(1)) ||
		has && (!field.ReadASN1ObjectIdentifier(&t.supportedMech) || !field.Empty()) ||
		!readOctets(&seq, 2, &t.responseToken) || !readOctets(&seq, 3, &t.mechListMIC) || !seq.Empty() {
		return errSPNEGO
	}
	return nil
}

func addOctets(b *cryptobyte.Builder, n uint8, p []byte) {
	if len(p) > 0 {
		b.AddASN1(tag(n), func(b *cryptobyte.Builder) { b.AddASN1OctetString(p) })
	}
}

// readOctets reads an octet string that may be missing.
func readOctets(s *cryptobyte.String, n uint8, out *[]byte) bool {
	var field, octets cryptobyte.String
	var has bool
	if !s.ReadOptionalASN1(&field, &has, tag(n)) {
		return false
	}
	if has && (!field.ReadASN1(&octets, der.OCTET_STRING) || !field.Empty()) {
		return false
	}
	*out = octets
	return true
}
