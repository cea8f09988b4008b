package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Capability says which partitions a reader may open: the team's of one
// namespace and, with an agent, that agent's own. It is made by
// Service.OpenCapability only; the zero value opens nothing.
type Capability struct {
	ns    events.ID
	name  string
	agent string
}

// Namespace returns the name of the namespace it was made for.
func (c Capability) Namespace() string { return c.name }

// Agent returns the agent whose own memories it opens; "" = none.
func (c Capability) Agent() string { return c.agent }

// sees reports whether what an agent did in a scope may be shown.
func (c Capability) sees(scope events.Scope, agent string) bool {
	switch scope {
	case events.ScopeTeam:
		return c.ns != zeroID
	case events.ScopeAgent:
		return c.agent != "" && agent == c.agent
	}
	return false
}

// openPart is a partition that a capability opens at a view.
type openPart struct {
	projections.Partition
	live projections.Live
}

// partitions lists what is there of the partitions that c opens, the team's first.
func (c Capability) partitions(v *projections.View) []openPart {
	if c.ns == zeroID {
		return nil
	}
	out := make([]openPart, 0, 2)
	add := func(scope events.Scope, agent string) {
		if p, ok := v.Partition(c.ns, scope, agent); ok {
			out = append(out, openPart{p, v.Live(p)})
		}
	}
	add(events.ScopeTeam, "")
	if c.agent != "" {
		add(events.ScopeAgent, c.agent)
	}
	return out
}

// OpenCapability makes the capability of an agent, or of the team with as "",
// in a namespace that must exist. Whether the caller may act as that agent was
// decided before. Errors: invalid, not_found.
func (s *Service) OpenCapability(v *projections.View, namespace, as string) (Capability, projections.NamespaceInfo, error) {
	if err := memory.CheckName("namespace", namespace); err != nil {
		return Capability{}, projections.NamespaceInfo{}, err
	}
	if as != "" {
		if err := memory.CheckName("agent", as); err != nil {
			return Capability{}, projections.NamespaceInfo{}, err
		}
	}
	info, ok, err := v.Namespace(namespace)
	if err != nil {
		return Capability{}, info, err
	}
	if !ok || info.Deleted {
		return Capability{}, info, memory.NoNamespace(namespace)
	}
	return Capability{ns: info.ID, name: info.Name, agent: as}, info, nil
}

// Freshness says how new a read must be.
type Freshness struct {
	AtLeast     string             // a position that must be reached; "" = none
	Consistency memory.Consistency // "" = local
	// Wait is how long to wait for AtLeast; 0 = DefaultWait. The context may
	// end it earlier.
	Wait time.Duration
}

// DefaultWait is how long a read waits for its position.
const DefaultWait = 5 * time.Second

// Authorize opens a reader of a namespace for an agent, or for the team with
// as "", once the node is as fresh as asked. Close it. Errors: invalid,
// not_found, stale_position, lost_position, unavailable, timeout.
func (s *Service) Authorize(ctx context.Context, namespace, as string, f Freshness) (*Reader, error) {
	target, err := s.await(ctx, f)
	if err != nil {
		return nil, err
	}
	r, err := s.openReader(namespace, as)
	if err != nil {
		return nil, failed("open "+clip(namespace), err)
	}
	if err := r.epochs.check(target, r.view.Position()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (s *Service) openReader(namespace, as string) (*Reader, error) {
	v := s.opt.State.View()
	r := &Reader{s: s, view: v}
	if err := r.open(namespace, as); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return r, nil
}

// await waits until the node is as fresh as f asks, and returns the position
// that the view must hold.
func (s *Service) await(ctx context.Context, f Freshness) (events.Position, error) {
	target, err := s.parsePosition(f.AtLeast)
	if err != nil {
		return target, err
	}
	switch f.Consistency {
	case "", memory.ConsistencyLocal:
	case memory.ConsistencyLinearizable:
		if s.opt.Linear == nil {
			return target, memory.Errorf(memory.CodeUnavailable, "linearizable reads are not supported by this node").
				WithHint("read with consistency=local and at_least=<the position of your write>")
		}
		if err := s.opt.Linear(ctx); err != nil {
			var typed *memory.Error
			if errors.As(err, &typed) {
				return target, err
			}
			return target, memory.Errorf(memory.CodeUnavailable, "the state could not be confirmed with the leader").WithCause(err)
		}
	default:
		return target, memory.Errorf(memory.CodeInvalid, "consistency %q is unknown", clip(string(f.Consistency))).
			WithHint("levels are local and linearizable")
	}
	if target.IsZero() {
		return target, nil
	}
	wait := f.Wait
	if wait <= 0 {
		wait = DefaultWait
	}
	return target, s.reach(ctx, target, wait)
}

// reach waits until the service stands at or behind target.
func (s *Service) reach(ctx context.Context, target events.Position, wait time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		at, moved, closed := s.watch.now()
		// Frames apply as a whole: the sequence decides.
		if at.Seq >= target.Seq {
			return nil
		}
		if closed {
			return errClosed()
		}
		select {
		case <-moved:
		case <-bound.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return failed("waiting for "+target.String(), ctx.Err())
			}
			return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", at.Position(), target).
				WithHint("try again, or ask another node")
		}
	}
}

// parsePosition reads a position that a caller gave; "" gives the zero one.
func (s *Service) parsePosition(text string) (events.Position, error) {
	if text == "" {
		return events.Position{}, nil
	}
	p, err := events.ParsePosition(text)
	if err != nil {
		return p, memory.Errorf(memory.CodeInvalid, "%q is not a position", clip(text)).
			WithHint("use a position as an answer gave it, such as p0.0.42.3").WithCause(err)
	}
	if p.Shard != s.opt.Shard {
		return p, memory.Errorf(memory.CodeInvalid, "position %s belongs to shard %d, this namespace lives on shard %d", p, p.Shard, s.opt.Shard)
	}
	return p, nil
}

// epochs are the first sequences of the log's epochs, by epoch.
type epochs []uint64

func readEpochs(v *projections.View) (epochs, error) {
	c := v.Cursor()
	out := make(epochs, 1, c.Epoch+1)
	out[0] = 1
	for e := uint32(1); e <= c.Epoch; e++ {
		start, ok, err := v.EpochStart(e)
		if err != nil {
			return nil, fmt.Errorf("epoch %d: %w", e, err)
		}
		if !ok {
			start = out[e-1] // an epoch that was passed over holds nothing
		}
		out = append(out, start)
	}
	return out, nil
}

// of returns the epoch in which a sequence lies.
func (e epochs) of(seq uint64) uint32 {
	for i := len(e) - 1; i > 0; i-- {
		if seq >= e[i] {
			return uint32(i)
		}
	}
	return 0
}

// check reports lost_position for a position that does not lie before the
// start of the epoch after its own, and stale_position for one of an epoch
// that is yet to come.
func (e epochs) check(p, now events.Position) error {
	if p.IsZero() {
		return nil
	}
	if int(p.Epoch) >= len(e) {
		return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", now, p).
			WithHint("try again, or ask another node")
	}
	if int(p.Epoch)+1 < len(e) && p.Seq >= e[p.Epoch+1] {
		return memory.Errorf(memory.CodeLostPosition, "position %s lies in a part of the log that was lost; epoch %d began before it", p, p.Epoch+1).
			WithHint("what was written there must be written again; the same ids are safe")
	}
	return nil
}
