package texts

import (
	"fmt"

	"mneme/bench/internal/report"
)

// tables makes the report of one size.
func (b *bench) tables(from string, identical map[int]compared) []*report.Table {
	n := len(b.docs.lines)
	title := fmt.Sprintf("Text: %d documents", n)
	marks := b.marks(title+", ours beside others", identical)
	marks.Note("texts: %s; all indexes hold the terms of the project's analyzer, which is not part of any rate; batches of %d (ours), %d (bleve), %d (the others), none synced one by one; "+
		"those in C and C++ are processes of their own, build on one thread, and measure themselves; "+
		"rates of building run until the index is closed; queries are of terms out of one document, any of which may match; k = %d, one thread, medians of %d rounds in turn between the indexes",
		from, ownBatch, bleveBatch, ftsBatch, K, b.opt.Runs)
	return []*report.Table{marks, b.summary(title)}
}

// marks compares the first engine, which is ours, with the others.
func (b *bench) marks(title string, identical map[int]compared) *report.Table {
	t := report.NewTargets(title)
	ours := b.all[0]
	for i, r := range b.all[1:] {
		if r.err != nil || ours.err != nil {
			continue
		}
		row := func(what string, a, b float64, unit string) {
			what += " beside " + r.name
			detail := fmt.Sprintf("%s beside %s%s", report.Number(a), report.Number(b), unit)
			if i == 0 {
				t.AtLeast(what, 3, a/b, "", detail)
			} else {
				t.Info(what, a/b, "", detail)
			}
		}
		row("build, one thread", ours.one, r.one, "/s")
		row(fmt.Sprintf("build, %d threads", b.opt.Threads), ours.all, r.all, "/s")
		for _, size := range lengths {
			row(fmt.Sprintf("queries/s, %s", termCount(size)), ours.rates[size], r.rates[size], "/s")
		}
		t.Info("bytes on disk beside "+r.name, float64(ours.disk)/float64(r.disk), "", "")
	}
	if ours.err == nil {
		t.AtMost("two-term query p50", 1, report.Millis(ours.p50[2]), "ms", "")
		for _, size := range lengths {
			c := identical[size]
			t.AtLeast(fmt.Sprintf("top %d as a scan of all documents, %s", K, termCount(size)), 1, float64(c.identical)/float64(max(c.of, 1)), "", fmt.Sprintf("%d of %d", c.identical, c.of))
		}
	}
	return t
}

func termCount(n int) string {
	if n == 1 {
		return "1 term"
	}
	return fmt.Sprintf("%d terms", n)
}

func (b *bench) summary(title string) *report.Table {
	t := &report.Table{Title: title, Header: []string{"index", "build/s, 1 thread", fmt.Sprintf("build/s, %d threads", b.opt.Threads), "bytes/document on disk", "shares of our answers"}}
	for _, size := range lengths {
		t.Header = append(t.Header, termCount(size)+": queries/s (p50, p99)")
	}
	for _, r := range b.all {
		if r.err != nil {
			t.Rows = append(t.Rows, []string{r.name, "not measured: " + r.err.Error()})
			continue
		}
		row := []string{r.name, report.Number(r.one), report.Number(r.all), report.Number(float64(r.disk) / float64(len(b.docs.lines))), report.Number(b.shared(r))}
		for _, size := range lengths {
			row = append(row, fmt.Sprintf("%s (%s ms, %s ms)", report.Number(r.rates[size]), report.Number(report.Millis(r.p50[size])), report.Number(report.Millis(r.p99[size]))))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note("shares of our answers: the part of our top %d, over all queries, that this index gives too; formulas and ties differ, terms must not", K)
	return t
}

// shared is the part of our answers that r gives too.
func (b *bench) shared(r *result) float64 {
	found, all := 0, 0
	for _, size := range lengths {
		for i := range min(len(r.answers[size]), len(b.all[0].answers[size])) {
			theirs := map[uint32]bool{}
			for _, h := range r.answers[size][i] {
				theirs[h.doc] = true
			}
			for _, h := range b.all[0].answers[size][i] {
				all++
				if theirs[h.doc] {
					found++
				}
			}
		}
	}
	return float64(found) / float64(max(all, 1))
}
