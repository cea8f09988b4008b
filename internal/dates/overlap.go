package dates

import "time"

// Overlap says how well a moment fits what a query asks for: 1 inside of its
// window, less with the distance from it, 0 far away. The distance at which it
// reaches 0 grows with the grain: a week around a day, ten weeks around a month.
//
// With d the distance and r that reach, it is (1 - (d/r)²)². Of an expression
// that repeats, other occurrences than the nearest in the past count Others; the
// second reading of an ambiguous one counts half.
func Overlap(query Expr, at time.Time) float64 {
	return overlap(query, Range{at, at})
}

// OverlapExpr is Overlap with what a text says: its mean over the moments of that
// range, so that "in 2023" hardly speaks for a day in it. What repeats in the
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

// fit returns the mean over at, which may be one moment, of how well it fits w.
func fit(w, at Range, reach float64) float64 {
	before, after := seconds(at.From, w.From), seconds(w.To, at.To) // what of at lies outside
	all := seconds(at.From, at.To)
	if all <= 0 {
		d := max(before, after, 0)
		if after == 0 && !at.From.Before(w.To) {
			d = 1 // half-open
		}
		return falling(d / reach)
	}
	inside := all - min(max(before, 0), all) - min(max(after, 0), all)
	sum := max(inside, 0)
	if before > 0 {
		sum += reach * (area(before/reach) - area(max(before-all, 0)/reach))
	}
	if after > 0 {
		sum += reach * (area(after/reach) - area(max(after-all, 0)/reach))
	}
	return min(sum/all, 1)
}

// falling is (1 - x²)², and 0 from 1 on.
func falling(x float64) float64 {
	if x >= 1 {
		return 0
	}
	y := 1 - float64(x*x)
	return y * y
}

// area is the integral of falling from 0 to x.
func area(x float64) float64 {
	x = min(x, 1)
	cube := float64(x * x * x)
	return x - float64(cube*2/3) + float64(cube*x*x)/5
}

// seconds is b-a without the limits of a Duration.
func seconds(a, b time.Time) float64 { return float64(b.Unix() - a.Unix()) }

// reach is the distance in seconds at which nothing is left.
func reach(e Expr) float64 {
	day := 86400.0
	days := [...]float64{
		GrainHour: 0.5, GrainPart: 2, GrainDay: 7, GrainWeek: 21, GrainMonth: 70, GrainQuarter: 150, GrainSeason: 150,
		GrainYear: 500, GrainDecade: 3650,
	}
	r := day * 7
	if int(e.Grain) < len(days) {
		r = days[e.Grain] * day
	}
	switch {
	case e.Relation == Around:
		r *= 2
	case e.Repeat == Daily:
		r = min(r, 6*3600)
	case e.Repeat == Weekly:
		r = min(r, 2*day)
	}
	return r
}

// periods returns how many periods lie between two moments, rounded down.
func periods(r Repeat, from, to time.Time) int {
	to = to.In(from.Location())
	a, b := civilOf(from).day(), civilOf(to).day()
	switch r {
	case Daily:
		return b - a
	case Weekly:
		return floorDiv(b-a, 7)
	case Monthly:
		return dayCivil(a).monthsTo(dayCivil(b))
	case Yearly:
		ya, _, _ := dateOf(a)
		yb, _, _ := dateOf(b)
		return yb - ya
	}
	return 0
}

// shiftRange moves a range by n periods on the calendar.
func shiftRange(w Range, r Repeat, n int) Range {
	loc := w.From.Location()
	return span{civilOf(w.From), civilOf(w.To)}.shift(r, n).in(loc)
}
