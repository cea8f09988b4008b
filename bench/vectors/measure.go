package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"mneme/bench/internal/points"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/internal/index/vector"
)

// efs are the lengths of candidate lists of the curve; defaultEf is the one that
// the other rows use.
var efs = []int{10, 20, 30, 40, 56, 80, 120, 160}

// nodePool is how many vectors a node asks for in a hybrid search.
const nodePool = 100

const defaultEf = 40

// measure fills a table for one kind of vectors and one size.
func measure(ctx context.Context, table *report.Table, opt options, kind string, n, dim int) (err error) {
	clusters := opt.clusters
	if clusters == 0 {
		clusters = max(1, n/100)
	}
	data, err := points.New(ctx, kind, points.Options{Seed: opt.seed, Dim: dim, Count: n, Queries: opt.queries, Clusters: clusters, Noise: opt.noise, Texts: opt.texts})
	if err != nil {
		return err
	}
	table.Note("%s", data.About)
	c := &held{dim: dim, vectors: data.Take(n), queries: data.TakeQueries(opt.queries)}
	if kind == points.Texts {
		c.small = points.Bytes(c.vectors)
	}
	exact, _, err := c.index(ctx, vector.EngineExact, upto(n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exact.Close()) }()
	truth, err := c.truth(ctx, exact, nil)
	if err != nil {
		return err
	}
	if err := onOne(func() error {
		a, err := c.ask(ctx, exact, nil, truth, opt)
		table.Info("engine exact: queries, one core", a.rate, "/s", latency(a))
		return err
	}); err != nil {
		return err
	}
	set, err := c.builds(ctx, table, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := errors.Join(c.curve(ctx, table, set, truth, opt, kind), c.asInANode(ctx, table, exact, opt)); err != nil || kind != points.Clusters {
		return err
	}
	fresh := data.Take(n / 2) // of the same clusters
	return errors.Join(
		c.filters(ctx, table, set, exact, opt),
		c.reload(ctx, table, set, n),
		c.churn(ctx, table, set, fresh, opt),
		c.coder(ctx, table, truth, opt, n),
	)
}

func latency(a asked) string {
	return fmt.Sprintf("p50 %.0f µs, p99 %.0f µs", a.p50.Seconds()*1e6, a.p99.Seconds()*1e6)
}

// builds builds the own engine's graph on one core and on all, and returns the
// latter set.
func (c *held) builds(ctx context.Context, table *report.Table, n int) (*vector.Set, error) {
	if err := onOne(func() error {
		set, took, err := c.index(ctx, vector.EngineMneme, upto(n))
		if err != nil {
			return err
		}
		table.Info("engine mneme: build, one core", stats.PerSecond(n, took), "/s", "")
		return set.Close()
	}); err != nil {
		return nil, err
	}
	set, took, err := c.index(ctx, vector.EngineMneme, upto(n))
	if err != nil {
		return nil, err
	}
	st := set.Stats()
	table.Info(fmt.Sprintf("engine mneme: build, %d cores", runtime.GOMAXPROCS(0)), stats.PerSecond(n, took), "/s", "kernel "+st.Kernel)
	links := float64(4 * 2 * 16)
	table.AtMost("engine mneme: bytes a vector over bytes and links", mostBytes, st.BytesPerVector/(float64(c.dim)+links), "",
		fmt.Sprintf("%.0f bytes, %.0f with room for growth", st.BytesPerVector, float64(st.Bytes)/float64(n)))
	return set, nil
}

// curve is recall against rate.
func (c *held) curve(ctx context.Context, table *report.Table, set *vector.Set, truth [][]vector.Hit, opt options, kind string) error {
	for _, ef := range efs {
		if err := set.SetEfSearch(ef); err != nil {
			return err
		}
		var one asked
		if err := onOne(func() (err error) {
			one, err = c.ask(ctx, set, nil, truth, opt)
			return err
		}); err != nil {
			return err
		}
		all, err := c.ask(ctx, set, nil, truth, opt)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("engine mneme, ef %d", ef)
		detail := fmt.Sprintf("%s; %s /s on %d cores", latency(one), report.Number(all.rate), runtime.GOMAXPROCS(0))
		if kind != points.Clusters || ef != defaultEf {
			table.Info(name+": recall@10", one.recall, "", "")
			table.Info(name+": queries, one core", one.rate, "/s", detail)
			continue
		}
		table.AtLeast(name+": recall@10", wantRecall, one.recall, "", "")
		table.AtLeast(name+": queries, one core", wantQueries, one.rate, "/s", detail)
	}
	return set.SetEfSearch(defaultEf)
}

// asInANode asks a set that stands as in a node, behind its recall guard, for as many as a
// node asks for: k of them are compared, and all. Vectors of texts came as bytes, as the
// built-in model gives them; others as floats, which rank the best candidates.
func (c *held) asInANode(ctx context.Context, table *report.Table, exact *vector.Set, opt options) (err error) {
	node := vector.Options{ExactBelow: -1}
	if c.small == nil {
		node.Exact = c.exactly
	}
	set, err := vector.NewSet(c.dim, node)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	ids := upto(len(c.vectors))
	if c.small != nil {
		err = set.AddBulkInt8(ids, c.small)
	} else {
		err = c.add(set, ids)
	}
	if err := errors.Join(err, set.Wait(ctx)); err != nil {
		return err
	}
	for _, most := range []int{k, nodePool} {
		truth, err := c.truthOf(ctx, exact, nil, most)
		if err != nil {
			return err
		}
		if err := onOne(func() error {
			if _, err := c.askFor(ctx, set, nil, truth, opt, most); err != nil { // for the guard to see
				return err
			}
			if err := set.Wait(ctx); err != nil {
				return err
			}
			a, err := c.askFor(ctx, set, nil, truth, opt, most)
			st := set.Stats()
			name := fmt.Sprintf("as in a node, %d asked for", most)
			table.AtLeast(name+fmt.Sprintf(": recall@%d", k), wantRecall, a.recall, "", fmt.Sprintf("all %d: %.3f; the guard says %.3f, %s answers", most, a.all, st.Recall, st.Engine))
			table.Info(name+": queries, one core", a.rate, "/s", latency(a))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// filters is searches that may return one vector in so many.
func (c *held) filters(ctx context.Context, table *report.Table, set, exact *vector.Set, opt options) error {
	for _, step := range []int{2, 10, 30, 100, 1000, 10000} {
		f := every{n: len(c.vectors), step: step}
		truth, err := c.truth(ctx, exact, f)
		if err != nil {
			return err
		}
		if err := onOne(func() error {
			a, err := c.ask(ctx, set, f, truth, opt)
			table.Info(fmt.Sprintf("engine mneme, %.4g %% allowed: queries, one core", 100/float64(step)), a.rate, "/s",
				fmt.Sprintf("recall@10 %.3f, %s", a.recall, latency(a)))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// reload saves the graph and starts a set from it as a node does, but for opening
// sealed vectors.
func (c *held) reload(ctx context.Context, table *report.Table, set *vector.Set, n int) (err error) {
	var file bytes.Buffer
	began := time.Now()
	if err := set.Save(&file); err != nil {
		return err
	}
	table.Info("engine mneme: save the graph", time.Since(began).Seconds(), "s", fmt.Sprintf("%.0f bytes a vector", float64(file.Len())/float64(n)))
	opt := c.options(vector.EngineMneme)
	opt.Pace = func() time.Duration { return time.Hour } // the graph comes from the file
	other, err := vector.NewSet(c.dim, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	began = time.Now()
	if err := c.add(other, upto(n)); err != nil {
		return err
	}
	added := time.Since(began)
	began = time.Now()
	if err := other.Load(&file); err != nil {
		return err
	}
	table.Info("engine mneme: load the graph", time.Since(began).Seconds(), "s", fmt.Sprintf("and %.2f s to add the vectors", added.Seconds()))
	if st := other.Stats(); st.InGraph != n {
		return fmt.Errorf("loaded %d of %d nodes", st.InGraph, n)
	}
	return ctx.Err()
}

// churn replaces half of the vectors, some at a time, and compares with a set
// that never had the others.
func (c *held) churn(ctx context.Context, table *report.Table, set *vector.Set, fresh [][]float32, opt options) (err error) {
	n := len(c.vectors)
	c.vectors = append(c.vectors, fresh...)
	began := time.Now()
	const step = 500
	for at := 0; at < len(fresh); at += step {
		ids := upto(n + min(at+step, len(fresh)))[n+at:]
		for i := range ids {
			set.Delete(vector.ID(2 * (at + i)))
		}
		if err := c.add(set, ids); err != nil {
			return err
		}
	}
	if err := set.Wait(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	var left []vector.ID
	for _, id := range upto(len(c.vectors)) {
		if int(id) >= n || id%2 == 1 || int(id) >= 2*len(fresh) {
			left = append(left, id)
		}
	}
	exact, _, err := c.index(ctx, vector.EngineExact, left)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, exact.Close()) }()
	truth, err := c.truth(ctx, exact, nil)
	if err != nil {
		return err
	}
	anew, _, err := c.index(ctx, vector.EngineMneme, left)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, anew.Close()) }()
	before, err := c.ask(ctx, anew, nil, truth, opt)
	if err != nil {
		return err
	}
	after, err := c.ask(ctx, set, nil, truth, opt)
	if err != nil {
		return err
	}
	table.AtMost("engine mneme: recall@10 lost by replacing half", mostLoss, before.recall-after.recall, "",
		fmt.Sprintf("%.4f, built anew %.4f; %s replacements/s, %d tombstones left", after.recall, before.recall,
			report.Number(stats.PerSecond(len(fresh), took)), set.Stats().Deleted))
	return nil
}

// coder measures the other engine. A peer that cannot be measured does not spoil
// the rest.
func (c *held) coder(ctx context.Context, table *report.Table, truth [][]vector.Hit, opt options, n int) error {
	if n > coderMost {
		return nil
	}
	return onOne(func() error {
		set, took, err := c.index(ctx, vector.EngineCoder, upto(n))
		if err != nil {
			table.Failed("engine coder", "", err)
			return nil
		}
		defer set.Close()
		a, err := c.ask(ctx, set, nil, truth, opt)
		if err != nil {
			table.Failed("engine coder", "", err)
			return nil
		}
		table.Info("engine coder: recall@10", a.recall, "", "")
		table.Info("engine coder: queries, one core", a.rate, "/s", latency(a))
		table.Info("engine coder: build, one core", stats.PerSecond(n, took), "/s", "")
		return nil
	})
}
