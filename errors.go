package pagewire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
)

// ErrAuth means that the server does not let this user in, or that there are no
// credentials to try.
var ErrAuth = errors.New("authentication failed")

// ErrSignature means that a reply was not what the server signed or sealed. The
// connection has ended, and nothing of the reply was used.
var ErrSignature = smbconn.ErrSignature

// ErrDisconnected means that the connection to the server is lost.
var ErrDisconnected = smbconn.ErrDisconnected

// ErrStale means that the server no longer knows an open file.
var ErrStale = errors.New("stale file handle")

// errOutside means that a symbolic link cannot be followed: what it names, only
// the server or another computer knows.
var errOutside = errors.New("symbolic link leads out of the share")

// StatusError is a server's refusal. It is found inside the *fs.PathError of an
// operation, and errors.Is tells what it means: fs.ErrNotExist and its like, a
// syscall.Errno, ErrAuth, ErrStale.
type StatusError struct {
	Op   string // what was asked: "open", "log on"
	Code uint32 // an NTSTATUS

	more error // what says more than the status, or nil
}

// inWords has what is said better than by an errno.
func inWords(s ntstatus.Status) string {
	switch s {
	case ntstatus.BadNetworkName:
		return "no such share"
	case ntstatus.LogonFailure, ntstatus.WrongPassword:
		return "wrong user name or password"
	case ntstatus.AccountDisabled, ntstatus.AccountLockedOut, ntstatus.AccountExpired, ntstatus.AccountRestriction,
		ntstatus.InvalidLogonHours, ntstatus.LogonTypeNotGranted:
		return "the account may not log on"
	case ntstatus.PasswordExpired, ntstatus.PasswordMustChange:
		return "the password has expired"
	case ntstatus.PathNotCovered:
		return "this folder is on another server, and DFS referrals are not followed"
	}
	if errno := s.Errno(); errno != syscall.EIO {
		return errno.Error()
	}
	return "the server refused"
}

func (e *StatusError) Error() string {
	if e.more != nil {
		return e.more.Error()
	}
	s := ntstatus.Status(e.Code)
	return inWords(s) + " (" + s.String() + ")"
}

func (e *StatusError) Unwrap() error { return e.more }

// Is reports whether the status means target.
func (e *StatusError) Is(target error) bool {
	s := ntstatus.Status(e.Code)
	switch target {
	case ErrAuth:
		return isLogon(s) || e.Op == opLogon && s.Is(fs.ErrPermission)
	case ErrStale, syscall.ESTALE:
		return s == ntstatus.FileClosed || s == ntstatus.FileForcedClosed || s == ntstatus.InvalidHandle
	}
	return s.Is(target)
}

const opLogon = "log on"

func isLogon(s ntstatus.Status) bool {
	switch s {
	case ntstatus.LogonFailure, ntstatus.WrongPassword, ntstatus.AccountRestriction, ntstatus.AccountDisabled,
		ntstatus.AccountExpired, ntstatus.AccountLockedOut, ntstatus.PasswordExpired, ntstatus.PasswordMustChange,
		ntstatus.InvalidLogonHours, ntstatus.LogonTypeNotGranted:
		return true
	}
	return false
}

// NegotiateError means that client and server have no version of the protocol in
// common.
type NegotiateError struct {
	Offered []string // by us
	Server  []string // what the server has, as far as it said; it may be older
}

func (e *NegotiateError) Error() string {
	s := "no protocol version in common: offered " + strings.Join(e.Offered, ", ")
	if len(e.Server) > 0 {
		s += "; the server has " + strings.Join(e.Server, ", ")
	}
	return s
}

// public turns an error of a protocol into one that the outside can know.
func public(op string, ctx context.Context, err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return context.Cause(ctx) // a deadline of the file, or what the context of the caller says
	}
	if status, ok := errors.AsType[ntstatus.Status](err); ok {
		e := &StatusError{Op: op, Code: uint32(status)}
		if saysMore(err) {
			e.more = err
		}
		return e
	}
	if errors.Is(err, syscall.ESTALE) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// saysMore reports whether there is more in err than a status and what was asked:
// whether it wraps several errors.
func saysMore(err error) bool {
	for err != nil {
		if _, ok := err.(interface{ Unwrap() []error }); ok {
			return true
		}
		err = errors.Unwrap(err)
	}
	return false
}

// pathError is the error at the edge: about one name.
func pathError(op, name string, ctx context.Context, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: public(op, ctx, err)}
}

// linkError is the same about two names.
func linkError(op, oldname, newname string, ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: public(op, ctx, err)}
}
