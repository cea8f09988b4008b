package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// imported is what `memctl import --json` says of one namespace.
type imported struct {
	Namespaces []struct {
		Found, Created, Duplicates, Updated, Conflicts, Rejected, Forgotten, Gone, Pruned int
	}
}

func (d *daemon) importJSON(code int, args ...string) imported {
	d.t.Helper()
	e := d.memctl(append([]string{"import", "--json", "-n", "default"}, args...)...)
	if e.code != code {
		d.t.Fatalf("import %v: exit %d, want %d: %s%s", args, e.code, code, e.out, e.err)
	}
	var r imported
	mustJSON(d.t, e.out, &r)
	if len(r.Namespaces) == 0 {
		r.Namespaces = append(r.Namespaces, struct{ Found, Created, Duplicates, Updated, Conflicts, Rejected, Forgotten, Gone, Pruned int }{})
	}
	return r
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestImportFollowsMarkdown: a folder that is imported again gives what its files say
// now, and what was forgotten or is one's own stays as it is.
func TestImportFollowsMarkdown(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "notes")
	const original = "# A\n\n## One\nfirst\n\n## Two\nsecond\n"
	a := filepath.Join(dir, "a.md")
	writeFile(t, a, original)
	writeFile(t, filepath.Join(dir, "sub", "c.md"), "---\ntags: [ops]\n---\nno heading\n")
	get := func(uri string) memory.Record {
		t.Helper()
		var rec memory.Record
		mustJSON(t, d.must("get", "-n", "default", uri, "--json"), &rec)
		return rec
	}
	if r := d.importJSON(0, dir).Namespaces[0]; r.Created != 3 {
		t.Fatalf("%+v", r)
	}
	one := get("notes/a.md#a/one")
	p, ok := importer.ProvenanceOf(one.Metadata)
	if one.Origin != memory.OriginImport || !ok || p.From != "markdown" || p.Source != "notes" || p.Path != "a.md" || p.Lines != "3-4" {
		t.Errorf("%s %s", one.Origin, one.Metadata)
	}
	before := d.shard()
	if r := d.importJSON(0, dir).Namespaces[0]; r.Duplicates != 3 || r.Found != 3 {
		t.Errorf("%+v", r)
	}
	if after := d.shard(); after.StateHash != before.StateHash {
		t.Error("importing the same again changed the state")
	}
	// Lines above move a section; that is no change of it.
	writeFile(t, a, "# A\n\nAbove.\n\n## One\nfirst, changed\n\n## Two\nsecond\n\n## Three\nthird\n")
	if r := d.importJSON(0, dir).Namespaces[0]; r.Created != 2 || r.Updated != 1 || r.Duplicates != 2 {
		t.Errorf("%+v", r)
	}
	if rec := get("notes/a.md#a/one"); rec.RecordID != one.RecordID || rec.Version != 2 || !strings.Contains(rec.Text, "first, changed") {
		t.Errorf("%+v", rec)
	}
	writeFile(t, a, original) // back again is a change again
	if r := d.importJSON(0, dir).Namespaces[0]; r.Updated != 1 || r.Gone != 2 {
		t.Errorf("%+v", r)
	}
	if rec := get("notes/a.md#a/one"); rec.Version != 3 || rec.Text != one.Text {
		t.Errorf("%+v", rec)
	}
	d.must("forget", "-n", "default", "--yes", "notes/a.md#a/two")
	if r := d.importJSON(0, dir).Namespaces[0]; r.Duplicates != 2 || r.Forgotten != 1 || r.Created != 0 {
		t.Errorf("%+v", r)
	}
	if e := d.memctl("get", "-n", "default", "notes/a.md#a/two"); e.code != 3 {
		t.Errorf("what was forgotten is there again: %s", e.out)
	}
	plainEnd(t, d.memctl("import", "-n", "default", "--prune", dir), 2, "has to be confirmed")
	if r := d.importJSON(0, "--prune", "--yes", dir).Namespaces[0]; r.Pruned != 2 || r.Gone != 0 {
		t.Errorf("%+v", r)
	}
	// What was pruned comes back with its file, also where it was revised; what was forgotten does not.
	writeFile(t, a, "# A\n")
	d.importJSON(0, "--prune", "--yes", dir)
	writeFile(t, a, original)
	for _, dry := range []string{"--dry-run", "--dry-run=false"} {
		if r := d.importJSON(0, dry, dir).Namespaces[0]; r.Found != 3 || r.Duplicates != 1 || r.Forgotten != 1 || r.Gone != 0 {
			t.Errorf("%s: %+v", dry, r)
		}
	}
	if rec := get("notes/a.md#a/one"); rec.RecordID == one.RecordID || rec.Text != one.Text {
		t.Errorf("%+v", rec)
	}
	d.must("forget", "-n", "default", "--yes", "notes/a.md#a/one")
	if r := d.importJSON(0, "--again", dir).Namespaces[0]; r.Created != 2 || r.Duplicates != 1 || r.Forgotten != 0 {
		t.Errorf("again: %+v", r)
	}
	d.must("capture", "-n", "default", "mine", "--uri", "notes/b.md")
	writeFile(t, filepath.Join(dir, "b.md"), "text of a file\n")
	plainEnd(t, d.memctl("import", "-n", "default", dir), 5, "in conflict")
	if rec := get("notes/b.md"); rec.Text != "mine" || rec.Version != 1 {
		t.Errorf("%+v", rec)
	}
	d.must("import", "-n", "default", "--take-back", "--source", "notes", "--yes")
	if left := d.everything("default"); len(left) != 1 || left[0].Text != "mine" {
		t.Errorf("left %+v", left)
	}
}

// TestImportFollowsRows: a table with ids is followed to what its rows say now, also back to what they said
// first, and what was revised here stays until its row changes; the table of another folder is asked about.
func TestImportFollowsRows(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	dir := t.TempDir()
	table := func(folder, text string) string {
		t.Helper()
		path := filepath.Join(dir, folder, "docs", "list.csv")
		writeFile(t, path, "id,text\n1,"+text+"\n2,another\n")
		return path
	}
	says := func(text string, version int) {
		t.Helper()
		for _, rec := range d.everything("default") {
			if rec.Text != "another" && (rec.Text != text || rec.Version != version) {
				t.Errorf("it says %q, of version %d", rec.Text, rec.Version)
			}
		}
	}
	d.importJSON(0, table("a", "first"))
	d.importJSON(0, table("a", "second"))
	if r := d.importJSON(0, table("a", "first")).Namespaces[0]; r.Updated != 1 || r.Duplicates != 1 {
		t.Errorf("%+v", r)
	}
	says("first", 3)
	for _, rec := range d.everything("default") {
		if rec.Text == "first" {
			d.must("revise", "-n", "default", rec.RecordID, "corrected")
		}
	}
	if r := d.importJSON(0, table("a", "first")).Namespaces[0]; r.Updated != 0 || r.Duplicates != 2 {
		t.Errorf("%+v", r)
	}
	says("corrected", 4)
	plainEnd(t, d.memctl("import", "-n", "default", "--yes", table("b", "elsewhere")), 2, "--moved")
	says("corrected", 4)
	if r := d.importJSON(0, "--moved", table("b", "elsewhere")).Namespaces[0]; r.Updated != 2 {
		t.Errorf("%+v", r)
	}
	says("elsewhere", 5)
}

// TestSectionsAreFoundByTheHeadingsAboveThem: a section that does not repeat them is found by
// them, says them, and stays the same memory where one of them changes.
func TestSectionsAreFoundByTheHeadingsAboveThem(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "notes")
	file := filepath.Join(dir, "a.md")
	writeFile(t, file, "# Gardening\n\n## Watering\n\n### Details\nEvery second day\n\n# Cooking\n\n### Details\nSalt the water\n")
	found := func(query string) memory.Hit {
		t.Helper()
		var r memory.SearchResponse
		mustJSON(t, d.must("search", "-n", "default", "--mode", "text", "--json", query), &r)
		if len(r.Results) == 0 {
			t.Fatalf("%q finds nothing", query)
		}
		return r.Results[0]
	}
	d.importJSON(0, dir)
	was := found("gardening details")
	if was.Text != "# Gardening\n## Watering\n### Details\nEvery second day" {
		t.Errorf("%+v", was)
	}
	writeFile(t, file, "# Allotment\n\n## Watering\n\n### Details\nEvery second day\n\n# Cooking\n\n### Details\nSalt the water\n")
	if r := d.importJSON(0, dir).Namespaces[0]; r.Updated != 1 || r.Duplicates != 1 || r.Created+r.Gone+r.Conflicts != 0 {
		t.Errorf("%+v", r)
	}
	is := found("allotment details")
	if is.ID != was.ID || is.Version != 2 || is.URI != "mem://default/notes/a.md#allotment/watering/details" || !strings.HasPrefix(is.Text, "# Allotment\n") {
		t.Errorf("%+v", is)
	}
	if r := d.importJSON(0, "--prune", "--yes", dir).Namespaces[0]; r.Duplicates != 2 || r.Pruned != 0 {
		t.Errorf("%+v", r)
	}
}

// TestImportGoesOnAfterAKill: an import that was killed is taken up by the next one,
// and every memory is there once.
func TestImportGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	const n = 6000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"message %d"}}`+"\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "s.jsonl")
	writeFile(t, file, b.String())
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	over := make(chan ended, 1)
	go func() {
		over <- memctlContext(ctx, t, "", []string{"MNEME_ADDR=" + d.http, "MNEME_AGENT=tester"}, "import", "-n", "default", file)
	}()
	for d.shard().Records == 0 {
		select {
		case e := <-over:
			t.Fatalf("ended before it was killed: %d %s", e.code, e.err)
		case <-time.After(time.Millisecond):
		}
	}
	kill()
	<-over
	r := d.importJSON(0, file).Namespaces[0]
	if r.Created+r.Duplicates != n || r.Duplicates == 0 || r.Conflicts+r.Rejected != 0 {
		t.Errorf("%+v", r)
	}
	if got := d.shard().Records; got != n {
		t.Errorf("%d records of %d messages", got, n)
	}
	if r := d.importJSON(0, file).Namespaces[0]; r.Duplicates != n {
		t.Errorf("%+v", r)
	}
}

// TestExportComesBackTheSame: what is exported, as lines or as a folder, and imported
// elsewhere differs in what a record is given anew, and says in its provenance what
// that was. At home it adds nothing.
func TestExportComesBackTheSame(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	d.must("capture", "-n", "default", "a fact", "--kind", "fact", "--tag", "ops", "--tag", "2024-01-01", "--uri", "notes/deploy", "--as", "ann")
	first := d.everything("default")[0]
	d.must("capture", "-n", "default", "derived\n\n---\nfrom it\r\n", "--derived-from", first.RecordID, "--conversation", "c: 1")
	for _, c := range d.everything("default") {
		if len(c.DerivedFrom) > 0 {
			d.must("capture", "-n", "default", "and from that", "--derived-from", c.RecordID, "--derived-from", first.RecordID)
		}
	}
	code, body := d.call("POST", "/v1/namespaces/default/events", `{"agent":"zoe","text":" spaced\ttext ","role":"user","subject":"bob","importance":0.25,
		"occurred_at":"2024-01-02T03:04:05.123456789Z","metadata":{"n":12345678901234567890,"list":["a"]}}`)
	if code != 200 {
		t.Fatal(body)
	}
	home := d.everything("default")
	lines := filepath.Join(t.TempDir(), "all.jsonl")
	folder := filepath.Join(t.TempDir(), "folder")
	d.must("export", "-n", "default", "--output", lines)
	d.must("export", "-n", "default", "--format", "markdown", "--output", folder)
	for name, path := range map[string]string{"by-lines": lines, "by-folder": folder} {
		d.must("namespace", "create", name)
		for range 2 {
			d.must("import", "-n", name, path)
		}
		sameMemories(t, name, home, d.everything(name))
		d.must("import", "-n", "default", path)
	}
	if got := d.everything("default"); !reflect.DeepEqual(got, home) {
		t.Errorf("importing at home changed it: %s", toJSON(t, got))
	}

	// An edited file revises its memory; one that was edited is not written over.
	file := filepath.Join(folder, month(t, folder), first.RecordID+".md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.Replace(string(text), "\na fact\n", "\na fact, edited\n", 1))
	plainEnd(t, d.memctl("export", "-n", "default", "--format", "markdown", "--output", folder), 5, "changed since the last export")
	d.must("import", "-n", "default", folder)
	var rec memory.Record
	mustJSON(t, d.must("get", "-n", "default", "notes/deploy", "--json"), &rec)
	if rec.Text != "a fact, edited" || rec.Version != 2 || rec.RecordID != first.RecordID || !rec.OccurredAt.Equal(first.OccurredAt) {
		t.Errorf("%+v", rec)
	}
	// Where it was imported before, the node itself shows that it was revised, and no question is asked.
	d.must("export", "-n", "default", "--output", lines)
	for _, want := range []string{`"duplicates":3,"updated":1,`, `"duplicates":4,"conflicts":0`} {
		if got := d.must("import", "-n", "by-lines", "--json", lines); !strings.Contains(got, want) {
			t.Errorf("imported elsewhere again: %s", got)
		}
	}
	d.must("import", "-n", "by-folder", folder)
	for _, name := range []string{"by-lines", "by-folder"} {
		mustJSON(t, d.must("get", "-n", name, "notes/deploy", "--json"), &rec)
		if rec.Text != "a fact, edited" || rec.Version != 2 {
			t.Errorf("%s: %+v", name, rec)
		}
	}
	// What it says by now is written anew.
	var anew struct{ Written, Unchanged int }
	mustJSON(t, d.must("export", "-n", "default", "--format", "markdown", "--output", folder, "--json"), &anew)
	if anew.Written != 1 || anew.Unchanged != 3 {
		t.Errorf("%+v", anew)
	}
	// Once more, of what is now an older version: that may be somebody else's.
	writeFile(t, file, strings.Replace(string(text), "\na fact\n", "\na fact, edited again\n", 1))
	plainEnd(t, d.memctl("import", "-n", "default", folder), 5, "in conflict")
	d.must("import", "-n", "default", "--revise", "--yes", folder)
	mustJSON(t, d.must("get", "-n", "default", "notes/deploy", "--json"), &rec)
	if rec.Text != "a fact, edited again" || rec.Version != 3 {
		t.Errorf("%+v", rec)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	d.must("forget", "-n", "default", "--yes", home[3].RecordID)
	var report struct{ Written, Unchanged, Removed int }
	mustJSON(t, d.must("export", "-n", "default", "--format", "markdown", "--output", folder, "--json"), &report)
	if report.Written != 1 || report.Unchanged != 2 || report.Removed != 1 {
		t.Errorf("%+v", report)
	}
}

// TestOfficialMemoryFileGoesThereAndBack: the file of the official MCP memory server is
// imported into the graph and exported byte for byte as that server writes it.
func TestOfficialMemoryFileGoesThereAndBack(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	const text = `{"type":"entity","name":"Alice <a&b>","entityType":"person","observations":["likes Go \u0001 \"quoted\" \\ 日本語 ` + "\u2028" + `","tab\there"]}
{"type":"entity","name":"memnode","entityType":"program","observations":[]}
{"type":"relation","from":"Alice <a&b>","to":"memnode","relationType":"works on"}
{"type":"relation","from":"Ghost","to":"memnode","relationType":"haunts"}`
	writeFile(t, file, text)
	for range 2 {
		d.must("import", "-n", "default", file)
		if got := d.must("export", "-n", "default", "--format", "mcp-memory"); got != text {
			t.Fatalf("got  %q\nwant %q", got, text)
		}
	}
	var r struct {
		Namespaces []struct {
			Graph struct{ Entities, Relations, Observations, Created int }
		}
	}
	// What is new of an entity that is there is added to it.
	writeFile(t, file, `{"type":"entity","name":"memnode","entityType":"program","observations":["is new"]}`+"\n"+`{"type":"note"}`+"\n")
	mustJSON(t, d.must("import", "-n", "default", "--json", file), &r)
	if g := r.Namespaces[0].Graph; g.Entities != 1 || g.Observations != 1 || g.Created != 1 {
		t.Errorf("%+v", g)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	d.must("export", "-n", "default", "--format", "mcp-memory", "--output", out)
	b, err := os.ReadFile(out)
	if err != nil || string(b) != strings.Replace(text, `"observations":[]`, `"observations":["is new"]`, 1) {
		t.Errorf("%v %q", err, b)
	}
}

func month(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "????-??"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return filepath.Base(found[0])
}

// sameMemories compares records with those that they were imported from.
func sameMemories(t *testing.T, ns string, home, here []memory.Record) {
	t.Helper()
	if len(home) != len(here) {
		t.Fatalf("%s: %d records of %d", ns, len(here), len(home))
	}
	byOld := map[string]memory.Record{}
	newID := map[string]string{}
	for _, rec := range here {
		p, ok := importer.ProvenanceOf(rec.Metadata)
		if !ok || p.From != "mneme" || p.Source != "default" || p.Origin != "capture" {
			t.Fatalf("%s: provenance %s", ns, rec.Metadata)
		}
		byOld[p.Record], newID[p.Record] = rec, rec.RecordID
	}
	for _, was := range home {
		is := byOld[was.RecordID]
		p, _ := importer.ProvenanceOf(is.Metadata)
		if p.Version != was.Version || p.Created != was.CreatedAt.UTC().Format(time.RFC3339Nano) {
			t.Errorf("%s: provenance %+v of %+v", ns, p, was)
		}
		was.DerivedFrom = slices.Clone(was.DerivedFrom)
		for i, id := range was.DerivedFrom {
			was.DerivedFrom[i] = newID[id]
		}
		if was.ID == "" {
			was.ID = fmt.Sprintf("export/%s.%d", was.RecordID, was.Version)
		}
		was.URI = strings.Replace(was.URI, "mem://default/", "mem://"+ns+"/", 1)
		was.URI = strings.Replace(was.URI, was.RecordID, is.RecordID, 1)
		was.Namespace, was.RecordID, was.Position, was.CreatedAt, was.Origin = ns, is.RecordID, is.Position, is.CreatedAt, memory.OriginImport
		var fields map[string]json.RawMessage
		mustJSON(t, string(is.Metadata), &fields)
		delete(fields, importer.Imported)
		is.Metadata = nil
		if len(fields) > 0 {
			is.Metadata = json.RawMessage(toJSON(t, fields))
		}
		if toJSON(t, was) != toJSON(t, is) {
			t.Errorf("%s:\nwas %s\nis  %s", ns, toJSON(t, was), toJSON(t, is))
		}
	}
}
