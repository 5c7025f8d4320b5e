package pagewire

import (
	"os"
	"syscall"
	"testing"
)

// dup returns another descriptor of f, which is nobody's but the caller's.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	n, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
