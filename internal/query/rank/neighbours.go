package rank

import (
	"cmp"
	"slices"

	index "mneme/internal/index/text"
	"mneme/memory"
)

// Messages of one conversation explain each other: the answer to a question often
// holds few of its words, while the messages around it hold the rest.

// neighbourWeights are what a query word is worth that is found not in a message
// itself but in a neighbour, by distance.
var neighbourWeights = [...]float64{0.5, 0.3, 0.2}

const (
	// originsOfEach is how many of the best documents of each source bring their
	// neighbours as candidates, and neighbourReach how far.
	originsOfEach  = 20
	neighbourReach = 2
)

// span is where a candidate's neighbours lie in Ranking.neighbours: first those
// before it, the nearest first, then those after it.
type span struct{ at, before, after int32 }

// AddNeighbours finds the neighbours of the candidates. Those of the best become
// candidates too, as far as the filter allows, and so do those of more, which the
// filter may have left out: the answer of the agent that the filter names stands
// beside the question of another. Only documents that the reader sees contribute.
// Where neighbours are switched off, it finds only which candidates open a conversation.
func (r *Ranking) AddNeighbours(more func(yield func(partition int, doc uint32)) error) error {
	count := r.plan.Parts[memory.PartNeighbours]
	if count {
		if err := r.addBesides(more); err != nil {
			return err
		}
	}
	for partition := range r.plan.Partitions {
		p := &r.plan.Partitions[partition]
		if p.Conversations == nil {
			continue
		}
		r.docs, r.at = r.docs[:0], r.at[:0]
		for i := range r.candidates {
			if c := &r.candidates[i]; c.Partition == partition {
				r.docs, r.at = append(r.docs, c.Doc), append(r.at, int32(i))
			}
		}
		r.surroundings.Of(p.Conversations, r.docs, p.Visible, func(i int, before, after []uint32) {
			c := &r.candidates[r.at[i]]
			if c.opens = len(before) == 0 && len(after) > 0; !count {
				return
			}
			c.around = span{int32(len(r.neighbours)), int32(len(before)), int32(len(after))}
			for _, docs := range [2][]uint32{before, after} {
				for _, doc := range docs {
					r.neighbours = append(r.neighbours, r.row(docKey{partition, doc}))
				}
			}
		})
	}
	return nil
}

// addBesides makes the neighbours of the best candidates, and of more, candidates.
func (r *Ranking) addBesides(more func(yield func(partition int, doc uint32)) error) error {
	var origins []docKey
	for i := range r.candidates {
		if c := &r.candidates[i]; c.isBest() {
			origins = append(origins, docKey{c.Partition, c.Doc})
		}
	}
	if more != nil {
		if err := more(func(partition int, doc uint32) { origins = append(origins, docKey{partition, doc}) }); err != nil {
			return err
		}
	}
	slices.SortStableFunc(origins, func(a, b docKey) int { return cmp.Compare(a.partition, b.partition) })
	for len(origins) > 0 {
		n := 1
		for n < len(origins) && origins[n].partition == origins[0].partition {
			n++
		}
		r.addBeside(origins[:n])
		origins = origins[n:]
	}
	return nil
}

// addBeside makes the neighbours of documents of one partition candidates.
func (r *Ranking) addBeside(of []docKey) {
	partition := of[0].partition
	p := &r.plan.Partitions[partition]
	if p.Conversations == nil {
		return
	}
	r.docs = r.docs[:0]
	for _, k := range of {
		r.docs = append(r.docs, k.doc)
	}
	r.surroundings.Of(p.Conversations, r.docs, p.Visible, func(_ int, before, after []uint32) {
		for _, docs := range [2][]uint32{before, after} {
			for _, doc := range docs[:min(len(docs), neighbourReach)] {
				if p.allows(doc) {
					r.find(docKey{partition, doc}).isNeighbour = true
				}
			}
		}
	})
}

// isBest reports whether a source found nearly nothing better.
func (c *Candidate) isBest() bool {
	return c.inText && c.textRank <= originsOfEach || c.inVector && c.vectorRank <= originsOfEach
}

// contributed is what neighbours add to a candidate's BM25, and to how much of the query it
// holds: each concept counts where it is worth most, in the message itself or, less, around
// it.
func (r *Ranking) contributed(c *Candidate, own []index.Share) (gain, held float64) {
	r.best = append(r.best[:0], own...)
	r.held = r.held[:0]
	for t := range own {
		r.held = append(r.held, r.plan.Concepts[t].held(own[t]))
	}
	near := r.neighbours[c.around.at : c.around.at+c.around.before+c.around.after]
	for i, row := range near {
		if i >= int(c.around.before) {
			i -= int(c.around.before)
		}
		for t, share := range r.evidence.row(row) {
			concept := &r.plan.Concepts[t]
			if concept.dated || share.Told {
				continue
			}
			if s := share.Score * neighbourWeights[i]; s > r.best[t].Score {
				gain += s - r.best[t].Score
				r.best[t].Score = s
			}
			if h := concept.held(share) * neighbourWeights[i]; h > r.held[t] {
				held += h - r.held[t]
				r.held[t] = h
			}
		}
	}
	return gain, held
}
