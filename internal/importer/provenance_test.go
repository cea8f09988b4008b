package importer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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

// What an import writes into a provenance beside what stands there never makes metadata larger than they
// may be: then it says nothing more.
func TestAProvenanceHasItsRoom(t *testing.T) {
	left := map[string]int{}
	const around = `{"imported":{"from":"csv","id":"1"},"x":""}`
	for n := memory.MaxMetadataBytes - len(around) - 100; n <= memory.MaxMetadataBytes-len(around); n++ {
		meta := json.RawMessage(strings.Replace(around, `""`, `"`+strings.Repeat("x", n)+`"`, 1))
		item := Item{Update: true, Capture: memory.Capture{Text: "x", Agent: "ann", Metadata: meta}}
		item.say()
		marked, marks := Taken(meta)
		missing := Missing(Item{Capture: memory.Capture{Metadata: meta}}, []string{"01ARZ3NDEKTSV4RRFFQ69G5FA1"})
		for name, got := range map[string]json.RawMessage{"says": item.Capture.Metadata, "taken": marked, "derived": missing.Capture.Metadata} {
			if name == "taken" && !marks {
				left[name]++
				continue
			}
			if len(got) > memory.MaxMetadataBytes {
				t.Fatalf("%s: %d bytes of %d", name, len(got), memory.MaxMetadataBytes)
			}
			if is, _ := ProvenanceOf(got); is.Says == "" && is.Derived == "" && !is.Taken {
				left[name]++
			} else if left[name] > 0 {
				t.Errorf("%s: %d bytes have room for it, and fewer had none", name, len(meta))
			}
		}
		if (item.Provenance == nil) != (string(item.Capture.Metadata) == string(meta)) {
			t.Errorf("%d bytes: the item says %+v", len(meta), item.Provenance)
		}
	}
	if left["says"] == 0 || left["taken"] == 0 || left["derived"] == 0 {
		t.Errorf("nothing was full: %v", left)
	}
}

// What is known by its id says what it was imported as, whoever imports it and for whom; what else is
// known, and exports, do not.
func TestWhatIsKnownByItsIDSaysWhatItIs(t *testing.T) {
	says := func(opts Options, name, text string) string {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		opts.Namespace, opts.Source = "team", "a source"
		format, _, err := Find(path)
		if err != nil {
			t.Fatal(err)
		}
		src, err := OpenPath(format, path, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = src.Close() }()
		item, err := src.Next()
		if err != nil {
			t.Fatal(err)
		}
		p, _ := ProvenanceOf(item.Capture.Metadata)
		if item.Group == "" && (item.Provenance != nil) != (p.Says != "") {
			t.Errorf("%s: the item says %+v, its metadata %+v", name, item.Provenance, p)
		}
		return p.Says
	}
	const head = "id,text,extra\n"
	first := says(Options{Agent: "ann"}, "a.csv", head+"1,text,x\n")
	if first == "" || says(Options{Agent: "bob", Scope: memory.ScopeAgent}, "a.csv", head+"1,text,x\n") != first {
		t.Errorf("it says %q", first)
	}
	for _, row := range []string{"1,another,x\n", "1,text,y\n", "2,text,x\n"} {
		if got := says(Options{Agent: "ann"}, "a.csv", head+row); got == "" || got == first {
			t.Errorf("%q says %q", row, got)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	exp := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "x", OccurredAt: &at, URI: "mem://home/a"}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	exported, err := FormatExported(exp)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"b.csv": "text,extra\ntext,x\n", "a.md": "# A\ntext\n", "2016-07/" + exp.RecordID + ".md": string(exported)} {
		if got := says(Options{Agent: "ann"}, name, text); got != "" {
			t.Errorf("%s says %q", name, got)
		}
	}
}

// withProvenance is the metadata that describe makes.
func withProvenance(p Provenance, fields map[string]any) json.RawMessage {
	var item Item
	item.describe(p, fields)
	return item.Capture.Metadata
}

// withFields is the metadata that describeWhole makes.
func withFields(p Provenance, fields map[string]any) json.RawMessage {
	var item Item
	item.describeWhole(p, fields)
	return item.Capture.Metadata
}
