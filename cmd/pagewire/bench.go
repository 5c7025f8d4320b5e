package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/internal/bench"
)

func (r *run) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure pagewire beside others",
		Args:  operands(0, 0),
		RunE:  func(cmd *cobra.Command, args []string) error { return usagef("bench: what to measure? Known: peers") },
	}
	cmd.AddCommand(r.benchPeersCommand(), r.benchStreamCommand())
	return cmd
}

func (r *run) benchPeersCommand() *cobra.Command {
	var cfg bench.Config
	var sizeFlag string
	cmd := &cobra.Command{
		Use:   "peers [flags] [WORD...]",
		Short: "Copy files beside smbclient and go-smb2, on a Samba server",
		Long: `Start Samba servers on this machine and copy files to and from them with pagewire,
smbclient and cloudsoda/go-smb2 in turn, and print how they compare; also what it
costs a program to stream through the cache, beside cp and cache=none. Needs root,
Samba, Go and a clone of pagewire to run in.

WORDs choose cases, those of one kind being alternatives: ` + strings.Join(bench.Words(), ", ") + `.
With --json every single run is written, and the tables go to standard error.`,
		Example: `  pagewire bench peers
  pagewire bench peers --quick read plain default`,
		Args: func(cmd *cobra.Command, args []string) error {
			for _, word := range args {
				if !slices.Contains(bench.Words(), word) {
					return usagef("bench peers: unknown word %q; known are %s", printable(word), strings.Join(bench.Words(), ", "))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if sizeFlag != "" {
				if cfg.Size, err = parseSize(sizeFlag); err != nil {
					return err
				}
			}
			if cfg.Rounds < 0 || cfg.Files < 0 {
				return usagef("bench peers: --rounds and --files want at least 1")
			}
			if cfg.Self, err = os.Executable(); err != nil {
				return err
			}
			cfg.Only, cfg.Out = args, r.stdout
			if r.json {
				cfg.Out, cfg.JSON = r.stderr, r.stdout
			}
			if err := bench.Peers(cmd.Context(), cfg); err != nil {
				return fmt.Errorf("bench peers: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&cfg.Quick, "quick", false, "fewer rounds and less data")
	flags.IntVar(&cfg.Rounds, "rounds", 0, "`N` rounds of each case (default 7, or 3 if quick)")
	flags.StringVar(&sizeFlag, "size", "", "`SIZE` of the file (default 1G, or 256M if quick)")
	flags.IntVar(&cfg.Files, "files", 0, "`N` files in a tree (default 10000, or 2000 if quick)")
	return cmd
}
