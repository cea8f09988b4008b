package texts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/bench/search/internal/peer"
)

func someTexts(n int) []string {
	rng := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("red green blue alpha beta gamma delta window door house café user_id 2024-05-01 snowball running dogs")
	out := make([]string, n)
	for i := range out {
		var text []string
		for range 10 + rng.IntN(10) {
			text = append(text, words[int(float64(len(words))*rng.Float64()*rng.Float64())])
		}
		out[i] = strings.Join(text, " ") + fmt.Sprintf(" n%d", i)
	}
	return out
}

func TestRun(t *testing.T) {
	opt := Options{Dir: t.TempDir(), Threads: 2, Queries: 20, Sample: 20, Runs: 1, Least: 5 * time.Millisecond, Seed: 1, Progress: t.Logf, Missing: errors.New("no compiler")}
	tables, err := Run(context.Background(), opt, someTexts(300), "a test")
	if err != nil {
		t.Fatal(err)
	}
	text := tables[0].Markdown() + tables[1].Markdown()
	for _, want := range []string{"| mneme ", "| bleve (scorch) ", "| SQLite FTS5, in Go ", "| Xapian ", "not measured: no compiler", "8 terms", "texts: a test"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Count(text, "not measured") != 2 {
		t.Errorf("an index failed:\n%s", text)
	}
	if left, err := filepath.Glob(filepath.Join(opt.Dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Run(context.Background(), opt, []string{"one word"}, ""); err == nil {
		t.Error("texts without 8 terms are taken")
	}
}

// TestEnginesAgree asks all indexes for terms that only some documents hold, and
// ours for the ranking of the scan.
func TestEnginesAgree(t *testing.T) {
	docs := analyse(someTexts(400))
	scan := newTwin(docs)
	engines := map[string]func(string) engine{"mneme": newOwn, "bleve": newBleve, "fts5": newFTS5}
	if program, err := peer.Texts(t.Context(), t.TempDir()); err != nil {
		t.Log(err)
	} else {
		engines["fts5 in C"], engines["xapian"] = newOutside(program, "fts5"), newOutside(program, "xapian")
	}
	for name, make := range engines {
		t.Run(name, func(t *testing.T) {
			e := make(filepath.Join(t.TempDir(), "index"))
			began := time.Now()
			if err := e.build(context.Background(), docs); err != nil {
				t.Fatal(err)
			}
			if took := duration(e, began); took <= 0 || took > time.Since(began) {
				t.Errorf("it says that building took %v", took)
			}
			if err := e.open(); err != nil {
				t.Fatal(err)
			}
			defer e.close()
			for _, size := range lengths {
				for _, q := range docs.queries(7, 10, size) {
					const k = 1000 // all that match
					got, err := e.search(context.Background(), q, k)
					if err != nil {
						t.Fatal(err)
					}
					want := scan.search(q, k)
					if !slices.Equal(found(got), found(want)) {
						t.Errorf("%q: found %d documents, the scan %d", q, len(got), len(want))
					}
					if name == "mneme" && !same(got[:min(K, len(got))], want[:min(K, len(want))]) {
						t.Errorf("%q: ranked %v, the scan %v", q, got[:K], want[:K])
					}
				}
			}
		})
	}
}

func found(hits []hit) []uint32 {
	var out []uint32
	for _, h := range hits {
		out = append(out, h.doc)
	}
	slices.Sort(out)
	return out
}

func TestSame(t *testing.T) {
	want := []hit{{1, 3}, {2, 2}, {3, 2}, {4, 1}}
	for _, c := range []struct {
		got  []hit
		same bool
	}{
		{want, true},
		{[]hit{{1, 3}, {3, 2}, {2, 2}, {4, 1}}, true},
		{[]hit{{1, 3}, {2, 2}, {3, 2}, {9, 1}}, true}, // a tie at the end
		{[]hit{{2, 2}, {1, 3}, {3, 2}, {4, 1}}, false},
		{[]hit{{1, 3}, {9, 2}, {3, 2}, {4, 1}}, false},
		{[]hit{{1, 3}, {2, 2.1}, {3, 2}, {4, 1}}, false},
		{want[:3], false},
	} {
		if got := same(c.got, want); got != c.same {
			t.Errorf("same(%v) = %v", c.got, got)
		}
	}
}

func TestSpell(t *testing.T) {
	if n := len(spell(strings.Repeat("/", 128))); n > 245 {
		t.Errorf("the longest term comes to %d bytes, Xapian takes 245", n)
	}
	for term, want := range map[string]string{"abc1": "abc1", "a b": "x0c4g64", "é": "x0oekg", "": ""} {
		if got := spell(term); got != want {
			t.Errorf("spell(%q) = %q, want %q", term, got, want)
		}
	}
}
