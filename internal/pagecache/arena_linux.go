package pagecache

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapMemory reserves memory off the Go heap, where huge pages fit, and returns what
// frees it. Huge pages are a wish: with them a stream spends much less on pages that
// are touched for the first time.
func mapMemory(n int) (memory []byte, unmap func() error, err error) {
	whole, err := unix.Mmap(-1, 0, n+maxRun, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, err
	}
	skip := -int(uintptr(unsafe.Pointer(&whole[0]))) & (maxRun - 1)
	memory = whole[skip : skip+n : skip+n]
	unix.Madvise(memory, unix.MADV_HUGEPAGE)
	return memory, func() error { return unix.Munmap(whole) }, nil
}

// forget gives the pages of memory back to the system; what they held is lost.
func forget(memory []byte) error { return unix.Madvise(memory, unix.MADV_DONTNEED) }
