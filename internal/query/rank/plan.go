package rank

import (
	"time"

	"mneme/internal/dates"
	index "mneme/internal/index/text"
	"mneme/internal/query/parse"
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
	Visible       index.Set      // the living documents of the reader's view
	Allow         index.Set      // what the request's filter allows; nil = all
	Background    Background     // of its vectors
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
	Query      string         // without its operators
	Phrases    []parse.Phrase // that every result holds
	Without    []parse.Phrase // that none does
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

	speakers []map[uint32]float64 // by partition: the value of an agent, as 1 + number; nil = the query names none
	dates    []dates.Expr         // times that the query names

	unknown bool    // no memory holds any of the query's words
	bound   float64 // the BM25 of a document that holds each word as often as can be
}

// NewPlan analyses a question.
func NewPlan(q Question) *Plan {
	p := &Plan{Question: q}
	if q.ByText {
		p.findDates()
		p.findConcepts()
	}
	p.requirePhrases()
	if p.HasText() && q.Parts[memory.PartSpeaker] {
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

// SetBound computes the BM25 of a document that holds each of the query's words as often
// as can be, but for its dates. docs and docFreq count all that the reader sees, so a
// filter does not change it; known says whether one of them holds a term in any field.
func (p *Plan) SetBound(docs uint64, docFreq func(term int) uint64, known func(term int) bool) {
	p.bound, p.unknown = 0, true
	for i := range p.Concepts {
		c := &p.Concepts[i]
		most := uint64(0)
		for k, to := p.TermsOf(i); k < to; k++ {
			most = max(most, docFreq(k))
		}
		c.most = (index.DefaultK1 + 1) * index.IDF(docs, most)
		if !c.dated {
			p.bound += c.most
		}
		for k := range c.Alternatives {
			p.unknown = p.unknown && !known(c.first+k)
		}
	}
}
