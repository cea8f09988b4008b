package query

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"mneme/internal/dates"
	"mneme/memory"
)

const (
	// sureDate is the least confidence in a date of the query that counts:
	// "recently" means hardly any time.
	sureDate = 0.5
	// dateDepth is how many of the best candidates are opened, to read the dates
	// in their texts; of the others only occurred_at counts.
	dateDepth = 30
)

// planDates reads the times that the query means. "Last week" is counted from
// now.
func (r *Reader) planDates(p *plan) {
	if p.on[memory.PartDates] {
		p.dates = slices.DeleteFunc(dates.Parse(p.req.Query, r.s.opt.Now().UTC()), func(e dates.Expr) bool { return e.Confidence < sureDate })
	}
}

// evaluateDates fills in how well the times of candidates fit those of the
// query: when they occurred, or what their texts say. It needs the values of
// all other parts.
func (r *Reader) evaluateDates(ctx context.Context, sc *scratch) error {
	p, view := sc.plan, r.s.contexts.Load()
	order := make([]int, 0, len(sc.cands))
	sums := make([]float64, len(sc.cands))
	for i := range sc.cands {
		c := &sc.cands[i]
		if sums[i] = c.sum(p); sums[i] == 0 {
			continue
		}
		order = append(order, i)
		if around := view.get(p.parts[c.part].ID); around != nil {
			if _, agent, at := around.of(c.doc); agent != 0 {
				fit, _ := dates.Best(p.dates, timeOf(at))
				c.fits(fit)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &sc.cands[a], &sc.cands[b]
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(x.part, y.part), cmp.Compare(x.doc, y.doc))
	})
	for _, i := range order[:min(len(order), dateDepth)] {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := &sc.cands[i]
		if c.values[partDate] >= 1 {
			continue
		}
		d, ok, err := r.view.Doc(p.parts[c.part].ID, c.doc)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		env, _, err := r.view.Envelope(d.At)
		if err != nil {
			return err
		}
		content, err := r.s.openEnvelope(&env)
		if errors.Is(err, errErased) {
			continue
		}
		if err != nil {
			return err
		}
		fit, _ := dates.BestExpr(p.dates, dates.InText(content.Text, timeOf(d.OccurredAt)))
		c.fits(fit)
	}
	return nil
}

func (c *candidate) fits(fit float64) {
	c.values[partDate] = max(c.values[partDate], min(fit, 1))
	c.raw[partDate] = c.values[partDate]
}
