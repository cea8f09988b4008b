package loader

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/internal/importer"
	"mneme/memory"
)

// folder is a folder of notes, with what its files say.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "notes")
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A section that has changed is revised, also where only its metadata did; one that has not is left.
func TestWhatHasChangedIsRevised(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "---\ndate: 2026-01-01\nowner: ann\n---\n# One\nfirst\n\n# Two\nsecond\n"})
	if c := n.loaded(t, nil, dir); c.Created != 2 {
		t.Fatalf("%+v", c)
	}
	if c := n.loaded(t, nil, dir); c.Duplicates != 2 || c.Updated != 0 {
		t.Errorf("again: %+v", c)
	}
	put(t, filepath.Join(dir, "a.md"), "---\ndate: 2026-01-01\nowner: ann\n---\n# One\nfirst, changed\n\n# Two\nsecond\n")
	if c := n.loaded(t, nil, dir); c.Duplicates != 1 || c.Updated != 1 {
		t.Errorf("a text: %+v", c)
	}
	put(t, filepath.Join(dir, "a.md"), "---\ndate: 2026-01-01\nowner: bob\n---\n# One\nfirst, changed\n\n# Two\nsecond\n")
	if c := n.loaded(t, nil, dir); c.Updated != 2 {
		t.Errorf("metadata: %+v", c)
	}
	rec := n.living("team")["notes/a.md#one"]
	if !strings.Contains(string(rec.Metadata), `"bob"`) || !strings.Contains(rec.Text, "changed") || rec.Version != 3 || len(n.living("team")) != 2 {
		t.Errorf("%+v", rec)
	}
}

// Where a heading above changes, the sections below are the same memories, and say so.
func TestAChangedHeadingAboveRevises(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# Deploys\n\n## Details\nowner: platform\n\n## Steps\nbuild, push\n\n# Notes\nx\n"})
	n.loaded(t, nil, dir)
	was := n.living("team")
	if rec := was["notes/a.md#deploys/details"]; rec.Text != "# Deploys\n## Details\nowner: platform" {
		t.Errorf("%q", rec.Text)
	}
	put(t, filepath.Join(dir, "a.md"), "# Releases\n\n## Details\nowner: platform\n\n## Steps\nbuild, push, look\n\n# Notes\nx\n")
	if c := n.loaded(t, func(o *Options) { o.DryRun = true }, dir); c.Updated != 1 || c.Duplicates != 1 || c.Found != 3 || c.Gone != 1 {
		t.Errorf("dry: %+v", c)
	}
	if sum, _, err := n.load(t, func(o *Options) { o.DryRun, o.Prune = true, true }, dir); err != nil || !slices.Equal(sum.Forget, []string{"mem://team/notes/a.md#deploys/steps"}) {
		t.Errorf("%v, %v", sum, err)
	}
	if c := n.loaded(t, nil, dir); c.Updated != 1 || c.Duplicates != 1 || c.Created != 1 || c.Gone != 1 {
		t.Errorf("%+v", c)
	}
	is := n.living("team")
	rec := is["notes/a.md#releases/details"]
	if rec.RecordID != was["notes/a.md#deploys/details"].RecordID || rec.Text != "# Releases\n## Details\nowner: platform" || rec.Version != 2 {
		t.Errorf("%+v", rec)
	}
	if c := n.loaded(t, nil, dir); c.Duplicates != 3 || c.Updated+c.Created != 0 {
		t.Errorf("again: %+v", c)
	}
	// What has the old headings anew is a memory of its own.
	put(t, filepath.Join(dir, "a.md"), "# Releases\n\n## Details\nowner: platform\n\n# Deploys\n\n## Details\nowner: platform\n\n# Notes\nx\n")
	if c := n.loaded(t, nil, dir); c.Created != 1 || c.Duplicates != 2 {
		t.Errorf("anew: %+v", c)
	}
	if rec := n.living("team")["notes/a.md#deploys/details"]; rec.Text != "# Deploys\n## Details\nowner: platform" {
		t.Errorf("%+v", rec)
	}
	if c := n.loaded(t, nil, dir); c.Created != 0 || c.Duplicates != 3 {
		t.Errorf("anew, again: %+v", c)
	}
}

// What the version before imported has no headings above it: it is revised once, and nothing is there twice.
func TestSectionsOfTheVersionBeforeAreRevisedOnce(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# A\n\n## One\nfirst\n\n## Two\nsecond\n"})
	n.loaded(t, nil, dir)
	for _, r := range n.records { // as it was then
		rec := r.now()
		p, ok := importer.ProvenanceOf(rec.Metadata)
		text, found := strings.CutPrefix(rec.Text, "# A\n")
		if !ok || !found || p.Section == "" {
			t.Fatalf("%+v", rec)
		}
		p.Hash, p.Section = p.Section, ""
		var fields map[string]any
		if err := json.Unmarshal(rec.Metadata, &fields); err != nil {
			t.Fatal(err)
		}
		fields[importer.Imported] = p
		rec.Metadata, _ = json.Marshal(fields)
		rec.Text = text
	}
	if c := n.loaded(t, nil, dir); c.Updated != 2 || c.Created != 0 || c.Gone != 0 {
		t.Errorf("%+v", c)
	}
	if c := n.loaded(t, nil, dir); c.Duplicates != 2 {
		t.Errorf("%+v", c)
	}
	if got := texts(n.living("team")); !slices.Equal(got, []string{"# A\n## One\nfirst", "# A\n## Two\nsecond"}) {
		t.Errorf("%q", got)
	}
}

// What was forgotten stays so as long as its file says the same.
func TestWhatWasForgottenStaysSo(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# A\n\n## One\nfirst\n\n## Two\nsecond\n"})
	n.loaded(t, nil, dir)
	n.named("mem://team/notes/a.md#a/one").forgotten = true
	if c := n.loaded(t, nil, dir); c.Duplicates != 1 || c.Forgotten != 1 || c.Created != 0 || len(n.living("team")) != 1 {
		t.Errorf("%+v", c)
	}
}

// A revision that somebody else overtook is a conflict, and nothing of theirs is lost.
func TestARevisionOvertakesNobody(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, changed\n")
	n.read = func(rec *memory.Record) { rec.Text, rec.Version = "theirs", rec.Version+1 }
	if c := n.loaded(t, nil, dir); c.Conflicts != 1 || c.Updated != 0 {
		t.Errorf("%+v", c)
	}
	if got := texts(n.living("team")); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("%q", got)
	}
}

// What was not imported from there is not revised, whatever uri or metadata it has.
func TestWhatWasNotImportedIsNotRevised(t *testing.T) {
	for name, c := range map[string]struct {
		origin memory.Origin
		meta   string
	}{
		"plain":                 {memory.OriginCapture, ""},
		"says so":               {memory.OriginCapture, `{"imported":{"from":"markdown","source":"notes","path":"a.md","hash":"x"}}`},
		"imported, and no more": {memory.OriginImport, `{"imported":true}`},
		"of another format":     {memory.OriginImport, `{"imported":{"from":"csv","source":"notes"}}`},
	} {
		n := newFakeNode()
		n.capture("team", memory.Capture{Agent: "bob", Text: "mine", URI: "notes/a.md#one", Conversation: "notes/a.md", Metadata: json.RawMessage(c.meta)}, c.origin)
		dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
		if c := n.loaded(t, nil, dir); c.Conflicts != 1 || c.Updated != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if got := texts(n.living("team")); !slices.Equal(got, []string{"mine"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An export of which the version before left out the provenance, because something else stood
// in its place, is there already, as lines and as a folder.
func TestExportsWithoutProvenanceAreThereAlready(t *testing.T) {
	n := newFakeNode()
	meta := json.RawMessage(`{"imported":true}`)
	exp := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "x", Scope: memory.ScopeTeam, Metadata: meta, URI: "mem://home/a"}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	before := exp.Capture
	before.URI = "a"
	n.capture("team", before, memory.OriginImport)
	if c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, exp) }, "-"); c.Duplicates != 1 || c.Conflicts != 0 {
		t.Errorf("%+v", c)
	}
	text, err := importer.FormatExported(exp)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"2016-07/" + exp.RecordID + ".md": string(text)})
	if c := n.loaded(t, nil, dir); c.Duplicates != 1 || c.Updated+c.Conflicts != 0 {
		t.Errorf("%+v", c)
	}
}

// Two folders of one name do not revise or prune each other's memories unasked.
func TestAnotherFolderOfTheNameAsks(t *testing.T) {
	n := newFakeNode()
	root := t.TempDir()
	pa, pb := filepath.Join(root, "pa", "docs"), filepath.Join(root, "pb", "docs")
	put(t, filepath.Join(pa, "a.md"), "# One\nof pa\n")
	put(t, filepath.Join(pb, "a.md"), "# One\nof pb\n")
	no := func(o *Options) {
		o.Confirm = func(q Question) error {
			return memory.Errorf(memory.CodeInvalid, "no: %s %s", q.What, q.Instead)
		}
	}
	if _, _, err := newFakeNode().load(t, no, pa, pb); err == nil || !strings.Contains(err.Error(), "docs was imported from pa/docs before") {
		t.Errorf("both at once: %v", err)
	}
	n.loaded(t, no, pa)
	n.loaded(t, no, pa)
	for _, path := range []string{pb, filepath.Join(pb, "a.md")} {
		_, said, err := n.load(t, func(o *Options) { o.DryRun = true }, path)
		if err != nil || !strings.Contains(said, "docs was imported from pa/docs before, and this is of pb/docs") {
			t.Errorf("dry: %v: %s", err, said)
		}
		_, _, err = n.load(t, no, path)
		if err == nil || !strings.Contains(err.Error(), "--source NAME keeps the two apart") || !slices.Equal(texts(n.living("team")), []string{"# One\nof pa"}) {
			t.Errorf("%v, left %q", err, texts(n.living("team")))
		}
	}
	if c := n.loaded(t, func(o *Options) {
		no(o)
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "team", Agent: "ann", Source: "other"}, nil
		}
	}, pb); c.Created != 1 {
		t.Errorf("apart: %+v", c)
	}
	if c := n.loaded(t, nil, pb); c.Updated != 1 {
		t.Errorf("taken for the same: %+v", c)
	}
	// Two clones of a repository are one, wherever they lie.
	for _, at := range []string{"ann", "bob"} {
		clone := filepath.Join(root, at, "acme")
		put(t, filepath.Join(clone, ".git", "HEAD"), "ref: refs/heads/main\n")
		put(t, filepath.Join(clone, "CLAUDE.md"), "# Build\nmake, says "+at+"\n")
		if c := n.loaded(t, no, filepath.Join(clone, "CLAUDE.md")); c.Created+c.Updated != 1 {
			t.Errorf("%s: %+v", at, c)
		}
	}
}

// What is there for the team is not one's own for being imported so, and that is told.
func TestOnesOwnThatIsThereForTheTeamIsTold(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, and private\n")
	sum, _, err := n.load(t, func(o *Options) {
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "team", Agent: "ann", Scope: memory.ScopeAgent}, nil
		}
	}, dir)
	if err != nil || len(sum.LeftOut) != 1 || !strings.Contains(sum.LeftOut[0].Why, "there for the whole team already") || sum.Totals().Duplicates != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	csv := filepath.Join(t.TempDir(), "file")
	put(t, csv, "id,text,scope\n1,x,team\n")
	n.loaded(t, func(o *Options) { o.Format = "csv" }, csv)
	put(t, csv, "id,text,scope\n1,x,agent\n")
	sum, _, err = n.load(t, func(o *Options) { o.Format = "csv" }, csv)
	if err != nil || len(sum.LeftOut) != 1 || sum.Totals().Duplicates != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if got := texts(n.living("team")); !slices.Equal(got, []string{"# One\nfirst", "x"}) {
		t.Errorf("%q", got)
	}
}

// What is no longer there is counted of the sources that were read, and not where something could not be.
func TestWhatIsGoneIsOfWhatWasRead(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n", "b.md": "# B\nb\n"})
	others := filepath.Join(t.TempDir(), "others")
	put(t, filepath.Join(others, "c.md"), "# C\nc\n")
	n.loaded(t, nil, dir)
	if c := n.loaded(t, nil, others); c.Gone != 0 {
		t.Errorf("of another source: %+v", c)
	}
	if err := os.Remove(filepath.Join(dir, "b.md")); err != nil {
		t.Fatal(err)
	}
	if c := n.same(t, "removed", nil, dir); c.Gone != 1 {
		t.Errorf("%+v", c)
	}
	put(t, filepath.Join(dir, "c.md"), "\xff\n")
	if c := n.same(t, "unreadable", nil, dir); c.Gone != 0 {
		t.Errorf("where something could not be read: %+v", c)
	}
}

// A dry run does without a node, and says once that it does.
func TestADryRunDoesWithoutANode(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n", "b.md": "# B\nb\n"})
	for name, node := range map[string]Node{"none": nil, "away": away{n}} {
		sum, said, err := loadInto(t, node, func(o *Options) { o.DryRun, o.Prune = true, true }, dir)
		if err != nil || sum.Totals().Found != 3 || strings.Count(said, "what is there already is not known: ") != map[string]int{"none": 0, "away": 1}[name] {
			t.Errorf("%s: %+v, %v: %s", name, sum, err, said)
		}
	}
}

// away is a node that cannot be reached.
type away struct{ *fakeNode }

func (away) Namespace(context.Context, string) (memory.Namespace, error) {
	return memory.Namespace{}, memory.Errorf(memory.CodeForbidden, "not you")
}

// Another folder of the name is asked about once, and one that was taken for the same never again.
func TestAnotherFolderIsAskedAboutOnce(t *testing.T) {
	n := newFakeNode()
	root := t.TempDir()
	places := []string{filepath.Join(root, "pa", "docs"), filepath.Join(root, "pb", "docs"), filepath.Join(root, "pc", "docs")}
	for _, dir := range places {
		for _, name := range []string{"a.md", "b.md", "c.md"} {
			put(t, filepath.Join(dir, name), "# One\nof "+filepath.Base(filepath.Dir(dir))+"\n")
		}
	}
	var asked []string
	load := func(dir string) {
		t.Helper()
		asked = nil
		n.loaded(t, func(o *Options) {
			o.Confirm = func(q Question) error {
				asked = append(asked, q.What)
				return nil
			}
		}, dir)
	}
	load(places[1])
	load(places[0])
	if len(asked) != 1 || !strings.Contains(asked[0], "imported from pb/docs before, and this is of pa/docs") {
		t.Errorf("asked %q", asked)
	}
	load(places[0])
	if len(asked) != 0 {
		t.Errorf("once more: asked %q", asked)
	}
	put(t, filepath.Join(places[1], "a.md"), "# One\nof pb, and changed\n")
	n.loaded(t, nil, filepath.Join(places[1], "a.md")) // one of three is of pb again
	load(places[0])
	if len(asked) != 0 {
		t.Errorf("where one is of another: asked %q", asked)
	}
	load(places[2])
	if len(asked) != 1 || !strings.Contains(asked[0], "imported from pa/docs before") {
		t.Errorf("of two it names one: asked %q", asked)
	}
}

// A folder that has moved, and holds what it held, was asked about at each import.
func TestAFolderThatHasMovedIsAskedAboutOnce(t *testing.T) {
	no := func(o *Options) {
		o.Confirm = func(q Question) error { return memory.Errorf(memory.CodeInvalid, "no: %s %s", q.What, q.Flag) }
	}
	for name, yes := range map[string]func(*Options){"--moved": func(o *Options) { no(o); o.Moved = true }, "asked": nil} {
		n := newFakeNode()
		root := t.TempDir()
		before, after := filepath.Join(root, "pa", "docs"), filepath.Join(root, "pb", "docs")
		for _, dir := range []string{before, after} {
			put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n\n# Two\nsecond\n")
		}
		n.loaded(t, no, before)
		if _, _, err := n.load(t, no, after); err == nil || !strings.HasSuffix(err.Error(), " --moved") {
			t.Errorf("%s: %v", name, err)
		}
		if c := n.loaded(t, yes, after); c.Updated != 2 || c.Found != 2 || c.Created+c.Gone != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if c := n.loaded(t, no, after); c.Duplicates != 2 || c.Updated != 0 {
			t.Errorf("%s, again: %+v", name, c)
		}
		if c := n.loaded(t, yes, after); c.Duplicates != 2 || c.Updated != 0 {
			t.Errorf("%s, once more: %+v", name, c)
		}
		if is := n.records[0]; is.now().Text != is.versions[0].Text || len(n.records) != 2 {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

// Files that are named are asked about as their folder is: of one folder never, of another one where
// the first of them that was there shows it.
func TestNamedFilesOfAnotherFolderAsk(t *testing.T) {
	n := newFakeNode()
	root := t.TempDir()
	file := func(place, name string) string {
		path := filepath.Join(root, place, "docs", name)
		put(t, path, "# One\n"+name+" of "+place+"\n")
		return path
	}
	no := func(o *Options) {
		o.Confirm = func(q Question) error { return memory.Errorf(memory.CodeInvalid, "no: %s", q.What) }
	}
	n.loaded(t, no, file("pa", "a.md"), file("pa", "b.md"))
	n.loaded(t, no, file("pa", "c.md"), file("pa", "a.md"))
	_, _, err := n.load(t, no, file("pb", "new.md"), file("pb", "a.md"))
	if err == nil || !strings.Contains(err.Error(), "imported from pa/docs before, and this is of pb/docs") || n.living("team")["docs/a.md#one"].Text != "# One\na.md of pa" {
		t.Errorf("%v", err)
	}
}
