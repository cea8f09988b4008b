package rank

import (
	"cmp"
	"math"
	"slices"
)

// Where a query asks for what holds now, the newer of two memories about the same thing comes
// first: among so many of the best, where it has every word of the query that the older one has,
// and a sum that is at most so much less.
const (
	NewerAmong  = 10
	newerWithin = 1.0
)

// Covers reports whether a candidate holds every word of the query that an older one does, be it
// one at least, with a sum that is not too far below to pass it. Dates, and who said it, are no words.
func (r *Ranking) Covers(c, older *Candidate) bool {
	if older.Sum-c.Sum > newerWithin {
		return false
	}
	has, needs := r.evidence.row(c.row), r.evidence.row(older.row)
	any := false
	for i := range needs {
		if needs[i].Score == 0 || needs[i].Told || r.plan.Concepts[i].dated {
			continue
		}
		if has[i].Score == 0 || has[i].Told {
			return false
		}
		any = true
	}
	return any
}

// Lift raises a candidate to a sum. Sort the candidates once all are lifted.
func (c *Candidate) Lift(sum float64) {
	c.set(featureNewer, sum-c.Sum)
	c.Sum, c.Score = sum, logistic(sum)
}

// Sort puts the candidates with the greatest sums first.
func (r *Ranking) Sort() {
	slices.SortStableFunc(r.candidates, func(a, b Candidate) int { return cmp.Compare(b.Sum, a.Sum) })
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
