package loader

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		o.Confirm = func(question string) error {
			asked = question
			return memory.Errorf(memory.CodeInvalid, "no")
		}
	}, dir)
	if err == nil || asked != "Forget 1 memory of notes that are no longer there? [y/N]" || len(n.living("team")) != 2 {
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
		found, err := Imported(t.Context(), n, "team", "ann", From(c.source, c.format))
		if err != nil || len(found) != c.want {
			t.Errorf("%q %q: %d, want %d, %v", c.source, c.format, len(found), c.want, err)
		}
	}
	found, err := Imported(t.Context(), n, "team", "ann", From("notes", "csv"))
	if err != nil {
		t.Fatal(err)
	}
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
