package cluster

import (
	"strings"
	"testing"

	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Drain and transfer did not know which of several n3 was meant, and left the one that
// votes out of what they said.
func TestNodeThatVotesIsMeantBeforeWhatWasRefused(t *testing.T) {
	member := func(name string) Member { return Member{Name: name, ID: idOf(name), Peer: name + ":1"} }
	replica := func(name string) raftfsm.Member {
		return raftfsm.Member{ID: name, Addr: name + "@" + name + ":2", Voter: true}
	}
	members := []Member{member("n1-a"), member("n2-a"), member("n3-a"), member("n3-b"), member("n3-c"), member("n4-a"), member("n4-b"), member("n5-a"), member("n5-b")}
	groups := map[string][]raftfsm.Member{
		"0":    {replica("n1-a"), replica("n3-b"), replica("n5-a"), replica("n6-a")},
		"keys": {replica("n1-a"), replica("n3-b"), replica("n5-b"), replica("n6-a")},
	}
	for node, want := range map[string]string{
		"n1": "n1-a at n1-a:1", "n2": "n2-a at n2-a:1", "n3": "n3-b at n3-b:1", "n3-c": "n3-c at n3-c:1", "n5-a": "n5-a at n5-a:1",
		"n6": "n6-a at n6-a:2", // known by its groups alone
		"n4": "conflict: n4-a, n4-b", "n5": "conflict: n5-a, n5-b",
		"n9": "not_found: there are n1-a, n2-a, n3-a, n3-b, n3-c, n4-a, n4-b, n5-a, n5-b, n6-a", "": "invalid: missing",
	} {
		m, err := named(node, members, groups)
		if err == nil {
			if got := m.Name + " at " + m.Peer; got != want {
				t.Errorf("%q is %s, want %s", node, got, want)
			}
			continue
		}
		code, says, _ := strings.Cut(want, ": ")
		if e := memory.AsError(err); string(e.Code) != code || !strings.HasSuffix(e.Message, says) && !strings.Contains(e.Message, "is "+says) {
			t.Errorf("%q: %v (%s), want %s", node, err, e.Code, want)
		}
	}
}
