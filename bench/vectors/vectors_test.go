package main

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"strings"
	"testing"

	"mneme/internal/index/vector"
)

func TestClustered(t *testing.T) {
	a, b := newClustered(1, 16, 3, 0.1).take(50), newClustered(1, 16, 3, 0.1).take(50)
	near := 0
	for i, v := range a {
		sum := 0.0
		for j, x := range v {
			sum += float64(x) * float64(x)
			if x != b[i][j] {
				t.Fatal("the same seed gives other vectors")
			}
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("vector %d has length² %v", i, sum)
		}
		dot := 0.0
		for j := range v {
			dot += float64(v[j]) * float64(a[0][j])
		}
		if dot > 0.9 {
			near++
		}
	}
	if near < 5 || near > 40 {
		t.Errorf("%d of 50 vectors lie in the cluster of the first, want about a third", near)
	}
	if z := unit(make([]float32, 3)); z[0] != 0 {
		t.Error("a zero vector changes")
	}
}

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
