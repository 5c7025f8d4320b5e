package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

func (r *run) mvCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "mv [flags] SOURCE... TARGET",
		Short: "Rename files and folders, or move them within a share",
		Long: `Rename files and folders, or move them into the folder TARGET of the same share.
A file in the way is replaced. Only the case of a name may change.`,
		Example: `  pagewire mv //nas/media/readme.txt //nas/media/README.txt
  pagewire mv -n //nas/media/a //nas/media/b //nas/media/archive`,
		Args: operands(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.mv(cmd.Context(), args[:len(args)-1], args[len(args)-1], keep)
		},
	}
	cmd.Flags().BoolVarP(&keep, "no-clobber", "n", false, "leave alone what would have to be replaced")
	return cmd
}

func (r *run) mv(ctx context.Context, sources []string, target string, keep bool) error {
	to, err := parseRemote("mv", target)
	if err != nil {
		return err
	}
	from := make([]place, len(sources))
	for i, arg := range sources {
		if from[i], err = parseRemote("mv", arg); err != nil {
			return err
		}
		switch {
		case !from[i].sameShare(to):
			return usagef("mv %s: not in the share of %s; use cp, then rm", printable(from[i].name), printable(to.name))
		case from[i].path == ".":
			return usagef("mv %s: a share cannot be moved", printable(from[i].name))
		}
	}
	fsys, err := r.open(ctx, to)
	if err != nil {
		return to.error("mv", err)
	}
	info, err := fs.Stat(fsys.WithContext(ctx), to.path)
	isDir := err == nil && info.IsDir()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return to.error("mv", err)
	case len(from) > 1 && !isDir:
		return usagef("mv: %s is not a folder", printable(to.name))
	}
	var t tally
	for _, p := range from {
		t.add(r, p.error("mv", mvOne(ctx, fsys, p, destination(p, to, isDir), keep)))
	}
	return t.err()
}

// destination is where from goes: into to if that is a folder, unless it is the
// folder from itself by a name that differs in case.
func destination(from, to place, isDir bool) place {
	if !isDir || from.path != to.path && strings.EqualFold(from.path, to.path) {
		return to
	}
	return to.join(from.base())
}

func mvOne(ctx context.Context, fsys *pagewire.FS, from, to place, keep bool) error {
	if to.path == from.path {
		return errors.New("is where it is to go")
	}
	if strings.HasPrefix(to.path, from.path+"/") {
		return errors.New("cannot go into itself")
	}
	if keep && !strings.EqualFold(from.path, to.path) {
		switch _, err := fs.Lstat(fsys.WithContext(ctx), to.path); {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return fsys.Rename(ctx, from.path, to.path)
}
