package pagewire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

func TestStatusError(t *testing.T) {
	ctx := t.Context()
	hint := errors.New("something may help")
	for _, c := range []struct {
		in   error
		op   string
		text string
		is   []error
		not  []error
	}{
		{ntstatus.ObjectNameNotFound, "open", "open a: no such file or directory (STATUS_OBJECT_NAME_NOT_FOUND)",
			[]error{fs.ErrNotExist, syscall.ENOENT}, []error{ErrAuth, ErrStale, fs.ErrPermission}},
		{fmt.Errorf("share a: %w", ntstatus.BadNetworkName), "mount", "mount a: no such share (STATUS_BAD_NETWORK_NAME)", []error{fs.ErrNotExist}, []error{ErrAuth}},
		{ntstatus.LogonFailure, "connect", "wrong user name or password (STATUS_LOGON_FAILURE)", []error{ErrAuth, fs.ErrPermission}, nil},
		{ntstatus.AccessDenied, "open", "(STATUS_ACCESS_DENIED)", []error{fs.ErrPermission}, []error{ErrAuth}},
		{ntstatus.AccessDenied, opLogon, "(STATUS_ACCESS_DENIED)", []error{ErrAuth}, nil},
		{ntstatus.FileClosed, "read", "(STATUS_FILE_CLOSED)", []error{ErrStale, syscall.ESTALE, fs.ErrClosed}, []error{fs.ErrNotExist}},
		{ntstatus.PathNotCovered, "open", "DFS", nil, []error{fs.ErrNotExist}},
		{ntstatus.Status(0xC0FFEE00), "open", "the server refused (NTSTATUS 0xC0FFEE00)", []error{syscall.EIO}, nil},
		{fmt.Errorf("%w: %w", hint, ntstatus.AccessDenied), "symlink", "something may help: STATUS_ACCESS_DENIED", []error{hint, fs.ErrPermission}, nil},
	} {
		err := pathError(c.op, "a", ctx, c.in)
		var pe *fs.PathError
		var se *StatusError
		if !errors.As(err, &pe) || !errors.As(err, &se) || se.Op != c.op || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: got %v, want a *StatusError of %s: %q", c.in, err, c.op, c.text)
			continue
		}
		if status, _ := errors.AsType[ntstatus.Status](c.in); se.Code != uint32(status) {
			t.Errorf("%v: code %08X, want %08X", c.in, se.Code, uint32(status))
		}
		for _, target := range c.is {
			if !errors.Is(err, target) {
				t.Errorf("%v is not %v", err, target)
			}
		}
		for _, target := range c.not {
			if errors.Is(err, target) {
				t.Errorf("%v is %v", err, target)
			}
		}
	}
}

func TestPublicErrors(t *testing.T) {
	why := errors.New("why")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, c := range []struct {
		ctx      context.Context
		in, want error
	}{
		{t.Context(), nil, nil},
		{t.Context(), io.EOF, io.EOF},
		{t.Context(), context.Canceled, context.Canceled},
		{over, context.Canceled, why},
		{over, fmt.Errorf("read: %w", context.DeadlineExceeded), why},
		{over, ErrDisconnected, ErrDisconnected},
		{over, io.EOF, io.EOF},
	} {
		if got := pathError("read", "a", c.ctx, c.in); !errors.Is(got, c.want) || (c.in == nil || c.in == io.EOF) && got != c.want {
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
	}
}

func TestNegotiateError(t *testing.T) {
	e := &NegotiateError{Offered: []string{"3.0", "3.1.1"}, Server: []string{"1.0"}}
	if got, want := e.Error(), "no protocol version in common: offered 3.0, 3.1.1; the server has 1.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e.Server = nil
	if got, want := e.Error(), "no protocol version in common: offered 3.0, 3.1.1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
