package hooks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mneme/internal/likeness"
	"mneme/memory"
)

// TestACaptureWentWithAnImport: hooks counted on what was imported under the id that they give a text, or as a plain
// line, and what was said went when that was taken back.
func TestACaptureWentWithAnImport(t *testing.T) {
	for name, metadata := range map[string]string{"an export": `{"imported":{"from":"mneme"}}`, "a line": `{}`} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.set(func() {
			w.node.records[0].Origin, w.node.records[0].Metadata = memory.OriginImport, json.RawMessage(metadata)
		})
		w.prompt("two", "I prefer tabs over spaces.")
		w.stored("I prefer tabs over spaces.", "I prefer tabs over spaces.")
		if len(w.node.records) < 2 {
			t.Fatalf("%s: %s", name, w.notes())
		}
		own := &w.node.records[1]
		if w.node.records[0].Version != 1 || len(own.DerivedFrom) != 1 || own.DerivedFrom[0] != w.node.records[0].RecordID {
			t.Errorf("%s: %+v", name, w.node.records)
		}
		w.prompt("three", "I prefer tabs over spaces.")
		if said := likeness.SaidOf(own.Metadata); len(w.node.records) != 2 || own.Version != 2 {
			t.Errorf("%s: %+v of %d", name, said, len(w.node.records))
		}
		if w.disk().Waiting() != 0 {
			t.Error("it waits")
		}
	}
}

// TestWhatAnImportTookWasRefusedForEver, as if a person had forgotten it; what one forgets later stays forgotten.
func TestWhatAnImportTookWasRefusedForEver(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs over spaces.")
	w.node.set(func() {
		w.node.records[0].Origin = memory.OriginImport
		w.node.forget(0, `{"imported":{"from":"mneme","taken":true}}`)
	})
	w.prompt("two", "I prefer tabs over spaces.")
	w.stored("I prefer tabs over spaces.")
	w.prompt("three", "I prefer tabs over spaces.")
	w.stored("I prefer tabs over spaces.")
	if c := w.disk().Counts(); c.Repeated != 1 || strings.Contains(w.notes(), "forgotten") {
		t.Errorf("%+v: %s", c, w.notes())
	}
	w.node.set(func() { w.node.forget(0, `{}`) })
	w.prompt("four", "I prefer tabs over spaces.")
	w.stored()
	if !strings.Contains(w.notes(), "was said again, and is not kept") || w.disk().Waiting() != 0 {
		t.Error(w.notes())
	}
}

// TestASearchThatLagsShowsWhatAnImportTook: it is stored once all the same, and names nothing that is gone.
func TestASearchThatLagsShowsWhatAnImportTook(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs over spaces.")
	w.node.set(func() {
		w.node.records[0].Origin, w.node.records[0].Metadata = memory.OriginImport, nil // a line
		w.node.ghosts = slices.Clone(w.node.records)
		w.node.forget(0, `{"imported":{"from":"jsonl","taken":true}}`)
	})
	w.prompt("two", "I prefer tabs over spaces.")
	if w.stored("I prefer tabs over spaces."); len(w.node.records) == 1 && len(w.node.records[0].DerivedFrom) > 0 {
		t.Errorf("%+v", w.node.records)
	}
}

// TestAPersonsForgettingStays: of what an import brought, and of what only says that one took it.
func TestAPersonsForgettingStays(t *testing.T) {
	for metadata, origin := range map[string]memory.Origin{`{"imported":{"from":"mneme"}}`: memory.OriginImport, `{"imported":{"taken":true}}`: memory.OriginHook} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.set(func() {
			w.node.records[0].Origin = origin
			w.node.forget(0, metadata)
		})
		w.prompt("two", "I prefer tabs over spaces.")
		if w.stored(); w.disk().Waiting() != 0 {
			t.Errorf("%s waits", metadata)
		}
	}
}

// TestWhoTookAMemoryIsAskedAgain where the node does not say it now, or a proxy does.
func TestWhoTookAMemoryIsAskedAgain(t *testing.T) {
	for _, err := range []error{memory.Errorf(memory.CodeInternal, "a defect"), proxied(memory.CodeNotFound)} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.set(func() {
			w.node.records[0].Origin = memory.OriginImport
			w.node.forget(0, `{"imported":{"from":"mneme","taken":true}}`)
			w.node.past = err
		})
		w.prompt("two", "I prefer tabs over spaces.")
		if w.stored(); w.disk().Waiting() != 1 {
			t.Errorf("%v: %d wait", err, w.disk().Waiting())
		}
		w.node.set(func() { w.node.past = nil })
		w.drain("a")
		w.stored("I prefer tabs over spaces.")
	}
}
