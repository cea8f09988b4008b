package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/cluster"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/memory"
)

// wantedCopies is how many copies the log of so many voters is to have, so that it bears as
// many losses as they do. Of four it keeps what it has: they bear one loss with three
// copies as with four, and nothing is copied for a node that is replaced. Two and one are
// a cluster that has lost nodes, or was founded so, which the log does not follow: fewer
// copies bear no more.
func wantedCopies(voters, have int) int {
	switch {
	case voters >= 5:
		return 5
	case voters == 4 && have == 5, voters < 3 && have > 0:
		return have
	}
	return 3
}

// wanted is how many copies the log is to have that has so many now.
func (c replication) wanted(have int) int {
	if c.peers.server() == "" { // its servers are somebody else's, or it is this node's alone
		return have
	}
	return wantedCopies(len(c.voters()), have)
}

// replication is what the leader of a shard does so that its log has as many copies as the
// nodes that have a vote call for. What one leader began the servers carry to its end; what
// it did not come to do, the next one does.
type replication struct{ *served }

const (
	// copiesEvery is how often a leader looks whether voters came or went. It asks nobody.
	copiesEvery = time.Second
	// copiesAnew is after how many looks it asks the log again, though nothing has changed.
	copiesAnew = 60
)

// Work implements replica.Worker.
func (c replication) Work(ctx context.Context, _ *ingest.Writer) {
	var have, voters int // have: 0 is not known
	var at events.StreamRef
	var said string
	for looks := 1; sleep(ctx, copiesEvery) == nil; looks++ {
		before := voters
		if voters = len(c.voters()); voters != before && voters%2 == 0 {
			c.log.Warn(evenVotes(voters), "hint", evenVotesHint(voters))
		}
		if ref := c.stream.Ref(); ref != at || looks%copiesAnew == 0 {
			at, have = ref, 0
		}
		if have > 0 && wantedCopies(voters, have) == have {
			continue
		}
		now, changed, err := c.look(ctx, voters)
		have = now
		switch {
		case ctx.Err() != nil:
			return
		case changed:
			c.log.Info("the log gets other copies, for as many nodes as there are now", "copies", wantedCopies(voters, now), "before", now, "nodes", voters)
			have, said = 0, ""
		case err != nil && err.Error() != said:
			said = err.Error()
			c.log.Info("the log has not the copies that it should have; this is tried again", "copies", now, "want", wantedCopies(voters, now), "why", err)
		}
	}
}

// look has the servers change how many copies the log has, if that is not what it should
// be and the nodes that are to have them are there. have is 0 if it is not known.
func (c replication) look(ctx context.Context, voters int) (have int, changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*statusWait)
	defer cancel()
	if have, err = c.stream.Copies(ctx); err != nil {
		return 0, false, err
	}
	want := wantedCopies(voters, have)
	if want == have {
		return have, false, nil
	}
	if found := c.replica.Diverged(); found != nil {
		return have, false, found
	}
	there, whole := c.copiesThere(ctx)
	switch {
	case want > have && there < want:
		return have, false, fmt.Errorf("%d of %d nodes with a vote answer", there, voters)
	case want < have && len(c.peers.cluster.Facts().Members) > voters:
		return have, false, errors.New("nodes are joining")
	case want < have && whole < want:
		return have, false, fmt.Errorf("%d nodes have a whole copy", whole)
	}
	// Another node may lead since: only one that leads decides.
	if _, err := c.replica.Group().LinearizableIndex(ctx); err != nil {
		return have, false, err
	}
	err = c.stream.SetCopies(ctx, want)
	assert.Sometimes(err == nil && want > have, "the log gets more copies", nil)
	assert.Sometimes(err == nil && want < have, "the log gets fewer copies", nil)
	return have, err == nil, err
}

// voters are the names of the nodes that have a vote in the shard's group.
func (c replication) voters() (names []string) {
	replicas, _ := c.candidacy().Group.Members()
	for _, r := range replicas {
		if r.Voter {
			names = append(names, r.ID)
		}
	}
	return names
}

// copiesThere counts the voters that answer, and those of them whose servers say that
// their copy of the log is whole.
func (c replication) copiesThere(ctx context.Context) (answer, whole int) {
	voters := c.voters()
	members := slices.DeleteFunc(c.peers.cluster.Facts().Members, func(m cluster.Member) bool { return !slices.Contains(voters, m.Name) })
	for _, r := range c.n.operator.reports(ctx, members) {
		if r.Node.ID == "" {
			continue
		}
		answer++
		if log := r.of(c.id).Replica.Log; log.Current && log.Damage == "" {
			whole++
		}
	}
	return answer, whole
}

// newCopies is how many copies a stream gets that is made now. The first one of a cluster
// has a copy at each of the nodes that found it; one that a repair makes, at those that are
// there, so that it does not wait for a node that is away.
func (c replication) newCopies(ctx context.Context) int {
	if c.state.Cursor().Seq == 0 || (streams{c.shard}).first() {
		return c.peers.firstCopies()
	}
	if len(c.voters()) == 2 { // it is a cluster of two, or has become one
		return 2
	}
	there, _ := c.copiesThere(ctx)
	return wantedCopies(there, 0)
}

// logCopies says how many copies the shard's log has and is to have, as the nodes that
// answered before ctx ends say; nil where its servers are not the nodes'.
func (c replication) logCopies(ctx context.Context, reports []nodeReport) *memory.LogCopies {
	if c.peers.server() == "" {
		return nil
	}
	have, err := c.stream.Copies(ctx)
	if err != nil {
		have = 0
	}
	out := &memory.LogCopies{Want: wantedCopies(len(c.voters()), have)}
	for _, r := range reports {
		if log := r.of(c.id).Replica.Log; log.Current && log.Damage == "" {
			out.Have++
		}
	}
	return out
}

// checkedAt says since when the files of the copies of a shard's log are known to be sound, as
// their nodes say, and which are not.
func checkedAt(reports []nodeReport, shard uint16) string {
	var damaged, unchecked []string
	var oldest time.Time
	for _, r := range reports {
		switch log := r.of(shard).Replica.Log; {
		case r.Node.ID == "" || log.Last == 0:
		case log.Damage != "":
			damaged = append(damaged, r.Node.ID)
		case log.CheckedAt.IsZero():
			unchecked = append(unchecked, r.Node.ID)
		case oldest.IsZero() || log.CheckedAt.Before(oldest):
			oldest = log.CheckedAt
		}
	}
	var said []string
	if !oldest.IsZero() {
		said = append(said, "their files were read and are sound, "+oldest.Format(time.RFC3339)+" or later")
	}
	if unchecked != nil {
		said = append(said, "the files of "+strings.Join(unchecked, " and ")+" were not read yet")
	}
	if damaged != nil {
		said = append(said, "files of "+strings.Join(damaged, " and ")+" are damaged")
	}
	return strings.Join(said, "; ")
}

// checkOwnCopy says how the files of this node's own copy of the log are.
func (d *doctor) checkOwnCopy() []memory.Check {
	st := d.n.upkeep.copy.Status()
	if st == nil {
		return nil
	}
	c := memory.Check{Name: "own copy of the log", State: "ok", Detail: "its files were not read since the start; that begins by itself"}
	switch {
	case st.Damage != "":
		c.State, c.Detail, c.Hint = "fail", "damaged: "+st.Damage, copyHint
		if st.Waits != "" {
			c.Detail += "; it is not taken from the others yet: " + st.Waits
		}
	case !st.CheckedAt.IsZero():
		c.Detail = "its files were read and are sound, " + st.CheckedAt.Format(time.RFC3339)
	}
	return []memory.Check{c}
}

// evenVotes says what an even number of voters is worth.
func evenVotes(n int) string {
	if n == 2 {
		return "2 nodes have a vote: when either of them is gone nothing is written"
	}
	return fmt.Sprintf("%d nodes have a vote: an even number bears no more losses than one node less", n)
}

// evenVotesHint says what helps. Of two nodes neither can be removed: the other one is no
// majority of both.
func evenVotesHint(n int) string {
	if n == 2 {
		return "let a third node join (memctl cluster join --help); of two nodes neither can be removed"
	}
	return "let another node join, or remove one: memctl cluster remove NODE"
}

// checkCopies says whether the log has the copies that it should have, and whether there
// are as many nodes as bear what they cost.
func (d *doctor) checkCopies(ctx context.Context) (out []memory.Check) {
	p := d.n.peers
	if p == nil {
		return nil
	}
	if n := len(replication{d.n.served[shard0]}.voters()); n > 0 && n%2 == 0 {
		out = append(out, memory.Check{Name: "votes", State: "warn", Detail: evenVotes(n), Hint: evenVotesHint(n)})
	}
	if p.server() == "" {
		return out
	}
	reports := d.n.operator.reports(ctx, p.cluster.Facts().Members)
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	for _, s := range d.n.served {
		c := replication{s}.logCopies(ctx, reports)
		check := memory.Check{Name: s.named("copies of the log"), State: "ok", Detail: fmt.Sprintf("%d have every frame; %s", c.Have, checkedAt(reports, s.id))}
		if c.Have < c.Want {
			check.State, check.Detail = "warn", fmt.Sprintf("%d of %d are whole; %s", c.Have, c.Want, checkedAt(reports, s.id))
			check.Hint = "nodes that are away get theirs when they are back, new ones by themselves, and damaged ones from the others: memctl cluster status shows which have none"
		}
		out = append(out, check)
	}
	return out
}
