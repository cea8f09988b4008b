package projections

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// Records: versions of memories, their lifetimes, names and idempotency.

// captured makes a record, unless the client's id was used before. A uri that
// another record has is refused at admission. Here, where only a race between
// two leaders can bring one, both have it and the later one is found: what was
// sealed under a key that is gone has no say in the fate of other records.
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
	if res, done, err := t.usedBefore(ev); done || err != nil {
		return res, err
	}
	if head, err := t.get(headKey(ev.Record)); err != nil || head != nil {
		return EventResult{Outcome: OutcomeDuplicate, Record: ev.Record}, err
	}
	doc, err := t.newDoc(ev, p, ev.Record, 1)
	if err != nil {
		return EventResult{}, err
	}
	head := Head{Partition: p.ID, Doc: doc, Versions: 1, Living: true, URI: ev.uri()}
	if err := t.addFact(ev.Namespace, headKey(ev.Record), head.encode()); err != nil {
		return EventResult{}, err
	}
	t.namespace(ev.Namespace).records++
	return EventResult{Outcome: OutcomeCreated, Record: ev.Record, Version: 1}, t.useKey(ev, ev.Record)
}

// usedBefore decides whether the client's id was used before: by the same request
// (duplicate) or by another one (conflict).
func (t *tx) usedBefore(ev *eventContext) (EventResult, bool, error) {
	if ev.ClientID.IsZero() {
		return EventResult{}, false, nil
	}
	raw, err := t.get(idemKey(ev.Namespace, ev.ClientID, ev.Agent))
	if err != nil || raw == nil {
		return EventResult{}, false, err
	}
	used, err := decodeUsedKey(raw)
	if err != nil {
		return EventResult{}, false, err
	}
	res := EventResult{Outcome: OutcomeConflict, Record: used.Record}
	if res.Position, err = t.original(used.At); err != nil || used.Body != ev.Body {
		return res, true, err
	}
	res.Outcome = OutcomeDuplicate
	made, err := t.get(historyKey(used.Record, used.At))
	if len(made) == 4 {
		res.Version = binary.BigEndian.Uint32(made)
	}
	return res, true, err
}

// useKey notes what the client's id was used for, for ever.
func (t *tx) useKey(ev *eventContext, record events.ID) error {
	if ev.ClientID.IsZero() {
		return nil
	}
	used := UsedKey{Record: record, At: ev.at, Body: ev.Body}
	return t.addFact(ev.Namespace, idemKey(ev.Namespace, ev.ClientID, ev.Agent), used.encode())
}

// uri is the path that the event gives its record; empty if it gives none, or
// if the key of its payload is gone.
func (ev *eventContext) uri() string {
	if ev.contribution == nil {
		return ""
	}
	return ev.contribution.URI
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
		applied.Conversation = c.Conversation()
	}
	t.out.Docs = append(t.out.Docs, applied)
	if c == nil {
		return doc, nil
	}
	if c.URI != "" {
		if err := t.addFact(p.Namespace, uriKey(p.ID, c.URI, doc), record[:]); err != nil {
			return 0, err
		}
	}
	if err := t.addAttributes(ev, p, doc, c); err != nil {
		return 0, err
	}
	if err := t.addTerms(p, doc, c); err != nil {
		return 0, err
	}
	return doc, t.newVectors(p, doc, record, c)
}

// addTerms gathers a document's terms; they are written once a transaction.
func (t *tx) addTerms(p *Partition, doc uint32, c *Contribution) error {
	d := text.Doc{ID: doc, Terms: c.Terms, Lengths: c.Lengths}
	row, err := text.EncodeDoc(nil, d)
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
	if res, done, err := t.usedBefore(ev); done || err != nil {
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
	t.touched[p.ID] = p
	if err := t.tombstone(ev, p, h); err != nil {
		return res, err
	}
	next := Head{Partition: p.ID, Versions: h.Versions + 1, Living: true, URI: ev.uri()}
	if next.Doc, err = t.newDoc(ev, p, ev.Target, next.Versions); err != nil {
		return res, err
	}
	if err := t.replaceFact(p.Namespace, headKey(ev.Target), h.encode(), next.encode()); err != nil {
		return res, err
	}
	return EventResult{Outcome: OutcomeRevised, Record: ev.Target, Version: next.Versions}, t.useKey(ev, ev.Target)
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
	if err := t.tombstone(ev, p, h); err != nil {
		return EventResult{}, err
	}
	dead := h
	dead.Living = false
	if err := t.replaceFact(p.Namespace, headKey(ev.Target), h.encode(), dead.encode()); err != nil {
		return EventResult{}, err
	}
	if err := t.addFact(p.Namespace, historyKey(ev.Target, ev.at), be32(nil, 0)); err != nil {
		return EventResult{}, err
	}
	t.namespace(ev.Namespace).records--
	return EventResult{Outcome: OutcomeForgotten, Record: ev.Target, Version: h.Versions}, nil
}

// tombstone ends the life of a record's newest version: it leaves statistics and
// present answers, and its rows stay for history and as-of.
func (t *tx) tombstone(ev *eventContext, p *Partition, h Head) error {
	doc := h.Doc
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
	if h.URI != "" {
		if err := t.deleteFact(p.Namespace, uriKey(p.ID, h.URI, doc), row.Record[:]); err != nil {
			return err
		}
	}
	return t.endVectors(p, doc)
}
