package main

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"mneme/bench/internal/judged"
	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static"
)

func TestSpearman(t *testing.T) {
	for _, test := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 99}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 1, 2, 2}, []float64{1, 2, 1, 2}, 0},
		{[]float64{1, 2, 3}, []float64{1, 3, 2}, 0.5},
	} {
		if got := spearman(test.a, test.b); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v, %v: %g, want %g", test.a, test.b, got, test.want)
		}
	}
}

func TestRank(t *testing.T) {
	e := embedder{builtin.Name, builtin.Dimensions, builtin.Embed}
	var chunks []chunk
	for _, c := range [][2]string{{"a", "the cat sleeps"}, {"b", "the server restarts"}, {"a", "cats eat fish"}} {
		chunks = append(chunks, chunk{c[0], e.vector(c[1])})
	}
	if got := rank(chunks, e.vector("which server restarts")); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("ranked %q", got)
	}
}

// TestNearness: words and names are taken out of comments, and the right one is found.
func TestNearness(t *testing.T) {
	var texts []string
	for range 3 {
		texts = append(texts, "ReadFile reads the whole contents of the file that somebody named.", "maxHeader bounds the number of bytes of the headers of requests.", "Short is not.")
	}
	n := findNearness(texts)
	if !slices.Equal(n.names, []string{"ReadFile", "maxHeader"}) || len(n.comments) != 2 || n.comments[1].right != 1 || len(n.words) != 6 || len(n.misspelt) != 2 {
		t.Fatalf("%+v", n)
	}
	for _, q := range n.misspelt {
		if slices.Contains(n.words, q.text) {
			t.Errorf("%q is spelt right", q.text)
		}
	}
	e := embedder{builtin.Name, builtin.Dimensions, builtin.Embed}
	if got := found(e, []string{"bicycle", "contents"}, []asked{{"contnets", 1}, {"bicycle", 1}}, 1); got != 0.5 {
		t.Errorf("found %g", got)
	}
	if got := found(e, n.names, n.comments, 2); got != 1 {
		t.Errorf("found %g", got)
	}
}

// TestRealData prints the table where the data is.
func TestRealData(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := judged.FindData("", os.Getenv("MNEME_DATA"), wd); err != nil {
		t.Skipf("no test data: %v", err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-spelling=false"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| static-1") {
		t.Errorf("no row of the static model:\n%s", out.String())
	}
	t.Log(out.String())
}

// TestStaticBeatsHash holds the static model to the marks that were set for it, and to
// being no worse than what it replaces.
func TestStaticBeatsHash(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := judged.FindData("", os.Getenv("MNEME_DATA"), wd)
	if err != nil {
		t.Skipf("no test data: %v", err)
	}
	hash := embedder{builtin.Name, builtin.Dimensions, builtin.Embed}
	model := embedder{static.Name, static.Dimensions, static.Embed}
	for lang, mark := range map[string]float64{"en": 0.68, "zh": 0.60} {
		old, err := sts(dir, lang, hash)
		if err != nil {
			t.Skipf("no test data: %v", err)
		}
		now, err := sts(dir, lang, model)
		if err != nil || now < mark || now < old {
			t.Errorf("STS-B %s: %.4f, hashing %.4f, mark %.2f, %v", lang, now, old, mark, err)
		}
	}
	for _, name := range []string{"locomo", "beam"} {
		set, err := judged.Load(t.Context(), name, dir)
		if err != nil {
			t.Skipf("no test data: %v", err)
		}
		old, err := recall(t.Context(), set, hash)
		if err != nil {
			t.Fatal(err)
		}
		now, err := recall(t.Context(), set, model)
		if err != nil || now[1] < old[1] {
			t.Errorf("%s: recall@10 %.3f, hashing %.3f, %v", name, now[1], old[1], err)
		}
	}
}

func TestBadInput(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{{"-data", "absent"}, {"-weights", "absent"}, {"-nonsense"}, {"-data", t.TempDir()}} {
		if run(t.Context(), args, &out, &out) == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
