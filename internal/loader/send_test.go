package loader

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// What the node was too busy for is sent again, and nothing else; what it stays too busy for
// ends the import, with the reason.
func TestWhatIsRefusedForNowIsSentAgain(t *testing.T) {
	in := func(o *Options) {
		o.Format, o.In = "jsonl", lines(t, memory.Capture{Text: "one"}, memory.Capture{Text: "two"}, memory.Capture{Text: "three"})
	}
	for _, code := range memory.Codes() {
		if !code.Transient() {
			continue
		}
		n := newFakeNode()
		asked := 0
		n.refuse = func(c memory.Capture) *memory.ItemError {
			if c.Text != "two" {
				return nil
			}
			if asked++; asked > 2 {
				return nil
			}
			return &memory.ItemError{Code: code, Detail: "not now"}
		}
		if c := n.loaded(t, in, "-"); c.Found != 3 || c.Created != 3 || c.Duplicates != 0 || n.batches != 3 {
			t.Errorf("%s: %+v in %d batches", code, c, n.batches)
		}
		n = newFakeNode()
		n.refuse = func(c memory.Capture) *memory.ItemError {
			if c.Text != "two" {
				return nil
			}
			return &memory.ItemError{Code: code, Detail: "not now", Hint: "wait"}
		}
		_, said, err := n.load(t, in, "-")
		if memory.CodeOf(err) != code || !strings.Contains(err.Error(), "1 memory: not now") || n.batches != maxAttempts || !strings.Contains(said, "2 memories were sent") {
			t.Errorf("%s: %v in %d batches: %s", code, err, n.batches, said)
		}
	}
}

// A node that is too busy to say what an item is in conflict with ends the import, and no
// item is sent twice for it.
func TestABusyConflictEndsTheImport(t *testing.T) {
	n := newFakeNode()
	n.capture("team", memory.Capture{Agent: "ann", Text: "mine", URI: "notes/a.md#one"}, memory.OriginCapture)
	_, _, err := loadInto(t, busyReads{n}, nil, folder(t, map[string]string{"a.md": "# One\nfirst\n"}))
	if memory.CodeOf(err) != memory.CodeUnavailable || n.batches != 1 {
		t.Errorf("%v in %d batches", err, n.batches)
	}
}

// busyReads is a node that tells no record.
type busyReads struct{ *fakeNode }

func (busyReads) Get(context.Context, string, string, client.GetOptions) (memory.Record, error) {
	return memory.Record{}, memory.Errorf(memory.CodeUnavailable, "not now")
}

// What was derived is derived from the records here, whatever comes first in the export, and
// where those were not exported, provenance names them.
func TestLineageOfExportsIsKept(t *testing.T) {
	line := func(id, text string, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: 1, Origin: memory.OriginCapture}
	}
	a, b, c, gone := "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2", "01ARZ3NDEKTSV4RRFFQ69G5FA3", "01ARZ3NDEKTSV4RRFFQ69G5FA4"
	export := []any{line("01ARZ3NDEKTSV4RRFFQ69G5FA5", "of what is gone", gone), line(c, "of both", b, a), line(b, "of a", a), line(a, "a")}
	for _, order := range []string{"newest first", "oldest first"} {
		if order == "oldest first" {
			slices.Reverse(export)
		}
		n := newFakeNode()
		for again := range 2 {
			if c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, export...) }, "-"); c.Created+c.Duplicates != 4 || again == 1 && c.Created != 0 {
				t.Errorf("%s: %+v", order, c)
			}
		}
		ids, from := map[string]string{}, map[string][]string{}
		for _, rec := range n.living("team") {
			ids[rec.Text], from[rec.Text] = rec.RecordID, rec.DerivedFrom
			if p, _ := importer.ProvenanceOf(rec.Metadata); rec.Text == "of what is gone" && (p.Derived != gone || len(rec.DerivedFrom) > 0) {
				t.Errorf("%s: %+v %s", order, rec, rec.Metadata)
			}
		}
		if !slices.Equal(from["of a"], []string{ids["a"]}) || !slices.Equal(from["of both"], []string{ids["of a"], ids["a"]}) {
			t.Errorf("%s: %v %v", order, ids, from)
		}
	}
}

// A memory of whose sources one was not exported was derived from none of them, and neither was
// what is derived from that memory.
func TestOneMissingSourceTookTheOthers(t *testing.T) {
	line := func(id, text string, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: 1, Origin: memory.OriginCapture}
	}
	a, b, c, d, gone := "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2", "01ARZ3NDEKTSV4RRFFQ69G5FA3", "01ARZ3NDEKTSV4RRFFQ69G5FA4", "01ARZ3NDEKTSV4RRFFQ69G5FA9"
	x, y := "01ARZ3NDEKTSV4RRFFQ69G5FA5", "01ARZ3NDEKTSV4RRFFQ69G5FA6" // of each other, as revisions make them
	export := []any{line("01ARZ3NDEKTSV4RRFFQ69G5FA7", "z", x), line(y, "y", x), line(x, "x", y, a), line(d, "d", c, gone), line(c, "c", b), line(b, "b", gone, a), line(a, "a")}
	for _, order := range []string{"newest first", "oldest first"} {
		if order == "oldest first" {
			slices.Reverse(export)
		}
		n := newFakeNode()
		for again := range 2 {
			if c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, export...) }, "-"); c.Created+c.Duplicates != 7 || again == 1 && c.Created != 0 {
				t.Errorf("%s: %+v", order, c)
			}
		}
		texts, from, missing := map[string]string{}, map[string]string{}, map[string]string{}
		for _, rec := range n.living("team") {
			texts[rec.RecordID] = rec.Text
		}
		for _, rec := range n.living("team") {
			for _, id := range rec.DerivedFrom {
				from[rec.Text] += texts[id]
			}
			p, _ := importer.ProvenanceOf(rec.Metadata)
			missing[rec.Text] = p.Derived
		}
		if from["b"] != "a" || from["c"] != "b" || from["d"] != "c" || missing["b"] != gone || missing["c"] != "" || missing["d"] != gone {
			t.Errorf("%s: derived of %v, missing %v", order, from, missing)
		}
		if from["x"]+" "+from["y"] != "ya " && from["x"]+" "+from["y"] != "a x" || missing["x"]+missing["y"] != x && missing["x"]+missing["y"] != y || from["z"] != "x" {
			t.Errorf("%s, of each other: derived of %v, missing %v", order, from, missing)
		}
	}
}
