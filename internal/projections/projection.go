package projections

import (
	"bytes"
	"cmp"
	"slices"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// projection is one part of a state: rows of its own and the fold that keeps
// them. A value serves one transaction.
//
// To add one, write its type in a file of its own, with its declaration, and put
// it on the list of newTx. Nothing else knows which projections there are.
type projection interface {
	// declared says which rows the projection has. It is the same for each value.
	declared() *declaration
	// fold adds the projection's share of an event, whose outcome is known. The
	// projections before it on the list have folded the event already.
	fold(ev *event) error
	// drop forgets what the transaction has gathered for a namespace that is
	// deleted and for its partitions. Rows are dropped by their scope.
	drop(ns events.ID, parts []uint32)
	// erase takes out what the payload of a version gave the projection. What it
	// leaves is what a fold leaves that does not have the payload's key.
	erase(v *version) error
	// finish writes what was gathered.
	finish() error
	// publish puts what changed into the memory of the next position.
	publish(m *memory)
}

// declaration is what a projection has, for those who do not know it: the
// deletion of a namespace, the codec of contributions, the opening of a state,
// and DESIGN.md.
type declaration struct {
	name     string
	rows     []rows
	sections []section
	load     func(db *storage.DB, m *memory) error // reads what is kept in memory; may be nil
}

// rows are the rows below one key prefix.
type rows struct {
	prefix byte
	scope  scope
	fact   bool   // counted by the state hash
	key    string // shape of the key behind the prefix
	holds  string // the value
}

// scope says with what the rows below a prefix end.
type scope uint8

const (
	ofShard     scope = iota // they stay as long as the shard
	ofNamespace              // the key begins with a namespace's id; they end with it
	ofPartition              // the key begins with a partition's number; they end with its namespace
)

func (s scope) String() string {
	return [...]string{"shard", "namespace", "partition"}[s]
}

// section is a part of a contribution.
type section struct {
	tag    byte
	append func(c *Contribution, b []byte) []byte // nothing = left out
	decode func(c *Contribution, d *decoder)
}

// declarations lists what all projections declare.
func declarations() []*declaration {
	var out []*declaration
	for _, p := range newTx(&generation{now: &published{memory: newMemory()}}).all {
		out = append(out, p.declared())
	}
	return out
}

// sections are those of all projections, by tag.
var sections = func() (out []section) {
	for _, d := range declarations() {
		out = append(out, d.sections...)
	}
	slices.SortFunc(out, func(a, b section) int { return cmp.Compare(a.tag, b.tag) })
	return out
}()

// defaults is for what a projection does not do.
type defaults struct{}

func (defaults) fold(*event) error        { return nil }
func (defaults) drop(events.ID, []uint32) {}
func (defaults) erase(*version) error     { return nil }
func (defaults) finish() error            { return nil }
func (defaults) publish(*memory)          {}

// dropNamespace deletes every row of a namespace and of its partitions.
func (t *tx) dropNamespace(ns events.ID) error {
	parts, err := t.partitions.of(ns)
	if err != nil {
		return err
	}
	for _, p := range t.all {
		for _, r := range p.declared().rows {
			switch r.scope {
			case ofNamespace:
				err = t.dropRange(append([]byte{r.prefix}, ns[:]...))
			case ofPartition:
				for _, part := range parts {
					err = cmp.Or(err, t.dropRange(be32([]byte{r.prefix}, part)))
				}
			}
			if err != nil {
				return err
			}
		}
		p.drop(ns, parts)
	}
	return nil
}

// eraseVersion takes the payload of a version out of all rows.
func (t *tx) eraseVersion(v *version) error {
	for _, p := range t.all {
		if err := p.erase(v); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) dropRange(prefix []byte) error {
	return t.b.DeleteRange(prefix, storage.PrefixEnd(prefix), nil)
}

// overwrite replaces a row and leaves a deletion below the new value, so that a
// purge finds the former one. An empty value leaves no row.
func (t *tx) overwrite(key, value []byte) error {
	if err := t.b.DeleteRange(key, append(bytes.Clone(key), 0), nil); err != nil || len(value) == 0 {
		return err
	}
	return t.b.Set(key, value, nil)
}
