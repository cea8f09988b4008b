package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// ErrOtherToken: this node was given another operator token than the cluster has.
// Options.TakeToken says so.
var ErrOtherToken = errors.New("the operator token is not the one that the cluster has")

// held is the operator's token as a node has it.
type held struct {
	Token string `json:"token,omitempty"`
}

// token tells another member the operator's token.
func (c *Cluster) token(_ context.Context, from peer.Identity, _ struct{}) (held, error) {
	known := false
	facts := c.Facts()
	for _, m := range facts.Members {
		known = known || m.Name == from.Node
	}
	switch {
	case facts.Cluster == "" || from.Cluster != facts.Cluster || !known || c.Removed(from.Node):
		return held{}, memory.Errorf(memory.CodeForbidden, "the node %s is no member", from.Node)
	case c.opt.Token == nil:
		return held{}, nil
	}
	token, err := c.opt.Token()
	return held{token}, err
}

// agreeOnToken compares this node's operator token with those of the members that answer,
// all at once. A node that has lost its own takes theirs.
func (c *Cluster) agreeOnToken(ctx context.Context, silent []rpc.Target) error {
	ctx, cancel := context.WithTimeout(ctx, c.opt.News)
	defer cancel()
	quiet := map[string]bool{}
	for _, t := range silent {
		quiet[t.Node] = true
	}
	targets := c.others()
	answers := make([]held, len(targets))
	var asking sync.WaitGroup
	for i, to := range targets {
		if quiet[to.Node] {
			continue
		}
		asking.Go(func() {
			if err := c.client.Call(ctx, to, "token", struct{}{}, &answers[i]); err != nil {
				c.log.Debug("a member did not tell the operator token", "node", to.Node, "err", err)
			}
		})
	}
	asking.Wait()
	for i, a := range answers {
		if a.Token == "" {
			continue
		}
		if err := c.takeToken(a.Token, idOf(targets[i].Node)); err != nil {
			return err
		}
	}
	return nil
}

// takeToken has this node take the operator token that another one told.
func (c *Cluster) takeToken(token, from string) error {
	if c.opt.TakeToken == nil {
		return nil
	}
	err := c.opt.TakeToken(token)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOtherToken):
		return &Error{Kind: KindUsage, Message: fmt.Sprintf("%v; the node %s has another one", err, from), Err: err,
			Hint: "start this node without a token of its own (no MNEME_AUTH_TOKEN, no keys/operator.token) and it takes the cluster's; to change the cluster's token stop all nodes, and start them with the new one"}
	}
	return &Error{Kind: KindStorage, Message: "the cluster's operator token could not be stored: " + err.Error(), Err: err}
}
