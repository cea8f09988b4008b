package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// A circle of messages is told, and followed once around at most.
func TestACircleOfMessagesEnds(t *testing.T) {
	c := chatGPTConversation{CurrentNode: "n0", Mapping: map[string]chatGPTNode{}}
	for i := range 10 {
		c.Mapping[fmt.Sprint("n", i)] = chatGPTNode{Parent: fmt.Sprint("n", (i+1)%10)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	branch, err := c.branch()
	runtime.ReadMemStats(&after)
	if err == nil || branch != nil {
		t.Errorf("%v, %v", branch, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("ten messages took %d bytes", took)
	}
	raw, err := json.Marshal([]any{map[string]any{"id": "c", "title": "round", "current_node": "a", "mapping": map[string]any{"a": map[string]any{"parent": "b"}, "b": map[string]any{"parent": "a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, bad, _, end := all(t, write(t, "conversations.json", string(raw)), plainOptions); end != nil || len(bad) != 1 || !strings.Contains(bad[0].Error(), "in a circle") {
		t.Errorf("%v, %v", bad, end)
	}
}

// Metadata has as many fields of the source as have room, without the largest; provenance is always there.
func TestMetadataIsBounded(t *testing.T) {
	fields := map[string]any{"small": "x", "half": strings.Repeat("h", memory.MaxMetadataBytes/2), "large": strings.Repeat("l", memory.MaxMetadataBytes*3/4)}
	for range 2 {
		meta := withProvenance(Provenance{From: "csv", ID: "1"}, fields)
		var got map[string]json.RawMessage
		if err := json.Unmarshal(meta, &got); err != nil {
			t.Fatal(err)
		}
		if p, ok := ProvenanceOf(meta); !ok || p.ID != "1" || len(meta) > memory.MaxMetadataBytes || got["large"] != nil || got["half"] == nil || got["small"] == nil {
			t.Errorf("%d bytes, with %d fields, %+v", len(meta), len(got), p)
		}
		fields[Imported] = strings.Repeat("i", memory.MaxMetadataBytes) // which has no room at all
	}
}

// What stands in the place of provenance is kept in it.
func TestWhatStandsInThePlaceOfProvenanceIsKept(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", memory.MaxMetadataDepth-1) + strings.Repeat("]", memory.MaxMetadataDepth-1))
	for _, c := range []struct {
		was    json.RawMessage
		origin memory.Origin
		kept   bool // in the provenance; else metadata stays as it is
	}{
		{json.RawMessage(`true`), memory.OriginCapture, true},
		{json.RawMessage(`"2026-01-01"`), memory.OriginImport, true},
		{json.RawMessage(`{"from":"Kyoto","containers":3}`), memory.OriginCapture, true},
		{json.RawMessage(`{"by":"ann"}`), memory.OriginImport, true},
		{json.RawMessage(`null`), memory.OriginCapture, true},
		{json.RawMessage(`{"from":"mneme","source":"old"}`), memory.OriginImport, true},
		{deep, memory.OriginCapture, false},
	} {
		meta, err := json.Marshal(map[string]json.RawMessage{"n": []byte("1"), Imported: c.was})
		if err != nil {
			t.Fatal(err)
		}
		exp := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "x", URI: "mem://home/a", Metadata: meta}, RecordID: "01M8BAFJYK855VYK7JHJYP575N", Version: 2, Origin: c.origin}
		item := exportedItem(&Options{Namespace: "here"}, exp)
		if err := item.Capture.Validate(); err != nil {
			t.Errorf("%.60s: %v", c.was, err)
		}
		p, ok := ProvenanceOf(item.Capture.Metadata)
		switch {
		case c.kept && (!ok || p.From != fromHome || p.Record != exp.RecordID || string(p.Was) != string(c.was)):
			t.Errorf("%s: %s", c.was, item.Capture.Metadata)
		case !c.kept && string(item.Capture.Metadata) != string(meta):
			t.Errorf("%.60s: %.200s", c.was, item.Capture.Metadata)
		}
	}
	if p, ok := ProvenanceOf(withProvenance(Provenance{From: "mem0"}, map[string]any{Imported: true})); !ok || p.From != "mem0" || string(p.Was) != "true" {
		t.Errorf("%+v, %v", p, ok)
	}
}

// A Markdown file beyond the bound is told, and no part of it goes in.
func TestAMarkdownFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	for size, want := range map[int64]int{maxMarkdown: 0, maxMarkdown + 1: 1} {
		if err := os.WriteFile(path, []byte("# One\nx\n# Two\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		_, bad, _, err := all(t, path, plainOptions)
		told := 0
		for _, b := range bad {
			if strings.Contains(b.Error(), "is larger than") && !strings.Contains(b.Error(), "memory") {
				told++
			}
		}
		if err != nil || told != want {
			t.Errorf("%d bytes: %v, %v", size, bad, err)
		}
	}
}

// A fence ends at one of as many marks: what stands before it are no headings.
func TestAFenceEndsWhereItIsClosed(t *testing.T) {
	for _, text := range []string{"# A\n```\n`\n# b\n```\nc", "# A\n````\n```\n# b\n````\nc", "# A\n~~~\n```\n# b\n~~~\nc", "# A\n```\n``` x\n# b\n```\nc"} {
		if got := splitSections([]byte(text), 1); len(got) != 1 || got[0].text != text {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := splitSections([]byte("# A\n```\n````\n# B\nc"), 1); len(got) != 2 {
		t.Errorf("a longer one closes it, too: %+v", got)
	}
}

// A section begins with the headings above it, each part of a long one with all of them.
func TestSectionsHaveTheHeadingsAboveThem(t *testing.T) {
	long := strings.Repeat("word ", softSection/5)
	text := "before\n# A   B\n\n## One #\nfirst\n### Deep\ndeep\n## Two\n" + long + "\n\n" + long + "\n\nSet\n===\nlast\n##\nunder none\n"
	items, bad, _, err := all(t, write(t, "a.md", text), plainOptions)
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	want := []string{"before", "# A B\n## One #\nfirst", "# A B\n## One\n### Deep\ndeep", "# A B\n## Two\n" + long, "# A B\n## Two\n" + long, "Set\n===\nlast", "# Set\n##\nunder none"}
	if len(items) != len(want) {
		t.Fatalf("%d items", len(items))
	}
	for i, it := range items {
		if got := strings.TrimRight(it.Capture.Text, " "); got != strings.TrimRight(want[i], " ") {
			t.Errorf("%d: got %.80q, want %.80q", i, got, want[i])
		}
	}
	// Where they have no room they are left out.
	full := "## B\n" + strings.Repeat("x", memory.MaxTextBytes-5)
	if items, bad, _, err = all(t, write(t, "b.md", "# A\n"+full), plainOptions); err != nil || len(bad) > 0 || len(items) != 1 || items[0].Capture.Text != full {
		t.Errorf("%v, %v, %d items", bad, err, len(items))
	}
}

// Front matter that is no YAML is text, as it is said.
func TestFrontMatterThatIsNoYAMLIsText(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("---\nowner: [ann\n---\n# One\nfirst\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := OpenPath("markdown", dir, Options{Namespace: "ns", Agent: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	var texts []string
	for {
		item, err := src.Next()
		var skip *Skip
		if errors.As(err, &skip) {
			continue
		}
		if err != nil {
			break
		}
		texts = append(texts, item.Where+" "+item.Capture.Text)
	}
	if want := []string{"a.md line 2 owner: [ann", "a.md line 4 # One\nfirst"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
}

// A folder is not known by a file that is not read.
func TestAHiddenNoteMakesNoMarkdownFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".cache/x.md", "z.mdx"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if format, why, err := Find(dir); err != nil || format != "markdown" || why != "it holds z.mdx" {
		t.Errorf("%s, %s, %v", format, why, err)
	}
}

// A project's own notes say what its folder is, whatever its samples hold.
func TestSamplesOfAProjectAreNotItsMemories(t *testing.T) {
	dir := t.TempDir()
	sample := filepath.Join(dir, "test", "samples", "conversations.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Find(dir); err == nil || !strings.Contains(err.Error(), "the folder is empty") {
		t.Errorf("empty: %v", err)
	}
	write(sample, `[{"title":"t","mapping":{}}]`)
	if format, _, err := Find(dir); err != nil || format != "chatgpt" {
		t.Errorf("%s, %v", format, err)
	}
	write(filepath.Join(dir, "README.md"), "# Project\n")
	if format, _, err := Find(dir); err != nil || format != "markdown" {
		t.Errorf("%s, %v", format, err)
	}
}
