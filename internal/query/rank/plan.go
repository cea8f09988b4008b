package rank

import (
	"slices"
	"time"

	"mneme/internal/dates"
	index "mneme/internal/index/text"
	"mneme/internal/query/parse"
	"mneme/internal/text"
	"mneme/memory"
)

// Weights of the fields in BM25.
const (
	weightText = 1.0
	weightTags = 0.6
	weightURI  = 0.6
	weightWho  = 1.0
)

// Partition is a partition that a search looks into.
type Partition struct {
	Conversations *Conversations // nil if nothing was ever written to it
	Visible       Living         // the documents of the reader's view
	Allow         index.Set      // what the request's filter allows; nil = all
	Background    Background     // of its vectors
}

// Living is the set of the documents that live.
type Living interface {
	index.Set
	// Before counts those whose DocIDs are below doc.
	Before(doc uint32) uint32
}

func (p *Partition) allows(doc uint32) bool { return p.Allow == nil || p.Allow.Contains(doc) }

// How many candidates the sources give. It does not depend on the limit, so that a limit
// cuts an answer and does not change it.
const (
	TextPool   = memory.MaxLimit
	vectorPool = 100 // beside words
)

// Question is what a search asks.
type Question struct {
	Query      string         // without its operators, and without Present
	Phrases    []parse.Phrase // that every result holds
	Without    []parse.Phrase // that none does
	Present    bool           // asked for what holds now, in words that are not in Query
	As         string         // the agent that asks; "" = unknown
	Now        time.Time      // what "last week" is counted from
	Partitions []Partition

	ByText, ByVector         bool    // which sources answer
	TextFactor, VectorFactor float64 // what the weights of words and vectors are multiplied with
	Parts                    map[memory.Part]bool

	// Alternatives are what else stands for a word of the query, by its term.
	Alternatives map[string][]Alternative
	// Also are further terms, which came off words of the query.
	Also []string
}

// Plan is how the candidates of one question are found and scored.
type Plan struct {
	Question
	Concepts []Concept   // of the query, distinct; none if text does not answer
	Words    index.Query // their alternatives for the text index, without K

	speakers []map[uint32]float64  // by partition: the value of an agent, as 1 + number; nil = the query names none
	dates    []dates.Expr          // times that the query names
	first    bool                  // the query is in the first person
	byTerm   text.TermTable[[]int] // see conceptsOf
	asides   int                   // how many pairs of characters the query is not about

	unknown  bool    // no memory holds any of the query's words
	bound    float64 // the BM25 of a document that holds each word as often as can be, and is of the time asked for
	dateMass float64 // what of it is for the time
	known    float64 // how much of the query the memories know at all, 0..1
}

// NewPlan analyses a question.
func NewPlan(q Question) *Plan {
	p := &Plan{Question: q, known: 1}
	if q.ByText {
		p.findDates()
		p.findConcepts()
	}
	p.requirePhrases()
	if p.HasText() {
		p.findSpeakers()
	}
	return p
}

// HasText reports whether the query has a word to look for.
func (p *Plan) HasText() bool { return len(p.Concepts) > 0 }

// VectorPool is how many candidates vectors give.
func (p *Plan) VectorPool() int {
	if p.HasText() {
		return vectorPool
	}
	return memory.MaxLimit
}

// Origins is how many of the best of each source bring their neighbours as candidates.
func (p *Plan) Origins() int { return originsOfEach }

// datedShare is of how many memories one is of the time that a query names, about: it counts as
// a word does that so many have.
const datedShare = 20

// fewMemories is of how many memories a word that none has says half of what it says of
// very many.
const fewMemories = 200

// SetBound computes the BM25 of a document that holds each of the query's words as often
// as can be, but for its dates, and how much of the query is known. docs and docFreq count
// all that the reader sees, so a filter does not change it; known says whether one of them
// holds a term in any field.
//
// What asks for something that no memory is about has words that none has. That says little
// while there are few memories. Pairs of characters of scripts without spaces are cut in the
// middle of words: those that have no character in common with what is known count by half of what
// they are more than all else that is asked. Where only what is near to a word is known, the word is by
// as much as that counts for it. Where nothing at all is known, words say nothing, and vectors
// answer alone; but of codes, which mean nothing but themselves, vectors say nothing either.
//
// A question in these scripts has little in it but its question words, so that a time would answer
// whatever is asked beside it. Where nothing else of it is known, they count as what nobody wrote.
func (p *Plan) SetBound(docs uint64, docFreq func(term int) uint64, known func(term int) bool) {
	p.bound, p.unknown, p.known = 0, true, 1
	asked, missing, coded, found := 0.0, 0.0, len(p.Concepts) > 0, false
	var familiar, strange []*Concept // those that are known, and pairs of characters that are not
	for i := range p.Concepts {
		c := &p.Concepts[i]
		coded = coded && c.coded
		most := uint64(0)
		for k, to := p.TermsOf(i); k < to; k++ {
			most = max(most, docFreq(k))
		}
		c.most = (index.DefaultK1 + 1) * index.IDF(docs, most)
		c.rarity = rarity(docs, most)
		best := 0.0
		for k := range c.Alternatives {
			if a := &c.Alternatives[k]; known(c.first + k) {
				p.unknown = false
				if best = max(best, a.Weight); a.Kind != KindRelated {
					best = 1
				}
			}
		}
		if best > 0 {
			familiar = append(familiar, c)
		}
		if c.dated {
			continue
		}
		found = found || best > 0
		p.bound += c.most
		if best > 0 || !text.IsGram(c.Alternatives[0].Term) {
			asked, missing = asked+c.most, missing+c.most*(1-best)
		} else {
			strange = append(strange, c)
		}
	}
	pairs := 0.0
	for _, c := range strange {
		if !slices.ContainsFunc(familiar, c.overlaps) {
			pairs += c.most
		}
	}
	if excess := pairs - asked; excess > 0 {
		asked, missing = asked+pairs, missing+excess/2
	}
	if !found {
		p.bound += float64(p.asides) * (index.DefaultK1 + 1) * index.IDF(docs, 0)
	}
	p.dateMass = 0
	if len(p.dates) > 0 && p.Parts[memory.PartDates] {
		p.dateMass = (index.DefaultK1 + 1) * index.IDF(docs, docs/datedShare)
		p.bound += p.dateMass
	}
	if p.unknown && coded {
		p.known = 0
	}
	if asked > 0 && (!p.unknown || p.asides > 0 && len(p.dates) > 0) {
		p.known -= missing / asked * float64(docs) / float64(docs+fewMemories)
	}
}

// overlaps reports whether two words of the query have a character in common.
func (c *Concept) overlaps(o *Concept) bool { return c.from < o.to && o.from < c.to }

// rarity says how rare what most of docs memories have is: 1 up to the square root of their
// number, by the logarithm, and 0 of what all have.
func rarity(docs, most uint64) float64 {
	if most <= 1 {
		return 1
	}
	return min(1, 2*index.IDF(docs, most)/index.IDF(docs, 1))
}
