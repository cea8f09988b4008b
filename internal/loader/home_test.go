package loader

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// exportedFolder is a folder to which the living memories of the namespace team were exported.
func (n *fakeNode) exportedFolder(t *testing.T) (dir string, file func(rec memory.Record) string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "exported")
	file = func(rec memory.Record) string { return filepath.Join(dir, "2016-07", rec.RecordID+".md") }
	head, _ := json.Marshal(importer.ExportHead{Version: 1, Namespace: "team"})
	manifest := string(head) + "\n"
	for _, rec := range n.living("team") {
		text, err := importer.FormatExported(importer.ExportOf(rec))
		if err != nil {
			t.Fatal(err)
		}
		put(t, file(rec), string(text))
		line, _ := json.Marshal(importer.ManifestFile{File: "2016-07/" + rec.RecordID + ".md", SHA256: importer.SumOf(text)})
		manifest += string(line) + "\n"
	}
	put(t, filepath.Join(dir, importer.ExportManifest), manifest)
	return dir, file
}

// edit changes a file.
func edit(t *testing.T, file, old, changed string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%v: %s", err, text)
	}
	put(t, file, strings.Replace(string(text), old, changed, 1))
}

// The export of a memory that was revised since takes nothing back: its file was not touched,
// or was, and neither is lost.
func TestAnExportTakesNoRevisionBack(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "Deploys happen on Tuesdays", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	rec := *n.records[0].now()
	dir, file := n.exportedFolder(t)
	revise := func(text string) {
		t.Helper()
		if _, err := n.Revise(t.Context(), "team", rec.RecordID, memory.Revision{Text: &text, Tags: &[]string{"ops"}, OccurredAt: &at}, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(text string, tags int) {
		t.Helper()
		if is := n.records[0].now(); is.Text != text || len(is.Tags) != tags {
			t.Errorf("it says %q, tags %q", is.Text, is.Tags)
		}
	}
	revise("Deploys happen on Thursdays")
	for _, dry := range []bool{true, false} {
		if c := n.loaded(t, func(o *Options) { o.DryRun = dry }, dir); c.Duplicates != 1 || c.Updated+c.Conflicts+c.Created != 0 {
			t.Errorf("dry %v: %+v", dry, c)
		}
	}
	holds("Deploys happen on Thursdays", 1)
	edit(t, file(rec), "\nDeploys happen on Tuesdays", "\nDeploys happen on Tuesdays at ten")
	sum, _, err := n.load(t, nil, dir)
	if err != nil || sum.Totals().Conflicts != 1 || sum.Totals().Updated != 0 || !strings.Contains(sum.Problems[0].Detail, "was revised since it was exported: the file is of version 1, the memory at 2") {
		t.Errorf("edited: %+v, %v", sum, err)
	}
	holds("Deploys happen on Thursdays", 1)
	if c := n.loaded(t, func(o *Options) { o.Revise = true }, dir); c.Updated != 1 {
		t.Errorf("to be taken: %+v", c)
	}
	holds("Deploys happen on Tuesdays at ten", 0)
}

// An edited file of what is still at the version that was exported revises it.
func TestAnEditedExportRevises(t *testing.T) {
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "Deploys happen on Tuesdays", Scope: memory.ScopeTeam}, memory.OriginCapture)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // when it came, which nobody said
	n.records[0].now().OccurredAt = at
	dir, file := n.exportedFolder(t)
	edit(t, file(*n.records[0].now()), "\nDeploys happen on Tuesdays", "\nDeploys happen on Fridays")
	if c := n.loaded(t, nil, dir); c.Updated != 1 {
		t.Errorf("%+v", c)
	}
	if is := n.records[0].now(); is.Text != "Deploys happen on Fridays" || !is.OccurredAt.Equal(at) {
		t.Errorf("it says %q, of %s", is.Text, is.OccurredAt)
	}
	if c := n.loaded(t, nil, dir); c.Duplicates != 1 {
		t.Errorf("once more: %+v", c)
	}
}

// Lines of memories that have no id of their own add nothing at home, whoever's they are.
func TestLinesAddNothingAtHome(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{Agent: "ann", Text: "of the team", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	n.capture("team", memory.Capture{Agent: "ann", Text: "ann's own", Scope: memory.ScopeAgent, OccurredAt: &at}, memory.OriginCapture)
	n.capture("team", memory.Capture{Agent: "bob", Text: "bob's own", Scope: memory.ScopeAgent, OccurredAt: &at}, memory.OriginCapture)
	var export []any
	for _, rec := range n.living("team") {
		export = append(export, importer.ExportOf(rec))
	}
	if c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, export...) }, "-"); c.Duplicates != 3 || c.Created != 0 || len(n.records) != 3 {
		t.Errorf("%+v, %d records", c, len(n.records))
	}
}

// A change of another agent's own memory is told, and not made.
func TestAChangeOfAnothersOwnIsTold(t *testing.T) {
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "1", Agent: "bob", Text: "bob's own", Scope: memory.ScopeAgent}, memory.OriginCapture)
	dir, file := n.exportedFolder(t)
	sum, _, err := n.load(t, nil, dir)
	if err != nil || len(sum.LeftOut) != 0 || sum.Totals().Duplicates != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	edit(t, file(*n.records[0].now()), "\nbob's own", "\nann's now")
	for _, revise := range []bool{false, true} {
		sum, _, err = n.load(t, func(o *Options) { o.Revise = revise }, dir)
		if err != nil || len(sum.LeftOut) != 1 || !strings.Contains(sum.LeftOut[0].Why, "another agent's own memories") || sum.Totals().Duplicates != 1 {
			t.Errorf("%+v, %v", sum, err)
		}
	}
	if got := n.records[0].now(); got.Text != "bob's own" || len(n.records) != 1 {
		t.Errorf("it says %q", got.Text)
	}
}

// The remedy of one file's conflict took back what was revised of a memory whose file nobody
// had touched.
func TestTheRemedyOfOneFileTookBackTheOthers(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, text := range []string{"first", "second"} {
		n.capture("team", memory.Capture{ID: text, Agent: "ann", Text: text, Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	}
	dir, file := n.exportedFolder(t)
	edited := file(*n.records[0].now())
	for _, r := range n.records {
		text := r.now().Text + ", revised"
		if _, err := n.Revise(t.Context(), "team", r.now().RecordID, memory.Revision{Text: &text, OccurredAt: &at}, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, edited, "\nfirst", "\nfirst, edited")
	for _, path := range []string{dir, edited} {
		sum, _, err := n.load(t, nil, path)
		if err != nil || sum.Totals().Conflicts != 1 || !strings.HasSuffix(sum.Problems[0].Detail, ": revise team with "+edited) {
			t.Errorf("%s: %+v, %v", path, sum, err)
		}
	}
	for _, dry := range []bool{true, false} {
		if c := n.loaded(t, func(o *Options) { o.Revise, o.DryRun = true, dry }, dir); c.Updated != 1 || c.Duplicates != 1 {
			t.Errorf("the folder, dry %v: %+v", dry, c)
		}
	}
	edit(t, edited, "\nfirst, edited", "\nfirst, edited twice")
	if c := n.loaded(t, func(o *Options) { o.Revise = true }, edited); c.Updated != 1 || c.Found != 1 {
		t.Errorf("the file: %+v", c)
	}
	if first, second := n.records[0].now().Text, n.records[1].now().Text; first != "first, edited twice" || second != "second, revised" {
		t.Errorf("they say %q and %q", first, second)
	}
}
