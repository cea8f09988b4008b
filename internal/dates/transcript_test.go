package dates

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the parser finds into testdata")

// TestTranscripts holds what is found in the lines of testdata. A line that
// starts with > is a text, what follows is found in it; "ref" sets the reference.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	texts, found := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		ref := reference()
		for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
			switch {
			case strings.HasPrefix(line, "  "): // found before
				continue
			case strings.HasPrefix(line, "ref "):
				if ref, err = time.Parse("2006-01-02T15:04", line[4:]); err != nil {
					t.Fatal(err)
				}
			}
			fmt.Fprintln(&out, line)
			s, ok := strings.CutPrefix(line, "> ")
			if !ok {
				continue
			}
			exprs := Parse(s, ref)
			check(t, s, exprs)
			texts, found = texts+1, found+len(exprs)
			for _, e := range exprs {
				fmt.Fprintf(&out, "  %q %v\n", s[e.Start:e.End], e)
			}
		}
		if *rewrite {
			if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, got := strings.Split(string(data), "\n"), strings.Split(out.String(), "\n")
		bad := 0
		for i := 0; i < len(want) && i < len(got) && bad < 5; i++ {
			if want[i] != got[i] {
				t.Errorf("%s:%d:\n got %s\nwant %s", name, i+1, got[i], want[i])
				bad++
			}
		}
		if len(want) != len(got) {
			t.Errorf("%s: %d lines, want %d", name, len(got), len(want))
		}
	}
	t.Logf("%d expressions in %d texts", found, texts)
}
