package texts

import (
	"context"
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
}

func newOwn(dir string) engine { return &own{dir: dir} }

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
	if err := o.db.Commit(b, false); err != nil {
		return err
	}
	w.Committed()
	return nil
}

func (o *own) doc(id uint32, line string) index.Doc {
	words := strings.Fields(line)
	d := index.Doc{ID: id}
	d.Lengths[index.FieldText] = uint32(len(words))
	for i, w := range words {
		words[i] = plain(w)
	}
	slices.Sort(words)
	for i, w := range words {
		if i > 0 && words[i-1] == w {
			d.Terms[len(d.Terms)-1].TF++
			continue
		}
		d.Terms = append(d.Terms, index.Term{Field: index.FieldText, Text: w, TF: 1})
	}
	return d
}

func (o *own) search(ctx context.Context, terms []string, k int) ([]hit, error) {
	q := index.Query{K: k, K1: k1, B: b} // as the others have it
	q.FieldWeights[index.FieldText] = 1
	for _, t := range terms {
		q.Terms = append(q.Terms, index.QueryTerm{Text: plain(t), Weight: 1})
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
