package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

// lister is one run of ls.
type lister struct {
	*run
	long, all, recursive, human, unsorted bool
	headings                              bool // name folders before they are listed
	printed                               bool // something, so that a heading needs a blank line
}

func (r *run) lsCommand() *cobra.Command {
	l := &lister{run: r}
	cmd := &cobra.Command{
		Use:   "ls [flags] SOURCE...",
		Short: "List folders and files, or the shares of a server",
		Long: `List folders and files, one name a line, or the shares of a server.

A folder is sorted by name once it is here as a whole; with -U its entries are
printed as they come from the server. Everything that -l shows comes with the
listing: no entry costs a request of its own. So the target of a symbolic link
is shown only for a link that is named on the command line.`,
		Example: `  pagewire ls //nas
  pagewire ls -l //nas/media/raw
  pagewire ls -R --json smb://alice@nas/media`,
		Args: operands(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return l.main(cmd.Context(), args) },
	}
	freeH(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&l.long, "long", "l", false, "with mode, size and time")
	flags.BoolVarP(&l.all, "all", "a", false, "names that begin with a dot too, and hidden shares")
	flags.BoolVarP(&l.recursive, "recursive", "R", false, "folders in folders too")
	flags.BoolVarP(&l.human, "human-readable", "h", false, "with -l, sizes like 1.5K and 31G")
	flags.BoolVarP(&l.unsorted, "unsorted", "U", false, "in the server's order, without waiting for the whole")
	return cmd
}

func (l *lister) main(ctx context.Context, args []string) error {
	var t tally
	var dirs []place
	for _, arg := range args {
		dir, err := l.operand(ctx, arg, len(args) == 1)
		if err != nil {
			t.add(l.run, err)
		} else if dir != nil {
			dirs = append(dirs, *dir)
		} else {
			t.done++
		}
	}
	l.headings = l.recursive || len(args) > 1
	for _, dir := range dirs {
		l.dir(ctx, dir, &t)
	}
	return t.err()
}

// operand prints what arg names if it is a file or a server, and returns a
// folder for later: like ls, files first. What stands alone is taken for a
// folder at once, which saves a question; dir asks it when that was wrong.
func (l *lister) operand(ctx context.Context, arg string, alone bool) (dir *place, err error) {
	p, err := parsePlace(arg)
	if err != nil {
		return nil, err
	}
	if p.remote && p.source.Share == "" {
		return nil, p.error("ls", l.shares(ctx, p))
	}
	if p, err = parseRemote("ls", arg); err != nil {
		return nil, err
	}
	if alone && !l.long { // which shows a link to a folder as what it is
		return &p, nil
	}
	return l.named(ctx, p)
}

// named prints what p is, unless it is a folder.
func (l *lister) named(ctx context.Context, p place) (dir *place, err error) {
	fsys, err := l.open(ctx, p)
	if err != nil {
		return nil, p.error("ls", err)
	}
	info, err := fs.Lstat(fsys.WithContext(ctx), p.path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && !l.long {
		info, err = fs.Stat(fsys.WithContext(ctx), p.path)
	}
	if err != nil {
		return nil, p.error("ls", err)
	}
	if info.IsDir() {
		return &p, nil
	}
	e := entry{FileInfo: info, name: p.name}
	if info.Mode()&fs.ModeSymlink != 0 {
		if e.target, err = fs.ReadLink(fsys.WithContext(ctx), p.path); err != nil {
			return nil, p.error("ls", err)
		}
	}
	return nil, l.print(e, len(fmt.Sprint(info.Size())))
}

// entry is a line of ls.
type entry struct {
	fs.FileInfo
	name   string // as it is printed
	target string // of a symbolic link, if known
}

// dir lists a folder, and with -R those in it.
func (l *lister) dir(ctx context.Context, p place, t *tally) {
	fsys, err := l.open(ctx, p)
	if err != nil {
		t.add(l.run, p.error("ls", err))
		return
	}
	if l.headings && !l.json {
		if l.printed {
			fmt.Fprintln(l.out)
		}
		fmt.Fprintf(l.out, "%s:\n", l.shown(p.name))
		l.printed = true
	}
	var entries []entry
	var below []string
	for de, err := range fsys.Entries(ctx, p.path) {
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
			if dir, e := l.named(ctx, p); dir == nil { // a file, or a link as such
				t.add(l.run, e)
				return
			}
		}
		if err != nil {
			t.add(l.run, p.error("ls", err))
			return
		}
		if !l.all && strings.HasPrefix(de.Name(), ".") {
			continue
		}
		info, err := de.Info()
		if err != nil {
			t.add(l.run, p.join(de.Name()).error("ls", err))
			continue
		}
		e := entry{FileInfo: info, name: de.Name()}
		if l.recursive && de.IsDir() {
			below = append(below, de.Name())
		}
		if !l.unsorted {
			entries = append(entries, e)
		} else if err := l.printIn(p, e, 12); err != nil {
			t.add(l.run, err)
			return
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	width := 0
	for _, e := range entries {
		width = max(width, len(l.size(e)))
	}
	for _, e := range entries {
		if err := l.printIn(p, e, width); err != nil {
			t.add(l.run, err)
			return
		}
	}
	t.done++
	if !l.unsorted {
		slices.Sort(below)
	}
	for _, name := range below {
		l.dir(ctx, p.join(name), t)
	}
}

// printIn prints an entry of the folder p.
func (l *lister) printIn(p place, e entry, width int) error {
	if l.json && l.headings {
		e.name = p.join(e.name).name
	}
	return l.print(e, width)
}

func (l *lister) size(e entry) string {
	if l.human {
		return shortSize(e.Size())
	}
	return fmt.Sprint(e.Size())
}

// shown is a name as the output may have it: as it is, unless that is a terminal.
func (l *lister) shown(name string) string {
	if _, ok := terminal(l.stdout); ok {
		return printable(name)
	}
	return name
}

func (l *lister) print(e entry, width int) error {
	l.printed = true
	if l.json {
		return l.printJSON(newFileJSON(e.name, e.target, e.FileInfo))
	}
	line := l.shown(e.name)
	if l.long {
		if e.target != "" {
			line += " -> " + l.shown(e.target)
		}
		line = fmt.Sprintf("%s %*s %s %s", modeString(e.Mode()), width, l.size(e), lsTime(e.ModTime(), time.Now()), line)
	}
	_, err := fmt.Fprintln(l.out, line)
	return err
}

// shares lists the shares of a server.
func (l *lister) shares(ctx context.Context, p place) error {
	c, err := l.connect(ctx, p)
	if err != nil {
		return err
	}
	shares, err := c.client.Shares(ctx)
	if err != nil {
		return err
	}
	if !l.unsorted {
		slices.SortFunc(shares, func(a, b pagewire.ShareInfo) int { return cmp.Compare(a.Name, b.Name) })
	}
	width := 0
	for _, s := range shares {
		width = max(width, len(s.Name))
	}
	for _, s := range shares {
		if s.Hidden && !l.all {
			continue
		}
		kind := shareKind(s.Kind)
		switch {
		case l.json:
			err = l.printJSON(struct {
				Name    string `json:"name"`
				Type    string `json:"type"`
				Hidden  bool   `json:"hidden,omitempty"`
				Comment string `json:"comment,omitempty"`
			}{s.Name, kind, s.Hidden, s.Comment})
		case l.long:
			_, err = fmt.Fprintln(l.out, strings.TrimRight(fmt.Sprintf("%-7s %-*s  %s", kind, width, l.shown(s.Name), l.shown(s.Comment)), " "))
		default:
			_, err = fmt.Fprintln(l.out, l.shown(s.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func shareKind(k pagewire.ShareKind) string {
	switch k {
	case pagewire.DiskShare:
		return "disk"
	case pagewire.PrinterShare:
		return "printer"
	case pagewire.DeviceShare:
		return "device"
	default:
		return "pipe"
	}
}

// fileJSON is a file as --json has it.
type fileJSON struct {
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	Mode       string    `json:"mode"`
	ModTime    time.Time `json:"mtime"`
	Target     string    `json:"target,omitempty"`
	ID         uint64    `json:"id,omitempty"`
	Links      uint32    `json:"links,omitempty"`
	Attributes []string  `json:"attributes,omitempty"`
	Allocated  int64     `json:"allocated"`
	Accessed   time.Time `json:"atime,omitzero"`
	Changed    time.Time `json:"ctime,omitzero"`
	Born       time.Time `json:"btime,omitzero"`
}

func newFileJSON(name, target string, info fs.FileInfo) fileJSON {
	j := fileJSON{
		Name: name, Target: target, Type: fileType(info.Mode()), Size: info.Size(),
		Mode: fmt.Sprintf("%04o", info.Mode().Perm()), ModTime: info.ModTime().UTC(),
	}
	if a, ok := info.Sys().(*pagewire.Attr); ok {
		j.ID, j.Links, j.Attributes, j.Allocated = a.ID, a.Links, dosAttributes(a.DOS), a.Alloc
		j.Accessed, j.Changed, j.Born = a.Accessed.UTC(), a.Changed.UTC(), a.Born.UTC()
	}
	return j
}

func (r *run) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.out.Write(append(b, '\n'))
	return err
}

func fileType(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	}
	return "other"
}

// modeString writes a mode as ls does, which is not quite what fs.FileMode does.
func modeString(m fs.FileMode) string {
	kind := "?"
	switch {
	case m.IsRegular():
		kind = "-"
	case m.IsDir():
		kind = "d"
	case m&fs.ModeSymlink != 0:
		kind = "l"
	}
	return kind + m.Perm().String()[1:]
}

// lsTime writes a time as ls does: with the year instead of the hour if it is
// more than half a year away.
func lsTime(t, now time.Time) string {
	const halfYear = 365 * 24 * time.Hour / 2
	t = t.Local()
	if age := now.Sub(t); age > halfYear || age < -time.Hour {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

// dosAttributes names the attributes that are set. See [MS-FSCC] 2.6.
func dosAttributes(dos uint32) []string {
	var names []string
	for i, name := range []string{
		"readonly", "hidden", "system", "", "directory", "archive", "", "normal", "temporary", "sparse",
		"reparse point", "compressed", "offline", "not indexed", "encrypted", "integrity",
	} {
		if name != "" && dos&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
