package loader

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

func again(o *Options) { o.Again = true }

// same imports a folder dry and in earnest, and both have to say the same.
func (n *fakeNode) same(t *testing.T, what string, change func(*Options), files ...string) Counts {
	t.Helper()
	dry := n.loaded(t, func(o *Options) {
		if change != nil {
			change(o)
		}
		o.DryRun = true
	}, files...)
	is := n.loaded(t, change, files...)
	if dry.Found != is.Found || dry.Duplicates != is.Duplicates || dry.Updated != is.Updated || dry.Forgotten != is.Forgotten || dry.Gone != is.Gone {
		t.Errorf("%s: dry %+v, and then %+v", what, dry, is)
	}
	return is
}

// What a person forgets stays so, into whatever it was revised, and below whatever headings.
func TestWhatWasRevisedAndForgottenStaysSo(t *testing.T) {
	const first = "# A\n\n## One\nfirst\n\n## Two\nsecond\n"
	edited, moved := strings.Replace(first, "first", "first, edited", 1), strings.Replace(first, "# A\n", "# B\n", 1)
	for name, steps := range map[string][]string{ // what the file says; "" = one is forgotten
		"edited":                     {first, edited, "", edited},
		"moved":                      {first, moved, "", moved},
		"forgotten, and moved":       {first, "", moved},
		"edited, forgotten, moved":   {first, edited, "", strings.Replace(edited, "# A\n", "# B\n", 1)},
		"forgotten, and back to one": {first, edited, "", edited, edited},
	} {
		n := newFakeNode()
		dir := folder(t, nil)
		for i, text := range steps {
			if text == "" {
				for _, r := range n.records {
					r.forgotten = r.forgotten || strings.Contains(r.now().URI, "/one")
				}
				continue
			}
			put(t, filepath.Join(dir, "a.md"), text)
			c := n.same(t, name, nil, dir)
			if i == len(steps)-1 && (c.Forgotten != 1 || c.Created != 0) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if got := n.living("team"); len(got) != 1 {
			t.Errorf("%s: %q", name, texts(got))
		}
		if c := n.same(t, name, again, dir); c.Created != 1 || c.Forgotten != 0 {
			t.Errorf("%s, again: %+v", name, c)
		}
		if c := n.same(t, name, nil, dir); c.Duplicates != 2 || c.Created+c.Forgotten != 0 {
			t.Errorf("%s, brought back: %+v", name, c)
		}
		put(t, filepath.Join(dir, "a.md"), strings.Replace(first, "first", "something else", 1))
		n.named("mem://team/" + uriOf(n, "/one")).forgotten = true
		if c := n.same(t, name, nil, dir); c.Created < 1 || c.Forgotten != 0 {
			t.Errorf("%s, says something else: %+v", name, c)
		}
	}
}

// uriOf is the uri of the living memory whose uri ends so.
func uriOf(n *fakeNode, end string) string {
	for uri := range n.living("team") {
		if strings.HasSuffix(uri, end) {
			return uri
		}
	}
	return ""
}

// What an import took away comes back when its file does, as often as it likes, and what a
// person forgot does not come with it.
func TestWhatWasPrunedComesBack(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n", "b.md": "# B\nb\n"})
	n.loaded(t, nil, dir)
	n.named("mem://team/notes/a.md#two").forgotten = true
	for range 3 { // a branch, and back
		if err := os.Remove(filepath.Join(dir, "a.md")); err != nil {
			t.Fatal(err)
		}
		if c := n.loaded(t, prune, dir); c.Pruned != 1 {
			t.Errorf("%+v", c)
		}
		put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n\n# Two\nsecond\n")
		if c := n.same(t, "back", nil, dir); c.Created != 1 || c.Duplicates != 1 || c.Forgotten != 1 {
			t.Errorf("%+v", c)
		}
	}
	// An import that was killed between its note and the forget took nothing away.
	one := n.named("mem://team/notes/a.md#one").now()
	meta := one.Metadata
	if err := Forget(t.Context(), killed{n}, "team", "ann", []memory.Record{*one}, Bar{func(memory.Progress) {}, func() {}}); err == nil {
		t.Fatal("it was not killed")
	}
	if c := n.same(t, "killed", nil, dir); c.Updated != 1 || c.Duplicates != 1 {
		t.Errorf("%+v", c)
	}
	if is := n.named("mem://team/notes/a.md#one").now(); string(is.Metadata) != string(meta) {
		t.Errorf("%s, it was %s", is.Metadata, meta)
	}
}

// What was taken back of any format comes back, and what a person forgot is told as that.
func TestWhatWasTakenBackComesBack(t *testing.T) {
	for format, text := range map[string]string{
		"jsonl":       `{"text":"first"}` + "\n" + `{"text":"second","metadata":{"k":1}}` + "\n",
		"csv":         "id,text\n1,first\n2,second\n",
		"claude-code": `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"first"}}` + "\n" + `{"type":"user","uuid":"u2","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"second"}}` + "\n",
	} {
		n := newFakeNode()
		file := filepath.Join(t.TempDir(), "file")
		put(t, file, text)
		load := func(change func(*Options)) Counts {
			t.Helper()
			return n.loaded(t, func(o *Options) {
				o.Format = format
				if change != nil {
					change(o)
				}
			}, file)
		}
		if c := load(nil); c.Created != 2 {
			t.Fatalf("%s: %+v", format, c)
		}
		n.records[0].forgotten = true
		if c := load(nil); c.Duplicates != 1 || c.Forgotten != 1 || c.Found != 2 {
			t.Errorf("%s, forgotten: %+v", format, c)
		}
		for range 2 {
			found := n.from(t, "", format)
			if len(found) != 1 {
				t.Fatalf("%s: %d", format, len(found))
			}
			if err := Forget(t.Context(), n, "team", "ann", found, Bar{func(memory.Progress) {}, func() {}}); err != nil {
				t.Fatal(err)
			}
			if c := load(nil); c.Created != 1 || c.Forgotten != 1 || c.Found != 2 {
				t.Errorf("%s, taken back: %+v", format, c)
			}
		}
		if c := load(again); c.Created != 1 || c.Duplicates != 1 || c.Forgotten != 0 {
			t.Errorf("%s, again: %+v", format, c)
		}
		if c := load(nil); c.Duplicates != 2 || c.Created+c.Forgotten != 0 {
			t.Errorf("%s, brought back: %+v", format, c)
		}
	}
}

// The export of a forgotten memory does not bring it back, but where it is asked to.
func TestAnExportOfWhatWasForgotten(t *testing.T) {
	for _, id := range []string{"", "1"} {
		n := newFakeNode()
		n.capture("team", memory.Capture{ID: id, Agent: "ann", Text: "x", Scope: memory.ScopeTeam}, memory.OriginCapture)
		dir, _ := n.exportedFolder(t)
		n.records[0].forgotten = true
		if c := n.same(t, "forgotten", nil, dir); c.Forgotten != 1 || c.Created+c.Duplicates != 0 {
			t.Errorf("%q: %+v", id, c)
		}
		if c := n.same(t, "again", again, dir); c.Created != 1 || c.Forgotten != 0 {
			t.Errorf("%q, again: %+v", id, c)
		}
		for _, change := range []func(*Options){nil, again} {
			if c := n.loaded(t, change, dir); c.Duplicates != 1 || c.Created+c.Forgotten != 0 {
				t.Errorf("%q, brought back: %+v", id, c)
			}
		}
	}
}

// killed is a node of whose client the process is killed before it forgets.
type killed struct{ *fakeNode }

func (killed) Forget(context.Context, string, string, client.WriteOptions) (memory.ForgetResponse, error) {
	return memory.ForgetResponse{}, memory.Errorf(memory.CodeUnavailable, "killed")
}

// What an import took away and brought back, and a person forgot then, is forgotten.
func TestWhatCameBackAndWasForgottenStaysSo(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n", "b.md": "# B\nb\n"})
	csv := filepath.Join(t.TempDir(), "file.csv")
	put(t, csv, "id,text\n1,of csv\n")
	load := func() Counts {
		t.Helper()
		sum, _, err := n.load(t, nil, dir, csv)
		if err != nil {
			t.Fatal(err)
		}
		return *sum.Namespaces[0]
	}
	load()
	if err := Forget(t.Context(), n, "team", me, append(n.from(t, "", "markdown"), n.from(t, "", "csv")...), Bar{func(memory.Progress) {}, func() {}}); err != nil {
		t.Fatal(err)
	}
	if c := load(); c.Created != 3 || c.Forgotten != 0 {
		t.Errorf("taken back: %+v", c)
	}
	for _, r := range n.records {
		r.forgotten = true
	}
	for range 2 {
		if c := load(); c.Created != 0 || c.Forgotten != 3 {
			t.Errorf("forgotten: %+v", c)
		}
	}
	for _, r := range n.records { // of what nobody can read any more the ids alone are known
		r.erased = true
	}
	if c := load(); c.Found != 3 || c.Rejected+c.Conflicts != 0 {
		t.Errorf("erased: %+v", c)
	}
}

// What others forgot that only says that it was imported forgets no section.
func TestWhatOnlySaysThatItWasImportedForgetsNothing(t *testing.T) {
	is := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	is.loaded(t, nil, dir)
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "x", Agent: "bob", Text: "mine", Conversation: "notes/a.md", Metadata: is.records[0].now().Metadata}, memory.OriginCapture)
	n.records[0].forgotten = true
	if c := n.loaded(t, nil, dir); c.Created != 1 || c.Forgotten != 0 {
		t.Errorf("%+v", c)
	}
}

// What an import took away of an export's home comes back with the export.
func TestWhatWasTakenBackAtHomeComesBack(t *testing.T) {
	n := newFakeNode()
	csv := filepath.Join(t.TempDir(), "file.csv")
	put(t, csv, "id,text,occurred_at\n1,of csv,2026-01-02\n")
	n.loaded(t, nil, csv)
	dir, _ := n.exportedFolder(t)
	if err := Forget(t.Context(), n, "team", me, n.from(t, "", "csv"), Bar{func(memory.Progress) {}, func() {}}); err != nil {
		t.Fatal(err)
	}
	if c := n.same(t, "taken back", nil, dir); c.Created != 1 || c.Forgotten != 0 {
		t.Errorf("%+v", c)
	}
}

// Nothing is derived from what was forgotten since it was imported.
func TestNothingIsDerivedFromWhatWasForgotten(t *testing.T) {
	line := func(id, text string, from ...string) memory.ExportLine {
		return memory.ExportLine{Capture: memory.Capture{Agent: "ann", Text: text, URI: "mem://home/" + id, DerivedFrom: from}, RecordID: id, Version: 1, Origin: memory.OriginCapture}
	}
	a, b := line("01ARZ3NDEKTSV4RRFFQ69G5FA1", "a"), line("01ARZ3NDEKTSV4RRFFQ69G5FA2", "b", "01ARZ3NDEKTSV4RRFFQ69G5FA1")
	n := newFakeNode()
	n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, a) }, "-")
	n.records[0].forgotten = true
	c := n.loaded(t, func(o *Options) { o.Format, o.In = "jsonl", lines(t, b, a) }, "-")
	rec := n.records[1].now()
	if p, _ := importer.ProvenanceOf(rec.Metadata); c.Created != 1 || c.Forgotten != 1 || len(rec.DerivedFrom) != 0 || p.Derived != a.RecordID {
		t.Errorf("%+v, derived from %q, %s", c, rec.DerivedFrom, rec.Metadata)
	}
}

// takeBack takes back what was imported in a format.
func (n *fakeNode) takeBack(t *testing.T, format string) {
	t.Helper()
	if err := Forget(t.Context(), n, "team", me, n.from(t, "", format), Bar{func(memory.Progress) {}, func() {}}); err != nil {
		t.Fatal(err)
	}
}

// What a person forgot, brought back with --again, and an import took away then, did not come
// back: the forgetting before counted.
func TestAForgettingBeforeHeldWhatAnImportTook(t *testing.T) {
	n := newFakeNode()
	const text = "# One\nfirst\n"
	dir := folder(t, map[string]string{"a.md": text, "b.md": "# B\nb\n"})
	forget := func() {
		t.Helper()
		n.named("mem://team/notes/a.md#one").forgotten = true
		if c := n.same(t, "forgotten", nil, dir); c.Forgotten != 1 || c.Created != 0 {
			t.Errorf("forgotten: %+v", c)
		}
		if c := n.same(t, "again", again, dir); c.Created != 1 || c.Forgotten != 0 {
			t.Errorf("again: %+v", c)
		}
	}
	back := func(created int) {
		t.Helper()
		if c := n.same(t, "back", nil, dir); c.Created != created || c.Forgotten != 0 {
			t.Errorf("back: %+v", c)
		}
	}
	n.loaded(t, nil, dir)
	for range 2 {
		forget()
		n.takeBack(t, "markdown")
		back(2)
		forget()
		if err := os.Remove(filepath.Join(dir, "a.md")); err != nil {
			t.Fatal(err)
		}
		n.loaded(t, prune, dir)
		put(t, filepath.Join(dir, "a.md"), text)
		back(1)
	}
	n.named("mem://team/notes/a.md#one").forgotten = true // and the last word is a person's
	if c := n.same(t, "forgotten at last", nil, dir); c.Forgotten != 1 || c.Created != 0 {
		t.Errorf("forgotten at last: %+v", c)
	}
}

// The same of a file of an export, at home.
func TestAForgettingBeforeHeldAnExportThatAnImportTook(t *testing.T) {
	for _, id := range []string{"", "1"} {
		n := newFakeNode()
		n.capture("team", memory.Capture{ID: id, Agent: "ann", Text: "x", Scope: memory.ScopeTeam}, memory.OriginCapture)
		dir, _ := n.exportedFolder(t)
		n.records[0].forgotten = true
		for range 2 {
			if c := n.same(t, "again", again, dir); c.Created != 1 {
				t.Errorf("%q, again: %+v", id, c)
			}
			n.takeBack(t, "")
			if c := n.same(t, "taken back", nil, dir); c.Created != 1 || c.Forgotten != 0 {
				t.Errorf("%q, taken back: %+v", id, c)
			}
			for _, r := range n.records {
				r.forgotten = true
			}
			if c := n.same(t, "forgotten", nil, dir); c.Created != 0 || c.Forgotten != 1 {
				t.Errorf("%q, forgotten: %+v", id, c)
			}
		}
	}
}

// Of two sections that say the same one was forgotten, and an import took the other: one comes
// back, whatever heading stands above them now.
func TestOfTwoThatSayTheSameOneComesBack(t *testing.T) {
	const text = "# A\n\n## One\nsame\n\n## One\nsame\n"
	for name, now := range map[string]string{"": text, "moved": strings.Replace(text, "# A", "# B", 1)} {
		n := newFakeNode()
		dir := folder(t, map[string]string{"a.md": text})
		if c := n.loaded(t, nil, dir); c.Created != 2 {
			t.Fatalf("%+v", c)
		}
		n.records[0].forgotten = true
		n.takeBack(t, "markdown")
		put(t, filepath.Join(dir, "a.md"), now)
		if c := n.same(t, name, nil, dir); c.Created != 1 || c.Forgotten != 1 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Of several forgotten memories that said the same a section was the one at its place, and else the one
// that was forgotten last; each is one section's.
func TestASectionWasTheOneAtItsPlace(t *testing.T) {
	at := func(uri string, at int) *past { return &past{uri: uri, own: "own", at: at} }
	here, first, last := at("a", 0), at("b", 1), at("c", 2)
	other := &past{uri: "d", own: "another", at: 9}
	item := importer.Item{Group: "g", Capture: memory.Capture{URI: "a"}, Provenance: &importer.Provenance{Hash: "own"}}
	for name, c := range map[string]struct {
		there []*past
		want  *past
	}{
		"at its place":              {[]*past{first, here, last}, here},
		"at its place, first":       {[]*past{here, last}, here},
		"the last one":              {[]*past{first, last, other}, last},
		"the last one, in front":    {[]*past{last, first}, last},
		"of two at its place":       {[]*past{at("a", 5), here, last}, nil},
		"says something else":       {[]*past{other}, nil},
		"that is another section's": {[]*past{{uri: "a", own: "own", claimed: true}, first}, first},
	} {
		f := &forgotten{groups: map[string][]*past{"g": c.there}}
		if name == "of two at its place" {
			c.want = c.there[0]
		}
		if got := f.section(item); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What comes back has an id that a node takes, however long that of the first was, and each time another one.
func TestWhatComesBackHasAnIDThatANodeTakes(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"a", strings.Repeat("x", memory.MaxClientID-9), strings.Repeat("x", memory.MaxClientID), strings.Repeat("y", memory.MaxClientID)} {
		for n := 2; n < 12; n++ {
			next := againID(id, n)
			if len(next) > memory.MaxClientID || seen[next] || next != againID(id, n) {
				t.Errorf("%q for the time %d of %q", next, n, id)
			}
			seen[next] = true
		}
	}
}
