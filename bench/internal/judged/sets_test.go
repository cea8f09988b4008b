package judged

import (
	"errors"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// pooledFile has two trajectories of one file, with one number each.
const pooledFile = `[{"tid":1,"message_list":[{"mid":0,"message":"论坛","time":"2024年04月01日 周一 08:30"}],
	"question_list":[{"question":"什么？","time":"2024年04月04日 周四 07:42","target_step_id":[0]}]}]`

func TestMemDailyPooled(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "memdaily/01_a.json", pooledFile)
	write(t, dir, "memdaily/02_b.json", pooledFile)
	for name, want := range map[string]string{
		"memdaily-pooled": "什么？",
		"memdaily-timed":  "什么？ 2024年04月04日 周四 07:42",
		"memdaily-asked":  "什么？（提问时间：2024年04月04日 周四 07:42）",
	} {
		set := load(t, name, dir)
		if len(set.Namespaces) != 1 || set.Namespaces[0].Name != name || set.Counts != (Counts{Captures: 2, Questions: 2}) {
			t.Fatalf("%s: %+v", name, set)
		}
		ns := set.Namespaces[0]
		for i, c := range ns.Captures {
			q := ns.Questions[i]
			if c.Conversation != "" || q.Text != want || !reflect.DeepEqual(q.Evidence, []string{c.ID}) {
				t.Errorf("%s: capture %+v, question %+v", name, c, q)
			}
		}
		if ns.Captures[0].ID == ns.Captures[1].ID || ns.Questions[0].Group == ns.Questions[1].Group {
			t.Errorf("%s: the files' trajectories are one", name)
		}
		valid(t, set)
	}
}

func TestRealMem(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "realmem/Kim_Lee.json", `{"name":"Kim Lee","sessions":[
		{"id":"0","time":"2025-12-15 (Monday)","turns":[{"speaker":"user","text":"hello"},{"speaker":"assistant","text":" "},{"speaker":"assistant","text":"hi"}]},
		{"id":"1","time":"soon","turns":[
			{"speaker":"user","text":"again","query":{"category":"Static","turns":["0:0","0:0","0:1"],"sessions":["0","1","0"]}},
			{"speaker":"user","text":"bye","query":{"category":"None","turns":[],"sessions":["1"]}}]}]}`)
	set := load(t, "realmem", dir)
	want := Counts{Captures: 4, Questions: 2, NoEvidence: 1, Missing: 1, Unread: 1}
	if set.Counts != want || set.Scoring != Stream || !set.Streamed {
		t.Errorf("%+v, want %+v", set, want)
	}
	ns := set.Namespaces[0]
	questions := []Question{
		{Text: "again", Category: "Static", Group: "realmem-kim_lee 1", Evidence: []string{"realmem/0:0", "realmem/0:1"}, Sessions: []string{"0"}, Session: "1", After: 2},
		{Text: "bye", Category: "None", Group: "realmem-kim_lee 1", Session: "1", After: 3},
	}
	if !reflect.DeepEqual(ns.Questions, questions) {
		t.Errorf("questions %+v", ns.Questions)
	}
	if q := ns.Questions; !q[0].Scored(Stream) || q[1].Scored(Stream) {
		t.Error("a question counts if it has evidence")
	}
	if c := ns.Captures; c[1].ID != "realmem/0:2" || c[1].Agent != "assistant" || c[1].Conversation != "0" || c[1].OccurredAt.Day() != 15 || c[2].OccurredAt != nil {
		t.Errorf("captures %+v", c)
	}
	valid(t, set)
}

func TestDevMem(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "devmem/sessions.json", `[{"id":"S2","date":"2025-01-15","turns":[{"speaker":"user","text":"a"},{"speaker":"assistant","text":""}]},
		{"id":"S1","date":"","turns":[{"speaker":"assistant","text":"b"}]},{"id":"S1","date":"","turns":[{"speaker":"assistant","text":"c"}]}]`)
	write(t, dir, "devmem/questions.json", `[{"type":"update","question":"q","sessions":["S1","S2","S1","S9"]},{"type":"abstention","question":"n","sessions":[]}]`)
	set := load(t, "devmem", dir)
	if want := (Counts{Captures: 2, Questions: 2, NoEvidence: 1, Missing: 1, Unread: 2}); set.Counts != want || set.Scoring != Sessions {
		t.Errorf("%+v, want %+v", set, want)
	}
	ns := set.Namespaces[0]
	// Sessions are in the order in which they were held; one that nobody held comes first.
	if q := ns.Questions[0]; !slices.Equal(q.Sessions, []string{"S9", "S2", "S1"}) || q.Nothing {
		t.Errorf("question %+v", q)
	}
	if q := ns.Questions[1]; !q.Nothing || !q.Scored(Sessions) || q.Apart {
		t.Errorf("question %+v", q)
	}
	if c := ns.Captures; c[0].ID != "devmem/S2:0" || c[0].OccurredAt.Year() != 2025 || c[1].OccurredAt != nil || c[1].Conversation != "S1" {
		t.Errorf("captures %+v", c)
	}
	valid(t, set)
}

func TestPrecision(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "precision/beliefs.json", `[
		{"_id":"b1","type":"preference","canonical_name":"length","aliases":["verbosity","size"],"content":"Short.","why_it_matters":null,"scope":["user:universal"],"pinned":false},
		{"_id":"b2","type":"fact","canonical_name":"db","aliases":[],"content":"Postgres.","why_it_matters":"Queries.","scope":["domain:code"],"pinned":true}]`)
	write(t, dir, "precision/cases.json", `[
		{"caseId":"x","category":"A","scope":["domain:code","other"],"query":"db","expect":{"relevantBeliefs":{"shouldOnlyInclude":["b2","b1","b9"]}}},
		{"caseId":"y","category":"B","scope":[],"query":"none","expect":{"relevantBeliefs":{"shouldOnlyInclude":["b2"]}}}]`)
	set := load(t, "precision", dir)
	if want := (Counts{Captures: 1, Questions: 2, NoEvidence: 1, Missing: 1}); set.Counts != want || set.Scoring != Exact {
		t.Errorf("%+v, want %+v", set, want)
	}
	ns := set.Namespaces[0]
	if c := ns.Captures[0]; c.Text != "length\nverbosity, size\nShort.\n" || !slices.Equal(c.Tags, []string{"user:universal", "preference"}) {
		t.Errorf("capture %+v", c)
	}
	if q := ns.Questions[0]; !slices.Equal(q.Evidence, []string{"precision/b1", "precision/b9"}) || !slices.Equal(q.Filter.Tags, []string{"domain:code"}) || q.Nothing {
		t.Errorf("question %+v", q)
	}
	if q := ns.Questions[1]; !q.Nothing || q.Filter != nil || !q.Scored(Exact) {
		t.Errorf("question %+v", q)
	}
	valid(t, set)
}

func TestIdentifiers(t *testing.T) {
	texts := []string{"readAllBytes reads.", "It calls readAllBytes and readAllBytesNow.", "short oneTwo is none", "tryReadAllBytes too"}
	set := identifiers(texts, 10)
	ns := set.Namespaces[0]
	if len(ns.Captures) != 4 || len(ns.Questions) != 3*4 || set.Scoring != First {
		t.Fatalf("%+v", set)
	}
	got := map[string][]string{}
	for _, q := range ns.Questions {
		if q.Group == "readallbytes" {
			got[q.Category] = append([]string{q.Text}, q.Evidence...)
		}
	}
	missing := got["one letter missing"][0]
	if len(missing) != len("readallbytes")-1 || missing[0] != 'r' || strings.Contains("readallbytes", missing) && !strings.HasPrefix("readallbytes", missing) {
		t.Errorf("one letter missing: %q", missing)
	}
	got["one letter missing"][0] = ""
	if want := map[string][]string{
		"as written":         {"readAllBytes", "identifiers/0", "identifiers/1"},
		"first 60 %":         {"readallb", "identifiers/0", "identifiers/1"},
		"one letter missing": {"", "identifiers/0", "identifiers/1"},
		"glued":              {"allbytes", "identifiers/0", "identifiers/1", "identifiers/3"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := identifiers(texts, 10); !reflect.DeepEqual(again, set) {
		t.Error("the same texts give another set")
	}
	valid(t, set)
}

func TestLong(t *testing.T) {
	docs := map[string]string{"README.md": "# Long\n" + strings.Repeat("text ", memory.MaxTextBytes), "docs/nats.md": "short"}
	set := long(docs, []string{"one\nmore", "one", "", "two", "three"}, 2)
	var got []string
	for _, ns := range set.Namespaces {
		for _, c := range ns.Captures {
			got = append(got, ns.Name+" "+c.Text[:3])
		}
		if len(ns.Questions) != 20 || ns.Questions[0].Apart != (ns.Name == "long-alone") {
			t.Errorf("%s: %d questions, the first %+v", ns.Name, len(ns.Questions), ns.Questions[0])
		}
	}
	if want := []string{"long-alone # L", "long-alone sho", "long-among one", "long-among two", "long-among # L", "long-among sho"}; !slices.Equal(got, want) || set.Counts.Cut != 1 {
		t.Errorf("%q, want %q; %+v", got, want, set.Counts)
	}
	valid(t, set)
}

// TestHistory reads documents out of a repository of its own.
func TestHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := history(t.Context(), "HEAD", []string{"docs/a.md"}); !errors.Is(err, ErrNoData) {
		t.Errorf("no repository: %v", err)
	}
	write(t, ".", "docs/a.md", "before")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=n@example", "commit", "-q", "-m", "docs: begin"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write(t, ".", "docs/a.md", "after")
	docs, err := history(t.Context(), "HEAD", []string{"docs/a.md"})
	if err != nil || docs["docs/a.md"] != "before" {
		t.Errorf("%q, %v", docs, err)
	}
	if _, err := history(t.Context(), "HEAD", []string{"docs/b.md"}); !errors.Is(err, ErrNoData) {
		t.Errorf("a file that is not there: %v", err)
	}
}
