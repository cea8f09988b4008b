package views

import (
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Capability says which partitions a reader may open: the team's of one
// namespace and, with an agent, that agent's own. OpenCapability makes it; the
// zero value opens nothing.
type Capability struct {
	ns    events.ID
	name  string
	agent string
}

// OpenCapability makes the capability of an agent, or of the team with as "",
// in a namespace that must exist. Whether the caller may act as that agent was
// decided before. Errors: invalid, not_found.
func OpenCapability(v *projections.View, namespace, as string) (Capability, projections.NamespaceInfo, error) {
	if err := memory.CheckName("namespace", namespace); err != nil {
		return Capability{}, projections.NamespaceInfo{}, err
	}
	if as != "" {
		if err := memory.CheckName("agent", as); err != nil {
			return Capability{}, projections.NamespaceInfo{}, err
		}
	}
	info, ok := v.Namespace(namespace)
	if !ok || info.Deleted || !info.Here(v) {
		return Capability{}, info, memory.NoNamespace(namespace)
	}
	return Capability{ns: info.ID, name: info.Name, agent: as}, info, nil
}

// NamespaceID returns the id of the namespace it was made for; zero opens nothing.
func (c Capability) NamespaceID() events.ID { return c.ns }

// Namespace returns the name of the namespace it was made for.
func (c Capability) Namespace() string { return c.name }

// Agent returns the agent whose own memories it opens; "" = none.
func (c Capability) Agent() string { return c.agent }

// Sees reports whether what an agent did in a scope may be shown.
func (c Capability) Sees(scope events.Scope, agent string) bool {
	switch scope {
	case events.ScopeTeam:
		return c.ns != (events.ID{})
	case events.ScopeAgent:
		return c.agent != "" && agent == c.agent
	}
	return false
}

// Partition is a partition that a capability opens at a view.
type Partition struct {
	projections.Partition
	Live projections.Live
}

// Contains reports whether a document is part of the view and lives.
func (p *Partition) Contains(doc uint32) bool { return doc < p.NextDoc && p.Live.Contains(doc) }

// Before counts the documents of the view that live and whose DocIDs are below doc.
func (p *Partition) Before(doc uint32) uint32 { return p.Live.Before(min(doc, p.NextDoc)) }

// Partitions lists those of the capability's partitions that exist, the team's first.
func (c Capability) Partitions(v *projections.View) []Partition {
	if c.ns == (events.ID{}) {
		return nil
	}
	out := make([]Partition, 0, 2)
	add := func(scope events.Scope, agent string) {
		if p, ok := v.Partition(c.ns, scope, agent); ok {
			out = append(out, Partition{p, v.Live(p)})
		}
	}
	add(events.ScopeTeam, "")
	if c.agent != "" {
		add(events.ScopeAgent, c.agent)
	}
	return out
}
