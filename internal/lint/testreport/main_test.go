package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, tc := range []struct {
		name  string
		in    string
		code  int
		shows []string
		hides []string
	}{
		{"passing tests are silent", `{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a"}
`, 0, []string{"ok  \tm/a\t0.1s\n", "1 packages passed, 0 failed, 0 tests not run"}, []string{"chatter", "PASS", "not run:"}},
		{"failures show everything", `{"Action":"output","Package":"m/a","Test":"TestX","Output":"why\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"FAIL\n"}
{"Action":"fail","Package":"m/a"}
`, 1, []string{"why\n", "FAIL\n", "1 failed"}, nil},
		{"a crash shows unfinished tests", `{"Action":"output","Package":"m/a","Test":"TestX","Output":"panic: oh\n"}
{"Action":"fail","Package":"m/a"}
`, 1, []string{"panic: oh"}, nil},
		{"an end without an end", `{"Action":"output","Package":"m/a","Test":"TestX","Output":"last words\n"}
`, 1, []string{"last words"}, nil},
		{"builds that fail", `{"Action":"build-output","ImportPath":"m/a","Output":"a.go:1: no\n"}
{"Action":"build-fail","ImportPath":"m/a"}
{"Action":"fail","Package":"m/a"}
`, 1, []string{"a.go:1: no"}, nil},
		{"skips have reasons", `{"Action":"output","Package":"mneme/a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"mneme/a","Test":"TestX","Output":"    a_test.go:7: no data: set MNEME_DATA\n"}
{"Action":"output","Package":"mneme/a","Test":"TestX","Output":"--- SKIP: TestX (0.00s)\n"}
{"Action":"skip","Package":"mneme/a","Test":"TestX"}
{"Action":"skip","Package":"mneme/empty"}
{"Action":"pass","Package":"mneme/a"}
`, 0, []string{"not run:\n  no data: set MNEME_DATA\n      mneme/a.TestX\n", "1 tests not run"}, []string{"a_test.go", "mneme/empty", "not listed"}},
		{"a skip that is not listed fails", `{"Action":"output","Package":"mneme/a","Test":"TestX","Output":"    a_test.go:7: too slow here\n"}
{"Action":"skip","Package":"mneme/a","Test":"TestX"}
{"Action":"skip","Package":"mneme/a","Test":"TestY"}
{"Action":"pass","Package":"mneme/a"}
`, 1, []string{"mneme/a.TestX was skipped for a reason that is not listed: too slow here", "mneme/a.TestY was skipped", "no reason was given", "skips.go"}, nil},
		{"a reason counts where it is listed", `{"Action":"output","Package":"mneme/internal/other","Test":"TestX","Output":"    a_test.go:7: needs leave to mount: no\n"}
{"Action":"skip","Package":"mneme/internal/other","Test":"TestX"}
{"Action":"pass","Package":"mneme/internal/other"}
`, 1, []string{"not listed: needs leave to mount"}, nil},
		{"nothing is a failure", "", 1, []string{"0 packages passed"}, nil},
		{"other words are passed on", "go: no such flag", 1, []string{"go: no such flag"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			if code := run(strings.NewReader(tc.in), &out); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			for _, s := range tc.shows {
				if !strings.Contains(out.String(), s) {
					t.Errorf("lacks %q:\n%s", s, out.String())
				}
			}
			for _, s := range tc.hides {
				if strings.Contains(out.String(), s) {
					t.Errorf("has %q:\n%s", s, out.String())
				}
			}
		})
	}
}
