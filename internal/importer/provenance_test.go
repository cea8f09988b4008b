package importer

import (
	"encoding/json"
	"strings"
	"testing"

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
