package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mneme/internal/raftfsm"
	"mneme/memory"
)

// The removal of one of two nodes was begun though the other one cannot be elected without
// it: the name was removed for ever, and the group had no leader for ever.
func TestRemovalNeedsAMajorityOfThosePresent(t *testing.T) {
	for _, c := range []struct {
		voters, answer string
		allowed        bool
		hint           string
	}{
		{"a b", "b", false, "a third node"},
		{"a b c", "b c", true, ""},
		{"a b c", "b", false, "c"},
		{"a b c d", "b c d", true, ""},
		{"a b c d", "b c", false, "d"}, // three of four elect
		{"a b c d e", "b c d", true, ""},
		{"a b c d e", "b c", false, "d, e"},
		{"b c d", "b", true, ""}, // it has no vote
	} {
		var members []raftfsm.Member
		for _, name := range strings.Fields(c.voters) {
			members = append(members, raftfsm.Member{ID: name, Voter: true})
		}
		answers := map[string]bool{}
		for _, name := range strings.Fields(c.answer) {
			answers[name] = true
		}
		err := MajorityWithout("a", members, answers)
		if (err == nil) != c.allowed || err != nil && !strings.Contains(memory.AsError(err).Hint, c.hint) {
			t.Errorf("of %s answer %s: %v", c.voters, c.answer, err)
		}
	}
}

// stale is a group's replica that believes to lead, with the members of then.
type stale struct {
	Group
	members []raftfsm.Member
	now     error
}

func (s stale) Members() ([]raftfsm.Member, uint64) { return s.members, 1 }

func (s stale) LinearizableIndex(context.Context) (uint64, error) { return 1, s.now }

// A node that came back with nothing ended, refused by a leader of the past, which did not
// know that the former name was removed. (A run of the simulation found it.)
func TestALeaderOfThePastRefusesNobody(t *testing.T) {
	group := stale{members: []raftfsm.Member{{ID: "n2-1", Voter: true}}, now: raftfsm.ErrNotLeader}
	nobody := func(string) bool { return false }
	_, err := NewAdmission(group, nobody).Place(t.Context(), "0", "n2-2", "n2-2")
	if !errors.Is(err, raftfsm.ErrNotLeader) || memory.CodeOf(err) == memory.CodeConflict {
		t.Errorf("%v", err)
	}
	group.now = nil
	if _, err = NewAdmission(group, nobody).Place(t.Context(), "0", "n2-2", "n2-2"); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("the leader: %v", err)
	}
}
