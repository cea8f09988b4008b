package loader

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/internal/importer"
	"mneme/memory"
)

// steps is a file with a section below the same heading for each text.
func steps(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "# Steps\n%s\n\n", text)
	}
	return b.String()
}

// recordsOf are the ids of the living records by the last word of what they say.
func (n *fakeNode) recordsOf() map[string]string {
	out := map[string]string{}
	for _, rec := range n.living("team") {
		words := strings.Fields(rec.Text)
		out[words[len(words)-1]] = rec.RecordID
	}
	return out
}

// A section put before one of the same heading had the two memories swap their texts. Each keeps
// its record, and only what is new is one more.
func TestSectionsOfOneHeadingSwappedTheirTexts(t *testing.T) {
	front := func(owner, text string) string { return "---\nowner: " + owner + "\n---\n" + text }
	for name, c := range map[string]struct {
		before, after          string
		created, updated, gone int
		became, stays          string // old=new words of one record, and words of those that stay
	}{
		"in front":                          {before: steps("a", "b"), after: steps("x", "a", "b"), created: 1, stays: "a b"},
		"in the middle":                     {before: steps("a", "b"), after: steps("a", "x", "b"), created: 1, stays: "a b"},
		"several":                           {before: steps("a", "b", "c"), after: steps("x", "a", "y", "b", "c", "z"), created: 3, stays: "a b c"},
		"the first is removed":              {before: steps("a", "b", "c"), after: steps("b", "c"), gone: 1, stays: "b c"},
		"one is removed":                    {before: steps("a", "b", "c"), after: steps("a", "c"), gone: 1, stays: "a c"},
		"two change places":                 {before: steps("a", "b"), after: steps("b", "a"), stays: "a b"},
		"in front, and one edited":          {before: steps("a", "b"), after: steps("x", "a", "b-2"), created: 1, updated: 1, stays: "a", became: "b=b-2"},
		"removed, and one edited":           {before: steps("a", "b", "c"), after: steps("b", "c-2"), updated: 1, gone: 1, stays: "b", became: "c=c-2"},
		"all edited":                        {before: steps("a", "b"), after: steps("a-2", "b-2"), updated: 2, became: "a=a-2 b=b-2"},
		"in front, and other front matter":  {before: front("ann", steps("a", "b")), after: front("bob", steps("x", "a", "b")), created: 1, updated: 2, stays: "a b"},
		"removed, and other front matter":   {before: front("ann", steps("a", "b", "c")), after: front("bob", steps("a", "c")), updated: 2, gone: 1, stays: "a c"},
		"all edited but the last, in front": {before: steps("a", "b", "c"), after: steps("c", "a-2", "b-2"), updated: 2, stays: "c", became: "a=a-2 b=b-2"},
		"one edited between two":            {before: steps("a", "b", "c"), after: steps("a", "b-2", "c"), updated: 1, stays: "a c", became: "b=b-2"},
		"two edited, and one in front":      {before: steps("a", "b", "c"), after: steps("x", "a", "b-2", "c-2"), created: 1, updated: 2, stays: "a", became: "b=b-2 c=c-2"},
		"twins, and one in front":           {before: steps("a", "a"), after: steps("x", "a", "a"), created: 1},
	} {
		n := newFakeNode()
		dir := folder(t, map[string]string{"a.md": c.before})
		n.loaded(t, nil, dir)
		was := n.recordsOf()
		put(t, filepath.Join(dir, "a.md"), c.after)
		got := n.same(t, name, nil, dir)
		if got.Created != c.created || got.Updated != c.updated || got.Gone != c.gone || got.Conflicts+got.Rejected != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		is := n.recordsOf()
		for _, word := range strings.Fields(c.stays) {
			if is[word] != was[word] {
				t.Errorf("%s: %s was %s, and is %s", name, word, was[word], is[word])
			}
		}
		for _, pair := range strings.Fields(c.became) {
			if old, now, _ := strings.Cut(pair, "="); is[now] != was[old] {
				t.Errorf("%s: %s was %s, and %s is %s", name, old, was[old], now, is[now])
			}
		}
		uris := len(n.living("team"))
		if again := n.same(t, name, nil, dir); again.Created+again.Updated+again.Conflicts != 0 || again.Gone != c.gone || len(n.living("team")) != uris {
			t.Errorf("%s, again: %+v", name, again)
		}
		// A prune takes what is gone, and nothing else.
		sum, _, err := n.load(t, func(o *Options) { o.Prune, o.DryRun = true, true }, dir)
		if err != nil || len(sum.Forget) != c.gone {
			t.Errorf("%s, to be pruned: %v, %v", name, sum, err)
		}
		if got := n.loaded(t, prune, dir); got.Pruned != c.gone || got.Gone != 0 {
			t.Errorf("%s, pruned: %+v", name, got)
		}
		left := texts(n.living("team"))
		fresh := newFakeNode()
		fresh.loaded(t, nil, dir)
		if want := texts(fresh.living("team")); !slices.Equal(left, want) {
			t.Errorf("%s: left %q, the file says %q", name, left, want)
		}
		// And what it was before comes back.
		put(t, filepath.Join(dir, "a.md"), c.before)
		n.loaded(t, prune, dir)
		fresh = newFakeNode()
		fresh.loaded(t, nil, dir)
		if left, want := texts(n.living("team")), texts(fresh.living("team")); !slices.Equal(left, want) {
			t.Errorf("%s, back: left %q, the file says %q", name, left, want)
		}
	}
}

// An import that was cut off after any of its memories is taken up without a second one.
func TestAnInsertionThatWasCutOffIsTakenUp(t *testing.T) {
	for arrives := range 4 {
		n := newFakeNode()
		dir := folder(t, map[string]string{"a.md": steps("a", "b")})
		n.loaded(t, nil, dir)
		was := n.recordsOf()
		put(t, filepath.Join(dir, "a.md"), steps("x", "y", "a", "z", "b"))
		left := arrives
		n.refuse = func(memory.Capture) *memory.ItemError {
			if left--; left < 0 {
				return &memory.ItemError{Code: memory.CodeQuota, Detail: "cut off"}
			}
			return nil
		}
		if _, _, err := n.load(t, nil, dir); err != nil && arrives == 3 {
			t.Error(err)
		}
		n.refuse = nil
		if c := n.same(t, "taken up", nil, dir); c.Created != 3-arrives || c.Updated+c.Conflicts != 0 || c.Duplicates != 2+arrives {
			t.Errorf("after %d: %+v", arrives, c)
		}
		is := n.recordsOf()
		if len(is) != 5 || len(n.living("team")) != 5 || is["a"] != was["a"] || is["b"] != was["b"] {
			t.Errorf("after %d: %v, it was %v", arrives, is, was)
		}
	}
}

// What was forgotten of several sections of one heading stays so, and none of the others becomes it.
func TestAForgottenSectionOfSeveralStaysSo(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("x", "a")})
	n.loaded(t, nil, dir)
	was := n.recordsOf()
	n.named("mem://team/notes/a.md#steps").forgotten = true
	for _, c := range []struct {
		file                        string
		updated, created, forgotten int
	}{{steps("x", "a"), 0, 0, 1}, {steps("x", "a-2"), 1, 0, 1}, {steps("a-3", "x"), 1, 0, 1}, {steps("n", "x", "a-3"), 0, 1, 1}, {steps("n", "x", "a-4"), 1, 0, 1}} {
		put(t, filepath.Join(dir, "a.md"), c.file)
		got := n.same(t, c.file, nil, dir)
		if got.Updated != c.updated || got.Created != c.created || got.Forgotten != c.forgotten {
			t.Errorf("%q: %+v", c.file, got)
		}
	}
	if is := n.recordsOf(); is["a-4"] != was["a"] || is["x"] != "" || len(is) != 2 {
		t.Errorf("%v, it was %v", is, was)
	}
	if c := n.same(t, "again", again, dir); c.Created != 1 || c.Updated != 0 {
		t.Errorf("again: %+v", c)
	}
	if got := texts(n.living("team")); !slices.Equal(got, []string{"# Steps\na-4", "# Steps\nn", "# Steps\nx"}) {
		t.Errorf("%q", got)
	}
}

// A text that somebody revised is found by the order, and an export in between changes nothing.
func TestSectionsOfOneHeadingOutliveExports(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("a", "b")})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), steps("x", "a", "b"))
	n.loaded(t, nil, dir)
	was := n.recordsOf()
	exported, _ := n.exportedFolder(t)
	if c := n.loaded(t, nil, exported); c.Duplicates != 3 || c.Created+c.Updated+c.Conflicts != 0 {
		t.Errorf("%+v", c)
	}
	put(t, filepath.Join(dir, "a.md"), steps("x", "y", "a", "b"))
	if c := n.loaded(t, nil, dir); c.Created != 1 || c.Updated != 0 {
		t.Errorf("%+v", c)
	}
	for word, record := range n.recordsOf() {
		if word != "y" && was[word] != record {
			t.Errorf("%s is %s, it was %s", word, record, was[word])
		}
	}
}

// under is a file of sections below one heading each, as "A/a B/b".
func under(sections string) string {
	var b strings.Builder
	for _, s := range strings.Fields(sections) {
		above, text, _ := strings.Cut(s, "/")
		fmt.Fprintf(&b, "# %s\n\n## Steps\n%s\n\n", above, text)
	}
	return b.String()
}

// A section that stands below other headings now is the same memory, beside others of those headings too.
func TestSectionsMoveBesideOthers(t *testing.T) {
	for name, c := range map[string]struct {
		before, after          string
		created, updated, gone int
		stays                  string
	}{
		"two of one text":              {"A/a B/a", "C/a D/a", 0, 2, 0, ""},
		"beside one":                   {"A/a B/b", "B/a B/b", 0, 1, 0, "a b"},
		"in the place of one":          {"A/a A/b B/c", "A/c A/b", 0, 1, 1, "b c"},
		"one of several":               {"A/a A/b", "A/b C/a", 0, 1, 0, "a b"},
		"and another one in its place": {"A/a", "A/x C/a", 1, 1, 0, ""},
	} {
		n := newFakeNode()
		dir := folder(t, map[string]string{"a.md": under(c.before)})
		n.loaded(t, nil, dir)
		was := n.recordsOf()
		put(t, filepath.Join(dir, "a.md"), under(c.after))
		if got := n.same(t, name, nil, dir); got.Created != c.created || got.Updated != c.updated || got.Gone != c.gone || got.Conflicts != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		is := n.recordsOf()
		for _, word := range strings.Fields(c.stays) {
			if is[word] != was[word] {
				t.Errorf("%s: %s was %s, and is %s", name, word, was[word], is[word])
			}
		}
		n.loaded(t, prune, dir)
		fresh := newFakeNode()
		fresh.loaded(t, nil, dir)
		if left, want := texts(n.living("team")), texts(fresh.living("team")); !slices.Equal(left, want) {
			t.Errorf("%s: left %q, the file says %q", name, left, want)
		}
		if got := n.same(t, name, nil, dir); got.Created+got.Updated+got.Gone != 0 {
			t.Errorf("%s, again: %+v", name, got)
		}
	}
}

// What was forgotten of sections that say the same is as many as were forgotten.
func TestTwinsAreForgottenOneByOne(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("a", "a", "b")})
	n.loaded(t, nil, dir)
	n.records[0].forgotten, n.records[1].forgotten = true, true
	put(t, filepath.Join(dir, "a.md"), steps("a", "a", "a", "b"))
	for range 2 { // of one read and of two: it is there twice for the second
		if c := n.loaded(t, nil, dir, dir); c.Forgotten != 4 || len(n.living("team")) != 2 {
			t.Errorf("%+v, left %q", c, texts(n.living("team")))
		}
	}
}

// A file that says again what it said when that was forgotten says it of the memory that came since.
func TestAFileThatGoesBackRevises(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("a")})
	n.loaded(t, nil, dir)
	n.records[0].forgotten = true
	put(t, filepath.Join(dir, "a.md"), steps("b"))
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), steps("a"))
	if c := n.same(t, "back", nil, dir); c.Updated != 1 || c.Gone+c.Forgotten != 0 {
		t.Errorf("%+v", c)
	}
}

// Two that were edited at once, where one before them was forgotten, are told by their uris.
func TestEditedBesideAForgottenOne(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("x", "a")})
	n.loaded(t, nil, dir)
	was := n.recordsOf()
	n.records[0].forgotten = true
	put(t, filepath.Join(dir, "a.md"), steps("x-2", "a-2"))
	if c := n.same(t, "edited", nil, dir); c.Updated != 1 || c.Created != 1 || n.recordsOf()["a-2"] != was["a"] {
		t.Errorf("%+v, %v, it was %v", c, n.recordsOf(), was)
	}
}

// One's own sections are revised as those of the team are, and a file that is named twice is there once.
func TestOnesOwnSectionsAreRevised(t *testing.T) {
	own := func(o *Options) {
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "team", Agent: "ann", Scope: memory.ScopeAgent}, nil
		}
	}
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": steps("a", "b"), "b.md": steps("c")})
	if c := n.loaded(t, own, dir); c.Created != 3 {
		t.Errorf("%+v", c)
	}
	put(t, filepath.Join(dir, "a.md"), steps("x", "a", "b-2"))
	if c := n.loaded(t, own, dir, dir); c.Created != 1 || c.Updated != 1 || c.Duplicates != 6 || c.Gone != 0 || len(n.living("team")) != 4 {
		t.Errorf("%+v", c)
	}
}

// No more than so much of a file is held. Behind that it is settled in parts, and all of it is there once.
func TestWhatIsHeldIsBounded(t *testing.T) {
	n := newFakeNode()
	var before, after []string
	for i := range 40 {
		before = append(before, fmt.Sprint("text-", i))
		after = append(after, fmt.Sprint("text-", i), fmt.Sprint("new-", i))
	}
	dir := folder(t, map[string]string{"a.md": "---\nowner: ann\n---\n" + steps(before...)})
	n.loaded(t, nil, dir)
	was := n.recordsOf()
	put(t, filepath.Join(dir, "a.md"), "---\nowner: bob\n---\n"+steps(after...))
	var said strings.Builder
	l := newLoad(n, plain(&said))
	l.known.room = 2000
	most := 0
	l.send.bar = l.opt.Bar("")
	n.read = func(*memory.Record) { most = max(most, l.known.file.holds) }
	if err := l.read(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	c := *l.summary.Namespaces[0]
	if c.Found != 80 || c.Created != 40 || c.Updated != 40 || c.Gone+c.Conflicts+c.Rejected != 0 || most < 1000 || most > 3000 {
		t.Errorf("%+v, held %d bytes", c, most)
	}
	is := n.recordsOf()
	for _, word := range before {
		if is[word] != was[word] {
			t.Errorf("%s was %s, and is %s", word, was[word], is[word])
		}
	}
	if c := n.same(t, "again", nil, dir); c.Duplicates != 80 || len(is) != 80 {
		t.Errorf("%+v, %d", c, len(is))
	}
}
