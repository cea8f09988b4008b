package main

import (
	"cmp"
	"context"
	"slices"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/stats"
	"mneme/internal/text"
)

// depths are where recall is measured.
var depths = [...]int{5, 10, 20}

// chunk is one piece of a memory with its vector.
type chunk struct {
	id     string
	vector []float32
}

// recall returns mean recall at depths by cosine alone. As in a node, a memory is cut
// into chunks, each is embedded with the agent's name before it, and the best chunk
// counts.
func recall(ctx context.Context, set *judged.Set, e embedder) (mean [len(depths)]float64, err error) {
	questions := 0.0
	for _, ns := range set.Namespaces {
		var chunks []chunk
		for _, c := range ns.Captures {
			for _, ch := range text.Chunks(c.Text, text.DefaultChunkTokens, text.DefaultChunkOverlap) {
				chunks = append(chunks, chunk{c.ID, e.vector(c.Agent + ": " + ch.Text)})
			}
		}
		for _, q := range ns.Questions {
			if err := ctx.Err(); err != nil {
				return mean, err
			}
			if q.Apart || len(q.Evidence) == 0 {
				continue
			}
			questions++
			ranked := rank(chunks, e.vector(q.Text))
			for i, k := range depths {
				mean[i] += stats.Recall(ranked, q.Evidence, k)
			}
		}
	}
	for i := range mean {
		mean[i] /= max(1, questions)
	}
	return mean, nil
}

// rank returns the ids of the nearest memories, each once.
func rank(chunks []chunk, query []float32) []string {
	type scored struct {
		id    string
		score float64
	}
	list := make([]scored, len(chunks))
	for i, c := range chunks {
		list[i] = scored{c.id, dot(query, c.vector)}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var ids []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s.id] {
			seen[s.id] = true
			if ids = append(ids, s.id); len(ids) == depths[len(depths)-1] {
				break
			}
		}
	}
	return ids
}
