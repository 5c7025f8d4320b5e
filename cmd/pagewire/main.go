// Command pagewire works with files on far servers: it lists, copies, moves and
// removes them, and tells what limits their speed.
//
// It owns arguments, output and exit codes, and the order in which files are
// copied. It refuses to know a protocol: all that goes to a server goes through
// the package pagewire.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end, the second one does not ask.
	context.AfterFunc(ctx, stop)
	r := &run{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, setProcessors: runtime.GOMAXPROCS}
	os.Exit(r.main(ctx, os.Args[1:]))
}
