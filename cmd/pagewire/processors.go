package main

import (
	"os"
	"runtime"

	"github.com/pagewire/pagewire"
)

// economize is told of each share that a transfer opens. Where bytes are neither
// signed nor sealed a transfer is system calls and little else: a second
// processor would only look for work, which costs as much as the work. Ciphers
// want all processors there are, and so does who says how many with GOMAXPROCS.
func (r *run) economize(f *pagewire.FS) {
	if !r.transfers || r.setProcessors == nil || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := runtime.NumCPU()
	if s := f.Stats(); s.Signing == "" && s.Cipher == "" && !r.ciphers {
		n = 1
	} else {
		r.ciphers = true
	}
	r.setProcessors(n)
}
