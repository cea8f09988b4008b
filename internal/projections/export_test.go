package projections

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// Poison makes captures of an agent impossible to fold, until the end of the test: as they
// are decided they panic or fail, or what is gathered of them cannot be written. Its
// result ends that.
func Poison(agent, how string) (mend func()) {
	was := verdicts[events.TypeCaptured]
	verdicts[events.TypeCaptured] = func(t *tx, ev *event) error {
		if ev.Agent != agent {
			return was(t, ev)
		}
		if done, err := t.records.usedBefore(ev); done || err != nil {
			return err
		}
		switch how {
		case "panics":
			panic("boom")
		case "fails":
			return errors.New("boom")
		case "cannot be written":
			i := slices.IndexFunc(t.all, func(p projection) bool { _, ok := p.(*terms); return ok })
			t.all[i].(*terms).docs[1<<20] = []text.Doc{{ID: 5}, {ID: 3}}
		}
		return was(t, ev)
	}
	return func() { verdicts[events.TypeCaptured] = was }
}

// FactRows is the dumb twin of the state hash: it looks at every row there is
// and visits those that are facts, with the namespace they belong to.
func FactRows(v *View, visit func(ns events.ID, key, value []byte)) error {
	parts, deleted := map[uint32]events.ID{}, map[events.ID]Ref{}
	err := eachRow(v.snap, nil, func(key, value []byte) error {
		switch key[0] {
		case prefixPartRow:
			p, err := decodePartition(binary.BigEndian.Uint32(key[1:]), value)
			parts[p.ID] = p.Namespace
			return err
		case prefixAudit:
			row, err := decodeAuditRow(decodeRef(key[17:]), value)
			if row.Type == events.TypeNamespaceDeleted && row.Outcome == OutcomeApplied {
				deleted[events.ID(key[1:17])] = row.At
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachRow(v.snap, nil, func(key, value []byte) error {
		var ns events.ID
		switch key[0] {
		case prefixEntry, prefixHome, prefixPartition, prefixIdem, prefixHead, prefixHistory, prefixEnded:
			ns = events.ID(key[1:17])
		case prefixDoc, prefixURI, prefixAttrs, prefixGraphEntity, prefixGraphObservation, prefixGraphRelation:
			ns = parts[binary.BigEndian.Uint32(key[1:])]
		case prefixVector: // facts do not depend on VectorIDs
			row, err := decodeVectorRow(value)
			if err != nil {
				return err
			}
			part := binary.BigEndian.Uint32(key[1:])
			ns, value = parts[part], row.Numbers
			key = vectorFactKey(part, SpaceKey(key[5:13]), row.Doc, row.Chunk)
		case text.PrefixForward:
			if len(key) != 9 { // the mark of a removed document
				return nil
			}
			part := binary.BigEndian.Uint32(key[1:])
			d, err := text.ReadDoc(v.snap, part, binary.BigEndian.Uint32(key[5:]))
			if err == nil {
				value, err = text.EncodeDoc(nil, d) // the fact is in clear, the row may be by ids
			}
			if err != nil {
				return err
			}
			ns = parts[part]
		case prefixAudit:
			ns = events.ID(key[1:17])
			row, err := decodeAuditRow(decodeRef(key[17:]), value)
			if err != nil || ns == (events.ID{}) || row.Type.Control() || row.At.Before(deleted[ns]) {
				return err
			}
		default:
			return nil
		}
		visit(ns, key, value)
		return nil
	})
}

// FactHash is the hash of one fact.
func FactHash(key, value []byte) StateHash {
	h, _ := factHash(nil, key, value)
	return h
}

// CutAttrs takes a row of attributes apart.
func CutAttrs(b []byte) (out []AttrKey) {
	for k, rest := cutAttr(b); k != ""; k, rest = cutAttr(rest) {
		out = append(out, k)
	}
	return out
}

// RowCount counts the rows whose key begins with prefix.
func RowCount(v *View, prefix ...byte) int {
	n := 0
	_ = eachRow(v.snap, prefix, func(_, _ []byte) error { n++; return nil })
	return n
}

// Rows visits all rows.
func Rows(v *View, visit func(key, value []byte)) error {
	return eachRow(v.snap, nil, func(key, value []byte) error { visit(key, value); return nil })
}

// FlushTables writes what is in memory into tables.
func FlushTables(s *State) error { return s.gen.db.Flush() }

// BetweenCommitAndPublish runs apply and then f as if apply's commit were
// in the database and were not published yet.
func BetweenCommitAndPublish(s *State, apply, f func()) {
	g := s.gen
	s.mu.Lock()
	was := g.hold()
	s.mu.Unlock()
	apply()
	next := g.now
	g.now = was
	f()
	g.now = next
	_ = was.release()
}

// SkipDocs makes the next document of a partition have the given DocID.
func SkipDocs(s *State, part, next uint32) { s.gen.now.partitions.get(part).NextDoc = next }

// Prefixes, for tests that look at rows.
const (
	PrefixAttrs       = prefixAttrs
	PrefixDoc         = prefixDoc
	PrefixHead        = prefixHead
	PrefixPending     = prefixPending
	PrefixGraphEntity = prefixGraphEntity
	PrefixGraphTotals = prefixGraphTotals
	PrefixRead        = prefixRead
)

// NewLiveSet makes a live set for comparison with a dumb one.
func NewLiveSet(next uint32, dead ...uint32) Live {
	l := &liveSet{next: next, dead: roaring.New()}
	for _, d := range dead {
		l.dead.Add(d)
	}
	return l
}

// ScopedRow is a row with what it ends with, as its projection declares.
type ScopedRow struct {
	Scope     string    // "" = nobody declares it
	Namespace events.ID // zero if it ends with the shard
	Value     []byte
}

// ScopedRows visits all rows but those of package storage.
func ScopedRows(v *View, visit func(key []byte, row ScopedRow)) error {
	declared := map[byte]rows{}
	for _, d := range declarations() {
		for _, r := range d.rows {
			declared[r.prefix] = r
		}
	}
	parts := map[uint32]events.ID{} // from the rows, not from memory
	err := eachRow(v.snap, []byte{prefixPartRow}, func(key, value []byte) error {
		p, err := decodePartition(binary.BigEndian.Uint32(key[1:]), value)
		parts[p.ID] = p.Namespace
		return err
	})
	if err != nil {
		return err
	}
	return eachRow(v.snap, nil, func(key, value []byte) error {
		if key[0] == 0 {
			return nil
		}
		row := ScopedRow{Value: append([]byte(nil), value...)}
		if r, ok := declared[key[0]]; ok {
			row.Scope = r.scope.String()
			switch r.scope {
			case ofNamespace:
				row.Namespace = events.ID(key[1:17])
			case ofPartition:
				row.Namespace = parts[binary.BigEndian.Uint32(key[1:])]
			}
		}
		visit(key, row)
		return nil
	})
}

// PrefixesThatEnd lists the prefixes of rows that end with a namespace.
func PrefixesThatEnd() (out []byte) {
	for _, d := range declarations() {
		for _, r := range d.rows {
			if r.scope != ofShard {
				out = append(out, r.prefix)
			}
		}
	}
	return out
}

// Erase takes the payloads of the versions that some events made out of the rows.
func Erase(s *State, gone func(at Ref) bool) error {
	v := s.View()
	defer v.Close()
	g, t := s.begin()
	defer t.close()
	for id := range v.cursor.Partitions {
		p, ok := v.PartitionByID(id)
		if !ok {
			continue
		}
		err := v.Docs(id, p.NextDoc, func(doc uint32, d Doc) (bool, error) {
			if !gone(d.At) {
				return true, nil
			}
			return true, t.eraseVersion(&version{part: &p, doc: doc, record: d.Record, number: d.Version, row: d})
		})
		if err != nil {
			return err
		}
	}
	return s.commit(g, t)
}

// ApplyCounting folds a range and counts what its commit writes: rows, and values
// of the tables in memory.
func ApplyCounting(s *State, r *Range) (written, published int, err error) {
	g, t := s.begin()
	defer t.close()
	if _, err := t.applyRange(r); err != nil {
		return 0, 0, err
	}
	err = s.commit(g, t)
	published = len(t.directory.entries.now) + len(t.directory.names.now) + len(t.facts.sums.now) + len(t.home.homes.now) +
		len(t.partitions.named.now) + len(t.partitions.list.now) + len(t.vectors.spaces.now)
	return int(t.b.Count()), published, err
}

// ErasePath takes the path of a record's newest version out of its head. Where that
// version does not live, nothing else is written.
func ErasePath(s *State, ns, record events.ID) error {
	g, t := s.begin()
	defer t.b.Close()
	raw, err := t.get(headKey(ns, record))
	if err != nil {
		return err
	}
	h, err := decodeHead(raw)
	if err != nil {
		return err
	}
	v := &version{part: &Partition{ID: h.Partition, Namespace: ns}, doc: h.Doc, record: record}
	if err := t.records.erase(v); err != nil {
		return err
	}
	return s.commit(g, t)
}

// WriteAnew writes all rows that begin with prefix as they are, and nothing else, as
// an erasure writes what several versions share.
func WriteAnew(s *State, prefix ...byte) error {
	v := s.View()
	defer v.Close()
	b := s.gen.db.NewBatch()
	defer b.Close()
	if err := eachRow(v.snap, prefix, func(key, value []byte) error { return b.Set(key, value, nil) }); err != nil {
		return err
	}
	return s.gen.db.Commit(b, false)
}

// PartTables makes tables end before the rows of the text index: a row between them
// and the bitmaps is as long as a table may be.
func PartTables(s *State) error {
	long := make([]byte, 9<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(long) // it must not shrink
	err := s.gen.db.Set([]byte{text.PrefixPostings - 1}, long, nil)
	return errors.Join(err, s.gen.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false))
}

// LoseHome writes how many records a namespace has which is not there, as if the row of
// its home had been lost.
func LoseHome(s *State) error {
	return s.gen.db.Set(recordsKey(events.ID{1}), make([]byte, 8), nil)
}

// HeadPrefix begins the heads of a namespace's records.
func HeadPrefix(ns events.ID) []byte { return append([]byte{prefixHead}, ns[:]...) }

// TableRows counts what the tables hold under each key that begins with prefix:
// also what was overwritten, and deletions.
func TableRows(s *State, prefix ...byte) (map[string]int, error) {
	db, dir := s.gen.db, s.opt.FS.PathJoin(s.opt.Dir, s.gen.name)
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, level := range levels {
		for _, table := range level {
			err = errors.Join(err, eachTableRow(s, s.opt.FS.PathJoin(dir, fmt.Sprintf("%06d.sst", table.FileNum)), func(key []byte) {
				if len(key) >= len(prefix) && string(key[:len(prefix)]) == string(prefix) {
					out[string(key)]++
				}
			}))
		}
	}
	return out, err
}

func eachTableRow(s *State, path string, visit func(key []byte)) error {
	f, err := s.opt.FS.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	opt := &pebble.Options{Merger: &pebble.Merger{Name: "mneme.merge.1", Merge: pebble.DefaultMerger.Merge}}
	opt.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, opt.MakeReaderOptions())
	if err != nil {
		return err
	}
	defer r.Close()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		visit(kv.K.UserKey)
	}
	return it.Close()
}
