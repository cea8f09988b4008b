package projections

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// Records: versions of memories, their lifetimes, names and idempotency.

// captured makes a record, unless the client's id is spent or the uri is taken.
func (t *tx) captured(ev *eventContext) (EventResult, error) {
	if !t.namespace(ev.Namespace).living() {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	// First of all, so that partitions are numbered alike whether or not the
	// events of a deleted namespace can still be opened.
	p, err := t.partition(ev.Namespace, ev.Scope, ev.Agent)
	if err != nil {
		return EventResult{}, err
	}
	if res, done, err := t.spent(ev); done || err != nil {
		return res, err
	}
	if taken, err := t.uriOwner(p.ID, ev.URI); err != nil || taken != (events.ID{}) {
		return EventResult{Outcome: OutcomeConflict, Record: taken}, err
	}
	if head, err := t.get(headKey(ev.Record)); err != nil || head != nil {
		return EventResult{Outcome: OutcomeDuplicate, Record: ev.Record}, err
	}
	doc, err := t.newDoc(ev, p, ev.Record, 1)
	if err != nil {
		return EventResult{}, err
	}
	head := Head{Partition: p.ID, Doc: doc, Versions: 1, Living: true, URI: ev.URI}
	if err := t.addFact(ev.Namespace, headKey(ev.Record), head.encode()); err != nil {
		return EventResult{}, err
	}
	t.namespace(ev.Namespace).records++
	if err := t.takeURI(p, ev.URI, ev.Record); err != nil {
		return EventResult{}, err
	}
	return EventResult{Outcome: OutcomeCreated, Record: ev.Record, Version: 1}, t.spend(ev, ev.Record)
}

// spent decides whether the client's id was used before: by the same request
// (duplicate) or by another one (conflict).
func (t *tx) spent(ev *eventContext) (EventResult, bool, error) {
	if ev.ClientID.IsZero() {
		return EventResult{}, false, nil
	}
	raw, err := t.get(idemKey(ev.Namespace, ev.ClientID, ev.Agent))
	if err != nil || raw == nil {
		return EventResult{}, false, err
	}
	s, err := decodeSpent(raw)
	if err != nil {
		return EventResult{}, false, err
	}
	res := EventResult{Outcome: OutcomeConflict, Record: s.Record}
	if res.Position, err = t.original(s.At); err != nil || s.Body != ev.Body {
		return res, true, err
	}
	res.Outcome = OutcomeDuplicate
	made, err := t.get(historyKey(s.Record, s.At))
	if len(made) == 4 {
		res.Version = binary.BigEndian.Uint32(made)
	}
	return res, true, err
}

func (t *tx) spend(ev *eventContext, record events.ID) error {
	if ev.ClientID.IsZero() {
		return nil
	}
	s := Spent{Record: record, At: ev.at, Body: ev.Body}
	return t.addFact(ev.Namespace, idemKey(ev.Namespace, ev.ClientID, ev.Agent), s.encode())
}

func (t *tx) uriOwner(part uint32, uri events.MAC) (events.ID, error) {
	if uri.IsZero() {
		return events.ID{}, nil
	}
	raw, err := t.get(uriKey(part, uri))
	if err != nil || len(raw) != 16 {
		return events.ID{}, err
	}
	return events.ID(raw), nil
}

func (t *tx) takeURI(p *Partition, uri events.MAC, record events.ID) error {
	if uri.IsZero() {
		return nil
	}
	return t.addFact(p.Namespace, uriKey(p.ID, uri), record[:])
}

func (t *tx) freeURI(p *Partition, uri events.MAC, record events.ID) error {
	if uri.IsZero() {
		return nil
	}
	return t.deleteFact(p.Namespace, uriKey(p.ID, uri), record[:])
}

// newDoc writes one record version and everything that is indexed for it.
func (t *tx) newDoc(ev *eventContext, p *Partition, record events.ID, version uint32) (uint32, error) {
	doc := p.NextDoc
	p.NextDoc++
	row := Doc{Record: record, Version: version, Kind: ev.Kind, At: ev.at, SealedAt: ev.SealedAt, OccurredAt: ev.OccurredAt, Agent: ev.Agent}
	if err := t.addFact(p.Namespace, docKey(p.ID, doc), row.encode()); err != nil {
		return 0, err
	}
	if err := t.addFact(p.Namespace, historyKey(record, ev.at), be32(nil, version)); err != nil {
		return 0, err
	}
	if err := t.b.Set(timeKey(p.ID, ev.OccurredAt, doc), nil, nil); err != nil {
		return 0, err
	}
	c := ev.contribution
	applied := AppliedDoc{Partition: p.ID, Doc: doc, Record: record, Namespace: ev.Namespace, OccurredAt: ev.OccurredAt, Agent: ev.Agent}
	if c != nil {
		applied.Conversation = c.Conversation
	}
	t.out.Docs = append(t.out.Docs, applied)
	if c == nil {
		return doc, nil
	}
	if err := t.addAttributes(p, doc, ev.OccurredAt, c); err != nil {
		return 0, err
	}
	if err := t.addTerms(p, doc, c); err != nil {
		return 0, err
	}
	return doc, t.newVectors(ev, p, doc, record, c)
}

// addTerms gathers a document's terms; they are written once a transaction.
func (t *tx) addTerms(p *Partition, doc uint32, c *Contribution) error {
	d := text.Doc{ID: doc, Terms: c.Terms, Lengths: c.Lengths}
	row, err := text.EncodeForward(nil, d)
	if err != nil {
		return err
	}
	d.Row = row
	t.docs[p.ID] = append(t.docs[p.ID], d)
	t.noteFact(p.Namespace, be32(be32([]byte{text.PrefixForward}, p.ID), doc), row)
	return nil
}

// target finds the living record that a revise or forget is about. Its
// partition must be the one the event names.
func (t *tx) target(ev *eventContext) (Head, *Partition, error) {
	raw, err := t.get(headKey(ev.Target))
	if err != nil || raw == nil {
		return Head{}, nil, err
	}
	h, err := decodeHead(raw)
	if err != nil {
		return Head{}, nil, err
	}
	p := t.g.parts[h.Partition]
	if p == nil || p.Namespace != ev.Namespace || p.Scope != ev.Scope || p.Scope == events.ScopeAgent && p.Agent != ev.Agent || !h.Living {
		return Head{}, nil, nil
	}
	return h, p, nil
}

// revised puts a complete new version in the place of its base.
func (t *tx) revised(ev *eventContext) (EventResult, error) {
	if !t.namespace(ev.Namespace).living() {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	if res, done, err := t.spent(ev); done || err != nil {
		return res, err
	}
	h, p, err := t.target(ev)
	if err != nil {
		return EventResult{}, err
	}
	if p == nil {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	res := EventResult{Outcome: OutcomeConflict, Record: ev.Target, Version: h.Versions}
	if h.Versions != ev.BaseVersion {
		return res, nil
	}
	if ev.URI != h.URI {
		if taken, err := t.uriOwner(p.ID, ev.URI); err != nil || taken != (events.ID{}) {
			return res, err
		}
	}
	t.touched[p.ID] = p
	if err := t.bury(ev, p, h.Doc); err != nil {
		return res, err
	}
	next := Head{Partition: p.ID, Versions: h.Versions + 1, Living: true, URI: ev.URI}
	if next.Doc, err = t.newDoc(ev, p, ev.Target, next.Versions); err != nil {
		return res, err
	}
	if err := t.replaceFact(p.Namespace, headKey(ev.Target), h.encode(), next.encode()); err != nil {
		return res, err
	}
	if ev.URI != h.URI {
		if err := t.freeURI(p, h.URI, ev.Target); err != nil {
			return res, err
		}
		if err := t.takeURI(p, ev.URI, ev.Target); err != nil {
			return res, err
		}
	}
	return EventResult{Outcome: OutcomeRevised, Record: ev.Target, Version: next.Versions}, t.spend(ev, ev.Target)
}

// forgotten takes a record out of every present answer.
func (t *tx) forgotten(ev *eventContext) (EventResult, error) {
	h, p, err := t.target(ev)
	if err != nil {
		return EventResult{}, err
	}
	if p == nil {
		return EventResult{Outcome: OutcomeRejected, Record: ev.Target}, nil
	}
	if err := t.bury(ev, p, h.Doc); err != nil {
		return EventResult{}, err
	}
	dead := h
	dead.Living = false
	if err := t.replaceFact(p.Namespace, headKey(ev.Target), h.encode(), dead.encode()); err != nil {
		return EventResult{}, err
	}
	if err := t.freeURI(p, h.URI, ev.Target); err != nil {
		return EventResult{}, err
	}
	if err := t.addFact(p.Namespace, historyKey(ev.Target, ev.at), be32(nil, 0)); err != nil {
		return EventResult{}, err
	}
	t.namespace(ev.Namespace).records--
	return EventResult{Outcome: OutcomeForgotten, Record: ev.Target, Version: h.Versions}, nil
}

// bury ends a version's life: it leaves statistics and present answers, and
// its rows stay for history and as-of.
func (t *tx) bury(ev *eventContext, p *Partition, doc uint32) error {
	key := docKey(p.ID, doc)
	old, err := t.get(key)
	if err != nil {
		return err
	}
	row, err := decodeDoc(old)
	if err != nil {
		return err
	}
	row.Death = ev.at
	if err := t.replaceFact(p.Namespace, key, old, row.encode()); err != nil {
		return err
	}
	if err := t.b.Set(deathKey(p.ID, ev.at, doc), nil, nil); err != nil {
		return err
	}
	if err := t.flushDocs(p.ID); err != nil {
		return err
	}
	// A version whose key is gone contributed no terms.
	if err := t.g.terms.Remove(t.b, p.ID, doc); err != nil && !errors.Is(err, text.ErrNotFound) {
		return err
	}
	if t.dead[p.ID] == nil {
		t.dead[p.ID] = roaring.New()
	}
	t.dead[p.ID].Add(doc)
	t.out.Deaths = append(t.out.Deaths, AppliedDoc{Partition: p.ID, Doc: doc, Record: row.Record})
	if err := t.buryVectors(p, doc); err != nil {
		return err
	}
	return t.dropPending(p, doc)
}
