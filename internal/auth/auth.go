// Package auth proves who somebody is, by NTLMv2 inside SPNEGO, on the client's
// side and on the server's.
//
// It owns tokens: it reads one and returns the next. It refuses to know what
// protocol carries them, and which answer of a server ends a logon. The states
// of a logon have no lock; each belongs to one goroutine.
package auth

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Mechanism is one side of a security mechanism in one logon.
type Mechanism interface {
	// OID names the mechanism to the peer.
	OID() asn1.ObjectIdentifier
	// Next takes in the peer's token, none at a client's start, and returns the
	// one to send, if any. It is done once it awaits none from the peer.
	Next(token []byte) (out []byte, done bool, err error)
	// SessionKey is the key that both sides share once Next is done, nil if none.
	SessionKey() []byte
	// MIC signs msg, once; nil from a logon without a key that proves anything.
	MIC(msg []byte) []byte
	// VerifyMIC checks what the peer's MIC made of msg, once.
	VerifyMIC(msg, mic []byte) error
}

var (
	// ErrLogon says that a name or password is wrong.
	ErrLogon = errors.New("logon failure")
	// ErrMIC says that a message was changed on its way, or came from
	// somebody who does not know the session key.
	ErrMIC = errors.New("message integrity check failed")
)

// Credentials are what a user logs on with. The zero value is the anonymous user.
// However they are printed, the password is not.
type Credentials struct {
	User     string // "user@realm" stands with an empty Domain
	Password string
	Domain   string
}

// ParseUser splits the forms of a user name that name a domain: DOM\user, DOM/user.
// In user@realm the server tells the realm, so that stays whole.
func ParseUser(name string) Credentials {
	if i := strings.IndexAny(name, `\/`); i >= 0 {
		return Credentials{User: name[i+1:], Domain: name[:i]}
	}
	return Credentials{User: name}
}

// Anonymous reports whether c is nobody.
func (c Credentials) Anonymous() bool { return c.User == "" && c.Password == "" }

func (c Credentials) String() string {
	switch {
	case c.Anonymous():
		return "anonymous"
	case c.Domain != "":
		return c.Domain + `\` + c.User
	}
	return c.User
}

// Format prints String for every verb, so that none reaches the password.
func (c Credentials) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue is String in logs.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String in JSON and the like.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
