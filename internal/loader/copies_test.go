package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// What was revised at home was there twice after the second import elsewhere: as it was, and as it is.
func TestASecondExportWasThereTwice(t *testing.T) {
	line := func(id, text string, version int, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: version, Origin: memory.OriginCapture}
	}
	a, b, c := "01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2", "01ARZ3NDEKTSV4RRFFQ69G5FA3"
	n := newFakeNode()
	load := func(want Counts, export ...any) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			got := n.loaded(t, func(o *Options) { o.Format, o.In, o.DryRun, o.Revise = "jsonl", lines(t, export...), dry, true }, "-")
			want := want
			if dry {
				want.Created = 0
			}
			if want.Namespace = "team"; got != want {
				t.Errorf("dry %v: %+v, want %+v", dry, got, want)
			}
		}
	}
	first := []any{line(b, "b", 1, a), line(a, "a", 1)}
	second := []any{line(c, "c", 1, b, a), line(b, "b", 1, a), line(a, "a, revised", 3)}
	load(Counts{Found: 2, Created: 2}, first...)
	load(Counts{Found: 2, Duplicates: 2}, first...)
	load(Counts{Found: 3, Created: 1, Duplicates: 1, Updated: 1}, second...)
	load(Counts{Found: 3, Duplicates: 3}, second...)
	load(Counts{Found: 2, Duplicates: 2}, first...) // an older export takes nothing back
	is, from := n.living("team"), map[string][]string{}
	for _, rec := range is {
		from[rec.Text] = rec.DerivedFrom
	}
	here := n.recordsOf()
	if !slices.Equal(texts(is), []string{"a, revised", "b", "c"}) || !slices.Equal(from["c"], []string{here["b"], here["revised"]}) || !slices.Equal(from["b"], []string{here["revised"]}) {
		t.Errorf("%q, derived of %v", texts(is), from)
	}
	rec := n.records[slices.IndexFunc(n.records, func(r *fakeRecord) bool { return r.now().Text == "a, revised" })]
	if p, _ := importer.ProvenanceOf(rec.now().Metadata); p.Version != 3 || p.Record != a || len(rec.versions) != 2 || rec.versions[0].Text != "a" {
		t.Errorf("%+v, %d versions", p, len(rec.versions))
	}
	// What a memory is derived from now is that here, too.
	load(Counts{Found: 2, Updated: 1, Duplicates: 1}, line(a, "a, revised", 3), line(b, "b", 2, a, c))
	if got := n.living("team"); !slices.ContainsFunc(n.records, func(r *fakeRecord) bool {
		return r.now().Text == "b" && slices.Equal(r.now().DerivedFrom, []string{here["revised"], here["c"]})
	}) {
		t.Errorf("%+v", got)
	}
	// Where one of its sources is not here, it stays derived from what it was.
	load(Counts{Found: 1, Updated: 1}, line(b, "b", 3, a, "01ARZ3NDEKTSV4RRFFQ69G5FA9"))
	if !slices.ContainsFunc(n.records, func(r *fakeRecord) bool {
		return r.now().Text == "b" && slices.Equal(r.now().DerivedFrom, []string{here["revised"], here["c"]})
	}) {
		t.Error("it is derived from something else")
	}
	// The same record of another namespace is another memory.
	other := line(a, "of another", 4)
	other.URI = "mem://elsewhere/" + a
	load(Counts{Found: 1, Created: 1}, other)
	// What was forgotten here comes back as what it says now, and another agent's own is left.
	own := line("01ARZ3NDEKTSV4RRFFQ69G5FA4", "bob's own", 1)
	own.Agent, own.Scope = "bob", memory.ScopeAgent
	load(Counts{Found: 1, Created: 1}, own)
}

// What was copied into another namespace, and from there into a third one, doubled what it was copied from as it came home.
func TestACopyThatCameHomeWasThereTwice(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(c memory.Capture, origin memory.Origin) {
		c.Agent, c.OccurredAt, c.Scope = "ann", &at, memory.ScopeTeam
		n.capture("home", c, origin)
	}
	add(memory.Capture{Text: "plain", Tags: []string{"x"}, Metadata: json.RawMessage(`{"n":1e2}`)}, memory.OriginCapture)
	add(memory.Capture{Text: "named", URI: "mem://home/notes/a"}, memory.OriginCapture)
	add(memory.Capture{Text: "imported", Metadata: json.RawMessage(`{"title":"a","imported":{"from":"markdown","source":"notes","path":"a.md"}}`)}, memory.OriginImport)
	add(memory.Capture{Text: "odd", Metadata: json.RawMessage(`{"imported":{"x":1}}`)}, memory.OriginCapture)
	export := func(ns string) (all []any) {
		for _, rec := range n.living(ns) {
			all = append(all, importer.ExportOf(rec))
		}
		return all
	}
	load := func(ns string, all []any, want Counts) {
		t.Helper()
		got := n.loaded(t, func(o *Options) {
			o.Format, o.In = "jsonl", lines(t, all...)
			o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: ns, Agent: "ann"}, nil }
		}, "-")
		if want.Namespace = ns; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	load("fork", export("home"), Counts{Found: 4, Created: 4})
	load("third", export("fork"), Counts{Found: 4, Created: 4})
	load("home", export("fork"), Counts{Found: 4, Duplicates: 4})
	third := slices.DeleteFunc(export("third"), func(l any) bool { return l.(memory.ExportLine).Text == "imported" }) // which says of the last export alone
	load("home", third, Counts{Found: 3, Duplicates: 3})
	revise := func(r *fakeRecord, change func(*memory.Record)) {
		now := *r.now()
		now.Version++
		change(&now)
		r.versions = append(r.versions, now)
	}
	of := func(ns, text string) *fakeRecord {
		return n.records[slices.IndexFunc(n.records, func(r *fakeRecord) bool { return r.now().Namespace == ns && r.now().Text == text })]
	}
	// What was revised at home since is not taken back, and what was changed in the copy is another memory.
	revise(of("home", "imported"), func(r *memory.Record) { r.Text = "revised" })
	revise(of("fork", "plain"), func(r *memory.Record) { r.Tags = []string{"x", "y"} })
	load("home", export("fork"), Counts{Found: 4, Duplicates: 3, Created: 1})
	load("home", export("fork"), Counts{Found: 4, Duplicates: 4})
	// What is derived from a copy is derived from what that is a copy of.
	n.capture("fork", memory.Capture{Agent: "ann", Text: "derived", Scope: memory.ScopeTeam, OccurredAt: &at, DerivedFrom: []string{of("fork", "odd").now().RecordID}}, memory.OriginCapture)
	load("home", export("fork"), Counts{Found: 5, Duplicates: 4, Created: 1})
	if got := of("home", "derived").now().DerivedFrom; !slices.Equal(got, []string{of("home", "odd").now().RecordID}) {
		t.Errorf("it is derived from %v", got)
	}
	// What only says that it is a copy, of another agent's memory or of none, is one more.
	line := export("fork")[0].(memory.ExportLine)
	line.RecordID, line.ID, line.URI, line.Agent, line.Text = "01ARZ3NDEKTSV4RRFFQ69G5FA1", "", "mem://fork/01ARZ3NDEKTSV4RRFFQ69G5FA1", "bob", "odd"
	line.Metadata = json.RawMessage(`{"imported":{"from":"mneme","source":"home","record":"` + of("home", "odd").now().RecordID + `","version":1}}`)
	load("home", []any{line}, Counts{Found: 1, Created: 1})
	line.RecordID, line.URI, line.Agent = "01ARZ3NDEKTSV4RRFFQ69G5FA2", "mem://fork/01ARZ3NDEKTSV4RRFFQ69G5FA2", "ann"
	line.Metadata = json.RawMessage(`{"imported":{"from":"mneme","source":"home","record":"01ARZ3NDEKTSV4RRFFQ69G5FA9","version":1}}`)
	load("home", []any{line}, Counts{Found: 1, Created: 1})
}

// A file of an exported folder that was edited revises what it became elsewhere.
func TestAnEditedExportRevisesElsewhere(t *testing.T) {
	home := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	home.capture("team", memory.Capture{Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	dir, file := home.exportedFolder(t)
	n := newFakeNode()
	n.capture("team", memory.Capture{Agent: "ann", Text: "another one of the node"}, memory.OriginCapture)
	revise := false
	load := func() Counts {
		t.Helper()
		sum, said, err := n.load(t, func(o *Options) {
			o.Revise = revise
			o.Of = func(string) (importer.Options, error) {
				return importer.Options{Namespace: "elsewhere", Agent: me}, nil
			}
		}, dir)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return *sum.Namespaces[0]
	}
	if c := load(); c.Created != 1 {
		t.Errorf("%+v", c)
	}
	if c := load(); c.Duplicates != 1 || c.Updated+c.Created != 0 {
		t.Errorf("untouched: %+v", c)
	}
	edit(t, file(*home.records[0].now()), "\nfirst", "\nfirst, edited")
	if c := load(); c.Conflicts != 1 || c.Found != 1 || n.records[1].now().Text != "first" {
		t.Errorf("edited, unasked: %+v", c)
	}
	revise = true
	if c := load(); c.Updated != 1 || c.Created != 0 || n.records[1].now().Text != "first, edited" {
		t.Errorf("edited: %+v", c)
	}
	revise = false
	if c := load(); c.Duplicates != 1 || c.Updated+c.Created+c.Conflicts != 0 {
		t.Errorf("once more: %+v", c)
	}
}

// Of what was imported at home, a revision there reached its copy elsewhere as a conflict, and
// --take-back knew no export.
func TestACopyOfWhatWasImportedIsOne(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n"})
	csv := filepath.Join(t.TempDir(), "list.csv")
	put(t, csv, "id,text,place,occurred_at\n1,of csv,here,2026-01-02\n")
	into := func(ns, format string, in io.Reader, files ...string) Counts {
		t.Helper()
		sum, said, err := n.load(t, func(o *Options) {
			o.Format, o.Prune = format, format == "markdown"
			if in != nil {
				o.In = in
			}
			o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: ns, Agent: me}, nil }
		}, files...)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return *sum.Namespaces[0]
	}
	export := func() io.Reader {
		var out []any
		for _, rec := range n.living("team") {
			out = append(out, importer.ExportOf(rec))
		}
		return lines(t, out...)
	}
	into("team", "", nil, dir)
	into("team", "", nil, csv)
	if c := into("elsewhere", "jsonl", export(), "-"); c.Created != 3 {
		t.Fatalf("%+v", c)
	}
	// The sources themselves are known there, too.
	if c := into("elsewhere", "markdown", nil, dir); c.Duplicates != 2 || c.Found != 2 {
		t.Errorf("the folder elsewhere: %+v", c)
	}
	if c := into("elsewhere", "csv", nil, csv); c.Duplicates != 1 || c.Updated+c.Created != 0 {
		t.Errorf("the table elsewhere: %+v", c)
	}
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, revised\n\n# Two\nsecond\n")
	put(t, csv, "id,text,place,occurred_at\n1,of csv,there,2026-01-02\n")
	into("team", "", nil, dir)
	into("team", "", nil, csv)
	for _, want := range []Counts{{Updated: 2, Duplicates: 1}, {Duplicates: 3}} {
		if c := into("elsewhere", "jsonl", export(), "-"); c.Updated != want.Updated || c.Duplicates != want.Duplicates || c.Conflicts+c.Created != 0 {
			t.Errorf("the export again: %+v", c)
		}
	}
	// Where its own source revises a copy, it stays one.
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, revised\n\n# Two\nsecond, revised\n")
	if c := into("elsewhere", "markdown", nil, dir); c.Updated != 1 || c.Duplicates != 1 || c.Pruned != 0 {
		t.Errorf("the folder, revised: %+v", c)
	}
	if c := into("elsewhere", "jsonl", export(), "-"); c.Duplicates != 3 {
		t.Errorf("an export that is older: %+v", c)
	}
	found := map[string]int{}
	if err := Imported(t.Context(), n, "elsewhere", me, memory.Filter{}, func(_ memory.Record, p importer.Provenance) {
		for _, of := range [][2]string{{"team", "mneme"}, {"notes", "markdown"}, {"", "csv"}} {
			if p.IsFrom(of[0], of[1]) {
				found[of[1]]++
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if found["mneme"] != 3 || found["markdown"] != 2 || found["csv"] != 1 {
		t.Errorf("to be taken back: %v", found)
	}
}

// A copy that an import of an earlier version left without saying of what is told as a conflict
// when it is revised at home, and what that says to do brings the revision.
func TestTheRemedyOfACopyThatSaysNotOfWhat(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	meta := json.RawMessage(`{"imported":{"from":"csv","source":"list","id":"1"}}`)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "as it was", Scope: memory.ScopeTeam, Metadata: meta}, memory.OriginImport)
	line := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "revised", URI: "mem://home/x", Scope: memory.ScopeTeam, OccurredAt: &at, Metadata: meta},
		RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 2, Origin: memory.OriginImport}
	load := func(change bool) *Summary {
		t.Helper()
		sum, _, err := n.load(t, func(o *Options) { o.Format, o.In, o.Again = "jsonl", lines(t, line), change }, "-")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if sum := load(false); sum.Totals().Conflicts != 1 || !strings.Contains(sum.Problems[0].Detail, "forget that one, and import this again with --again") {
		t.Errorf("%+v", sum)
	}
	n.records[0].forgotten = true
	if c := load(true).Totals(); c.Created != 1 || !slices.Equal(texts(n.living("team")), []string{"revised"}) {
		t.Errorf("%+v, %q", c, texts(n.living("team")))
	}
	if c := load(false).Totals(); c.Duplicates != 1 {
		t.Errorf("once more: %+v", c)
	}
}

// Who knew the id of an exported record could revise its copies, and an export could revise whatever
// had its uri or its id: that a file is from a namespace is what it says. Where this node shows that
// it is, it needs no question.
func TestAClaimOfAnExportRevisedCopies(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "Deploys happen on Tuesdays", URI: "deploys", Scope: memory.ScopeTeam, OccurredAt: &at, Metadata: json.RawMessage(`{"a": 1}`)}, memory.OriginCapture)
	home := n.records[0]
	genuine := func() memory.ExportLine { return importer.ExportOf(*home.now()) }
	load := func(revise bool, format string, exp memory.ExportLine) *Summary {
		t.Helper()
		change := func(o *Options) {
			o.Revise = revise
			o.Of = func(string) (importer.Options, error) {
				return importer.Options{Namespace: "elsewhere", Agent: me}, nil
			}
		}
		path := "-"
		if format == "jsonl" {
			from := change
			change = func(o *Options) { from(o); o.Format, o.In = "jsonl", lines(t, exp) }
		} else {
			text, err := importer.FormatExported(exp)
			if err != nil {
				t.Fatal(err)
			}
			path = folder(t, map[string]string{"2016-07/" + exp.RecordID + ".md": string(text)})
		}
		sum, said, err := n.load(t, change, path)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return sum
	}
	if c := load(false, "jsonl", genuine()).Totals(); c.Created != 1 {
		t.Fatalf("%+v", c)
	}
	copied := n.records[1]
	revise := func(text string) {
		t.Helper()
		if _, err := n.Revise(t.Context(), "team", home.now().RecordID, memory.Revision{Text: &text, OccurredAt: &at}, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	revise("Deploys happen on Thursdays")
	for name, change := range map[string]func(*memory.ExportLine){
		"a version that is not there":  func(e *memory.ExportLine) { e.Version = 3 },
		"another text":                 func(e *memory.ExportLine) { e.Text = "Deploys happen whenever Eve says so" },
		"other metadata":               func(e *memory.ExportLine) { e.Metadata = json.RawMessage(`{"a": 2}`) },
		"a namespace that is not here": func(e *memory.ExportLine) { e.URI, e.Version = "mem://nowhere/deploys", 9 },
		"no namespace":                 func(e *memory.ExportLine) { e.URI, e.Version = "deploys", 9 },
		"another record, at its uri":   func(e *memory.ExportLine) { e.RecordID, e.ID, e.Text = "01ARZ3NDEKTSV4RRFFQ69G5FA1", "2", "Eve" },
		"another record, of its id": func(e *memory.ExportLine) {
			e.RecordID, e.URI, e.Text = "01ARZ3NDEKTSV4RRFFQ69G5FA1", "mem://team/eve", "Eve"
		},
		"the namespace, under another id": func(e *memory.ExportLine) {
			e.URI, e.RecordID, e.Text = "mem://elsewhere/deploys", "01ARZ3NDEKTSV4RRFFQ69G5FA1", "Eve"
		},
	} {
		for _, format := range []string{"jsonl", "markdown"} {
			forged := genuine()
			change(&forged)
			sum := load(false, format, forged)
			if c := sum.Totals(); c.Conflicts != 1 || c.Updated+c.Created != 0 || copied.now().Version != 1 || len(n.records) != 2 {
				t.Errorf("%s, %s: %+v, %+v", name, format, c, copied.now())
			}
			if forged.RecordID == home.now().RecordID && strings.HasPrefix(forged.URI, "mem://team/") && !strings.Contains(sum.Problems[0].Detail, "nothing here shows that it is; look at it, and if it is right: revise elsewhere with ") {
				t.Errorf("%s, %s: %s", name, format, sum.Problems[0].Detail)
			}
		}
	}
	for i, format := range []string{"jsonl", "markdown"} {
		revise("Deploys happen on Fridays, says " + format)
		if c := load(false, format, genuine()).Totals(); c.Updated != 1 || copied.now().Text != home.now().Text || copied.now().Version != i+2 {
			t.Errorf("%s: %+v, %+v", format, c, copied.now())
		}
	}
	dir, file := n.exportedFolder(t)
	edit(t, file(*home.now()), "\nDeploys happen on Fridays, says markdown", "\nDeploys happen on Fridays, says who edited the file")
	sum, _, err := n.load(t, func(o *Options) {
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "elsewhere", Agent: me}, nil
		}
	}, dir)
	if err != nil || sum.Totals().Updated != 1 || !strings.HasSuffix(copied.now().Text, "says who edited the file") {
		t.Errorf("edited: %+v, %v, %q", sum, err, copied.now().Text)
	}
	forged := genuine()
	forged.Text, forged.Version = "Deploys happen whenever Eve says so", 9
	sum, _, err = n.load(t, func(o *Options) { // behind a folder
		o.In, o.Of = lines(t, forged), func(string) (importer.Options, error) {
			return importer.Options{Namespace: "elsewhere", Agent: me}, nil
		}
	}, dir, "-")
	if err != nil || len(sum.Problems) != 1 || !strings.HasSuffix(sum.Problems[0].Detail, ": revise elsewhere with -") {
		t.Errorf("%+v, %v", sum, err)
	}
	if c := load(true, "jsonl", forged).Totals(); c.Updated != 1 || copied.now().Text != forged.Text {
		t.Errorf("asked for: %+v, %+v", c, copied.now())
	}
	forged.RecordID, forged.Text = "01ARZ3NDEKTSV4RRFFQ69G5FA1", "Eve"
	if c := load(true, "markdown", forged).Totals(); c.Conflicts != 1 || copied.now().Text == "Eve" {
		t.Errorf("another record, asked for: %+v, %+v", c, copied.now())
	}
}

// A file of the first version that was edited revises a copy where the node shows that an export wrote it.
func TestAnEditedFirstVersionRevisesItsCopy(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	dir, file := n.exportedFolder(t)
	if c := n.into(t, "elsewhere", dir); c.Created != 1 {
		t.Fatalf("%+v", c)
	}
	edit(t, file(*n.records[0].now()), "\nfirst", "\nfirst, edited")
	if c := n.into(t, "elsewhere", dir); c.Updated != 1 || c.Found != 1 || n.records[1].now().Text != "first, edited" {
		t.Errorf("%+v", c)
	}
}

// A copy that is forgotten while an import runs is counted as forgotten, and its revision ends nothing.
func TestACopyThatIsForgottenMeanwhile(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	dir, file := n.exportedFolder(t)
	n.into(t, "elsewhere", dir)
	edit(t, file(*n.records[0].now()), "\nfirst", "\nfirst, edited")
	sum, _, err := loadInto(t, forgetful{n}, func(o *Options) {
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "elsewhere", Agent: me}, nil
		}
	}, dir)
	if err != nil || sum.Totals().Updated+sum.Totals().Created+sum.Totals().Conflicts != 0 || sum.Namespaces[0].Forgotten != 1 || sum.Namespaces[0].Found != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// forgetful is a node where somebody forgets what was listed.
type forgetful struct{ *fakeNode }

func (n forgetful) List(ctx context.Context, ns string, opts client.ListOptions) (memory.RecordList, error) {
	page, err := n.fakeNode.List(ctx, ns, opts)
	for _, rec := range page.Records {
		if _, ferr := n.Forget(ctx, ns, rec.RecordID, client.WriteOptions{As: me}); err == nil {
			err = ferr
		}
	}
	return page, err
}

// into imports files into a namespace.
func (n *fakeNode) into(t *testing.T, ns string, files ...string) Counts {
	t.Helper()
	return n.loaded(t, func(o *Options) {
		o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: ns, Agent: me}, nil }
	}, files...)
}

// Copies that came home were read one by one, 2,000 in a second. Where there are many, the namespace is read once, and what it
// says is compared as before.
func TestManyCopiesComeHome(t *testing.T) {
	n := newFakeNode()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range maxLooked + 50 {
		n.capture("team", memory.Capture{Agent: "ann", Text: fmt.Sprint("memory ", i), Tags: []string{"x"}, Scope: memory.ScopeTeam, OccurredAt: &at, Metadata: json.RawMessage(`{"b":1,"a":{"c":[1]}}`)}, memory.OriginCapture)
	}
	n.takes(t, "fork", n.exports("team"), nil, Counts{Found: maxLooked + 50, Created: maxLooked + 50})
	var copies []any
	for _, r := range n.records {
		if now := r.now(); now.Namespace == "fork" {
			copies = append(copies, importer.ExportOf(*now))
		}
	}
	gets := 0
	n.read = func(*memory.Record) { gets++ }
	n.takes(t, "team", copies, nil, Counts{Found: len(copies), Duplicates: len(copies)})
	if gets > maxLooked {
		t.Errorf("%d were read one by one", gets)
	}
	// The last of them says something else, and the one before it what was said before.
	last := copies[len(copies)-1].(memory.ExportLine)
	last.Text = "changed"
	copies[len(copies)-1] = last
	was := n.records[maxLooked+48]
	now := *was.now()
	now.Version, now.Text = 2, "revised"
	was.versions = append(was.versions, now)
	n.takes(t, "team", copies, nil, Counts{Found: len(copies), Duplicates: len(copies) - 1, Created: 1})
}
