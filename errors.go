package pagewire

import "errors"

var (
	// ErrAuth means that the server does not let this user in, or that there are
	// no credentials to try.
	ErrAuth = errors.New("authentication failed")
	// ErrSignature means that a reply was not signed or sealed as it must be. The
	// connection is gone, and nothing of the reply was used.
	ErrSignature = errors.New("bad signature")
	// ErrDisconnected means that the connection to the server is gone.
	ErrDisconnected = errors.New("disconnected")
	// ErrStale means that the server no longer knows an open file.
	ErrStale = errors.New("stale file handle")
)

// StatusError is a server's refusal. It is found inside the *fs.PathError of an
// operation, and errors.Is tells what it means: fs.ErrNotExist and its like,
// syscall.Errno, ErrAuth, ErrStale.
type StatusError struct {
	Op   string // of the protocol: "create", "tree connect"
	Code uint32 // an NTSTATUS
}

func (e *StatusError) Error() string        { return "" }
func (e *StatusError) Is(target error) bool { return false }

// NegotiateError means that client and server share no protocol version.
type NegotiateError struct{ Offered, Server []string }

func (e *NegotiateError) Error() string { return "" }
