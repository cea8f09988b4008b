package main

import (
	"fmt"
	"strings"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/memory"
)

// mark is what the default search should reach.
type mark struct {
	set, category, measure string  // without a category all questions count that are not apart
	least                  float64 // 0: none, it is shown only
	count                  bool    // of questions, not a share
}

// marks are the targets of each set. What has none is printed beside what has.
var marks = []mark{
	{set: "locomo", measure: "R@10", least: 0.83},
	{set: "memdaily", measure: "R@10", least: 0.55},
	{set: "memdaily-pooled", measure: "R@10", least: 0.52},
	{set: "memdaily-timed", measure: "R@10", least: 0.48},
	{set: "memdaily-asked", measure: "R@10", least: 0.48},
	{set: "beam", measure: "R@10", least: 0.66},
	{set: "realmem", measure: "turn R@10", least: 0.30},
	{set: "realmem", measure: "session R@10", least: 0.68},
	{set: "devmem", measure: "session R@1", least: 0.85},
	{set: "devmem", measure: "session hit@1"},
	{set: "devmem", measure: "session R@5"},
	{set: "devmem", category: "knowledge-update", measure: "session R@1", least: 0.75},
	{set: "devmem", category: "knowledge-update", measure: "session hit@1"},
	{set: "devmem", category: "knowledge-update", measure: "newest@1"},
	{set: "devmem", measure: nothing, least: 11, count: true},
	{set: "precision", measure: "precision", least: 0.75},
	{set: "precision", measure: "recall", least: 0.90},
	{set: "precision", measure: "passed", least: 30, count: true},
	{set: "identifiers", category: "as written", measure: "hit@10"},
	{set: "identifiers", category: "first 60 %", measure: "hit@10", least: 0.85},
	{set: "identifiers", category: "one letter missing", measure: "hit@10", least: 0.90},
	{set: "identifiers", category: "glued", measure: "hit@10", least: 0.90},
	{set: "long", measure: "hit@1", least: 17, count: true},
	{set: "long", measure: "hit@6"},
	{set: "long", category: "alone", measure: "hit@1", count: true},
	{set: "agents", measure: "hit@1", least: 0.93},
	{set: "agents", measure: "hit@6", least: 0.98},
	{set: "agents", measure: nothing, least: 0.9},
	{set: judged.Sealed, measure: "hit@1", least: 0.93},
	{set: judged.Sealed, measure: "hit@6", least: 0.98},
	{set: judged.Sealed, measure: nothing, least: 0.9},
}

// find returns what a way to search got for a mark; without a category all
// questions count.
func (m mark) find(r modeResult) (measured, bool) {
	want := m.category
	if want == "" {
		want = "all"
	}
	for _, row := range r.Rows {
		if row.Category == want {
			got, ok := row.Measures[m.measure]
			return got, ok
		}
	}
	return measured{}, false
}

// show writes a value as the mark is meant: a share, or how many of how many.
func (m mark) show(v measured) string {
	if m.count {
		return fmt.Sprintf("%.0f of %d", v.Mean*float64(v.Questions), v.Questions)
	}
	return three(v.Mean)
}

func (m mark) met(v measured) bool {
	if m.count {
		return v.Mean*float64(v.Questions) >= m.least-1e-9
	}
	return v.Mean >= m.least
}

// inMode returns what a set got in one mode, as it is searched by default.
func (r result) inMode(mode memory.Mode) *modeResult {
	for i, m := range r.Modes {
		if m.Mode == mode && m.Variant == "" {
			return &r.Modes[i]
		}
	}
	return nil
}

// targets is the table of all sets beside their marks: hybrid searches, and words
// alone beside them.
func targets(results []result) *report.Table {
	t := &report.Table{Title: "Sets and their marks, through REST", Header: []string{"set", "questions", "measure", "wanted", "hybrid", "95 % interval", "at most",
		"words alone", "hybrid less words", "plain BM25", "BM25 with stems"}}
	for _, r := range results {
		hybrid, words := r.inMode(memory.ModeHybrid), r.inMode(memory.ModeText)
		if hybrid == nil {
			continue
		}
		for _, m := range marks {
			got, ok := m.find(*hybrid)
			if m.set != r.Set || !ok {
				continue
			}
			t.Rows = append(t.Rows, append(m.cells(got, hybrid, words), m.of(r.inMode(plainBM25)), m.of(r.inMode(stemsBM25))))
		}
	}
	t.Note("intervals: 95 %%, by bootstrap; questions about one conversation are drawn together, and for the difference the same for both modes")
	t.Note("plain BM25: the texts alone, ranked on the spot by k1 1.2 and b 0.75, without stems, stop words, filters of dates or a floor; BM25 with stems: the same over the words of the node's analyzer")
	t.Note("at most: what the best answers there could be would get, where that is less than 1: a question about five conversations cannot have all of them first")
	return t
}

// of shows what a way to search got for the mark, if it was asked.
func (m mark) of(r *modeResult) string {
	if r != nil {
		if v, ok := m.find(*r); ok {
			return m.show(v)
		}
	}
	return ""
}

func (m mark) cells(got measured, hybrid, words *modeResult) []string {
	wanted, atMost, alone, less := "", "", "", ""
	switch {
	case m.least > 0 && m.count:
		wanted = fmt.Sprintf("≥ %.0f", m.least)
	case m.least > 0:
		wanted = "≥ " + three(m.least)
	}
	if wanted != "" && m.met(got) {
		wanted += " met"
	}
	if got.AtMost < 0.9995 {
		atMost = three(got.AtMost)
	}
	if words != nil {
		if v, ok := m.find(*words); ok {
			alone = m.show(v)
			low, high := stats.GroupDifference(m.samples(hybrid.scores), m.samples(words.scores), seed)
			less = fmt.Sprintf("%s (%s)", signed(got.Mean-v.Mean), span(low, high))
			if n := float64(v.Questions); m.count {
				less = fmt.Sprintf("%+.0f (%+.0f to %+.0f)", n*(got.Mean-v.Mean), n*low, n*high)
			}
		}
	}
	low, high := stats.GroupInterval(m.samples(hybrid.scores), seed)
	between := three(low) + " to " + three(high)
	if m.count {
		n := float64(got.Questions)
		between = fmt.Sprintf("%.0f to %.0f", low*n, high*n)
	}
	return []string{m.name(), fmt.Sprint(got.Questions), m.measure, wanted, m.show(got), between, atMost, alone, less}
}

// name is the set, and the category if the mark is for one.
func (m mark) name() string {
	if m.category == "" {
		return m.set
	}
	return m.set + ", " + m.category
}

// detailTitles name the tables by kind of scoring.
var detailTitles = []struct {
	scoring judged.Scoring
	title   string
}{
	{judged.Units, "Retrieval by category"},
	{judged.Stream, "Retrieval in the stream, by category"},
	{judged.Sessions, "Sessions, by category"},
	{judged.Exact, "What was wanted and no more, by category"},
	{judged.First, "What is right first, by category"},
}

// details prints every category of every mode, in one table for each kind of
// scoring.
func details(results []result) []*report.Table {
	var out []*report.Table
	for _, kind := range detailTitles {
		names := measures(kind.scoring)
		t := &report.Table{Title: kind.title, Header: append([]string{"set", "mode", "category", "questions"}, names...)}
		for _, r := range results {
			if r.scoring != kind.scoring {
				continue
			}
			for _, m := range r.Modes {
				for _, row := range m.Rows {
					t.Rows = append(t.Rows, cells(r.Set, m, row, names))
				}
			}
		}
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// times prints how long searches took.
func times(results []result) *report.Table {
	t := &report.Table{Title: "Searches, one after the other", Header: []string{"set", "mode", "p50 ms", "p99 ms"}}
	for _, r := range results {
		for _, m := range r.Modes {
			t.Rows = append(t.Rows, []string{r.Set, m.name(), report.Number(m.P50ms), report.Number(m.P99ms)})
		}
	}
	return t
}

// tables prints the sets beside their marks and then every category.
func tables(results []result, missing []string) []*report.Table {
	head := targets(results)
	for _, m := range missing {
		head.Note("left out: %s", m)
	}
	last := times(results)
	for _, r := range results {
		c := r.Counts
		last.Note("%s: %d namespaces, %d captures, %d questions, of which %d without evidence; evidence: %d entries malformed (what can be read of them counts), "+
			"%d ids missing (they weigh on recall); memories: %d not read, %d cut at the limit of a capture", r.Set, r.Namespaces, c.Captures, c.Questions,
			c.NoEvidence, c.Malformed, c.Missing, c.Unread, c.Cut)
	}
	out := append([]*report.Table{head}, details(results)...)
	out = append(out, reliability(results))
	if parts := ablation(results); len(parts.Rows) > 0 {
		out = append(out, parts)
	}
	return append(out, last)
}

// name is the mode, and what is other than usual.
func (m modeResult) name() string {
	name := strings.TrimSpace(string(m.Mode) + " " + m.Variant)
	if m.Served != m.Mode {
		name += " (served as " + string(m.Served) + ")"
	}
	return name
}

func cells(set string, m modeResult, r row, names []string) []string {
	category := r.Category
	if r.Apart {
		category += " (apart)"
	}
	out := []string{set, m.name(), category, fmt.Sprint(r.Questions)}
	for _, name := range names {
		cell := ""
		if v, ok := r.Measures[name]; ok {
			cell = three(v.Mean)
		}
		out = append(out, cell)
	}
	return out
}
