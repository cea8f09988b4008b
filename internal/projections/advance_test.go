package projections_test

import (
	"errors"
	"fmt"
	"testing"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/projections"
)

// advance is a state under commands, with a log of which every third frame is void.
type advance struct {
	*world
	s     *projections.State
	d     *derive.Deriver
	index uint64
}

func newAdvance(t *testing.T, frames int) *advance {
	w := newWorld(t, 1)
	w.frame(w.created("team", builtinSpace))
	for i := range frames {
		if i%3 == 2 {
			w.message(w.foreign(w.began()))
			continue
		}
		w.frame(w.began())
	}
	s := openState(t, t.TempDir())
	t.Cleanup(func() { must(t, s.Close()) })
	return &advance{world: w, s: s, d: deriver(t, w.keys, s)}
}

// between makes the range over the log's frames from+1 to `to`.
func (a *advance) between(from, to int) *projections.Range {
	a.t.Helper()
	c := a.at(from)
	r, _ := rangeOf(a.t, a.d, c, a.log[from:to])
	r.Applied = projections.Mark{}
	return r
}

// at is the cursor after a sequence.
func (a *advance) at(seq int) projections.Cursor {
	a.t.Helper()
	var c projections.Cursor
	for _, m := range a.log[:seq] {
		if _, _, err := c.Follow(m); err != nil {
			a.t.Fatal(err)
		}
	}
	return c
}

func (a *advance) propose(r *projections.Range) (projections.RangeResult, error) {
	a.t.Helper()
	a.index++
	res, err := a.s.Apply([]projections.Command{{Index: a.index, Term: 1, Data: r.Encode()}})
	if err != nil {
		a.index--
		return projections.RangeResult{}, err
	}
	return res[0].(projections.RangeResult), nil
}

func (a *advance) want(r *projections.Range, answer projections.Answer, seq uint64) {
	a.t.Helper()
	res, err := a.propose(r)
	must(a.t, err)
	if res.Answer != answer || res.Cursor.Seq != seq || a.s.Cursor().Seq != seq || res.Cursor.Chain != a.at(int(seq)).Chain {
		a.t.Fatalf("range %d..%d: %s at %d, want %s at %d", r.Previous+1, r.End(), res.Answer, res.Cursor.Seq, answer, seq)
	}
}

// A range that was known in part was dropped as a whole, and its proposer told
// that all was well: the frames that were new stayed out of the state for ever.
func TestPartlyKnownRangeAppliesItsRest(t *testing.T) {
	for from := range 8 {
		for to := from + 1; to <= 9; to++ {
			a := newAdvance(t, 8)
			a.want(a.between(0, 7), projections.AnswerApplied, 7)
			switch {
			case to <= 7:
				a.want(a.between(from, to), projections.AnswerBehind, 7)
			default:
				a.want(a.between(from, to), projections.AnswerApplied, uint64(to))
			}
			checkAgainstReplay(t, a)
		}
	}
}

func checkAgainstReplay(t *testing.T, a *advance) {
	t.Helper()
	other := openState(t, t.TempDir())
	fold(t, a.keys, other, a.log[:a.s.Cursor().Seq], 2)
	got, want := a.s.Cursor(), other.Cursor()
	if got.Chain != want.Chain || got.Events != want.Events || got.Term != want.Term || got.Round != want.Round {
		t.Errorf("the state stands at %+v, a replay at %+v", got, want)
	}
	must(t, other.Close())
}

// A range that began behind a hole got the same answer as one that was known:
// nobody noticed, and the replica stood still for ever.
func TestRangeAheadOfTheState(t *testing.T) {
	a := newAdvance(t, 8)
	a.want(a.between(0, 3), projections.AnswerApplied, 3)
	before := dump(t, a.s)
	a.want(a.between(4, 6), projections.AnswerAhead, 3)
	if d := dump(t, a.s); d != before {
		t.Error("a range from ahead changed rows: " + firstDifference(d, before))
	}
	a.want(a.between(3, 4), projections.AnswerApplied, 4)
	a.want(a.between(4, 6), projections.AnswerApplied, 6)
}

// A range of another history at the right sequence moved the cursor: its frames
// were taken for void ones.
func TestRangeOfAnotherHistory(t *testing.T) {
	for _, known := range []int{3, 4, 5, 6} {
		t.Run(fmt.Sprint(known), func(t *testing.T) {
			a := newAdvance(t, 8)
			a.want(a.between(0, known), projections.AnswerApplied, uint64(known))
			before := dump(t, a.s)
			another := a.between(3, 8)
			another.Chain[7] ^= 1
			a.want(another, projections.AnswerOtherChain, uint64(known))
			if known > 3 { // the same beginning, then another frame
				forked := a.between(3, 8)
				forked.Frames[0].Bytes = append([]byte("x"), forked.Frames[0].Bytes...)
				a.want(forked, projections.AnswerOtherChain, uint64(known))
			}
			if d := dump(t, a.s); d != before {
				t.Error("a range of another history changed rows: " + firstDifference(d, before))
			}
		})
	}
}

// A replica that had missed a frame followed its leader for ever, one frame
// short, and answered reads as if it had everything.
func TestReplicaThatDivergedHaltsAlone(t *testing.T) {
	for seq := range 8 {
		sound, short, other := newAdvance(t, 8), newAdvance(t, 8), newAdvance(t, 8)
		next := sound.between(7, 8)
		c := sound.at(seq)
		next.Applied = c.Mark()
		for _, a := range []*advance{sound, other} {
			a.want(a.between(0, 7), projections.AnswerApplied, 7)
		}
		sound.want(next, projections.AnswerApplied, 8)
		var d *projections.DivergedError
		if seq > 0 {
			short.want(short.between(0, seq-1), projections.AnswerApplied, uint64(seq-1))
			if _, err := short.propose(next); !errors.As(err, &d) || d.Here.Seq != uint64(seq-1) || d.Leader != next.Applied {
				t.Errorf("one that has less than the leader at %d: %v", seq, err)
			}
		}
		next.Applied.Chain[0] ^= 1
		before := dump(t, other.s)
		if _, err := other.propose(next); !errors.As(err, &d) || d.Here != c.Mark() {
			t.Errorf("one with another history at %d: %v", seq, err)
		}
		if after := dump(t, other.s); after != before {
			t.Error("a replica that diverged changed: " + firstDifference(after, before))
		}
	}
}

// A command of another version of Mneme was folded as if it had been derived here.
func TestRangeOfAnotherPipeline(t *testing.T) {
	a := newAdvance(t, 4)
	r := a.between(0, 2)
	r.Pipeline++
	var p *projections.PipelineError
	var at *projections.CommandError
	if _, err := a.propose(r); !errors.As(err, &p) || !errors.As(err, &at) || at.Index != 1 {
		t.Errorf("%v", err)
	}
	if _, err := a.s.ApplyLocal(r); !errors.As(err, &p) {
		t.Errorf("locally: %v", err)
	}
	a.want(a.between(0, 2), projections.AnswerApplied, 2)
	a.want(r, projections.AnswerBehind, 2) // what is known needs no deriving
}

// The round of a term is that of its last leader.began.
func TestCursorFollowsRounds(t *testing.T) {
	w := newWorld(t, 1)
	began := func(term uint64, round uint32) {
		f := w.header()
		f.Term = term
		w.term = term
		e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: 1, Event: events.ID{1}}, Payload: events.Began{Term: term, Round: round}.Encode()}
		f.Events = [][]byte{e.Encode()}
		w.message(f.Encode())
	}
	s := openState(t, t.TempDir())
	for _, b := range []events.Began{{Term: 4}, {Term: 4, Round: 3}, {Term: 9}, {Term: 9, Round: 1}} {
		began(b.Term, b.Round)
		fold(t, w.keys, s, w.log, 1)
		if c := s.Cursor(); c.Term != b.Term || c.Round != b.Round {
			t.Errorf("after %+v the cursor says %d.%d", b, c.Term, c.Round)
		}
	}
	must(t, s.Close())
}
