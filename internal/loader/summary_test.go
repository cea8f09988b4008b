package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"mneme/internal/importer"
	"mneme/memory"
)

// Of what is left out, or could not be imported, the first ones are named, and all are counted.
func TestASummaryIsBounded(t *testing.T) {
	var s Summary
	for i := range maxProblems + 20 {
		for n := range maxPlaces + 2 {
			s.skip("file", &importer.Skip{Where: fmt.Sprint("line ", n+1), Why: fmt.Sprint("reason ", i)})
		}
		s.malformed(Problem{Line: i})
	}
	last := s.LeftOut[len(s.LeftOut)-1]
	if len(s.LeftOut) != maxProblems || last.Why != "for other reasons" || last.Count != 21*(maxPlaces+2) || !slices.Equal(s.LeftOut[0].Places, []string{"file: line 1", "file: line 2", "file: line 3"}) || s.LeftOut[0].Count != maxPlaces+2 {
		t.Errorf("%d reasons, the last one %+v", len(s.LeftOut), last)
	}
	if s.Malformed != maxProblems+20 || len(s.Problems) != maxProblems || s.Problems[maxProblems-1].Line != maxProblems-1 {
		t.Errorf("%d malformed, %d named", s.Malformed, len(s.Problems))
	}
	s = Summary{Namespaces: []*Counts{{Found: 1, Created: 2, Duplicates: 3, Updated: 4, Conflicts: 5, Rejected: 6}, {Found: 10, Created: 20, Duplicates: 30, Updated: 40, Conflicts: 50, Rejected: 60, Graph: &GraphCounts{Entities: 100, Relations: 200, Observations: 300}}}}
	if got, want := s.Totals(), (Counts{Found: 11, Created: 322, Duplicates: 33, Updated: 44, Conflicts: 55, Rejected: 66}); got != want {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ formats, want string }{{"csv", "csv"}, {"csv csv", "csv"}, {"csv jsonl", "several"}, {"csv jsonl csv", "several"}} {
		s = Summary{}
		for _, format := range strings.Fields(c.formats) {
			s.found("file", format, "why")
		}
		if s.Format != c.want || len(s.Files) != len(strings.Fields(c.formats)) {
			t.Errorf("%s: %q of %d files", c.formats, s.Format, len(s.Files))
		}
	}
}

// An import says what a file is taken for, what it leaves out, where something is wrong, and how far it is.
func TestAnImportSaysWhatItDoes(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Bad\n\xff\n", "b.md": "# B\nb\n", "picture.png": "x"})
	jsonl := filepath.Join(t.TempDir(), "file.jsonl")
	put(t, jsonl, `{"text":"a line"}`+"\n")
	for _, c := range []struct{ created, duplicates int }{{3, 0}, {0, 3}} {
		var done []uint64
		sum, said, err := n.load(t, func(o *Options) {
			o.Bar = func(string) Bar {
				return Bar{func(p memory.Progress) { done = append(done, p.Done) }, func() {}}
			}
		}, dir, jsonl)
		if err != nil || sum.Totals().Created != c.created || sum.Totals().Duplicates != c.duplicates || !slices.IsSorted(done) || len(done) == 0 || done[len(done)-1] != 3 {
			t.Errorf("%+v, %v, reported %v", sum.Totals(), err, done)
		}
		if said != dir+": markdown: it holds a.md\n" || sum.Format != "several" || len(sum.Files) != 2 {
			t.Errorf("%q, %+v", said, sum)
		}
		if len(sum.LeftOut) != 1 || sum.LeftOut[0].Why != "not Markdown" || len(sum.Problems) != 1 || sum.Problems[0].File != dir || sum.Problems[0].Line != 4 || sum.Problems[0].Where != "a.md line 4" || sum.Problems[0].Code != memory.CodeInvalid {
			t.Errorf("%+v, %+v", sum.LeftOut, sum.Problems)
		}
	}
	blank := filepath.Join(t.TempDir(), "notes")
	put(t, filepath.Join(blank, "a.md"), "\xff\n")
	if _, said, err := n.load(t, prune, blank); err != nil || !strings.Contains(said, "nothing was pruned: 1 item could not be read") {
		t.Errorf("%v: %s", err, said)
	}
}

// An import that is interrupted says so; a dry run says of nothing that it was sent.
func TestAnInterruptedImport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := newFakeNode()
	n.take = func([]memory.Capture) error {
		cancel()
		return nil
	}
	var said strings.Builder
	opt := Options{Agent: me, Of: func(string) (importer.Options, error) { return importer.Options{Namespace: "team", Agent: me}, nil },
		Note: func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) },
		Bar:  func(string) Bar { return Bar{func(memory.Progress) {}, func() {}} },
	}
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	other := filepath.Join(t.TempDir(), "file.csv")
	put(t, other, "text\nx\n")
	opt.In = strings.NewReader("")
	_, err := Load(ctx, n, opt, []string{dir, other})
	if memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, context.Canceled) || !strings.Contains(said.String(), "1 memory was sent; run the same import again") {
		t.Errorf("%v: %s", err, said.String())
	}
	_, noted, err := newFakeNode().load(t, func(o *Options) {
		o.Format, o.DryRun, o.In = "jsonl", true, io.MultiReader(strings.NewReader("{\"text\":\"one\"}\n"), iotest.ErrReader(errors.New("the disk is gone")))
	}, "-")
	if err == nil || noted != "" {
		t.Errorf("%v: %s", err, noted)
	}
}

// What an import took away of an export comes back with what is derived from it.
func TestWhatWasDerivedComesBack(t *testing.T) {
	line := func(id, text string, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: 1, Origin: memory.OriginCapture}
	}
	export := []any{line("01ARZ3NDEKTSV4RRFFQ69G5FA2", "b", "01ARZ3NDEKTSV4RRFFQ69G5FA1"), line("01ARZ3NDEKTSV4RRFFQ69G5FA1", "a")}
	n := newFakeNode()
	for range 3 {
		if c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, export...) }, "-"); c.Created != 2 || c.Found != 2 {
			t.Errorf("%+v", c)
		}
		here := n.recordsOf()
		for _, rec := range n.living("team") {
			if rec.Text == "b" && !slices.Equal(rec.DerivedFrom, []string{here["a"]}) {
				t.Errorf("it is derived from %q, of %v", rec.DerivedFrom, here)
			}
		}
		if err := Forget(t.Context(), n, "team", me, n.from(t, "home", "mneme"), Bar{func(memory.Progress) {}, func() {}}); err != nil {
			t.Fatal(err)
		}
	}
}
