package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// roomFor returns a folder for n bytes of temporary files: in memory if that has
// room for them twice, so that the machine is not brought down, else that of
// TMPDIR.
func roomFor(n int64) (dir string, err error) {
	const memory = "/dev/shm"
	if free(memory) >= n && freeMemory() >= 2*n {
		return memory, nil
	}
	dir = os.TempDir()
	if have := free(dir); have < n {
		return "", fmt.Errorf("%s has room for %s, and %s are needed; try a smaller --size, or TMPDIR", dir, size(have), size(n))
	}
	return dir, nil
}

// free returns how much may be written to a file system; 0 if that is unknown.
func free(dir string) int64 {
	var s unix.Statfs_t
	if unix.Access(dir, unix.W_OK) != nil || unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// freeMemory returns what the machine and the container leave of memory.
func freeMemory() int64 {
	var available int64
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			available = kib << 10
		}
	}
	limit, ok := readInt("/sys/fs/cgroup/memory.max")
	if used, known := readInt("/sys/fs/cgroup/memory.current"); ok && known {
		available = min(available, limit-used)
	}
	return available
}

func readInt(name string) (n int64, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}
