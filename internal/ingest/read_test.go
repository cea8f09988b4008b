package ingest

import (
	"context"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// readsOf lists the audited reads of a namespace, newest first.
func (w *world) readsOf(ns events.ID) (out []projections.LoggedRead) {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	if err := v.ReadsBefore(ns, projections.Ref{}, func(r projections.LoggedRead) (bool, error) { out = append(out, r); return true, nil }); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestNoteOfARead: each scope that something was given of has its event, also where captures are
// switched off, and a replay comes to the same.
func TestNoteOfARead(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	if _, err := RaiseLevel(ctx, w.writer, events.ReadLevel); err != nil {
		t.Fatal(err)
	}
	team := &events.Read{Purpose: events.ReadInject, Seq: 3, Query: events.MAC{1}, Given: []events.Given{{Record: events.ID{7}, Version: 2}}}
	own := &events.Read{Purpose: events.ReadInject, Seq: 3, Query: events.MAC{1}, Given: []events.Given{{Record: events.ID{8}, Version: 1}}}
	id := w.idOf("team-a")
	if _, err := w.writer.ChangeNamespace(ctx, "team-a", memory.PatchNamespace{Settings: map[string]*string{"captures": new("off")}}); err != nil {
		t.Fatal(err)
	}
	at, err := NoteRead(ctx, w.writer, "team-a", events.ReadNote{Namespace: id, Agent: "ann", Team: team, Own: own})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NoteRead(ctx, w.writer, "team-a", events.ReadNote{Namespace: id, Team: team}); err != nil {
		t.Fatal(err)
	}
	got := w.readsOf(id)
	if len(got) != 3 || got[0].Agent != "" || got[0].Scope != events.ScopeTeam || got[1].Agent != "ann" || got[1].Scope != events.ScopeAgent || got[2].Scope != events.ScopeTeam {
		t.Fatalf("%+v", got)
	}
	if p, err := events.ParsePosition(at); err != nil || p.Seq != got[1].At.Seq || p.Index != got[1].At.Index {
		t.Errorf("answered at %s, it is at %v", at, got[1].At)
	}
	w.refold()
	last := w.last()
	for name, c := range map[string]struct {
		namespace string
		id        events.ID
	}{"no namespace": {"nowhere", id}, "another of the name": {"team-a", events.ID{9}}} {
		_, err := NoteRead(ctx, w.writer, c.namespace, events.ReadNote{Namespace: c.id, Agent: "ann", Team: team})
		if memory.CodeOf(err) != memory.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.last() != last {
		t.Error("what was refused was written")
	}
}

// TestNoteOfAReadNeedsItsLevel: a log that a program may still follow which does not know of
// audited reads gets none.
func TestNoteOfAReadNeedsItsLevel(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	if _, err := RaiseLevel(ctx, w.writer, events.GraphLevel); err != nil {
		t.Fatal(err)
	}
	last := w.last()
	_, err := NoteRead(ctx, w.writer, "team-a", events.ReadNote{Namespace: w.idOf("team-a"), Team: &events.Read{Purpose: events.ReadInject}})
	wantCode(t, err, memory.CodeUnavailable)
	if w.last() != last {
		t.Error("it was written")
	}
	w.capture("team-a", memory.Capture{Text: "goes on"})
	w.refold()
}
