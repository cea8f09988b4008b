package projections_test

import (
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
)

// TestEpochIsReservedOnce: two leaders, one of them deposed, could give the same
// epoch to two streams; and an epoch that was raised beside Raft was given out again
// after a failover.
func TestEpochIsReservedOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.frame(w.created("team", builtinSpace))
	dir := t.TempDir()
	s := openState(t, dir)
	fold(t, w.keys, s, w.log, 1)
	index := s.Cursor().RaftIndex
	reserve := func(r *projections.Reserve) events.StreamRef {
		t.Helper()
		index++
		out, err := s.Apply([]projections.Command{{Index: index, Term: 1, Data: r.Encode()}})
		if err != nil {
			t.Fatal(err)
		}
		return out[0].(projections.ReserveResult).Next
	}
	cur := s.Cursor()
	first, second := projections.NewReserve(&cur, 0, "first"), projections.NewReserve(&cur, 0, "second")
	want := events.StreamRef{Epoch: 1, Identity: "first"}
	for name, r := range map[string]*projections.Reserve{"another's": second, "again": first} {
		reserve(first)
		if got := reserve(r); got != want {
			t.Errorf("%s: the next stream is %v", name, got)
		}
	}
	after := s.Cursor()
	after.RaftIndex, after.RaftTerm, after.Next = cur.RaftIndex, cur.RaftTerm, events.StreamRef{}
	if after != cur {
		t.Errorf("a reservation made %+v of %+v", after, cur)
	}
	// A stream that was given up is replaced under an epoch of its own; one that is
	// left over from somewhere keeps its name.
	cur = s.Cursor()
	if got := reserve(projections.NewReserve(&cur, 4, "third")); got != (events.StreamRef{Epoch: 5, Identity: "third"}) {
		t.Errorf("the next stream is %v", got)
	}
	cur = s.Cursor()
	cur.Chain[0]++
	if _, err := s.Apply([]projections.Command{{Index: index + 1, Term: 1, Data: projections.NewReserve(&cur, 0, "fork").Encode()}}); err == nil {
		t.Error("a replica with another history took the command")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openState(t, dir)
	defer s.Close()
	if got := s.Cursor().Next; got.Epoch != 5 || got.Identity != "third" {
		t.Errorf("after a restart the next stream is %v", got)
	}
	// epoch.began ends the reservation, and the epochs that were passed over hold
	// nothing.
	w.epoch = 5
	began := w.seal(events.Header{Type: events.TypeEpochBegan}, nil, nil)
	began.Payload = []byte("third")
	w.frame(began)
	fold(t, w.keys, s, w.log, 1)
	cur = s.Cursor()
	if cur.Stream() != (events.StreamRef{Epoch: 5, Identity: "third"}) || !cur.Next.IsZero() {
		t.Errorf("%+v", cur)
	}
	v := s.View()
	defer v.Close()
	if got := v.Epochs(); len(got) != 1 || got[0] != (projections.EpochStart{Epoch: 5, Seq: 2}) {
		t.Errorf("epochs are %v", got)
	}
}
