package main

import (
	"slices"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/stats"
)

// values are what was measured of one answer, by measure. What says nothing about
// a question is not in it: no recall where nothing is to be found.
type values map[string]float64

// nothing is 1 where nothing was to be found and nothing was.
const nothing = "nothing"

// measures lists what is measured of a set's answers, in the order of tables.
func measures(s judged.Scoring) []string {
	switch s {
	case judged.Stream:
		return []string{"turn R@5", "turn R@10", "turn R@20", "session R@5", "session R@10"}
	case judged.Sessions:
		return []string{"session R@1", "session R@5", "session hit@1", "newest@1", nothing}
	case judged.Exact:
		return []string{"precision", "recall", "passed", nothing}
	case judged.First:
		return []string{"hit@1", "hit@6", "hit@10", "MRR@20", nothing}
	default:
		return []string{"R@5", "R@10", "R@20", "recall_all@10", "MRR@20", nothing}
	}
}

// judge scores one answer: the ids of its captures, best first, and the distinct
// conversations they are of, but for the one that asks. Ranks are counted without what
// may be there.
func judge(s judged.Scoring, q judged.Question, ids, sessions []string) values {
	v := values{}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(q.May, id) })
	if q.Nothing {
		v[nothing] = oneIf(len(ids) == 0)
	}
	if s == judged.Exact {
		exact(v, q, ids)
		return v
	}
	if len(q.Evidence) > 0 {
		switch s {
		case judged.First:
			rr := stats.ReciprocalRank(ids, q.Evidence)
			v["hit@1"], v["hit@6"], v["hit@10"], v["MRR@20"] = oneIf(rr == 1), oneIf(rr >= 1.0/6), oneIf(rr >= 1.0/10), rr
		case judged.Stream:
			v["turn R@5"], v["turn R@10"], v["turn R@20"] = stats.Recall(ids, q.Evidence, 5), stats.Recall(ids, q.Evidence, 10), stats.Recall(ids, q.Evidence, 20)
		default:
			v["R@5"], v["R@10"], v["R@20"] = stats.Recall(ids, q.Evidence, 5), stats.Recall(ids, q.Evidence, 10), stats.Recall(ids, q.Evidence, 20)
			v["recall_all@10"], v["MRR@20"] = stats.RecallAll(ids, q.Evidence, 10), stats.ReciprocalRank(ids, q.Evidence)
		}
	}
	if n := len(q.Sessions); n > 0 {
		v["session R@5"] = stats.Recall(sessions, q.Sessions, 5)
		if s == judged.Stream {
			v["session R@10"] = stats.Recall(sessions, q.Sessions, 10)
		} else {
			v["session R@1"] = stats.Recall(sessions, q.Sessions, 1)
			v["session hit@1"] = oneIf(v["session R@1"] > 0)
			v["newest@1"] = oneIf(len(sessions) > 0 && sessions[0] == q.Sessions[n-1])
		}
	}
	return v
}

// exact compares all that came back with all that was wanted. An answer without
// results has no precision unless something was wanted.
func exact(v values, q judged.Question, ids []string) {
	wanted := 0
	for _, id := range ids {
		if slices.Contains(q.Evidence, id) {
			wanted++
		}
	}
	if len(ids) > 0 {
		v["precision"] = float64(wanted) / float64(len(ids))
	} else if len(q.Evidence) > 0 {
		v["precision"] = 0
	}
	if len(q.Evidence) > 0 {
		v["recall"] = stats.Recall(ids, q.Evidence, len(ids))
	}
	v["passed"] = oneIf(wanted == len(ids) && wanted == len(q.Evidence))
}

// ideal scores the best answer there could be: what a measure cannot pass.
func ideal(s judged.Scoring, q judged.Question) values {
	newestFirst := slices.Clone(q.Sessions)
	slices.Reverse(newestFirst)
	return judge(s, q, q.Evidence, newestFirst)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// row is what the questions of one category got, or all that count.
type row struct {
	Category  string              `json:"category"` // "all" is every category that is not apart
	Apart     bool                `json:"apart,omitempty"`
	Questions int                 `json:"questions"`
	Measures  map[string]measured `json:"measures"`
}

// measured sums up one measure over the questions that have it.
type measured struct {
	Questions int     `json:"questions"`
	Mean      float64 `json:"mean"`
	AtMost    float64 `json:"at_most"` // the mean of the best answers there could be
}

// summarise makes one row of every question that counts, then one of each
// category, those apart last.
func summarise(scores []score) []row {
	byCategory := map[string][]score{}
	var counted []score
	var categories []string
	for _, s := range scores {
		if !s.Apart {
			counted = append(counted, s)
		}
		if byCategory[s.Category] == nil {
			categories = append(categories, s.Category)
		}
		byCategory[s.Category] = append(byCategory[s.Category], s)
	}
	slices.Sort(categories)
	slices.SortStableFunc(categories, func(a, b string) int { return int(oneIf(byCategory[a][0].Apart) - oneIf(byCategory[b][0].Apart)) })
	rows := []row{sum("all", counted)}
	for _, c := range categories {
		rows = append(rows, sum(c, byCategory[c]))
	}
	return rows
}

func sum(category string, scores []score) row {
	r := row{Category: category, Apart: len(scores) > 0 && scores[0].Apart, Questions: len(scores), Measures: map[string]measured{}}
	for _, s := range scores {
		for name, v := range s.Measures {
			best, ok := s.ideal[name]
			if !ok {
				best = 1 // the best answer is nothing, which this measure says nothing of
			}
			m := r.Measures[name]
			r.Measures[name] = measured{m.Questions + 1, m.Mean + v, m.AtMost + best}
		}
	}
	for name, m := range r.Measures {
		n := float64(m.Questions)
		r.Measures[name] = measured{m.Questions, m.Mean / n, m.AtMost / n}
	}
	return r
}
