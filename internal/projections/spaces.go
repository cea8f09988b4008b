package projections

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"mneme/internal/events"
)

// Spaces: which vector spaces a namespace has, and what is in each. One is
// current; one may be building beside it; those it had before are kept until an
// event drops them. The fold knows spaces by their keys only.

// MarshalText gives the key its 16 hexadecimal digits.
func (k SpaceKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText parses what MarshalText gave.
func (k *SpaceKey) UnmarshalText(b []byte) error {
	if len(b) != 2*len(k) {
		return fmt.Errorf("space key: %w", events.ErrMalformed)
	}
	if _, err := hex.Decode(k[:], b); err != nil {
		return fmt.Errorf("space key: %w", events.ErrMalformed)
	}
	return nil
}

// IsZero reports whether the key stands for no space.
func (k SpaceKey) IsZero() bool { return k == SpaceKey{} }

// KeptSpace is a space that its namespace had before.
type KeptSpace struct {
	Space SpaceKey `json:"space"`
	Since int64    `json:"since"` // sealed_at of the switch away from it, ns
}

// spaceTotals is what a namespace has in one space.
type spaceTotals struct {
	living  uint64    // living versions with vectors in it
	pending uint64    // living versions that wait for theirs, since it is current or being built
	hash    StateHash // sum over its vector rows, so that dropping it costs no scan
}

func (s *spaceTotals) encode() []byte {
	return append(be64(be64(nil, s.living), s.pending), s.hash.encode()...)
}

func decodeSpaceTotals(b []byte) (*spaceTotals, error) {
	if len(b) != 48 {
		return nil, fmt.Errorf("space totals row: %w", events.ErrMalformed)
	}
	return &spaceTotals{living: binary.BigEndian.Uint64(b), pending: binary.BigEndian.Uint64(b[8:]), hash: decodeStateHash(b[16:])}, nil
}

// knows reports whether vectors of the space have a place in the namespace.
func (r *NamespaceRow) knows(space SpaceKey) bool {
	return !space.IsZero() && (space == r.Space || space == r.Next || r.keeps(space))
}

func (r *NamespaceRow) keeps(space SpaceKey) bool {
	return slices.ContainsFunc(r.Kept, func(k KeptSpace) bool { return k.Space == space })
}

func (r *NamespaceRow) forgetKept(space SpaceKey) {
	r.Kept = slices.DeleteFunc(slices.Clone(r.Kept), func(k KeptSpace) bool { return k.Space == space })
}

// totals returns what the namespace has in a space, making it at first use.
func (n *nsState) totals(space SpaceKey) *spaceTotals {
	s := n.spaces[space]
	if s == nil {
		s = &spaceTotals{}
		n.spaces[space] = s
	}
	return s
}

// pending counts the versions that wait for vectors in the current space.
func (n *nsState) pending() uint64 {
	if s := n.spaces[n.row.Space]; s != nil {
		return s.pending
	}
	return 0
}

// changeSpaces runs change on the row of the event's namespace; a change that
// takes no effect says which outcome that is.
func (t *tx) changeSpaces(ev *eventContext, change func(n *nsState, space SpaceKey) (Outcome, error)) (EventResult, error) {
	n := t.namespace(ev.Namespace)
	if !n.living() || ev.contribution == nil || ev.contribution.Space.IsZero() {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	old := n.row.encode()
	outcome, err := change(n, ev.contribution.Space)
	if err != nil || outcome != OutcomeApplied {
		return EventResult{Outcome: outcome}, err
	}
	n.row.Settings = append(n.row.Settings[:len(n.row.Settings):len(n.row.Settings)], ev.at)
	return EventResult{Outcome: outcome}, t.replaceFact(ev.Namespace, namespaceKey(ev.Namespace), old, n.row.encode())
}

// spaceBuilding begins to fill a space beside the current one: from here on new
// versions get vectors in both. A kept space is caught up.
func (t *tx) spaceBuilding(ev *eventContext) (EventResult, error) {
	return t.changeSpaces(ev, func(n *nsState, space SpaceKey) (Outcome, error) {
		switch {
		case space == n.row.Space || space == n.row.Next:
			return OutcomeDuplicate, nil
		case !n.row.Next.IsZero():
			return OutcomeConflict, nil
		}
		n.row.Next = space
		n.row.forgetKept(space)
		return OutcomeApplied, nil
	})
}

// spaceSwitched makes the space that was building the current one. Nothing is
// written about the versions that still wait for vectors in it. Those that wait
// in the space before are forgotten: it is not filled any more.
func (t *tx) spaceSwitched(ev *eventContext) (EventResult, error) {
	return t.changeSpaces(ev, func(n *nsState, space SpaceKey) (Outcome, error) {
		if space != n.row.Next {
			return OutcomeRejected, nil
		}
		if old := n.row.Space; !old.IsZero() {
			n.row.Kept = append(slices.Clone(n.row.Kept), KeptSpace{old, ev.SealedAt})
			n.totals(old).pending = 0
			if err := t.dropRange(pendingPrefix(ev.Namespace, old)); err != nil {
				return OutcomeNone, err
			}
		}
		n.row.Space, n.row.Next = space, SpaceKey{}
		return OutcomeApplied, nil
	})
}

// spaceDropped removes a kept space, or the one being built, with its vectors.
func (t *tx) spaceDropped(ev *eventContext) (EventResult, error) {
	return t.changeSpaces(ev, func(n *nsState, space SpaceKey) (Outcome, error) {
		switch {
		case space == n.row.Next:
			n.row.Next = SpaceKey{}
		case n.row.keeps(space):
			n.row.forgetKept(space)
		default:
			return OutcomeRejected, nil
		}
		return OutcomeApplied, t.dropSpace(ev.Namespace, n, space)
	})
}

// dropSpace deletes the vectors of a namespace in one space. Its numbers begin
// at 0 again, should it ever be built anew.
func (t *tx) dropSpace(ns events.ID, n *nsState, space SpaceKey) error {
	for _, p := range t.g.parts {
		if p.Namespace != ns {
			continue
		}
		for _, prefix := range [][]byte{vectorPrefix(p.ID, space), docVectorsPrefix(p.ID, space), nextVectorKey(p.ID, space)} {
			if err := t.dropRange(prefix); err != nil {
				return err
			}
		}
		delete(t.nextVec, string(nextVectorKey(p.ID, space)))
		t.out.Vectors = slices.DeleteFunc(t.out.Vectors, func(v AppliedVector) bool { return v.Partition == p.ID && v.Space == space })
	}
	if s := n.spaces[space]; s != nil {
		n.hash = n.hash.Sub(s.hash)
		delete(n.spaces, space)
	}
	t.out.DroppedSpaces = append(t.out.DroppedSpaces, DroppedSpace{ns, space})
	if err := t.dropRange(pendingPrefix(ns, space)); err != nil {
		return err
	}
	return t.b.Delete(spaceTotalsKey(ns, space), nil)
}

// DroppedSpace is a space whose vectors are gone from a namespace.
type DroppedSpace struct {
	Namespace events.ID
	Space     SpaceKey
}

// SpaceRecords is the number of a namespace's living records that have vectors
// in a space.
func (v *View) SpaceRecords(ns events.ID, space SpaceKey) (uint64, error) {
	raw, err := v.get(spaceTotalsKey(ns, space))
	if err != nil || raw == nil {
		return 0, err
	}
	s, err := decodeSpaceTotals(raw)
	if err != nil {
		return 0, err
	}
	return s.living, nil
}

// Lacking lists up to limit living versions of a partition, from a DocID on,
// that have no vectors in a space. next is where to go on; done says that the
// end was reached.
func (v *View) Lacking(p Partition, space SpaceKey, from uint32, limit int) (docs []PendingDoc, next uint32, done bool, err error) {
	has, err := v.snap.NewIter(prefixOptions(docVectorsPrefix(p.ID, space)))
	if err != nil {
		return nil, from, false, err
	}
	defer has.Close()
	it, err := v.snap.NewIter(prefixOptions(be32([]byte{prefixDoc}, p.ID)))
	if err != nil {
		return nil, from, false, err
	}
	defer it.Close()
	more := has.SeekGE(docVectorsKey(p.ID, space, from))
	next = from
	for ok := it.SeekGE(docKey(p.ID, from)); ok; ok = it.Next() {
		doc := binary.BigEndian.Uint32(it.Key()[5:])
		for more && binary.BigEndian.Uint32(has.Key()[13:]) < doc {
			more = has.Next()
		}
		if more && binary.BigEndian.Uint32(has.Key()[13:]) == doc {
			next = doc + 1
			continue
		}
		if len(docs) == limit {
			return docs, next, false, nil
		}
		next = doc + 1
		d, err := decodeDoc(it.Value())
		if err != nil {
			return nil, from, false, err
		}
		if d.Living() {
			docs = append(docs, PendingDoc{p.ID, doc, d.Record})
		}
	}
	return docs, next, true, errors.Join(it.Error(), has.Error())
}
