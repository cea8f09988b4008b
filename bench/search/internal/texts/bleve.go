package texts

import (
	"context"
	"errors"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

const bleveBatch = 1000

// bleveIndex is bleve with its default store, BM25, and nothing kept but the
// postings: no stored text, no positions, no columns.
type bleveIndex struct {
	dir   string
	index bleve.Index
}

func newBleve(dir string) engine { return &bleveIndex{dir: dir} }

func bleveMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	if err := m.AddCustomAnalyzer("terms", map[string]any{"type": custom.Name, "tokenizer": whitespace.Name}); err != nil {
		return nil, err
	}
	field := bleve.NewTextFieldMapping()
	field.Analyzer = "terms"
	field.Store, field.IncludeInAll, field.IncludeTermVectors, field.DocValues = false, false, false, false
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt("t", field)
	m.DefaultMapping = doc
	m.ScoringModel = bleveindex.BM25Scoring
	return m, nil
}

func (b *bleveIndex) build(ctx context.Context, docs documents) (err error) {
	m, err := bleveMapping()
	if err != nil {
		return err
	}
	idx, err := bleve.NewUsing(b.dir, m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, idx.Close()) }()
	batch := idx.NewBatch()
	for i, line := range docs.lines {
		if err := batch.Index(strconv.Itoa(i), map[string]any{"t": line}); err != nil {
			return err
		}
		if batch.Size() < bleveBatch && i+1 < len(docs.lines) {
			continue
		}
		if err := idx.Batch(batch); err != nil {
			return err
		}
		batch.Reset()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bleveIndex) open() (err error) {
	b.index, err = bleve.Open(b.dir)
	return err
}

func (b *bleveIndex) search(ctx context.Context, terms []string, k int) ([]hit, error) {
	var each []query.Query
	for _, t := range terms {
		q := bleve.NewTermQuery(t)
		q.SetField("t")
		each = append(each, q)
	}
	var q query.Query = each[0]
	if len(each) > 1 {
		q = bleve.NewDisjunctionQuery(each...)
	}
	answer, err := b.index.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, k, 0, false))
	if err != nil {
		return nil, err
	}
	hits := make([]hit, len(answer.Hits))
	for i, h := range answer.Hits {
		id, err := strconv.Atoi(h.ID)
		if err != nil {
			return nil, err
		}
		hits[i] = hit{doc: uint32(id), score: h.Score}
	}
	return hits, nil
}

func (b *bleveIndex) close() error { return b.index.Close() }
