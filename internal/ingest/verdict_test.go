package ingest

import (
	"context"
	"errors"
	"testing"

	"mneme/internal/projections"
	"mneme/memory"
)

// A leader that had stood still and was deposed refused by its state of the past: a
// revision whose If-Match names the present version was a conflict. What rests on the state
// is told once the leadership is confirmed, from the state as it is then.
func TestDeposedLeaderRefusedByAStateOfThePast(t *testing.T) {
	g := opening(t, 1)
	d := g.send("k", "one")
	g.run()
	g.outcome(d, projections.OutcomeCreated)
	record := d.result.Record.String()
	asked := 0
	g.w.opt.Current = func(context.Context) error { asked++; return errors.New("another one leads") }
	text := "two"
	for what, refused := range map[string]func() error{
		"a revision of another version": func() error {
			_, err := g.w.Revise(t.Context(), "team-a", "agent-1", record, memory.Revision{Text: &text}, 7, "")
			return err
		},
		"a forget of another version": func() error { _, err := g.w.Forget(t.Context(), "team-a", "agent-1", record, 7); return err },
		"a forget of what is not there": func() error {
			_, err := g.w.Forget(t.Context(), "team-a", "agent-1", g.w.ids.New().String(), 0)
			return err
		},
		"a capture in a namespace that is not there": func() error {
			_, err := g.w.Capture(t.Context(), "team-b", []Item{{Capture: memory.Capture{Agent: "a", Text: "x"}}}, memory.WaitApplied)
			return err
		},
		"a change of a namespace that is not there": func() error {
			_, err := g.w.ChangeNamespace(t.Context(), "team-b", memory.PatchNamespace{})
			return err
		},
		"the end of a namespace that is not there": func() error { _, err := g.w.DeleteNamespace(t.Context(), "team-b"); return err },
	} {
		asked = 0
		if err := refused(); memory.CodeOf(err) != memory.CodeUnavailable || asked != 1 {
			t.Errorf("%s: asked %d times, %v", what, asked, err)
		}
	}
	// What the state tells then is what counts.
	calls := 0
	g.w.opt.Current = func(context.Context) error { return nil }
	got, err := confirmed(t.Context(), g.w, func() (int, error) {
		if calls++; calls == 1 {
			return 0, staleBase(record, 1)
		}
		return calls, nil
	})
	if got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := g.w.Forget(t.Context(), "team-a", "agent-1", record, 7); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("a forget of another version by who leads: %v", err)
	}
}
