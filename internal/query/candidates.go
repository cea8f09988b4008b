package query

import (
	"context"
	"errors"

	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/internal/spans"
	"mneme/memory"
)

// find asks the sources for candidates, and adds those beside them.
func (s *search) find(ctx context.Context) error {
	if !s.plan.HasText() {
		return s.findByVector(ctx)
	}
	found, err := s.findBoth(ctx)
	if found != nil {
		defer found.close()
	}
	if err != nil {
		return err
	}
	return leg(ctx, s.ranking, spans.Gather, func(ctx context.Context) error {
		if s.plan.Parts[memory.PartNeighbours] || s.plan.Parts[memory.PartOpening] {
			if err := s.ranking.AddNeighbours(s.origins(ctx, found)); err != nil {
				return err
			}
		}
		return s.gather(ctx, found)
	})
}

// findByVector brings the documents with the nearest chunks, if vectors count.
func (s *search) findByVector(ctx context.Context) error {
	if !s.plan.ByVector {
		return nil
	}
	if err := s.vectors.ask(ctx, s.places, s.plan.VectorPool()); err != nil {
		return err
	}
	s.vectors.tell(s.plan, s.ranking)
	return nil
}

// findBoth asks for words, and beside it for vectors where they count: both wait for memory more than
// they compute. Plan and ranking are those of the words until both are done. The caller closes what
// was found by words, also where there is an error.
func (s *search) findBoth(ctx context.Context) (found *words, err error) {
	if !s.plan.ByVector {
		return s.askWords(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	pool := s.plan.VectorPool()
	nearest := beside(func() (none struct{}, err error) { return none, s.vectors.ask(ctx, s.places, pool) })
	defer ask(nearest) // also where the words panic: it is at its end then
	defer cancel()
	if found, err = s.askWords(ctx); err != nil {
		return found, err
	}
	if _, err = nearest(); err != nil {
		return found, err
	}
	s.vectors.tell(s.plan, s.ranking)
	return found, nil
}

func (s *search) askWords(ctx context.Context) (found *words, err error) {
	err = leg(ctx, s.ranking, spans.Words, func(ctx context.Context) (err error) {
		found, err = s.findWords(ctx)
		return err
	})
	return found, err
}

// leg brings candidates to the ranking, in a span that says how many there are then.
func leg(ctx context.Context, ranking *rank.Ranking, name string, run func(context.Context) error) error {
	ctx, span := spans.Start(ctx, name)
	err := run(ctx)
	if span.IsRecording() {
		byText, _, beside := ranking.Found()
		span.SetAttributes(spans.Found.Int(map[string]int{spans.Words: byText, spans.Gather: beside}[name]))
		spans.End(span, err)
	}
	return err
}

// findWords brings the documents with the query's words, and the words that they were found by,
// which the caller closes.
func (s *search) findWords(ctx context.Context) (*words, error) {
	q := s.plan.Words
	q.K = rank.TextPool
	found, err := s.words(ctx, q)
	if err == nil {
		found, err = s.corrected(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	return s.findByText(ctx, found)
}

// findByText gives the words that it found by: others, where phrases that nothing holds were given up.
func (s *search) findByText(ctx context.Context, w *words) (*words, error) {
	if !s.plan.Checks() {
		return w, w.top(ctx, rank.TextPool, false, s.ranking.FoundText)
	}
	found, read, err := s.findByReading(ctx, w)
	if err != nil || found > 0 || len(s.plan.Phrases) == 0 {
		return w, err
	}
	return (&quoted{s, read}).find(ctx, w)
}

// findByReading walks the documents that hold the phrases' words, or any words where there are
// none to require, the best first, until enough are what the query says or the budget for
// reading is spent. It says how many were found, and how many read.
func (s *search) findByReading(ctx context.Context, w *words) (found, read int, err error) {
	var failed error
	err = w.each(ctx, func(partition int, doc uint32) bool {
		read++
		ok, err := s.takes(partition, doc)
		if failed = errors.Join(err, ctx.Err()); failed != nil {
			return false
		}
		if ok {
			found++
			s.ranking.FoundText(partition, doc, found)
		}
		return found < rank.TextPool && s.left.forReading()
	})
	return found, read, errors.Join(err, failed)
}

// origins gives the best documents by text whatever the filter says; nil if there
// is no filter.
func (s *search) origins(ctx context.Context, w *words) func(yield func(partition int, doc uint32)) error {
	if s.req.Filter == nil {
		return nil
	}
	return func(yield func(partition int, doc uint32)) error {
		return w.top(ctx, s.plan.Origins(), true, func(partition int, doc uint32, _ int) { yield(partition, doc) })
	}
}

// gather reads what each concept gives to each document that ranking looks at.
func (s *search) gather(ctx context.Context, w *words) error {
	for shard, on := range w.on {
		s.refs, s.rows = s.refs[:0], s.rows[:0]
		s.ranking.EachLookedAt(func(row, partition int, doc uint32) {
			if p := &s.places[partition]; p.in.shard == shard {
				s.refs, s.rows = append(s.refs, index.Ref{Partition: p.ID, Doc: doc}), append(s.rows, row)
			}
		})
		if err := on.Score(ctx, s.refs, func(i int) []index.Share { return s.ranking.Evidence(s.rows[i]) }); err != nil {
			return err
		}
	}
	all := w.on[0] // each counts for all
	s.plan.SetBound(all.Stats().Docs, func(term int) uint64 { return all.DocFreq(term, index.FieldText) }, all.Known)
	return nil
}

// score ranks the candidates.
func (s *search) score(ctx context.Context) error {
	var keep func(c *rank.Candidate) (bool, error)
	if s.plan.Checks() {
		keep = func(c *rank.Candidate) (bool, error) {
			ok, err := s.keeps(c)
			return ok, errors.Join(err, ctx.Err())
		}
	}
	if err := s.ranking.Keep(keep); err != nil {
		return err
	}
	if s.plan.ByVector {
		if err := s.addCosines(ctx); err != nil {
			return err
		}
	}
	s.ranking.Evaluate()
	s.ranking.Order()
	return nil
}

// keeps reports whether a candidate holds what the query says. What came from the text source
// was read there, and all that hold the words of the phrases came from it.
func (s *search) keeps(c *rank.Candidate) (bool, error) {
	if c.InText() || len(s.plan.Words.Must) > 0 {
		return c.InText(), nil
	}
	return s.takes(c.Partition, c.Doc)
}

// addCosines computes the cosines that the vector source did not bring.
func (s *search) addCosines(ctx context.Context) error {
	for i := range s.places {
		set := s.vectors.of(&s.places[i])
		if set == nil {
			continue
		}
		err := s.vectors.look.Cosines(ctx, set, s.ranking.MissingCosines(i), func(m views.Match) {
			s.ranking.SetCosine(i, m.Doc, m.Cosine, m.Chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takes reports whether a document holds the phrases and nothing that is left out. Where the
// budget for reading is spent it is not known, and the document does not count.
func (s *search) takes(partition int, doc uint32) (bool, error) {
	if !s.left.forReading() {
		return false, nil
	}
	_, c, err := s.read(partition, doc)
	if err != nil || c == nil {
		return false, err
	}
	s.left.open(c.Text)
	return s.plan.Takes(c.Text, append(c.Tags[:len(c.Tags):len(c.Tags)], memory.URIPath(c.URI))...), nil
}

// read reads a document's row and its content; nil if it is not there or was erased.
func (s *search) read(partition int, doc uint32) (projections.Doc, *events.Content, error) {
	p := &s.places[partition]
	row, ok, err := p.in.view.State.Doc(p.ID, doc)
	if err != nil || !ok {
		return row, nil, err
	}
	c, err := p.in.view.Content(row.At)
	if errors.Is(err, views.ErrErased) {
		return row, nil, nil
	}
	return row, c, err
}
