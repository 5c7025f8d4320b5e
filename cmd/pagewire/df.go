package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire"
)

func (r *run) dfCommand() *cobra.Command {
	var human bool
	cmd := &cobra.Command{
		Use:     "df [flags] SOURCE...",
		Short:   "Show how full shares are",
		Example: `  pagewire df -h //nas/media //nas/backup`,
		Args:    operands(1, -1),
		RunE:    func(cmd *cobra.Command, args []string) error { return r.df(cmd.Context(), args, human) },
	}
	freeH(cmd)
	cmd.Flags().BoolVarP(&human, "human-readable", "h", false, "sizes like 1.5K and 31G")
	return cmd
}

func (r *run) df(ctx context.Context, args []string, human bool) error {
	header := []string{"Filesystem", "1K-blocks", "Used", "Available", "Use%"}
	if human {
		header[1], header[3] = "Size", "Avail"
	}
	var t tally
	rows := [][]string{header}
	for _, arg := range args {
		p, u, err := r.usage(ctx, arg)
		t.add(r, err)
		switch {
		case err != nil:
		case r.json:
			if err := r.printJSON(struct {
				Source    string `json:"source"`
				Total     int64  `json:"total"`
				Used      int64  `json:"used"`
				Available int64  `json:"available"`
				Label     string `json:"label,omitempty"`
				Type      string `json:"type,omitempty"`
			}{p.name, u.Total, u.Total - u.Free, u.Avail, u.Label, u.Type}); err != nil {
				return err
			}
		default:
			rows = append(rows, dfRow(printable(p.name), u, human))
		}
	}
	if len(rows) > 1 {
		if _, err := r.out.WriteString(table(rows)); err != nil {
			return err
		}
	}
	return t.err()
}

func (r *run) usage(ctx context.Context, arg string) (p place, u pagewire.Usage, err error) {
	if p, err = parseRemote("df", arg); err != nil {
		return p, u, err
	}
	fsys, err := r.open(ctx, p)
	if err == nil {
		u, err = fsys.Usage(ctx)
	}
	return p, u, p.error("df", err)
}

// dfRow is what is printed of a share.
func dfRow(name string, u pagewire.Usage, human bool) []string {
	blocks := func(n int64) string {
		if human {
			return shortSize(n)
		}
		return fmt.Sprint((n + 1023) / 1024)
	}
	used, percent := u.Total-u.Free, "-"
	if all := used + u.Avail; all > 0 {
		percent = fmt.Sprintf("%.0f%%", math.Ceil(float64(used)/float64(all)*100))
	}
	return []string{name, blocks(u.Total), blocks(used), blocks(u.Avail), percent}
}

// table aligns rows: the first column to the left, the others to the right.
func table(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "%-*s", width[i], cell)
			} else {
				fmt.Fprintf(&b, " %*s", width[i], cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
