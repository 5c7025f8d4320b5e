package main

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"
)

func (r *run) rmCommand() *cobra.Command {
	var recursive, force bool
	cmd := &cobra.Command{
		Use:   "rm [flags] SOURCE...",
		Short: "Remove files, and folders with -r",
		Example: `  pagewire rm //nas/media/old.mov
  pagewire rm -rf //nas/scratch/build`,
		Args: operands(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t tally
			for _, arg := range args {
				t.add(r, r.rm(cmd.Context(), arg, recursive, force))
			}
			return t.err()
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "folders and what is in them")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "without a complaint if there is nothing to remove")
	return cmd
}

func (r *run) rm(ctx context.Context, arg string, recursive, force bool) error {
	p, err := parseRemote("rm", arg)
	if err != nil {
		return err
	}
	if p.path == "." {
		return p.error("rm", errors.New("refusing to remove a whole share"))
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("rm", err)
	}
	// Remove takes an empty folder too, which rm does not.
	info, err := fs.Lstat(fsys.WithContext(ctx), p.path)
	switch {
	case err != nil:
	case !info.IsDir():
		err = fsys.Remove(ctx, p.path)
	case recursive:
		err = fsys.RemoveAll(ctx, p.path)
	default:
		err = syscall.EISDIR
	}
	if force && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return p.error("rm", err)
}
