package cluster

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// sign says how the process that listens at an address may well be a node which does not
// answer calls: its certificate has expired, say, or it stands still. nil: it is not
// there, as far as can be told. A connection that was open before says nothing, so that a
// new one is made.
func (c *Cluster) sign(ctx context.Context, to rpc.Target) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout/2)
	defer cancel()
	conn, err := c.opt.Port.Dial(ctx, to.Addr, to.Node, Service)
	switch {
	case err == nil:
		_ = conn.Close()
		return context.DeadlineExceeded // it answers no call
	case errors.Is(err, peer.ErrListens):
		return err
	}
	return nil
}

// seemsToRun refuses to remove a node that does not answer, and has not ended either.
// leads, if not "", is a group that it leads: nothing takes it out of that.
func seemsToRun(to rpc.Target, sign error, leads string) error {
	why, kind := explain(sign)
	hint := "stop it, and ask again"
	if kind == KindCertificates {
		hint = fmt.Sprintf("renew its certificate, which it takes while it runs (memctl cluster certs --out DIR %s), or stop it, and ask again", idOf(to.Node))
	}
	message := fmt.Sprintf("the node %s has not ended: who listens at %s %s", to.Node, to.Addr, why)
	if leads != "" {
		message += "; it leads the group " + leads + ", and cannot be taken out of it"
	} else {
		hint += "; --force removes it all the same, and it runs on until it hears of it"
	}
	return memory.Errorf(memory.CodeConflict, "%s", message).WithHint("%s", hint)
}
