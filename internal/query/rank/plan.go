package rank

import (
	"math"
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
	weightWho  = 0.3
)

// Partition is a partition that a search looks into.
type Partition struct {
	Conversations *Conversations // nil if nothing was ever written to it
	Visible       index.Set      // the living documents of the reader's view
	Allow         index.Set      // what the request's filter allows; nil = all
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

	ByText, ByVector         bool // which sources answer
	TextWeight, VectorWeight float64
	Parts                    map[memory.Part]bool

	// Alternatives are what else stands for a word of the query, by its term; see Terms.
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

	side   [2]float64        // the shares of vectors and text, sum to 1
	weight [numParts]float64 // sum to 1 at most
	bound  float64           // the BM25 of a text value of 1
}

// NewPlan analyses a question.
func NewPlan(q Question) *Plan {
	p := &Plan{Question: q}
	if q.ByText {
		p.findConcepts()
	}
	p.share()
	p.requirePhrases()
	if p.HasText() && q.Parts[memory.PartSpeaker] {
		p.findSpeakers()
	}
	if p.HasText() && q.Parts[memory.PartDates] {
		p.findDates()
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

// share decides how vectors and text share a score.
func (p *Plan) share() {
	switch {
	case !p.ByVector:
		p.side = [2]float64{0, 1}
	case !p.HasText():
		p.side = [2]float64{1, 0}
	case p.VectorWeight+p.TextWeight <= 0:
		p.side = [2]float64{0.5, 0.5}
	default:
		p.side = [2]float64{p.VectorWeight, p.TextWeight}
	}
}

// SetBound computes the BM25 that stands for a text value of 1: that of a document
// that holds each of the query's words as often as can be. docs and docFreq count
// all that the reader sees, so a filter does not change it.
func (p *Plan) SetBound(docs uint64, docFreq func(term int) uint64) {
	p.bound = 0
	for c := range p.Concepts {
		n := float64(docFreq(p.Concepts[c].first))
		all := max(float64(docs), n)
		p.bound += (index.DefaultK1 + 1) * math.Log(1+(all-n+0.5)/(n+0.5))
	}
}
