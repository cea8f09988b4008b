package events

import (
	"encoding/binary"
	"fmt"
)

// GraphRef names an entity, an observation or a relation by the event that made it, and its
// number there. It says nothing of what it names, and lasts longer than that.
type GraphRef struct {
	Seq   uint64 // of the frame; 0 = this very event, whose place is not known when it is sealed
	Index uint32
	N     uint32 // counts what the event makes, in order, from 0
}

// At is the reference as it is for the event that holds it: of what that event makes, Seq and
// Index are its own.
func (r GraphRef) At(seq uint64, index uint32) GraphRef {
	if r.Seq == 0 {
		r.Seq, r.Index = seq, index
	}
	return r
}

// Before reports whether r was made before q.
func (r GraphRef) Before(q GraphRef) bool {
	switch {
	case r.Seq != q.Seq:
		return r.Seq < q.Seq
	case r.Index != q.Index:
		return r.Index < q.Index
	}
	return r.N < q.N
}

// Append appends the reference: u64 seq ‖ u32 index ‖ u32 number, big-endian, so that
// references sort in the order in which things were made.
func (r GraphRef) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, r.Index), r.N)
}

// GraphRefBytes is how long an appended reference is.
const GraphRefBytes = 16

// DecodeGraphRef reads what Append wrote at the beginning of b, which is long enough.
func DecodeGraphRef(b []byte) GraphRef {
	return GraphRef{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}
}

// GraphStepKind is what a step of a graph.changed does. Numbers are append-only.
type GraphStepKind uint8

// The kinds. A step is there for each operation of a request, also where there was nothing
// left to do for it.
const (
	GraphEntitiesCreated     GraphStepKind = 1
	GraphRelationsCreated    GraphStepKind = 2
	GraphObservationsAdded   GraphStepKind = 3
	GraphEntitiesDeleted     GraphStepKind = 4 // with relations at either end
	GraphObservationsDeleted GraphStepKind = 5
	GraphRelationsDeleted    GraphStepKind = 6
)

// Deletes reports whether a step of the kind takes something away.
func (k GraphStepKind) Deletes() bool { return k >= GraphEntitiesDeleted }

// GraphStep is one step of the sealed part of a graph.changed: what it does to the graph as
// it was, and nothing that does not change it. It names what was there before by reference
// only, so that a name stays with the event that made it, under that event's key.
type GraphStep struct {
	Kind      GraphStepKind
	Entities  []GraphEntity   // created
	Relations []GraphRelation // created
	Added     []GraphAdded
	Ended     []GraphRef // entities, or what the kind says
	Severed   []GraphRef // relations that end with the entities
}

// GraphEntity is an entity that is created; its observations differ.
type GraphEntity struct {
	Name, Type   string
	Observations []string
}

// GraphRelation is an edge between two names.
type GraphRelation struct{ From, To, Type string }

// GraphAdded are observations that an entity gets; there may be none.
type GraphAdded struct {
	Entity   GraphRef
	Contents []string
}

// EncodeGraph returns the canonical bytes: uvarint number of steps, each u8 kind and its lists
// in the order of GraphStep, of which a kind has one or, of deleted entities, two: uvarint
// count, then the elements. Strings are uvarint length ‖ bytes.
func EncodeGraph(steps []GraphStep) []byte {
	b := binary.AppendUvarint(nil, uint64(len(steps)))
	for i := range steps {
		b = steps[i].append(b)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, all []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendString(b, s)
	}
	return b
}

func appendRefs(b []byte, refs []GraphRef) []byte {
	b = binary.AppendUvarint(b, uint64(len(refs)))
	for _, r := range refs {
		b = r.Append(b)
	}
	return b
}

func (s *GraphStep) append(b []byte) []byte {
	b = append(b, byte(s.Kind))
	switch s.Kind {
	case GraphEntitiesCreated:
		b = binary.AppendUvarint(b, uint64(len(s.Entities)))
		for _, e := range s.Entities {
			b = appendStrings(appendString(appendString(b, e.Name), e.Type), e.Observations)
		}
	case GraphRelationsCreated:
		b = binary.AppendUvarint(b, uint64(len(s.Relations)))
		for _, r := range s.Relations {
			b = appendString(appendString(appendString(b, r.From), r.To), r.Type)
		}
	case GraphObservationsAdded:
		b = binary.AppendUvarint(b, uint64(len(s.Added)))
		for _, a := range s.Added {
			b = appendStrings(a.Entity.Append(b), a.Contents)
		}
	case GraphEntitiesDeleted:
		b = appendRefs(appendRefs(b, s.Ended), s.Severed)
	default:
		b = appendRefs(b, s.Ended)
	}
	return b
}

// DecodeGraph parses what EncodeGraph wrote. The steps share no memory with b. A kind that
// this program does not know is ErrNewer.
func DecodeGraph(b []byte) ([]GraphStep, error) {
	r := &reader{b: b}
	var steps []GraphStep
	for n := r.count(2, "graph steps"); n > 0 && r.err == nil; n-- {
		s := GraphStep{Kind: GraphStepKind(r.u8("graph step"))}
		if s.Kind > GraphRelationsDeleted {
			return nil, fmt.Errorf("graph step %d: %w", s.Kind, ErrNewer)
		}
		s.read(r)
		steps = append(steps, s)
	}
	return steps, r.end("graph")
}

func (s *GraphStep) read(r *reader) {
	const what = "graph step"
	switch s.Kind {
	case GraphEntitiesCreated:
		for n := r.count(3, what); n > 0 && r.err == nil; n-- {
			s.Entities = append(s.Entities, GraphEntity{r.string(what), r.string(what), r.strings(what)})
		}
	case GraphRelationsCreated:
		for n := r.count(3, what); n > 0 && r.err == nil; n-- {
			s.Relations = append(s.Relations, GraphRelation{r.string(what), r.string(what), r.string(what)})
		}
	case GraphObservationsAdded:
		for n := r.count(GraphRefBytes+1, what); n > 0 && r.err == nil; n-- {
			s.Added = append(s.Added, GraphAdded{r.graphRef(what), r.strings(what)})
		}
	case GraphEntitiesDeleted:
		s.Ended, s.Severed = r.graphRefs(what), r.graphRefs(what)
	case GraphObservationsDeleted, GraphRelationsDeleted:
		s.Ended = r.graphRefs(what)
	default:
		r.fail(what)
	}
}

// count reads how many elements follow, each of at least so many bytes.
func (r *reader) count(least int, what string) int {
	n := r.uvarint(what)
	if n > uint64(len(r.b)/least) {
		r.fail(what)
		return 0
	}
	return int(n)
}

func (r *reader) string(what string) string { return string(r.take(r.count(1, what), what)) }

func (r *reader) strings(what string) (all []string) {
	for n := r.count(1, what); n > 0 && r.err == nil; n-- {
		all = append(all, r.string(what))
	}
	return all
}

func (r *reader) graphRef(what string) GraphRef {
	b := r.take(GraphRefBytes, what)
	if b == nil {
		return GraphRef{}
	}
	return DecodeGraphRef(b)
}

func (r *reader) graphRefs(what string) (refs []GraphRef) {
	for n := r.count(GraphRefBytes, what); n > 0 && r.err == nil; n-- {
		refs = append(refs, r.graphRef(what))
	}
	return refs
}
