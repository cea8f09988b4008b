package main

import (
	"context"
	"fmt"
	"slices"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/report"
	"mneme/bench/search/internal/peer"
	"mneme/bench/search/internal/texts"
)

const (
	// realTexts is how many real texts are looked for; a model of them writes
	// the rest.
	realTexts = 100_000
	// sampled is how many queries of each length are compared with a scan.
	sampled = 25
)

func runText(ctx context.Context, opt options) ([]*report.Table, error) {
	most := slices.Max(opt.sizes)
	opt.say("text: read the corpus")
	all, err := corpus.Load(ctx, corpus.Options{Count: min(most, realTexts), Seed: opt.seed})
	if err != nil {
		return nil, err
	}
	grown := all.Grow(most)
	opt.say("text: compile the peers")
	program, missing := peer.Texts(ctx, opt.dir)
	if missing != nil {
		opt.say("text: %v", missing)
	}
	var out []*report.Table
	for _, n := range opt.sizes {
		t := texts.Options{Dir: opt.dir, Threads: opt.threads, Queries: min(opt.queries, 500), Sample: sampled, Runs: opt.runs, Least: opt.least,
			Seed: opt.seed, Progress: opt.say, Peers: program, Missing: missing}
		from := all.From
		if n > len(all.Texts) {
			from = grown.From
		}
		tables, err := texts.Run(ctx, t, grown.Texts[:min(n, len(grown.Texts))], from)
		if err != nil {
			return nil, fmt.Errorf("%d documents: %w", n, err)
		}
		out = append(out, tables...)
	}
	return out, nil
}
