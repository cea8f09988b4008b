package rank

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// maxConcepts bounds the work of one search; a query of 16 KiB holds more words. With
// them maxAlternatives may be looked up beside.
const (
	maxConcepts     = 256
	maxAlternatives = 64
)

// Concept is one word of a query, and what stands for it. A document has of it what the
// alternative gives that gives most: one memory that says a word in two ways says it
// once.
type Concept struct {
	Alternatives []Alternative // the query's own word first
	first        int           // its place in Plan.Words; the others follow
	from, to     int           // where it stands in the query
	dated        bool          // it is a part of a date
	whole        bool          // it is an identifier, a path or an address in one piece
	coded        bool          // it is a code or stands within one
	most         float64       // the BM25 that it gives at most
	rarity       float64       // 1 = few memories have it, 0 = all do
}

// Alternative is a term that stands for a word of the query.
type Alternative struct {
	Term   string
	Kind   Kind
	Weight float64 // of what it gives, 0..1
	Exact  bool    // who has it has what the query writes, letter by letter: the name that it begins goes on
}

// Kind says why an alternative stands for a word.
type Kind string

// KindAsWritten is the word itself, and KindForm the same word in another form: its stem in
// the query's language, or another spelling. What corrects a query has its own kinds.
const (
	KindAsWritten Kind = "as_written"
	KindForm      Kind = "form"
	KindRelated   Kind = "related" // what people say for the word, and no name of the same thing
)

// same reports whether what stands for a word is that word.
func (a *Alternative) same() bool { return a.Kind == KindAsWritten || a.Kind == KindForm }

// isIdentifier reports whether a term is an identifier, a path, an address or a version:
// compounds of plain words such as follow-up are none, nor is a plain number.
func isIdentifier(term string) bool {
	letters := strings.ContainsFunc(term, unicode.IsLetter)
	return letters && len(term) >= 4 && strings.ContainsAny(term, "0123456789_/.:@#")
}

// isCoded reports whether a stretch without blanks is a name that somebody or something drew: a
// number, a hash, an address, a path or a key of a ticket.
func isCoded(stretch string) bool {
	return strings.ContainsAny(stretch, "0123456789") || isIdentifier(stretch)
}

// stretch is what stands around a word up to the next blanks, without the marks of a sentence.
func stretch(query string, w text.Token) string {
	from, to := 0, len(query)
	if at := strings.LastIndexFunc(query[:w.Start], unicode.IsSpace); at >= 0 {
		_, n := utf8.DecodeRuneInString(query[at:])
		from = at + n
	}
	if n := strings.IndexFunc(query[w.End:], unicode.IsSpace); n >= 0 {
		to = w.End + n
	}
	return strings.Trim(query[from:to], `.,;:!?"'()`)
}

// eachTerm visits the distinct terms of a query in its order, as many as a search looks for.
func eachTerm(query string, visit func(t text.Token)) {
	known := map[string]bool{}
	text.Index(query, func(t text.Token) bool {
		if !known[t.Term] {
			known[t.Term] = true
			visit(t)
		}
		return len(known) < maxConcepts
	})
}

// asked is a word of the query in its forms: tokens of one place in it, and how it is spelt elsewhere.
type asked struct {
	text.Token
	forms []string
}

// words lists the distinct words of a query, without the function words of its language, and
// with asides also without what it is not about, unless it has no others. A version with and without v is one word.
// left is how many pairs of characters are left out.
func words(query string, asides bool) (out []asked, left int) {
	at := map[[2]int]int{}
	functions := 0
	beside := text.AsidesOf(query)
	eachTerm(query, func(t text.Token) {
		place := [2]int{t.Start, t.End}
		if i, ok := at[place]; ok {
			if !slices.Contains(out[i].forms, t.Term) {
				out[i].forms = append(out[i].forms, t.Term)
			}
			return
		}
		at[place] = len(out)
		t.Function = t.Function || asides && beside.Has(t)
		out = append(out, asked{Token: t, forms: text.Spellings(query[t.Start:t.End])})
		if t.Function {
			functions++
		}
	})
	for i := range out {
		bare, ok := strings.CutPrefix(out[i].Term, "v")
		if !ok || !strings.Contains(bare, ".") {
			continue
		}
		if at, ok := at[[2]int{out[i].Start + 1, out[i].End}]; ok && out[at].Term == bare {
			out[i].forms = append(out[i].forms, bare)
			out[at].Term = ""
		}
	}
	out = slices.DeleteFunc(out, func(w asked) bool { return w.Term == "" })
	if functions > 0 && functions < len(out) {
		out = slices.DeleteFunc(out, func(w asked) bool {
			if w.Function && text.IsGram(w.Term) {
				left++
			}
			return w.Function
		})
	}
	return out, left
}

// findConcepts finds the query's concepts. Their terms are looked up in every field. The
// idf of an alternative is at most that of the word it stands for: a rare misspelling of
// a frequent word is worth no more than that.
func (p *Plan) findConcepts() {
	p.Words = index.Query{FieldWeights: [index.NumFields]float64{index.FieldText: weightText, index.FieldTags: weightTags, index.FieldURI: weightURI, index.FieldWho: weightWho}}
	beside := 0
	add := func(term string, forms []string, dated, whole bool) {
		c := Concept{Alternatives: []Alternative{{Term: term, Kind: KindAsWritten, Weight: 1}}, first: len(p.Words.Terms), dated: dated, whole: whole}
		for _, form := range forms {
			c.Alternatives = append(c.Alternatives, Alternative{Term: form, Kind: KindForm, Weight: 1})
		}
		for _, a := range p.Question.Alternatives[term] {
			if beside < maxAlternatives && a.Term != term && !slices.Contains(forms, a.Term) {
				c.Alternatives = append(c.Alternatives, a)
				beside++
			}
		}
		for i, a := range c.Alternatives {
			p.Words.Terms = append(p.Words.Terms, index.QueryTerm{Text: a.Term, Weight: a.Weight, Concept: len(p.Concepts), Bounded: i > 0})
		}
		p.Concepts = append(p.Concepts, c)
	}
	all, left := words(p.Query, len(p.Phrases) == 0) // words of phrases are looked up
	p.asides = left
	for _, w := range all {
		add(w.Term, w.forms, p.inDate(w.Token), isIdentifier(w.Term))
		c := &p.Concepts[len(p.Concepts)-1]
		c.coded = isCoded(stretch(p.Query, w.Token))
		c.from, c.to = w.Start, w.End
	}
	for _, term := range p.Also {
		if p.concept(term) < 0 {
			add(term, nil, false, false)
		}
	}
}

// held is the most that the concept gives if a document says it at all, else 0. What stands
// for a word counts by the root of its weight, which is already in the BM25: who says it in
// another way says it. What is only near to the word counts by its weight.
func (c *Concept) held(s index.Share) float64 {
	if s.Score == 0 || s.Told {
		return 0
	}
	a := &c.Alternatives[s.Term-c.first]
	if a.Kind == KindRelated {
		return c.most * a.Weight
	}
	return c.most * math.Sqrt(a.Weight)
}

// TermsOf are the places in Words.Terms of the word of a concept and of its forms.
func (p *Plan) TermsOf(concept int) (from, to int) {
	c := &p.Concepts[concept]
	n := 0
	for n < len(c.Alternatives) && c.Alternatives[n].same() {
		n++
	}
	return c.first, c.first + n
}

// concept finds the concept of a query's own term; -1 = none.
func (p *Plan) concept(term string) int {
	return slices.IndexFunc(p.Concepts, func(c Concept) bool { return c.Alternatives[0].Term == term })
}

// ShownTerms are all terms that a snippet should show.
func (p *Plan) ShownTerms() []string {
	out := make([]string, len(p.Words.Terms))
	for i := range p.Words.Terms {
		out[i] = p.Words.Terms[i].Text
	}
	return out
}
