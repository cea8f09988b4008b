package query

import (
	"context"

	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/internal/spans"
)

// vectors is the source of candidates by vectors. It reads places and has memory of its own, so that
// it can be asked while the words are; its memory is used again.
type vectors struct {
	look  views.Lookup
	found []nearest // by place
}

// nearest is what the vectors of a partition brought.
type nearest struct {
	background rank.Background // as it was estimated; zero where it is known beforehand
	matches    []views.Match   // the documents with the nearest chunks
}

func (v *vectors) begin(places int) {
	for len(v.found) < places {
		v.found = append(v.found, nearest{})
	}
	v.found = v.found[:places]
	for i := range v.found {
		v.found[i] = nearest{matches: v.found[i].matches[:0]}
	}
}

// of gives the vectors of a partition in the space that its namespace is searched in, nil if
// there are none or they are not asked.
func (v *vectors) of(p *place) *views.VectorSet {
	if p.in.vector == nil {
		return nil
	}
	v.look.Query = p.in.vector
	return p.in.s.opt.Views.Vectors(p.ID, p.in.view.Settings.SpaceKey())
}

// ask finds up to pool documents of each place.
func (v *vectors) ask(ctx context.Context, places []place, pool int) (err error) {
	ctx, span := spans.Start(ctx, spans.Vectors)
	n := 0
	for i := range places {
		if err = v.askPlace(ctx, i, &places[i], pool); err != nil {
			break
		}
		n += len(v.found[i].matches)
	}
	if span.IsRecording() {
		span.SetAttributes(spans.Found.Int(n))
		spans.End(span, err)
	}
	return err
}

func (v *vectors) askPlace(ctx context.Context, i int, p *place, pool int) (err error) {
	set, near := v.of(p), &v.found[i]
	if set == nil {
		return nil
	}
	if background(p.in.view.Settings.Space).Deviation == 0 {
		if near.background.Mean, near.background.Deviation, err = v.look.Background(ctx, set); err != nil {
			return err
		}
	}
	return v.look.Nearest(ctx, set, pool, p.NextDoc, p.allow, func(m views.Match) { near.matches = append(near.matches, m) })
}

// tell hands what was found to the plan and the ranking.
func (v *vectors) tell(plan *rank.Plan, ranking *rank.Ranking) {
	for i := range v.found {
		near := &v.found[i]
		if near.background.Deviation != 0 {
			plan.Partitions[i].Background = near.background
		}
		for _, m := range near.matches {
			ranking.FoundVector(i, m.Doc, m.Cosine, m.Chunk)
		}
	}
	ranking.KeepBestVectors()
}
