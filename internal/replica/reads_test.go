package replica

import (
	"errors"
	"testing"

	"mneme/internal/raftfsm"
)

// TestReadOfAnotherTermIsNotLinearizable: the writer of a term that Raft has left
// does not know what its successor wrote.
func TestReadOfAnotherTermIsNotLinearizable(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	r.lead()
	r.namespace("team")
	r.stage.term.Add(1) // another one has led in between; the news is on its way
	if err := r.Linear(t.Context()); !errors.Is(err, raftfsm.ErrNotLeader) {
		t.Errorf("%v", err)
	}
}

// TestRebuiltStateStandsWhereTheOneBeforeDid: it knew neither its Raft index nor
// the stream that it is fed from; and a log that leads elsewhere became the state.
func TestRebuiltStateStandsWhereTheOneBeforeDid(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	r.lead()
	r.namespace("team")
	r.mustCapture("first")
	want := r.State().Cursor()
	if _, err := r.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := r.State().Cursor(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.stream.Replace(want.Seq, []byte("which nobody wrote"))
	if _, err := r.Rebuild(t.Context(), nil); err == nil {
		t.Error("a state was built from another log")
	}
	if got := r.State().Cursor(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
