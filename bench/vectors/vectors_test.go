package main

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"

	"mneme/internal/index/vector"
)

func TestRecall(t *testing.T) {
	h := func(ids ...vector.ID) (out []vector.Hit) {
		for _, id := range ids {
			out = append(out, vector.Hit{ID: id})
		}
		return out
	}
	got := recall([][]vector.Hit{h(1, 2), h(3, 9)}, [][]vector.Hit{h(2, 1), h(3, 4)})
	if got != 0.75 {
		t.Errorf("got %v, want 0.75", got)
	}
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	cores := runtime.GOMAXPROCS(0)
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{"-quick", "-vectors", "6000", "-dim", "16", "-runs", "1"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| engine exact: recall@10", "| engine mneme: queries", "engine coder", "| 1.00 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if runtime.GOMAXPROCS(0) != cores {
		t.Error("the number of cores was not put back")
	}
	for _, args := range [][]string{{"-vectors", "3"}, {"-nothing"}} {
		if err := run(context.Background(), args, &out, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
