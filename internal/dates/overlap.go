package dates

import "time"

// otherYear is how likely another year is meant by a date that has none.
const otherYear = 0.8

// Overlap says how well a moment fits what a query asks for. It is 1 inside the
// expression's window, falls with the distance from it, and is 0 far away. The
// distance at which it reaches 0 grows with the grain: a week around a day, ten
// weeks around a month.
//
// With d the distance and r that reach, it is (1 - (d/r)²)². Other years of
// a date without a year count less.
func Overlap(query Expr, at time.Time) float64 {
	return overlap(query, Range{at, at})
}

// OverlapExpr is Overlap with what a text says: how near it comes, times how
// much of it could be meant, so that "in 2023" hardly counts for a day in it. A date
// without a year counts in the year of the query as well.
func OverlapExpr(query, said Expr) float64 {
	w := said.Window()
	best := overlap(query, w)
	if !said.Yearly {
		return best
	}
	weight := otherYear
	if query.Yearly { // a birthday, and who was born in May
		weight = 1
	}
	return max(best, float64(overlap(query, inYearOf(w, query.From, 0))*weight))
}

// Best returns the greatest Overlap of any query expression with at, weighted by
// the expression's confidence.
func Best(query []Expr, at time.Time) (best float64) {
	for _, q := range query {
		best = max(best, float64(Overlap(q, at)*q.Confidence))
	}
	return best
}

// BestExpr is Best for the expressions of a text.
func BestExpr(query, said []Expr) (best float64) {
	for _, q := range query {
		for _, e := range said {
			fit := float64(OverlapExpr(q, e) * q.Confidence)
			best = max(best, float64(fit*e.Confidence))
		}
	}
	return best
}

func overlap(query Expr, at Range) float64 {
	w := query.Window()
	r := reach(query)
	best := fit(w, at, r)
	for years := -1; query.Yearly && best < otherYear && years <= 1; years++ {
		best = max(best, float64(otherYear*fit(inYearOf(w, at.From, years), at, r)))
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
	days := [...]float64{GrainDay: 7, GrainWeek: 21, GrainMonth: 70, GrainYear: 500}[e.Grain]
	if e.Relation == Around {
		days *= 2
	}
	return days * 24 * 60 * 60
}

// inYearOf moves a range on the calendar so many years behind the year of a moment.
func inYearOf(w Range, at time.Time, years int) Range {
	loc := w.From.Location()
	months := 12 * (at.In(loc).Year() + years - w.From.Year())
	return span{addMonths(dayIn(w.From), months), addMonths(dayIn(w.To), months)}.in(loc)
}
