package raftfsm

import (
	"context"

	"github.com/hashicorp/raft"
)

// Candidacy is what an owner does with a group that should rather be led elsewhere.
type Candidacy struct{ Group *Group }

// Leads reports whether this replica was elected, whether or not its term has begun.
func (c Candidacy) Leads() bool { return c.Group.raft.State() == raft.Leader }

// TransferTo hands over to the voter of that name. Errors as of TransferLeadership.
func (c Candidacy) TransferTo(ctx context.Context, id string) error {
	g := c.Group
	return g.await(ctx, "transfer leadership", func() error {
		for _, s := range g.configuration().Servers {
			if s.ID == raft.ServerID(id) && s.Suffrage == raft.Voter {
				return g.raft.LeadershipTransferToServer(s.ID, s.Address).Error()
			}
		}
		return ErrNoPeer
	})
}
