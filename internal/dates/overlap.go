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
	w := query.Window()
	r := reach(query)
	best := fit(w, at, r)
	for years := -1; query.Yearly && best < otherYear && years <= 1; years++ {
		best = max(best, float64(otherYear*fit(inYearOf(w, at, years), at, r)))
	}
	return best
}

// Best returns the greatest Overlap of any query expression with at, weighted by
// the expression's confidence.
func Best(query []Expr, at time.Time) (best float64) {
	for _, q := range query {
		best = max(best, float64(Overlap(q, at)*q.Confidence))
	}
	return best
}

// fit says how well a moment fits w, by the distance between the two.
func fit(w Range, at time.Time, reach float64) float64 {
	distance := max(seconds(at, w.From), seconds(w.To, at), 0)
	if at.Equal(w.To) {
		distance = max(distance, 1) // half-open
	}
	x := min(distance/reach, 1)
	y := 1 - float64(x*x)
	return float64(y * y)
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
