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
		"engine exact: queries", "engine mneme, ef 40: recall@10", "0.1 % allowed", "load the graph", "lost by replacing half", "engine coder",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if runtime.GOMAXPROCS(0) != cores {
		t.Error("the number of cores was not put back")
	}
	for _, args := range [][]string{{"-vectors", "3"}, {"-nothing"}, {"-dim", "x"}, {"-vectors", "1000,"}, {"-queries", "0"}} {
		if err := run(context.Background(), args, &out, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
