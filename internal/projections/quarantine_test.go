package projections_test

import (
	"errors"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
)

// commandsOf are messages as Raft's commands, one a message, from an index on.
func commandsOf(t *testing.T, w *world, s *projections.State, index uint64) []projections.Command {
	t.Helper()
	d, c := deriver(t, w.keys, s), s.Cursor()
	var out []projections.Command
	for _, m := range w.log[c.Seq:] {
		r, next := rangeOf(t, d, c, [][]byte{m})
		r.Applied = projections.Mark{} // all stand at least there
		out = append(out, projections.Command{Index: index, Term: 1, Data: r.Encode()})
		index, c = index+1, next
	}
	return out
}

var skull = events.Content{Text: "a bottle with a skull on it", ClientID: "e1"}

// poisoned is a log whose fourth message has an event, the third of it, of the agent that a
// test makes poisonous; fifth and sixth follow from it.
func poisoned(t *testing.T) (*world, events.ID) {
	w := newWorld(t, 1)
	team := w.created("team", builtinSpace)
	w.frame(team)
	capture := func(agent, text string) events.Envelope {
		return w.content(events.Header{Namespace: team.Namespace, Agent: agent}, events.Content{Text: text})
	}
	w.frame(capture("ada", "a lantern on the quay"))
	w.frame(capture("ada", "ropes, and a ladder"))
	bad := w.content(events.Header{Namespace: team.Namespace, Agent: "eve"}, skull)
	w.frame(capture("bob", "the harbour at night"), capture("bob", "fog"), bad, capture("bob", "two ships"))
	w.frame(w.forgotten(events.Header{Namespace: team.Namespace, Agent: "eve", Scope: events.ScopeTeam, Target: bad.Record}))
	w.frame(capture("ada", "the last one"))
	return w, team.Namespace
}

// Nobody could tell which event of a batch had halted a shard, and commands in front of it
// were applied on some replicas and not on others.
func TestPoisonEventIsNamedAndAllInFrontOfItIsApplied(t *testing.T) {
	for how, code := range map[string]string{"panics": "panicked", "fails": "failed", "cannot be written": "failed"} {
		t.Run(how, func(t *testing.T) {
			w, _ := poisoned(t)
			defer projections.Poison("eve", how)()
			s := openState(t, t.TempDir())
			defer s.Close()
			results, err := s.Apply(commandsOf(t, w, s, 10))
			poison, at := (*projections.PoisonError)(nil), (*projections.CommandError)(nil)
			if !errors.As(err, &poison) || !errors.As(err, &at) || at.Index != 13 || len(results) != 3 {
				t.Fatalf("%d results, %v", len(results), err)
			}
			if poison.At != (events.Position{Seq: 4, Index: 2}) || poison.Code() != code || poison.Type != events.TypeCaptured || poison.Stack() == nil != (code == "failed") {
				t.Errorf("%v", poison)
			}
			if c := s.Cursor(); c.Seq != 3 || c.RaftIndex != 12 {
				t.Errorf("the state stands at %d, %d", c.Seq, c.RaftIndex)
			}
		})
	}
}

// An event in quarantine is folded as that where the command met it, and by whoever folds
// the log, also by a program that could fold it: all have the same state.
func TestEventInQuarantineGivesTheSameStateEverywhere(t *testing.T) {
	w, team := poisoned(t)
	mend := projections.Poison("eve", "panics")
	defer mend()
	s := openState(t, t.TempDir())
	defer s.Close()
	commands := commandsOf(t, w, s, 10)
	if _, err := s.Apply(commands); err == nil {
		t.Fatal("it is no poison")
	}
	q := projections.Quarantine{At: projections.Ref{Seq: 4, Index: 2}, By: "ops", Note: []byte("sealed")}
	command := projections.Command{Index: 20, Term: 1, Data: q.Encode()}
	if res, err := s.Apply([]projections.Command{{Index: 12, Term: 1, Data: q.Encode()}}); err != nil || res[0] != nil {
		t.Fatalf("a command that was applied before: %v, %v", res, err)
	}
	s.Quarantine(q)
	res, err := s.Apply(append(commands[3:], command))
	must(t, err)
	frame := res[0].(projections.RangeResult)
	if len(frame.Events) != 4 || frame.Events[2].Outcome != projections.OutcomeQuarantined || frame.Events[3].Outcome != projections.OutcomeCreated {
		t.Errorf("%+v", frame)
	}
	if forgotten := res[1].(projections.RangeResult).Events[0].Outcome; forgotten != projections.OutcomeRejected {
		t.Errorf("what follows from it is %s", forgotten)
	}
	if done := res[3].(projections.QuarantineResult); !done.Done {
		t.Error("the command says that nothing is in quarantine")
	}
	noted := func(s *projections.State, told bool) (hash projections.StateHash) {
		t.Helper()
		view(t, s, func(v *projections.View) {
			got, err := v.Noted()
			must(t, err)
			if len(got) != 1 || got[0].At != q.At || got[0].By != "ops" || string(got[0].Note) != "sealed" || got[0].Told != told {
				t.Errorf("noted %+v", got)
			}
			n := 0
			must(t, v.Quarantined(func(at projections.Ref, code string) error {
				if n++; at != q.At || code != projections.CodeOperator {
					t.Errorf("%v is in quarantine with code %s", at, code)
				}
				return nil
			}))
			if n != 1 {
				t.Errorf("%d are in quarantine", n)
			}
			checkFacts(t, v)
			hash = v.Hash()
		})
		return hash
	}
	noted(s, false)

	// The log tells of it.
	told := w.seal(events.Header{Type: events.TypeQuarantined, Agent: q.By}, nil, nil)
	told.Payload = q.Event().Encode()
	w.frame(told)
	w.frame(w.content(events.Header{Namespace: team, Agent: "ada"}, events.Content{Text: "and on it goes"}))
	// Who sends it again does not stop the shard again.
	w.frame(w.content(events.Header{Namespace: team, Agent: "eve"}, skull))
	results := fold(t, w.keys, s, w.log, 1)
	if last := results[len(results)-1]; last.Outcome != projections.OutcomeConflict || last.Position.Seq != q.At.Seq || last.Position.Index != q.At.Index {
		t.Errorf("sent again it is %+v", last)
	}
	want := noted(s, true)

	mend() // a newer program can fold it
	again := openState(t, t.TempDir())
	defer again.Close()
	for _, m := range w.log {
		if f, err := events.DecodeFrame(m); err != nil {
			t.Fatal(err)
		} else if q, ok := events.QuarantinedOf(&f); ok {
			again.Quarantine(projections.QuarantineOf(q))
		}
	}
	fold(t, w.keys, again, w.log, 3)
	if got := noted(again, true); got != want {
		t.Errorf("a rebuild comes to %s, the state was %s", got, want)
	}
	// A rebuild beside a state does not need the log for that.
	sibling, err := s.Sibling()
	must(t, err)
	fold(t, w.keys, sibling, w.log, 2)
	if got := noted(sibling, true); got != want {
		t.Errorf("a rebuild beside it comes to %s, the state was %s", got, want)
	}
	must(t, sibling.Discard())

	// One that did not know of it has another state, and stops where the log tells.
	other := openState(t, t.TempDir())
	defer other.Close()
	fold(t, w.keys, other, w.log[:6], 1)
	r, _ := rangeOf(t, deriver(t, w.keys, other), other.Cursor(), w.log[6:])
	missed, poison := (*projections.MissedError)(nil), (*projections.PoisonError)(nil)
	if _, err := other.ApplyLocal(r); !errors.As(err, &missed) || missed.At != q.At || errors.As(err, &poison) {
		t.Errorf("a state that folded the event like any other: %v", err)
	}
}
