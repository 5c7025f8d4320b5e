package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

func (r *run) statCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "stat [flags] SOURCE...",
		Short: "Show everything a server knows of a file",
		Example: `  pagewire stat //nas/media/raw/a.mov
  pagewire stat --json //nas/media`,
		Args: operands(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t tally
			for _, arg := range args {
				t.add(r, r.stat(cmd.Context(), arg, follow))
			}
			return t.err()
		},
	}
	cmd.Flags().BoolVarP(&follow, "dereference", "L", false, "describe what a symbolic link leads to")
	return cmd
}

func (r *run) stat(ctx context.Context, arg string, follow bool) error {
	p, err := parseRemote("stat", arg)
	if err != nil {
		return err
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("stat", err)
	}
	stat := fs.Lstat
	if follow {
		stat = fs.Stat
	}
	info, err := stat(fsys.WithContext(ctx), p.path)
	if err != nil {
		return p.error("stat", err)
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = fs.ReadLink(fsys.WithContext(ctx), p.path); err != nil {
			return p.error("stat", err)
		}
	}
	if r.json {
		return r.printJSON(newFileJSON(p.name, target, info))
	}
	_, err = fmt.Fprint(r.out, statText(printable(p.name), printable(target), info))
	return err
}

// statText writes what stat(1) would, and what is DOS's.
func statText(name, target string, info fs.FileInfo) string {
	var b strings.Builder
	if target != "" {
		name += " -> " + target
	}
	a, _ := info.Sys().(*pagewire.Attr)
	if a == nil {
		a = &pagewire.Attr{Written: info.ModTime()}
	}
	fmt.Fprintf(&b, "  File: %s\n", name)
	fmt.Fprintf(&b, "  Size: %-14d Allocated: %-14d %s\n", info.Size(), a.Alloc, fileType(info.Mode()))
	fmt.Fprintf(&b, " Inode: %-14d Links: %d\n", a.ID, a.Links)
	fmt.Fprintf(&b, "Access: (%04o/%s)  Attributes: (0x%x) %s\n", info.Mode().Perm(), modeString(info.Mode()),
		a.DOS, strings.Join(dosAttributes(a.DOS), ", "))
	for _, line := range []struct {
		label string
		t     time.Time
	}{{"Access", a.Accessed}, {"Modify", info.ModTime()}, {"Change", a.Changed}, {" Birth", a.Born}} {
		text := "-"
		if !line.t.IsZero() {
			text = line.t.Local().Format("2006-01-02 15:04:05.000000000 -0700")
		}
		fmt.Fprintf(&b, "%s: %s\n", line.label, text)
	}
	return b.String()
}
