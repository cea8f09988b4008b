package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"mneme/internal/embed"
	index "mneme/internal/index/text"
	known "mneme/internal/index/words"
	"mneme/internal/query/rank"
	"mneme/internal/text"
	"mneme/memory"
)

// A word of the query that no living memory of the reader has is read as what it may
// have been meant for: terms that begin or end with it, that an edit or two make of it,
// that it makes with its neighbour, the two that it is glued of, and other names of the
// same thing. Only terms that living memories of the reader have are suggested. An
// ordinary word of the language is no misspelling, even if nobody wrote it yet.
//
// What is suggested follows from the rows of the reader's partitions alone.

// Kinds of corrections, as answers and explanations name them.
const (
	kindBeginning rank.Kind = "beginning" // the term begins with the word
	kindPart      rank.Kind = "part"      // it ends with it
	kindEdit      rank.Kind = "edit"
	kindGlued     rank.Kind = "glued" // the word and its neighbour are one term
	kindSplit     rank.Kind = "split" // the word is two terms
	kindAlias     rank.Kind = "alias"
	kindRelated   rank.Kind = rank.KindRelated // what people say for it, and no name of the same thing
	kindCommon    rank.Kind = "common"         // an edit leads to a far more frequent term
	kindBegins    rank.Kind = "begins"         // as the query asks with a star
	kindMany      rank.Kind = "many"           // more terms begin so than are looked for
	kindPhrase    rank.Kind = "phrase"         // no memory holds it, see phrases.go
)

// Weights of what a correction gives, beside what the word itself would. They are not
// tuned: what is surer weighs more, and what stands beside a known word little.
const (
	weightGlued      = 0.9
	weightAlias      = 0.9
	weightSplit      = 0.9
	weightEdit       = 0.8
	weightBeginning  = 0.8
	weightPart       = 0.7
	weightTwoEdits   = 0.6
	weightOrdinary   = 0.5 // a beginning that is a word of its own
	weightCut        = 0.5 // one that ends within an ending
	weightOther      = 0.4 // an alias of a known word
	weightRelated    = 0.3
	weightCommon     = 0.3
	weightRelatedToo = 0.2 // of a word that few memories have
)

// Bounds of the work of one search.
const (
	maxCorrected    = 8 // words
	maxAlternatives = 64
	maxTwoEdits     = 2       // words
	maxNodes        = 1 << 16 // of vocabularies, see words.Work
	maxListed       = 256     // terms that begin with a word; more say nothing
	maxCoded        = 4       // terms that begin with few characters of a hash or an id
	maxLooked       = 16      // of each kind whose documents are counted
	maxAlso         = 4       // words that came off others
	maxTold         = 3       // corrections of a word that an answer lists, near words for themselves; with a budget one
	maxBegun        = 1024    // terms that begin as the query asks; of more none is looked for
	maxBegunLooked  = 64      // of these whose documents are counted

	leastBeginning = 3 // characters
	leastCoded     = 4 // of hashes and ids, if at most maxCoded begin so
	leastSure      = 6 // of these, however many do
	leastPart      = 4
	leastEdit      = 4
	leastTwoEdits  = 8

	rareDocs    = 2  // a known word in so few documents may be a misspelling
	commonTimes = 20 // of a term in so many times more
)

// kept is how many meanings of a kind are kept for a word.
var kept = map[rank.Kind]int{kindBeginning: 8, kindPart: 4, kindEdit: 4, kindGlued: 2, kindSplit: 1, kindAlias: 6, kindRelated: 6, kindCommon: 2, kindBegins: 32}

// meaning is what a word may have been meant for.
type meaning struct {
	term    string
	also    []string // further terms: the rest of a split, or of a name
	kind    rank.Kind
	weight  float64
	edits   int
	strange int
	docs    uint64
	exact   bool   // what the query writes is a beginning of the name, up to a sign of it or as its star says
	written string // the word whose stem the term is, where that is known
}

// shown is what an answer says that the word was read as.
func (m *meaning) shown() string {
	if m.written != "" {
		return m.written
	}
	return strings.Join(append([]string{m.term}, m.also...), " ")
}

// queried is a distinct word of the query.
type queried struct {
	text.Word
	docs     uint64 // the most that have it in one field
	before   *text.Word
	after    *text.Word
	aliases  []string // other names
	meanings []meaning
	whole    bool   // it is no part of a name
	chosen   bool   // it may be corrected; else only other words for it are looked for
	begins   string // the beginning that it is, as it is written; "" = none
	apart    bool   // it is a beginning of its own, and no word of the query
	many     bool   // more begins so than is looked for
}

// written is the word as it stands in the query.
func (c *corrector) written(w *queried) string {
	if w.begins != "" {
		return w.begins + "*"
	}
	return c.s.plan.Query[w.Start:w.End]
}

// corrector corrects the words of one search.
type corrector struct {
	s            *search
	found        *words
	counted      []string // terms that found was asked for beside those of the query
	vocabularies []*known.Vocabulary
	unread       []*place // whose vocabularies are not there yet
	work         known.Work
	pattern      known.Pattern
	words        []*queried // in the order of the query
	tops         []text.Word
	seen         map[string]*queried // by term
	opened       bool
}

// corrected looks for the words again if some of them are to be read as others. It closes
// what was found where there is an error.
func (s *search) corrected(ctx context.Context, found *words) (*words, error) {
	if !s.plan.Parts[memory.PartVocabulary] && len(s.asked.Beginnings) == 0 {
		return found, nil
	}
	c := corrector{s: s, found: found, work: known.Work{Nodes: maxNodes}}
	q, err := c.correct(ctx)
	if err != nil {
		found.close()
		return found, err
	}
	if q != nil {
		s.plan = rank.NewPlan(*q)
		s.ranking.Begin(s.plan)
	} else if len(c.counted) == 0 {
		return found, nil
	}
	again := s.plan.Words
	again.K = rank.TextPool
	return found, found.again(ctx, again)
}

// correct gives the question with what its words may mean; nil if they mean what they
// say.
func (c *corrector) correct(ctx context.Context) (*rank.Question, error) {
	c.read(c.found)
	if err := c.define(ctx); err != nil {
		return nil, err
	}
	chosen := c.choose()
	if len(chosen) == 0 {
		return nil, nil
	}
	if err := c.open(chosen); err != nil {
		return nil, err
	}
	for _, w := range chosen {
		if err := c.look(w); err != nil {
			return nil, err
		}
	}
	if err := c.count(ctx, chosen); err != nil {
		return nil, err
	}
	far := chosen[:0:0]
	for _, w := range chosen {
		if w.chosen && w.docs == 0 && len(w.meanings) == 0 && len(far) < maxTwoEdits && c.misspelt(w, leastTwoEdits) {
			c.near(w, 2)
			far = append(far, w)
		}
	}
	if len(far) > 0 {
		if err := c.count(ctx, far); err != nil {
			return nil, err
		}
	}
	return c.question(chosen), nil
}

// read lists the query's distinct words that have a concept, with the documents that
// have them and with their neighbours.
func (c *corrector) read(found *words) {
	tops := topWords(c.s.plan.Query)
	seen := map[string]*queried{}
	at := map[string]int{} // concepts by term
	for i := range c.s.plan.Concepts {
		at[c.s.plan.Concepts[i].Alternatives[0].Term] = i
	}
	text.AnalyzeWords(c.s.plan.Query, func(w text.Word) bool {
		concept, ok := at[w.Term]
		if !ok || seen[w.Term] != nil || w.Kind == text.KindStop {
			return len(seen) < len(at)
		}
		c.take(w, concept, found, seen)
		return true
	})
	text.Index(c.s.plan.Query, func(t text.Token) bool {
		if concept, ok := at[t.Term]; ok && seen[t.Term] == nil && isOption(c.s.plan.Query, t) {
			c.take(text.Word{Token: t, Kind: text.KindWhole, Folded: t.Term}, concept, found, seen)
		}
		return len(seen) < len(at)
	})
	c.tops, c.seen = tops, seen
	for i := range tops {
		q := seen[tops[i].Term]
		if q == nil || tops[i].Kind == text.KindStop {
			continue
		}
		q.whole = true
		if i > 0 && q.before == nil {
			q.before = &tops[i-1]
		}
		if i+1 < len(tops) && q.after == nil {
			q.after = &tops[i+1]
		}
	}
	for _, b := range c.s.asked.Beginnings {
		c.begin(b, seen)
	}
	c.called(c.s.names())
}

// take adds a word of the query.
func (c *corrector) take(w text.Word, concept int, found *words, seen map[string]*queried) {
	q := &queried{Word: w}
	for term, to := c.s.plan.TermsOf(concept); term < to; term++ {
		q.docs = max(q.docs, docsOf(found, term))
	}
	seen[w.Term] = q
	c.words = append(c.words, q)
}

// isOption reports whether a term is the name of an option in one piece: no-verify of --no-verify.
func isOption(query string, t text.Token) bool {
	return t.Start > 0 && query[t.Start-1] == '-' && strings.Contains(t.Term, "-")
}

// begin takes a beginning: the word that it is, or one apart where it is cut into several.
func (c *corrector) begin(b string, seen map[string]*queried) {
	folded := text.Fold(b)
	w := &queried{Word: text.Word{Token: text.Token{Term: folded}, Kind: text.KindWhole, Folded: folded}, apart: true}
	if tops := topWords(b); len(tops) == 1 && tops[0].Start == 0 && strings.Trim(b[tops[0].End:], "_-./:@") == "" && seen[tops[0].Term] != nil {
		w = seen[tops[0].Term]
	} else if seen[folded] == nil {
		seen[folded] = w
		c.words = append(c.words, w)
	} else {
		w = seen[folded]
	}
	w.begins = b
}

// docsOf is in how many documents a term of the query is, in the field where it is in
// most.
func docsOf(found *words, term int) (docs uint64) {
	for f := range index.Field(index.NumFields) {
		docs = max(docs, found.on[0].DocFreq(term, f)) // each counts for all
	}
	return docs
}

// choose takes the words that are looked at: beginnings, then those that nothing has, then
// those that little has; and all that have other names or near words, for these alone.
func (c *corrector) choose() (out []*queried) {
	for _, w := range c.words {
		if w.begins != "" {
			w.chosen = true
			out = append(out, w)
		}
	}
	if !c.s.plan.Parts[memory.PartVocabulary] {
		return out
	}
	corrected := 0
	for _, rare := range []bool{false, true} {
		for _, w := range c.words {
			switch {
			case w.begins != "" || !w.readable() || corrected == maxCorrected:
			case !rare && w.docs == 0, rare && w.docs > 0 && w.docs <= rareDocs && c.misspelt(w, leastEdit):
				corrected++
				w.chosen = true
				out = append(out, w)
			}
		}
	}
	for _, w := range c.words {
		if (len(w.aliases) > 0 || len(w.related()) > 0) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// readable reports whether a word may be read as another one: of numbers those of several
// parts, the beginnings of addresses.
func (w *queried) readable() bool {
	return w.Kind == text.KindWord || w.Kind == text.KindWhole || w.Kind == text.KindNumber && strings.Contains(w.Term, ".")
}

// misspelt reports whether a word of at least so many characters may be a misspelling. A
// hash, a version or an id is not: of a name at most a quarter is digits.
func (c *corrector) misspelt(w *queried, least int) bool {
	n, digits := 0, 0
	for _, r := range w.Term {
		n++
		if unicode.IsNumber(r) {
			digits++
		}
	}
	return n >= least && 4*digits <= n && !embed.Ordinary(w.Term)
}

// open gets the vocabularies of the reader's partitions, if a word needs them.
func (c *corrector) open(chosen []*queried) error {
	if !slices.ContainsFunc(chosen, func(w *queried) bool { return w.docs <= rareDocs || w.begins != "" }) {
		return nil
	}
	return c.openAll()
}

// openAll gets the vocabularies of the reader's partitions, once.
func (c *corrector) openAll() error {
	if c.opened {
		return nil
	}
	c.opened = true
	for i := range c.s.places {
		p := &c.s.places[i]
		v, err := p.in.view.Vocabulary(p.Partition)
		if err != nil {
			return err
		}
		if v != nil {
			c.vocabularies = append(c.vocabularies, v)
		} else {
			c.unread = append(c.unread, p)
		}
	}
	return nil
}

// count drops the meanings that no living document has, and keeps the best of each
// kind.
func (c *corrector) count(ctx context.Context, chosen []*queried) error {
	q := c.s.plan.Words
	q.Terms, q.K = slices.Clone(q.Terms), 1
	at := map[string]int{}
	add := func(term string) {
		if _, ok := at[term]; !ok {
			at[term] = len(q.Terms)
			q.Terms = append(q.Terms, index.QueryTerm{Text: term, Weight: 1, Concept: len(q.Terms)})
		}
	}
	for i, t := range c.s.plan.Words.Terms {
		if _, ok := at[t.Text]; !ok {
			at[t.Text] = i
		}
	}
	for _, term := range c.counted {
		add(term)
	}
	before := len(q.Terms)
	for _, w := range chosen {
		for _, m := range w.meanings {
			add(m.term)
			for _, term := range m.also {
				add(term)
			}
		}
	}
	for _, t := range q.Terms[before:] {
		c.counted = append(c.counted, t.Text)
	}
	if len(q.Terms) > before {
		if err := c.found.again(ctx, q); err != nil {
			return err
		}
	}
	for _, w := range chosen {
		for i := range w.meanings {
			m := &w.meanings[i]
			m.docs = docsOf(c.found, at[m.term])
			for _, term := range m.also {
				m.docs = min(m.docs, docsOf(c.found, at[term]))
			}
		}
		w.keepBest()
	}
	return nil
}

// keepBest keeps what living documents have. Who wrote the beginning of a term did not
// write a letter too many.
func (w *queried) keepBest() {
	w.meanings = slices.DeleteFunc(w.meanings, func(m meaning) bool {
		return m.docs == 0 || m.kind == kindCommon && m.docs < commonTimes*w.docs
	})
	if slices.ContainsFunc(w.meanings, func(m meaning) bool { return m.kind == kindBeginning && len(m.term) > len(w.Term) }) {
		w.meanings = slices.DeleteFunc(w.meanings, func(m meaning) bool { return m.kind == kindEdit && !w.shorterThan(&m) })
	}
	slices.SortFunc(w.meanings, func(a, b meaning) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.strange, b.strange), cmp.Compare(b.docs, a.docs),
			known.CompareLikeness(w.Term, a.term, b.term), slices.Compare(a.also, b.also))
	})
	have := map[rank.Kind]int{}
	w.meanings = slices.DeleteFunc(w.meanings, func(m meaning) bool {
		have[m.kind]++
		return have[m.kind] > kept[m.kind]
	})
	w.many = w.many || have[kindBegins] > kept[kindBegins]
}

// shorterThan reports whether a word is shorter than what it may mean.
func (w *queried) shorterThan(m *meaning) bool {
	if m.written != "" {
		return len(m.written) > len(w.Folded)
	}
	return len(m.term) > len(w.Term)
}

// question is that of the search with what its words may mean; nil if they mean
// nothing else.
func (c *corrector) question(chosen []*queried) *rank.Question {
	q := c.s.question(true)
	q.Alternatives = map[string][]rank.Alternative{}
	left, most := maxAlternatives, c.s.maxTold()
	for _, w := range c.words {
		if !slices.Contains(chosen, w) {
			continue
		}
		told := 0
		if w.many {
			c.s.corrections = append(c.s.corrections, memory.Correction{Word: c.written(w), Kind: string(kindMany)})
		}
		if w.apart && len(w.meanings) > 0 {
			q.Also = append(q.Also, w.Term)
		}
		for _, m := range w.meanings[:min(len(w.meanings), left)] {
			if left--; len(q.Also)+len(m.also) > maxAlso {
				continue
			}
			q.Alternatives[w.Term] = append(q.Alternatives[w.Term], rank.Alternative{Term: m.term, Kind: m.kind, Weight: m.weight, Exact: m.exact})
			q.Also = append(q.Also, m.also...)
			if told++; m.kind == kindRelated {
				c.s.near = append(c.s.near, toldNear{at: len(c.s.corrections), word: w.Term, term: m.term})
			} else if told > most {
				continue
			}
			c.s.corrections = append(c.s.corrections, memory.Correction{Word: c.written(w),
				ReadAs: m.shown(), Kind: string(m.kind), Weight: m.weight, Distance: m.edits, Docs: int(m.docs)})
		}
	}
	if len(q.Alternatives) == 0 {
		return nil
	}
	return &q
}
