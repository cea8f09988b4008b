package query

import (
	"cmp"
	"context"
	"slices"
	"sync"

	index "mneme/internal/index/text"
	"mneme/internal/index/vector"
	"mneme/memory"
)

// candidate is a document that a source brought.
type candidate struct {
	part int // in plan.parts
	doc  uint32

	cosine               float64 // raw
	hasVector            bool    // cosine is exact, be it 0
	pending              bool    // it has no vector yet
	inText, inVector     bool    // that source brought it
	inNear               bool    // a neighbour brought it
	textRank, vectorRank int     // from 1, in the source that brought it
	chunk                int     // best one by vector; -1 = unknown
	span                 span    // its neighbours

	values, raw  [numParts]float64 // of each part: 0..1, and before scaling
	fused, score float64           // 0..1, before and after calibration
}

// scratch is the memory of one search, used again.
type scratch struct {
	plan          *plan
	cands         []candidate
	at            map[docKey]int32 // in cands
	evidence      evidence
	near          []uint32 // the candidates' neighbours, see span
	conversations map[conversationKey][]float64
	cosines       map[docKey]float64
	row           []float64
	refs          []index.Ref
	hits          []index.Hit
	ids           []vector.ID
	seen          map[uint32]struct{}
}

func newScratch() *scratch {
	return &scratch{at: map[docKey]int32{}, seen: map[uint32]struct{}{}, conversations: map[conversationKey][]float64{}, cosines: map[docKey]float64{}, evidence: evidence{at: map[docKey]int32{}}}
}

func (sc *scratch) release(pool *sync.Pool) {
	clear(sc.cands)
	sc.cands = sc.cands[:0]
	clear(sc.at)
	clear(sc.seen)
	clear(sc.hits[:cap(sc.hits)])
	clear(sc.conversations)
	clear(sc.cosines)
	sc.evidence.reset(0)
	sc.plan = nil
	pool.Put(sc)
}

// find returns the candidate of a document, making it if need be. The pointer
// is good until the next call.
func (sc *scratch) find(part int, doc uint32) *candidate {
	key := docKey{part, doc}
	if i, ok := sc.at[key]; ok {
		return &sc.cands[i]
	}
	sc.at[key] = int32(len(sc.cands))
	sc.cands = append(sc.cands, candidate{part: part, doc: doc, chunk: -1})
	return &sc.cands[len(sc.cands)-1]
}

// candidates asks the sources, and those around what they bring.
func (r *Reader) candidates(ctx context.Context, sc *scratch) error {
	p := sc.plan
	var words *index.Prepared
	if p.hasText() {
		var err error
		if words, err = r.prepare(ctx, sc); err != nil {
			return err
		}
		defer words.Close()
		if err := r.textCandidates(ctx, sc, words); err != nil {
			return err
		}
	}
	if p.hasVector() {
		for i := range p.parts {
			if err := r.vectorCandidates(ctx, sc, i); err != nil {
				return err
			}
		}
		sc.rankVectors()
	}
	if !p.hasText() {
		return nil
	}
	sc.evidence.reset(len(p.terms))
	if p.on[memory.PartNeighbours] {
		if err := r.surround(ctx, sc); err != nil {
			return err
		}
	}
	for i := range sc.cands {
		sc.evidence.add(docKey{sc.cands[i].part, sc.cands[i].doc})
	}
	return r.gather(ctx, sc, words)
}

// prepare reads the rows of the query's words, once for all that is asked of
// them.
func (r *Reader) prepare(ctx context.Context, sc *scratch) (*index.Prepared, error) {
	q := sc.plan.query
	q.K, q.Explain = sc.plan.k, true
	return r.s.texts.Prepare(ctx, r.view.Reader(), sc.plan.partitions(sc.plan.allow), q)
}

func (r *Reader) textCandidates(ctx context.Context, sc *scratch, words *index.Prepared) error {
	p := sc.plan
	if len(p.query.Must) > 0 {
		return r.phraseCandidates(ctx, sc, words)
	}
	hits, err := words.Top(ctx, p.k, nil)
	if err != nil {
		return err
	}
	for rank, h := range hits {
		c := sc.find(p.partOf(h.Partition), h.Doc)
		c.inText, c.textRank = true, rank+1
	}
	return nil
}

func (p *plan) partOf(id uint32) int {
	return slices.IndexFunc(p.parts, func(o openPart) bool { return o.ID == id })
}

// partitions lists the open partitions for the text index; allow by partition,
// nil = all.
func (p *plan) partitions(allow []*docSet) []index.Partition {
	out := make([]index.Partition, len(p.parts))
	for i, part := range p.parts {
		out[i] = index.Partition{ID: part.ID, Live: part.live}
		if allow != nil && allow[i] != nil {
			out[i].Allow = allow[i]
		}
	}
	return out
}

// vectorCandidates brings the documents of one partition with the nearest
// chunks. The set may be ahead of the view: what the view does not hold yet is
// left out and more is asked for.
func (r *Reader) vectorCandidates(ctx context.Context, sc *scratch, part int) error {
	p := sc.plan
	set := r.s.vectors.Load().get(setKey{p.parts[part].ID, r.set.SpaceKey()})
	if set == nil {
		return nil
	}
	refs := set.snapshot()
	var filter vector.Filter
	if docs := p.allow[part]; docs != nil {
		filter = &vectorFilter{set, refs, docs}
	}
	for want := p.k; ; want *= 4 {
		hits, err := set.set.Search(ctx, p.vector, want, filter)
		if err != nil {
			return err
		}
		clear(sc.seen)
		for _, h := range hits {
			if int(h.ID) >= len(refs) || refs[h.ID].doc >= p.parts[part].NextDoc {
				continue
			}
			sc.seen[refs[h.ID].doc] = struct{}{}
			if len(sc.seen) > p.k {
				break
			}
			c := sc.find(part, refs[h.ID].doc)
			if !c.inVector { // the first is the best
				c.cosine, c.hasVector, c.inVector, c.chunk = float64(h.Score), true, true, int(refs[h.ID].chunk)
			}
		}
		if len(sc.seen) >= p.k || len(hits) < want {
			return nil
		}
	}
}

// rankVectors orders the vector candidates of all partitions and keeps the
// best k of them.
func (sc *scratch) rankVectors() {
	order := make([]int32, 0, len(sc.cands))
	for i := range sc.cands {
		if sc.cands[i].inVector {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &sc.cands[a], &sc.cands[b]
		return cmp.Or(cmp.Compare(y.cosine, x.cosine), cmp.Compare(x.part, y.part), cmp.Compare(x.doc, y.doc))
	})
	for rank, i := range order {
		c := &sc.cands[i]
		c.vectorRank = rank + 1
		if rank >= sc.plan.k {
			c.inVector = false
		}
	}
}
