package rank

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mneme/memory"
)

// feature is one addend of a candidate's sum. Its value is never negative, and more of it
// never makes a score less. It is a function of the query, the document, what stands
// around it and the counters of all that the reader sees: the limit, the filter and what
// else was found change none but featureNewer.
type feature int

// The features. Those behind the first two, which are of the query, are what may match it.
const (
	featureBase feature = iota // 1
	featureKnown
	featureWordsAlone
	featureVectorsAlone
	featureExact
	featureVector
	featureVectorNeighbours
	featureText
	featureMatched
	featureNeighbours
	featureMatchedNeighbours
	featureTold
	featureDates
	featureSpeaker
	featureOpening
	featureRecent
	featureNewer // see newer.go
	numFeatures
)

// sources are the names of the features in matched_by and explain.
var sources = [numFeatures]string{"base", "known", "words_alone", "vectors_alone", "exact", "vector", "vector_neighbours", "text", "matched", string(memory.PartNeighbours), "matched_neighbours",
	"told", string(memory.PartDates), string(memory.PartSpeaker), string(memory.PartOpening), string(memory.PartRecent), string(memory.PartNewer)}

// weights of the features in the sum. They were chosen on the development sets and are
// round: decision 0040 has how, and what they are worth on sets that they were not chosen
// on. That of exact lifts a hit without anything else above the default floor.
var weights = [numFeatures]float64{
	featureBase:              -8.15,
	featureKnown:             3,
	featureWordsAlone:        1.25,
	featureVectorsAlone:      3,
	featureExact:             4,
	featureText:              1.25,
	featureMatched:           4,
	featureNeighbours:        1.75,
	featureMatchedNeighbours: 3,
	featureVector:            0.3,
	featureVectorNeighbours:  0.3,
	featureTold:              1.25,
	featureDates:             1,
	featureSpeaker:           2,
	featureOpening:           0.75,
	featureRecent:            3,
	featureNewer:             1,
}

// Evaluate fills in the features of all candidates.
func (r *Ranking) Evaluate() {
	for i := range r.candidates {
		c := &r.candidates[i]
		c.values, c.raw = [numFeatures]float64{}, [numFeatures]float64{}
		c.set(featureBase, 1)
		c.set(featureKnown, r.plan.known)
		r.evaluateVectors(c)
		if r.plan.HasText() {
			r.evaluateText(c)
		}
		if r.plan.speaks(c) {
			r.evaluateTold(c)
		}
	}
}

// evaluateVectors fills in what the vectors say of a candidate and of the messages right
// beside it. Where one of the two sources says nothing of a candidate, because there is no
// vector or no word, the feature for that stands for what it adds to a usual result.
func (r *Ranking) evaluateVectors(c *Candidate) {
	p := r.plan
	switch {
	case !p.HasText() || p.unknown:
		c.set(featureVectorsAlone, 1)
	case !c.hasVector:
		c.set(featureWordsAlone, 1)
	}
	if !c.hasVector {
		return
	}
	background := p.Partitions[c.Partition].Background
	c.values[featureVector], c.raw[featureVector] = background.standsOut(c.cosine), c.cosine
	if p.HasText() && p.Parts[memory.PartNeighbours] && c.around.before+c.around.after > 0 {
		beside := r.neighbourCosine(c)
		c.values[featureVectorNeighbours], c.raw[featureVectorNeighbours] = background.standsOut(beside), beside
	}
}

// evaluateText fills in what the words of the query say of a candidate: how often it
// holds them (BM25), and how much of the query it holds at all, which the length of a
// text hardly changes. What neighbours add is counted on top of its own. Words that stand
// only in who said it and when, and those of dates, count for themselves: they say nothing
// of what, and an agent called search is none of the words of a query.
func (r *Ranking) evaluateText(c *Candidate) {
	p := r.plan
	own := r.evidence.row(c.row)
	mass, held, told, dated := 0.0, 0.0, 0.0, 0.0
	for i := range own {
		concept, s := &p.Concepts[i], own[i].Score
		switch {
		case s == 0:
		case concept.dated || own[i].Told:
			told += s
			if !own[i].Told && strings.ContainsAny(concept.Alternatives[0].Term, "-/.") {
				dated = 1 // the text names the day itself
			}
		default:
			mass += s
			held += concept.held(own[i])
			if a := &concept.Alternatives[own[i].Term-concept.first]; a.Exact || concept.whole && a.same() {
				c.setExact(concept.rarity)
			}
		}
	}
	if len(p.Phrases) > 0 { // only what holds them is a candidate
		c.setExact(1)
	}
	c.values[featureText], c.raw[featureText] = math.Log1p(mass), mass
	c.values[featureTold], c.raw[featureTold] = math.Log1p(told), told
	if p.dateMass > 0 {
		if agent, at := p.Partitions[c.Partition].Conversations.of(c.Doc); agent != 0 {
			dated = max(dated, p.dateFit(at))
		}
		held += p.dateMass * dated
	}
	if p.bound > 0 {
		c.values[featureMatched], c.raw[featureMatched] = min(held/p.bound, 1), held
	}
	if c.around.before+c.around.after > 0 && p.Parts[memory.PartNeighbours] {
		gain, more := r.contributed(c, own)
		c.values[featureNeighbours], c.raw[featureNeighbours] = math.Log1p(mass+gain)-math.Log1p(mass), gain
		if p.bound > 0 {
			c.values[featureMatchedNeighbours], c.raw[featureMatchedNeighbours] = min(more/p.bound, 1), more
		}
	}
}

// evaluateTold fills in who said a candidate and when, and where it stands.
func (r *Ranking) evaluateTold(c *Candidate) {
	p := r.plan
	agent, at := p.Partitions[c.Partition].Conversations.of(c.Doc)
	if p.speakers != nil {
		c.set(featureSpeaker, p.speakers[c.Partition][agent])
	}
	if c.opens && p.Parts[memory.PartOpening] {
		c.set(featureOpening, 1)
	}
	if p.first && p.Parts[memory.PartRecent] {
		live := p.Partitions[c.Partition].Visible
		n := live.Before(math.MaxUint32)
		c.set(featureRecent, recency(n-live.Before(c.Doc)-1, n))
	}
	if len(p.dates) > 0 && agent != 0 && p.Parts[memory.PartDates] {
		c.set(featureDates, p.dateFit(at))
	}
}

func (c *Candidate) set(k feature, value float64) { c.values[k], c.raw[k] = value, value }

// setExact says that a candidate holds an identifier or a phrase letter by letter, how rare
// that is, 0..1: then it does not matter what else of the query nobody knows.
func (c *Candidate) setExact(rarity float64) {
	c.set(featureExact, max(c.values[featureExact], rarity))
	c.set(featureKnown, max(c.values[featureKnown], rarity))
}

// matches reports whether words or vectors say anything for a candidate. Where only
// vectors answer they rank whatever there is.
func (p *Plan) matches(c *Candidate) bool {
	b := p.Partitions[c.Partition].Background
	return c.values[featureText]+c.values[featureNeighbours]+c.values[featureTold] > 0 || c.hasVector && (!p.HasText() || c.cosine > b.Mean) ||
		c.raw[featureVectorNeighbours] > b.Mean
}

// speaks reports whether the words of a query say anything for a candidate, its own or those
// around it; where none are asked, its vector. Only then who said it, and where it stands, do.
func (p *Plan) speaks(c *Candidate) bool {
	if !p.HasText() {
		return p.matches(c)
	}
	return c.values[featureText]+c.values[featureNeighbours]+c.values[featureTold] > 0
}

// Background is how the cosines of texts with queries that they have nothing to do with
// are distributed in a space.
type Background struct{ Mean, Deviation float64 }

// standsOut says how far a cosine stands out from the background, in deviations, and
// hardly anything below its mean, but there too the greater one is more: ln(1 + exp(z)).
func (b Background) standsOut(cosine float64) float64 {
	if b.Deviation <= 0 {
		return 0
	}
	z := (cosine - b.Mean) / b.Deviation
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}

// Order gives every candidate its score, leaves out those that nothing speaks for, and
// leaves the others best first. The logistic function keeps the order.
func (r *Ranking) Order() {
	r.order = r.order[:0]
	for i := range r.candidates {
		c := &r.candidates[i]
		if !r.plan.matches(c) {
			continue
		}
		r.add(c)
		r.order = append(r.order, ordered{c.Sum, int32(i)})
	}
	slices.SortFunc(r.order, func(a, b ordered) int { return cmp.Compare(b.sum, a.sum) })
	r.spare = slices.Grow(r.spare[:0], len(r.order))
	for _, o := range r.order {
		r.spare = append(r.spare, r.candidates[o.at])
	}
	r.candidates, r.spare = r.spare, r.candidates
}

// add sums up what counts for a candidate.
func (r *Ranking) add(c *Candidate) {
	c.Sum = 0
	for k, v := range c.values {
		c.Sum += r.plan.weight(feature(k)) * v
	}
	c.Score = logistic(c.Sum)
}

// ordered is the sum of a candidate, and its place.
type ordered struct {
	sum float64
	at  int32
}

// weight is that of a feature in the plan's sum: the settings may favour vectors or words.
func (p *Plan) weight(k feature) float64 {
	switch k {
	case featureVector, featureVectorNeighbours:
		return weights[k] * p.VectorFactor
	case featureText, featureMatched, featureNeighbours, featureMatchedNeighbours, featureTold:
		return weights[k] * p.TextFactor
	}
	return weights[k]
}
