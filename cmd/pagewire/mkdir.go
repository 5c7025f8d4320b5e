package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (r *run) mkdirCommand() *cobra.Command {
	var parents bool
	cmd := &cobra.Command{
		Use:     "mkdir [flags] SOURCE...",
		Short:   "Make folders",
		Example: `  pagewire mkdir -p //nas/media/2026/raw`,
		Args:    operands(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t tally
			for _, arg := range args {
				t.add(r, r.mkdir(cmd.Context(), arg, parents))
			}
			return t.err()
		},
	}
	cmd.Flags().BoolVarP(&parents, "parents", "p", false, "those above too; not an error if the folder is there")
	return cmd
}

func (r *run) mkdir(ctx context.Context, arg string, parents bool) error {
	p, err := parseRemote("mkdir", arg)
	if err != nil {
		return err
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("mkdir", err)
	}
	if parents {
		return p.error("mkdir", fsys.MkdirAll(ctx, p.path, 0o777))
	}
	return p.error("mkdir", fsys.Mkdir(ctx, p.path, 0o777))
}
