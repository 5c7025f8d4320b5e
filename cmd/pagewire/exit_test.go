package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("broken"), 1},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, 1},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, 1},
		{syscall.ENOSPC, 1},
		{pagewire.ErrSignature, 1},
		{fmt.Errorf("%w: %w", pagewire.ErrDisconnected, pagewire.ErrSignature), 1},
		{&pagewire.NegotiateError{}, 1},
		{usagef("no"), 2},
		{&pagewire.OptionError{Option: "rsise"}, 2},
		{fmt.Errorf("parsing: %w", &pagewire.SourceError{}), 2},
		{reportedError{&partialError{1, 2}}, 3},
		{pagewire.ErrDisconnected, 5},
		{&net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}, 5},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, 5},
		{&net.DNSError{IsNotFound: true}, 1},
		{&net.DNSError{IsTemporary: true}, 5},
		{context.DeadlineExceeded, 5},
		{&fs.PathError{Op: "read", Path: "x", Err: os.ErrDeadlineExceeded}, 5},
		{&placeError{verb: "ls", err: pagewire.ErrAuth}, 12},
		{&pagewire.CredentialsError{Err: fs.ErrNotExist}, 12},
		{context.Canceled, 130},
		{reportedError{&placeError{err: context.Canceled}}, 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestPlaceError(t *testing.T) {
	p := place{name: "//nas/media/a", path: "a"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}, "ls //nas/media/a: file does not exist"},
		{&fs.PathError{Op: "remove", Path: "a/b", Err: fs.ErrPermission}, "ls //nas/media/a: a/b: permission denied"},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: fs.ErrExist}, "ls //nas/media/a: file already exists"},
		{fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}), "ls //nas/media/a: reading: open a: file does not exist"},
		{context.Canceled, "ls //nas/media/a: interrupted"},
		{errors.New("a\x1b[2Jb"), "ls //nas/media/a: a?[2Jb"},
	} {
		if got := p.error("ls", c.err).Error(); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if err := p.error("ls", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
