package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// result is all runs of a case.
type result struct {
	workload
	bytes   int64
	files   int // 0: speed is in bytes
	clients []string
	paths   map[string]path
	runs    []run
	note    string
}

// target is what a case is meant to reach, as a ratio to a peer's median pair.
type target struct {
	peer string // "" for the fastest
	what string // "speed", at least; "CPU", at most; "requests", of a listing
	at   float64
}

// targets returns those of a case.
func (w workload) targets() []target {
	switch {
	case w.op == "cached":
		return []target{{memmove, "speed", 0.5}}
	case w.streams():
		return nil
	case w.op == "list":
		return []target{{ours, "requests", 0}}
	case w.op == "upload" || w.op == "download":
		return []target{{workers, "speed", 1}}
	case w.link == "20ms":
		return []target{{smbclient, "speed", 1}}
	case w.protection != "plain":
		return []target{{"", "speed", 1.2}}
	case w.op == "read":
		return []target{{smbclient, "speed", 1.6}, {smbclient, "CPU", 0.6}}
	}
	return []target{{smbclient, "speed", 1.25}}
}

// speed is in MB/s, or in files a second.
func (r result) speed(m run) float64 {
	if r.files > 0 {
		return float64(r.files) / m.Seconds
	}
	return float64(r.bytes) / 1e6 / m.Seconds
}

// cpu is in seconds a GiB, or for all files.
func (r result) cpu(m run) float64 {
	if r.files > 0 {
		return m.CPU
	}
	return m.CPU / (float64(r.bytes) / (1 << 30))
}

// of returns a figure of a client's runs, by round.
func (r result) of(name string, figure func(run) float64) (all []float64) {
	for _, m := range r.runs {
		if m.Client == name {
			all = append(all, figure(m))
		}
	}
	return all
}

// us returns whom a case is about: ours, which comes first.
func (r result) us() string { return r.clients[0] }

// ratio returns the median over the rounds of our figure over a peer's.
func (r result) ratio(peer string, figure func(run) float64) float64 {
	ratios := r.of(r.us(), figure)
	for i, f := range r.of(peer, figure) {
		ratios[i] /= f
	}
	return median(ratios)
}

// fastest returns the peer with the highest median speed.
func (r result) fastest() string {
	peers := slices.DeleteFunc(slices.Clone(r.clients), func(name string) bool { return name == r.us() })
	return slices.MaxFunc(peers, func(a, b string) int {
		return cmp.Compare(median(r.of(a, r.speed)), median(r.of(b, r.speed)))
	})
}

// verdict returns whether a target is met, in words and as a value.
func (r result) verdict(t target) (string, bool) {
	peer := t.peer
	if peer == "" {
		peer = r.fastest()
	}
	switch t.what {
	case "CPU":
		got := r.ratio(peer, r.cpu)
		return fmt.Sprintf("CPU %.2f × %s's, at most %.2f", got, peer, t.at), got <= t.at
	case "requests":
		// Opening, closing and the last answer, and one for each 64 KiB of entries.
		worst, bytes, allowed := int64(0), int64(0), int64(0)
		for _, m := range r.runs {
			if m.Client == r.us() && m.Requests > worst {
				worst, bytes = m.Requests, m.Entries
				allowed = 3 + (bytes+65535)/65536
			}
		}
		return fmt.Sprintf("%d requests for %d bytes of entries, at most %d", worst, bytes, allowed), worst <= allowed
	}
	got := r.ratio(peer, r.speed)
	return fmt.Sprintf("%.2f × %s, at least %.2f", got, peer, t.at), got >= t.at
}

func median(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// print writes the table of a case.
func (r result) print(out io.Writer) error {
	unit, cpuUnit := "MB/s", "CPU s/GiB"
	amount := fmt.Sprintf("%d MiB", r.bytes>>20)
	if r.files > 0 {
		unit, cpuUnit = "files/s", "CPU s"
		amount = fmt.Sprintf("%d files", r.files)
	}
	rounds := len(r.runs) / max(len(r.clients), 1)
	fmt.Fprintf(out, "%v: %s, medians of %d rounds\n", r.workload, amount, rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  client\t%s\tmin–max\tours/it\t%s\tours/it\trequests\tpath\n", unit, cpuUnit)
	for _, name := range r.clients {
		speeds, cpus := r.of(name, r.speed), r.of(name, r.cpu)
		requests := median(r.of(name, func(m run) float64 { return float64(m.Requests) }))
		size := ""
		if r.op != "list" && requests > 0 {
			size = fmt.Sprintf(" × %.0f KiB", float64(r.bytes)/1024/requests)
		}
		ratios := [2]string{"-", "-"}
		if name != r.us() {
			ratios = [2]string{fmt.Sprintf("%.2f", r.ratio(name, r.speed)), fmt.Sprintf("%.2f", r.ratio(name, r.cpu))}
		}
		how := r.paths[name].String()
		if flushes := r.of(name, func(m run) float64 { return float64(m.Flushes) }); slices.Max(flushes) > 0 {
			how += fmt.Sprintf(", %.0f flushes", median(flushes))
		}
		fmt.Fprintf(w, "  %s\t%.0f\t%.0f–%.0f\t%s\t%.2f\t%s\t%.0f%s\t%s\n", name, median(speeds),
			slices.Min(speeds), slices.Max(speeds), ratios[0], median(cpus), ratios[1], requests, size, strings.TrimPrefix(how, ", "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.note != "" {
		fmt.Fprintf(out, "  %s\n", r.note)
	}
	for _, t := range r.targets() {
		words, met := r.verdict(t)
		fmt.Fprintf(out, "  target: %s: %s\n", words, yesNo(met))
	}
	_, err := fmt.Fprintln(out)
	return err
}

func yesNo(met bool) string {
	if met {
		return "met"
	}
	return "NOT met"
}

// summarize counts the targets.
func summarize(out io.Writer, results []result) error {
	met, all := 0, 0
	for _, r := range results {
		for _, t := range r.targets() {
			all++
			if _, ok := r.verdict(t); ok {
				met++
			}
		}
	}
	_, err := fmt.Fprintf(out, "%d of %d targets met\n", met, all)
	return err
}
