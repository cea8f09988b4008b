package keyring

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/antithesishq/antithesis-sdk-go/assert"
)

// state is the whole of the machine: equal commands from an equal state lead to
// equal bytes on every node. It has no clock, no randomness, no configuration.
type state struct {
	redacted
	cursor          // of the last command
	changed uint64  // the index of the last command that changed something, or a later one that is durable; not encoded
	ended   uint64  // the index of the last command that destroyed keys
	command *secret // seals commands
	table   *table
}

// cursor is where a command stands in the order of commands. A keyring stands at
// firstCursor when it is made: what Raft counts from zero is blank.
type cursor struct{ index, term uint64 }

var firstCursor = cursor{1, 1}

func (c cursor) appendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, c.index), c.term)
}

const cursorSize = 8 + 8

// decodeCursor reads what appendTo wrote; b is long enough.
func decodeCursor(b []byte) cursor {
	return cursor{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// blank reports whether the state holds nothing and waits for a snapshot.
func (s *state) blank() bool { return s.index == 0 }

// Verdict says what became of a command.
type Verdict uint8

// Verdicts, the same on every node. Only after VerdictDone did anything change.
const (
	VerdictDone Verdict = iota
	// VerdictAgain: the command was sealed under an older command key. Make it anew.
	VerdictAgain
	// VerdictOld: a command with this index or a later one was applied before.
	VerdictOld
	VerdictNoKey          // ErrNoKey
	VerdictDestroyed      // ErrDestroyed
	VerdictNotDestroyable // ErrNotDestroyable
	// VerdictTaken: a key id in it is in use: the proposer's randomness repeats.
	VerdictTaken
	// VerdictBroken: it is no command. Every node refuses it alike.
	VerdictBroken
)

// Answer is what a command comes to.
type Answer struct {
	Verdict Verdict
	Created []KeyID // the keys that it made, in its order
}

func (a Answer) err() error {
	switch a.Verdict {
	case VerdictDone:
		return nil
	case VerdictNoKey:
		return ErrNoKey
	case VerdictDestroyed:
		return ErrDestroyed
	case VerdictNotDestroyable:
		return ErrNotDestroyable
	case VerdictTaken:
		return errRepeats
	case VerdictBroken:
		return ErrDamaged
	}
	return ErrOvertaken
}

// effect is what an accepted command changes. Nothing of it has happened yet.
type effect struct {
	Answer
	table *table  // nil: everything stays
	next  *secret // the next command key; nil: the same

	space    *NamespaceKeys
	born     []*DataKey
	combined []combination
	gone     []KeyID // keys that end, combined ones among them
	ended    NamespaceID
	endedOne bool // ended counts
	graves   []tomb
}

func refused(v Verdict) *effect { return &effect{Answer: Answer{Verdict: v}} }

// decide says what a command comes to; it changes nothing. The caller holds
// write, so that table and lookup stay as they are.
func (k *Keyring) decide(c *command) *effect {
	switch c.kind {
	case kindCreateNamespace:
		return k.decideCreate(c)
	case kindEnsureSubjects:
		return k.decideEnsure(c)
	case kindCombine:
		return k.decideCombine(c)
	case kindDestroy:
		return k.decideDestroy(c)
	case kindDestroyNamespace:
		return k.decideDestroyNamespace(c)
	}
	panic(fmt.Sprintf("keyring: command %d was decoded, but is not known", c.kind))
}

// space says whether a namespace lives.
func (l *lookup) space(ns NamespaceID) Verdict {
	names, known := l.spaces[ns]
	switch {
	case names != nil:
		return VerdictDone
	case known:
		return VerdictDestroyed
	}
	return VerdictNoKey
}

func (k *Keyring) decideCreate(c *command) *effect {
	if v := k.lookup.space(c.ns); v != VerdictNoKey {
		return refused(v) // VerdictDone: it is there
	}
	if !k.lookup.free(c.fresh) || c.fresh[0].tag != (subjectTag{}) {
		return refused(VerdictTaken)
	}
	e := &effect{table: k.table.clone(), born: k.adopt(c.ns, c.fresh)}
	index := *c.index
	e.space = newNamespaceKeys(c.ns, &index, k.macs)
	e.table.spaces = append(e.table.spaces, &space{names: e.space, keys: e.born})
	e.Created = []KeyID{c.fresh[0].id}
	return e
}

// free reports whether the ids of fresh keys are in use nowhere.
func (l *lookup) free(fresh []freshKey) bool {
	seen := make(map[KeyID]bool, len(fresh))
	for _, f := range fresh {
		if _, known := l.keys[f.id]; known || seen[f.id] || f.id.IsZero() {
			return false
		}
		seen[f.id] = true
	}
	return true
}

func (k *Keyring) adopt(ns NamespaceID, fresh []freshKey) []*DataKey {
	keys := make([]*DataKey, len(fresh))
	for i, f := range fresh {
		raw := *f.raw
		keys[i] = &DataKey{id: f.id, ns: ns, tag: f.tag, macs: k.macs, raw: &raw}
	}
	return keys
}

// decideEnsure takes the keys of those subjects that have none. A subject whose
// key was destroyed gets a new one; the namespace itself does not.
func (k *Keyring) decideEnsure(c *command) *effect {
	if v := k.lookup.space(c.ns); v != VerdictDone {
		return refused(v)
	}
	var take []freshKey
	seen := make(map[subjectTag]bool, len(c.fresh))
	for _, f := range c.fresh {
		if f.tag == (subjectTag{}) || seen[f.tag] {
			return refused(VerdictBroken)
		}
		seen[f.tag] = true
		if k.lookup.subjects[subjectRef{c.ns, f.tag}] == nil {
			take = append(take, f)
		}
	}
	if !k.lookup.free(take) {
		return refused(VerdictTaken)
	}
	if len(take) == 0 {
		return refused(VerdictDone)
	}
	e := &effect{table: k.table.clone(), born: k.adopt(c.ns, take)}
	i := e.table.find(c.ns)
	s := *e.table.spaces[i]
	// May write behind the old table's end, where it does not look.
	s.keys = append(s.keys, e.born...)
	e.table.spaces[i] = &s
	for _, d := range e.born {
		e.Created = append(e.Created, d.id)
	}
	return e
}

func (k *Keyring) decideCombine(c *command) *effect {
	for i, id := range c.ids {
		d, known := k.lookup.keys[id]
		switch {
		case d != nil && d.kind == kindData && (i == 0 || compareIDs(c.ids[i-1], id) < 0):
		case d == nil && known:
			return refused(VerdictDestroyed)
		case d == nil:
			return refused(VerdictNoKey)
		default:
			return refused(VerdictBroken)
		}
	}
	if len(c.ids) < 2 {
		return refused(VerdictBroken)
	}
	made := newCombination(slices.Clone(c.ids))
	if d, known := k.lookup.keys[made.id]; known && d == nil {
		return refused(VerdictDestroyed)
	} else if known {
		return refused(VerdictDone)
	}
	e := &effect{table: k.table.clone(), combined: []combination{made}}
	e.table.combined = append(e.table.combined, made) // as in decideEnsure
	return e
}

// decideDestroy passes over ids that are destroyed already. An id never heard
// of is remembered all the same.
func (k *Keyring) decideDestroy(c *command) *effect {
	dead := make(map[KeyID]bool, len(c.ids))
	var order []KeyID
	for _, id := range c.ids {
		d, known := k.lookup.keys[id]
		if id.IsZero() || d != nil && d.kind != kindData {
			return refused(VerdictNotDestroyable)
		}
		if !dead[id] && (!known || d != nil) {
			dead[id] = true
			order = append(order, id)
		}
	}
	if len(order) == 0 {
		return refused(VerdictDone)
	}
	e := &effect{table: k.table.clone(), next: c.next}
	ended := e.table.bury(dead, order)
	e.gone = order
	for _, made := range ended {
		e.gone = append(e.gone, made.id)
	}
	return e
}

func (k *Keyring) decideDestroyNamespace(c *command) *effect {
	if v := k.lookup.space(c.ns); v == VerdictDestroyed {
		return refused(VerdictDone)
	}
	e := &effect{table: k.table.clone(), next: c.next, ended: c.ns, endedOne: true}
	i := e.table.find(c.ns)
	if i < 0 {
		e.table.deadSpaces = append(slices.Clone(e.table.deadSpaces), c.ns)
		return e
	}
	e.graves = e.table.spaces[i].dead
	for _, d := range e.table.spaces[i].keys {
		e.gone = append(e.gone, d.id)
	}
	for _, made := range e.table.burySpace(i) {
		e.gone = append(e.gone, made.id)
	}
	return e
}

// land lets an effect be seen. The caller holds write and has made it durable.
func (k *Keyring) land(at cursor, e *effect) {
	k.mu.Lock()
	assert.Always(at.index == 0 || at.index > k.state.index, "a keyring goes forward", nil)
	k.state.cursor = at
	k.moved.wake()
	if e.table == nil {
		k.mu.Unlock()
		return
	}
	k.table, k.state.changed = e.table, at.index
	old := k.command
	if e.next != nil {
		next := *e.next
		k.command, k.state.ended = &next, at.index
	}
	if e.space != nil {
		k.lookup.spaces[e.space.id] = e.space
	}
	for _, d := range e.born {
		k.lookup.keys[d.id] = d
		k.lookup.subjects[subjectRef{d.ns, d.tag}] = d
	}
	for _, made := range e.combined {
		k.lookup.keys[made.id] = combinedKey(made, k.lookup.keys, k.macs)
	}
	dead := k.forgetLocked(e)
	k.mu.Unlock()
	if e.next != nil {
		old.wipe()
	}
	dead()
}

// forgetLocked marks keys as destroyed for readers; what it returns wipes them,
// without the lock.
func (k *Keyring) forgetLocked(e *effect) (wipe func()) {
	var gone []*DataKey
	for _, id := range e.gone {
		d := k.lookup.keys[id]
		k.lookup.keys[id] = nil
		if d == nil {
			continue
		}
		gone = append(gone, d)
		if d.kind == kindData {
			k.lookup.subjects[subjectRef{d.ns, d.tag}] = nil
		}
	}
	var names *NamespaceKeys
	if e.endedOne {
		names = k.lookup.spaces[e.ended]
		k.lookup.spaces[e.ended] = nil
		for _, grave := range e.graves {
			delete(k.lookup.subjects, subjectRef{e.ended, grave.tag})
		}
		for _, d := range gone {
			delete(k.lookup.subjects, subjectRef{d.ns, d.tag})
		}
	}
	return func() {
		for _, d := range gone {
			d.wipe(ErrDestroyed)
		}
		if names != nil {
			names.wipe()
		}
	}
}

// discard wipes the keys of an effect that did not come to pass.
func (e *effect) discard() {
	for _, d := range e.born {
		d.wipe(ErrNoKey)
	}
	if e.space != nil {
		e.space.wipe()
	}
}

// equal reports whether two keys are the same.
func (d *DataKey) equal(o *DataKey) bool {
	return d != nil && o != nil && d.kind == o.kind && d.id == o.id && d.ns == o.ns && d.tag == o.tag && bytes.Equal(d.raw[:], o.raw[:])
}
