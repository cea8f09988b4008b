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
	"strings"
	"testing"

	"mneme/bench/internal/judged"
	"mneme/memory"
)

func TestJudge(t *testing.T) {
	q := judged.Question{Category: "2", Evidence: []string{"a", "b"}}
	ranked := []string{"x", "x2", "a", "x3", "x4", "x5", "b"}
	want := score{category: "2", r5: 0.5, r10: 1, r20: 1, all: 1, rr: 1.0 / 3}
	if got := judge(q, ranked); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSummarise(t *testing.T) {
	rows := summarise([]score{
		{category: "2", r5: 1, r10: 1, r20: 1, all: 1, rr: 1},
		{category: "5", apart: true, r5: 1},
		{category: "1", r5: 0, r10: 0.5, r20: 1, rr: 0.25},
		{category: "2"},
	})
	var names []string
	for _, r := range rows {
		names = append(names, fmt.Sprintf("%s/%d/%v", r.Category, r.Questions, r.Apart))
	}
	if want := []string{"all/3/false", "1/1/false", "2/2/false", "5/1/true"}; !reflect.DeepEqual(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	if all := rows[0]; math.Abs(all.R10-0.5) > 1e-12 || math.Abs(all.MRR-1.25/3) > 1e-12 || math.Abs(all.RecallAll10-1.0/3) > 1e-12 {
		t.Errorf("all: %+v", all)
	}
	if empty := summarise(nil); len(empty) != 1 || empty[0].Questions != 0 {
		t.Errorf("nothing: %+v", empty)
	}
}

func TestAblationAndReliabilityTables(t *testing.T) {
	scores := []score{{category: "1", namespace: "a", r10: 1}, {category: "1", namespace: "b"}, {category: "5", namespace: "b", apart: true, r10: 1}}
	one := func(v variant) modeResult {
		m := modeResult{Variant: v.name, Mode: memory.ModeHybrid, Rows: summarise(scores), Spaces: byNamespace(scores), Buckets: newBuckets()}
		for i := range 100 {
			note(m.Buckets, 0.65, i < 60)
		}
		note(m.Buckets, 1, true)
		note(m.Buckets, -1, false)
		return m
	}
	r := result{Set: "locomo", Modes: []modeResult{one(variant{})}}
	if ablationTables([]result{r}) != nil {
		t.Error("a table of nothing")
	}
	seen := map[string]bool{}
	for _, v := range variants() {
		if seen[v.name] {
			t.Errorf("%s twice", v.name)
		}
		if err := (&memory.SearchRequest{Query: "x", Mode: v.req.Mode, Fusion: v.req.Fusion, Parts: v.req.Parts}).Validate(); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		seen[v.name] = true
		r.Ablation = append(r.Ablation, one(v))
	}
	tables := ablationTables([]result{r})
	if len(tables) != 2 || len(tables[0].Rows) != len(seen) || len(tables[1].Rows) != 2 {
		t.Fatalf("tables %+v", tables)
	}
	if got := strings.Join(tables[1].Rows[0], " "); !strings.HasPrefix(got, "locomo a 1 1.000") {
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
	ids := []string{}
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
			out.Results = append(out.Results, memory.CaptureResult{RecordID: fmt.Sprint("r", len(ids)), Status: memory.StatusCreated})
			ids = append(ids, c.ID)
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
		for i := from; i < len(ids); i++ {
			out.Results = append(out.Results, memory.Hit{ID: fmt.Sprint("r", i)})
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
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-mode", "hybrid", "-json"}, &out, &log); err != nil {
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
	want := row{Category: "all", Questions: 2, R5: 0.75, R10: 0.75, R20: 0.75, RecallAll10: 0.5, MRR: 0.75}
	if m.Rows[0] != want || m.Served != memory.ModeText {
		t.Errorf("got %+v, served %s; want %+v", m.Rows[0], m.Served, want)
	}
	out.Reset()
	report := filepath.Join(t.TempDir(), "r.md")
	if err := run(context.Background(), []string{"-addr", node.URL, "-data", data, "-set", "memdaily", "-mode", "text,hybrid", "-o", report, "-questions", "1"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(report)
	if err != nil || !bytes.Equal(b, out.Bytes()) || !strings.Contains(out.String(), "| memdaily, hybrid: R@5") {
		t.Errorf("file %v, printed:\n%s", err, out.String())
	}
}

func TestRunWithoutData(t *testing.T) {
	var out, log bytes.Buffer
	missing := filepath.Join(t.TempDir(), "no")
	if err := run(context.Background(), []string{"-data", missing}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nothing was measured") || !strings.Contains(out.String(), missing) {
		t.Errorf("got %q", out.String())
	}
	for _, args := range [][]string{{"-set", "x"}, {"more"}, {"-nothing"}} {
		if err := run(context.Background(), args, &out, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	if err := run(context.Background(), []string{"-h"}, &out, &log); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}
