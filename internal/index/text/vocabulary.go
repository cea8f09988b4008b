package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// Vocabulary visits the terms of a partition's field that begin with prefix,
// ascending, until visit says false. docs is the number of documents, added and not
// removed, that have the term; a term without any is left out. term is valid during
// the call only. r may be a database or a snapshot. Errors: ErrCorrupt, the
// database's.
func Vocabulary(r pebble.Reader, partition uint32, f Field, prefix string, visit func(term []byte, docs uint64) bool) error {
	if err := eachOfVocabulary(r, partition, f, prefix, visit); err != nil {
		return fmt.Errorf("vocabulary of partition %d: %w", partition, err)
	}
	return nil
}

func eachOfVocabulary(r pebble.Reader, partition uint32, f Field, prefix string, visit func(term []byte, docs uint64) bool) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixDictionary + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	terms, err := it.Clone(pebble.CloneOptions{}) // of the same state
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, terms.Close()) }()
	_, start, err := seekStats(it, partition)
	if err != nil {
		return err
	}
	tail, err := tailVocabulary(it, partition, start, f, prefix)
	if err != nil {
		return err
	}
	rest := slices.Sorted(maps.Keys(tail))
	key := appendDictionaryKey(nil, partition, f, prefix)
	end := storage.PrefixEnd(key)
	var postings []byte
	for ok := terms.SeekGE(key); ok && string(terms.Key()) < string(end); ok = terms.Next() {
		_, _, term, err := parseDictionaryKey(terms.Key())
		if err != nil {
			return err
		}
		for len(rest) > 0 && rest[0] < string(term) { // not in the dictionary yet
			if !visit([]byte(rest[0]), tail[rest[0]]) {
				return nil
			}
			rest = rest[1:]
		}
		postings = appendTermPrefix(postings[:0], partition, f, string(term))
		docs, err := countTerm(it, postings)
		if err != nil {
			return fmt.Errorf("term %q: %w", term, err)
		}
		if len(rest) > 0 && rest[0] == string(term) {
			docs += tail[rest[0]]
			rest = rest[1:]
		}
		if docs > 0 && !visit(term, docs) {
			return nil
		}
	}
	for _, term := range rest {
		if !visit([]byte(term), tail[term]) {
			return nil
		}
	}
	return terms.Error()
}

// tailVocabulary counts the terms of the documents that have no postings yet.
func tailVocabulary(it *pebble.Iterator, partition, start uint32, f Field, prefix string) (map[string]uint64, error) {
	counts := map[string]uint64{}
	err := eachTailRow(it, partition, start, func(doc uint32, row []byte, removed bool) error {
		_, d, err := openTailRow(row)
		if err != nil {
			return fmt.Errorf("document %d: %w", doc, err)
		}
		for d.next() && d.field <= f {
			if !removed && d.field == f && strings.HasPrefix(string(d.text()), prefix) {
				counts[string(d.text())]++
			}
		}
		return d.err
	})
	return counts, err
}

// countTerm counts the documents in the postings rows of one term.
func countTerm(it *pebble.Iterator, prefix []byte) (docs uint64, err error) {
	for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		if _, err := blockOf(it.Key(), len(prefix)); err != nil {
			return 0, err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return 0, err
		}
		n, err := countRow(v)
		if err != nil {
			return 0, err
		}
		docs += n
	}
	return docs, it.Error()
}

// Terms visits the distinct terms that have postings, field by field, ascending in
// each. Errors: ErrCorrupt, the database's, visit's.
func Terms(r pebble.Reader, partition uint32, visit func(term []byte) error) (err error) {
	prefix := appendPartition(nil, PrefixDictionary, partition)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return fmt.Errorf("terms of partition %d: %w", partition, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		_, _, term, err := parseDictionaryKey(it.Key())
		if err == nil {
			err = visit(term)
		}
		if err != nil {
			return fmt.Errorf("terms of partition %d: %w", partition, err)
		}
	}
	return it.Error()
}

// NewTerms visits the terms that have postings and whose ids are from first on: those
// that Terms did not visit when NextTerm was first. Errors: ErrCorrupt, the database's.
func NewTerms(r pebble.Reader, partition, first uint32, visit func(term string)) (err error) {
	prefix := appendPartition(nil, PrefixNames, partition)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return fmt.Errorf("new terms of partition %d: %w", partition, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var names []name
	ok := it.SeekLT(appendNamesKey(nil, partition, first)) // a row may begin before
	if !ok {
		ok = it.First()
	}
	for ; ok; ok = it.Next() {
		k := it.Key()
		if len(k) != namesKeyLen {
			return fmt.Errorf("new terms of partition %d: %w: names key %x", partition, ErrCorrupt, k)
		}
		v, err := it.ValueAndErr()
		if err == nil {
			names, err = readNames(names[:0], v)
		}
		if err != nil {
			return fmt.Errorf("new terms of partition %d: %w", partition, err)
		}
		from := binary.BigEndian.Uint32(k[partitionLen:])
		for i, n := range names {
			if n.text != "" && from+uint32(i) >= first {
				visit(n.text)
			}
		}
	}
	return it.Error()
}

// NextTerm is the id that the partition's next new term gets. Errors: ErrCorrupt, the
// database's.
func NextTerm(r pebble.Reader, partition uint32) (uint32, error) {
	_, c, err := readStats(r, partition)
	return c.nextID, err
}

// TailTerms visits the terms of the documents from one on that have no postings yet, those of
// removed ones too, a term as often as there are such documents. Errors: ErrCorrupt,
// the database's.
func TailTerms(r pebble.Reader, partition, from uint32, visit func(term []byte)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixForward + 1}})
	if err != nil {
		return fmt.Errorf("terms of the tail of partition %d: %w", partition, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	_, start, err := seekStats(it, partition)
	if err == nil {
		err = eachTailRow(it, partition, max(start, from), func(doc uint32, row []byte, _ bool) error {
			_, d, err := openTailRow(row)
			if err != nil {
				return fmt.Errorf("document %d: %w", doc, err)
			}
			for d.next() {
				visit(d.text())
			}
			return d.err
		})
	}
	if err != nil {
		return fmt.Errorf("terms of the tail of partition %d: %w", partition, err)
	}
	return nil
}
