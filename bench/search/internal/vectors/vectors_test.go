package vectors

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/bench/internal/points"
	"mneme/bench/search/internal/peer"
	"mneme/internal/index/vector"
)

// TestMain serves when it is started as one of our engines.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := Serve(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func options(t *testing.T) Options {
	return Options{Dir: t.TempDir(), Own: []string{os.Args[0], "serve"}, Threads: 2, Queries: 20, Runs: 1, Least: time.Millisecond, Seed: 3, Of: points.Clusters,
		PerCluster: 50, Noise: 1, Small: 1000, ReplaceUpto: 1000, Missing: errors.New("left out"), Progress: t.Logf}
}

// TestRun measures our engines at a size that says nothing about speed.
func TestRun(t *testing.T) {
	tables, err := Run(context.Background(), options(t), 300, 8)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, table := range tables {
		text += table.Markdown()
	}
	for _, want := range []string{"| mneme ", "| exact scan ", "| coder/hnsw ", "0.01 % allowed", "were not measured: left out", "built afresh"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "failed:") {
		t.Errorf("a step failed:\n%s", text)
	}
}

// TestServeFindsWhatAScanFinds drives one engine through every command.
func TestServeFindsWhatAScanFinds(t *testing.T) {
	opt := options(t)
	const n, dim = 400, 12
	d, err := newData(t.Context(), opt.Dir, opt, n, dim)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{opt: opt, data: d}
	p, err := peer.Start(context.Background(), "mneme", append(slices.Clone(opt.Own), args("mneme", dim)...))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	do := func(format string, args ...any) {
		t.Helper()
		if _, err := p.Ask(format, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := d.base
	check := func(what string, p *peer.Process, ef int, truth []int32) {
		t.Helper()
		_, share, err := b.search(p, ef, 2, d.queries, truth, file)
		if err != nil || share < 0.97 {
			t.Errorf("%s: recall %v, %v", what, share, err)
		}
	}
	do("build %s %d 2", d.base, n)
	truth := scan(t, d, d.base, nil)
	check("built", p, 100, truth)
	check("with another ef", p, 150, truth)
	mask, err := d.mask(1, 30)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := os.ReadFile(mask)
	if err != nil {
		t.Fatal(err)
	}
	do("filter %s", mask)
	check("filtered", p, 100, scan(t, d, d.base, allowed))
	do("filter -")
	saved := filepath.Join(opt.Dir, "saved")
	do("save %s", saved)
	fresh, err := peer.Start(context.Background(), "mneme", append(slices.Clone(opt.Own), args("mneme", dim)...))
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Stop()
	if _, err := fresh.Ask("load %s", saved); err != nil {
		t.Fatal(err)
	}
	check("loaded", fresh, 100, truth)
	do("replace %s %s %d 1", d.fresh, d.rows, d.changed)
	file = d.mixed
	check("replaced", p, 100, scan(t, d, d.mixed, nil))
}

// scan finds the nearest rows by looking at all.
func scan(t *testing.T, d *data, file string, allowed []byte) []int32 {
	t.Helper()
	rows, err := mapFloats(file, d.n*d.dim)
	if err != nil {
		t.Fatal(err)
	}
	queries, err := mapFloats(d.asked, d.queries*d.dim)
	if err != nil {
		t.Fatal(err)
	}
	var out []int32
	for q := range d.queries {
		type near struct {
			dot float64
			row int32
		}
		var all []near
		for row := range d.n {
			if allowed != nil && allowed[row] == 0 {
				continue
			}
			dot := 0.0
			for j := range d.dim {
				dot += float64(rows.floats[row*d.dim+j]) * float64(queries.floats[q*d.dim+j])
			}
			all = append(all, near{dot, int32(row)})
		}
		slices.SortFunc(all, func(a, b near) int {
			if a.dot > b.dot {
				return -1
			}
			return 1
		})
		for i := range K {
			out = append(out, all[i].row)
		}
	}
	return out
}

func TestServeRefuses(t *testing.T) {
	var out strings.Builder
	in := strings.NewReader("build nowhere 5 1\nsearch x\nnothing\n\nfilter nowhere\nsave /nowhere/x\nload nowhere\nreplace a b x 1\nsearch f 1 1 1 1 x y\n")
	if err := Serve(context.Background(), []string{"mneme", "4", "8", "20"}, in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 9 {
		t.Fatalf("%d answers: %s", len(lines), out.String())
	}
	for _, line := range lines {
		var r peer.Reply
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Error == "" || r.Unsupported {
			t.Errorf("answer %s, %v", line, err)
		}
	}
	out.Reset()
	file := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(file, make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Serve(context.Background(), []string{"exact", "4", "8", "20"}, strings.NewReader("build "+file+" 2 1\nsave x\n"), &out); err != nil || !strings.Contains(out.String(), `"unsupported":true`) {
		t.Errorf("%s, %v", out.String(), err)
	}
	for _, args := range [][]string{{"mneme"}, {"mneme", "x", "8", "20"}, {"mneme", "4", "1", "20"}, {"else", "4", "8", "20"}} {
		if err := Serve(context.Background(), args, strings.NewReader(""), &out); err == nil {
			t.Errorf("%q are taken", args)
		}
	}
}

func TestRecall(t *testing.T) {
	// Rows 2 and 3 are equally far from the query, and so are 4 and 5.
	rows, query := []float32{0, 9, 5, 5, 2, 2}, []float32{1}
	for _, c := range []struct {
		found, truth []int32
		want         float64
	}{
		{[]int32{1, 2}, []int32{1, 2}, 1},
		{[]int32{1, 3}, []int32{1, 2}, 1},
		{[]int32{3, 2}, []int32{1, 2}, 1}, // both are as near as the last
		{[]int32{1, 4}, []int32{1, 2}, 0.5},
		{[]int32{1, 1}, []int32{1, 2}, 0.5},
		{[]int32{5, -1}, []int32{5, -1}, 1},
		{[]int32{4, 5}, []int32{5, -1}, 1},
		{[]int32{-1, -1}, []int32{-1, -1}, 1},
	} {
		if got := recall(c.found, c.truth, 2, rows, query, 1); got != c.want {
			t.Errorf("recall(%v, %v) = %v, want %v", c.found, c.truth, got, c.want)
		}
	}
}

func TestRateAtTheWantedRecall(t *testing.T) {
	curve := []point{{10, 0.96, 3000}, {20, 0.97, 2000}, {40, 0.99, 1000}, {80, 1, 500}}
	r := &result{curve: curve}
	if got := r.rate(); got < 1499 || got > 1501 {
		t.Errorf("rate %v, want half way from 2000 to 1000", got)
	}
	if efOf(r) != 40 {
		t.Errorf("ef %d", efOf(r))
	}
	if r := (&result{curve: curve[2:]}); r.rate() != 1000 {
		t.Errorf("rate %v of a curve that begins above", r.rate())
	}
	stuck := []point{{recall: 0.5}, {recall: 0.8}, {recall: 0.9}, {recall: 0.95}, {recall: 0.95}}
	if flat(curve[:3]) || !flat(curve) || flat(stuck) || !flat(append(stuck, point{recall: 0.95})) {
		t.Error("flat")
	}
	low := &result{curve: curve[:2], failed: map[string]error{}}
	if low.rate() != 0 || efOf(low) != 20 || notReached(low) != "not reached (recall 0.970)" {
		t.Errorf("a curve that ends below: rate %v, ef %d, %s", low.rate(), efOf(low), notReached(low))
	}
}

// TestMarks holds the comparison to numbers that are given.
func TestMarks(t *testing.T) {
	ours := &result{index: index{name: "mneme"}, build: 100, buildAll: 300, bytes: 200, curve: []point{{10, 1, 50}}, failed: map[string]error{}}
	a := &result{index: index{name: "a", peer: true}, build: 200, buildAll: 100, curve: []point{{10, 1, 40}}, failed: map[string]error{}}
	c := &result{index: index{name: "c"}, build: 900, curve: []point{{10, 1, 400}}, failed: map[string]error{}}
	b := &bench{opt: Options{Threads: 2, Peers: "x"}, data: &data{dim: 384, changed: 1}, all: []*result{ours, a, c}}
	text := b.marks("m").Markdown()
	for _, want := range []string{"1.25 (50.0 beside 40.0 of a)", "0.500 (100 beside 200 of a)", "3.00 (300 beside 100 of a)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	a.failed["filter"] = peer.ErrUnsupported
	if got := b.filterTable("f"); got.Rows[1][1] != "not supported" {
		t.Errorf("%v", got.Rows)
	}
	lost := func() bool { return strings.Contains(b.marks("m").Markdown(), "replacing half") }
	if b.data.n = 10; lost() {
		t.Error("what was not replaced lost recall")
	}
	if b.opt.ReplaceUpto = 10; !lost() {
		t.Error("the loss by replacing is missing")
	}
}

func TestMask(t *testing.T) {
	m := &mask{words: []uint64{1<<3 | 1<<63, 0, 1}, count: 3}
	var got []vector.ID
	m.Each(func(id vector.ID) bool { got = append(got, id); return len(got) < 3 })
	if !slices.Equal(got, []vector.ID{3, 63, 128}) || !m.Contains(63) || m.Contains(64) || m.Count() != 3 {
		t.Errorf("%v", got)
	}
	n := 0
	m.Each(func(vector.ID) bool { n++; return false })
	if n != 1 {
		t.Errorf("%d calls after a refusal", n)
	}
}

func TestProcessThatFails(t *testing.T) {
	if _, err := peer.Start(context.Background(), "none", []string{"/does/not/exist"}); err == nil {
		t.Error("a missing program starts")
	}
	p, err := peer.Start(context.Background(), "bad", []string{os.Args[0], "serve", "else"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ask("build x 1 1"); err == nil {
		t.Error("a process that ended answers")
	}
	if p.Stop() == nil {
		t.Error("a process that failed stopped well")
	}
}
