package query

import (
	"cmp"
	"slices"

	"mneme/internal/projections"
	"mneme/internal/query/rank"
)

// moves are what preferNewer did to the candidates that it looked at.
type moves []move

type move struct {
	partition int
	doc       uint32
	since     int64  // of one that passed another; else 0
	passed    string // the older record that it stands in front of
	passedBy  string // the newest record that stands in front of it
}

// preferNewer puts the newer of two memories about the same thing in front, where the query asks
// for what holds now. It looks at the best few that are alive at the reader's view, whatever the
// limit and the floor are: what passes another gets its sum.
func (s *search) preferNewer() error {
	if !s.asksNow || !s.plan.HasText() {
		return nil
	}
	var best []foundDoc
	for f, err := range s.order.all {
		if err != nil {
			return err
		}
		if best = append(best, f); len(best) == rank.NewerAmong {
			break
		}
	}
	s.moved = make(moves, len(best))
	sums := make([]float64, len(best))
	for i := range best {
		sums[i] = best[i].c.Sum
		s.moved[i].partition, s.moved[i].doc = best[i].c.Partition, best[i].c.Doc
	}
	byAge := make([]int, len(best)) // the oldest first: what one has passed, a newer one passes with it
	for i := range byAge {
		byAge[i] = i
	}
	slices.SortStableFunc(byAge, func(a, b int) int { return cmp.Compare(since(&best[a].doc), since(&best[b].doc)) })
	for n, k := range byAge {
		newer, at := best[k], since(&best[k].doc)
		for _, i := range byAge[:n] {
			older := best[i]
			if since(&older.doc) == at || sums[i] < newer.c.Sum || !s.ranking.Covers(newer.c, older.c) {
				continue
			}
			if m := &s.moved[k]; m.passed == "" || sums[i] > sums[k] {
				sums[k], m.since, m.passed = sums[i], at, older.doc.Record.String()
			}
			s.moved[i].passedBy = newer.doc.Record.String() // the newest one comes last
		}
	}
	for i := range best {
		if s.moved[i].passed != "" {
			best[i].c.Lift(sums[i])
		}
	}
	s.ranking.Sort()
	return nil
}

// since is from when on a memory says what it says: when that occurred, or when it was revised.
func since(d *projections.Doc) int64 {
	if d.Version > 1 {
		return max(d.OccurredAt, d.SealedAt)
	}
	return d.OccurredAt
}

// of is what became of a candidate.
func (all moves) of(c *rank.Candidate) move {
	for _, m := range all {
		if m.partition == c.Partition && m.doc == c.Doc {
			return m
		}
	}
	return move{}
}

// compare orders candidates of one sum: first those that passed another, the newest in front.
func (all moves) compare(a, b *rank.Candidate) int {
	x, y := all.of(a), all.of(b)
	switch {
	case x.passed == "" && y.passed == "":
		return 0
	case x.passed == "":
		return 1
	case y.passed == "":
		return -1
	}
	return cmp.Compare(y.since, x.since)
}
