package query

import (
	"encoding/json"
	"fmt"

	"mneme/internal/tokens"
	"mneme/memory"
)

// How to get what a budget had no room for.
const (
	hintSearch   = "ask with a larger budget, or for less of each hit with max_text and fields"
	hintList     = "go on with the cursor"
	hintTimeline = "ask with a larger budget, for less of each record with max_text and fields, or for the timeline of the first or last one"
)

// frameReserve is for where the pieces that are counted meet, and for digits.
const frameReserve = 8

// window is what an answer may take of its asker's. A nil one has no end: who sets no
// budget has nothing counted.
type window struct {
	fit  *memory.Fit
	left *tokens.Budget
}

// newWindow makes the window of a request with a budget. frame is the answer without its hits or
// records, with everything that it may say else: it is sent in any case.
func newWindow(fit *memory.Fit, frame any) (*window, error) {
	b, err := json.Marshal(frame)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return &window{fit, tokens.NewBudget(max(0, *fit.Budget-tokens.Count(string(b))-frameReserve))}, nil
}

// holds takes room for a hit or a record, and reports whether there was enough.
func (w *window) holds(item interface {
	Shown(fields []string) (json.RawMessage, error)
}) (bool, error) {
	if w == nil {
		return true, nil
	}
	b, err := item.Shown(w.fit.Fields)
	if err != nil {
		return false, fmt.Errorf("encode answer: %w", err)
	}
	return w.left.Take("," + string(b)), nil
}

// errNoRoom refuses a budget that holds nothing: an answer would not say more than that.
func (w *window) errNoRoom() error {
	return memory.Errorf(memory.CodeInvalid, "budget is %d tokens, in which not one record fits", *w.fit.Budget).
		WithHint("ask with a larger budget, or for less of each record with max_text and fields")
}

// fitSearch leaves off the hits from the first on for which the budget has no room.
func fitSearch(resp *memory.SearchResponse, fit *memory.Fit) error {
	if fit.Budget == nil {
		return nil
	}
	frame := *resp
	frame.Results, frame.TookMS, frame.LeftOff = []memory.Hit{}, 12345.678901, &memory.LeftOff{Count: len(resp.Results), Hint: hintSearch}
	w, err := newWindow(fit, frame)
	if err != nil {
		return err
	}
	for i := range resp.Results {
		ok, err := w.holds(&resp.Results[i])
		if err != nil {
			return err
		}
		if !ok {
			resp.LeftOff = &memory.LeftOff{Count: len(resp.Results) - i, Hint: hintSearch}
			resp.Results = resp.Results[:i]
			break
		}
	}
	return nil
}

// fitTimeline leaves off what is furthest from the anchor. Errors: invalid, if the budget
// does not hold the anchor.
func fitTimeline(line *memory.Timeline, fit *memory.Fit) error {
	if fit.Budget == nil {
		return nil
	}
	n := len(line.Before) + len(line.After)
	w, err := newWindow(fit, memory.Timeline{Before: []memory.Record{}, After: []memory.Record{}, Position: line.Position,
		LeftOff: &memory.LeftOff{Count: n, Hint: hintTimeline}})
	if err != nil {
		return err
	}
	if ok, err := w.holds(&line.Anchor); err != nil || !ok {
		if err == nil {
			err = w.errNoRoom()
		}
		return err
	}
	before, after := 0, 0
	for turn := 0; before+after < n; turn++ {
		var next *memory.Record
		back := turn%2 == 0
		switch {
		case back && before < len(line.Before):
			next = &line.Before[len(line.Before)-1-before]
		case !back && after < len(line.After):
			next = &line.After[after]
		default:
			continue // this side is done
		}
		ok, err := w.holds(next)
		if err != nil {
			return err
		}
		if !ok {
			line.Before, line.After = line.Before[len(line.Before)-before:], line.After[:after]
			line.LeftOff = &memory.LeftOff{Count: n - before - after, Hint: hintTimeline}
			break
		}
		if back {
			before++
		} else {
			after++
		}
	}
	return nil
}
