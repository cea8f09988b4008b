package loader

import (
	"slices"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// exports are the lines of an export of a namespace.
func (n *fakeNode) exports(ns string) (all []any) {
	for _, rec := range n.living(ns) {
		all = append(all, importer.ExportOf(rec))
	}
	return all
}

// takes imports lines into a namespace, and compares what is counted.
func (n *fakeNode) takes(t *testing.T, ns string, all []any, change func(*Options), want Counts) *Summary {
	t.Helper()
	sum, said, err := n.load(t, func(o *Options) {
		o.Format, o.In = "jsonl", lines(t, all...)
		o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: ns, Agent: "ann"}, nil }
		if change != nil {
			change(o)
		}
	}, "-")
	if err != nil || len(sum.Namespaces) != 1 {
		t.Fatalf("%+v, %v\n%s", sum, err, said)
	}
	if want.Namespace = ns; *sum.Namespaces[0] != want {
		t.Errorf("%+v, want %+v; %+v", *sum.Namespaces[0], want, sum.Problems)
	}
	return sum
}

// Two namespaces on two nodes had one name, and an export of the one took the other for its home: what was derived was
// refused for good, what was revised was there twice, and so was everything that came back.
func TestANamespaceOfTheSameNameElsewhereWasTakenForHome(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line := func(id, client, text string, version int, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{ID: client, Agent: "ann", Text: text, Kind: memory.KindOther, URI: "mem://team/" + id, Scope: memory.ScopeTeam, OccurredAt: &at, DerivedFrom: from},
			RecordID: id, Version: version, Origin: memory.OriginCapture}
	}
	a, b := "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2"
	first := []any{line(b, "id-b", "b", 1, a), line(a, "id-a", "a", 1)}
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "x", Agent: "ann", Text: "there before", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	n.takes(t, "team", first, nil, Counts{Found: 2, Created: 2})
	n.takes(t, "team", first, nil, Counts{Found: 2, Duplicates: 2})
	here := n.recordsOf()
	if got := n.records[2].now().DerivedFrom; !slices.Equal(got, []string{here["a"]}) {
		t.Errorf("b is derived from %v", got)
	}
	// A revised memory has no id of a client's.
	second := []any{line(b, "id-b", "b", 1, a), line(a, "", "a, revised", 2)}
	n.takes(t, "team", second, nil, Counts{Found: 2, Duplicates: 1, Conflicts: 1})
	n.takes(t, "team", second, func(o *Options) { o.Revise = true }, Counts{Found: 2, Duplicates: 1, Updated: 1})
	n.takes(t, "team", second, nil, Counts{Found: 2, Duplicates: 2})
	if got := texts(n.living("team")); !slices.Equal(got, []string{"a, revised", "b", "there before"}) {
		t.Errorf("%q", got)
	}
	// Where they are from, all that comes back is there.
	home := newFakeNode()
	for _, l := range []memory.ExportLine{line(a, "id-a", "a, revised", 1), line(b, "id-b", "b", 1, a)} {
		id := l.RecordID
		l.URI = ""
		home.capture("team", l.Capture, memory.OriginCapture)
		home.records[len(home.records)-1].now().RecordID = id
	}
	copies := slices.DeleteFunc(n.exports("team"), func(l any) bool { return l.(memory.ExportLine).Text == "there before" })
	for i, l := range copies {
		l := l.(memory.ExportLine)
		l.RecordID = l.RecordID[:3] + "X" + l.RecordID[4:] // which no other node gives
		l.URI = "mem://team/" + l.RecordID
		if l.Version > 1 {
			l.Agent = "bob" // who imported it there, and so revised it
		}
		copies[i] = l
	}
	home.takes(t, "team", copies, nil, Counts{Found: 2, Duplicates: 2})
}

// What had been imported into a namespace of the same name before exports said so there is no conflict.
func TestWhatANamesakeGotBeforeIsThere(t *testing.T) {
	n := newFakeNode()
	l := memory.ExportLine{Capture: memory.Capture{ID: "id-a", Agent: "ann", Text: "a", Scope: memory.ScopeTeam}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	n.capture("team", l.Capture, memory.OriginImport)
	l.URI = "mem://team/" + l.RecordID
	n.takes(t, "team", []any{l}, nil, Counts{Found: 1, Duplicates: 1})
}

// A memory that had been revised, and so had no id of a client's, came back as the copy of it in another namespace.
func TestWhatWasForgottenCameBackAsACopy(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{Agent: "ann", Text: "a", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	n.capture("team", memory.Capture{Agent: "ann", Text: "b", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	n.takes(t, "fork", n.exports("team"), nil, Counts{Found: 2, Created: 2})
	copies := n.exports("fork")
	for _, rec := range n.living("team") {
		if _, err := n.Forget(t.Context(), "team", rec.RecordID, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	n.takes(t, "team", copies, func(o *Options) { o.DryRun = true }, Counts{Found: 2, Forgotten: 2})
	n.takes(t, "team", copies, nil, Counts{Found: 2, Forgotten: 2})
	// What was changed in the copy is another memory.
	l := copies[0].(memory.ExportLine)
	l.ID, l.Text, l.Version = "", "changed", 2
	n.takes(t, "team", []any{l}, nil, Counts{Found: 1, Created: 1})
	n.takes(t, "team", copies, func(o *Options) { o.Again = true }, Counts{Found: 2, Created: 1, Duplicates: 1})
	n.takes(t, "team", copies, nil, Counts{Found: 2, Duplicates: 2})
	// Of what was erased nothing shows that the copy says something else.
	for _, r := range n.records {
		r.erased = r.forgotten
	}
	l.ID, l.Text, l.RecordID = "", "a", "01ARZ3NDEKTSV4RRFFQ69G5FA1"
	n.takes(t, "team", []any{l}, nil, Counts{Found: 1, Forgotten: 1})
}

// What came back with --again, and what it was derived from did too, was refused.
func TestWhatCameBackWasDerivedFromWhatWasForgotten(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(id string, from ...string) string {
		n.capture("team", memory.Capture{ID: id, Agent: "ann", Text: id, Scope: memory.ScopeTeam, OccurredAt: &at, DerivedFrom: from}, memory.OriginCapture)
		return n.records[len(n.records)-1].now().RecordID
	}
	stays, a, gone := add("stays"), add("a"), add("gone")
	b := add("b", a, stays)
	c := add("c", gone, stays)
	export := slices.DeleteFunc(n.exports("team"), func(l any) bool { return l.(memory.ExportLine).Text == "gone" })
	for _, id := range []string{a, b, c, gone} {
		if _, err := n.Forget(t.Context(), "team", id, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	sum := n.takes(t, "team", export, func(o *Options) { o.Again = true }, Counts{Found: 4, Created: 3, Duplicates: 1})
	is := map[string]memory.Record{}
	for _, rec := range n.living("team") {
		is[rec.Text] = rec
	}
	if !slices.Equal(is["b"].DerivedFrom, []string{is["a"].RecordID, stays}) || !slices.Equal(is["c"].DerivedFrom, []string{stays}) {
		t.Errorf("%+v", is)
	}
	if len(sum.LeftOut) != 1 || sum.LeftOut[0].Count != 1 {
		t.Errorf("%+v", sum.LeftOut)
	}
}
