package cluster

import (
	"context"
	"fmt"

	"mneme/internal/peer/rpc"
)

// isHere refuses a new address of this node that reaches another one, before anybody is
// told of it. One at which nobody answers may be right: the others may reach it where this
// node does not. Errors: KindAddress.
func (c Addresses) isHere(ctx context.Context, self Member) error {
	a := c.look(ctx, []rpc.Target{{Addr: self.Peer}}, c.opt.News)[0]
	switch {
	case a.err != nil:
		c.log.Warn("this node does not reach itself at its peer address; the others have to", "address", self.Peer, "err", a.err)
	case a.hello.Self.Name != self.Name:
		return notHere(self.Peer, a.hello.Self)
	}
	return nil
}

// notHere says that an address of this node reaches another one.
func notHere(addr string, other Member) *Error {
	return &Error{Kind: KindAddress, Message: fmt.Sprintf("the peer address of this node, %s, reaches the node %s", addr, other.ID),
		Hint: "give --peer-advertise, or --peer-addr where that is not set, an address of this node"}
}
