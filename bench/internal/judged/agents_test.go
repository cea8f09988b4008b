package judged

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var fill = flag.Bool("fill", false, "write the judgements of bench/sets/agents/queries.jsonl anew from its facts")

const agentFiles = "../../sets/agents"

// TestAgentFiles holds the committed set to what its README promises.
func TestAgentFiles(t *testing.T) {
	if *fill {
		fillQueries(t)
	}
	set, err := LoadAgents(agentFiles)
	if err != nil {
		t.Fatal(err)
	}
	var chinese, pages, stale, nothing int
	for _, m := range set.Memories {
		if strings.ContainsFunc(m.Text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			chinese++
		}
		if len(m.Text) >= 1<<10 {
			pages++
		}
		if len(m.Text) > 30<<10 {
			t.Errorf("memory %s has %d bytes", m.ID, len(m.Text))
		}
	}
	for _, f := range set.Facts {
		if len(f.Stale) > 0 {
			stale++
		}
		if f.None {
			nothing++
		}
	}
	atLeast(t, "memories", len(set.Memories), 400)
	atLeast(t, "memories with Chinese", chinese, 30)
	atLeast(t, "memories of 1 KB and more", pages, 20)
	atLeast(t, "facts", len(set.Facts), 400)
	atLeast(t, "facts with a stale memory", stale, 40)
	atLeast(t, "subjects without a memory", nothing, 40)
	if len(set.Queries) > 0 {
		promisedQueries(t, set.Queries)
	}
}

func promisedQueries(t *testing.T, queries []AgentQuery) {
	t.Helper()
	types := map[string]int{}
	sealed := 0
	for _, q := range queries {
		types[q.Type]++
		if q.Sealed {
			sealed++
		}
	}
	atLeast(t, "queries", len(queries), 400)
	for _, name := range AgentTypes {
		atLeast(t, "queries of type "+name, types[name], 20)
	}
	if share := float64(sealed) / float64(len(queries)); share < 0.27 || share > 0.40 {
		t.Errorf("the sealed share is %.2f, want about a third", share)
	}
}

func atLeast(t *testing.T, what string, got, want int) {
	t.Helper()
	if got < want {
		t.Errorf("%s: %d, want at least %d", what, got, want)
	}
}

// fillQueries judges the queries by their facts and writes them back.
func fillQueries(t *testing.T) {
	t.Helper()
	set := &Agents{}
	path := filepath.Join(agentFiles, "queries.jsonl")
	if err := errors.Join(readLines(filepath.Join(agentFiles, "facts.jsonl"), &set.Facts), readLines(path, &set.Queries)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, q := range set.Queries {
		set.Judge(&q)
		if err := enc.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	twoMemories = `{"id":"m1","agent":"ann","kind":"fact","text":"port 1 <now>","occurred_at":"2026-01-02T03:04:00Z"}
{"id":"m2","agent":"ann","text":"port 2","occurred_at":"2026-01-01T03:04:00Z"}
`
	twoFacts = `{"id":"f1","fact":"It listens on 1.","memories":["m1"],"stale":["m2"],"exact":["port 1"]}
{"id":"f2","fact":"Bread.","none":true}
`
)

// What may be there goes along, and of sealed queries only these are in the sealed set.
func TestAgentsAreASet(t *testing.T) {
	agents := &Agents{Queries: []AgentQuery{
		{ID: "q1", Type: "typo", Query: "x", Facts: []string{"f1", "f2"}, Wanted: []string{"m1"}, May: []string{"m2"}},
		{ID: "q2", Type: "none", Query: "y", Facts: []string{"f3"}, None: true, Sealed: true},
	}}
	open, kept := agents.set(false).Namespaces[0], agents.set(true).Namespaces[0]
	if want := (Question{Text: "x", Category: "typo", Group: "f1", Evidence: []string{"m1"}, May: []string{"m2"}}); len(open.Questions) != 1 || !reflect.DeepEqual(open.Questions[0], want) {
		t.Errorf("open: %+v", open.Questions)
	}
	if want := (Question{Text: "y", Category: "none", Group: "f3", Nothing: true}); len(kept.Questions) != 1 || !reflect.DeepEqual(kept.Questions[0], want) || kept.Name == open.Name {
		t.Errorf("sealed: %s %+v", kept.Name, kept.Questions)
	}
	all, err := LoadAgents(agentFiles)
	if err != nil {
		t.Fatal(err)
	}
	for name, sealed := range map[string]bool{"agents": false, Sealed: true} {
		set, err := Load(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		atLeast(t, "captures of "+name, set.Counts.Captures, len(all.Memories))
		for _, q := range set.Namespaces[0].Questions {
			if i := slices.IndexFunc(all.Queries, func(a AgentQuery) bool { return a.Query == q.Text }); all.Queries[i].Sealed != sealed {
				t.Errorf("%s asks %q", name, q.Text)
			}
		}
	}
}

func TestLoadAgents(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadAgents(dir); !errors.Is(err, ErrNoData) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, c := range []struct{ name, memories, facts, queries, want string }{
		{name: "no queries yet"},
		{name: "queries", queries: `{"id":"d","type":"natural","query":"which port","facts":["f1"],"wanted":["m1"],"sealed":true}`},
		{name: "none", queries: `{"id":"b","type":"none","query":"bread","facts":["f2"],"none":true}`},
		{name: "memory twice", memories: twoMemories + twoMemories, want: "not the only one"},
		{name: "memory without a time", memories: `{"id":"m1","agent":"ann","text":"port 1"}`, want: "no time"},
		{name: "invalid memory", memories: strings.Replace(twoMemories, `"kind":"fact"`, `"kind":"gossip"`, 1), want: "gossip"},
		{name: "unknown field", memories: `{"id":"m1","words":"x"}`, want: "memories.jsonl:1"},
		{name: "fact about nothing", facts: `{"id":"f1","fact":"x"}`, want: "either"},
		{name: "fact about an unknown memory", facts: `{"id":"f1","fact":"x","memories":["m3"]}`, want: "m3 does not exist"},
		{name: "right and stale", facts: `{"id":"f1","fact":"x","memories":["m1"],"stale":["m1"]}`, want: "named twice"},
		{name: "not letter by letter", facts: `{"id":"f1","fact":"x","memories":["m1"],"exact":["port 2"]}`, want: `holds "port 2"`},
		{name: "unknown type", queries: `{"id":"a","type":"poem","query":"x","facts":["f1"]}`, want: "poem"},
		{name: "unknown fact", queries: `{"id":"a","type":"natural","query":"x","facts":["f9"]}`, want: "f9"},
		{name: "none with an answer", queries: `{"id":"a","type":"none","query":"x","facts":["f1"]}`, want: "suit"},
		{name: "not judged", queries: `{"id":"a","type":"natural","query":"x","facts":["f1"]}`, want: "-fill"},
	} {
		for name, data := range map[string][2]string{"memories": {c.memories, twoMemories}, "facts": {c.facts, twoFacts}, "queries": {c.queries, ""}} {
			if data[0] == "" {
				data[0] = data[1]
			}
			write(t, dir, name+".jsonl", data[0])
		}
		if c.queries == "" {
			if err := os.Remove(filepath.Join(dir, "queries.jsonl")); err != nil {
				t.Fatal(err)
			}
		}
		_, err := LoadAgents(dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
