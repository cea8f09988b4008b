package raftfsm

import (
	"errors"
	"testing"
)

// The leadership goes to the replica that is named, and to none that has no vote.
func TestLeadershipGoesToTheOneThatIsNamed(t *testing.T) {
	c := openCluster(t, 3)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	if err := (Candidacy{c.leader(t).group}).TransferTo(ctx, "n9"); !errors.Is(err, ErrNoPeer) {
		t.Errorf("to nobody: %v", err)
	}
	for _, i := range []int{2, 1, 0} {
		for from := c.leader(t); from != c.shards[i]; from = c.leader(t) {
			if err := (Candidacy{from.group}).TransferTo(ctx, replicaID(i)); err != nil {
				t.Log(err) // too slow a machine; it may be tried again
				continue
			}
			if (Candidacy{from.group}).Leads() || !(Candidacy{c.shards[i].group}).Leads() {
				t.Logf("%s was not elected yet", replicaID(i))
			}
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
		}
	}
}
