package dates

import "time"

// Overlap says how well a moment fits what a query asks for. It is 1 inside the
// expression's window, falls with the distance from it, and is 0 far away. The
// distance at which it reaches 0 grows with the grain: a week around a day, ten
// weeks around a month.
//
// With d the distance and r that reach, it is (1 - (d/r)²)². Other occurrences of
// an expression that repeats count Others, and the second reading of an ambiguous
// one counts half.
func Overlap(query Expr, at time.Time) float64 {
	return overlap(query, Range{at, at})
}

// OverlapExpr is Overlap with what a text says: how near it comes, times how
// much of it could be meant, so that "in 2023" hardly speaks for a day in it. What repeats in the
// text counts as its occurrence that is nearest to the query.
func OverlapExpr(query, said Expr) float64 {
	w := said.Window()
	best := overlap(query, w)
	if said.Repeat != Once && said.Relation != Before && said.Relation != After {
		weight := said.Others
		if said.Repeat == query.Repeat { // a birthday, and who was born in May
			weight = 1
		}
		nearest := overlap(query, shiftRange(w, said.Repeat, periods(said.Repeat, w.From, query.From)))
		best = max(best, float64(nearest*weight))
	}
	return best
}

// Best returns the greatest Overlap of any query expression with at, weighted by
// the expression's confidence, and which it is: -1 without any.
func Best(query []Expr, at time.Time) (score float64, which int) {
	which = -1
	for i := range query {
		if s := float64(Overlap(query[i], at) * query[i].Confidence); s > score {
			score, which = s, i
		}
	}
	return score, which
}

// BestExpr is Best for the expressions of a text.
func BestExpr(query, said []Expr) (score float64, which int) {
	which = -1
	for i := range query {
		for k := range said {
			s := float64(OverlapExpr(query[i], said[k]) * query[i].Confidence)
			if s = float64(s * said[k].Confidence); s > score {
				score, which = s, i
			}
		}
	}
	return score, which
}

func overlap(query Expr, at Range) float64 {
	w := query.Window()
	r := reach(query)
	best := fit(w, at, r)
	if !query.Alt.IsZero() && best < 1 {
		alt := query
		alt.Range = query.Alt
		best = max(best, fit(alt.Window(), at, r)/2)
	}
	if query.Repeat == Once || best >= query.Others || query.Relation != On && query.Relation != Around && query.Relation != Between {
		return best
	}
	n := periods(query.Repeat, w.From, at.From)
	for _, k := range [...]int{n, n - 1, n + 1} {
		if k != 0 && best < query.Others {
			best = max(best, float64(query.Others*fit(shiftRange(w, query.Repeat, k), at, r)))
		}
	}
	return best
}

// fit says how well a range, which may be one moment, fits w: by the distance
// between the two, times the share of the range that could lie in reach of w.
func fit(w, at Range, reach float64) float64 {
	distance := max(seconds(at.To, w.From), seconds(w.To, at.From), 0)
	if at.From.Equal(w.To) {
		distance = max(distance, 1) // half-open
	}
	x := min(distance/reach, 1)
	y := 1 - float64(x*x)
	return float64(y*y) * min(1, (seconds(w.From, w.To)+reach)/max(seconds(at.From, at.To), 1))
}

// seconds is b-a without the limits of a Duration.
func seconds(a, b time.Time) float64 { return float64(b.Unix() - a.Unix()) }

// reach is the distance in seconds at which nothing is left.
func reach(e Expr) float64 {
	day := 86400.0
	days := [...]float64{GrainDay: 7, GrainWeek: 21, GrainMonth: 70, GrainYear: 500}
	r := day * 7
	if int(e.Grain) < len(days) {
		r = days[e.Grain] * day
	}
	switch {
	case e.Relation == Around:
		r *= 2
	case e.Repeat == Weekly:
		r = min(r, 2*day)
	}
	return r
}

// periods returns how many periods lie between two moments, rounded down.
func periods(r Repeat, from, to time.Time) int {
	to = to.In(from.Location())
	a, b := dayIn(from), dayIn(to)
	switch r {
	case Weekly:
		return floorDiv(b-a, 7)
	case Yearly:
		ya, _, _ := dateOf(a)
		yb, _, _ := dateOf(b)
		return yb - ya
	}
	return 0
}

// shiftRange moves a range by n periods on the calendar.
func shiftRange(w Range, r Repeat, n int) Range {
	return span{dayIn(w.From), dayIn(w.To)}.shift(r, n).in(w.From.Location())
}
