package main

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

func (r *run) catCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cat SOURCE...",
		Short: "Write files to standard output",
		Long:  `Write files to standard output, one after the other, reading many requests ahead.`,
		Example: `  pagewire cat //nas/logs/app.log | tail
  pagewire cat //nas/media/a.tar | tar x`,
		Args: operands(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.transfers = true
			var t tally
			for _, arg := range args {
				t.add(r, r.cat(cmd.Context(), arg))
			}
			return t.err()
		},
	}
}

func (r *run) cat(ctx context.Context, arg string) error {
	p, err := parseRemote("cat", arg)
	if err != nil {
		return err
	}
	fsys, err := r.open(ctx, p)
	if err != nil {
		return p.error("cat", err)
	}
	f, err := openRemote(ctx, fsys, p.path)
	if err != nil {
		return p.error("cat", err)
	}
	defer f.Close()
	// Straight to where it goes, not through r.out: a regular file takes pieces
	// in parallel, which only an *os.File can.
	_, err = f.WriteTo(r.stdout)
	return p.error("cat", err)
}

// openRemote opens a file for reading, every read bounded by ctx. A folder is refused.
func openRemote(ctx context.Context, fsys *pagewire.FS, name string) (*pagewire.File, error) {
	opened, err := fsys.WithContext(ctx).Open(name)
	if err != nil {
		return nil, err
	}
	f, ok := opened.(*pagewire.File)
	if !ok {
		opened.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f, nil
}

// bind makes ctx bound every call on f, until stop. The error that a call ends
// with then is one of a deadline; ctx has the reason.
func bind(ctx context.Context, f interface{ SetDeadline(time.Time) error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { f.SetDeadline(time.Unix(1, 0)) })
}

// closeKeeping closes c after an operation that ended with err, whose error goes first.
func closeKeeping(c io.Closer, err error) error {
	if closeErr := c.Close(); err == nil {
		return closeErr
	}
	return err
}
