package query

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"mneme/internal/importer"
	"mneme/internal/query/querytest"
	"mneme/memory"
)

// openData opens a file of the test data, which is no part of the repository.
func openData(t testing.TB, name string) *os.File {
	t.Helper()
	dir := os.Getenv("MNEME_DATA")
	for at, _ := os.Getwd(); dir == ""; at = filepath.Dir(at) {
		if at == filepath.Dir(at) {
			t.Skipf("no test data: set MNEME_DATA to a folder with %s", name)
		}
		for _, try := range []string{filepath.Join(at, "shared", "data"), filepath.Join(at, "..", "shared", "data")} {
			if _, err := os.Stat(filepath.Join(try, name)); err == nil {
				dir = try
			}
		}
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("no test data: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// asked is what a mode achieved over questions.
type asked struct{ questions, found, mrr float64 }

// TestHybridAtLeastText holds the fusion to its promise on conversations of
// people (LoCoMo): it finds the evidence of a question about as well as text
// alone, and puts the first of it hardly lower: hashed vectors know no
// synonyms, what they add are parts of words.
func TestHybridAtLeastText(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	f := openData(t, "locomo/dev.json")
	src, err := importer.Open("locomo", f, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	batches := map[string][]memory.Capture{}
	for {
		it, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		batches[it.Namespace] = append(batches[it.Namespace], it.Capture)
	}
	var namespaces []string
	for ns, all := range batches {
		namespaces = append(namespaces, ns)
		w.Namespace(ns, map[string]string{"embedder.space": querytest.BuiltinSpace})
		for batch := range slices.Chunk(all, 200) {
			w.Capture(ns, batch...)
		}
	}
	text, hybrid := w.ask(t, namespaces, memory.ModeText), w.ask(t, namespaces, memory.ModeHybrid)
	t.Logf("recall@10 of evidence: text %.4f, hybrid %.4f; MRR: text %.4f, hybrid %.4f; %v questions",
		text.found/text.questions, hybrid.found/hybrid.questions, text.mrr/text.questions, hybrid.mrr/hybrid.questions, text.questions)
	if hybrid.found < text.found-0.005*text.questions || hybrid.mrr < 0.975*text.mrr {
		t.Error("hybrid ranks worse than text alone")
	}
}

func (w *world) ask(t *testing.T, namespaces []string, mode memory.Mode) asked {
	questions, _, err := importer.Questions(openData(t, "locomo/dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]*Reader{}
	for _, ns := range namespaces {
		readers[ns] = w.reader(ns, "")
	}
	var out asked
	for _, q := range questions {
		r := readers[importer.MakeName(q.Sample)]
		if r == nil || len(q.Evidence) == 0 || q.Category == 5 {
			continue
		}
		res, err := r.Search(context.Background(), memory.SearchRequest{Query: q.Question, Mode: mode, Limit: ptr(10)})
		if err != nil {
			t.Fatal(err)
		}
		out.questions++
		hit, first := 0, 0
		for rank, h := range res.Results {
			if slices.ContainsFunc(q.Evidence, func(e string) bool { return evidenceOf(h) == e }) {
				hit++
				if first == 0 {
					first = rank + 1
				}
			}
		}
		out.found += float64(hit) / float64(len(q.Evidence))
		if first > 0 {
			out.mrr += 1 / float64(first)
		}
	}
	return out
}

// evidenceOf is the dia_id of a turn: the end of its uri.
func evidenceOf(h memory.Hit) string { return path.Base(h.URI) }
