package keyring

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"slices"
)

// table is everything the image holds, in the order it was made. Only the
// writer touches it: a write builds a changed copy (sharing what did not
// change), saves it, and then lets it take effect.
type table struct {
	cluster    *DataKey
	spaces     []*space
	combined   []combination
	deadSpaces []NamespaceID
	deadKeys   []KeyID // destroyed, and of no namespace that still lives
}

// space is one living namespace.
type space struct {
	names *NamespaceKeys
	keys  []*DataKey // its own has the zero tag; it may have been destroyed
	dead  []tomb
}

// tomb remembers a destroyed key and, for as long as the namespace lives, whose it was.
type tomb struct {
	id  KeyID
	tag subjectTag
}

// combination is how a combined key is made; the key itself is not stored.
type combination struct {
	id      KeyID
	members []KeyID // two or more, ascending, none of them combined
}

func newCombination(members []KeyID) combination {
	h := sha256.New()
	h.Write([]byte(labelPrefix + "combined id"))
	for _, id := range members {
		h.Write(id[:])
	}
	return combination{id: KeyID(h.Sum(nil)[:16]), members: members}
}

// combineRaw is HKDF(secret: the members' keys in order of their ids, info:
// label ‖ the ids). The caller sees to it that no member is wiped meanwhile.
func combineRaw(members []*DataKey) *secret {
	ikm := make([]byte, 0, len(members)*len(secret{}))
	info := []byte(labelPrefix + "combined")
	for _, d := range members {
		ikm = append(ikm, d.raw[:]...)
		info = append(info, d.id[:]...)
	}
	defer clear(ikm)
	out, err := hkdf.Key(sha256.New, ikm, nil, string(info), len(secret{}))
	if err != nil {
		panic("keyring: 32 bytes of HKDF refused: " + err.Error())
	}
	raw := secret(out)
	clear(out)
	return &raw
}

// wipe ends a table that no keyring took over.
func (t *table) wipe() {
	t.cluster.wipe(ErrClosed)
	for _, s := range t.spaces {
		s.names.wipe()
		for _, d := range s.keys {
			d.wipe(ErrClosed)
		}
	}
}

func compareIDs(a, b KeyID) int { return bytes.Compare(a[:], b[:]) }

// clone copies what a write may change; spaces are replaced, never changed.
func (t *table) clone() *table {
	return &table{
		cluster:    t.cluster,
		spaces:     slices.Clone(t.spaces),
		combined:   t.combined,
		deadSpaces: t.deadSpaces,
		deadKeys:   t.deadKeys,
	}
}

func (t *table) find(ns NamespaceID) int {
	return slices.IndexFunc(t.spaces, func(s *space) bool { return s.names.id == ns })
}

// bury takes the keys in dead out of the copy t: of their namespaces, and of
// every combination with one of them. Ids that are nowhere are remembered too.
// It returns the combinations it ended.
func (t *table) bury(dead map[KeyID]bool, order []KeyID) []combination {
	known := make(map[KeyID]bool, len(dead))
	for i, s := range t.spaces {
		if !slices.ContainsFunc(s.keys, func(d *DataKey) bool { return dead[d.id] }) {
			continue
		}
		next := &space{names: s.names, dead: slices.Clone(s.dead)}
		for _, d := range s.keys {
			if !dead[d.id] {
				next.keys = append(next.keys, d)
				continue
			}
			known[d.id] = true
			next.dead = append(next.dead, tomb{id: d.id, tag: d.tag})
		}
		t.spaces[i] = next
	}
	t.deadKeys = slices.Clone(t.deadKeys)
	for _, id := range order {
		if !known[id] {
			known[id] = true
			t.deadKeys = append(t.deadKeys, id)
		}
	}
	return t.buryCombined(dead)
}

func (t *table) buryCombined(dead map[KeyID]bool) (ended []combination) {
	var kept []combination
	for _, c := range t.combined {
		if slices.ContainsFunc(c.members, func(id KeyID) bool { return dead[id] }) {
			ended = append(ended, c)
			t.deadKeys = append(t.deadKeys, c.id)
			continue
		}
		kept = append(kept, c)
	}
	t.combined = kept
	return ended
}

// burySpace takes the i-th namespace out of the copy t with all its keys, and
// returns the combinations that this ended.
func (t *table) burySpace(i int) []combination {
	s := t.spaces[i]
	t.spaces = slices.Delete(t.spaces, i, i+1)
	t.deadSpaces = append(slices.Clone(t.deadSpaces), s.names.id)
	t.deadKeys = slices.Clone(t.deadKeys)
	dead := make(map[KeyID]bool, len(s.keys))
	for _, d := range s.keys {
		dead[d.id] = true
		t.deadKeys = append(t.deadKeys, d.id)
	}
	for _, grave := range s.dead {
		t.deadKeys = append(t.deadKeys, grave.id)
	}
	return t.buryCombined(dead)
}
