package corpus

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const packages = `Package: alpha
Version: 1
Description: first program
 It does many things.
 .
 And well.
Homepage: https://example.org/
 not description

Package: beta
Description-en: second program

Package: gamma
Version: 3

Package: delta
Description: last without a newline`

func TestParsePackages(t *testing.T) {
	var got []string
	more, err := parsePackages(strings.NewReader(packages), func(s string) bool { got = append(got, s); return true })
	if err != nil || !more {
		t.Fatalf("more %v, error %v", more, err)
	}
	want := []string{"alpha: first program\nIt does many things.\n\nAnd well.", "beta: second program", "delta: last without a newline"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	n := 0
	more, err = parsePackages(strings.NewReader(packages), func(string) bool { n++; return false })
	if n != 1 || more || err != nil {
		t.Errorf("after a refusal: %d texts, more %v, %v", n, more, err)
	}
}

func TestGoComments(t *testing.T) {
	long := strings.Repeat("word ", 40)
	source := "// Package p " + long + "\npackage p\n\n// F " + long + "\nfunc F() {\n\t// inner " + long +
		"\n}\n\n// short\nfunc G() {}\n\ntype (\n\t// T " + long + "\n\tT struct {\n\t\t// Field " + long + "\n\t\tField int\n\t}\n)\n\nvar (\n\t// V " + long + "\n\tV int\n)\n"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	declComments(file, func(s string) bool { first = append(first, strings.Fields(s)[0]); return true })
	if want := []string{"Package", "F", "T", "Field", "V"}; !slices.Equal(first, want) {
		t.Errorf("got comments that begin with %q, want %q", first, want)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "testdata"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.go", "testdata/b.go", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, n := 0, 0
	if err := walkComments(context.Background(), dir, &files, func(string) bool { n++; return true }); err != nil || files != 1 || n != 5 {
		t.Errorf("%d files, %d comments, error %v; want 1 and 5", files, n, err)
	}
	if err := walkComments(context.Background(), dir, &files, func(string) bool { return false }); err != errEnough {
		t.Errorf("after enough: %v", err)
	}
}

func TestLoadGenerated(t *testing.T) {
	opt := Options{Count: 300, Seed: 5, Sources: []string{"generated"}}
	a, err := Load(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(context.Background(), opt)
	if err != nil || !slices.Equal(a.Texts, b.Texts) {
		t.Errorf("the same seed gives other texts (%v)", err)
	}
	opt.Seed = 6
	if c, err := Load(context.Background(), opt); err != nil || slices.Equal(a.Texts, c.Texts) {
		t.Errorf("another seed gives the same texts (%v)", err)
	}
	distinct := map[string]bool{}
	for _, s := range a.Texts {
		distinct[s] = true
	}
	if len(a.Texts) != 300 || len(distinct) != 300 || !strings.HasPrefix(a.From, "300 generated texts; ") {
		t.Errorf("%d texts, %d distinct, from %q", len(a.Texts), len(distinct), a.From)
	}
	if _, err := Load(context.Background(), Options{Count: 1, Sources: []string{"nowhere"}}); err == nil {
		t.Error("an unknown source is no error")
	}
	if _, err := Load(context.Background(), Options{Count: 1, Sources: []string{}}); err == nil {
		t.Error("no text is no error")
	}
}

func TestQueries(t *testing.T) {
	c := &Corpus{Texts: []string{"One short sentence, with ONE repeated word or two.", "a b", "Übung macht den Meister"}, seed: 1}
	queries := c.Queries(200)
	if len(queries) != 200 || !slices.Equal(queries, c.Queries(200)) {
		t.Fatalf("%d queries, or others the second time", len(queries))
	}
	lengths := map[int]bool{}
	for _, q := range queries {
		words := strings.Fields(q)
		lengths[len(words)] = true
		all := Words(c.Texts[0])
		if !slices.Contains(all, words[0]) {
			all = Words(c.Texts[2])
		}
		for _, w := range words { // in order, each once
			i := slices.Index(all, w)
			if i < 0 {
				t.Fatalf("query %q holds %q, which no text has in that order", q, w)
			}
			all = all[i+1:]
		}
	}
	for n := 2; n <= 6; n++ {
		if !lengths[n] {
			t.Errorf("no query of %d words", n)
		}
	}
	if len(lengths) != 5 {
		t.Errorf("queries have %v words, want 2 to 6", lengths)
	}
	if got := (&Corpus{Texts: []string{"a b"}}).Queries(3); len(got) != 0 {
		t.Errorf("got %q from a text without words", got)
	}
}

func TestSized(t *testing.T) {
	c := &Corpus{Texts: []string{"äöü", "abc"}}
	for size := range 40 {
		for i := range 5 {
			s := c.Sized(i, size)
			if len(s) != size || !utf8.ValidString(s) {
				t.Fatalf("Sized(%d, %d) = %q, %d bytes", i, size, s, len(s))
			}
		}
	}
}

func TestClip(t *testing.T) {
	for size, want := range []string{"", "", "ä", "ä", "ä€"[:2], "ä€"} {
		if got := clip("ä€", size); got != want {
			t.Errorf("clip to %d = %q, want %q", size, got, want)
		}
	}
}

func TestGrowKeepsFrequencies(t *testing.T) {
	var texts []string
	for range 50 {
		texts = append(texts, "the cat sat on the mat", "the dog sat on the cat and the rug")
	}
	c := &Corpus{Texts: texts, From: "a test", seed: 9}
	g, again := c.Grow(3000), c.Grow(3000)
	if len(g.Texts) != 3000 || !slices.Equal(g.Texts, again.Texts) || !slices.Equal(g.Texts[:100], texts) {
		t.Fatalf("%d texts, or others for the same seed", len(g.Texts))
	}
	count := func(texts []string, of string) float64 {
		n, all := 0, 0
		for _, text := range texts {
			for _, w := range strings.Fields(text) {
				all++
				if w == of {
					n++
				}
			}
		}
		return float64(n) / float64(all)
	}
	for _, w := range []string{"the", "dog", "sat"} {
		if was, is := count(texts, w), count(g.Texts[100:], w); is < 0.85*was || is > 1.15*was {
			t.Errorf("%q is %.3f of the words, was %.3f", w, is, was)
		}
	}
	fresh := 0
	for _, text := range g.Texts[100:] {
		for _, w := range strings.Fields(text) {
			if strings.ContainsAny(w, "0123456789") {
				fresh++
			}
		}
	}
	if fresh < 20 || fresh > 200 {
		t.Errorf("%d new words among about 20,000, want about 1 in %d", fresh, freshOdds)
	}
	if c.Grow(10) != c || !strings.Contains(g.From, "2900 that") {
		t.Errorf("from %q", g.From)
	}
	empty := &Corpus{Texts: []string{" "}}
	if empty.Grow(5) != empty {
		t.Error("texts without words grow")
	}
}

func TestParagraphsOfFiles(t *testing.T) {
	dir := t.TempDir()
	one, two := strings.Repeat("one ", 20), strings.Repeat("two ", 20)
	for name, text := range map[string]string{"a.md": one + "\r\n\r\nshort\n\n" + two, "b.bin": "\xff" + one + "\n\n" + one} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "a.md")} {
		c, err := Load(context.Background(), Options{Count: 9, Seed: 1, Sources: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.Texts)
		if want := []string{strings.TrimSpace(one), strings.TrimSpace(two)}; !slices.Equal(c.Texts, want) {
			t.Errorf("%s gives %q", path, c.Texts)
		}
	}
	if c, err := Load(context.Background(), Options{Count: 1, Sources: []string{dir}}); err != nil || len(c.Texts) != 1 {
		t.Errorf("one text: %v", err)
	}
	if _, err := Load(context.Background(), Options{Count: 1, Sources: []string{dir + "/none"}}); err == nil {
		t.Error("a missing path is no error")
	}
}

func TestQuestions(t *testing.T) {
	c := &Corpus{Texts: []string{"one, two  three four", "five six"}}
	got := c.Questions(30, 3, true)
	if len(got) != 30 || !slices.Contains(got, "one, two three") || !slices.Contains(got, "two three four") {
		t.Errorf("%q", got)
	}
	if got := c.Questions(3, 5, true); len(got) != 0 {
		t.Errorf("%q of five words", got)
	}
	c = &Corpus{Texts: []string{`say "so" with no-one`, "a --flag", "plain words* only", "- a dash"}}
	for _, q := range c.Questions(30, 2, true) {
		if want := []string{"with no-one", "- a", "a dash"}; !slices.Contains(want, q) {
			t.Errorf("%q is plain", q)
		}
	}
	for _, q := range c.Questions(30, 2, false) {
		if want := []string{`say "so"`, `"so" with`, "a --flag", "plain words*", "words* only"}; !slices.Contains(want, q) {
			t.Errorf("%q has an operator", q)
		}
	}
}
