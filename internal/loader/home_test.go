package loader

import (
	"context"
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
	for range 2 {
		sum, _, err := n.load(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, export...) }, "-")
		if c := sum.Totals(); err != nil || c.Duplicates != 3 || c.Created+c.Updated+c.Conflicts != 0 || len(n.records) != 3 || len(sum.LeftOut) != 0 {
			t.Errorf("%+v, %v, %d records", sum, err, len(n.records))
		}
		for _, r := range n.records { // also where they were revised since
			now := *r.now()
			now.Text, now.Version = now.Text+", revised", now.Version+1
			r.versions = append(r.versions, now)
		}
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

// What does not show that an export wrote a file is no sign that it was not touched: the folder has no
// manifest, or the file says another version than it has.
func TestAFileThatNothingShowsIsAConflict(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	rec := *n.records[0].now()
	for name, change := range map[string]func(dir, file string){
		"no manifest":     func(dir, _ string) { put(t, filepath.Join(dir, importer.ExportManifest), "") },
		"a later version": func(_, file string) { edit(t, file, "version: 1", "version: 9") },
		"no version":      func(_, file string) { edit(t, file, "version: 1", "version: one") },
	} {
		dir, file := n.exportedFolder(t)
		edit(t, file(rec), "\nfirst", "\nfirst, edited")
		change(dir, file(rec))
		sum, _, err := n.load(t, nil, dir)
		if err != nil || sum.Totals().Conflicts != 1 || sum.Totals().Updated+sum.Totals().Duplicates != 0 || n.records[0].now().Version != 1 {
			t.Errorf("%s: %+v, %v", name, sum, err)
		}
	}
}

// An edited file may take all metadata away.
func TestAnEditedExportTakesAllMetadataAway(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at, Metadata: json.RawMessage(`{"a":1}`)}, memory.OriginCapture)
	dir, file := n.exportedFolder(t)
	edit(t, file(*n.records[0].now()), "metadata: '{\"a\":1}'\n", "")
	if c := n.loaded(t, nil, dir); c.Updated != 1 || string(n.records[0].now().Metadata) != "{}" {
		t.Errorf("%+v, %s", c, n.records[0].now().Metadata)
	}
}

// Where the acting agent may not read as another one, or where an export says it is from, that decides
// nothing: the item goes on its way, or shows nothing.
func TestWhatMayNotBeReadDecidesNothing(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeNotFound, memory.CodeGone, memory.CodeForbidden} {
		n := newFakeNode()
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		exp := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "bob", Text: "bob's own", Scope: memory.ScopeAgent, URI: "mem://team/a", OccurredAt: &at}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
		text, err := importer.FormatExported(exp)
		if err != nil {
			t.Fatal(err)
		}
		dir := folder(t, map[string]string{"2016-07/" + exp.RecordID + ".md": string(text)})
		if sum, _, err := loadInto(t, walled{n, "team", code}, nil, dir); err != nil || sum.Totals().Created != 1 {
			t.Errorf("%s: %+v, %v", code, sum, err)
		}
	}
	for _, code := range []memory.Code{memory.CodeNotFound, memory.CodeGone, memory.CodeForbidden, memory.CodeInvalid} {
		n := newFakeNode()
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		n.capture("home", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
		load := func(exp memory.ExportLine) (*Summary, error) {
			sum, _, err := loadInto(t, walled{n, "home", code}, func(o *Options) { o.Format, o.In = "jsonl", lines(t, exp) }, "-")
			return sum, err
		}
		if _, err := load(importer.ExportOf(*n.records[0].now())); err != nil {
			t.Fatal(err)
		}
		text := "second"
		if _, err := n.Revise(t.Context(), "home", n.records[0].now().RecordID, memory.Revision{Text: &text, OccurredAt: &at}, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
		if sum, err := load(importer.ExportOf(*n.records[0].now())); err != nil || sum.Totals().Conflicts != 1 || n.records[1].now().Text != "first" {
			t.Errorf("%s: %+v, %v", code, sum, err)
		}
	}
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("home", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, importer.ExportOf(*n.records[0].now())) }, "-")
	later := importer.ExportOf(*n.records[0].now())
	later.Version = 2
	if _, _, err := loadInto(t, walled{n, "home", memory.CodeUnavailable}, func(o *Options) { o.Format, o.In = "jsonl", lines(t, later) }, "-"); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("unavailable: %v", err)
	}
}

// walled is a node that refuses to read one namespace, or in it as another agent than who imports.
type walled struct {
	*fakeNode
	ns   string
	code memory.Code
}

func (n walled) Get(ctx context.Context, ns, id string, opts client.GetOptions) (memory.Record, error) {
	if ns == n.ns && (opts.As != me || ns == "home") {
		return memory.Record{}, memory.Errorf(n.code, "not here")
	}
	return n.fakeNode.Get(ctx, ns, id, opts)
}
