package pagewire

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxDefaultCache is how large the page cache is where memory is plenty.
const maxDefaultCache = 256 << 20

// cacheSize returns the budget of the page cache in bytes. root is the root folder
// of this machine.
func (o *Options) cacheSize(root fs.FS) int64 {
	if o.CacheSize != 0 {
		return o.CacheSize
	}
	least, _ := o.leastCache()
	return max(defaultCacheSize(root), least)
}

// defaultCacheSize returns a quarter of the memory that is there for this process,
// within bounds. That is the limit of its container, if it has one below what the
// machine has, and else what the machine can spare. Where root says nothing about it,
// as elsewhere than on Linux, there is enough.
func defaultCacheSize(root fs.FS) int64 {
	memory := memoryLimit(root)
	total, available := machineMemory(root)
	if memory >= total {
		memory = available
	}
	return min(max(memory/4, minCache), maxDefaultCache)
}

// memoryLimit returns the smallest limit that the control groups of this process
// set, of version 2 or 1. Each group above counts as well. In a container the root of
// the mounted groups is often the container's own and the path leads nowhere, so a
// group that is not there has no limit.
func memoryLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case !ok:
			continue
		case controllers == "": // version 2
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(mount, group, file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // it may be "max"
				least = min(least, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

// machineMemory returns the bytes that the machine has, and those of them that are
// free or would be if somebody asked; MaxInt64 for what it does not tell.
func machineMemory(root fs.FS) (total, available int64) {
	total, available = math.MaxInt64, math.MaxInt64
	info, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n > math.MaxInt64>>10 {
			continue
		}
		switch f[0] {
		case "MemTotal:":
			total = n << 10
		case "MemAvailable:":
			available = n << 10
		}
	}
	return total, min(available, total)
}
