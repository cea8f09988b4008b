package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

const (
	depth      = 20  // results asked for
	batchItems = 200 // captures in one request
	batchBytes = 2 << 20
)

// score is what one question of one mode got.
type score struct {
	category, namespace   string
	apart                 bool
	r5, r10, r20, all, rr float64
}

// modeResult is all that one way to search got for one set.
type modeResult struct {
	Variant   string      `json:"variant,omitempty"` // what is other than usual
	Mode      memory.Mode `json:"mode"`
	Served    memory.Mode `json:"served"` // what the node says it did
	Rows      []row       `json:"rows"`
	Spaces    []row       `json:"namespaces"` // the means by namespace
	Buckets   []bucket    `json:"buckets"`    // by score
	P50ms     float64     `json:"p50_ms"`
	P99ms     float64     `json:"p99_ms"`
	Questions int         `json:"questions"`
}

// row is the mean over the questions of one category, or of all that count.
type row struct {
	Category    string  `json:"category"` // "all" is every category that is not apart
	Apart       bool    `json:"apart,omitempty"`
	Questions   int     `json:"questions"`
	R5          float64 `json:"recall_at_5"`
	R10         float64 `json:"recall_at_10"`
	R20         float64 `json:"recall_at_20"`
	RecallAll10 float64 `json:"recall_all_at_10"`
	MRR         float64 `json:"mrr"`
}

// result is what one set got.
type result struct {
	Set        string        `json:"set"`
	Namespaces int           `json:"namespaces"`
	Counts     judged.Counts `json:"counts"`
	CaptureS   float64       `json:"capture_seconds"`
	Modes      []modeResult  `json:"modes"`
	Ablation   []modeResult  `json:"ablation,omitempty"`
}

type document struct {
	Machine string   `json:"machine"`
	Missing []string `json:"missing,omitempty"`
	Sets    []result `json:"sets"`
}

// measure sends a set to the node and asks every question in every mode.
func measure(ctx context.Context, c *client.Client, set *judged.Set, opt options, say func(string, ...any)) (result, error) {
	res := result{Set: set.Name, Namespaces: len(set.Namespaces), Counts: set.Counts}
	units := map[string]string{} // record id to capture id
	began := time.Now()
	for _, ns := range set.Namespaces {
		if err := send(ctx, c, opt.prefix+ns.Name, ns.Captures, units); err != nil {
			return res, err
		}
	}
	res.CaptureS = time.Since(began).Seconds()
	for _, ns := range set.Namespaces {
		for i, part := range spread(ns.Captures, opt.split, opt.torn) {
			if err := send(ctx, c, partOf(opt.prefix+ns.Name, i), part, units); err != nil {
				return res, err
			}
		}
	}
	say("%s: %d captures in %.1f s", set.Name, set.Counts.Captures, res.CaptureS)
	for _, mode := range opt.modes {
		m, err := ask(ctx, c, set, variant{req: memory.SearchRequest{Mode: mode}}, opt, units)
		if err != nil {
			return res, err
		}
		say("%s: %d questions, mode %s", set.Name, m.Questions, mode)
		res.Modes = append(res.Modes, m)
		if opt.split > 0 {
			v := variant{name: fmt.Sprintf("in %d", opt.split), req: memory.SearchRequest{Mode: mode}, split: opt.split}
			if m, err = ask(ctx, c, set, v, opt, units); err != nil {
				return res, err
			}
			say("%s: %d questions, mode %s, %s namespaces", set.Name, m.Questions, mode, v.name)
			res.Modes = append(res.Modes, m)
		}
	}
	if opt.ablate {
		for _, v := range variants() {
			m, err := ask(ctx, c, set, v, opt, units)
			if err != nil {
				return res, err
			}
			say("%s: %s", set.Name, v.name)
			res.Ablation = append(res.Ablation, m)
		}
	}
	return res, nil
}

// spread deals captures out: a conversation, or a message without one, to each part in turn.
func spread(captures []memory.Capture, parts int, torn bool) [][]memory.Capture {
	out := make([][]memory.Capture, parts)
	if parts == 0 {
		return nil
	}
	dealt, next := map[string]int{}, 0
	for _, c := range captures {
		at, known := dealt[c.Conversation]
		if !known || torn || c.Conversation == "" {
			at = next % parts
			dealt[c.Conversation] = at
			next++
		}
		out[at] = append(out[at], c)
	}
	return out
}

func partOf(namespace string, i int) string { return fmt.Sprintf("%s-part%d", namespace, i) }

// send creates a namespace and captures its memories, all searchable when it
// returns. units gets the id of each record.
func send(ctx context.Context, c *client.Client, name string, captures []memory.Capture, units map[string]string) error {
	if _, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: name}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	for len(captures) > 0 {
		n, size := 0, 0
		for n < len(captures) && n < batchItems && (n == 0 || size+len(captures[n].Text) <= batchBytes) {
			size += len(captures[n].Text)
			n++
		}
		answer, err := c.CaptureBatch(ctx, name, captures[:n], client.CaptureOptions{Wait: memory.WaitSearchable})
		if err != nil {
			return fmt.Errorf("capture into %s: %w", name, err)
		}
		if len(answer.Results) != n {
			return fmt.Errorf("capture into %s: %d results for %d captures", name, len(answer.Results), n)
		}
		for i, r := range answer.Results {
			if r.Error != nil || r.Status != memory.StatusCreated {
				return fmt.Errorf("capture %s into %s: status %s: %+v", captures[i].ID, name, r.Status, r.Error)
			}
			units[r.RecordID] = captures[i].ID
		}
		captures = captures[n:]
	}
	return nil
}

// ask asks every question of a set once, one after the other.
func ask(ctx context.Context, c *client.Client, set *judged.Set, v variant, opt options, units map[string]string) (modeResult, error) {
	out := modeResult{Variant: v.name, Mode: v.req.Mode, Buckets: newBuckets()}
	var scores []score
	var took []float64
	limit := depth
	req := v.req
	req.Limit = &limit
	for _, ns := range set.Namespaces {
		asked := 0
		for _, q := range ns.Questions {
			if len(q.Evidence) == 0 {
				continue
			}
			if asked++; opt.limit > 0 && asked > opt.limit {
				break
			}
			began := time.Now()
			req.Query = q.Text
			var parts []string
			for i := range v.split {
				parts = append(parts, partOf(opt.prefix+ns.Name, i))
			}
			var answer memory.SearchResponse
			var err error
			if len(parts) > 0 {
				answer, err = c.SearchNamespaces(ctx, parts, req)
			} else {
				answer, err = c.Search(ctx, opt.prefix+ns.Name, req)
			}
			if err != nil {
				return out, fmt.Errorf("search %s%s in %s: %w", req.Mode, v.name, ns.Name, err)
			}
			took = append(took, time.Since(began).Seconds()*1000)
			out.Served = answer.Mode
			ranked := make([]string, len(answer.Results))
			for i, hit := range answer.Results {
				ranked[i] = units[hit.ID]
				if !q.Apart {
					note(out.Buckets, hit.Score, slices.Contains(q.Evidence, ranked[i]))
				}
			}
			s := judge(q, ranked)
			s.namespace = ns.Name
			scores = append(scores, s)
		}
	}
	out.Questions = len(scores)
	out.Rows = summarise(scores)
	out.Spaces = byNamespace(scores)
	out.P50ms, out.P99ms = stats.Percentile(took, 50), stats.Percentile(took, 99)
	return out, nil
}

// judge scores one answer; ranked are capture ids, best first.
func judge(q judged.Question, ranked []string) score {
	return score{category: q.Category, apart: q.Apart,
		r5: stats.Recall(ranked, q.Evidence, 5), r10: stats.Recall(ranked, q.Evidence, 10), r20: stats.Recall(ranked, q.Evidence, 20),
		all: stats.RecallAll(ranked, q.Evidence, 10), rr: stats.ReciprocalRank(ranked, q.Evidence)}
}
