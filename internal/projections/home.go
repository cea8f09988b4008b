package projections

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// Home is what the shard of a namespace knows of it. It ends with the namespace.
// Settings are the events that set them, oldest first; they are opened by those
// who hold the cluster key.
type Home struct {
	Settings []Ref `json:"settings"`

	Space SpaceKey    `json:"space,omitzero"` // the current vector space
	Next  SpaceKey    `json:"next,omitzero"`  // the one being built
	Kept  []KeptSpace `json:"kept,omitempty"` // those before, oldest first
}

func (h *Home) encode() []byte { return encodeJSON(h) }

func decodeHome(b []byte) (Home, error) {
	var h Home
	if err := json.Unmarshal(b, &h); err != nil {
		return h, fmt.Errorf("home row: %w", events.ErrMalformed)
	}
	return h, nil
}

// changedBy is the row after one more event that it was set by.
func (h *Home) changedBy(at Ref) *Home {
	next := *h
	next.Settings = append(h.Settings[:len(h.Settings):len(h.Settings)], at)
	return &next
}

// homeState is a home with the number of its living records.
type homeState struct {
	Home
	records uint64
}

// home is the projection of what the shard of a namespace knows of it: settings,
// spaces, totals. The fold of every memory asks it.
type home struct {
	defaults
	t     *tx
	homes changes[events.ID, homeState]
}

var homeRows = declaration{
	name: "home",
	rows: []rows{
		{prefix: prefixHome, scope: ofNamespace, fact: true, key: "namespace16",
			holds: `JSON {"settings":[refs of events],"space"?,"next"?,"kept"?:[{"space","since"}]}`},
		{prefix: prefixRecords, scope: ofNamespace, key: "namespace16", holds: "living records, 8"},
	},
	load: func(db *storage.DB, m *memory) error {
		homes := map[events.ID]*homeState{}
		err := eachRow(db, []byte{prefixHome}, func(key, value []byte) error {
			if len(key) != 17 {
				return fmt.Errorf("home key: %w", events.ErrMalformed)
			}
			h, err := decodeHome(value)
			homes[events.ID(key[1:])] = &homeState{Home: h}
			return err
		})
		if err != nil {
			return err
		}
		err = eachRow(db, []byte{prefixRecords}, func(key, value []byte) error {
			if len(value) != 8 || len(key) != 17 || homes[events.ID(key[1:])] == nil {
				return fmt.Errorf("records row: %w", events.ErrMalformed)
			}
			homes[events.ID(key[1:])].records = binary.BigEndian.Uint64(value)
			return nil
		})
		m.homes = m.homes.with(homes)
		return err
	},
}

func (h *home) declared() *declaration { return &homeRows }

// of returns a namespace that is there to be written to, or nil.
func (h *home) of(ns events.ID) *Home {
	if s := h.homes.get(ns); s != nil {
		return &s.Home
	}
	return nil
}

func (h *home) changed(ev *event) error {
	now := h.of(ev.Namespace)
	if now == nil {
		return ev.is(OutcomeRejected)
	}
	ev.home = now.changedBy(ev.at)
	return ev.is(OutcomeApplied)
}

func (h *home) drop(ns events.ID, _ []uint32) {
	h.homes.remove(ns)
	h.t.out.Dropped = append(h.t.out.Dropped, ns)
}

func (h *home) fold(ev *event) error {
	switch {
	case ev.took(events.TypeNamespaceCreated):
		s := h.homes.edit(ev.Namespace)
		s.Home = Home{Settings: []Ref{ev.at}}
		if ev.contribution != nil {
			s.Space = ev.contribution.Space
		}
		return h.t.addFact(ev.Namespace, homeKey(ev.Namespace), s.encode())
	case ev.home != nil:
		s := h.homes.edit(ev.Namespace)
		old := s.encode()
		s.Home = *ev.home
		return h.t.replaceFact(ev.Namespace, homeKey(ev.Namespace), old, s.encode())
	case ev.result.Outcome == OutcomeCreated:
		h.homes.edit(ev.Namespace).records++
	case ev.result.Outcome == OutcomeForgotten:
		h.homes.edit(ev.Namespace).records--
	}
	return nil
}

func (h *home) finish() error {
	for ns, s := range h.homes.now {
		if s == nil {
			continue
		}
		if err := h.t.b.Set(recordsKey(ns), be64(nil, s.records), nil); err != nil {
			return err
		}
	}
	return nil
}

func (h *home) publish(m *memory) { m.homes = h.homes.after() }

// homeReads are the reads of namespaces' homes.
type homeReads struct{ p *published }

// NamespaceInfo is what a namespace's name leads to: its entry in the directory and
// its home, which is empty once it is deleted.
type NamespaceInfo struct {
	Entry
	Home
}

// Namespace finds a living namespace by name.
func (v homeReads) Namespace(name string) (NamespaceInfo, bool) {
	id := v.p.names.get(name)
	if id == nil {
		return NamespaceInfo{}, false
	}
	return v.NamespaceByID(*id)
}

// NamespaceByID finds a namespace, also a deleted one.
func (v homeReads) NamespaceByID(id events.ID) (NamespaceInfo, bool) {
	e := v.p.entries.get(id)
	if e == nil {
		return NamespaceInfo{}, false
	}
	info := NamespaceInfo{Entry: *e}
	if h := v.p.homes.get(id); h != nil {
		info.Home = h.Home
	}
	return info, true
}

// Namespaces lists the living namespaces of the directory by name. The home of one that
// lives on another shard is empty.
func (v homeReads) Namespaces() []NamespaceInfo {
	var out []NamespaceInfo
	v.p.names.each(func(_ string, id *events.ID) {
		info, _ := v.NamespaceByID(*id)
		out = append(out, info)
	})
	slices.SortFunc(out, func(a, b NamespaceInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Totals are a namespace's living records, those of them without vectors in the
// current space, and its share of the state hash.
type Totals struct {
	Records, Pending uint64
	Hash             StateHash
}

// NamespaceTotals gives the totals of a namespace, also of a deleted one.
func (v homeReads) NamespaceTotals(ns events.ID) Totals {
	var out Totals
	if h := v.p.homes.get(ns); h != nil {
		out.Records = h.records
		if s := v.p.spaces.get(spaceID{ns, h.Space}); s != nil {
			out.Pending = s.pending
		}
	}
	if h := v.p.hashes.get(ns); h != nil {
		out.Hash = *h
	}
	return out
}

// Totals are the living records and pending vectors over all namespaces.
func (v homeReads) Totals() (records, pending uint64) {
	v.p.homes.each(func(ns events.ID, _ *homeState) {
		t := v.NamespaceTotals(ns)
		records, pending = records+t.Records, pending+t.Pending
	})
	return records, pending
}

// Hash is the state hash over all namespaces.
func (v homeReads) Hash() StateHash {
	var sum StateHash
	v.p.hashes.each(func(_ events.ID, h *StateHash) { sum = sum.Add(*h) })
	return sum
}
