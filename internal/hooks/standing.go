package hooks

import (
	"cmp"
	"context"
	"slices"

	"mneme/client"
	"mneme/internal/recall"
	"mneme/memory"
)

// standingQuery stands in the journal where a conversation began without words to search for.
const standingQuery = "(what was decided, preferred and asked to be remembered)"

// standingKinds hold whatever a conversation is about.
var standingKinds = []memory.Kind{memory.KindPreference, memory.KindDecision, memory.KindPractice}

// standing reports whether an event is the only one at which its host takes memories before
// the model works: it begins with what holds in general then. Elsewhere each prompt brings what
// fits it, and a beginning nothing.
func standing(e *Event) bool {
	return e.Kind == SessionStart && e.Injects && !slices.Contains(withPrompts, e.Agent)
}

// stands lists what was decided and preferred, and what somebody asked to remember: the most
// important first, and of equal ones the newest.
func (r *Runner) stands(ctx context.Context) ([]memory.Hit, error) {
	var all []memory.Record
	text := memory.MaxSnippetRunes
	for _, f := range []memory.Filter{{Kinds: standingKinds}, {Tags: []string{rememberTag}}} {
		list, err := r.Node.List(ctx, r.Namespace, client.ListOptions{ReadOptions: client.ReadOptions{As: r.Agent}, ListRequest: memory.ListRequest{
			Limit: recall.Ask(recall.DefaultLimit), Filter: f, Purpose: memory.PurposeInject, Fit: memory.Fit{MaxText: &text, Fields: []string{"record_id", "uri", "text", "truncated", "importance", "occurred_at", "created_at"}}}})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Records...)
	}
	slices.SortStableFunc(all, func(a, b memory.Record) int {
		return cmp.Or(cmp.Compare(importance(&b), importance(&a)), b.CreatedAt.Compare(a.CreatedAt))
	})
	hits := make([]memory.Hit, len(all))
	for i := range all {
		rec := &all[i]
		hits[i] = memory.Hit{ID: rec.RecordID, URI: rec.URI, Text: rec.Text, Truncated: rec.Truncated, OccurredAt: rec.OccurredAt}
	}
	return hits, nil
}

// importance of a memory of which nobody said it lies in the middle.
func importance(rec *memory.Record) float64 {
	if rec.Importance == nil {
		return 0.5
	}
	return *rec.Importance
}
