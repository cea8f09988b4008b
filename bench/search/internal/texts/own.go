package texts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	index "mneme/internal/index/text"
	"mneme/internal/storage"
)

// ownBatch is the number of documents in a batch: what a REST client may send and a
// node then applies at once, and as many as bleve is given.
const ownBatch = 1000

// own is the project's index in a database of its own, written as a node does:
// a batch for each frame of the log, not synced one by one.
type own struct {
	dir      string
	db       *storage.DB
	searcher index.Searcher
	live     index.Bits
	keys     map[string]index.TermKey
}

func newOwn(dir string) engine { return &own{dir: dir, keys: map[string]index.TermKey{}} }

// key stands for the HMAC of a term, which a node keeps in a cache too.
func (o *own) key(term string) index.TermKey {
	k, ok := o.keys[term]
	if !ok {
		sum := sha256.Sum256([]byte(term))
		copy(k[:], sum[:])
		o.keys[strings.Clone(term)] = k
	}
	return k
}

func (o *own) open() (err error) {
	o.db, err = storage.Open(storage.Options{Dir: o.dir, Merge: index.MergeTable()})
	return err
}

func (o *own) build(ctx context.Context, docs documents) (err error) {
	if err := o.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.db.Close()) }()
	w := index.NewWriter(o.db)
	batch := make([]index.Doc, 0, ownBatch)
	for i, line := range docs.lines {
		batch = append(batch, o.doc(uint32(i), line))
		o.live.Add(uint32(i))
		if len(batch) < ownBatch && i+1 < len(docs.lines) {
			continue
		}
		if err := o.commit(w, batch); err != nil {
			return err
		}
		batch = batch[:0]
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return o.db.Flush()
}

func (o *own) commit(w *index.Writer, docs []index.Doc) error {
	b := o.db.NewBatch()
	defer b.Close()
	defer w.Reset()
	if err := w.Add(b, 1, docs); err != nil {
		return err
	}
	return o.db.Commit(b, false)
}

func (o *own) doc(id uint32, line string) index.Doc {
	words := strings.Fields(line)
	d := index.Doc{ID: id}
	d.Lengths[index.FieldText] = uint32(len(words))
	slices.Sort(words)
	for i, w := range words {
		if i > 0 && words[i-1] == w {
			d.Terms[len(d.Terms)-1].TF++
			continue
		}
		d.Terms = append(d.Terms, index.Term{Key: o.key(w), Field: index.FieldText, TF: 1})
	}
	return d
}

func (o *own) search(ctx context.Context, terms []string, k int) ([]hit, error) {
	q := index.Query{K: k}
	q.FieldWeights[index.FieldText] = 1
	for _, t := range terms {
		qt := index.QueryTerm{Weight: 1}
		qt.Keys[index.FieldText] = o.key(t)
		q.Terms = append(q.Terms, qt)
	}
	snap := o.db.NewSnapshot()
	defer snap.Close()
	found, err := o.searcher.Search(ctx, snap, []index.Partition{{ID: 1, Live: o.live}}, q)
	if err != nil {
		return nil, fmt.Errorf("search %q: %w", terms, err)
	}
	hits := make([]hit, len(found))
	for i, h := range found {
		hits[i] = hit{doc: h.Doc, score: h.Score}
	}
	return hits, nil
}

func (o *own) close() error { return o.db.Close() }
