package route

import (
	"context"
	"log/slog"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/memory"
)

// Capture implements Writer. Items with an id are sent again where their answer was lost:
// one that had been written by then has the status duplicate, with the id and position of
// the record. Items without one are outcome_unknown then.
func (r *Router) Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	b := newBatch(items)
	for s := r.search(); ; {
		d := attempt(ctx, s, capture, captures{namespace, pick(items, b.todo), pickOptions(opt, b.todo), wait})
		switch d.verdict {
		case settled:
			if d.err == nil && len(d.out.Results) != len(b.todo) {
				d.err = memory.Errorf(memory.CodeInternal, "capture answered %d results for %d items", len(d.out.Results), len(b.todo))
			}
			if d.err != nil {
				return b.end(d.err)
			}
			if b.take(d.out, d.left && ctx.Err() == nil); len(b.todo) == 0 {
				return b.response()
			}
		case unknown:
			if b.lose(d.err); len(b.todo) == 0 || ctx.Err() != nil {
				return b.end(d.err)
			}
			r.opt.Logger.LogAttrs(ctx, slog.LevelInfo, "captures are sent again", append(api.TraceOf(ctx).Attrs(), slog.Int("items", len(b.todo)), slog.Any("why", d.err))...)
		case gaveUp:
			return b.end(d.err)
		}
	}
}

// batch is what is known of the items of one capture.
type batch struct {
	items    []memory.Capture
	results  []memory.CaptureResult
	todo     []int         // items that need another attempt, in order
	seen     map[int]error // items that may have been written without a result that says so
	lost     error         // an attempt without an answer
	answered bool          // some node answered
	position events.Position
	vectors  string
}

func newBatch(items []memory.Capture) *batch {
	b := &batch{items: items, results: make([]memory.CaptureResult, len(items)), todo: make([]int, len(items)), seen: map[int]error{}}
	for i := range items {
		b.todo[i] = i
	}
	return b
}

// take takes the answer to what is to be done. left says that the node that gave it
// writes no more: what it did not write, or cannot tell, another one is asked for, but
// nothing that was sent in front of something that is written already.
func (b *batch) take(resp memory.CaptureResponse, left bool) {
	b.answered = true
	if at, err := events.ParsePosition(resp.Position); err == nil && b.position.Before(at) {
		b.position = at
	}
	if resp.Vectors != "" {
		b.vectors = resp.Vectors
	}
	last := -1
	for j, res := range resp.Results {
		if res.Status == memory.StatusCreated {
			last = j
		}
	}
	var again []int
	for j, i := range b.todo {
		res := resp.Results[j]
		b.set(i, res)
		if res.Error == nil || !left || j < last {
			continue
		}
		switch {
		case res.Error.Code == memory.CodeUnavailable:
			again = append(again, i)
		case res.Error.Code == memory.CodeOutcomeUnknown && b.items[i].ID != "":
			b.seen[i] = memory.Errorf(res.Error.Code, "%s", res.Error.Detail).WithHint("%s", res.Error.Hint)
			again = append(again, i)
		}
	}
	b.todo = again
}

// set notes the result of an item. A refusal for now says nothing of an attempt before.
func (b *batch) set(i int, res memory.CaptureResult) {
	if seen := b.seen[i]; seen != nil && res.Error != nil && transientCode(res.Error.Code) {
		res = b.failure(i, seen)
	}
	b.results[i] = res
}

func (b *batch) failure(i int, err error) memory.CaptureResult {
	e := memory.AsError(err)
	detail := e.Message
	if e.Code == memory.CodeInternal {
		detail = memory.ProblemOf(e).Detail
	}
	return memory.CaptureResult{ID: b.items[i].ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: e.Code, Detail: detail, Hint: e.Hint}}
}

// lose notes that an attempt may have been carried out. Only what has an id may be sent
// again.
func (b *batch) lose(err error) {
	b.lost = err
	var again []int
	for _, i := range b.todo {
		b.seen[i] = err
		b.set(i, b.failure(i, err))
		if b.items[i].ID != "" {
			again = append(again, i)
		}
	}
	b.todo = again
}

// end ends the batch with an error that concerns what is still to be done. Where no node
// has answered it concerns all.
func (b *batch) end(err error) (memory.CaptureResponse, error) {
	if !b.answered {
		if b.lost != nil && isTransient(err) {
			err = b.lost
		}
		return memory.CaptureResponse{}, err
	}
	for _, i := range b.todo {
		b.set(i, b.failure(i, err))
	}
	return b.response()
}

func (b *batch) response() (memory.CaptureResponse, error) {
	resp := memory.CaptureResponse{Results: b.results, Vectors: b.vectors}
	if !b.position.IsZero() {
		resp.Position = b.position.String()
	}
	return resp, nil
}

// pick returns the chosen ones; all of them are the list itself.
func pick[T any](list []T, chosen []int) []T {
	if len(chosen) == len(list) {
		return list
	}
	out := make([]T, len(chosen))
	for j, i := range chosen {
		out[j] = list[i]
	}
	return out
}

func pickOptions(opt api.CaptureOptions, chosen []int) api.CaptureOptions {
	if opt.Source != nil {
		opt.Source = pick(opt.Source, chosen)
	}
	return opt
}
