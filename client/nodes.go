package client

import (
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"mneme/memory"
)

// nodes are the addresses of the nodes that a client may ask, in the order they were
// given. It goes on with the next one when one does not take a call, and stays there.
type nodes struct {
	list []*url.URL
	at   atomic.Int64 // counts the moves; the node is at % len(list)
}

// parseAddrs reads addresses that are separated by commas.
func parseAddrs(addrs string) (*nodes, error) {
	n := &nodes{}
	for _, addr := range strings.Split(addrs, ",") {
		if strings.TrimSpace(addr) == "" && strings.Contains(addrs, ",") {
			return nil, memory.Errorf(memory.CodeInvalid, "%q has an empty address", addrs).
				WithHint("several addresses look like %s,http://10.0.0.7:8787", DefaultAddr)
		}
		base, err := parseAddr(addr)
		if err != nil {
			return nil, err
		}
		if base.Scheme == socketScheme && strings.Contains(addrs, ",") {
			return nil, memory.Errorf(memory.CodeInvalid, "%q has a socket among several addresses", addrs).WithHint("a socket is one node's: name it alone")
		}
		n.list = append(n.list, base)
	}
	return n, nil
}

// now is the node to ask, and its turn.
func (n *nodes) now() (*url.URL, int64) {
	turn := n.at.Load()
	return n.list[turn%int64(len(n.list))], turn
}

// leave goes on with the next node, unless another call has done so since the turn.
func (n *nodes) leave(turn int64) {
	if len(n.list) > 1 {
		n.at.CompareAndSwap(turn, turn+1)
	}
}

// try is how one attempt of a call ended that brought nothing.
type try struct {
	err  error
	seen bool // the node may have seen the call
	own  bool // err is what a memnode answered
	// hinted says that the hint is about this node's address or certificate, so that it
	// says more than that none could be reached.
	hinted bool
}

// goesOn reports whether the call may be sent to another node after the try, and makes
// sense there.
func (t *try) goesOn(rc *call) bool {
	code := memory.CodeOf(t.err)
	switch {
	case !t.seen:
		return true
	case !rc.write:
		return code == memory.CodeUnavailable || code == memory.CodeStalePosition
	case t.own:
		return code == memory.CodeUnavailable && (rc.repeat || rc.sure)
	}
	return false
}

// unreached reports whether the call got to none of the nodes, for want of a connection.
func unreached(tries []try) bool {
	return !slices.ContainsFunc(tries, func(t try) bool { return t.seen || t.hinted })
}

// failed is the error of a call that no node took: what the last one said that could be
// reached, or that none could.
func failed(tries []try) error {
	var said []string
	for i := len(tries) - 1; i >= 0; i-- {
		if tries[i].seen {
			return tries[i].err
		}
		said = append([]string{tries[i].err.Error()}, said...)
	}
	if len(tries) == 1 {
		return tries[0].err
	}
	last, hint := tries[len(tries)-1].err, "is any of these nodes running? start one, or name other addresses"
	for _, t := range tries {
		if t.hinted {
			last, hint = t.err, memory.AsError(t.err).Hint
		}
	}
	return memory.Errorf(memory.CodeOf(last), "%s", strings.Join(said, "; ")).WithHint("%s", hint).WithCause(last)
}
