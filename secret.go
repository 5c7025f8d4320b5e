package pagewire

import "log/slog"

// Secret is a string that does not show itself, however and in whatever it is
// printed. The zero Secret is none at all.
type Secret struct {
	// A pointer, since fmt calls no method of what is in a field that is not
	// exported, and prints pointers there as addresses.
	s *string
}

// NewSecret hides s.
func NewSecret(s string) Secret { return Secret{&s} }

func (s Secret) get() (value string, ok bool) {
	if s.s == nil {
		return "", false
	}
	return *s.s, true
}

func (s Secret) known() bool { return s.s != nil }

func (s Secret) String() string {
	if s.s == nil {
		return ""
	}
	return "secret"
}

func (s Secret) GoString() string             { return "pagewire.Secret(" + s.String() + ")" }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(s.String()) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Credentials say who logs on.
type Credentials struct {
	User     string
	Password Secret
	Domain   string
}

func (c Credentials) String() string {
	s := c.User
	if c.Domain != "" {
		s = c.Domain + `\` + s
	}
	if password, _ := c.Password.get(); password != "" {
		s += " with a password"
	}
	return s
}

func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }
