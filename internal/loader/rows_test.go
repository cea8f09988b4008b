package loader

import (
	"path/filepath"
	"strings"
	"testing"

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
