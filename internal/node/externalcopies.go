package node

import (
	"context"
	"fmt"
	"strings"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/memory"
)

// checkServers says of an external NATS which servers have copies of the log and take no
// part, as the leader of each stream sees them. Of embedded servers checkCopies does.
func (d *doctor) checkServers(ctx context.Context) (out []memory.Check) {
	servers, ok := d.n.nats.(*externalNATS)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	for _, s := range d.n.served {
		copies, there, err := servers.Copies(ctx, events.StreamName(s.id, s.stream.Ref().Epoch))
		c := memory.Check{Name: s.named("copies of the log"), State: "warn"}
		switch {
		case err != nil:
			c.Detail, c.Hint = fmt.Sprintf("the servers of the log do not say how many copies it has: %v", err), "start those that are down: most of the servers that have a copy have to be there"
		case !there:
			c.Detail, c.Hint = "the servers have no log", "memctl log verify"
		default:
			c = judgeCopies(c.Name, copies)
		}
		out = append(out, c)
	}
	return out
}

// judgeCopies says which copies of a log take no part.
func judgeCopies(name string, copies []eventlog.Copy) memory.Check {
	var gone, behind []string
	for _, c := range copies {
		switch {
		case c.Gone:
			gone = append(gone, c.Server)
		case c.Behind:
			behind = append(behind, c.Server)
		}
	}
	whole := len(copies) - len(gone) - len(behind)
	c := memory.Check{Name: name, State: "ok", Detail: fmt.Sprintf("%d, each whole", whole)}
	if whole == len(copies) {
		return c
	}
	c.State, c.Detail = "warn", fmt.Sprintf("%d of %d take part", whole, len(copies))
	if gone != nil {
		c.Detail += "; not heard of: " + strings.Join(gone, ", ")
		c.Hint = "start the server " + strings.Join(gone, " and ") + "; writes go on as long as most copies take part"
	}
	if behind != nil {
		c.Detail += "; catching up: " + strings.Join(behind, ", ")
	}
	return c
}
