package projections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// Entry is a namespace in the directory. Its identity is its id; the name is an
// alias that is free again once it is deleted. What is left of it then is this
// row: its keys are destroyed, so a replay that can no longer open its events must
// come to the same state.
type Entry struct {
	ID      events.ID `json:"id"`
	Name    string    `json:"name"`
	Shard   uint16    `json:"shard"`             // where its home is
	Created int64     `json:"created"`           // sealed_at of its creation, ns
	Deleted bool      `json:"deleted,omitempty"` // only this row is left
	// Placed is the event that placed it on another shard, whose settings its home
	// begins with; zero where its home is on this one.
	Placed Ref `json:"placed,omitzero"`
}

// Here reports whether the home of the namespace is on the shard of a view.
func (e *Entry) Here(v *View) bool { return e.Shard == v.Cursor().Shard }

func (e *Entry) encode() []byte { return encodeJSON(e) }

func decodeEntry(b []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("directory row: %w", events.ErrMalformed)
	}
	return e, nil
}

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("row: %v", err)) // plain data always encodes
	}
	return b
}

// directory is the projection that says which namespaces there are, and on which
// shard. Shard 0 holds all of it; another shard holds the entries of the namespaces
// that live there, as they were made and deleted there. A read that resolves a name asks
// it; the fold of a memory asks home.
type directory struct {
	defaults
	t       *tx
	names   changes[string, events.ID]
	entries changes[events.ID, Entry]
}

var directoryRows = declaration{
	name: "directory",
	rows: []rows{
		{prefix: prefixEntry, fact: true, key: "namespace16", holds: `JSON {"id","name","shard","created","deleted"?,"placed"?}`},
		{prefix: prefixName, key: "name", holds: "namespace16, while it lives"},
	},
	load: func(db *storage.DB, m *memory) error {
		entries, names := map[events.ID]*Entry{}, map[string]*events.ID{}
		err := eachRow(db, []byte{prefixEntry}, func(_, value []byte) error {
			e, err := decodeEntry(value)
			entries[e.ID] = &e
			if !e.Deleted {
				names[e.Name] = &e.ID
			}
			return err
		})
		m.entries, m.names = m.entries.with(entries), m.names.with(names)
		return err
	},
}

func (d *directory) declared() *declaration { return &directoryRows }

// created decides whether a namespace can be made.
func (d *directory) created(ev *event) error {
	if d.names.get(ev.Name) != nil || d.entries.get(ev.Namespace) != nil {
		return ev.is(OutcomeConflict)
	}
	return ev.is(OutcomeApplied)
}

// placed decides whether a namespace can be placed on another shard.
func (d *directory) placed(ev *event) error {
	if d.t.cursor.Shard != 0 || ev.Home == 0 {
		return ev.is(OutcomeRejected)
	}
	return d.created(ev)
}

// deleted decides whether a namespace can end.
func (d *directory) deleted(ev *event) error {
	if e := d.entries.get(ev.Namespace); e == nil || e.Deleted {
		return ev.is(OutcomeRejected)
	}
	return ev.is(OutcomeApplied)
}

func (d *directory) fold(ev *event) error {
	switch {
	case ev.took(events.TypeNamespacePlaced):
		*d.entries.edit(ev.Namespace) = Entry{ID: ev.Namespace, Name: ev.Name, Shard: ev.Home, Created: ev.SealedAt, Placed: ev.at}
		*d.names.edit(ev.Name) = ev.Namespace
		if err := d.t.b.Set(nameKey(ev.Name), ev.Namespace[:], nil); err != nil {
			return err
		}
	case ev.took(events.TypeNamespaceCreated):
		*d.entries.edit(ev.Namespace) = Entry{ID: ev.Namespace, Name: ev.Name, Shard: d.t.cursor.Shard, Created: ev.SealedAt}
		*d.names.edit(ev.Name) = ev.Namespace
		if err := d.t.b.Set(nameKey(ev.Name), ev.Namespace[:], nil); err != nil {
			return err
		}
	case ev.took(events.TypeNamespaceDeleted):
		e := d.entries.edit(ev.Namespace)
		e.Deleted = true
		d.names.remove(e.Name)
		if err := d.t.b.Delete(nameKey(e.Name), nil); err != nil {
			return err
		}
	default:
		return nil
	}
	return d.t.addFact(ev.Namespace, entryKey(ev.Namespace), d.entries.get(ev.Namespace).encode())
}

func (d *directory) publish(m *memory) { m.names, m.entries = d.names.after(), d.entries.after() }

// directoryReads are the reads of the directory.
type directoryReads struct{ p *published }

// Directory calls f with each entry, also those of deleted namespaces, in no order.
func (v directoryReads) Directory(f func(e *Entry)) {
	v.p.entries.each(func(_ events.ID, e *Entry) { f(e) })
}

// DeletedNamespaces lists the namespaces that lived on this shard and of which only a
// tombstone is left.
func (v directoryReads) DeletedNamespaces() []events.ID {
	var out []events.ID
	v.p.entries.each(func(id events.ID, e *Entry) {
		if e.Deleted && e.Shard == v.p.cursor.Shard {
			out = append(out, id)
		}
	})
	slices.SortFunc(out, func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) })
	return out
}
