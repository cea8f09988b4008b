package main

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"

	"mneme/internal/index/vector"
)

func TestEvery(t *testing.T) {
	for _, e := range []every{{n: 10, step: 3}, {n: 9, step: 3}, {n: 5, step: 10}} {
		n := 0
		e.Each(func(id vector.ID) bool {
			if !e.Contains(id) {
				t.Errorf("%+v does not contain %d", e, id)
			}
			n++
			return true
		})
		if n != e.Count() || e.Contains(vector.ID(e.n)) {
			t.Errorf("%+v: %d, counted %d", e, n, e.Count())
		}
		e.Each(func(vector.ID) bool { n--; return false })
		if n != e.Count()-1 {
			t.Error("goes on after false")
		}
	}
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	cores := runtime.GOMAXPROCS(0)
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{"-quick", "-vectors", "20000,40000", "-dim", "16", "-round", "1ms"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Vector index, 1000 vectors of 16 dimensions", "Vector index, 2000 vectors of 16 dimensions",
		"1000 vectors as a model spreads them of 16", "1000 vectors of texts of 16 dimensions", "not measured: vectors of 16 dimensions are wanted", "as in a node, 100 asked for",
		"engine exact: queries", "engine mneme, ef 40: recall@10", "0.1 % allowed", "load the graph", "lost by replacing half", "engine coder",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := run(context.Background(), []string{"-quick", "-of", "texts", "-vectors", "4000", "-texts", "generated", "-round", "1ms"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if want := "as in a node, 10 asked for: recall@10"; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "generated texts") {
		t.Errorf("%q is missing in:\n%s", want, out.String())
	}
	if runtime.GOMAXPROCS(0) != cores {
		t.Error("the number of cores was not put back")
	}
	for _, args := range [][]string{{"-vectors", "3"}, {"-nothing"}, {"-dim", "x"}, {"-vectors", "1000,"}, {"-of", "nothing"}, {"-queries", "0"}} {
		if err := run(context.Background(), args, &out, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestRecallCountsTies: what is as near as the last of the true ones is right.
func TestRecallCountsTies(t *testing.T) {
	truth := []vector.Hit{{ID: 1, Score: 0.9}, {ID: 2, Score: 0.8}, {ID: 3, Score: 0.7}}
	for _, c := range []struct {
		hits []vector.Hit
		most int
		want float64
	}{
		{truth, 3, 1},
		{[]vector.Hit{{ID: 2, Score: 0.8}, {ID: 3, Score: 0.7}}, 2, 0.5},
		{[]vector.Hit{{ID: 1, Score: 0.9}, {ID: 9, Score: 0.8}}, 2, 1},
		{truth, 10, 1},
		{nil, 2, 0},
	} {
		if got := recall(c.hits, truth, c.most); got != c.want {
			t.Errorf("recall of %v at %d = %v, want %v", c.hits, c.most, got, c.want)
		}
	}
}
