package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/bench/internal/judged"
	"mneme/internal/recall"
	"mneme/internal/tokens"
	"mneme/memory"
)

// TestPromptsKeepTheBudget: whatever is spent stays within the budget, what stands there is
// found, and what was cut is there in part.
func TestPromptsKeepTheBudget(t *testing.T) {
	units := map[string]memory.Capture{}
	var found memory.SearchResponse
	for i, text := range []string{"deploys happen on Tuesdays", strings.Repeat("word ", 1000), "the gateway listens on port 4222"} {
		id := string(rune('a' + i))
		units["r"+id] = memory.Capture{ID: id, Text: text, Conversation: "talk"}
		found.Results = append(found.Results, memory.Hit{ID: "r" + id, URI: "m/" + id, Text: text, Snippet: text[:min(len(text), memory.MaxSnippetRunes)]})
	}
	for _, s := range spendings {
		for _, budget := range []int{1, 60, 200, 600, 3000} {
			p := s.spend(found, budget)
			if n := tokens.Count(p.text); n > budget {
				t.Errorf("%s of %d tokens has %d", s.name, budget, n)
			}
		}
	}
	for _, c := range []struct {
		way    int
		budget int
		q      judged.Question
		want   holding
	}{
		{2, 600, judged.Question{Evidence: []string{"a", "b"}}, holding{share: 1, all: 1, whole: 0.5, memories: 2}},
		{2, 600, judged.Question{Evidence: []string{"a", "c"}}, holding{share: 0.5, whole: 0.5, memories: 2}},
		{2, 3000, judged.Question{Evidence: []string{"b", "c"}}, holding{share: 1, all: 1, whole: 1, memories: 3}},
		{0, 600, judged.Question{Evidence: []string{"a", "b", "c", "gone"}}, holding{share: 0.75, whole: 0.5, memories: 3}},
		{0, 600, judged.Question{Sessions: []string{"talk", "other"}}, holding{share: 0.5, whole: 0.5, memories: 3, sessions: true}},
		{0, 20, judged.Question{Evidence: []string{"a"}}, holding{}},
	} {
		got := hold(spendings[c.way].spend(found, c.budget), units, c.q)
		if got.tokens > c.budget || (got.tokens == 0) != (c.want.memories == 0) {
			t.Errorf("%d tokens of %d", got.tokens, c.budget)
		}
		if got.tokens = 0; got != c.want {
			t.Errorf("%s of %d tokens, %+v: got %+v, want %+v", spendings[c.way].name, c.budget, c.q, got, c.want)
		}
	}
	// As many as are taken, and of what says the same one.
	for i := range 2 * recall.DefaultLimit {
		text := fmt.Sprintf("note %d says that machine %d is named after river %d", i/2, 100+i/2, 200+i/2)
		found.Results = append(found.Results, memory.Hit{ID: fmt.Sprintf("n%d", i), URI: fmt.Sprintf("m/n%d", i), Text: text, Snippet: text})
	}
	if p := spendings[0].spend(found, 6000); len(p.records) != recall.DefaultLimit {
		t.Errorf("a block of %d memories", len(p.records))
	}
}

// TestRunOfTokens: each question is asked once, also in a stream, and the table says what stands
// in the prompt; questions without evidence are left out.
func TestRunOfTokens(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "memdaily"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := `[{"tid":1,"message_list":[{"mid":0,"message":"a"},{"mid":1,"message":"b"},{"mid":2,"message":"c"}],
		"question_list":[{"question":"0","target_step_id":[1]},{"question":"1","target_step_id":[1,0]},{"question":"9","target_step_id":[]}]}]`
	if err := os.WriteFile(filepath.Join(data, "memdaily", "x.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	args := func() []string { // each run has a node of its own
		return []string{"-addr", fakeNode(t).URL, "-data", data, "-set", "memdaily,beam", "-tokens", "600"}
	}
	if err := run(t.Context(), append(args(), "-json"), &out, &log); err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Sets) != 1 || len(doc.Sets[0].Prompts) != len(spendings) {
		t.Fatal(err, out.String())
	}
	for _, row := range doc.Sets[0].Prompts {
		if row.Questions != 2 || row.All != 0.5 || row.Share != 0.75 || row.Whole != 0.75 || row.Memories != 2.5 {
			t.Errorf("%+v", row)
		}
	}
	out.Reset()
	if err := run(t.Context(), args(), &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### What 600 tokens of a prompt hold", "| memdaily | 2         | recall block      | 0.500        | 0.750                 | +0.000 (+0.000 to +0.000) |", "left out: load beam"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, out.String())
		}
	}
}
