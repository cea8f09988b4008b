package projections_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
)

// twin is the semantics of the fold in maps: slow, in memory, without rows,
// batches or hashes. It is told which events are sealed badly.
type twin struct {
	seq   uint64
	chain events.Chain
	term  uint64
	epoch uint32

	spaces  map[events.ID]embed.Space
	about   map[events.ID]embed.Space // what events about spaces name
	keys    *keyring.Keyring
	bad     map[events.ID]bool // payloads that do not open
	names   map[string]events.ID
	spaceNS map[events.ID]*twinNamespace
	records map[events.ID]*twinRecord
	spent   map[string]projections.EventResult
	bodies  map[string]events.MAC
	uris    map[string][]events.ID // who has a path in a partition, the latest last
	paths   map[events.ID]string   // by event
	audit   map[events.ID][]projections.AuditRow
	results []projections.EventResult
	sealed  int64
	graphs  map[events.ID]*twinGraph // of living namespaces
}

// twinGraph is a graph in maps: everything by the event that made it.
type twinGraph struct {
	entities     map[events.GraphRef]events.GraphEntity
	observations map[events.GraphRef]twinObservation
	relations    map[events.GraphRef]events.GraphRelation
}

type twinObservation struct {
	of   events.GraphRef
	text string
}

type twinNamespace struct {
	name   string
	living bool

	current, next embed.Space
	kept          []embed.Space
}

type twinRecord struct {
	namespace events.ID
	place     string // partition
	versions  uint32
	living    bool
	uri       string
	pending   bool                 // waits for vectors in the current space
	waiting   bool                 // … in the one that is being built
	vectors   map[embed.Space]bool // spaces that its present version has vectors in
}

func newTwin(from *world, bad map[events.ID]bool) *twin {
	return &twin{spaces: from.spaces, about: from.about, keys: from.keys, bad: bad, names: map[string]events.ID{}, spaceNS: map[events.ID]*twinNamespace{}, records: map[events.ID]*twinRecord{},
		spent: map[string]projections.EventResult{}, bodies: map[string]events.MAC{}, uris: map[string][]events.ID{}, paths: from.uris, audit: map[events.ID][]projections.AuditRow{}, graphs: map[events.ID]*twinGraph{}}
}

func (w *twin) message(b []byte) {
	w.seq++
	f, err := events.DecodeFrame(b)
	valid := err == nil && f.Seq == w.seq && f.Previous == w.chain && f.Term >= w.term && f.Shard == 0
	if valid && f.Epoch != w.epoch {
		first, err := events.DecodeEnvelope(f.Events[0])
		valid = f.Epoch > w.epoch && err == nil && first.Type == events.TypeEpochBegan
	}
	w.chain = events.NextChain(w.chain, w.seq, b)
	if !valid {
		w.audit[events.ID{}] = append(w.audit[events.ID{}], projections.AuditRow{At: projections.Ref{Seq: w.seq},
			Outcome: projections.OutcomeVoid, SealedAt: w.sealed, Hash: events.HashEnvelope(b)})
		return
	}
	w.term, w.epoch = f.Term, f.Epoch
	for i, raw := range f.Events {
		w.event(projections.Ref{Seq: w.seq, Index: uint32(i)}, raw)
	}
}

func (w *twin) event(at projections.Ref, raw []byte) {
	e, err := events.DecodeEnvelope(raw)
	var r projections.EventResult
	switch {
	case err != nil || w.bad[e.Event] && w.living(e.Namespace):
		r.Outcome = projections.OutcomeQuarantined
	default:
		w.sealed = max(w.sealed, e.SealedAt)
		r = w.decide(&e, at)
	}
	if r.Position.IsZero() {
		r.Position = events.Position{Epoch: w.epoch, Seq: at.Seq, Index: at.Index}
	}
	w.results = append(w.results, r)
	row := projections.AuditRow{At: at, Type: e.Type, Scope: e.Scope, Outcome: r.Outcome, SealedAt: e.SealedAt, Event: e.Event,
		Record: r.Record, Hash: events.HashEnvelope(raw), Agent: e.Agent}
	if row.Record == (events.ID{}) {
		row.Record = e.Target
	}
	w.audit[e.Namespace] = append(w.audit[e.Namespace], row)
}

// place names the partition.
func place(e *events.Envelope) string {
	agent := ""
	if e.Scope == events.ScopeAgent {
		agent = e.Agent
	}
	return fmt.Sprint(e.Namespace, e.Scope, agent)
}

func (w *twin) living(ns events.ID) bool { n := w.spaceNS[ns]; return n != nil && n.living }

func (w *twin) decide(e *events.Envelope, at projections.Ref) projections.EventResult {
	outcome := func(o projections.Outcome) projections.EventResult { return projections.EventResult{Outcome: o} }
	switch e.Type {
	case events.TypeNamespaceCreated:
		if _, taken := w.names[e.Name]; taken || w.spaceNS[e.Namespace] != nil {
			return outcome(projections.OutcomeConflict)
		}
		w.names[e.Name], w.spaceNS[e.Namespace] = e.Namespace, &twinNamespace{name: e.Name, living: true, current: w.spaces[e.Namespace]}
	case events.TypeNamespaceChanged:
		if !w.living(e.Namespace) {
			return outcome(projections.OutcomeRejected)
		}
	case events.TypeNamespaceDeleted:
		if !w.living(e.Namespace) {
			return outcome(projections.OutcomeRejected)
		}
		w.delete(e.Namespace)
	case events.TypeCaptured:
		return w.capture(e, at)
	case events.TypeRevised:
		return w.revise(e, at)
	case events.TypeForgotten:
		r := w.target(e)
		if r == nil {
			return projections.EventResult{Outcome: projections.OutcomeRejected, Record: e.Target}
		}
		r.living, r.pending, r.waiting, r.vectors = false, false, false, nil
		w.free(r.place, r.uri, e.Target)
		return projections.EventResult{Outcome: projections.OutcomeForgotten, Record: e.Target, Version: r.versions}
	case events.TypeVectorsAttached:
		r := w.target(e)
		if r == nil || r.versions != e.BaseVersion {
			return projections.EventResult{Outcome: projections.OutcomeRejected, Record: e.Target}
		}
		return w.attach(e, r)
	case events.TypeGraphChanged:
		return w.graph(e, at)
	case events.TypeRead:
		if !w.living(e.Namespace) {
			return outcome(projections.OutcomeRejected)
		}
	case events.TypeSpaceBuilding, events.TypeSpaceSwitched, events.TypeSpaceDropped:
		if !w.living(e.Namespace) {
			return outcome(projections.OutcomeRejected)
		}
		return outcome(w.space(e, w.spaceNS[e.Namespace]))
	}
	return outcome(projections.OutcomeApplied)
}

func (w *twin) attach(e *events.Envelope, r *twinRecord) projections.EventResult {
	n, space := w.spaceNS[e.Namespace], w.about[e.Event]
	res := projections.EventResult{Outcome: projections.OutcomeDuplicate, Record: e.Target, Version: r.versions}
	switch {
	case space != n.current && space != n.next && !slices.Contains(n.kept, space):
		return projections.EventResult{Outcome: projections.OutcomeRejected, Record: e.Target}
	case r.vectors[space]:
		return res
	}
	r.vectors[space], res.Outcome = true, projections.OutcomeApplied
	r.pending = r.pending && space != n.current
	r.waiting = r.waiting && space != n.next
	return res
}

// space decides on an event about spaces.
func (w *twin) space(e *events.Envelope, n *twinNamespace) projections.Outcome {
	none, space := embed.Space{}, w.about[e.Event]
	is := func(s embed.Space) bool { return s == space }
	switch {
	case e.Type == events.TypeSpaceBuilding && (space == n.current || space == n.next):
		return projections.OutcomeDuplicate
	case e.Type == events.TypeSpaceBuilding && n.next != none:
		return projections.OutcomeConflict
	case e.Type == events.TypeSpaceBuilding:
		n.next, n.kept = space, slices.DeleteFunc(n.kept, is)
	case e.Type == events.TypeSpaceSwitched && space == n.next:
		if n.current != none {
			n.kept = append(n.kept, n.current)
		}
		n.current, n.next = space, none
		for _, r := range w.of(e.Namespace) {
			r.pending, r.waiting = r.waiting, false
		}
	case e.Type == events.TypeSpaceDropped && (space == n.next || slices.Contains(n.kept, space)):
		for _, r := range w.of(e.Namespace) {
			delete(r.vectors, space)
			r.waiting = r.waiting && space != n.next
		}
		n.kept = slices.DeleteFunc(n.kept, is)
		if space == n.next {
			n.next = none
		}
	default:
		return projections.OutcomeRejected
	}
	return projections.OutcomeApplied
}

func (w *twin) of(ns events.ID) (out []*twinRecord) {
	for _, r := range w.records {
		if r.namespace == ns {
			out = append(out, r)
		}
	}
	return out
}

func (w *twin) delete(ns events.ID) {
	n := w.spaceNS[ns]
	n.living = false
	delete(w.graphs, ns)
	delete(w.names, n.name)
	for id, r := range w.records {
		if r.namespace == ns {
			w.free(r.place, r.uri, id)
			delete(w.records, id)
		}
	}
	for k := range w.spent {
		if k[:26] == ns.String() {
			delete(w.spent, k)
		}
	}
}

func (w *twin) graph(e *events.Envelope, at projections.Ref) projections.EventResult {
	if !w.living(e.Namespace) {
		return projections.EventResult{Outcome: projections.OutcomeRejected}
	}
	if r, ok := w.wasSpent(e); ok {
		return r
	}
	w.spend(e, at, events.ID{}, 0)
	g := w.graphs[e.Namespace]
	if g == nil {
		g = &twinGraph{map[events.GraphRef]events.GraphEntity{}, map[events.GraphRef]twinObservation{}, map[events.GraphRef]events.GraphRelation{}}
		w.graphs[e.Namespace] = g
	}
	if key, err := w.keys.KeyByID(e.Key); err == nil {
		if steps, err := derive.OpenGraph(key, e); err == nil {
			g.change(steps, at)
		}
	}
	return projections.EventResult{Outcome: projections.OutcomeApplied}
}

func (g *twinGraph) change(steps []events.GraphStep, at projections.Ref) {
	made := uint32(0)
	next := func() events.GraphRef {
		made++
		return events.GraphRef{Seq: at.Seq, Index: at.Index, N: made - 1}
	}
	for _, s := range steps {
		for _, e := range s.Entities {
			ref := next()
			for _, text := range e.Observations {
				g.observations[next()] = twinObservation{ref, text}
			}
			e.Observations = nil
			g.entities[ref] = e
		}
		for _, r := range s.Relations {
			g.relations[next()] = r
		}
		for _, a := range s.Added {
			of := a.Entity.At(at.Seq, at.Index)
			for _, text := range a.Contents {
				ref := next()
				if _, ok := g.entities[of]; ok {
					g.observations[ref] = twinObservation{of, text}
				}
			}
		}
		for _, ref := range s.Severed {
			delete(g.relations, ref.At(at.Seq, at.Index))
		}
		for _, ref := range s.Ended {
			ref = ref.At(at.Seq, at.Index)
			switch s.Kind {
			case events.GraphRelationsDeleted:
				delete(g.relations, ref)
			case events.GraphObservationsDeleted:
				delete(g.observations, ref)
			default:
				delete(g.entities, ref)
				for o, is := range g.observations {
					if is.of == ref {
						delete(g.observations, o)
					}
				}
			}
		}
	}
}

// checkReads compares the audited reads of a namespace with its audit rows, from wherever one
// begins.
func checkReads(t *testing.T, v *projections.View, ns events.ID, n *twinNamespace, audit []projections.AuditRow) {
	t.Helper()
	var want []projections.LoggedRead
	for _, row := range slices.Backward(audit) {
		if row.Type == events.TypeRead && row.Outcome == projections.OutcomeApplied && n.living {
			want = append(want, projections.LoggedRead{At: row.At, Scope: row.Scope, SealedAt: row.SealedAt, Agent: row.Agent})
		}
	}
	read := func(before projections.Ref, most int) (got []projections.LoggedRead) {
		must(t, v.ReadsBefore(ns, before, func(r projections.LoggedRead) (bool, error) {
			got = append(got, r)
			return len(got) < most, nil
		}))
		return got
	}
	if got := read(projections.Ref{}, len(want)+2); !slices.Equal(got, want) {
		t.Errorf("namespace %s has %d audited reads, the twin has %d", n.name, len(got), len(want))
	}
	for i := range want[:max(0, len(want)-1)] {
		if got := read(want[i].At, 1); !slices.Equal(got, want[i+1:i+2]) {
			t.Errorf("before %v is %v, want %v", want[i].At, got, want[i+1])
		}
	}
}

// checkGraph compares the graph of a namespace with the twin's, however it is read.
func checkGraph(t *testing.T, v *projections.View, ns events.ID, want *twinGraph) {
	t.Helper()
	if want == nil {
		want = &twinGraph{}
	}
	p, ok := v.Partition(ns, events.ScopeTeam, "")
	if !ok {
		if len(want.entities)+len(want.relations) > 0 {
			t.Errorf("namespace %s has no graph", ns)
		}
		return
	}
	var last events.GraphRef
	seen, observations := 0, 0
	must(t, v.GraphEntities(p.ID, events.GraphRef{}, func(ref events.GraphRef, e events.GraphEntity) (bool, error) {
		if seen > 0 && !last.Before(ref) {
			t.Errorf("entity %v comes behind %v", ref, last)
		}
		seen, last = seen+1, ref
		is, ok := want.entities[ref]
		var texts []string
		for _, o := range slices.SortedFunc(maps.Keys(want.observations), compareGraphRefs) {
			if want.observations[o].of == ref {
				texts = append(texts, want.observations[o].text)
			}
		}
		observations += len(texts)
		if !ok || is.Name != e.Name || is.Type != e.Type || !slices.Equal(texts, e.Observations) {
			t.Errorf("entity %v is %+v, in the twin %+v with %q", ref, e, is, texts)
		}
		if found, _, ok, err := v.GraphNamed(p.ID, e.Name); err != nil || !ok || want.entities[found].Name != e.Name || found.Before(ref) {
			t.Errorf("entity %q is found as %v %v, %v", e.Name, found, ok, err)
		}
		return true, nil
	}))
	if seen != len(want.entities) || observations != len(want.observations) {
		t.Errorf("namespace %s has %d entities and %d observations, the twin %d and %d", ns, seen, observations, len(want.entities), len(want.observations))
	}
	relations := map[events.GraphRef]events.GraphRelation{}
	must(t, v.GraphRelations(p.ID, func(ref events.GraphRef, r events.GraphRelation) (bool, error) {
		relations[ref] = r
		at := 0
		for _, end := range []string{r.From, r.To} {
			must(t, v.GraphRelationsOf(p.ID, end, func(found events.GraphRef, _ events.GraphRelation) (bool, error) {
				if found == ref {
					at++
				}
				return true, nil
			}))
		}
		if _, ok, err := v.GraphRelation(p.ID, r); err != nil || !ok || at != 2 {
			t.Errorf("relation %+v is found at %d ends, and %v, %v", r, at, ok, err)
		}
		return true, nil
	}))
	if len(relations) != len(want.relations) || len(relations) > 0 && !maps.Equal(relations, want.relations) {
		t.Errorf("namespace %s has relations %v, the twin %v", ns, relations, want.relations)
	}
	total, err := v.GraphTotals(p.ID)
	if err != nil || total.Entities != uint64(seen) || total.Observations != uint64(observations) || total.Relations != uint64(len(relations)) {
		t.Errorf("totals of %s: %+v, %v", ns, total, err)
	}
}

func compareGraphRefs(a, b events.GraphRef) int { return bytes.Compare(a.Append(nil), b.Append(nil)) }

func (w *twin) target(e *events.Envelope) *twinRecord {
	r := w.records[e.Target]
	if r == nil || r.namespace != e.Namespace || r.place != place(e) || !r.living {
		return nil
	}
	return r
}

func spentKey(e *events.Envelope) string { return fmt.Sprint(e.Namespace, e.ClientID, e.Agent) }

func (w *twin) wasSpent(e *events.Envelope) (projections.EventResult, bool) {
	r, ok := w.spent[spentKey(e)]
	if !ok || e.ClientID.IsZero() {
		return r, false
	}
	r.Outcome = projections.OutcomeDuplicate
	if w.bodies[spentKey(e)] != e.Body {
		r.Outcome, r.Version = projections.OutcomeConflict, 0
	}
	return r, true
}

func (w *twin) spend(e *events.Envelope, at projections.Ref, record events.ID, version uint32) {
	if !e.ClientID.IsZero() {
		w.spent[spentKey(e)] = projections.EventResult{Record: record, Version: version, Position: events.Position{Epoch: w.epoch, Seq: at.Seq, Index: at.Index}}
		w.bodies[spentKey(e)] = e.Body
	}
}

func (w *twin) free(place, uri string, record events.ID) {
	w.uris[place+uri] = slices.DeleteFunc(w.uris[place+uri], func(id events.ID) bool { return id == record })
}

func (w *twin) take(r *twinRecord, uri string, record events.ID) {
	r.uri = uri
	if uri != "" {
		w.uris[r.place+uri] = append(w.uris[r.place+uri], record)
	}
}

// owner is the record that a path names in the place of another one.
func (w *twin) owner(r *twinRecord) (owner events.ID) {
	if have := w.uris[r.place+r.uri]; len(have) > 0 {
		owner = have[len(have)-1]
	}
	return owner
}

func (w *twin) capture(e *events.Envelope, at projections.Ref) projections.EventResult {
	if !w.living(e.Namespace) {
		return projections.EventResult{Outcome: projections.OutcomeRejected}
	}
	if r, ok := w.wasSpent(e); ok {
		return r
	}
	if w.records[e.Record] != nil {
		return projections.EventResult{Outcome: projections.OutcomeDuplicate, Record: e.Record}
	}
	r := &twinRecord{namespace: e.Namespace, place: place(e), versions: 1, living: true}
	w.embedded(r)
	w.records[e.Record] = r
	w.take(r, w.paths[e.Event], e.Record)
	w.spend(e, at, e.Record, 1)
	return projections.EventResult{Outcome: projections.OutcomeCreated, Record: e.Record, Version: 1}
}

// embedded says what the new version's vectors do by themselves.
func (w *twin) embedded(r *twinRecord) {
	n := w.spaceNS[r.namespace]
	r.pending, r.waiting = n.current.Provider == embed.ProviderOllama, n.next.Provider == embed.ProviderOllama
	r.vectors = map[embed.Space]bool{}
	for _, s := range []embed.Space{n.current, n.next} {
		if s.Provider == embed.ProviderBuiltin {
			r.vectors[s] = true
		}
	}
}

func (w *twin) revise(e *events.Envelope, at projections.Ref) projections.EventResult {
	if !w.living(e.Namespace) {
		return projections.EventResult{Outcome: projections.OutcomeRejected}
	}
	if r, ok := w.wasSpent(e); ok {
		return r
	}
	r := w.target(e)
	if r == nil {
		return projections.EventResult{Outcome: projections.OutcomeRejected}
	}
	if r.versions != e.BaseVersion {
		return projections.EventResult{Outcome: projections.OutcomeConflict, Record: e.Target, Version: r.versions}
	}
	w.free(r.place, r.uri, e.Target)
	r.versions++
	w.take(r, w.paths[e.Event], e.Target)
	w.embedded(r)
	w.spend(e, at, e.Target, r.versions)
	return projections.EventResult{Outcome: projections.OutcomeRevised, Record: e.Target, Version: r.versions}
}

// counts are living records with vectors, by space.
func (w *twin) counts(ns events.ID) map[embed.Space]uint64 {
	out := map[embed.Space]uint64{}
	for _, r := range w.of(ns) {
		for s := range r.vectors {
			out[s]++
		}
	}
	return out
}

// totals counts a namespace's living records and pending vectors.
func (w *twin) totals(ns events.ID) (records, pending uint64) {
	for _, r := range w.records {
		if r.namespace == ns && r.living {
			records++
		}
		if r.namespace == ns && r.pending {
			pending++
		}
	}
	return records, pending
}
