package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pagewire/pagewire"
)

// run is one run of the command. Its goroutines are those of its verb, which
// joins them, and one that waits for a password.
type run struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	options []string // set by the flags, as the next two
	json    bool
	verbose int

	// credentials are those of a server of the run's own; nil: the user's.
	credentials func(context.Context) (pagewire.Credentials, error)
	descriptor  pagewire.Descriptor // has the user's password, for every server

	out *bufio.Writer // on stdout; flushed when the verb is done

	mu    sync.Mutex
	above io.Writer             // guarded by mu: where messages go while a bar has the terminal
	conns map[logon]*connection // guarded by mu

	transfers     bool          // the verb moves bytes; see economize
	ciphers       bool          // some of them signed or sealed; guarded by mu
	setProcessors func(int) int // nil: it is not this process's to say
}

// main runs the verb that args name, and returns the exit code.
func (r *run) main(ctx context.Context, args []string) int {
	r.out = bufio.NewWriterSize(r.stdout, 64<<10)
	root := r.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if closeErr := r.closeAll(ctx); err == nil {
		err = closeErr
	}
	if flushErr := r.out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("standard output: %w", flushErr)
	}
	if err == nil {
		return exitOK
	}
	var reported reportedError
	var usage usageError
	switch {
	case errors.As(err, &reported):
	case err == context.Canceled:
		r.printf("pagewire: interrupted\n")
	case errors.As(err, &usage):
		r.printf("pagewire: %v\nTry \"pagewire help\".\n", err)
	default:
		r.report(err)
	}
	return exitCode(err)
}

// command builds the tree of verbs.
func (r *run) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "pagewire",
		Short: "Work with files on far servers, at the speed of the wire",
		Long: `pagewire works with files on SMB servers in user space: no mount, no root.

A place on a server is //host/share/path, taken as it stands, or
smb://[DOMAIN;]user@host:port/share/path, percent-decoded. A local name with
a colon needs ./ in front.

Credentials come from -o credentials=FILE, then PASSWD, PASSWD_FD, PASSWD_FILE
and USER in the environment, then a prompt if there is a terminal.`,
		Example: `  pagewire ls -l //nas/media
  pagewire cp -r --verify //nas/media/raw .
  pagewire explain //nas/media -o credentials=/etc/nas.cred`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			_, err := pagewire.ParseOptions(strings.Join(r.options, ","))
			return err
		},
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
			return usagef("unknown command %q (did you mean %s?)", args[0], similar[0])
		}
		return usagef("unknown command %q", args[0])
	}
	root.SuggestionsMinimumDistance = 2
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&r.options, "options", "o", nil, "`OPTIONS` separated by commas, as for mount; may be repeated")
	flags.BoolVar(&r.json, "json", false, "write one JSON object a line")
	flags.CountVarP(&r.verbose, "verbose", "v", "log to standard error; twice for more")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef("%s: %v", cmd.Name(), err) })
	root.SetOut(r.out)
	root.SetErr(r.stderr)
	root.AddCommand(r.lsCommand(), r.catCommand(), r.cpCommand(), r.statCommand(), r.rmCommand(), r.mkdirCommand(),
		r.mvCommand(), r.dfCommand(), r.explainCommand(), r.demoCommand(), r.benchCommand(), &cobra.Command{
			Use:   "version",
			Short: "Print the version",
			Args:  operands(0, 0),
			RunE: func(cmd *cobra.Command, args []string) error {
				_, err := fmt.Fprintln(r.out, "pagewire version", version())
				return err
			},
		})
	return root
}

// version is that of the module, with the revision if it was built from a clone.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// operands demands at least low and, unless it is negative, at most high arguments.
func operands(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return usagef("%s: missing operand; usage: %s", cmd.Name(), cmd.UseLine())
		case high >= 0 && len(args) > high:
			return usagef("%s: extra operand %q; usage: %s", cmd.Name(), redacted(args[high]), cmd.UseLine())
		}
		return nil
	}
}

// freeH lets -h mean what it means for ls and df; help remains --help.
func freeH(cmd *cobra.Command) { cmd.Flags().Bool("help", false, "help for "+cmd.Name()) }

// report writes an error as pagewire does all of them.
func (r *run) report(err error) { r.printf("pagewire: %v\n", err) }

// printf writes a message to standard error, over a progress bar if there is one.
func (r *run) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.above
	if w == nil {
		w = r.stderr
	}
	fmt.Fprintf(w, format, args...)
}

// showAbove sends messages to w, and back to standard error if w is nil.
func (r *run) showAbove(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.above = w
}

// Write is where the log goes.
func (r *run) Write(p []byte) (int, error) {
	r.printf("%s", p)
	return len(p), nil
}

func (r *run) logger() *slog.Logger {
	level := slog.LevelInfo
	switch r.verbose {
	case 0:
		return nil
	case 1:
	default:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: level}))
}

// terminal returns w's descriptor if w is a terminal.
func terminal(w any) (fd int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// prompt asks for a password. The terminal is silent before the question is
// there, so that not even who types ahead sees it.
func (r *run) prompt(ctx context.Context, user, host string) (string, error) {
	fd, _ := terminal(r.stdin)
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, state)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{r.stdin, r.stderr}, "")
	type answer struct {
		password string
		err      error
	}
	answered := make(chan answer, 1)
	// A read from a terminal cannot be called off: when ctx ends, the process
	// does too, and this goroutine with it.
	go func() {
		password, err := t.ReadPassword(fmt.Sprintf("Password for %s at %s: ", printable(user), printable(host)))
		answered <- answer{password, err}
	}()
	select {
	case a := <-answered:
		if a.err == io.EOF { // ^C and ^D, which are no signals now
			a.err = context.Canceled
		}
		return a.password, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
