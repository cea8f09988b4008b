// Command testreport reads what `go test -json` prints and shows what matters:
// the result of each package as it comes, everything that a failed test wrote,
// and at the end the tests that were not run, with their reasons.
//
// Invariants: nothing of a failure is hidden, whatever is not understood is
// printed as it came, and the exit code is 0 only if packages ran, none failed,
// and no test was skipped for a reason that is not listed (skips.go).
//
// Not its job: running tests (the Makefile).
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Stdin, os.Stdout)) }

// event is one line of `go doc test2json`, or of a build that failed.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// skip is a test that was not run.
type skip struct{ pkg, test, reason string }

type testreport struct {
	out    io.Writer
	held   map[string][]string // output of running tests, by package + test
	skips  []skip
	passed int
	failed int
}

func run(in io.Reader, out io.Writer) int {
	r := &testreport{out: out, held: map[string][]string{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err != nil {
			break
		}
	}
	return r.finish()
}

func (r *testreport) print(words ...string) {
	for _, w := range words {
		_, _ = io.WriteString(r.out, w) // the exit code tells as much
	}
}

func (r *testreport) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		r.print(line)
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		switch {
		case e.Test != "":
			r.held[key] = append(r.held[key], e.Output)
		case e.Output != "PASS\n" && !strings.HasSuffix(e.Output, "[no test files]\n"):
			r.print(e.Output)
		}
	case "build-output":
		r.print(e.Output)
	case "pass", "skip", "fail":
		r.end(e, key)
	}
}

// end of a test or, without one, of a package.
func (r *testreport) end(e event, key string) {
	switch {
	case e.Action == "fail" && e.Test == "":
		r.failed++
		r.release(e.Package + " ") // tests that a crash left unfinished
	case e.Action == "fail":
		r.print(r.held[key]...)
	case e.Action == "pass" && e.Test == "":
		r.passed++
	case e.Action == "skip" && e.Test != "":
		r.skips = append(r.skips, skip{e.Package, e.Test, reason(r.held[key])})
	}
	delete(r.held, key)
}

// release prints what is still held for keys with a prefix.
func (r *testreport) release(prefix string) {
	var keys []string
	for k := range r.held {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		r.print(r.held[k]...)
		delete(r.held, k)
	}
}

// reason is what a skipped test wrote, without the frame around it.
func reason(output []string) string {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if place, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			line = rest
		}
		words = append(words, line)
	}
	return cmp.Or(strings.Join(words, " "), "no reason was given")
}

func (r *testreport) finish() int {
	r.release("")
	if len(r.skips) > 0 {
		byReason := map[string][]string{}
		for _, s := range r.skips {
			byReason[s.reason] = append(byReason[s.reason], s.pkg+"."+s.test)
		}
		reasons := make([]string, 0, len(byReason))
		for why := range byReason {
			reasons = append(reasons, why)
		}
		slices.Sort(reasons)
		r.print("\nnot run:\n")
		for _, why := range reasons {
			r.print(fmt.Sprintf("  %s\n", why))
			for _, name := range byReason[why] {
				r.print(fmt.Sprintf("      %s\n", name))
			}
		}
	}
	r.print(fmt.Sprintf("\n%d packages passed, %d failed, %d tests not run\n", r.passed, r.failed, len(r.skips)))
	unlisted := r.unlisted()
	if r.failed > 0 || r.passed == 0 || unlisted > 0 {
		return 1
	}
	return 0
}

// unlisted names the skips that nobody allowed, and counts them.
func (r *testreport) unlisted() (n int) {
	for _, s := range r.skips {
		if !s.allowed() {
			r.print(fmt.Sprintf("%s.%s was skipped for a reason that is not listed: %s\n", s.pkg, s.test, s.reason))
			n++
		}
	}
	if n > 0 {
		r.print("make it run, or list the reason in internal/lint/testreport/skips.go\n")
	}
	return n
}
