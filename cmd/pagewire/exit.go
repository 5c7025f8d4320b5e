package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/pagewire/pagewire"
)

// Exit codes of every verb.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3 // some of it failed, the rest is done
	exitTemporary   = 5 // the same command may work later
	exitAuth        = 12
	exitInterrupted = 130
)

// exitCode says what a command that ended with err exits with.
func exitCode(err error) int {
	var (
		usage   usageError
		option  *pagewire.OptionError
		source  *pagewire.SourceError
		partial *partialError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &option), errors.As(err, &source):
		return exitUsage
	case errors.As(err, &partial):
		return exitPartial
	case errors.Is(err, pagewire.ErrAuth):
		return exitAuth
	case temporary(err):
		return exitTemporary
	}
	return exitFailed
}

// temporary reports whether err is of the network rather than of what was asked
// for. That somebody forges replies is neither.
func temporary(err error) bool {
	if errors.Is(err, pagewire.ErrSignature) {
		return false
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	for _, target := range []error{
		pagewire.ErrDisconnected, os.ErrDeadlineExceeded, context.DeadlineExceeded,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT, syscall.EAGAIN,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// usageError means that the command line makes no sense.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// partialError means that some of what was asked for is done, and the rest was
// reported when it failed.
type partialError struct{ failed, all int64 }

func (e *partialError) Error() string { return fmt.Sprintf("%d of %d failed", e.failed, e.all) }

// reportedError is an error that the user has read already.
type reportedError struct{ error }

func (e reportedError) Unwrap() error { return e.error }

// placeError is what went wrong with one place.
type placeError struct {
	verb string
	at   string // for people
	path string // as the layers below name it
	err  error
}

func (e *placeError) Unwrap() error { return e.err }

func (e *placeError) Error() string {
	return e.verb + " " + printable(e.at) + ": " + cause(e.err, e.path)
}

// cause is the text of err without what its reader knows from the place in front
// of it: the operation that failed, and path.
func cause(err error, path string) string {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &pathErr) && error(pathErr) == err:
		if pathErr.Path != path {
			return printable(pathErr.Path) + ": " + cause(pathErr.Err, path)
		}
		return cause(pathErr.Err, path)
	case errors.As(err, &linkErr) && error(linkErr) == err:
		return cause(linkErr.Err, path)
	}
	return printable(err.Error())
}

// tally counts what went well and what did not, for verbs with several operands.
type tally struct {
	done, failed int64
	first        error
}

// add counts one operand, and reports its error.
func (t *tally) add(r *run, err error) {
	switch {
	case err == nil:
		t.done++
		return
	case t.first == nil:
		t.first = err
	}
	t.failed++
	r.report(err)
}

// err is what the verb ends with.
func (t *tally) err() error {
	switch {
	case t.failed == 0:
		return nil
	case t.done > 0 && !errors.Is(t.first, context.Canceled):
		return reportedError{&partialError{t.failed, t.done + t.failed}}
	}
	return reportedError{t.first}
}
