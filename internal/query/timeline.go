package query

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// moment is a living version in order of time.
type moment struct {
	record       events.ID
	occurred     int64
	conversation string // that the timeline keeps to; "" = everything
	row          projections.Doc
}

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.occurred, o.occurred), compareRef(m.row.At, o.row.At))
}

// Timeline gives what surrounded a record: in its conversation if it has one,
// else in everything that the reader may see, by occurred_at, then in the
// order of the log. A side ends early, at the far end, when its records are too
// long together, or where the budget ends. Errors: invalid, not_found, gone.
func (r *Reader) Timeline(ctx context.Context, req memory.TimelineRequest) (memory.Timeline, error) {
	if err := req.Validate(); err != nil {
		return memory.Timeline{}, err
	}
	before, after := req.Sides()
	anchor, err := r.Get(ctx, req.ID, 0)
	if err != nil {
		return memory.Timeline{}, err
	}
	anchor.Text, anchor.Truncated = req.Text(anchor.Text)
	out := memory.Timeline{Anchor: anchor, Position: r.view.Position()}
	id, h, _, err := r.find(ctx, anchor.RecordID)
	if err != nil {
		return out, views.Failed("timeline", err)
	}
	row, ok, err := r.view.State.Doc(h.Partition, h.Doc)
	if err := errors.Join(err, missing(ok)); err != nil {
		return out, views.Failed("timeline", err)
	}
	at := moment{id, row.OccurredAt, anchor.Conversation, row}
	if out.Before, err = r.beside(ctx, &req.Fit, at, before, true); err != nil {
		return out, views.Failed("timeline", err)
	}
	if out.After, err = r.beside(ctx, &req.Fit, at, after, false); err == nil {
		err = fitTimeline(&out, &req.Fit)
	}
	return out, views.Failed("timeline", err)
}

// beside opens up to n records next to the anchor on one side, oldest first.
func (r *Reader) beside(ctx context.Context, fit *memory.Fit, anchor moment, n int, backwards bool) ([]memory.Record, error) {
	var found []moment
	for i := range r.view.Partitions {
		near, err := r.nearest(&r.view.Partitions[i], anchor, n, backwards)
		if err != nil {
			return nil, err
		}
		found = append(found, near...)
	}
	slices.SortFunc(found, moment.compare)
	if backwards {
		slices.Reverse(found)
	}
	out, size := []memory.Record{}, 0
	for _, m := range found {
		if len(out) == n || size >= maxAnswer/2 {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := r.record(m.record, m.row.Version, m.row.At)
		if errors.Is(err, views.ErrErased) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rec.Text, rec.Truncated = fit.Text(rec.Text)
		size += answerBytes(&rec)
		out = append(out, rec)
	}
	if backwards {
		slices.Reverse(out)
	}
	return out, nil
}

// nearest finds up to n living versions of a partition on one side of the anchor.
func (r *Reader) nearest(p *views.Partition, anchor moment, n int, backwards bool) ([]moment, error) {
	if n == 0 {
		return nil, nil
	}
	from, to := anchor.occurred, int64(math.MaxInt64)
	if backwards {
		from, to = math.MinInt64, anchor.occurred+1
	}
	var out []moment
	var failure error
	visit := func(occurred int64, doc uint32) bool {
		d, ok, err := r.view.State.Doc(p.ID, doc)
		if err := errors.Join(err, missing(ok)); err != nil {
			failure = err
			return false
		}
		m := moment{d.Record, occurred, anchor.conversation, d}
		if side := m.compare(anchor); d.Living() && (backwards && side < 0 || !backwards && side > 0) {
			out = append(out, m)
		}
		return len(out) < n
	}
	var err error
	if anchor.conversation != "" {
		err = r.view.State.Conversation(p.ID, projections.Attr(projections.AttrConversation, anchor.conversation), from, to, backwards, visit)
	} else {
		err = r.view.State.Between(p.ID, from, to, backwards, visit)
	}
	return out, errors.Join(err, failure)
}
