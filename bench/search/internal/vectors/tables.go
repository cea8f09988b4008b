package vectors

import (
	"errors"
	"fmt"

	"mneme/bench/internal/report"
	"mneme/bench/search/internal/peer"
)

// tables makes the report of one size.
func (b *bench) tables() []*report.Table {
	title := fmt.Sprintf("Vectors (%s): %d of %d dimensions", b.opt.Of, b.data.n, b.data.dim)
	out := []*report.Table{b.marks(title + ", ours beside the better of hnswlib and FAISS"), b.summary(title),
		b.curveTable(title + ", recall@10 against queries/s, one thread")}
	if b.data.changed > 0 {
		out = append(out, b.filterTable(title+", filtered"))
	}
	if b.replaces() {
		out = append(out, b.churnTable(title+", half of them replaced"))
	}
	out[0].Note("%s; seed %d; %d queries; M %d, efConstruction %d; rates are medians of %d rounds, in turn between the indexes; each index is a process of its own; what is as near as the tenth of the true ones is right",
		b.data.about, b.opt.Seed, b.opt.Queries, m, efc, b.opt.Runs)
	if b.opt.Missing != nil {
		out[0].Note("hnswlib and FAISS were not measured: %v", b.opt.Missing)
	}
	return out
}

// replaces reports whether half of the vectors is replaced.
func (b *bench) replaces() bool { return b.data.changed > 0 && b.data.n <= b.opt.ReplaceUpto }

// marks compares the first index, which is ours, with the best peer.
func (b *bench) marks(title string) *report.Table {
	t := report.NewTargets(title)
	if len(b.all) == 0 || b.opt.Peers == "" {
		return t
	}
	ours := b.all[0]
	for _, row := range []struct {
		what   string
		target float64
		of     func(*result) float64
	}{
		{"queries/s at recall@10 0.98, one thread", 1.5, (*result).rate},
		{fmt.Sprintf("queries/s at recall@10 0.98, %d threads", b.opt.Threads), 1.5, func(r *result) float64 { return r.rateAll }},
		{"build, one thread", 1, func(r *result) float64 { return r.build }},
		{fmt.Sprintf("build, %d threads", b.opt.Threads), 1, func(r *result) float64 { return r.buildAll }},
	} {
		best, name := 0.0, ""
		for _, r := range b.all {
			if v := row.of(r); r.peer && v > best {
				best, name = v, r.name
			}
		}
		if best > 0 {
			t.AtLeast(row.what, row.target, row.of(ours)/best, "", fmt.Sprintf("%s beside %s of %s", report.Number(row.of(ours)), report.Number(best), name))
		}
	}
	// int8 codes and the links of a node: 2M on the ground, M/(M-1) above.
	links := float64(4 * (2*m + m/(m-1)))
	t.AtMost("resident bytes a vector beside int8 and links", 1.3, ours.bytes/(float64(b.data.dim)+links), "", report.Number(ours.bytes)+" bytes")
	t.AtMost("load", 5, ours.load, "s", "")
	if !b.replaces() {
		return t
	}
	t.AtMost("recall lost by replacing half", 0.01, ours.churn.fresh-ours.churn.recall, "", fmt.Sprintf("%.4f, built afresh %.4f", ours.churn.recall, ours.churn.fresh))
	return t
}

// rate is the queries a second at the wanted recall, one thread; 0 if it was
// never reached.
func (r *result) rate() float64 {
	low, high, ok := bracket(r.curve)
	if !ok {
		return 0
	}
	return between(low, high)
}

func (b *bench) summary(title string) *report.Table {
	t := &report.Table{Title: title, Header: []string{"index", "build/s, 1 thread", fmt.Sprintf("build/s, %d threads", b.opt.Threads), "bytes/vector",
		"queries/s at 0.98, 1 thread", fmt.Sprintf("queries/s at 0.98, %d threads", b.opt.Threads), "load", "saved bytes/vector", "recall after load"}}
	for _, r := range b.all {
		row := []string{r.name, number(r, "build", r.build), number(r, "build", r.buildAll), number(r, "build", r.bytes)}
		if rate := r.rate(); rate > 0 {
			row = append(row, report.Number(rate), number(r, "search on all threads", r.rateAll))
		} else {
			row = append(row, notReached(r), "")
		}
		load := number(r, "save and load", r.load)
		if r.failed["save and load"] == nil {
			load += " s"
		}
		t.Rows = append(t.Rows, append(row, load, number(r, "save and load", r.saved), number(r, "save and load", r.loadRecall)))
	}
	t.Note("bytes/vector: anonymous resident memory that the build added; queries/s: on the line between the two measured values of ef around recall 0.98; load: until every vector can be searched, the vectors themselves mapped from a file by ours, read from the index's own file by the others")
	return t
}

func notReached(r *result) string {
	if err := r.failed["search"]; err != nil {
		return cellOf(err)
	}
	best := 0.0
	for _, p := range r.curve {
		best = max(best, p.recall)
	}
	return fmt.Sprintf("not reached (recall %.3f)", best)
}

// number writes a value, or why there is none.
func number(r *result, step string, v float64) string {
	if err := errors.Join(r.failed["build"], r.failed[step]); err != nil {
		return cellOf(err)
	}
	return report.Number(v)
}

func cellOf(err error) string {
	if errors.Is(err, peer.ErrUnsupported) {
		return "not supported"
	}
	return "failed: " + err.Error()
}

func (b *bench) curveTable(title string) *report.Table {
	t := &report.Table{Title: title, Header: []string{"index"}}
	for _, ef := range sweep {
		t.Header = append(t.Header, fmt.Sprintf("ef %d", ef))
	}
	for _, r := range b.all {
		row := []string{r.name}
		for _, p := range r.curve {
			row = append(row, fmt.Sprintf("%.3f: %s", p.recall, report.Number(p.rate)))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note("an index is not asked further once it finds %g, or with two longer lists no more than before", enough)
	return t
}

func (b *bench) filterTable(title string) *report.Table {
	t := &report.Table{Title: title, Header: []string{"index"}}
	for _, share := range filters {
		t.Header = append(t.Header, fmt.Sprintf("%g %% allowed", 100*share))
	}
	for _, r := range b.all {
		row := []string{r.name}
		for _, p := range r.filtered {
			row = append(row, fmt.Sprintf("%s/s (%.3f, ef %d)", report.Number(p.rate), p.recall, p.ef))
		}
		if err := r.failed["filter"]; err != nil {
			row = append(row, cellOf(err))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note("queries/s, one thread, %d queries (recall@10 among what is allowed); ef is raised from 40 to at most 800 until %g is found; hnswlib marks the others as deleted, because this version takes no filter", b.few(), filterRecall)
	return t
}

func (b *bench) churnTable(title string) *report.Table {
	t := &report.Table{Title: title, Header: []string{"index", fmt.Sprintf("replaced/s, %d threads", b.opt.Threads), "recall@10 after", "recall@10 built afresh", "ef"}}
	for _, r := range b.all {
		const step = "replace half"
		if err := errors.Join(r.failed["build"], r.failed[step]); err != nil {
			t.Rows = append(t.Rows, []string{r.name, cellOf(err)})
			continue
		}
		t.Rows = append(t.Rows, []string{r.name, report.Number(r.churn.rate), fmt.Sprintf("%.4f", r.churn.recall), fmt.Sprintf("%.4f", r.churn.fresh), fmt.Sprint(efOf(r))})
	}
	t.Note("ours deletes and adds under a new number, waiting until the graph holds all; hnswlib updates in place")
	return t
}
