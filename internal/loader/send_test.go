package loader

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestAProxysAnswerToABatchPassedForAMemnodes: an import ended as if its namespace were not there, with that exit code.
func TestAProxysAnswerToABatchPassedForAMemnodes(t *testing.T) {
	for code, want := range map[memory.Code]memory.Code{memory.CodeNotFound: memory.CodeUnavailable, memory.CodeInvalid: memory.CodeUnavailable, memory.CodeConflict: memory.CodeUnavailable,
		memory.CodeInternal: memory.CodeUnavailable, memory.CodeUnauthenticated: memory.CodeUnauthenticated} {
		n, asked := newFakeNode(), 0
		n.take = func([]memory.Capture) error {
			asked++
			return memory.Errorf(code, "http://node:8787 answered something").WithHint("is that a memnode?").WithCause(client.ErrForeign)
		}
		_, _, err := loadInto(t, n, nil, folder(t, map[string]string{"a.md": "# One\nfirst\n"}))
		if memory.CodeOf(err) != want || !errors.Is(err, client.ErrForeign) || memory.AsError(err).Hint != "is that a memnode?" || asked != 1 {
			t.Errorf("%s: asked %d times: %v (%s)", code, asked, err, memory.CodeOf(err))
		}
	}
	n := newFakeNode()
	n.take = func([]memory.Capture) error { return memory.Errorf(memory.CodeNotFound, "there is no namespace team") }
	if _, _, err := loadInto(t, n, nil, folder(t, map[string]string{"a.md": "# One\nfirst\n"})); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("the node's own word: %v", err)
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

// It waits as long as the node asks for, says what the node hints at, and ends where it is interrupted.
func TestABusyNodeSaysHowLong(t *testing.T) {
	n := newFakeNode()
	n.take = func([]memory.Capture) error {
		if n.batches++; n.batches == 1 {
			e := memory.Errorf(memory.CodeOverloaded, "busy")
			e.RetryAfter = 7 * time.Second
			return e
		}
		return nil
	}
	in := func(o *Options) { o.Format, o.In = "jsonl", lines(t, memory.Capture{Text: "one"}) }
	var slept []time.Duration
	if c := n.loaded(t, func(o *Options) {
		in(o)
		o.Sleep = func(_ context.Context, d time.Duration) error {
			slept = append(slept, d)
			return nil
		}
	}, "-"); c.Created != 1 || !slices.Equal(slept, []time.Duration{7 * time.Second}) {
		t.Errorf("%+v, slept %v", c, slept)
	}
	n = newFakeNode()
	n.refuse = func(memory.Capture) *memory.ItemError {
		return &memory.ItemError{Code: memory.CodeOverloaded, Detail: "not now", Hint: "wait for the compaction"}
	}
	if _, _, err := n.load(t, in, "-"); memory.AsError(err).Hint != "wait for the compaction" {
		t.Errorf("hint %q of %v", memory.AsError(err).Hint, err)
	}
	n.batches = 0
	_, _, err := n.load(t, func(o *Options) {
		in(o)
		o.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	}, "-")
	if n.batches != 1 || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v in %d batches", err, n.batches)
	}
}

// What was refused of a batch is none that was sent.
func TestWhatWasRefusedWasNotSent(t *testing.T) {
	n := newFakeNode()
	second := make(chan struct{})
	n.take = func(items []memory.Capture) error {
		if items[0].Text != "text 0" {
			close(second)
			return nil
		}
		<-second
		return memory.Errorf(memory.CodeQuota, "the namespace is full")
	}
	n.refuse = func(c memory.Capture) *memory.ItemError {
		if !strings.HasSuffix(c.Text, "7") {
			return nil
		}
		return &memory.ItemError{Code: memory.CodeInvalid, Detail: "no"}
	}
	var all []any
	for _, c := range talks(2*maxBatch, 10) {
		all = append(all, c)
	}
	_, said, err := n.load(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, all...) }, "-")
	if memory.CodeOf(err) != memory.CodeQuota || !strings.Contains(said, "441 memories were sent") {
		t.Errorf("%v: %s", err, said)
	}
}

// unmade is a node that has no namespace before it is made.
type unmade struct {
	*fakeNode
	made   []string
	beside bool // somebody else makes them at the same time
}

func (n *unmade) Namespace(_ context.Context, ns string) (memory.Namespace, error) {
	return memory.Namespace{}, memory.Errorf(memory.CodeNotFound, "there is no namespace %q", ns)
}

func (n *unmade) CreateNamespace(_ context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	n.made = append(n.made, req.Name)
	if n.beside {
		return memory.Namespace{}, memory.Errorf(memory.CodeConflict, "there is a namespace %q", req.Name)
	}
	return memory.Namespace{Name: req.Name}, nil
}

// Only LoCoMo, of which each conversation has its own, makes namespaces.
func TestOnlyLocomoMakesNamespaces(t *testing.T) {
	talk := `[{"sample_id":"conv-1","qa":[],"conversation":{"speaker_a":"Ann","speaker_b":"Bob","session_1_date_time":"1:56 pm on 8 May, 2023","session_1":[{"speaker":"Ann","dia_id":"D1:1","text":"hello"},{"speaker":"Bob","dia_id":"D1:2","text":"hi"}]}}]`
	for _, beside := range []bool{false, true} {
		n := &unmade{fakeNode: newFakeNode(), beside: beside}
		sum, said, err := loadInto(t, n, func(o *Options) {
			o.Format, o.In = "locomo", strings.NewReader(talk)
			o.Of = func(string) (importer.Options, error) { return importer.Options{Agent: "ann"}, nil }
		}, "-")
		if err != nil || sum.Totals().Created != 2 || len(n.made) != 1 || strings.Contains(said, "created namespace "+n.made[0]) == beside {
			t.Errorf("beside %v: %+v, %v, made %q: %s", beside, sum, err, n.made, said)
		}
		n = &unmade{fakeNode: newFakeNode()}
		sum, said, err = loadInto(t, n, func(o *Options) {
			o.Format, o.In, o.DryRun = "locomo", strings.NewReader(talk), true
			o.Of = func(string) (importer.Options, error) { return importer.Options{Agent: "ann"}, nil }
		}, "-")
		if err != nil || sum.Totals().Found != 2 || len(n.made) != 0 || said != "" {
			t.Errorf("a dry run: %+v, %v, made %q: %s", sum, err, n.made, said)
		}
		_, _, err = loadInto(t, n, func(o *Options) { o.Format, o.In = "jsonl", lines(t, memory.Capture{Text: "one"}) }, "-")
		if memory.CodeOf(err) != memory.CodeNotFound || len(n.made) != 0 || n.batches != 0 {
			t.Errorf("%v, made %q", err, n.made)
		}
	}
}
