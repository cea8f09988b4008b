package events

import (
	"fmt"

	"mneme/memory"
)

// Type numbers an event type. Numbers are append-only.
type Type uint16

// Control events advance position and chain but are no facts.
const (
	TypeLeaderBegan Type = 1 // a writer's term begins
	TypeEpochBegan  Type = 2 // the log was repaired; its next stream, which the payload names, begins a new epoch
	TypeQuarantined Type = 3 // an operator put the event that the payload names in quarantine
	TypeLevelRaised Type = 4 // writers may use the feature level that the payload names; see level.go
)

// Directory events.
const (
	TypeNamespaceCreated Type = 10
	TypeNamespaceChanged Type = 11
	TypeNamespaceDeleted Type = 12
	TypeKeyCreated       Type = 13
	TypeKeyDestroyed     Type = 14
	TypeSpaceBuilding    Type = 15 // a namespace's next vector space is being filled
	TypeSpaceSwitched    Type = 16 // … becomes its space; the one before is kept
	TypeSpaceDropped     Type = 17 // … or a kept one goes, with its vectors
	TypeNamespacePlaced  Type = 18 // a namespace is known, and its home is made on another shard
)

// Memory events.
const (
	TypeCaptured        Type = 20
	TypeRevised         Type = 21
	TypeForgotten       Type = 22
	TypeVectorsAttached Type = 30
	TypeGraphChanged    Type = 40 // a namespace's knowledge graph
	TypeRead            Type = 50 // memories were given to a reader, where the namespace has that audited
)

type typeInfo struct {
	name   string
	schema uint8 // the newest schema version this program writes
}

var typeTable = map[Type]typeInfo{
	TypeLeaderBegan:      {"leader.began", 1},
	TypeEpochBegan:       {"epoch.began", 1},
	TypeQuarantined:      {"event.quarantined", 1},
	TypeLevelRaised:      {"level.raised", 1},
	TypeNamespaceCreated: {"namespace.created", 1},
	TypeNamespaceChanged: {"namespace.changed", 1},
	TypeNamespaceDeleted: {"namespace.deleted", 1},
	TypeKeyCreated:       {"key.created", 1},
	TypeKeyDestroyed:     {"key.destroyed", 1},
	TypeSpaceBuilding:    {"space.building", 1},
	TypeSpaceSwitched:    {"space.switched", 1},
	TypeSpaceDropped:     {"space.dropped", 1},
	TypeNamespacePlaced:  {"namespace.placed", 1},
	TypeCaptured:         {"memory.captured", 1},
	TypeRevised:          {"memory.revised", 1},
	TypeForgotten:        {"memory.forgotten", 1},
	TypeVectorsAttached:  {"vectors.attached", 2},
	TypeGraphChanged:     {"graph.changed", 1},
	TypeRead:             {"memory.read", 1},
}

// String is the short name of the type, as audit rows show it.
func (t Type) String() string {
	if i, ok := typeTable[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type-%d", uint16(t))
}

// TypeOf is the type of a name that String gives; false: there is none.
func TypeOf(name string) (Type, bool) {
	for t, i := range typeTable {
		if i.name == name {
			return t, true
		}
	}
	return 0, false
}

// Known reports whether this program understands the type.
func (t Type) Known() bool { _, ok := typeTable[t]; return ok }

// Schema is the schema version that this program writes for the type.
func (t Type) Schema() uint8 { return typeTable[t].schema }

// OfSpace reports whether the type is about a namespace's vector spaces.
func (t Type) OfSpace() bool {
	return t == TypeSpaceBuilding || t == TypeSpaceSwitched || t == TypeSpaceDropped
}

// Control reports whether the type is control and not a fact.
func (t Type) Control() bool {
	return t == TypeLeaderBegan || t == TypeEpochBegan || t == TypeQuarantined || t == TypeLevelRaised
}

// CloudEventType is the CloudEvents type of t.
func (t Type) CloudEventType() string {
	return fmt.Sprintf("io.mneme.%s.v%d", t, max(1, t.Schema()))
}

// CloudEventSource is the CloudEvents source of an agent's events, or of the
// namespace's own if agent is "".
func CloudEventSource(namespace, agent string) string {
	if agent == "" {
		return "/namespaces/" + namespace
	}
	return "/namespaces/" + namespace + "/agents/" + agent
}

// Scope numbers who may see an event's record.
type Scope uint8

// The scopes; ScopeNone is for events that are about no record.
const (
	ScopeNone  Scope = 0
	ScopeTeam  Scope = 1
	ScopeAgent Scope = 2
)

// ScopeOf maps the public scope; the empty one is the team's.
func ScopeOf(s memory.Scope) Scope {
	if s == memory.ScopeAgent {
		return ScopeAgent
	}
	return ScopeTeam
}

// Public is the public form of the scope, "" for ScopeNone.
func (s Scope) Public() memory.Scope {
	switch s {
	case ScopeTeam:
		return memory.ScopeTeam
	case ScopeAgent:
		return memory.ScopeAgent
	}
	return ""
}

// Kind numbers memory.Kind; 0 is "no kind".
type Kind uint8

var kindNames = [...]memory.Kind{
	1: memory.KindPreference, 2: memory.KindFact, 3: memory.KindDecision, 4: memory.KindError,
	5: memory.KindPractice, 6: memory.KindToolUsage, 7: memory.KindObservation,
	8: memory.KindMessage, 9: memory.KindOther,
}

// KindOf maps the public kind; unknown and empty ones become "other".
func KindOf(k memory.Kind) Kind {
	for i, name := range kindNames {
		if i > 0 && name == k {
			return Kind(i)
		}
	}
	return 9
}

// Public is the public form of the kind.
func (k Kind) Public() memory.Kind {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return memory.KindOther
}
