package pagewire

import (
	"fmt"
	"log/slog"
)

// Credentials say who logs on. They never show their password, however they are printed.
type Credentials struct {
	User, Password, Domain string
}

func (c Credentials) String() string                { return "" }
func (c Credentials) GoString() string              { return "" }
func (c Credentials) Format(f fmt.State, verb rune) {}
func (c Credentials) LogValue() slog.Value          { return slog.Value{} }

// CredentialsError says that there are no credentials to log on with: a file is
// unreadable, or nobody gave a password. It is an ErrAuth.
type CredentialsError struct {
	From string // a file, an environment variable
	Err  error
}

func (e *CredentialsError) Error() string        { return "credentials: " + e.From + ": " + e.Err.Error() }
func (e *CredentialsError) Unwrap() error        { return e.Err }
func (e *CredentialsError) Is(target error) bool { return target == ErrAuth }
