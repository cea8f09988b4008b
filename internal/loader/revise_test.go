package loader

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/internal/likeness"
	"mneme/memory"
)

// metadata revises the metadata of the living record at a uri, as somebody beside the import does.
func (n *fakeNode) metadata(t *testing.T, uri string, change func(json.RawMessage) json.RawMessage) {
	t.Helper()
	rec := n.living("team")[uri]
	meta := change(rec.Metadata)
	if _, err := n.Revise(t.Context(), "team", rec.RecordID, memory.Revision{Metadata: &meta}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A revision by an import dropped how often a memory was said, and whatever else others keep in
// its metadata. What the import wrote itself goes where the file has it no longer.
func TestARevisionDroppedWhatOthersKeep(t *testing.T) {
	for name, c := range map[string]struct{ file, first, second, third, uri string }{
		"markdown": {"a.md", "---\nowner: ann\n---\n# One\nfirst\n", "# One\nfirst, changed\n", "# One\nfirst\n", "notes/a.md#one"},
		"csv":      {"a.csv", "id,text,uri,owner\n1,first,u,ann\n", "id,text,uri\n1,\"first, changed\",u\n", "id,text,uri\n1,first,u\n", "u"},
	} {
		n := newFakeNode()
		dir := folder(t, map[string]string{c.file: c.first})
		file := filepath.Join(dir, c.file)
		n.loaded(t, nil, file)
		if !strings.Contains(string(n.living("team")[c.uri].Metadata), `"ann"`) {
			t.Fatalf("%s: %s", name, n.living("team")[c.uri].Metadata)
		}
		said := likeness.Said{Nonce: "n", Repeats: 3}
		n.metadata(t, c.uri, func(meta json.RawMessage) json.RawMessage { return likeness.Put(said.In(meta), "mine", "kept") })
		put(t, file, c.second)
		if c := n.loaded(t, nil, file); c.Updated != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		meta := n.living("team")[c.uri].Metadata
		p, ok := importer.ProvenanceOf(meta)
		if likeness.SaidOf(meta) != said || !strings.Contains(string(meta), `"mine":"kept"`) || !ok || p.Taken || strings.Contains(string(meta), "ann") {
			t.Errorf("%s: %s", name, meta)
		}
		if c := n.loaded(t, nil, file); c.Duplicates != 1 || c.Updated != 0 {
			t.Errorf("%s, again: %+v", name, c)
		}
		put(t, file, c.third)
		if c := n.loaded(t, nil, file); c.Updated != 1 || likeness.SaidOf(n.living("team")[uriOf(n, "")].Metadata) != said {
			t.Errorf("%s, back: %+v", name, c)
		}
	}
}

// The same of an export that is imported elsewhere, from a folder that is written again.
func TestARevisionByAnExportElsewhereDroppedWhatOthersKeep(t *testing.T) {
	n := newFakeNode()
	home := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, URI: "mem://home/u", Metadata: json.RawMessage(`{"old":1,"both":1}`)},
		RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	dir := folder(t, nil)
	write := func() {
		t.Helper()
		text, err := importer.FormatExported(home)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "2016-07", home.RecordID+".md"), string(text))
	}
	write()
	n.loaded(t, nil, dir)
	n.metadata(t, "u", func(meta json.RawMessage) json.RawMessage { return likeness.Put(meta, "here", true) })
	home.Metadata, home.Version = json.RawMessage(`{"both":2,"new":2}`), 2
	write()
	if c := n.loaded(t, nil, dir); c.Updated != 1 {
		t.Errorf("%+v", c)
	}
	var is map[string]any
	if err := json.Unmarshal(n.living("team")["u"].Metadata, &is); err != nil || is["here"] != true || is["both"] != 2.0 || is["new"] != 2.0 || is["old"] != nil {
		t.Errorf("%v, %v", is, err)
	}
}
