package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"mneme/internal/query"
	"mneme/internal/query/views"
	"mneme/internal/spans"
	"mneme/memory"
)

// share is what one shard has of the namespaces of a search.
type share struct {
	of    *reads
	names []string
	at    string // the position that it must have reached; "" = none
}

// distinct are the names of a search, each once, so that neither their order nor one said
// twice changes the answer.
func distinct(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// SearchNamespaces implements rest.Reader for a node with one shard.
func (n *reads) SearchNamespaces(ctx context.Context, a memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error) {
	return n.times.search(ctx, req.Mode, func() (memory.SearchResponse, error) {
		return operate(ctx, spans.SearchMemory, "", toldOfSearch, func(ctx context.Context) (memory.SearchResponse, error) {
			return searchShares(ctx, a, []share{{n, distinct(req.Namespaces), a.AtLeast}}, req.SearchRequest)
		})
	})
}

// SearchNamespaces implements rest.Reader: each shard that has some of the namespaces is
// read at one position, and what is found in all of them is ranked together.
func (g gather) SearchNamespaces(ctx context.Context, a memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error) {
	return g.n.front.times.search(ctx, req.Mode, func() (memory.SearchResponse, error) {
		return operate(ctx, spans.SearchMemory, "", toldOfSearch, func(ctx context.Context) (memory.SearchResponse, error) {
			return g.searchNamespaces(ctx, a, req)
		})
	})
}

func (g gather) searchNamespaces(ctx context.Context, a memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error) {
	at, err := g.asked(ctx, a)
	if err != nil {
		return memory.SearchResponse{}, err
	}
	shares := make([]share, len(g.n.served))
	for _, name := range distinct(req.Namespaces) {
		s, err := g.find(ctx, name, at)
		if err != nil {
			return memory.SearchResponse{}, err
		}
		shares[s.id] = share{s.reads, append(shares[s.id].names, name), atLeast(at[s.id])}
	}
	return searchShares(ctx, a, slices.DeleteFunc(shares, func(s share) bool { return len(s.names) == 0 }), req.SearchRequest)
}

// searchShares searches all shards together.
func searchShares(ctx context.Context, a memory.Access, shares []share, req memory.SearchRequest) (memory.SearchResponse, error) {
	resp, notes, err := readShares(ctx, a, shares, req)
	return audited(ctx, resp, err, notes)
}

// readShares opens the shards side by side, since each may wait for its position or its
// leader, and closes them again.
func readShares(ctx context.Context, a memory.Access, shares []share, req memory.SearchRequest) (resp memory.SearchResponse, notes []readNote, err error) {
	opened := make([][]*query.Reader, len(shares))
	failed := make([]error, len(shares))
	var all sync.WaitGroup
	for i, s := range shares {
		all.Go(func() {
			ctx, span := spans.Start(ctx, spans.Open)
			opened[i], failed[i] = s.of.query.OpenEach(ctx, s.names, a.As, views.Freshness{AtLeast: s.at, Consistency: a.Consistency, Wait: atLeastWait})
			spans.End(span, failed[i])
		})
	}
	all.Wait()
	defer func() {
		for _, readers := range opened {
			if len(readers) > 0 {
				err = errors.Join(err, readers[0].Close()) // those of a shard have one snapshot
			}
		}
	}()
	if at := slices.IndexFunc(failed, func(err error) bool { return err != nil }); at >= 0 {
		return resp, nil, failed[at]
	}
	resp, err = query.Search(ctx, slices.Concat(opened...), req)
	for i, s := range shares {
		for _, r := range opened[i] {
			if err == nil {
				err = addNote(&notes, s.of, r, a, req.Purpose, req.Query, resp.Results)
			}
		}
	}
	return resp, notes, err
}
