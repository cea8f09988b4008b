package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mneme/bench/internal/judged"
	"mneme/memory"
)

func TestJudge(t *testing.T) {
	filter := &memory.Filter{}
	for _, c := range []struct {
		name          string
		scoring       judged.Scoring
		q             judged.Question
		ids, sessions []string
		want          values
	}{
		{"units", judged.Units, judged.Question{Evidence: []string{"a", "b"}}, []string{"x", "x2", "a", "x3", "x4", "x5", "b"}, []string{"s"},
			values{"R@5": 0.5, "R@10": 1, "R@20": 1, "recall_all@10": 1, "MRR@20": 1.0 / 3}},
		{"units, nothing there and something found", judged.Units, judged.Question{Nothing: true}, []string{"x"}, nil, values{nothing: 0}},
		{"stream: turns and sessions", judged.Stream, judged.Question{Evidence: []string{"a"}, Sessions: []string{"1", "2"}}, []string{"x", "a"}, []string{"2", "3", "4", "5", "6", "1"},
			values{"turn R@5": 1, "turn R@10": 1, "turn R@20": 1, "session R@5": 0.5, "session R@10": 1}},
		{"stream: sessions alone", judged.Stream, judged.Question{Sessions: []string{"1"}}, nil, nil, values{"session R@5": 0, "session R@10": 0}},
		{"sessions: an old one first", judged.Sessions, judged.Question{Sessions: []string{"1", "2"}}, []string{"x"}, []string{"1", "2"},
			values{"session R@1": 0.5, "session R@5": 1, "session hit@1": 1, "newest@1": 0}},
		{"sessions: the newest first", judged.Sessions, judged.Question{Sessions: []string{"1", "2"}}, []string{"x"}, []string{"2"},
			values{"session R@1": 0.5, "session R@5": 0.5, "session hit@1": 1, "newest@1": 1}},
		{"sessions: nothing where there is nothing", judged.Sessions, judged.Question{Nothing: true}, nil, nil, values{nothing: 1}},
		{"exact: one too many", judged.Exact, judged.Question{Evidence: []string{"a"}, Filter: filter}, []string{"a", "x"}, nil, values{"precision": 0.5, "recall": 1, "passed": 0}},
		{"exact: one too few", judged.Exact, judged.Question{Evidence: []string{"a", "b"}}, []string{"a"}, nil, values{"precision": 1, "recall": 0.5, "passed": 0}},
		{"exact: none of it", judged.Exact, judged.Question{Evidence: []string{"a"}}, nil, nil, values{"precision": 0, "recall": 0, "passed": 0}},
		{"exact: just so", judged.Exact, judged.Question{Evidence: []string{"a", "b"}}, []string{"b", "a"}, nil, values{"precision": 1, "recall": 1, "passed": 1}},
		{"exact: nothing wanted, nothing found", judged.Exact, judged.Question{Nothing: true}, nil, nil, values{"passed": 1, nothing: 1}},
		{"exact: nothing wanted", judged.Exact, judged.Question{Nothing: true}, []string{"x"}, nil, values{"precision": 0, "passed": 0, nothing: 0}},
		{"first: sixth", judged.First, judged.Question{Evidence: []string{"a", "b"}}, []string{"1", "2", "3", "4", "5", "b", "a"}, nil,
			values{"hit@1": 0, "hit@6": 1, "hit@10": 1, "MRR@20": 1.0 / 6}},
		{"first: behind what may be there", judged.First, judged.Question{Evidence: []string{"a"}, May: []string{"m", "n"}}, []string{"m", "a", "n"}, nil,
			values{"hit@1": 1, "hit@6": 1, "hit@10": 1, "MRR@20": 1}},
		{"first: nothing wanted", judged.First, judged.Question{Nothing: true}, []string{"x"}, nil, values{nothing: 0}},
		{"first: eleventh", judged.First, judged.Question{Evidence: []string{"a"}}, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "a"}, nil,
			values{"hit@1": 0, "hit@6": 0, "hit@10": 0, "MRR@20": 1.0 / 11}},
	} {
		got := judge(c.scoring, c.q, c.ids, c.sessions)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		for name := range got {
			if !slices.Contains(measures(c.scoring), name) {
				t.Errorf("%s: %s stands in no table", c.name, name)
			}
		}
	}
}

// TestIdeal: no measure of the best answer is below 1, but for those that no answer
// can pass.
func TestIdeal(t *testing.T) {
	many := []string{"1", "2", "3", "4"}
	if got, want := ideal(judged.Sessions, judged.Question{Sessions: many}), (values{"session R@1": 0.25, "session R@5": 0.8 + 0.2, "session hit@1": 1, "newest@1": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("four sessions: %v, want %v", got, want)
	}
	for _, q := range []judged.Question{{Nothing: true}, {Evidence: []string{"a", "b"}, Sessions: many[:1]}} {
		for s := judged.Units; s <= judged.First; s++ {
			for name, v := range ideal(s, q) {
				if v != 1 {
					t.Errorf("scoring %d of %+v: %s is %v", s, q, name, v)
				}
			}
		}
	}
}

func TestSummarise(t *testing.T) {
	rows := summarise([]score{
		{Category: "2", Measures: values{"R@10": 1, "MRR@20": 1}, ideal: values{"R@10": 1}},
		{Category: "5", Apart: true, Measures: values{"R@10": 1}},
		{Category: "1", Measures: values{"R@10": 0.5, "MRR@20": 0.25}, ideal: values{"R@10": 0.5}},
		{Category: "2", Measures: values{"R@10": 0}, ideal: values{"R@10": 1}},
	})
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%s/%d/%v", r.Category, r.Questions, r.Apart))
	}
	if want := []string{"all/3/false", "1/1/false", "2/2/false", "5/1/true"}; !reflect.DeepEqual(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	// A measure is the mean over the questions that have it.
	if got, want := rows[0].Measures["MRR@20"], (measured{Questions: 2, Mean: 0.625, AtMost: 1}); got != want {
		t.Errorf("MRR of all: %+v, want %+v", got, want)
	}
	if got := rows[0].Measures["R@10"]; got.Questions != 3 || got.Mean != 0.5 || math.Abs(got.AtMost-2.5/3) > 1e-12 {
		t.Errorf("recall of all: %+v", got)
	}
	if empty := summarise(nil); len(empty) != 1 || empty[0].Questions != 0 {
		t.Errorf("nothing: %+v", empty)
	}
}

func TestAblationAndReliabilityTables(t *testing.T) {
	one := func(v variant) modeResult {
		found := oneIf(v.name == "default")
		scores := []score{{Category: "1", Group: "a", Measures: values{"R@10": found}}, {Category: "1", Group: "b", Measures: values{"R@10": 0}},
			{Category: "5", Group: "b", Apart: true, Measures: values{"R@10": 1}}}
		m := modeResult{Variant: v.name, Mode: memory.ModeHybrid, Rows: summarise(scores), Buckets: newBuckets(), scores: scores}
		for i := range 100 {
			note(m.Buckets, 0.65, i < 60)
		}
		note(m.Buckets, 1, true)
		note(m.Buckets, -1, false)
		return m
	}
	r := result{Set: "locomo", Modes: []modeResult{one(variant{})}}
	if len(ablation([]result{r}).Rows) > 0 {
		t.Error("a table of nothing")
	}
	seen := map[string]bool{}
	for _, v := range variants() {
		if seen[v.name] {
			t.Errorf("%s twice", v.name)
		}
		if err := (&memory.SearchRequest{Query: "x", Mode: v.req.Mode, Parts: v.req.Parts}).Validate(); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		seen[v.name] = true
		r.Ablation = append(r.Ablation, one(v))
	}
	table := ablation([]result{r})
	if len(table.Rows) != 1 || len(table.Header) != 2+len(seen) {
		t.Fatalf("table %+v", table)
	}
	// A part without which one of two questions is answered no more.
	if got := strings.Join(table.Rows[0][:4], "|"); got != "locomo|R@10|0.500|-0.500 (-1.000 to +0.000)" {
		t.Errorf("row %q", got)
	}
	rel := reliability([]result{r}).Markdown()
	for _, want := range []string{"-0.050", "few", "largest error over all sets is 0.050"} {
		if !strings.Contains(rel, want) {
			t.Errorf("%q is missing in\n%s", want, rel)
		}
	}
}

// fakeNode takes captures and finds for a query "k" the captures k, k+1, ….
func fakeNode(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	var sent []memory.Capture
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("POST /v1/namespaces", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		reply(w, memory.Namespace{})
	})
	mux.HandleFunc("POST /v1/namespaces/{ns}/events", func(w http.ResponseWriter, r *http.Request) {
		var items []memory.Capture
		if err := json.NewDecoder(r.Body).Decode(&items); err != nil {
			t.Error(err)
		}
		var out memory.CaptureResponse
		for _, c := range items {
			out.Results = append(out.Results, memory.CaptureResult{RecordID: fmt.Sprint("r", len(sent)), Status: memory.StatusCreated})
			sent = append(sent, c)
		}
		reply(w, out)
	})
	mux.HandleFunc("POST /v1/namespaces/{ns}/search", func(w http.ResponseWriter, r *http.Request) {
		var req memory.SearchRequest
		var from int
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		_, _ = fmt.Sscan(req.Query, &from)
		out := memory.SearchResponse{Mode: memory.ModeText}
		for i := from; i < len(sent); i++ {
			out.Results = append(out.Results, memory.Hit{ID: fmt.Sprint("r", i), Text: sent[i].Text})
		}
		reply(w, out)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestRun(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "memdaily"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := `[{"tid":1,"message_list":[{"mid":0,"message":"a"},{"mid":1,"message":"b"},{"mid":2,"message":"c"}],
		"question_list":[{"question":"0","target_step_id":[1]},{"question":"1","target_step_id":[1,0]},{"question":"9","target_step_id":[]}]}]`
	if err := os.WriteFile(filepath.Join(data, "memdaily", "x.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	node := fakeNode(t)
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-set", "locomo,memdaily,beam", "-mode", "hybrid", "-json"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Missing) != 2 || len(doc.Sets) != 1 || !strings.Contains(log.String(), "left out:") {
		t.Fatalf("missing %q, %d sets", doc.Missing, len(doc.Sets))
	}
	m := doc.Sets[0].Modes[0]
	want := row{Category: "all", Questions: 2, Measures: map[string]measured{"R@5": {2, 0.75, 1}, "R@10": {2, 0.75, 1}, "R@20": {2, 0.75, 1},
		"recall_all@10": {2, 0.5, 1}, "MRR@20": {2, 0.75, 1}}}
	if !reflect.DeepEqual(m.Rows[0], want) || m.Served != memory.ModeText {
		t.Errorf("got %+v, served %s; want %+v", m.Rows[0], m.Served, want)
	}
	out.Reset()
	report, raw := filepath.Join(t.TempDir(), "r.md"), filepath.Join(t.TempDir(), "r.jsonl")
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-set", "memdaily", "-mode", "text,hybrid", "-o", report, "-questions", "1", "-raw", raw}, &out, &log); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(report)
	if err != nil || !bytes.Equal(b, out.Bytes()) || !strings.Contains(out.String(), "| memdaily | 1         | R@10    | ≥ 0.550 met | 1.000  |") {
		t.Errorf("file %v, printed:\n%s", err, out.String())
	}
	out.Reset()
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-set", "memdaily", "-mode", "hybrid", "-beside", raw}, &out, &log); err != nil {
		t.Fatal(err)
	}
	// The other run asked the first of these questions, in two modes.
	for _, want := range []string{"### Beside r.jsonl", "| memdaily | hybrid (served as text) | R@10    | 1         | 1.000  | 1.000 | +0.000     | +0.000 to +0.000 |  ", "- 1 answers have none"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, out.String())
		}
	}
}

// TestRunInStream: a question is asked before what follows it is sent, so that of two
// turns that would answer it only the one before is found.
func TestRunInStream(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "realmem"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := `{"sessions":[{"id":"1","turns":[{"speaker":"user","text":"a"},{"speaker":"user","text":"b"}]},
		{"id":"2","turns":[{"speaker":"user","text":"0","query":{"category":"x","turns":["1:1","2:1"],"sessions":["1"]}},{"speaker":"user","text":"c"}]}]}`
	if err := os.WriteFile(filepath.Join(data, "realmem", "x.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	node := fakeNode(t)
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-set", "realmem", "-mode", "text,hybrid", "-json"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]measured{"turn R@5": {1, 0.5, 1}, "turn R@10": {1, 0.5, 1}, "turn R@20": {1, 0.5, 1}, "session R@5": {1, 1, 1}, "session R@10": {1, 1, 1}}
	for _, m := range doc.Sets[0].Modes {
		if !reflect.DeepEqual(m.Rows[0].Measures, want) {
			t.Errorf("%s: %+v, want %+v", m.Mode, m.Rows[0].Measures, want)
		}
	}
}

// TestPlainBM25: it ranks what was sent so far, and of a filter knows the tags.
func TestPlainBM25(t *testing.T) {
	p := &plain{}
	for _, c := range []memory.Capture{{ID: "a", Text: "port of the gateway", Tags: []string{"x"}}, {ID: "b", Text: "port"}, {ID: "c", Text: "bread"}} {
		p.index.Add(c.Text)
		p.sent = append(p.sent, c)
	}
	ids := func(filter *memory.Filter) (out []string) {
		for _, f := range p.find(plainBM25, judged.Question{Text: "Port?", Filter: filter}) {
			out = append(out, f.capture.ID)
		}
		return out
	}
	if got := ids(nil); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("found %q", got)
	}
	if got := ids(&memory.Filter{Tags: []string{"x"}}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with a tag: %q", got)
	}
	if slices.Contains(usual(), judged.Sealed) || !slices.Contains(judged.Names(), judged.Sealed) {
		t.Error("the sealed set is asked without being named, or cannot be")
	}
}

// TestMarks: each mark is for a set that there is and a measure that it has.
func TestMarks(t *testing.T) {
	for _, m := range marks {
		found := false
		for s := judged.Units; s <= judged.First; s++ {
			found = found || slices.Contains(measures(s), m.measure)
		}
		if !found || !slices.Contains(judged.Names(), m.set) {
			t.Errorf("mark %+v", m)
		}
	}
	// Of three questions two were right, one of them also by words.
	scored := func(right ...float64) modeResult {
		m := modeResult{}
		for i, v := range right {
			m.scores = append(m.scores, score{Category: "x", Group: fmt.Sprint(i), Measures: values{"hit@1": v}, ideal: values{"hit@1": 1}})
		}
		m.Rows = summarise(m.scores)
		return m
	}
	hybrid, words, plain := scored(1, 1, 0), scored(1, 0, 0), scored(0, 0, 0)
	m := mark{set: "long", category: "x", measure: "hit@1", least: 2, count: true}
	got, _ := m.find(hybrid)
	if cells, want := strings.Join(append(m.cells(got, &hybrid, &words), m.of(&plain), m.of(nil)), "|"), "long, x|3|hit@1|≥ 2 met|2 of 3|0 to 3||1 of 3|+1 (+0 to +3)|0 of 3|"; cells != want {
		t.Errorf("cells %q, want %q", cells, want)
	}
}

func TestComparison(t *testing.T) {
	at := func(set string, question int, mode memory.Mode, v float64) score {
		return score{Set: set, Mode: mode, Namespace: "n", Question: question, Group: fmt.Sprint(question), Measures: values{"R@10": v}}
	}
	var now, before []score
	for i := range 40 {
		now, before = append(now, at("beam", i, memory.ModeHybrid, 0.5)), append(before, at("beam", i, memory.ModeHybrid, 0.25))
	}
	before = append(before, at("beam", 40, memory.ModeHybrid, 1), at("beam", 0, memory.ModeText, 1)) // that now nobody asked
	worse := at("locomo", 0, memory.ModeHybrid, 0)
	file := filepath.Join(t.TempDir(), "before.jsonl")
	write := func(scores ...score) {
		t.Helper()
		if err := writeRaw(file, []result{{Modes: []modeResult{{scores: scores}}}}); err != nil {
			t.Fatal(err)
		}
	}
	write(append(before, at("locomo", 0, memory.ModeHybrid, 1))...)
	read, err := readRaw(file)
	if err != nil || len(read) != 43 || !reflect.DeepEqual(read[0], before[0]) {
		t.Fatalf("%d answers, the first %+v, %v", len(read), read[0], err)
	}
	table := comparison([]result{
		{Set: "beam", Modes: []modeResult{{Mode: memory.ModeHybrid, Served: memory.ModeHybrid, scores: now}}},
		{Set: "locomo", Modes: []modeResult{{Mode: memory.ModeHybrid, Served: memory.ModeHybrid, scores: []score{worse}}}},
	}, "before.jsonl", read)
	want := [][]string{
		{"beam", "hybrid", "R@10", "40", "0.250", "0.500", "+0.250", "+0.250 to +0.250", "better"},
		{"locomo", "hybrid", "R@10", "1", "1.000", "0.000", "-1.000", "-1.000 to -1.000", "worse"},
	}
	if !reflect.DeepEqual(table.Rows, want) || len(table.Notes) != 1 || !strings.HasPrefix(table.Notes[0], "1 answers") {
		t.Errorf("rows %q, notes %q", table.Rows, table.Notes)
	}
	if verdict(-0.1, 0.1) != "" || writeRaw("", nil) != nil {
		t.Error("within the noise it says something, or without a file it writes")
	}
	if err := os.WriteFile(file, []byte("{}\n{\"set\":3"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readRaw(file); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestRunWithoutData(t *testing.T) {
	var out, log bytes.Buffer
	missing := filepath.Join(t.TempDir(), "no")
	if err := run(context.Background(), []string{"-data", missing, "-set", "locomo"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nothing was measured") || !strings.Contains(out.String(), missing) {
		t.Errorf("got %q", out.String())
	}
	for _, args := range [][]string{{"-set", "x"}, {"more"}, {"-nothing"}, {"-beside", missing}} {
		if err := run(context.Background(), args, &out, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	if err := run(context.Background(), []string{"-h"}, &out, &log); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}
