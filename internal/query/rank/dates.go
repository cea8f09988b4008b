package rank

import (
	"cmp"
	"slices"
	"time"

	"mneme/internal/dates"
)

const (
	// sureDate is the least confidence in a date of the query that counts:
	// "recently" hardly names a time.
	sureDate = 0.5
	// dateDepth is how many of the best candidates are opened, to read the dates
	// in their texts; of the others only occurred_at counts.
	dateDepth = 30
	// DateBytes is how much of the beginning of a text is read for dates.
	DateBytes = dates.MaxTextBytes
)

// findDates reads the times that the query names. "Last week" is counted from Now.
func (p *Plan) findDates() {
	p.dates = slices.DeleteFunc(dates.Parse(p.Query, p.Now), func(e dates.Expr) bool { return e.Confidence < sureDate })
}

// EvaluateDates fills in how well the times of candidates fit those of the query:
// when they occurred or, for the best, what their texts say. read returns the text
// of a candidate and when it occurred; ok = false if it has none. It needs the
// values of all other parts.
func (r *Ranking) EvaluateDates(read func(c *Candidate) (text string, occurred time.Time, ok bool, err error)) error {
	if len(r.plan.dates) == 0 {
		return nil
	}
	for _, i := range r.datable() {
		c := &r.candidates[i]
		if c.values[partDate] >= 1 {
			continue
		}
		text, occurred, ok, err := read(c)
		if err != nil {
			return err
		}
		if ok {
			c.fits(dates.BestExpr(r.plan.dates, dates.InText(text, occurred)))
		}
	}
	return nil
}

// datable fits when candidates occurred, and lists the best of them.
func (r *Ranking) datable() []int {
	p := r.plan
	order := make([]int, 0, len(r.candidates))
	sums := make([]float64, len(r.candidates))
	for i := range r.candidates {
		c := &r.candidates[i]
		if sums[i] = c.sum(p); sums[i] == 0 {
			continue
		}
		order = append(order, i)
		if _, agent, at := p.Partitions[c.Partition].Conversations.of(c.Doc); agent != 0 {
			c.fits(dates.Best(p.dates, time.Unix(0, at).UTC()))
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), r.candidates[a].compareDoc(&r.candidates[b]))
	})
	return order[:min(len(order), dateDepth)]
}

func (c *Candidate) fits(fit float64) {
	c.values[partDate] = max(c.values[partDate], min(fit, 1))
	c.raw[partDate] = c.values[partDate]
}
