package loader

import (
	"slices"
	"testing"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// What was revised at home was there twice after the second import elsewhere: as it was, and as it is.
func TestASecondExportWasThereTwice(t *testing.T) {
	line := func(id, text string, version int, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: version, Origin: memory.OriginCapture}
	}
	a, b, c := "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2", "01ARZ3NDEKTSV4RRFFQ69G5FA3"
	n := newFakeNode()
	load := func(want Counts, export ...any) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			got := n.loaded(t, func(o *Options) { o.Format, o.In, o.DryRun = "jsonl", lines(t, export...), dry }, "-")
			want := want
			if dry {
				want.Created = 0
			}
			if want.Namespace = "team"; got != want {
				t.Errorf("dry %v: %+v, want %+v", dry, got, want)
			}
		}
	}
	first := []any{line(b, "b", 1, a), line(a, "a", 1)}
	second := []any{line(c, "c", 1, b, a), line(b, "b", 1, a), line(a, "a, revised", 3)}
	load(Counts{Found: 2, Created: 2}, first...)
	load(Counts{Found: 2, Duplicates: 2}, first...)
	load(Counts{Found: 3, Created: 1, Duplicates: 1, Updated: 1}, second...)
	load(Counts{Found: 3, Duplicates: 3}, second...)
	load(Counts{Found: 2, Duplicates: 2}, first...) // an older export takes nothing back
	is, from := n.living("team"), map[string][]string{}
	for _, rec := range is {
		from[rec.Text] = rec.DerivedFrom
	}
	here := n.recordsOf()
	if !slices.Equal(texts(is), []string{"a, revised", "b", "c"}) || !slices.Equal(from["c"], []string{here["b"], here["revised"]}) || !slices.Equal(from["b"], []string{here["revised"]}) {
		t.Errorf("%q, derived of %v", texts(is), from)
	}
	rec := n.records[slices.IndexFunc(n.records, func(r *fakeRecord) bool { return r.now().Text == "a, revised" })]
	if p, _ := importer.ProvenanceOf(rec.now().Metadata); p.Version != 3 || p.Record != a || len(rec.versions) != 2 || rec.versions[0].Text != "a" {
		t.Errorf("%+v, %d versions", p, len(rec.versions))
	}
	// What a memory is derived from now is that here, too.
	load(Counts{Found: 2, Updated: 1, Duplicates: 1}, line(a, "a, revised", 3), line(b, "b", 2, a, c))
	if got := n.living("team"); !slices.ContainsFunc(n.records, func(r *fakeRecord) bool {
		return r.now().Text == "b" && slices.Equal(r.now().DerivedFrom, []string{here["revised"], here["c"]})
	}) {
		t.Errorf("%+v", got)
	}
	// Where one of its sources is not here, it stays derived from what it was.
	load(Counts{Found: 1, Updated: 1}, line(b, "b", 3, a, "01ARZ3NDEKTSV4RRFFQ69G5FA9"))
	if !slices.ContainsFunc(n.records, func(r *fakeRecord) bool {
		return r.now().Text == "b" && slices.Equal(r.now().DerivedFrom, []string{here["revised"], here["c"]})
	}) {
		t.Error("it is derived from something else")
	}
	// The same record of another namespace is another memory.
	other := line(a, "of another", 4)
	other.URI = "mem://elsewhere/" + a
	load(Counts{Found: 1, Created: 1}, other)
	// What was forgotten here comes back as what it says now, and another agent's own is left.
	own := line("01ARZ3NDEKTSV4RRFFQ69G5FA4", "bob's own", 1)
	own.Agent, own.Scope = "bob", memory.ScopeAgent
	load(Counts{Found: 1, Created: 1}, own)
}

// A file of an exported folder that was edited revises what it became elsewhere.
func TestAnEditedExportRevisesElsewhere(t *testing.T) {
	home := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	home.capture("team", memory.Capture{Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	dir, file := home.exportedFolder(t)
	n := newFakeNode()
	n.capture("team", memory.Capture{Agent: "ann", Text: "another one of the node"}, memory.OriginCapture)
	load := func() Counts {
		t.Helper()
		sum, said, err := n.load(t, func(o *Options) {
			o.Of = func(string) (importer.Options, error) {
				return importer.Options{Namespace: "elsewhere", Agent: me}, nil
			}
		}, dir)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return *sum.Namespaces[0]
	}
	if c := load(); c.Created != 1 {
		t.Errorf("%+v", c)
	}
	if c := load(); c.Duplicates != 1 || c.Updated+c.Created != 0 {
		t.Errorf("untouched: %+v", c)
	}
	edit(t, file(*home.records[0].now()), "\nfirst", "\nfirst, edited")
	if c := load(); c.Updated != 1 || c.Created != 0 || n.records[1].now().Text != "first, edited" {
		t.Errorf("edited: %+v", c)
	}
	if c := load(); c.Duplicates != 1 || c.Updated+c.Created != 0 {
		t.Errorf("once more: %+v", c)
	}
}
