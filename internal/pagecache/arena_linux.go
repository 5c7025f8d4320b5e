package pagecache

import "golang.org/x/sys/unix"

// mapMemory reserves memory off the Go heap.
func mapMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
}

func unmapMemory(memory []byte) error { return unix.Munmap(memory) }

// forget gives the pages of memory back to the system; what they held is lost.
func forget(memory []byte) error { return unix.Madvise(memory, unix.MADV_DONTNEED) }
