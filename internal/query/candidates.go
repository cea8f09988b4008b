package query

import (
	"context"
	"errors"
	"slices"
	"time"

	index "mneme/internal/index/text"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/memory"
)

// find asks the sources for candidates, and adds those beside them.
func (s *search) find(ctx context.Context) error {
	var words *index.Prepared
	if s.plan.HasText() {
		var err error
		if words, err = s.words(ctx); err != nil {
			return err
		}
		defer words.Close()
		if err := s.findByText(ctx, words); err != nil {
			return err
		}
	}
	if s.vector != nil {
		if err := s.findByVector(ctx); err != nil {
			return err
		}
	}
	if !s.plan.HasText() {
		return nil
	}
	if s.plan.Parts[memory.PartNeighbours] {
		if err := s.ranking.AddNeighbours(s.origins(ctx)); err != nil {
			return err
		}
	}
	return s.gather(ctx, words)
}

// words reads the rows of the query's words, once for all that is asked of them.
func (s *search) words(ctx context.Context) (*index.Prepared, error) {
	q := s.plan.Words
	q.K, q.Explain = s.plan.Candidates, true
	return s.r.s.texts.Prepare(ctx, s.r.view.State.Reader(), s.textPartitions(s.allow), q)
}

// textPartitions lists the open partitions for the text index; allow by partition,
// nil = all.
func (s *search) textPartitions(allow []*views.DocSet) []index.Partition {
	out := make([]index.Partition, len(s.r.view.Partitions))
	for i := range s.r.view.Partitions {
		out[i] = index.Partition{ID: s.r.view.Partitions[i].ID, Live: s.r.view.Partitions[i].Live}
		if allow != nil && allow[i] != nil {
			out[i].Allow = allow[i]
		}
	}
	return out
}

// partition is the place of a partition among the open ones.
func (s *search) partition(id uint32) int {
	return slices.IndexFunc(s.r.view.Partitions, func(o views.Partition) bool { return o.ID == id })
}

func (s *search) findByText(ctx context.Context, words *index.Prepared) error {
	if len(s.plan.Words.Must) > 0 {
		return s.findByPhrases(ctx, words)
	}
	hits, err := words.Top(ctx, s.plan.Candidates, nil)
	for i, h := range hits {
		s.ranking.FoundText(s.partition(h.Partition), h.Doc, i+1)
	}
	return err
}

// findByPhrases walks the documents that hold the phrases' words, the best first,
// until enough hold the phrases or the budget for them is spent.
func (s *search) findByPhrases(ctx context.Context, words *index.Prepared) error {
	found := 0
	var failed error
	err := words.Each(ctx, func(h *index.Hit) bool {
		partition := s.partition(h.Partition)
		ok, err := s.hasPhrases(partition, h.Doc)
		if failed = errors.Join(err, ctx.Err()); failed != nil {
			return false
		}
		if ok {
			found++
			s.ranking.FoundText(partition, h.Doc, found)
		}
		return found < s.plan.Candidates && s.left.forPhrases()
	})
	return errors.Join(err, failed)
}

// findByVector brings the documents with the nearest chunks of each partition.
func (s *search) findByVector(ctx context.Context) error {
	for i := range s.r.view.Partitions {
		p := &s.r.view.Partitions[i]
		set := s.r.s.opt.Views.Vectors(p.ID, s.r.view.Settings.SpaceKey())
		if set == nil {
			continue
		}
		err := s.look.Nearest(ctx, set, s.plan.Candidates, p.NextDoc, s.allow[i], func(m views.Match) {
			s.ranking.FoundVector(i, m.Doc, m.Cosine, m.Chunk)
		})
		if err != nil {
			return err
		}
	}
	s.ranking.KeepBestVectors()
	return nil
}

// origins gives the best documents by text whatever the filter says; nil if there
// is no filter.
func (s *search) origins(ctx context.Context) func(yield func(partition int, doc uint32)) error {
	if s.req.Filter == nil {
		return nil
	}
	return func(yield func(partition int, doc uint32)) error {
		q := s.plan.Words
		q.K, q.Must = rank.OriginsOfEach, nil
		hits, err := s.r.s.texts.Search(ctx, s.r.view.State.Reader(), s.textPartitions(nil), q)
		for _, h := range hits {
			yield(s.partition(h.Partition), h.Doc)
		}
		return err
	}
}

// gather reads what each word gives to each document that ranking looks at.
func (s *search) gather(ctx context.Context, words *index.Prepared) error {
	s.refs = s.refs[:0]
	s.ranking.EachLookedAt(func(partition int, doc uint32) {
		s.refs = append(s.refs, index.Ref{Partition: s.r.view.Partitions[partition].ID, Doc: doc})
	})
	hits, err := words.Score(ctx, s.hits[:0], s.refs)
	if err != nil {
		return err
	}
	s.hits = hits
	for i := range hits {
		row := s.ranking.Evidence(s.partition(hits[i].Partition), hits[i].Doc)
		for _, t := range hits[i].Parts {
			row[t.Term] += t.Score
		}
	}
	s.plan.SetBound(words.Stats().Docs, func(term int) uint64 { return words.DocFreq(term, index.FieldText) })
	return nil
}

// score ranks the candidates.
func (s *search) score(ctx context.Context) error {
	var keep func(c *rank.Candidate) (bool, error)
	if len(s.plan.Phrases) > 0 {
		keep = func(c *rank.Candidate) (bool, error) {
			ok, err := s.keepPhrases(c)
			return ok, errors.Join(err, ctx.Err())
		}
	}
	if err := s.ranking.Keep(keep); err != nil {
		return err
	}
	if s.vector != nil {
		if err := s.addCosines(ctx); err != nil {
			return err
		}
	}
	s.ranking.Evaluate()
	err := s.ranking.EvaluateDates(func(c *rank.Candidate) (string, time.Time, bool, error) {
		if !s.left.forMore() {
			return "", time.Time{}, false, ctx.Err()
		}
		text, doc, ok, err := s.text(c.Partition, c.Doc)
		s.left.spend(openWork + dateWork*min(len(text), rank.DateBytes))
		return text, timeOf(doc.OccurredAt), ok, errors.Join(err, ctx.Err())
	})
	s.ranking.Order()
	return err
}

// keepPhrases reports whether the phrases stand in a candidate. All that hold the
// words of the phrases came from the text source and were read there.
func (s *search) keepPhrases(c *rank.Candidate) (bool, error) {
	if len(s.plan.Words.Must) > 0 {
		return c.InText(), nil
	}
	return s.hasPhrases(c.Partition, c.Doc)
}

// addCosines computes the cosines that the vector source did not bring.
func (s *search) addCosines(ctx context.Context) error {
	for i := range s.r.view.Partitions {
		set := s.r.s.opt.Views.Vectors(s.r.view.Partitions[i].ID, s.r.view.Settings.SpaceKey())
		if set == nil {
			continue
		}
		err := s.look.Cosines(ctx, set, s.ranking.MissingCosines(i), func(m views.Match) {
			s.ranking.SetCosine(i, m.Doc, m.Cosine, m.Chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hasPhrases reports whether the phrases stand in a document. Where the budget for
// them is spent it is not known, and the document is none that holds them.
func (s *search) hasPhrases(partition int, doc uint32) (bool, error) {
	if !s.left.forPhrases() {
		return false, nil
	}
	text, _, ok, err := s.text(partition, doc)
	s.left.open(text)
	return ok && s.plan.HasPhrases(text), err
}

// text opens a document; ok = false if it is not there or was erased.
func (s *search) text(partition int, doc uint32) (text string, row projections.Doc, ok bool, err error) {
	row, ok, err = s.r.view.State.Doc(s.r.view.Partitions[partition].ID, doc)
	if err != nil || !ok {
		return "", row, false, err
	}
	c, err := s.r.view.Content(row.At)
	if errors.Is(err, views.ErrErased) {
		return "", row, false, nil
	}
	if err != nil {
		return "", row, false, err
	}
	return c.Text, row, true, nil
}
