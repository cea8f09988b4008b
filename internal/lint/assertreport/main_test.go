package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sources = `package p

import "github.com/antithesishq/antithesis-sdk-go/assert"

func f(ok bool) {
	assert.Always(ok, "it holds", nil)
	assert.AlwaysOrUnreachable(ok, "it holds if it is met", nil)
	assert.Sometimes(ok, "it happens", nil)
	assert.Reachable("it comes here", nil)
	assert.Unreachable("it never comes here", nil)
}
`

// came is what a process writes about an assertion.
func came(message string, condition string) string {
	return `{"antithesis_assert":{"message":"` + message + `","hit":true,"must_hit":true,"condition":` + condition + "}}\n"
}

func TestReport(t *testing.T) {
	all := came("it holds", "true") + came("it happens", "true") + came("it comes here", "true")
	for _, tc := range []struct {
		name, sources, wrote string
		held, fails          bool
		shows                []string
	}{
		{"all were reached", sources, all, true, false, []string{"3 of 3 assertions were reached\n"}},
		{"some were not", sources, came("it holds", "true") + came("it happens", "false"), true, false,
			[]string{"1 of 3", "not reached:\n  it comes here (assert.Reachable", "it happens (assert.Sometimes"}},
		{"one does not hold", sources, all + came("it holds", "false"), false, false, []string{"3 of 3", "VIOLATED:\n  it holds (assert.Always, "}},
		{"one does not hold where it is met", sources, all + came("it holds if it is met", "false"), false, false, []string{"it holds if it is met"}},
		{"one is reached that must not be", sources, all + came("it never comes here", "false"), false, false, []string{"it never comes here"}},
		{"libraries have their own, and a kill cuts lines short", sources, all + came("theirs", "false") + `{"antithesis_assert":{"mess`, true, false, []string{"3 of 3"}},
		{"a message is one assertion's", sources + "\nfunc g() { assert.Reachable(\"it comes here\", nil) }\n", all, false, true, nil},
		{"a message is in place", strings.Replace(sources, `"it comes here"`, "name", 1), all, false, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			wrote := filepath.Join(dir, "wrote")
			for path, text := range map[string]string{filepath.Join(dir, "a.go"): tc.sources, wrote: tc.wrote} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			held, err := report(&out, dir, wrote)
			if held != tc.held || (err != nil) != tc.fails {
				t.Errorf("held %v, error %v:\n%s", held, err, out.String())
			}
			for _, want := range tc.shows {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
		})
	}
}

// Every message of the product's own sources is one assertion's.
func TestAssertionsOfTheSources(t *testing.T) {
	all, err := assertionsIn("../../..")
	if err != nil || len(all) < 20 {
		t.Errorf("%d assertions, %v", len(all), err)
	}
}
