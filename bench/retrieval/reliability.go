package main

import (
	"fmt"
	"math"

	"mneme/bench/internal/report"
	"mneme/memory"
)

// bucket is the results whose scores lie in one tenth.
type bucket struct {
	Results  int     `json:"results"`
	Relevant int     `json:"relevant"`
	Sum      float64 `json:"sum"` // of scores
}

const (
	buckets = 10
	// enough is how many results make the share in a bucket worth reading.
	enough = 50
)

func newBuckets() []bucket { return make([]bucket, buckets) }

func note(b []bucket, score float64, relevant bool) {
	i := max(0, min(buckets-1, int(score*buckets)))
	b[i].Results++
	b[i].Sum += score
	if relevant {
		b[i].Relevant++
	}
}

// reliability prints which share of results with a score is relevant: of those
// scored 0.6 to 0.7 it should be 0.6 to 0.7.
func reliability(results []result) *report.Table {
	t := &report.Table{Title: "Reliability of hybrid scores", Header: []string{"set", "score", "results", "mean score", "share relevant", "error"}}
	all := newBuckets()
	worst := 0.0
	print := func(set string, from []bucket) {
		for i, b := range from {
			if b.Results == 0 {
				continue
			}
			n := float64(b.Results)
			score, share := b.Sum/n, float64(b.Relevant)/n
			cells := []string{set, fmt.Sprintf("%.1f to %.1f", float64(i)/buckets, float64(i+1)/buckets), fmt.Sprint(b.Results), three(score), three(share), "few"}
			if b.Results >= enough {
				cells[5] = fmt.Sprintf("%+.3f", share-score)
				if set == "all" {
					worst = max(worst, math.Abs(share-score))
				}
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	for _, r := range results {
		for _, m := range r.Modes {
			if m.Mode != memory.ModeHybrid {
				continue
			}
			for i, b := range m.Buckets {
				all[i].Results, all[i].Relevant, all[i].Sum = all[i].Results+b.Results, all[i].Relevant+b.Relevant, all[i].Sum+b.Sum
			}
			print(r.Set, m.Buckets)
		}
	}
	print("all", all)
	t.Note("%d results a question; \"few\": under %d results; the largest error over all sets is %.3f", depth, enough, worst)
	return t
}
