// Package ntstatus holds the status codes that SMB servers answer with, as
// error values that keep their code.
//
// It owns the one table from status to errno, and through it to io/fs errors.
// It refuses to know which request a status answers, hence what to do about it.
package ntstatus

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Status is an NTSTATUS. It is an error as it stands, Success included, so
// callers ask IsError before they return one.
type Status uint32

// String returns the name that the specs have for s.
func (s Status) String() string {
	if e, ok := table[s]; ok {
		return e.name
	}
	return fmt.Sprintf("NTSTATUS 0x%08X", uint32(s))
}

func (s Status) Error() string { return s.String() }

// IsError reports whether s says that a request failed. The codes of SMB1 carry
// no severity: they are a DOS error class under a code, which looks like a
// success, but no success reaches that far.
func (s Status) IsError() bool { return s>>30 == 3 || s>>30 == 0 && s > 0xFFFF }

// IsWarning reports whether s is a warning: the request was served in part, as
// with BufferOverflow, or not for a reason that the reply explains, as with
// StoppedOnSymlink.
func (s Status) IsWarning() bool { return s>>30 == 2 }

// Errno returns the errno that a program on a mount meets: 0 for Success, EIO for
// a status that says nothing to it.
func (s Status) Errno() syscall.Errno {
	if e, ok := table[s]; ok {
		return e.errno
	}
	return syscall.EIO
}

// Is reports whether s means target: an errno, or one of the errors of io/fs, os
// and errors that an errno or a status stands for.
func (s Status) Is(target error) bool {
	switch e := s.Errno(); target {
	case e:
		return e != 0
	case fs.ErrInvalid:
		return e == syscall.EINVAL
	case fs.ErrClosed:
		return e == syscall.EBADF
	case os.ErrDeadlineExceeded:
		return e == syscall.ETIMEDOUT
	default:
		return e.Is(target)
	}
}
