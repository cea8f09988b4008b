package loader

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

func prune(o *Options) { o.Prune = true }

// Nothing is pruned where something could not be read, also not of what could.
func TestNothingIsPrunedWhereSomethingCannotBeRead(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n", "b.md": "# B\nb\n"})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n")
	put(t, filepath.Join(dir, "b.md"), "# B\nb \xe9\n")
	sum, said, err := n.load(t, prune, dir)
	if err != nil || sum.Malformed != 1 || sum.Totals().Created != 0 || !strings.Contains(said, "nothing was pruned: 1 item could not be read") {
		t.Errorf("%+v, %v: %s", sum, err, said)
	}
	if got := n.living("team"); len(got) != 3 {
		t.Errorf("left %q", texts(got))
	}
	put(t, filepath.Join(dir, "b.md"), "# B\nb\n")
	if c := n.loaded(t, prune, dir); c.Pruned != 1 || c.Gone != 0 || len(n.living("team")) != 2 {
		t.Errorf("%+v, left %q", c, texts(n.living("team")))
	}
}

// A prune reaches what was imported from the same source, in the same format, and nothing else;
// of one file it reaches that file.
func TestAPruneTakesNoOtherSource(t *testing.T) {
	n := newFakeNode()
	notes := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n", "b.md": "# B\nb\n\n# Gone\nfrom b\n"})
	others := filepath.Join(t.TempDir(), "others")
	put(t, filepath.Join(others, "a.md"), "# Three\nthird\n")
	n.loaded(t, nil, notes)
	n.loaded(t, nil, others)
	n.capture("team", memory.Capture{Agent: "bob", Text: "mine", Metadata: []byte(`{"imported":{"from":"markdown","source":"notes","path":"a.md","hash":"x"}}`)}, memory.OriginCapture)
	put(t, filepath.Join(notes, "a.md"), "# One\nfirst\n")
	put(t, filepath.Join(notes, "b.md"), "# B\nb\n")
	if c := n.loaded(t, prune, filepath.Join(notes, "a.md")); c.Pruned != 1 {
		t.Errorf("%+v", c)
	}
	if got, want := texts(n.living("team")), []string{"# B\nb", "# Gone\nfrom b", "# One\nfirst", "# Three\nthird", "mine"}; !slices.Equal(got, want) {
		t.Errorf("left %q", got)
	}
	if err := os.Remove(filepath.Join(notes, "a.md")); err != nil {
		t.Fatal(err)
	}
	if c := n.loaded(t, prune, notes); c.Pruned != 2 {
		t.Errorf("%+v", c)
	}
	if got, want := texts(n.living("team")), []string{"# B\nb", "# Three\nthird", "mine"}; !slices.Equal(got, want) {
		t.Errorf("left %q", got)
	}
}

// A no to the question is no prune.
func TestAPruneAsks(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n"})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n")
	asked := ""
	_, _, err := n.load(t, func(o *Options) {
		o.Prune = true
		o.Confirm = func(q Question) error {
			asked = q.What
			return memory.Errorf(memory.CodeInvalid, "no")
		}
	}, dir)
	if err == nil || asked != "Forget 1 memory of notes that are no longer there?" || len(n.living("team")) != 2 {
		t.Errorf("%v, asked %q", err, asked)
	}
}

// What is taken back fits the source and the format, and was imported.
func TestImportedIsOfASourceAndAFormat(t *testing.T) {
	n := newFakeNode()
	n.loaded(t, nil, folder(t, map[string]string{"a.md": "# One\nmarkdown of notes\n"}))
	others := filepath.Join(t.TempDir(), "others")
	put(t, filepath.Join(others, "a.md"), "# One\nmarkdown of others\n")
	n.loaded(t, nil, others)
	csv := filepath.Join(t.TempDir(), "notes")
	put(t, csv, "text\ncsv of notes\n")
	n.loaded(t, func(o *Options) { o.Format = "csv" }, csv)
	n.capture("team", memory.Capture{Agent: "bob", Text: "mine", Metadata: []byte(`{"imported":{"from":"markdown","source":"notes"}}`)}, memory.OriginCapture)
	for _, c := range []struct {
		source, format string
		want           int
	}{{"notes", "", 2}, {"", "markdown", 2}, {"notes", "markdown", 1}, {"others", "csv", 0}, {"", "", 3}} {
		if found := n.from(t, c.source, c.format); len(found) != c.want {
			t.Errorf("%q %q: %d, want %d", c.source, c.format, len(found), c.want)
		}
	}
	found := n.from(t, "notes", "csv")
	bar := Bar{func(memory.Progress) {}, func() {}}
	for range 2 { // what is forgotten already is no error
		if err := Forget(t.Context(), n, "team", "ann", found, bar); err != nil {
			t.Error(err)
		}
	}
	if got := texts(n.living("team")); len(got) != 3 || slices.Contains(got, "csv of notes") {
		t.Errorf("left %q", got)
	}
}

// A prune of a source that was never imported brought all of it in, under whatever name; now it is
// told, nothing is touched, and the names that are there are named.
func TestAPruneOfWhatWasNeverImported(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n", "b.md": "# Two\nsecond\n"})
	refused := func(what, message, hint string, change func(*Options), files ...string) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			before := n.living("team")
			_, said, err := n.load(t, func(o *Options) {
				o.Prune, o.DryRun = true, dry
				change(o)
			}, files...)
			if memory.CodeOf(err) != memory.CodeNotFound || !strings.Contains(err.Error(), message) || !strings.Contains(memory.AsError(err).Hint, hint) {
				t.Errorf("%s, dry %v: %v, hint %q: %s", what, dry, err, memory.AsError(err).Hint, said)
			}
			if after := n.living("team"); !slices.Equal(texts(after), texts(before)) {
				t.Errorf("%s, dry %v: left %q of %q", what, dry, texts(after), texts(before))
			}
		}
	}
	as := func(format, name string) func(*Options) {
		return func(o *Options) {
			o.Format = format
			o.Of = func(string) (importer.Options, error) {
				return importer.Options{Namespace: "team", Agent: "ann", Source: name}, nil
			}
		}
	}
	nothing := "nothing in team was imported from notes (markdown) before"
	refused("an empty namespace", nothing, "without --prune it is", as("", ""), dir)
	n.loaded(t, nil, dir)
	refused("a name that is misspelt", "from nots (markdown)", "from notes (markdown): --source NAME", as("", "nots"), dir)
	refused("one file", "from nots (markdown)", "from notes (markdown): --source NAME", as("", "nots"), filepath.Join(dir, "a.md"))
	refused("another format", "from notes (obsidian)", "from notes (markdown)", as("obsidian", ""), dir)
	empty := filepath.Join(t.TempDir(), "notes")
	put(t, filepath.Join(empty, "a.md"), "\n")
	refused("an empty folder", "it holds nothing to import", "--take-back", as("", ""), empty)
	// One file that is new in a folder that is known takes nothing else.
	put(t, filepath.Join(dir, "c.md"), "# Three\nthird\n")
	if c := n.loaded(t, prune, filepath.Join(dir, "c.md")); c.Created != 1 || c.Pruned != 0 || len(n.living("team")) != 3 {
		t.Errorf("%+v", c)
	}
	// What held something once is known, whoever forgot it.
	for _, r := range n.records {
		r.forgotten = true
	}
	if c := n.loaded(t, prune, dir); c.Forgotten != 3 || c.Pruned != 0 {
		t.Errorf("%+v", c)
	}
	// What is no files is imported, and the flag told.
	csv := filepath.Join(t.TempDir(), "file.csv")
	put(t, csv, "text\nof csv\n")
	sum, said, err := n.load(t, prune, csv, dir)
	if err != nil || sum.Totals().Created != 1 || !strings.Contains(said, "file.csv: --prune does nothing there") {
		t.Errorf("%+v, %v: %s", sum, err, said)
	}
}

// A vault of the same name is another source than a folder of notes.
func TestAPruneTakesNoOtherFormat(t *testing.T) {
	n := newFakeNode()
	vault := filepath.Join(t.TempDir(), "notes")
	put(t, filepath.Join(vault, ".obsidian", "app.json"), "{}")
	put(t, filepath.Join(vault, "v.md"), "# V\nof the vault\n")
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n"})
	n.loaded(t, nil, vault)
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n")
	if c := n.loaded(t, prune, dir); c.Pruned != 1 || c.Gone != 0 {
		t.Errorf("%+v", c)
	}
	if got := texts(n.living("team")); !slices.Equal(got, []string{"# One\nfirst", "# V\nof the vault"}) {
		t.Errorf("left %q", got)
	}
}

// stuck is a node that gives one page again and again.
type stuck struct{ *fakeNode }

func (n stuck) List(ctx context.Context, ns string, opts client.ListOptions) (memory.RecordList, error) {
	opts.Cursor = ""
	page, err := n.fakeNode.List(ctx, ns, opts)
	page.Cursor = "c"
	return page, err
}

// A list that does not end is an error, and not taken for all that is there.
func TestAListThatDoesNotEnd(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	n.loaded(t, nil, dir)
	if _, _, err := loadInto(t, stuck{n}, nil, dir); memory.CodeOf(err) != memory.CodeInternal || !strings.Contains(err.Error(), "the same cursor twice") {
		t.Errorf("%v", err)
	}
}

// A page that holds nothing the filter lets through is not the last one.
func TestAnEmptyPageIsNotTheLastOne(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n\n# Three\nthird\n"})
	n.loaded(t, nil, dir)
	found := 0
	if err := Imported(t.Context(), sparse{n}, "team", me, memory.Filter{}, func(memory.Record, importer.Provenance) { found++ }); err != nil || found != 3 {
		t.Errorf("%d, %v", found, err)
	}
}

// sparse is a node that has an empty page in front of each other one.
type sparse struct{ *fakeNode }

func (n sparse) List(ctx context.Context, ns string, opts client.ListOptions) (memory.RecordList, error) {
	before, full := strings.CutPrefix(opts.Cursor, "full ")
	if !full {
		return memory.RecordList{Cursor: "full " + opts.Cursor}, nil
	}
	opts.Cursor = before
	return n.fakeNode.List(ctx, ns, opts)
}
