package importer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// anExport is the line of a memory as an export has it.
func anExport() memory.ExportLine {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "bob", Text: "text", Kind: memory.KindOther, Scope: memory.ScopeTeam, URI: "mem://home/a", OccurredAt: &at},
		RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 2, CreatedAt: at, Origin: memory.OriginCapture}
}

func fileOf(t *testing.T, l memory.ExportLine) string {
	t.Helper()
	b, err := FormatExported(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A manifest of another version, with another name or with a line that is none shows nothing, and neither
// does one of another month.
func TestAManifestThatIsNoneShowsNothing(t *testing.T) {
	const name = "2026-03/01ARZ3NDEKTSV4RRFFQ69G5FA1.md"
	const head, file = `{"mneme_export":1,"namespace":"home","filter":{}}` + "\n", `{"file":"` + name + `","sha256":"abc"}` + "\n"
	for manifest, good := range map[string]bool{
		head + file: true,
		strings.Replace(head, ":1", ":2", 1) + file: false,
		file + head:                                    false,
		head + `{"file":"../x.md","sha256":"a"}`:       false,
		head + `{"file":"2026-03/x.md","sha256":"a"}`:  false,
		head + "nonsense\n" + file:                     false,
		head + strings.Repeat("x", maxManifestLine+10): false,
		"": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ExportManifest), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		_, files, err := ReadManifest(dir)
		if (err == nil) != good || err != nil && memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%.80q: %v, %v", manifest, files, err)
		}
		want := map[bool]string{true: "abc"}[good]
		m := manifests{}
		if got := m.wrote(filepath.Join(dir, filepath.FromSlash(name))); got != want {
			t.Errorf("%.80q: it wrote %q", manifest, got)
		}
		if got := m.wrote(filepath.Join(dir, "2026-04", filepath.Base(name))); got != "" {
			t.Errorf("%.80q, in another month: it wrote %q", manifest, got)
		}
	}
}

// A file without a manifest is none that was not touched, and one that is not as an export writes it is told.
func TestExportedFilesThatNothingShows(t *testing.T) {
	dir := t.TempDir()
	text := fileOf(t, anExport())
	for name, content := range map[string]string{
		"a.md": text,
		"b.md": strings.Replace(text, "mneme: memory", "mneme: other", 1),
		"c.md": strings.Replace(text, "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3", 1),
		"d.md": strings.Replace(strings.Replace(text, "agent: bob", "agent: \"\"", 1), "scope: team", "scope: \"\"", 1),
		"e.md": strings.ReplaceAll(strings.Replace(text, "\ntext\n", "\n text \n", 1), "\n", "\r\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := OpenPath("markdown", dir, Options{Namespace: "team", Agent: "ann", Scope: memory.ScopeAgent})
	if err != nil {
		t.Fatal(err)
	}
	items, bad, err := readAll(t, src)
	if err != nil || len(items) != 3 || len(bad) != 2 {
		t.Fatalf("%+v, %+v, %v", items, bad, err)
	}
	for _, item := range items {
		if item.Wrote != "" || item.Untouched || !item.Update || item.Exported == nil || item.Exported.RecordID != item.RecordID {
			t.Errorf("%+v", item)
		}
	}
	if a, d, e := items[0].Capture, items[1].Capture, items[2].Capture; a.Agent != "bob" || a.Scope != memory.ScopeTeam || d.Agent != "ann" || d.Scope != memory.ScopeAgent || e.Text != " text " {
		t.Errorf("%+v\n%+v\n%+v", a, d, e)
	}
	for _, e := range bad {
		if !strings.Contains(e.Err.Error(), "not as an export writes it") {
			t.Error(e)
		}
	}
}

// An edited file says what its memory says whoever revised it, and where it leaves out what is usual.
func TestAFileSaysWhatItsMemorySays(t *testing.T) {
	is := anExport()
	revised := is
	revised.Agent, revised.Version, revised.Origin, revised.ID = "ann", 3, memory.OriginImport, ""
	text := fileOf(t, is)
	for name, c := range map[string]struct {
		file string
		same bool
	}{
		"the same":         {text, true},
		"without its kind": {strings.Replace(strings.Replace(text, "kind: other\n", "", 1), "scope: team\n", "", 1), true},
		"another text":     {strings.Replace(text, "\ntext\n", "\nanother\n", 1), false},
		"another kind":     {strings.Replace(text, "kind: other", "kind: fact", 1), false},
		"another field":    {strings.Replace(text, "kind: other", "kind: other\nmine: 1", 1), false},
		"no export":        {"# A\n", false},
	} {
		if got := SaysExported([]byte(c.file), revised); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Of an exported memory that was imported its older provenance stays beside what it was, also where the line
// does not say how it came.
func TestAnExportKeepsWhereAMemoryCameFrom(t *testing.T) {
	exp := anExport()
	exp.Metadata = json.RawMessage(`{"imported":{"from":"csv","source":"list","id":"1","taken":true},"k":1}`)
	for origin, kept := range map[memory.Origin]bool{memory.OriginImport: true, "": true, memory.OriginCapture: false} {
		exp.Origin = origin
		p, ok := ProvenanceOf(exportedMetadata(exp))
		if !ok || p.Record != exp.RecordID || p.Version != 2 || p.Exported() != "home" || p.Taken || (p.From == "csv" && p.Source == "list" && p.Home == "home") != kept {
			t.Errorf("%q: %+v", origin, p)
		}
	}
	for _, c := range []struct {
		meta, exported string
		mneme          bool // of an export, in the words of who takes back
	}{
		{`{"imported":{"from":"csv","source":"list"}}`, "", false},
		{`{"imported":{"from":"mneme","source":"home","record":"r"}}`, "home", true},
		{`{"imported":{"from":"csv","source":"list","home":"home","record":"r"}}`, "home", true},
	} {
		p, _ := ProvenanceOf(json.RawMessage(c.meta))
		if p.Exported() != c.exported || p.IsFrom("", fromHome) != c.mneme || !p.IsFrom("", "") {
			t.Errorf("%s: of %q, %v", c.meta, p.Exported(), p.IsFrom("", fromHome))
		}
	}
}

// What an import writes over a copy leaves it one, and makes none of what was none.
func TestACopyStaysOne(t *testing.T) {
	for _, c := range []struct{ there, written, record, home string }{
		{`{"imported":{"from":"csv","home":"home","record":"r","version":3}}`, `{"imported":{"from":"csv"}}`, "r", "home"},
		{`{"imported":{"from":"csv","home":"home","record":"r","version":3}}`, `{"imported":{"from":"csv","home":"other","record":"s","version":1}}`, "s", "other"},
		{`{"imported":{"from":"mneme","source":"home","record":"r"}}`, `{"imported":{"from":"csv"}}`, "", ""},
		{`{"k":1}`, `{"imported":{"from":"csv"}}`, "", ""},
	} {
		if p, _ := ProvenanceOf(Over(json.RawMessage(c.there), json.RawMessage(c.written))); p.Record != c.record || p.Home != c.home {
			t.Errorf("%s over %s: %+v", c.written, c.there, p)
		}
	}
}

// Only what has no room goes, the largest first.
func TestOverLeavesOutNoMore(t *testing.T) {
	there := json.RawMessage(`{"theirs":"` + strings.Repeat("x", 8_000) + `"}`)
	written := withProvenance(Provenance{From: "csv"}, map[string]any{"a": strings.Repeat("x", 6_000), "b": strings.Repeat("x", 4_000), "c": strings.Repeat("x", 4_500)})
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(Over(there, written), &fields); err != nil || fields["theirs"] == nil || fields["a"] != nil || fields["c"] != nil || fields["b"] == nil || fields[Imported] == nil {
		t.Errorf("%d fields, %v", len(fields), err)
	}
}

// A table is as large as it is, and each row has its room; what a row leaves empty it does not say.
func TestRowsHaveTheirRoomEach(t *testing.T) {
	row := "1," + strings.Repeat("x", 200_000) + ",,\n"
	src, err := Open("csv", strings.NewReader("id,text,empty,\n"+strings.Repeat(row, 2*maxLine/len(row)+1)), Options{Namespace: "team", Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	items, bad, err := readAll(t, src)
	if err != nil || len(bad) != 0 || len(items) != 2*maxLine/len(row)+1 {
		t.Fatalf("%d rows, %v, %v", len(items), bad, err)
	}
	if meta := string(items[0].Capture.Metadata); strings.Contains(meta, "empty") || strings.Contains(meta, "column 4") {
		t.Error(meta)
	}
}

// A line without a scope has the one of the import.
func TestLinesHaveTheScopeOfTheImport(t *testing.T) {
	items, _, err := readAll(t, open(t, "jsonl", `{"text":"a"}`+"\n"+`{"text":"b","scope":"team"}`, Options{Namespace: "team", Agent: "ann", Scope: memory.ScopeAgent}))
	if err != nil || len(items) != 2 || items[0].Capture.Scope != memory.ScopeAgent || items[1].Capture.Scope != memory.ScopeTeam {
		t.Errorf("%+v, %v", items, err)
	}
}
