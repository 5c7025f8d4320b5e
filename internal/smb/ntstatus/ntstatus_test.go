package ntstatus

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestTableIsWhole holds the constants against the table: each has an entry, and
// the entry's name is the constant's in the spec's spelling.
func TestTableIsWhole(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	consts := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.ParseUint(lit.Value, 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		consts++
		goName := spec.Names[0].Name
		name := table[Status(code)].name
		if got := strings.ReplaceAll(strings.TrimPrefix(name, "STATUS_"), "_", ""); !strings.EqualFold(got, goName) {
			t.Errorf("%s = %#x has the name %q", goName, code, name)
		}
		return true
	})
	if consts != len(table) || consts < 120 {
		t.Errorf("%d constants, %d in the table", consts, len(table))
	}
}

func TestString(t *testing.T) {
	for s, want := range map[Status]string{
		BadNetworkName: "STATUS_BAD_NETWORK_NAME",
		Success:        "STATUS_SUCCESS",
		0xC0001234:     "NTSTATUS 0xC0001234",
		0x1234:         "NTSTATUS 0x00001234",
	} {
		if got := fmt.Sprint(s); got != want {
			t.Errorf("%#x prints %q, want %q", uint32(s), got, want)
		}
		if got := s.Error(); got != want {
			t.Errorf("%#x Error = %q, want %q", uint32(s), got, want)
		}
	}
}

func TestIs(t *testing.T) {
	targets := []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed,
		os.ErrDeadlineExceeded, errors.ErrUnsupported}
	for _, c := range []struct {
		status Status
		errno  syscall.Errno
		is     error // of targets, the only one
	}{
		{Success, 0, nil},
		{ObjectNameNotFound, syscall.ENOENT, fs.ErrNotExist},
		{ObjectPathNotFound, syscall.ENOENT, fs.ErrNotExist},
		{BadNetworkName, syscall.ENOENT, fs.ErrNotExist},
		{ObjectNameCollision, syscall.EEXIST, fs.ErrExist},
		{DirectoryNotEmpty, syscall.ENOTEMPTY, fs.ErrExist}, // as syscall.ENOTEMPTY is
		{AccessDenied, syscall.EACCES, fs.ErrPermission},
		{LogonFailure, syscall.EACCES, fs.ErrPermission},
		{PrivilegeNotHeld, syscall.EPERM, fs.ErrPermission},
		{InvalidParameter, syscall.EINVAL, fs.ErrInvalid},
		{FileClosed, syscall.EBADF, fs.ErrClosed},
		{IoTimeout, syscall.ETIMEDOUT, os.ErrDeadlineExceeded},
		{NotSupported, syscall.EOPNOTSUPP, errors.ErrUnsupported},
		{SharingViolation, syscall.EBUSY, nil},
		{DiskFull, syscall.ENOSPC, nil},
		{FileIsADirectory, syscall.EISDIR, nil},
		{NotADirectory, syscall.ENOTDIR, nil},
		{StoppedOnSymlink, syscall.ELOOP, nil},
		{PathNotCovered, syscall.EREMOTE, nil},
		{0xC0001234, syscall.EIO, nil},
	} {
		if got := c.status.Errno(); got != c.errno {
			t.Errorf("%v is errno %d (%v), want %d", c.status, int(got), got, int(c.errno))
		}
		err := fmt.Errorf("open: %w", c.status)
		for _, target := range targets {
			if got, want := errors.Is(err, target), target == c.is; got != want {
				t.Errorf("errors.Is(%v, %q) = %v, want %v", c.status, target, got, want)
			}
		}
		if got, want := errors.Is(err, c.errno), c.errno != 0; got != want {
			t.Errorf("errors.Is(%v, errno %d) = %v, want %v", c.status, int(c.errno), got, want)
		}
		if !errors.Is(err, c.status) || errors.Is(err, InternalError) {
			t.Errorf("%v is no longer itself once wrapped", c.status)
		}
	}
}

func TestSeverity(t *testing.T) {
	for _, c := range []struct {
		status         Status
		error, warning bool
	}{
		{Success, false, false},
		{Pending, false, false},
		{NotifyEnumDir, false, false},
		{BufferOverflow, false, true},
		{StoppedOnSymlink, false, true},
		{NoMoreFiles, false, true},
		{MoreProcessingRequired, true, false},
		{EndOfFile, true, false},
		{SmbBadTid, true, false},
		{0x40000000, false, false}, // informational
	} {
		if got := c.status.IsError(); got != c.error {
			t.Errorf("%v: IsError = %v, want %v", c.status, got, c.error)
		}
		if got := c.status.IsWarning(); got != c.warning {
			t.Errorf("%v: IsWarning = %v, want %v", c.status, got, c.warning)
		}
	}
}
