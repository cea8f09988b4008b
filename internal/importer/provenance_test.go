package importer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

func TestOverLeavesWhatOthersKeep(t *testing.T) {
	for _, c := range []struct{ there, written, want string }{
		{``, `{"a":1}`, `{"a":1}`},
		{`{"theirs":1}`, ``, `{"theirs":1}`},
		{`{"theirs":1,"a":1}`, `{"a":2}`, `{"a":2,"theirs":1}`},
		{`{"imported":{"from":"csv","fields":["a","b"]},"a":1,"b":1,"theirs":1}`, `{"a":2,"imported":{"from":"csv"}}`, `{"a":2,"imported":{"from":"csv"},"theirs":1}`},
		{`{"imported":{"from":"csv","fields":["a"]},"a":1}`, ``, ``},
		{`{"imported":{"fields":["theirs"]},"theirs":1}`, `{"a":2}`, `{"a":2,"theirs":1}`}, // that is no provenance
		{`[1]`, `{"a":2}`, `{"a":2}`},
		{`{"a":1}`, `[2]`, `[2]`},
	} {
		if got := Over(json.RawMessage(c.there), json.RawMessage(c.written)); string(got) != c.want {
			t.Errorf("%s over %s is %s, want %s", c.written, c.there, got, c.want)
		}
	}
}

// What others keep has its room before what an import writes, but for where it came from.
func TestOverLeavesOutWhatHasNoRoom(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	there := withProvenance(Provenance{From: "csv"}, map[string]any{"theirs": long(10_000)})
	written := withFields(Provenance{From: "csv"}, map[string]any{"large": long(9_000), "small": long(3_000)})
	got := Over(there, written)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(got, &fields); err != nil || len(got) > memory.MaxMetadataBytes || fields["theirs"] == nil || fields["small"] == nil || fields["large"] != nil || fields[Imported] == nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if again := Over(got, written); string(again) != string(got) {
		t.Error("the same import again changes it")
	}
}

// Names of fields take no room from the fields.
func TestNamesOfFieldsAreBounded(t *testing.T) {
	fields := map[string]any{}
	for i := range 20 {
		fields[strings.Repeat(string(rune('a'+i)), 200)] = i + 1
	}
	meta := withFields(Provenance{From: "csv"}, fields)
	if p, ok := ProvenanceOf(meta); !ok || p.Fields != nil || len(meta) > memory.MaxMetadataBytes {
		t.Errorf("%d names, %d bytes", len(p.Fields), len(meta))
	}
	full := memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: "x", URI: "mem://home/u"}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1}
	full.Metadata = json.RawMessage(`{"` + strings.Repeat("k", 1000) + `":"` + strings.Repeat("v", memory.MaxMetadataBytes-1400) + `"}`)
	if p, ok := ProvenanceOf(exportedMetadata(full)); !ok || p.Record != full.RecordID || p.Fields != nil {
		t.Errorf("%+v", p)
	}
}

func TestHeadingsOf(t *testing.T) {
	for uri, want := range map[string]struct {
		headings string
		n        int
	}{
		"notes/a.md": {"notes/a.md", 1}, "notes/a.md~2": {"notes/a.md", 2}, "notes/a.md#one/two~12": {"notes/a.md#one/two", 12},
		"a~1": {"a~1", 1}, "a~0": {"a~0", 1}, "a~02": {"a~02", 1}, "a~+2": {"a~+2", 1}, "a~": {"a~", 1}, "a~2.md": {"a~2.md", 1},
		"long~1234567812345678": {"long~1234567812345678", 1}, "long~1234567812345678~2": {"long~1234567812345678", 2},
	} {
		if headings, n := HeadingsOf(uri); headings != want.headings || n != want.n || SectionURI(headings, n) != uri {
			t.Errorf("%s is %d of %s", uri, n, headings)
		}
	}
}

// An export of what was imported said nothing of the record that it was: where it came from
// before stood in that place.
func TestAnExportOfWhatWasImportedSaysWhatItWas(t *testing.T) {
	exp := memory.ExportLine{Capture: memory.Capture{ID: "c1", Agent: "ann", Text: "x", URI: "mem://home/a", Metadata: json.RawMessage(`{"imported":{"from":"csv","source":"list","id":"1","taken":true,"fields":["a"]},"a":1,"theirs":2}`)},
		RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 3, Origin: memory.OriginImport, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	want := `{"a":1,"imported":{"from":"csv","source":"list","id":"1","home":"home","record":"01ARZ3NDEKTSV4RRFFQ69G5FA1","version":3,"origin":"import","created":"2026-01-02T03:04:05Z","fields":["a"]},"theirs":2}`
	is := exportedMetadata(exp)
	if string(is) != want {
		t.Errorf("%s", is)
	}
	p, _ := ProvenanceOf(is)
	for from, want := range map[[2]string]bool{{"list", "csv"}: true, {"home", "mneme"}: true, {"", "mneme"}: true, {"list", ""}: true, {"home", ""}: true, {"home", "csv"}: false, {"list", "mneme"}: false, {"other", ""}: false} {
		if p.IsFrom(from[0], from[1]) != want {
			t.Errorf("from %q: %v", from, !want)
		}
	}
	// What it was imported from at home, imported again here, changes nothing but its own.
	again := Over(is, json.RawMessage(`{"imported":{"from":"csv","source":"list","id":"1","fields":["a"]},"a":1}`))
	if string(again) != want {
		t.Errorf("again: %s", again)
	}
	// From there it goes on to a third namespace, of which this one is the home then.
	exp.URI, exp.Metadata, exp.Version = "mem://second/a", is, 1
	if p, _ := ProvenanceOf(exportedMetadata(exp)); p.Exported() != "second" || p.Version != 1 || p.From != "csv" {
		t.Errorf("a third one: %+v", p)
	}
	// Of an export of an export it is kept as what was, once.
	exp.Metadata = json.RawMessage(`{"imported":{"from":"mneme","source":"first","record":"01ARZ3NDEKTSV4RRFFQ69G5FA0","version":2,"was":1}}`)
	if p, _ := ProvenanceOf(exportedMetadata(exp)); p.From != "mneme" || p.Exported() != "second" || string(p.Was) != `{"from":"mneme","source":"first","record":"01ARZ3NDEKTSV4RRFFQ69G5FA0","version":2}` {
		t.Errorf("of an export: %+v", p)
	}
}
