package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// copyOptions are the flags of cp.
type copyOptions struct {
	recursive, preserve, update, verify bool
	parallel                            int // files at a time; 0: as their size suggests
}

func (r *run) cpCommand() *cobra.Command {
	var o copyOptions
	cmd := &cobra.Command{
		Use:   "cp [flags] SOURCE... TARGET",
		Short: "Copy files and folders to, from and between servers",
		Long: `Copy files and folders to, from and between servers, as cp does: into TARGET if
that is a folder, else to the name TARGET.

Small files travel many at a time, a large one alone with many requests in
flight. A file of several requests is written as NAME.partial, which gets its
name once it is complete. If the copy is interrupted, the same command goes on
where it ended, provided the source has still the size and the time that
NAME.partial.state recorded. A file that fits into one request (1 MiB) is
written on a server in one round trip, in its place. Targets that are no regular
files, such as /dev/null, are written as they are. What a server calls its files
never leads out of TARGET, and symbolic links are copied as such with -r.`,
		Example: `  pagewire cp //nas/media/a.mov .
  pagewire cp -r --verify //nas/media/raw /data
  pagewire cp -rpu ./photos smb://alice@nas/backup/`,
		Args: operands(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.transfers = true
			if o.parallel < 0 || cmd.Flags().Changed("jobs") && o.parallel == 0 {
				return usagef("cp: -j wants at least 1")
			}
			return r.cp(cmd.Context(), o, args[:len(args)-1], args[len(args)-1])
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.recursive, "recursive", "r", false, "folders and what is in them")
	flags.BoolVarP(&o.preserve, "preserve", "p", false, "keep times and the read-only bit")
	flags.BoolVarP(&o.update, "update", "u", false, "only what is missing or older in the target")
	flags.BoolVar(&o.verify, "verify", false, "read source and target again and compare them")
	flags.IntVarP(&o.parallel, "jobs", "j", 0, "`N` files at a time (default 16, of large ones 1)")
	return cmd
}

func (r *run) cp(ctx context.Context, o copyOptions, sources []string, target string) error {
	to, err := parsePlace(target)
	if err != nil {
		return err
	}
	from := make([]place, len(sources))
	for i, arg := range sources {
		if from[i], err = parsePlace(arg); err != nil {
			return err
		}
		if !from[i].remote && !to.remote {
			return usagef("cp: %s and %s are both on this machine; a name with a colon on a server is //host/share/path",
				printable(from[i].name), printable(to.name))
		}
		for _, p := range []place{from[i], to} {
			if p.remote && p.source.Share == "" {
				return usagef("cp %s: names a server, but no share of it", printable(p.name))
			}
		}
	}
	c := newCopier(r, o)
	defer c.close()
	dst, err := c.target(ctx, to)
	if err != nil {
		return to.error("cp", err)
	}
	switch {
	case dst.isDir:
	case dst.direct != "" && o.verify:
		return usagef("cp: %s cannot be read again, as --verify would", printable(to.name))
	case len(from) > 1:
		return usagef("cp: %s is not a folder", printable(to.name))
	case strings.HasSuffix(target, "/") && !o.recursive:
		return to.error("cp", errors.New("no such folder"))
	}
	return c.copy(ctx, from, dst)
}

// target is where copies go.
type target struct {
	tree  tree
	name  string // in tree
	isDir bool
	// direct is set for what is no regular file: it is written as it is.
	direct string
}

// target finds out what to is.
func (c *copier) target(ctx context.Context, to place) (target, error) {
	if to.remote {
		t, err := c.remote(ctx, to)
		if err != nil {
			return target{}, err
		}
		if to.path == "." {
			return target{tree: t, name: ".", isDir: true}, nil
		}
		info, err := fs.Stat(t.fs.WithContext(ctx), to.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return target{}, err
		}
		return target{tree: t, name: to.path, isDir: err == nil && info.IsDir()}, nil
	}
	info, err := os.Stat(to.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return target{}, err
	case info.IsDir():
		t, err := c.local(to.path)
		return target{tree: t, name: ".", isDir: true}, err
	case !info.Mode().IsRegular():
		return target{direct: to.path}, nil
	}
	clean := filepath.Clean(to.path)
	if err == nil {
		// What a symbolic link leads to is replaced, not the link.
		if clean, err = filepath.EvalSymlinks(to.path); err != nil {
			return target{}, err
		}
	}
	t, err := c.local(filepath.Dir(clean))
	return target{tree: t, name: filepath.Base(clean)}, err
}

// source finds out what from is, and what its copy is called.
func (c *copier) source(ctx context.Context, from place) (t tree, name string, info fs.FileInfo, err error) {
	if from.remote {
		r, err := c.remote(ctx, from)
		if err != nil {
			return nil, "", nil, err
		}
		stat := fs.Stat
		if c.recursive {
			stat = fs.Lstat
		}
		info, err := stat(r.fs.WithContext(ctx), from.path)
		return r, from.path, info, err
	}
	clean := filepath.Clean(from.path)
	stat := os.Stat
	if c.recursive {
		stat = os.Lstat
	}
	if info, err = stat(from.path); err != nil {
		return nil, "", nil, err
	}
	if info.IsDir() {
		l, err := c.local(clean)
		return l, ".", info, err
	}
	if !c.recursive && info.Mode().IsRegular() {
		if clean, err = filepath.EvalSymlinks(clean); err != nil {
			return nil, "", nil, err
		}
	}
	l, err := c.local(filepath.Dir(clean))
	return l, filepath.Base(clean), info, err
}

// targetName is the name of the copy of from, which like cp's is the folder
// itself for a source without a name of its own.
func targetName(from place, to target) string {
	if !to.isDir {
		return to.name
	}
	switch base := from.base(); base {
	case ".", "..", string(filepath.Separator):
		return to.name
	default:
		return path.Join(to.name, base)
	}
}

// intoItself reports whether the copy of from to name in the share of to would
// be from itself or go on forever.
func intoItself(from place, to tree, name string) bool {
	t, ok := to.(remoteTree)
	if !ok || !from.sameShare(t.at) {
		return false
	}
	a, b := strings.ToLower(from.path), strings.ToLower(name)
	return a == b || a == "." || strings.HasPrefix(b, a+"/")
}

// copy copies every source, shows how far it is, and says how it went.
func (c *copier) copy(ctx context.Context, from []place, to target) error {
	stop := c.showProgress()
	err := c.all(ctx, from, to)
	stop()
	c.summarize(time.Since(c.meter.start), err)
	return err
}
