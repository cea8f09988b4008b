package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/bm25"
	"mneme/bench/internal/judged"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/internal/text"
	"mneme/memory"
)

// These are no modes of a node: the bench itself ranks the texts, by plain words or by the words of
// the node's analyzer, in their stems and without stop words.
const (
	plainBM25 memory.Mode = "bm25"
	stemsBM25 memory.Mode = "bm25-stems"
)

const (
	depth      = 20  // results asked for
	batchItems = 200 // captures in one request
	batchBytes = 2 << 20
)

// score is what one question of one mode got.
type score struct {
	Set       string      `json:"set"`
	Variant   string      `json:"variant,omitempty"`
	Mode      memory.Mode `json:"mode"`
	Namespace string      `json:"namespace"`
	Question  int         `json:"question"` // of the namespace, from 0
	Group     string      `json:"group"`
	Category  string      `json:"category"`
	Apart     bool        `json:"apart,omitempty"`
	Measures  values      `json:"measures"`
	Results   []hit       `json:"results"`
	ideal     values
}

// hit is one result, by the id of its capture.
type hit struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"`
}

// modeResult is all that one way to search got for one set.
type modeResult struct {
	Variant   string      `json:"variant,omitempty"` // what is other than usual
	Mode      memory.Mode `json:"mode"`
	Served    memory.Mode `json:"served"` // what the node says it did
	Rows      []row       `json:"rows"`
	Buckets   []bucket    `json:"buckets"` // by score
	P50ms     float64     `json:"p50_ms"`
	P99ms     float64     `json:"p99_ms"`
	Questions int         `json:"questions"`
	scores    []score
}

// result is what one set got.
type result struct {
	Set        string `json:"set"`
	scoring    judged.Scoring
	Namespaces int           `json:"namespaces"`
	Counts     judged.Counts `json:"counts"`
	CaptureS   float64       `json:"capture_seconds"`
	Modes      []modeResult  `json:"modes"`
	Ablation   []modeResult  `json:"ablation,omitempty"`
	Prompts    []promptRow   `json:"prompts,omitempty"`
}

type document struct {
	Machine string   `json:"machine"`
	Missing []string `json:"missing,omitempty"`
	Sets    []result `json:"sets"`
}

// measure sends a set to the node and asks every question in every way. Of a
// streamed set each question is asked, in all ways, before what follows it is sent.
func measure(ctx context.Context, c *client.Client, set *judged.Set, opt options, say func(string, ...any)) (result, error) {
	res := result{Set: set.Name, scoring: set.Scoring, Namespaces: len(set.Namespaces), Counts: set.Counts}
	run := &asking{client: c, set: set, opt: opt, units: map[string]memory.Capture{}, plain: map[string]*plain{}}
	var ways []asker
	plain := modes(set, opt)
	switch {
	case opt.tokens > 0:
		ways = append(ways, newPrompting(opt.tokens))
	case opt.ablate:
		ways = newWays(append(slices.Clone(plain), variants()...))
	default:
		ways = newWays(plain)
	}
	began := time.Now()
	for _, ns := range set.Namespaces {
		if err := run.create(ctx, ns); err != nil {
			return res, err
		}
	}
	res.CaptureS = time.Since(began).Seconds()
	if !set.Streamed {
		say("%s: %d captures in %.1f s", set.Name, set.Counts.Captures, res.CaptureS)
	}
	began = time.Now()
	ask := run.inTurn
	if set.Streamed {
		ask = run.inStream
	}
	if err := ask(ctx, ways); err != nil {
		return res, err
	}
	say("%s: asked in %d ways in %.1f s", set.Name, len(ways), time.Since(began).Seconds())
	for i, w := range ways {
		switch w := w.(type) {
		case *prompting:
			res.Prompts = w.rows()
		case *way:
			if i < len(plain) {
				res.Modes = append(res.Modes, w.result())
			} else {
				res.Ablation = append(res.Ablation, w.result())
			}
		}
	}
	return res, nil
}

// modes are the modes asked for, each also over namespaces that were split.
func modes(set *judged.Set, opt options) []variant {
	var out []variant
	for _, mode := range opt.modes {
		out = append(out, variant{req: memory.SearchRequest{Mode: mode}})
		if opt.split > 0 && !set.Streamed && mode != plainBM25 && mode != stemsBM25 {
			out = append(out, variant{name: fmt.Sprintf("in %d", opt.split), req: memory.SearchRequest{Mode: mode}, split: opt.split})
		}
	}
	return out
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

// asking is one set on its way through a node.
type asking struct {
	client *client.Client
	set    *judged.Set
	opt    options
	units  map[string]memory.Capture // by record id
	plain  map[string]*plain         // by namespace
}

// plain is what was sent into a namespace, for a search that asks no node.
type plain struct {
	index bm25.Index
	stems bm25.Index
	sent  []memory.Capture
}

// create makes a namespace, and those it is split into, and fills them unless the
// set is streamed.
func (a *asking) create(ctx context.Context, ns judged.Namespace) error {
	name := a.opt.prefix + ns.Name
	parts := map[string][]memory.Capture{name: ns.Captures}
	if a.set.Streamed {
		parts[name] = nil
	} else {
		for i, part := range spread(ns.Captures, a.opt.split, a.opt.torn) {
			parts[partOf(name, i)] = part
		}
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		if _, err := a.client.CreateNamespace(ctx, memory.CreateNamespace{Name: part}); err != nil {
			return fmt.Errorf("create namespace %s: %w", part, err)
		}
		a.plain[part] = &plain{stems: bm25.Index{Cut: text.IndexTerms}}
		if err := a.send(ctx, part, parts[part]); err != nil {
			return err
		}
	}
	return nil
}

// send captures memories, all searchable when it returns.
func (a *asking) send(ctx context.Context, name string, captures []memory.Capture) error {
	for len(captures) > 0 {
		n, size := 0, 0
		for n < len(captures) && n < batchItems && (n == 0 || size+len(captures[n].Text) <= batchBytes) {
			size += len(captures[n].Text)
			n++
		}
		answer, err := a.client.CaptureBatch(ctx, name, captures[:n], client.CaptureOptions{Wait: memory.WaitSearchable})
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
			a.units[r.RecordID] = captures[i]
			a.plain[name].index.Add(captures[i].Text)
			a.plain[name].stems.Add(captures[i].Text)
			a.plain[name].sent = append(a.plain[name].sent, captures[i])
		}
		captures = captures[n:]
	}
	return nil
}

// inTurn asks all questions in one way after the other.
func (a *asking) inTurn(ctx context.Context, ways []asker) error {
	for _, w := range ways {
		for _, ns := range a.set.Namespaces {
			for _, i := range a.scored(ns) {
				if err := w.ask(ctx, a, ns, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// inStream sends what comes before a question and asks it in all ways.
func (a *asking) inStream(ctx context.Context, ways []asker) error {
	for _, ns := range a.set.Namespaces {
		sent := 0
		for _, i := range a.scored(ns) {
			after := ns.Questions[i].After
			if err := a.send(ctx, a.opt.prefix+ns.Name, ns.Captures[sent:after]); err != nil {
				return err
			}
			sent = after
			for _, w := range ways {
				if err := w.ask(ctx, a, ns, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// scored returns which questions of a namespace are asked.
func (a *asking) scored(ns judged.Namespace) []int {
	var out []int
	for i := range ns.Questions {
		if ns.Questions[i].Scored(a.set.Scoring) && (a.opt.limit == 0 || len(out) < a.opt.limit) {
			out = append(out, i)
		}
	}
	return out
}

// asker asks a question, and keeps what it got.
type asker interface {
	ask(ctx context.Context, a *asking, ns judged.Namespace, question int) error
}

// way is one way to ask, and what it got so far.
type way struct {
	variant
	served  memory.Mode
	scores  []score
	took    []float64 // milliseconds
	buckets []bucket
}

func newWays(variants []variant) []asker {
	var out []asker
	for _, v := range variants {
		out = append(out, &way{variant: v, buckets: newBuckets()})
	}
	return out
}

// ask asks one question and scores the answer.
func (w *way) ask(ctx context.Context, a *asking, ns judged.Namespace, question int) error {
	q := ns.Questions[question]
	began := time.Now()
	found, served, err := w.find(ctx, a, ns.Name, q)
	if err != nil {
		return fmt.Errorf("search %s%s in %s: %w", w.req.Mode, w.name, ns.Name, err)
	}
	w.took = append(w.took, time.Since(began).Seconds()*1000)
	w.served = served
	s := score{Set: a.set.Name, Variant: w.name, Mode: w.req.Mode, Namespace: ns.Name, Question: question, Group: q.Group,
		Category: q.Category, Apart: q.Apart, Results: make([]hit, len(found)), ideal: ideal(a.set.Scoring, q)}
	ids := make([]string, len(found))
	var sessions []string
	for i, f := range found {
		c := f.capture
		ids[i], s.Results[i] = c.ID, hit{c.ID, f.score}
		if c.Conversation != q.Session && !slices.Contains(sessions, c.Conversation) {
			sessions = append(sessions, c.Conversation)
		}
		if !q.Apart && !slices.Contains(q.May, c.ID) {
			note(w.buckets, f.score, slices.Contains(q.Evidence, c.ID) || len(q.Evidence) == 0 && slices.Contains(q.Sessions, c.Conversation))
		}
	}
	s.Measures = judge(a.set.Scoring, q, ids, sessions)
	w.scores = append(w.scores, s)
	return nil
}

// found is one result.
type found struct {
	capture memory.Capture
	score   float64
}

// find answers one question, and says in which mode it was answered.
func (w *way) find(ctx context.Context, a *asking, namespace string, q judged.Question) ([]found, memory.Mode, error) {
	if w.req.Mode == plainBM25 || w.req.Mode == stemsBM25 {
		return a.plain[a.opt.prefix+namespace].find(w.req.Mode, q), w.req.Mode, nil
	}
	answer, err := w.search(ctx, a, namespace, q)
	out := make([]found, len(answer.Results))
	for i, r := range answer.Results {
		out[i] = found{a.units[r.ID], r.Score}
	}
	return out, answer.Mode, err
}

// search asks the node.
func (w *way) search(ctx context.Context, a *asking, namespace string, q judged.Question) (memory.SearchResponse, error) {
	if strings.TrimSpace(q.Text) == "" {
		return memory.SearchResponse{Mode: w.req.Mode}, nil // a node refuses an empty query: that is an answer with nothing
	}
	namespace = a.opt.prefix + namespace
	limit := depth
	req := w.req
	req.Limit, req.Query, req.Filter = &limit, q.Text, q.Filter
	if a.opt.minScore >= 0 {
		req.MinScore = &a.opt.minScore
	}
	if w.split == 0 {
		return a.client.Search(ctx, namespace, req)
	}
	var parts []string
	for i := range w.split {
		parts = append(parts, partOf(namespace, i))
	}
	return a.client.SearchNamespaces(ctx, parts, req)
}

// find ranks what was sent so far. Of a filter it knows the tags.
func (p *plain) find(mode memory.Mode, q judged.Question) []found {
	index := &p.index
	if mode == stemsBM25 {
		index = &p.stems
	}
	hits := index.Search(q.Text, depth, func(doc int) bool {
		return q.Filter == nil || !slices.ContainsFunc(q.Filter.Tags, func(tag string) bool { return !slices.Contains(p.sent[doc].Tags, tag) })
	})
	out := make([]found, len(hits))
	for i, h := range hits {
		out[i] = found{p.sent[h.Doc], h.Score}
	}
	return out
}

func (w *way) result() modeResult {
	return modeResult{Variant: w.name, Mode: w.req.Mode, Served: w.served, Rows: summarise(w.scores), Buckets: w.buckets,
		P50ms: stats.Percentile(w.took, 50), P99ms: stats.Percentile(w.took, 99), Questions: len(w.scores), scores: w.scores}
}
