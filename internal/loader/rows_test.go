package loader

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// Of two rows of one id the later one revised the earlier one, whose text was nowhere to be found, and each import did that anew.
func TestTwoRowsOfOneIDRevisedEachOther(t *testing.T) {
	n := newFakeNode()
	table := filepath.Join(t.TempDir(), "table.csv")
	put(t, table, "id,text\n1,the staging database is heron\n2,we pin Go 1.26\n1,the production database is osprey\n2,we pin Go 1.26\n")
	for i, want := range []Counts{
		{Namespace: "team", Found: 4, Created: 2, Duplicates: 1, Conflicts: 1},
		{Namespace: "team", Found: 4, Duplicates: 3, Conflicts: 1},
	} {
		sum, _, err := loadInto(t, n, nil, table)
		if err != nil {
			t.Fatal(err)
		}
		if got := *sum.Namespaces[0]; got != want {
			t.Errorf("import %d: %+v, want %+v", i+1, got, want)
		}
		if len(sum.Problems) != 1 || sum.Problems[0].Line != 4 || sum.Problems[0].Code != memory.CodeConflict || !strings.Contains(sum.Problems[0].Detail, "that of line 2") {
			t.Errorf("import %d: %+v", i+1, sum.Problems)
		}
	}
	if got := n.records[0].now().Text; got != "the staging database is heron" {
		t.Errorf("the first row is %q", got)
	}
	// Another file is another table, and may be a later one of the same.
	later := filepath.Join(filepath.Dir(table), "later.csv")
	put(t, later, "id,text\n1,the staging database is egret\n")
	dry, _, err := loadInto(t, n, func(o *Options) { o.DryRun = true }, table, later)
	if err != nil || dry.Namespaces[0].Conflicts != 1 || dry.Namespaces[0].Found != 5 {
		t.Errorf("tried: %+v, %v", dry.Namespaces[0], err)
	}
	// What another program exported may have been appended to: there the later one is the newer one.
	export := filepath.Join(filepath.Dir(table), "export.json")
	put(t, export, `{"results":[{"id":"1","memory":"the staging database is heron"},{"id":"1","memory":"the staging database is egret"}]}`)
	n = newFakeNode()
	if sum, _, err := loadInto(t, n, func(o *Options) { o.Format = "mem0" }, export); err != nil || sum.Namespaces[0].Updated != 1 || n.records[0].now().Text != "the staging database is egret" {
		t.Errorf("appended: %+v, %v", sum, err)
	}
	// Rows without an id are known by what they say.
	put(t, table, "number,text\n1,the staging database is heron\n1,the production database is osprey\n")
	sum, _, err := loadInto(t, newFakeNode(), nil, table)
	if err != nil || sum.Namespaces[0].Created != 2 {
		t.Errorf("without ids: %+v, %v", sum.Namespaces[0], err)
	}
}

// Ids are an agent's own, so that those of another one count by themselves. Behind many rows the first one of an id still counts.
func TestAnIDOfAnotherAgentWasTakenForTheSame(t *testing.T) {
	n := newFakeNode()
	table := filepath.Join(t.TempDir(), "table.csv")
	put(t, table, "id,agent,text\n1,bob,the staging database is heron\n1,eve,the production database is osprey\n1,bob,the staging database is heron\n1,eve,the production database is egret\n1,bob,the staging database is stork\n")
	for i, want := range []Counts{
		{Namespace: "team", Found: 5, Created: 2, Duplicates: 1, Conflicts: 2},
		{Namespace: "team", Found: 5, Duplicates: 3, Conflicts: 2},
	} {
		sum, _, err := loadInto(t, n, nil, table)
		if err != nil {
			t.Fatal(err)
		}
		if got := *sum.Namespaces[0]; got != want {
			t.Errorf("import %d: %+v, want %+v", i+1, got, want)
		}
		if len(sum.Problems) != 2 || sum.Problems[0].Line != 5 || !strings.Contains(sum.Problems[0].Detail, "that of line 3,") || sum.Problems[1].Line != 6 || !strings.Contains(sum.Problems[1].Detail, "that of line 2,") {
			t.Errorf("import %d: %+v", i+1, sum.Problems)
		}
	}
	if len(n.records) != 2 || n.records[0].now().Agent != "bob" || n.records[0].now().Text != "the staging database is heron" || n.records[1].now().Agent != "eve" || n.records[1].now().Text != "the production database is osprey" {
		t.Errorf("%d records, %+v", len(n.records), n.records[0].now())
	}
}

// Two tables of one import are two, also where they are of one source: the second one may be the newer one, and its rows revise.
func TestRowsOfTwoTablesAreToldApart(t *testing.T) {
	n := newFakeNode()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.csv"), filepath.Join(dir, "two.csv")
	put(t, one, "id,text\n1,the staging database is heron\n")
	put(t, two, "id,text\n1,the staging database is osprey\n1,the staging database is egret\n")
	sum, _, err := loadInto(t, n, func(o *Options) {
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "team", Agent: "ann", Source: "databases"}, nil
		}
	}, one, two)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *sum.Namespaces[0], (Counts{Namespace: "team", Found: 3, Created: 1, Updated: 1, Conflicts: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(sum.Problems) != 1 || sum.Problems[0].File != two || sum.Problems[0].Line != 3 || n.records[0].now().Text != "the staging database is osprey" {
		t.Errorf("%+v, %+v", sum.Problems, n.records[0].now())
	}
}

// Rows behind as many as are remembered are taken as new ones.
func TestRowsAreRememberedWithinBounds(t *testing.T) {
	r := rows{said: map[uint64]row{}}
	for i := range uint64(maxRows - 1) {
		r.said[i] = row{}
	}
	item := func(id, says string) importer.Item {
		return importer.Item{Capture: memory.Capture{Agent: "ann", ID: id}, Provenance: &importer.Provenance{Says: says}, Where: "of " + id}
	}
	r.seed = maphash.MakeSeed()
	for _, c := range []struct{ id, says, want string }{{"1", "a", ""}, {"2", "a", ""}, {"2", "b", ""}, {"1", "b", "of 1"}, {"1", "a", ""}} {
		if got := r.first(item(c.id, c.says)); got != c.want {
			t.Errorf("%s that says %s: %q, want %q", c.id, c.says, got, c.want)
		}
	}
	if len(r.said) != maxRows {
		t.Errorf("%d are remembered", len(r.said))
	}
}

// A row that had been revised lost its id on the way to another namespace, and was there twice once its table was imported there, too.
func TestARowWasThereTwiceWhereItsTableFollowedAnExport(t *testing.T) {
	n := newFakeNode()
	table := func(ns, text string, change func(*Options), want Counts) {
		t.Helper()
		got := n.loaded(t, func(o *Options) {
			o.Format, o.In = "csv", strings.NewReader("id,agent,text,date\n"+text)
			o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: ns, Agent: "ann"}, nil }
			if change != nil {
				change(o)
			}
		}, "-")
		if want.Namespace = ns; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	const first, second = "1,bob,one,2026-01-01\n2,bob,two,2026-01-01\n", "1,bob,one changed,2026-01-01\n2,bob,two,2026-01-01\n"
	table("home", first, nil, Counts{Found: 2, Created: 2})
	table("home", second, nil, Counts{Found: 2, Updated: 1, Duplicates: 1})
	for _, r := range n.records { // as a node has it
		if now := r.now(); now.Version > 1 {
			now.ID, now.Agent = "", "ann"
		}
	}
	n.takes(t, "fork", n.exports("home"), nil, Counts{Found: 2, Created: 2})
	table("fork", second, nil, Counts{Found: 2, Duplicates: 2})
	table("fork", "1,bob,one,2026-01-01\n2,bob,two changed,2026-01-01\n1,carl,one,2026-01-01\n", nil, Counts{Found: 3, Updated: 2, Created: 1})
	table("fork", first, nil, Counts{Found: 2, Updated: 1, Duplicates: 1})
	if got := texts(n.living("fork")); !slices.Equal(got, []string{"one", "one", "two"}) {
		t.Errorf("%q", got)
	}
	// Where both were brought up to date, at times of their own, what comes home is there.
	table("home", first, nil, Counts{Found: 2, Updated: 1, Duplicates: 1})
	for _, r := range n.records {
		if now := r.now(); now.Version > 2 && now.Namespace == "home" {
			now.OccurredAt = now.OccurredAt.AddDate(0, 0, 1)
		}
	}
	n.takes(t, "home", slices.DeleteFunc(n.exports("fork"), func(l any) bool { return l.(memory.ExportLine).Agent == "carl" }), nil, Counts{Found: 2, Duplicates: 2})
	// What is forgotten there stays so, and what comes back is followed again.
	for _, rec := range n.living("fork") {
		if rec.Agent == "ann" {
			if _, err := n.Forget(t.Context(), "fork", rec.RecordID, client.WriteOptions{As: me}); err != nil {
				t.Fatal(err)
			}
		}
	}
	table("fork", second, nil, Counts{Found: 2, Forgotten: 1, Duplicates: 1})
	table("fork", first, func(o *Options) { o.Again = true }, Counts{Found: 2, Created: 1, Duplicates: 1})
	table("fork", second, nil, Counts{Found: 2, Updated: 1, Duplicates: 1})
	if got := texts(n.living("fork")); !slices.Equal(got, []string{"one", "one changed", "two"}) {
		t.Errorf("%q", got)
	}
}

// For five rows of a table, or some hundred lines that came home, all of a namespace was read, however large it was.
func TestAFewRowsReadTheWholeNamespace(t *testing.T) {
	n := newFakeNode()
	n.more = maxRead + 1
	table := func(want Counts) {
		t.Helper()
		got := n.loaded(t, func(o *Options) {
			o.Format, o.In = "csv", strings.NewReader("id,text,date\n1,one,2026-01-01\n2,two,2026-01-01\n")
			o.Of = func(string) (importer.Options, error) { return importer.Options{Namespace: "home", Agent: me}, nil }
		}, "-")
		if want.Namespace = "home"; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	table(Counts{Found: 2, Created: 2})
	table(Counts{Found: 2, Duplicates: 2})
	n.records[0].now().Metadata = json.RawMessage(`{"imported":{"from":"csv","says":"else"}}`) // as its table said otherwise in between
	table(Counts{Found: 2, Updated: 1, Duplicates: 1})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range maxLooked + 50 {
		n.capture("home", memory.Capture{Agent: me, Text: fmt.Sprint("memory ", i), Scope: memory.ScopeTeam, OccurredAt: &at}, memory.OriginCapture)
	}
	all := n.exports("home")
	n.takes(t, "home", all, nil, Counts{Found: len(all), Duplicates: len(all)})
	if n.lists > 0 {
		t.Errorf("%d pages were read", n.lists)
	}
	// What was forgotten is not read for them either, where that is much.
	for _, rec := range n.living("home") {
		if _, err := n.Forget(t.Context(), "home", rec.RecordID, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	n.more, n.records, n.ids = 0, n.records[2:], map[string]*fakeRecord{}
	table(Counts{Found: 2, Created: 2})
	if n.pasts > 0 {
		t.Errorf("%d histories were read", n.pasts)
	}
}
