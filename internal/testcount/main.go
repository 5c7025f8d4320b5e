// Testcount reads what go test -json writes on standard input and prints what a
// reader needs: a line for each package, the output of whatever failed, the
// reason for every skip and, last, how many tests passed, failed and were
// skipped. It exits with 1 if something failed or nothing ran.
//
// It counts leaves: a test with subtests counts only if it fails by itself.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}

// event is a line of go test -json; see go doc test2json and go help buildjson.
type event struct {
	Action      string
	Package     string
	ImportPath  string // in build events, instead of Package
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// test is one test of a package, or with an empty name the package itself.
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.pkg + " " + t.name) }

// report gathers events until a package ends, then prints and counts it.
type report struct {
	w                       io.Writer
	passed, failed, skipped int
	results                 map[string][]result // of packages that have not ended
	output                  map[test][]string   // of tests that have not ended
	builds                  map[string][]string // compiler output, by import path
	skips                   []string
}

type result struct {
	test   test
	action string
}

func newReport(w io.Writer) *report {
	return &report{
		w:       w,
		results: map[string][]result{},
		output:  map[test][]string{},
		builds:  map[string][]string{},
	}
}

func (r *report) read(in io.Reader) error {
	br := bufio.NewReader(in)
	for {
		line, err := br.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				r.add(e)
			} else {
				fmt.Fprint(r.w, line) // go's own words, on a broken module for example
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "output":
		if !noise(e.Output) {
			r.output[t] = append(r.output[t], e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.results[e.Package] = append(r.results[e.Package], result{t, e.Action})
			return
		}
		r.endPackage(e)
	}
}

// noise reports whether a line of output says only that a test started or ended.
func noise(line string) bool {
	line = strings.TrimSpace(line)
	for _, p := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- FAIL", "--- SKIP"} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return line == "PASS" || line == "FAIL" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "ok  \t")
}

func (r *report) endPackage(e event) {
	results := r.results[e.Package]
	delete(r.results, e.Package)
	parents, blamed := map[test]bool{}, map[test]bool{}
	for _, res := range results {
		for t := res.test; ; {
			i := strings.LastIndexByte(t.name, '/')
			if i < 0 {
				break
			}
			t.name = t.name[:i]
			parents[t] = true
			if res.action == "fail" {
				blamed[t] = true
			}
		}
	}

	failed, ran := 0, 0
	for _, res := range results {
		text := r.output[res.test]
		delete(r.output, res.test)
		switch {
		case res.action == "fail":
			if blamed[res.test] && len(text) == 0 {
				continue // a subtest has said it
			}
			if !blamed[res.test] {
				failed++
			}
			fmt.Fprintf(r.w, "FAIL  %s\n%s", res.test, strings.Join(text, ""))
		case parents[res.test]:
		case res.action == "skip":
			r.skipped++
			r.skips = append(r.skips, fmt.Sprintf("skip  %s: %s", res.test, reason(text)))
		default:
			ran++
		}
	}

	own := test{pkg: e.Package}
	if e.Action == "fail" && failed == 0 {
		// It did not build, or ended in the middle of a test.
		failed = 1
		fmt.Fprintf(r.w, "FAIL  %s\n", own)
		for _, text := range [][]string{r.builds[e.FailedBuild], r.output[own]} {
			fmt.Fprint(r.w, strings.Join(text, ""))
		}
		for t, text := range r.output {
			if t.pkg == e.Package && t.name != "" {
				fmt.Fprintf(r.w, "      did not end: %s\n%s", t.name, strings.Join(text, ""))
			}
		}
	}
	for t := range r.output {
		if t.pkg == e.Package {
			delete(r.output, t)
		}
	}
	r.passed += ran
	r.failed += failed
	if len(results) > 0 && failed == 0 {
		fmt.Fprintf(r.w, "ok    %s  %d passed  %.1fs\n", e.Package, ran, e.Elapsed)
	}
}

// reason returns why a test was skipped: its output without the position.
func reason(text []string) string {
	why := strings.Join(strings.Fields(strings.Join(text, " ")), " ")
	if _, after, ok := strings.Cut(why, ".go:"); ok {
		if _, after, ok := strings.Cut(after, ": "); ok {
			return after
		}
	}
	if why == "" {
		return "no reason given"
	}
	return why
}

// finish prints the end of the report and reports whether all is well.
func (r *report) finish() bool {
	// A package whose end never came was running when go test died.
	for pkg := range r.results {
		r.endPackage(event{Action: "fail", Package: pkg})
	}
	for _, s := range r.skips {
		fmt.Fprintln(r.w, s)
	}
	fmt.Fprintf(r.w, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return r.failed == 0 && r.passed > 0
}
