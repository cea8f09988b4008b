package views

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"mneme/internal/events"
	"mneme/internal/projections"
)

// knowledge is the strings of the knowledge graphs that searches asked for, in lower case and in
// memory only: a search looks through all of them, which rows are too slow for. A search that
// asks reads what is new since the last one. They are dropped where something was erased.
type knowledge struct {
	state *projections.State
	max   int // bytes of all

	mu    sync.Mutex
	parts map[uint32]*graphTexts
	turn  uint64 // of the last search
	least uint64 // the sequence below which a view may hold what was erased since
}

// graphCacheBytes is room for about 100,000 entities with four short observations each.
const graphCacheBytes = 64 << 20

// graphTexts are the strings of one partition's graph. What ends stays for views of before.
type graphTexts struct {
	ns         events.ID
	generation string // of the tables
	erased     uint64 // when rows were last deleted for good
	used       uint64 // turn of the last search; guarded by knowledge.mu

	// Told to those who hold knowledge.mu, and so do not wait for mu.
	bytes  atomic.Int64
	wasted atomic.Bool // most of it has ended: it is to be read anew

	mu           sync.RWMutex    // held while rows are read
	whole        projections.Ref // views of before may hold what is not here: it ended before it was read
	at           projections.Ref // how far it has come
	entities     []graphEntity   // in the order of creation, and so are observations
	observations []graphObservation
	dead         int
}

type graphEntity struct {
	ref        events.GraphRef
	ended      projections.Ref // zero = it lives
	name, kind string
	pairs      pairs // of both
}

type graphObservation struct {
	ref    events.GraphRef
	entity int // place in entities
	ended  projections.Ref
	text   string
	pairs  pairs
}

func newKnowledge(state *projections.State, max int) *knowledge {
	return &knowledge{state: state, max: max, parts: map[uint32]*graphTexts{}}
}

// apply drops what may hold strings that have left.
func (s *knowledge) apply(a *projections.Applied) {
	if a.Erased {
		s.drop(a.Cursor.Seq)
	}
	if len(a.Dropped) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.least = a.Cursor.Seq
	for id, g := range s.parts {
		if slices.Contains(a.Dropped, g.ns) {
			delete(s.parts, id)
		}
	}
}

// drop forgets everything; what is read from views before seq is not kept either.
func (s *knowledge) drop(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.least = seq
	clear(s.parts)
}

// GraphMatches lists the entities of an open partition that hold a string in name, type or an
// observation, as a whole and in any case, in the order of creation.
func (v *View) GraphMatches(ctx context.Context, p *Partition, query string) ([]events.GraphRef, error) {
	query = newLowering().of(query)
	g, err := v.knowledge.of(v.State, p.ID, v.Capability.ns)
	if err != nil {
		return nil, fmt.Errorf("graph of partition %d: %w", p.ID, err)
	}
	if g == nil {
		return scanGraph(ctx, v.State, p.ID, query)
	}
	at := v.State.Cursor()
	return g.matches(query, projections.Ref{Seq: at.Seq, Index: at.Index}), nil
}

// of returns the strings of a partition, as far as the view at least; nil if they are too many
// to be kept, or the view holds what has ended since.
func (s *knowledge) of(v *projections.View, part uint32, ns events.ID) (*graphTexts, error) {
	total, err := v.GraphTotals(part)
	if err != nil {
		return nil, err
	}
	if graphBytes(total) > s.max {
		return nil, nil
	}
	erased, err := v.Erased()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.turn++
	g := s.parts[part]
	if g == nil || g.generation != v.Generation() || g.erased != erased || g.wasted.Load() {
		g = &graphTexts{ns: ns, generation: v.Generation(), erased: erased}
		if v.Cursor().Seq >= s.least && g.generation == s.state.Generation() {
			s.parts[part] = g
		}
	}
	g.used = s.turn
	s.mu.Unlock()
	fits, err := g.follow(v, part, total.Changed)
	if err != nil {
		return nil, err
	}
	s.shrink(g)
	if !fits {
		return nil, nil
	}
	return g, nil
}

// graphBytes is about how much memory the strings of a graph take.
func graphBytes(t projections.GraphTotals) int {
	return int(t.Bytes) + entityBytes*int(t.Entities) + observationBytes*int(t.Observations)
}

const (
	entityBytes      = 112
	observationBytes = 96
)

// shrink lets go of those that were used longest ago, but for one, until the rest have room.
func (s *knowledge) shrink(but *graphTexts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		sum := 0
		var oldest *graphTexts
		var of uint32
		for part, g := range s.parts {
			sum += int(g.bytes.Load())
			if g != but && (oldest == nil || g.used < oldest.used) {
				oldest, of = g, part
			}
		}
		if sum <= s.max || oldest == nil {
			return
		}
		delete(s.parts, of)
	}
}

// minDead is how much may have ended in any case.
const minDead = 4096

// follow reads what is new up to a view, in which the graph was changed last at a reference. It
// reports whether everything is here that the view holds.
func (g *graphTexts) follow(v *projections.View, part uint32, changed projections.Ref) (bool, error) {
	g.mu.RLock()
	news, fits := g.at.Before(changed), !changed.Before(g.whole)
	g.mu.RUnlock()
	if !news {
		return fits, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.at.Before(changed) {
		return !changed.Before(g.whole), nil
	}
	if g.at == (projections.Ref{}) {
		g.whole = changed
	}
	low, known := newLowering(), len(g.observations)
	type ending struct {
		ref events.GraphRef
		at  projections.Ref
	}
	var entities, observations []ending
	err := v.GraphSince(part, g.at, projections.GraphNews{
		Entity: func(ref events.GraphRef, e events.GraphEntity) {
			name, kind := low.of(e.Name), low.of(e.Type)
			g.entities = append(g.entities, graphEntity{ref: ref, name: name, kind: kind, pairs: pairsOf(name, kind)})
			g.bytes.Add(int64(entityBytes + len(e.Name) + len(e.Type)))
		},
		Observation: func(ref, entity events.GraphRef, text string) {
			if i, ok := g.entity(entity); ok {
				lowered := low.of(text)
				g.observations = append(g.observations, graphObservation{ref: ref, entity: i, text: lowered, pairs: pairsOf(lowered)})
				g.bytes.Add(int64(observationBytes + len(text)))
			}
		},
		EntityEnded:      func(ref events.GraphRef, at projections.Ref) { entities = append(entities, ending{ref, at}) },
		ObservationEnded: func(ref events.GraphRef, at projections.Ref) { observations = append(observations, ending{ref, at}) },
	})
	if err != nil { // what was told is told again
		g.entities, g.observations, g.dead, g.at = nil, nil, 0, projections.Ref{}
		g.bytes.Store(0)
		return false, err
	}
	slices.SortFunc(g.observations[known:], func(a, b graphObservation) int { return compareGraph(a.ref, b.ref) })
	for _, e := range entities {
		g.whole = e.at // of its observations, some may have come and gone with it
		if i, ok := g.entity(e.ref); ok {
			g.entities[i].ended = e.at
			g.dead++
		}
	}
	for _, e := range observations {
		if i, ok := g.observation(e.ref); ok {
			g.observations[i].ended = e.at
			g.dead++
		} else if g.whole.Before(e.at) {
			g.whole = e.at
		}
	}
	g.at = changed
	g.wasted.Store(g.dead > minDead && g.dead > (len(g.entities)+len(g.observations))/2)
	return true, nil
}

func (g *graphTexts) entity(ref events.GraphRef) (int, bool) {
	return slices.BinarySearchFunc(g.entities, ref, func(e graphEntity, ref events.GraphRef) int { return compareGraph(e.ref, ref) })
}

func (g *graphTexts) observation(ref events.GraphRef) (int, bool) {
	return slices.BinarySearchFunc(g.observations, ref, func(o graphObservation, ref events.GraphRef) int { return compareGraph(o.ref, ref) })
}

func compareGraph(a, b events.GraphRef) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// matches looks through everything that lives at a position.
func (g *graphTexts) matches(query string, at projections.Ref) []events.GraphRef {
	g.mu.RLock()
	defer g.mu.RUnlock()
	lives := func(ref events.GraphRef, ended projections.Ref) bool {
		made := projections.Ref{Seq: ref.Seq, Index: ref.Index}
		return !at.Before(made) && (ended == projections.Ref{} || at.Before(ended))
	}
	of := pairsOf(query)
	found := make([]bool, len(g.entities))
	for i := range g.observations {
		o := &g.observations[i]
		if o.pairs.may(&of) && !found[o.entity] && strings.Contains(o.text, query) && lives(o.ref, o.ended) {
			found[o.entity] = true
		}
	}
	var out []events.GraphRef
	for i := range g.entities {
		e := &g.entities[i]
		if (found[i] || e.pairs.may(&of) && (strings.Contains(e.name, query) || strings.Contains(e.kind, query))) && lives(e.ref, e.ended) {
			out = append(out, e.ref)
		}
	}
	return out
}

// scanGraph looks through the rows.
func scanGraph(ctx context.Context, v *projections.View, part uint32, query string) (out []events.GraphRef, err error) {
	low := newLowering()
	err = v.GraphEntities(part, events.GraphRef{}, func(ref events.GraphRef, e events.GraphEntity) (bool, error) {
		has := func(s string) bool { return strings.Contains(low.of(s), query) }
		if has(e.Name) || has(e.Type) || slices.ContainsFunc(e.Observations, has) {
			out = append(out, ref)
		}
		return true, ctx.Err()
	})
	return out, err
}

// lowering gives strings in lower case as JavaScript does, by Unicode's full mapping. It is not
// safe for concurrent use.
type lowering struct{ full cases.Caser }

func newLowering() lowering { return lowering{cases.Lower(language.Und)} }

func (l lowering) of(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return l.full.String(s)
		}
	}
	return strings.ToLower(s)
}
