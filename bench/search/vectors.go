package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"mneme/bench/internal/points"
	"mneme/bench/internal/report"
	"mneme/bench/search/internal/peer"
	"mneme/bench/search/internal/vectors"
)

// smallVectors is the size up to which slow and bad indexes are measured too.
const smallVectors = 20_000

func runVectors(ctx context.Context, opt options) ([]*report.Table, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := vectors.Options{Dir: opt.dir, Own: []string{self, serveVectors}, Threads: opt.threads, Queries: opt.queries, Runs: opt.runs, Least: opt.least,
		Seed: opt.seed, Texts: opt.texts, Indexes: opt.indexes, PerCluster: 100, Noise: 1, Small: smallVectors, Debian: opt.debian, ReplaceUpto: opt.replaceUpto, Progress: opt.say}
	opt.say("vectors: compile the peers")
	if v.Peers, v.Missing = peer.Vectors(ctx, opt.dir); v.Missing != nil {
		opt.say("vectors: %v", v.Missing)
	}
	var out []*report.Table
	for _, v.Of = range opt.of {
		for i, dim := range opt.dims {
			for _, n := range opt.sizes {
				if i > 0 && n != widest(opt.sizes) {
					continue
				}
				tables, err := vectors.Run(ctx, v, n, dim)
				if errors.Is(err, points.ErrTooFew) {
					missing := report.NewTargets(fmt.Sprintf("Vectors (%s): %d of %d dimensions", v.Of, n, dim))
					missing.Failed("queries/s at recall@10 0.98", "", err)
					tables, err = []*report.Table{missing}, nil
				}
				if err != nil {
					return nil, fmt.Errorf("%d %s of %d dimensions: %w", n, v.Of, dim, err)
				}
				out = append(out, tables...)
			}
		}
	}
	return out, nil
}

// widest is the size at which further dimensions are measured: the largest up
// to 100,000, else the smallest.
func widest(sizes []int) int {
	best, least := 0, sizes[0]
	for _, n := range sizes {
		least = min(least, n)
		if n <= 100_000 {
			best = max(best, n)
		}
	}
	if best == 0 {
		return least
	}
	return best
}
