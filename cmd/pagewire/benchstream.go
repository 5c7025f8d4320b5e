package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/internal/bench"
)

// Calls of bench stream.
const minBlock, maxBlock = 512, 64 << 20

// benchStreamCommand streams a file as a program with the library would. Other
// than cp it has as many processors as there are, as such a program has.
func (r *run) benchStreamCommand() *cobra.Command {
	var blockFlag string
	var again int
	cmd := &cobra.Command{
		Use:   "stream [flags] read SOURCE | stream [flags] write TARGET SIZE",
		Short: "Read or write a file as a program with the library would",
		Long: `Read SOURCE to its end, or write SIZE bytes to TARGET and close it, call by call
from one buffer, and print as a line of JSON how that went and what the library
says about it. For bench peers, which looks at it from outside.`,
		Hidden: true,
		Args:   operands(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			block, err := parseSize(blockFlag)
			switch {
			case err != nil:
				return err
			case block < minBlock || block > maxBlock:
				return usagef("bench stream: --block wants %d to %d bytes", minBlock, maxBlock)
			case again < 0:
				return usagef("bench stream: --again wants 0 or more")
			}
			switch op := args[0]; {
			case op == "read" && len(args) == 2:
				return r.benchStream(cmd.Context(), args[1], func(ctx context.Context, s bench.Stream) (bench.Streamed, error) {
					s.Block = int(block)
					return s.Read(ctx, again)
				})
			case op == "write" && len(args) == 3 && again == 0:
				size, err := parseSize(args[2])
				if err != nil {
					return err
				}
				return r.benchStream(cmd.Context(), args[1], func(ctx context.Context, s bench.Stream) (bench.Streamed, error) {
					s.Block = int(block)
					return s.Write(ctx, size)
				})
			}
			return usagef("bench stream: want read SOURCE, with --again if you like, or write TARGET SIZE")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&blockFlag, "block", "1M", "`SIZE` of a call")
	flags.IntVar(&again, "again", 0, "read the file `N` more times, each beside memmove")
	return cmd
}

// benchStream streams the file at a place, and prints how that went.
func (r *run) benchStream(ctx context.Context, arg string, do func(context.Context, bench.Stream) (bench.Streamed, error)) error {
	p, err := parseRemote("bench stream", arg)
	if err != nil {
		return err
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("bench stream", err)
	}
	done, err := do(ctx, bench.Stream{FS: fsys, Name: p.path, CPU: processTime})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return p.error("bench stream", err)
	}
	return json.NewEncoder(r.out).Encode(done)
}
