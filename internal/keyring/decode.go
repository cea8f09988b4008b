package keyring

import (
	"encoding/binary"
	"fmt"
)

// tableReader reads the opened table. The first shortage sticks; what follows it reads as zeros.
type tableReader struct {
	rest  []byte
	short bool
}

func (r *tableReader) take(n int) []byte {
	if len(r.rest) < n {
		r.rest, r.short = nil, true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *tableReader) id() [16]byte { return [16]byte(r.take(16)) }

func (r *tableReader) secret() *secret {
	s := secret(r.take(len(secret{})))
	return &s
}

// count reads how many entries of at least size bytes follow, and refuses more
// than there is room for, so that no count makes us allocate.
func (r *tableReader) count(size int) int {
	n := uint64(binary.BigEndian.Uint32(r.take(4)))
	if n > uint64(len(r.rest)/size) {
		r.rest, r.short = nil, true
		return 0
	}
	return int(n)
}

// decodeTable reads what table.encode wrote; it keeps no part of plain. Every id
// may occur once. Errors: ErrDamaged.
func decodeTable(plain []byte, macs *macPool) (*table, error) {
	r := &tableReader{rest: plain}
	t := &table{cluster: &DataKey{kind: kindCluster, macs: macs}}
	t.cluster.id, t.cluster.raw = r.id(), r.secret()
	for range r.count(48 + 8) {
		t.spaces = append(t.spaces, r.space(macs))
	}
	for range r.count(4) {
		members := make([]KeyID, r.count(16))
		for i := range members {
			members[i] = r.id()
		}
		t.combined = append(t.combined, newCombination(members))
	}
	for range r.count(16) {
		t.deadSpaces = append(t.deadSpaces, r.id())
	}
	for range r.count(16) {
		t.deadKeys = append(t.deadKeys, r.id())
	}
	if r.short || len(r.rest) != 0 {
		return nil, fmt.Errorf("%w: table of %d bytes ends wrongly", ErrDamaged, len(plain))
	}
	return t, t.check()
}

func (r *tableReader) space(macs *macPool) *space {
	id := r.id()
	s := &space{names: newNamespaceKeys(id, r.secret(), macs)}
	s.keys = make([]*DataKey, r.count(64))
	for i := range s.keys {
		d := &DataKey{ns: id, macs: macs}
		d.id, d.tag, d.raw = r.id(), r.id(), r.secret()
		s.keys[i] = d
	}
	s.dead = make([]tomb, r.count(32))
	for i := range s.dead {
		s.dead[i] = tomb{id: r.id(), tag: r.id()}
	}
	return s
}

// check holds the table against what encode can have written.
func (t *table) check() error {
	seen := map[KeyID]bool{{}: true, t.cluster.id: true}
	if t.cluster.id.IsZero() {
		return fmt.Errorf("%w: no cluster key", ErrDamaged)
	}
	once := func(id KeyID) error {
		if seen[id] {
			return fmt.Errorf("%w: key %s twice", ErrDamaged, id)
		}
		seen[id] = true
		return nil
	}
	living := make(map[KeyID]bool)
	spaces := make(map[NamespaceID]bool)
	for _, s := range t.spaces {
		if spaces[s.names.id] {
			return fmt.Errorf("%w: namespace twice", ErrDamaged)
		}
		spaces[s.names.id] = true
		if err := s.check(living, once); err != nil {
			return err
		}
	}
	for _, id := range t.deadSpaces {
		if spaces[id] {
			return fmt.Errorf("%w: namespace twice", ErrDamaged)
		}
		spaces[id] = true
	}
	for _, c := range t.combined {
		if err := c.check(living, once); err != nil {
			return err
		}
	}
	for _, id := range t.deadKeys {
		if err := once(id); err != nil {
			return err
		}
	}
	return nil
}

func (s *space) check(living map[KeyID]bool, once func(KeyID) error) error {
	tags := make(map[subjectTag]bool, len(s.keys))
	for _, d := range s.keys {
		if err := once(d.id); err != nil {
			return err
		}
		if tags[d.tag] {
			return fmt.Errorf("%w: a subject has two keys", ErrDamaged)
		}
		tags[d.tag], living[d.id] = true, true
	}
	for _, grave := range s.dead {
		if err := once(grave.id); err != nil {
			return err
		}
	}
	return nil
}

func (c combination) check(living map[KeyID]bool, once func(KeyID) error) error {
	if len(c.members) < 2 {
		return fmt.Errorf("%w: key %s combines %d keys", ErrDamaged, c.id, len(c.members))
	}
	for i, id := range c.members {
		if !living[id] || i > 0 && compareIDs(c.members[i-1], id) >= 0 {
			return fmt.Errorf("%w: key %s combines wrong keys", ErrDamaged, c.id)
		}
	}
	return once(c.id)
}
