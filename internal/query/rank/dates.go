package rank

import (
	"slices"
	"time"

	"mneme/internal/dates"
)

// sureDate is the least confidence in a date of the query that counts: "recently"
// hardly names a time.
const sureDate = 0.5

// findDates reads the times that the query names. "Last week" is counted from Now.
func (p *Plan) findDates() {
	p.dates = slices.DeleteFunc(dates.Parse(p.Query, p.Now), func(e dates.Expr) bool { return e.Confidence < sureDate })
}

// dateFit says how well the time when a document occurred fits those of the query, 0..1.
func (p *Plan) dateFit(at int64) float64 {
	return min(dates.Best(p.dates, time.Unix(0, at).UTC()), 1)
}
