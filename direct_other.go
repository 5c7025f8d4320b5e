//go:build !linux

package pagewire

// O_DIRECT, among the flags of OpenFile, keeps a file's reads and writes out of the
// cache, as cache=none does for all files. Buffers may lie anywhere.
const O_DIRECT = 1 << 30
