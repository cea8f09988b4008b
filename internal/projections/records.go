package projections

import (
	"encoding/binary"
	"math"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/events"
)

// records is the projection of memories: their versions, lifetimes, paths and
// used client ids.
type records struct {
	defaults
	t *tx
}

var recordRows = declaration{
	name: "records",
	rows: []rows{
		{prefix: prefixHead, scope: ofNamespace, fact: true, key: "namespace16 record16", holds: "partition4 doc4 versions4 1 = it lives, 2 = erased, path"},
		{prefix: prefixDoc, scope: ofPartition, fact: true, key: "partition4 doc4", holds: "record16 version4 kind1 ref12 sealed8 occurred8 death12 agent"},
		{prefix: prefixHistory, scope: ofNamespace, fact: true, key: "namespace16 record16 seq8 index4", holds: "version4; 0 = forgotten"},
		{prefix: prefixURI, scope: ofPartition, fact: true, key: "partition4 length2 path doc4", holds: "record16; of several for one path, the last is found"},
		{prefix: prefixIdem, scope: ofNamespace, fact: true, key: "namespace16 client16 agent", holds: "record16 ref12 body16"},
	},
	sections: []section{{tag: sectionURI,
		append: func(c *Contribution, b []byte) []byte { return append(b, c.URI...) },
		decode: func(c *Contribution, d *decoder) {
			c.URI = string(d.rest())
			d.bad = len(c.URI) > math.MaxUint16 // what a key can hold
		}}},
}

func (r *records) declared() *declaration { return &recordRows }

// captured decides whether a record is made: not if the client's id was used
// before. A uri that another record has is refused at admission. Here, where only
// a race between two leaders can bring one, both have it and the later one is
// found: what was sealed under a key that is gone has no say in the fate of other
// records.
func (r *records) captured(ev *event) error {
	if ev.part == nil {
		return ev.is(OutcomeRejected)
	}
	if done, err := r.usedBefore(ev); done || err != nil {
		return err
	}
	ev.result.Record = ev.Record
	if head, err := r.t.seldom(headKey(ev.Namespace, ev.Record)); err != nil || head != nil {
		ev.result.Outcome = OutcomeDuplicate
		return err
	}
	ev.began = ev.version(ev.Record, 1)
	ev.result.Version = 1
	return ev.is(OutcomeCreated)
}

// version is the next version that the event makes.
func (ev *event) version(record events.ID, number uint32) *version {
	return &version{part: ev.part, doc: ev.part.NextDoc, record: record, number: number,
		row: Doc{Record: record, Version: number, Kind: ev.Kind, At: ev.at, SealedAt: ev.SealedAt, OccurredAt: ev.OccurredAt, Agent: ev.Agent}}
}

// usedBefore decides an event whose client id was used before: by the same
// request (duplicate) or by another one (conflict).
func (r *records) usedBefore(ev *event) (bool, error) {
	if ev.ClientID.IsZero() {
		return false, nil
	}
	raw, err := r.t.seldom(idemKey(ev.Namespace, ev.ClientID, ev.Agent))
	if err != nil || raw == nil {
		return false, err
	}
	used, err := decodeUsedKey(raw)
	if err != nil {
		return false, err
	}
	assert.Always(used.At.Before(ev.at), "an id that is used twice was used before", nil)
	ev.result = EventResult{Outcome: OutcomeConflict, Record: used.Record}
	ev.result.Position = r.t.original(used.At)
	if used.Body != ev.Body {
		return true, nil
	}
	assert.Reachable("an id that is in the log twice is one record", nil)
	ev.result.Outcome = OutcomeDuplicate
	made, err := r.t.get(historyKey(ev.Namespace, used.Record, used.At))
	if len(made) == 4 {
		ev.result.Version = binary.BigEndian.Uint32(made)
	}
	return true, err
}

// target finds the living record that an event is about, and its partition, which
// must be the one that the event names.
func (r *records) target(ev *event) (bool, error) {
	raw, err := r.t.get(headKey(ev.Namespace, ev.Target))
	if err != nil || raw == nil {
		return false, err
	}
	if ev.head, err = decodeHead(raw); err != nil {
		return false, err
	}
	p := r.t.partitions.get(ev.head.Partition)
	if p == nil || p.Scope != ev.Scope || p.Scope == events.ScopeAgent && p.Agent != ev.Agent || !ev.head.Living {
		return false, nil
	}
	ev.part = p
	return true, nil
}

// revised decides whether a complete new version takes the place of its base.
func (r *records) revised(ev *event) error {
	if done, err := r.usedBefore(ev); done || err != nil {
		return err
	}
	found, err := r.target(ev)
	if err != nil {
		return err
	}
	if !found {
		return ev.is(OutcomeRejected)
	}
	ev.result.Record, ev.result.Version = ev.Target, ev.head.Versions
	if ev.head.Versions != ev.BaseVersion {
		return ev.is(OutcomeConflict)
	}
	ev.result.Version++
	ev.began = ev.version(ev.Target, ev.result.Version)
	ev.ended, err = r.present(ev)
	ev.result.Outcome = OutcomeRevised
	return err
}

// forgotten decides whether a record leaves every present answer.
func (r *records) forgotten(ev *event) error {
	found, err := r.target(ev)
	if err != nil {
		return err
	}
	ev.result.Record = ev.Target
	if !found {
		return ev.is(OutcomeRejected)
	}
	ev.result.Version = ev.head.Versions
	ev.ended, err = r.present(ev)
	ev.result.Outcome = OutcomeForgotten
	return err
}

// present is the version of the target that lives.
func (r *records) present(ev *event) (*version, error) {
	raw, err := r.t.get(docKey(ev.part.ID, ev.head.Doc))
	if err != nil {
		return nil, err
	}
	row, err := decodeDoc(raw)
	return &version{part: ev.part, doc: ev.head.Doc, record: ev.Target, number: ev.head.Versions, row: row}, err
}

func (r *records) fold(ev *event) error {
	if ev.ended != nil {
		if err := r.end(ev); err != nil {
			return err
		}
	}
	if ev.note != nil {
		return r.spend(ev)
	}
	if ev.began == nil {
		return nil
	}
	if err := r.begin(ev); err != nil || ev.ClientID.IsZero() {
		return err
	}
	// The client's id is used, for ever.
	used := UsedKey{Record: ev.result.Record, At: ev.at, Body: ev.Body}
	return r.t.addFact(ev.Namespace, idemKey(ev.Namespace, ev.ClientID, ev.Agent), used.encode())
}

// spend uses the client's id of an event that an operator put in quarantine, up for good:
// no request is the same as it, so that who sends it again hears of a conflict, and does not
// stop the shard once more.
func (r *records) spend(ev *event) error {
	if ev.ClientID.IsZero() || r.t.home.of(ev.Namespace) == nil {
		return nil
	}
	key := idemKey(ev.Namespace, ev.ClientID, ev.Agent)
	if used, err := r.t.seldom(key); err != nil || used != nil {
		return err
	}
	used := UsedKey{Record: ev.Record, At: ev.at}
	if used.Record == (events.ID{}) {
		used.Record = ev.Target
	}
	return r.t.addFact(ev.Namespace, key, used.encode())
}

// begin writes the version that the event makes.
func (r *records) begin(ev *event) error {
	v, ns := ev.began, ev.Namespace
	applied := AppliedDoc{Partition: v.part.ID, Doc: v.doc, Record: v.record, Namespace: ns, OccurredAt: ev.OccurredAt, Agent: ev.Agent}
	head := Head{Partition: v.part.ID, Doc: v.doc, Versions: v.number, Living: true}
	if c := ev.contribution; c != nil {
		applied.Conversation = c.Conversation()
		head.URI = c.URI
	}
	r.t.out.Docs = append(r.t.out.Docs, applied)
	if err := r.t.addFact(ns, docKey(v.part.ID, v.doc), v.row.encode()); err != nil {
		return err
	}
	if err := r.t.addFact(ns, historyKey(ns, v.record, ev.at), be32(nil, v.number)); err != nil {
		return err
	}
	if head.URI != "" {
		if err := r.t.addFact(ns, uriKey(v.part.ID, head.URI, v.doc), v.record[:]); err != nil {
			return err
		}
	}
	if ev.ended != nil {
		return r.t.replaceFact(ns, headKey(ns, v.record), ev.head.encode(), head.encode())
	}
	return r.t.addFact(ns, headKey(ns, v.record), head.encode())
}

// end takes the version whose life ends out of present answers. Its rows stay for
// history and as-of.
func (r *records) end(ev *event) error {
	v, ns := ev.ended, ev.Namespace
	old := v.row.encode()
	v.row.Death = ev.at
	if err := r.t.replaceFact(ns, docKey(v.part.ID, v.doc), old, v.row.encode()); err != nil {
		return err
	}
	r.t.out.Deaths = append(r.t.out.Deaths, AppliedDoc{Partition: v.part.ID, Doc: v.doc, Record: v.record})
	if ev.head.URI != "" {
		if err := r.t.deleteFact(ns, uriKey(v.part.ID, ev.head.URI, v.doc), v.record[:]); err != nil {
			return err
		}
	}
	if ev.began != nil {
		return nil
	}
	dead := ev.head
	dead.Living, dead.Erased = false, ev.Type == events.TypeKeyDestroyed
	if err := r.t.replaceFact(ns, headKey(ns, v.record), ev.head.encode(), dead.encode()); err != nil {
		return err
	}
	return r.t.addFact(ns, historyKey(ns, v.record, ev.at), be32(nil, 0))
}

// erase takes a version's path out: of its record's head, and of the paths if it
// lives.
func (r *records) erase(v *version) error {
	ns := v.part.Namespace
	raw, err := r.t.get(headKey(ns, v.record))
	if err != nil || raw == nil {
		return err
	}
	h, err := decodeHead(raw)
	if err != nil || h.Partition != v.part.ID || h.Doc != v.doc || h.URI == "" {
		return err
	}
	if h.Living {
		if err := r.t.deleteFact(ns, uriKey(v.part.ID, h.URI, v.doc), v.record[:]); err != nil {
			return err
		}
	}
	h.URI = ""
	r.t.facts.remove(ns, headKey(ns, v.record), raw)
	r.t.facts.add(ns, headKey(ns, v.record), h.encode())
	return r.t.overwrite(headKey(ns, v.record), h.encode())
}
