// Package pagewire makes far files near: it reads and writes network shares in
// user space, without a kernel module and without root.
//
// It owns the public face: sources, options, credentials, file systems that
// satisfy io/fs, files that satisfy io.ReaderAt and io.WriterAt, and copies that
// keep many requests in flight. It refuses to know a protocol's bytes: what it
// asks a server goes through internal/remote.
//
// Goroutines: the workers of a transfer and of RemoveAll, which are gone when
// the call returns. All mutexes are leaves, and none is held across I/O.
package pagewire
