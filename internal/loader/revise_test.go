package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/internal/likeness"
	"mneme/memory"
)

// metadata revises the metadata of the living record at a uri, as somebody beside the import does.
func (n *fakeNode) metadata(t *testing.T, uri string, change func(json.RawMessage) json.RawMessage) {
	t.Helper()
	rec := n.living("team")[uri]
	meta := change(rec.Metadata)
	if _, err := n.Revise(t.Context(), "team", rec.RecordID, memory.Revision{Metadata: &meta}, client.WriteOptions{As: me}); err != nil {
		t.Fatal(err)
	}
}

// A revision by an import dropped how often a memory was said, and whatever else others keep in
// its metadata. What the import wrote itself goes where the file has it no longer.
func TestARevisionDroppedWhatOthersKeep(t *testing.T) {
	for name, c := range map[string]struct{ file, first, second, third, uri string }{
		"markdown": {"a.md", "---\nowner: ann\n---\n# One\nfirst\n", "# One\nfirst, changed\n", "# One\nfirst\n", "notes/a.md#one"},
		"csv":      {"a.csv", "id,text,uri,owner\n1,first,u,ann\n", "id,text,uri\n1,\"first, changed\",u\n", "id,text,uri\n1,first,u\n", "u"},
	} {
		n := newFakeNode()
		dir := folder(t, map[string]string{c.file: c.first})
		file := filepath.Join(dir, c.file)
		n.loaded(t, nil, file)
		if !strings.Contains(string(n.living("team")[c.uri].Metadata), `"ann"`) {
			t.Fatalf("%s: %s", name, n.living("team")[c.uri].Metadata)
		}
		said := likeness.Said{Nonce: "n", Repeats: 3}
		n.metadata(t, c.uri, func(meta json.RawMessage) json.RawMessage { return likeness.Put(said.In(meta), "mine", "kept") })
		put(t, file, c.second)
		if c := n.loaded(t, nil, file); c.Updated != 1 {
			t.Errorf("%s: %+v", name, c)
		}
		meta := n.living("team")[c.uri].Metadata
		p, ok := importer.ProvenanceOf(meta)
		if likeness.SaidOf(meta) != said || !strings.Contains(string(meta), `"mine":"kept"`) || !ok || p.Taken || strings.Contains(string(meta), "ann") {
			t.Errorf("%s: %s", name, meta)
		}
		if c := n.loaded(t, nil, file); c.Duplicates != 1 || c.Updated != 0 {
			t.Errorf("%s, again: %+v", name, c)
		}
		put(t, file, c.third)
		if c := n.loaded(t, nil, file); c.Updated != 1 || likeness.SaidOf(n.living("team")[uriOf(n, "")].Metadata) != said {
			t.Errorf("%s, back: %+v", name, c)
		}
	}
}

// The same of an export that is imported elsewhere, from a folder that is written again.
func TestARevisionByAnExportElsewhereDroppedWhatOthersKeep(t *testing.T) {
	n := newFakeNode()
	home := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "ann", Text: "first", Scope: memory.ScopeTeam, URI: "mem://home/u", Metadata: json.RawMessage(`{"old":1,"both":1}`)},
		RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	dir := folder(t, nil)
	write := func() {
		t.Helper()
		text, err := importer.FormatExported(home)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "2016-07", home.RecordID+".md"), string(text))
	}
	write()
	n.loaded(t, nil, dir)
	n.metadata(t, "u", func(meta json.RawMessage) json.RawMessage { return likeness.Put(meta, "here", true) })
	home.Metadata, home.Version = json.RawMessage(`{"both":2,"new":2}`), 2
	write()
	if c := n.loaded(t, func(o *Options) { o.Revise = true }, dir); c.Updated != 1 {
		t.Errorf("%+v", c)
	}
	var is map[string]any
	if err := json.Unmarshal(n.living("team")["u"].Metadata, &is); err != nil || is["here"] != true || is["both"] != 2.0 || is["new"] != 2.0 || is["old"] != nil {
		t.Errorf("%v, %v", is, err)
	}
}

// Each thing that a file says of a memory is brought up to what the file says now, as who imports, and alone.
func TestEachFieldIsBroughtUpToDate(t *testing.T) {
	const head = "id,text,kind,role,tags,conversation,importance,occurred_at,agent,extra\n"
	first := strings.Split("1,text,fact,user,a|b,talk,0.5,2026-01-02,bob,x", ",")
	was := func(rec memory.Record) []string {
		importance := ""
		if rec.Importance != nil {
			importance = fmt.Sprint(*rec.Importance)
		}
		var meta struct{ Extra string }
		_ = json.Unmarshal(rec.Metadata, &meta)
		return []string{"1", rec.Text, string(rec.Kind), rec.Role, strings.Join(rec.Tags, "|"), rec.Conversation, importance, rec.OccurredAt.Format(time.DateOnly), rec.Agent, meta.Extra}
	}
	for at, changed := range map[int]string{1: "another text", 2: "decision", 3: "assistant", 4: "a", 5: "another talk", 6: "0.25", 7: "2025-12-31", 9: "y"} {
		n := newFakeNode()
		file := filepath.Join(t.TempDir(), "a.csv")
		load := func(row []string) Counts {
			t.Helper()
			put(t, file, head+strings.Join(row, ",")+"\n")
			return n.loaded(t, nil, file)
		}
		load(first)
		row := slices.Clone(first)
		row[at] = changed
		if c := load(row); c.Updated != 1 || c.Found != 1 {
			t.Errorf("%s: %+v", changed, c)
		}
		if is := was(*n.records[0].now()); !slices.Equal(is, row) || len(n.records) != 1 || n.records[0].now().Version != 2 {
			t.Errorf("it says %q, the file %q", is, row)
		}
		if c := load(row); c.Duplicates != 1 || c.Updated != 0 {
			t.Errorf("%s, again: %+v", changed, c)
		}
		row[8] = "carl" // who spoke stays
		if c := load(row); c.Conflicts+c.Rejected != 0 {
			t.Errorf("%s: %+v", changed, c)
		}
	}
}

// A message that is there with another text stands in conflict, and is not told as being there.
func TestAMessageWithAnotherTextIsAConflict(t *testing.T) {
	n := newFakeNode()
	file := filepath.Join(t.TempDir(), "s.jsonl")
	say := func(text string) (Counts, *Summary) {
		t.Helper()
		put(t, file, `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"`+text+`"}}`+"\n")
		sum, _, err := n.load(t, nil, file)
		if err != nil {
			t.Fatal(err)
		}
		return *sum.Namespaces[0], sum
	}
	say("first")
	n.records[0].given = "" // as of a version that wrote other metadata
	if c, _ := say("first"); c.Duplicates != 1 || c.Conflicts != 0 {
		t.Errorf("%+v", c)
	}
	if c, sum := say("second"); c.Conflicts != 1 || c.Duplicates != 0 || !strings.Contains(sum.Problems[0].Detail, "imported before with another text, as "+n.records[0].now().RecordID) {
		t.Errorf("%+v, %+v", c, sum.Problems)
	}
	n.records[0].forgotten = true
	if c, _ := say("second"); c.Forgotten != 1 || c.Found != 1 {
		t.Errorf("forgotten: %+v", c)
	}
}

// An edited export of a memory of this namespace shows all of its metadata: what is taken out of it
// goes, and numbers are compared as they are written.
func TestAnEditedExportSaysAllOfTheMetadata(t *testing.T) {
	n := newFakeNode()
	n.capture("team", memory.Capture{ID: "1", Agent: "ann", Text: "x", Scope: memory.ScopeTeam, Metadata: json.RawMessage(`{"a":1,"n":12345678901234567890}`)}, memory.OriginCapture)
	n.records[0].now().OccurredAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for old, changed := range map[string]string{`"a":1,`: ``, `34567890}`: `34567891}`} {
		dir, file := n.exportedFolder(t)
		edit(t, file(*n.records[0].now()), old, changed)
		if c := n.loaded(t, nil, dir); c.Updated != 1 {
			t.Errorf("%+v", c)
		}
	}
	if got := string(n.records[0].now().Metadata); got != `{"n":12345678901234567891}` {
		t.Errorf("%s", got)
	}
}

// refusing is a node that refuses revisions.
type refusing struct {
	*fakeNode
	code memory.Code
}

func (n refusing) Revise(context.Context, string, string, memory.Revision, client.WriteOptions) (memory.RevisionResponse, error) {
	return memory.RevisionResponse{}, memory.Errorf(n.code, "not that")
}

// A revision that is refused is named, and the rest goes in; one for which the node has no answer ends the import.
func TestARefusedRevisionEndsNothing(t *testing.T) {
	for code, ends := range map[memory.Code]bool{memory.CodeConflict: false, memory.CodeInvalid: false, memory.CodeTooLarge: false, memory.CodeNotFound: false, memory.CodeForbidden: true, memory.CodeInternal: true} {
		n := newFakeNode()
		dir := folder(t, map[string]string{"a.md": "# One\nfirst\n", "b.md": "# B\nb\n"})
		n.loaded(t, nil, dir)
		put(t, filepath.Join(dir, "a.md"), "# One\nfirst, changed\n\n# Two\nsecond\n")
		sum, _, err := loadInto(t, refusing{n, code}, nil, dir)
		if ends {
			if memory.CodeOf(err) != code {
				t.Errorf("%s: %v", code, err)
			}
			continue
		}
		if err != nil || len(sum.Problems) != 1 || sum.Problems[0].Code != code || sum.Totals().Created != 1 || sum.Totals().Conflicts+sum.Totals().Rejected != 1 || (sum.Totals().Conflicts == 1) != (code == memory.CodeConflict) {
			t.Errorf("%s: %+v, %v", code, sum, err)
		}
	}
}

// Each record that was made or revised is told, and no other.
func TestMadeIsTold(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n"})
	told := func() []string {
		t.Helper()
		var ids []string
		n.loaded(t, func(o *Options) { o.Made = func(id string) { ids = append(ids, id) } }, dir)
		return ids
	}
	one, two := "01J00000000000000000000001", "01J00000000000000000000002"
	if got := told(); !slices.Equal(got, []string{one, two}) {
		t.Errorf("%q", got)
	}
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst\n\n# Two\nsecond, changed\n")
	if got := told(); !slices.Equal(got, []string{two}) {
		t.Errorf("%q", got)
	}
}

// Another agent's own memory that came from an export is counted once, and its change is told.
func TestAnothersOwnOfAnExportIsCountedOnce(t *testing.T) {
	n := newFakeNode()
	exp := memory.ExportLine{Capture: memory.Capture{ID: "1", Agent: "bob", Text: "bob's own", Scope: memory.ScopeAgent, URI: "mem://home/a"}, RecordID: "01ARZ3NDEKTSV4RRFFQ69G5FA1", Version: 1, Origin: memory.OriginCapture}
	dir := folder(t, nil)
	load := func() (*Summary, Counts) {
		t.Helper()
		text, err := importer.FormatExported(exp)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "2016-07", exp.RecordID+".md"), string(text))
		sum, _, err := n.load(t, nil, dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum, *sum.Namespaces[0]
	}
	if _, c := load(); c.Created != 1 {
		t.Errorf("%+v", c)
	}
	exp.Text, exp.Version = "bob's own, edited", 2
	if sum, c := load(); c.Found != 1 || c.Duplicates != 1 || c.Updated+c.Conflicts != 0 || len(sum.LeftOut) != 1 || !strings.Contains(sum.LeftOut[0].Why, "another agent's own") {
		t.Errorf("%+v, %+v", sum, c)
	}
	n.records[0].forgotten = true
	if _, c := load(); c.Found != 1 || c.Forgotten != 1 {
		t.Errorf("forgotten: %+v", c)
	}
}

// A table of the name of another one, and one that has the uri of another source's row, revised what was
// not imported from it.
func TestAnotherTableOfTheNameRevised(t *testing.T) {
	n := newFakeNode()
	root := t.TempDir()
	table := func(name, rows string) string {
		t.Helper()
		path := filepath.Join(root, filepath.FromSlash(name))
		put(t, path, "id,text,uri\n"+rows)
		return path
	}
	var asked []string
	no := func(o *Options) {
		o.Confirm = func(q Question) error {
			asked = append(asked, q.What)
			return memory.Errorf(memory.CodeInvalid, "no: %s", q.Flag)
		}
	}
	yes := func(o *Options) { o.Confirm = func(q Question) error { asked = append(asked, q.What); return nil } }
	says := func(want ...string) {
		t.Helper()
		if got := texts(n.living("team")); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	pa := table("pa/t/list.csv", "1,first of pa,u\n2,second of pa,v\n")
	n.loaded(t, no, pa)
	table("pa/t/list.csv", "1,\"first of pa, changed\",u\n2,second of pa,v\n")
	if c := n.loaded(t, no, pa); c.Updated != 1 || c.Duplicates != 1 || len(asked) != 0 {
		t.Errorf("%+v, asked %q", c, asked)
	}
	if c := n.loaded(t, no, table("pa/t/other.csv", "1,of another,u\n")); c.Conflicts != 1 || c.Updated != 0 {
		t.Errorf("its uri: %+v", c)
	}
	pb := table("pb/t/list.csv", "1,first of pb,u\n2,second of pb,v\n")
	if _, _, err := n.load(t, no, pb); err == nil || !strings.HasSuffix(err.Error(), "no: --moved") || len(asked) != 1 ||
		asked[0] != "list.csv was imported from pa/t before, and this is of pb/t: it revises those memories. Take them for the same?" {
		t.Errorf("%v, asked %q", err, asked)
	}
	says("first of pa, changed", "second of pa")
	asked = nil
	if c := n.loaded(t, yes, pb); c.Updated != 2 || len(asked) != 1 {
		t.Errorf("%+v, asked %q", c, asked)
	}
	says("first of pb", "second of pb")
	if c := n.loaded(t, no, pb); c.Duplicates != 2 || len(asked) != 1 {
		t.Errorf("again: %+v, asked %q", c, asked)
	}
	table("pa/t/list.csv", "1,\"first of pa, changed\",u\n2,second of pa once more,v\n")
	if c := n.loaded(t, func(o *Options) { no(o); o.Moved = true }, pa); c.Updated != 2 || len(asked) != 1 {
		t.Errorf("--moved: %+v, asked %q", c, asked)
	}
	says("first of pa, changed", "second of pa once more")
	// Who names the source is not asked, and neither is it where that was done before.
	named := func(o *Options) {
		no(o)
		o.Of = func(string) (importer.Options, error) {
			return importer.Options{Namespace: "team", Agent: me, Source: "list.csv"}, nil
		}
	}
	if c := n.loaded(t, named, pb); c.Updated != 2 || len(asked) != 1 {
		t.Errorf("named: %+v, asked %q", c, asked)
	}
	if c := n.loaded(t, no, pa); c.Updated != 2 || len(asked) != 1 {
		t.Errorf("named before: %+v, asked %q", c, asked)
	}
}

// A section that somebody put into another conversation is revised where its file changes.
func TestASectionOfAnotherConversationIsRevised(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	n.loaded(t, nil, dir)
	talk, rec := "talk", n.records[0]
	if _, err := n.Revise(t.Context(), "team", rec.now().RecordID, memory.Revision{Conversation: &talk}, client.WriteOptions{As: me}); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, changed\n")
	if c := n.loaded(t, nil, dir); c.Updated != 1 || rec.now().Text != "# One\nfirst, changed" || len(n.records) != 1 {
		t.Errorf("%+v, %+v", c, rec.now())
	}
}

// A row that went back to what it said first stayed what it was between, and one that had not changed
// took back what was revised here at each import.
func TestARowIsFollowedAndNothingElse(t *testing.T) {
	n := newFakeNode()
	file := filepath.Join(t.TempDir(), "list.csv")
	load := func(text string) Counts {
		t.Helper()
		put(t, file, "id,text\n1,"+text+"\n2,other\n3,\n")
		sum, said, err := n.load(t, nil, file)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return *sum.Namespaces[0]
	}
	says := func(step, want string, versions int) {
		t.Helper()
		if is := n.records[0]; is.now().Kind != memory.KindOther || is.now().Text != want || len(is.versions) != versions || len(n.records) != 2 {
			t.Errorf("%s: it says %q, %d versions, %d records", step, is.now().Text, len(is.versions), len(n.records))
		}
	}
	revise := func(text string) {
		t.Helper()
		at := n.records[0].now().OccurredAt
		if _, err := n.Revise(t.Context(), "team", n.records[0].now().RecordID, memory.Revision{Text: &text, OccurredAt: &at}, client.WriteOptions{As: me}); err != nil {
			t.Fatal(err)
		}
	}
	load("first")
	meta, _ := importer.Taken(n.records[0].now().Metadata) // by an import that was cut off
	first := n.records[0].now().Metadata
	n.records[0].now().Metadata = meta
	if c := load("first"); c.Updated != 1 || c.Duplicates != 1 {
		t.Errorf("taken: %+v", c)
	}
	n.records[0].versions = n.records[0].versions[:1]
	n.records[0].now().Metadata = first
	if c := load("second"); c.Updated != 1 || c.Duplicates != 1 {
		t.Errorf("%+v", c)
	}
	if c := load("first"); c.Updated != 1 || c.Duplicates != 1 {
		t.Errorf("back: %+v", c)
	}
	says("back", "first", 3)
	revise("corrected here")
	if c := load("first"); c.Updated != 0 || c.Duplicates != 2 {
		t.Errorf("revised here: %+v", c)
	}
	says("revised here", "corrected here", 4)
	if c := load("third"); c.Updated != 1 {
		t.Errorf("%+v", c)
	}
	revise("corrected again")
	if c := load("third"); c.Updated != 0 || c.Duplicates != 2 {
		t.Errorf("revised here, again: %+v", c)
	}
	says("revised here, again", "corrected again", 6)
	// One that an import began to forget is what its row says again.
	meta, _ = importer.Taken(n.records[0].now().Metadata)
	n.records[0].now().Metadata = meta
	if c := load("third"); c.Updated != 1 {
		t.Errorf("taken: %+v", c)
	}
	says("taken", "third", 7)
}
