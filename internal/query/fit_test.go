package query

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mneme/internal/tokens"
	"mneme/memory"
)

// TestTextsFitAWindow: one hit of 256 KiB took the whole window of an agent.
func TestTextsFitAWindow(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ctx := context.Background()
	long := strings.Repeat("部署 needle ", 1000)
	id := w.One("team", "ann", long)
	w.One("team", "ann", "a short needle")
	r := w.reader("team", "")
	for _, c := range []struct {
		fit   memory.Fit
		runes int
	}{{memory.Fit{}, memory.DefaultMaxText}, {memory.Fit{MaxText: ptr(7)}, 7}, {memory.Fit{MaxText: ptr(0)}, 0}, {memory.Fit{MaxText: ptr(memory.MaxTextBytes)}, len([]rune(long))}} {
		want := string([]rune(long)[:c.runes])
		check := func(what, id2, text string, truncated bool) {
			t.Helper()
			if id2 == id && (text != want || truncated != (want != long)) {
				t.Errorf("%s, %d runes: %d bytes, truncated %v", what, c.runes, len(text), truncated)
			}
			if id2 != id && c.runes > 20 && (text != "a short needle" || truncated) {
				t.Errorf("%s: %q, truncated %v", what, text, truncated)
			}
		}
		res, err := r.Search(ctx, memory.SearchRequest{Query: "needle", Fit: c.fit})
		w.OK(err)
		list, err := r.List(ctx, memory.ListRequest{Fit: c.fit})
		w.OK(err)
		line, err := r.Timeline(ctx, memory.TimelineRequest{ID: id, Fit: c.fit})
		w.OK(err)
		if len(res.Results) != 2 || len(list.Records) != 2 || len(line.After) != 1 {
			t.Fatalf("%d hits, %d records, %d after", len(res.Results), len(list.Records), len(line.After))
		}
		for _, h := range res.Results {
			check("search", h.ID, h.Text, h.Truncated)
		}
		for _, rec := range append(list.Records, line.Anchor, line.After[0]) {
			check("list and timeline", rec.RecordID, rec.Text, rec.Truncated)
		}
	}
	// One memory alone is whole.
	rec, err := r.Get(ctx, id, 0)
	w.OK(err)
	h, err := r.History(ctx, id)
	w.OK(err)
	if rec.Text != long || rec.Truncated || h.Versions[0].Text != long {
		t.Errorf("%d bytes", len(rec.Text))
	}
}

// sent counts the tokens of an answer as it is sent.
func sent(t *testing.T, answer interface {
	Shown(fields []string) (any, error)
}, fields []string) int {
	t.Helper()
	doc, err := answer.Shown(fields)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return tokens.Count(string(b) + "\n")
}

// budgeted is a namespace with memories of many kinds of text, in one conversation.
func budgeted(t *testing.T) (w *world, r *Reader, middle string) {
	w = newWorld(t)
	w.Namespace("team", withBuiltin())
	for i := range 30 {
		text := fmt.Sprintf("needle %d %s", i, strings.Repeat([]string{"deploys happen on Tuesdays. ", "部署在星期二进行，", "<b>\"&\u0001</b>", "aaaaaaaa", "\n\t{}[],"}[i%5], i%7*5))
		id := w.Capture("team", memory.Capture{Agent: "ann", Text: text, Conversation: "talk", Tags: []string{"a", "b"}, Metadata: json.RawMessage(`{"k":1}`)})[0]
		if i == 15 {
			middle = id
		}
	}
	return w, w.reader("team", ""), middle
}

// TestBudgetHoldsTheWholeAnswer, whatever the budget and the fields are, and no answer is
// shorter than it has to be by more than one hit.
func TestBudgetHoldsTheWholeAnswer(t *testing.T) {
	w, r, middle := budgeted(t)
	ctx := context.Background()
	all := memory.SearchRequest{Query: "needle", Limit: ptr(30)}
	whole, err := r.Search(ctx, all)
	w.OK(err)
	if len(whole.Results) != 30 || whole.LeftOff != nil {
		t.Fatalf("%d hits", len(whole.Results))
	}
	for _, fields := range [][]string{nil, {"record_id", "text"}, {"text"}, {"agent"}} {
		for _, budget := range []int{1, 50, 120, 300, 1000, 2500, 5000, memory.MaxBudget} {
			fit := memory.Fit{Fields: fields, Budget: ptr(budget)}
			what := fmt.Sprintf("budget %d of %v", budget, fields)
			req := all
			req.Fit = fit
			res, err := r.Search(ctx, req)
			w.OK(err)
			n, left := len(res.Results), 0
			if res.LeftOff != nil {
				left = res.LeftOff.Count
			}
			if n+left != 30 || left > 0 && res.LeftOff.Hint == "" {
				t.Errorf("%s: %d hits, %d left off", what, n, left)
			}
			for i, h := range res.Results {
				if h.ID != whole.Results[i].ID {
					t.Errorf("%s: hit %d is another one", what, i)
				}
			}
			if used := sent(t, res, fields); used > budget && n > 0 {
				t.Errorf("%s: the answer has %d tokens", what, used)
			} else if left > 0 && n > 0 {
				more := res
				more.Results = whole.Results[:n+1]
				if used := sent(t, more, fields); used <= budget-2*frameReserve-n { // where two hits meet their tokens may be one
					t.Errorf("%s: with one hit more it has %d tokens", what, used)
				}
			}
			if budget == memory.MaxBudget && left > 0 || budget == 1 && n > 0 {
				t.Errorf("%s: %d hits", what, n)
			}
			line, err := r.Timeline(ctx, memory.TimelineRequest{ID: middle, Before: ptr(9), After: ptr(9), Fit: fit})
			if err != nil && budget > 300 {
				t.Errorf("%s: timeline: %v", what, err)
			}
			if err != nil {
				wantCode(t, err, memory.CodeInvalid)
				continue
			}
			if used := sent(t, line, fields); used > budget {
				t.Errorf("%s: the timeline has %d tokens", what, used)
			}
			n, left = len(line.Before)+len(line.After), 0
			if line.LeftOff != nil {
				left = line.LeftOff.Count
			}
			if n+left != 18 || max(len(line.Before)-len(line.After), len(line.After)-len(line.Before)) > 1 {
				t.Errorf("%s: %d before, %d after, %d left off", what, len(line.Before), len(line.After), left)
			}
		}
	}
}

// TestBudgetEndsAPage: what a page leaves off comes with the next one.
func TestBudgetEndsAPage(t *testing.T) {
	w, r, _ := budgeted(t)
	ctx := context.Background()
	whole, err := r.List(ctx, memory.ListRequest{Limit: 30})
	w.OK(err)
	for _, budget := range []int{1, 800, 1500, 3000, memory.MaxBudget} {
		req := memory.ListRequest{Limit: 20, Fit: memory.Fit{Fields: []string{"record_id", "text"}, Budget: ptr(budget)}}
		var got []string
		for pages := 0; ; pages++ {
			page, err := r.List(ctx, req)
			if budget == 1 {
				wantCode(t, err, memory.CodeInvalid)
				break
			}
			w.OK(err)
			if used := sent(t, page, req.Fields); used > budget {
				t.Errorf("budget %d: a page has %d tokens", budget, used)
			}
			for _, rec := range page.Records {
				got = append(got, rec.RecordID)
			}
			if l := page.LeftOff; l != nil && (page.Cursor == "" || l.Count != min(20, 30-len(got)+len(page.Records))-len(page.Records)) {
				t.Errorf("budget %d: %d records, cursor %q, left off %+v", budget, len(page.Records), page.Cursor, l)
			}
			if req.Cursor = page.Cursor; req.Cursor == "" || pages > 30 {
				break
			}
		}
		if budget > 1 && !slices.Equal(got, recordIDs(whole.Records)) {
			t.Errorf("budget %d: %d records", budget, len(got))
		}
	}
}

func recordIDs(recs []memory.Record) []string {
	out := make([]string, len(recs))
	for i, rec := range recs {
		out[i] = rec.RecordID
	}
	return out
}
