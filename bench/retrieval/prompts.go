package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/internal/recall"
	"mneme/internal/tokens"
	"mneme/memory"
)

// prompt is what goes into an agent's prompt of what a search found.
type prompt struct {
	text    string
	records []string // that stand in it, best first; the last one may be cut
	covered []string // of which every word stands there in another one
}

// spending is a way to spend a budget of tokens on what a search found.
type spending struct {
	name  string
	spend func(found memory.SearchResponse, budget int) prompt
}

const (
	asHooks   = "recall block"
	fullTexts = "full texts"
)

// spendings are the block that hooks inject, the same of as many memories as fit, and beside
// them the texts as they are.
var spendings = []spending{
	{asHooks, func(found memory.SearchResponse, budget int) prompt { return block(found, budget, recall.DefaultLimit) }},
	{fmt.Sprintf("block of up to %d", depth), func(found memory.SearchResponse, budget int) prompt { return block(found, budget, depth) }},
	{fullTexts, whole},
}

func block(found memory.SearchResponse, budget, most int) prompt {
	b := recall.Compose(found.Results[:min(len(found.Results), recall.Ask(most))], most, budget)
	p := prompt{text: b.Text}
	for _, u := range b.Used {
		p.records = append(p.records, u.RecordID)
		p.covered = append(p.covered, u.Same...)
	}
	return p
}

// whole puts whole texts one below the other, and cuts the one that ends the budget.
func whole(found memory.SearchResponse, budget int) prompt {
	var p prompt
	left := budget
	for _, hit := range found.Results {
		text := hit.Text + "\n"
		n := tokens.Count(text)
		if n > left {
			text, n = fitting(text, left), left
		}
		if text == "" {
			break
		}
		p.text += text
		p.records = append(p.records, hit.ID)
		left -= n
	}
	return p
}

// fitting is the longest beginning of a text with at most n tokens, by halves.
func fitting(text string, n int) string {
	low, high := 0, len(text)
	for low < high {
		mid := (low + high + 1) / 2
		if tokens.Count(text[:mid]) <= n {
			low = mid
		} else {
			high = mid - 1
		}
	}
	for low > 0 && low < len(text) && !utf8.RuneStart(text[low]) {
		low--
	}
	return text[:low]
}

// holding is how much of one question's evidence a prompt holds.
type holding struct {
	group      string
	share, all float64 // of the evidence, of which something stands there; whether that is all of it
	whole      float64 // share of the evidence that stands there uncut; of conversations that is not known
	memories   int
	tokens     int
	sessions   bool // the evidence is conversations
}

// promptRow is what one way to spend tokens got for one set.
type promptRow struct {
	Way       string  `json:"way"`
	Questions int     `json:"questions"`
	All       float64 `json:"all"`
	Share     float64 `json:"share"`
	Whole     float64 `json:"whole,omitempty"`
	Memories  float64 `json:"memories"`
	Tokens    float64 `json:"tokens"`
	sessions  bool
	shares    []stats.Sample
}

// prompting asks each question once, and spends the budget on the answer in every way.
type prompting struct {
	search way
	budget int
	got    map[string][]holding // by the spending's name
}

func newPrompting(budget int) *prompting {
	return &prompting{search: way{variant: variant{req: memory.SearchRequest{Mode: memory.ModeHybrid}}}, budget: budget, got: map[string][]holding{}}
}

// ask leaves out questions that nothing answers: a prompt holds nothing of nothing.
func (p *prompting) ask(ctx context.Context, a *asking, ns judged.Namespace, question int) error {
	q := ns.Questions[question]
	if q.Apart || len(q.Evidence) == 0 && len(q.Sessions) == 0 {
		return nil
	}
	answer, err := p.search.search(ctx, a, ns.Name, q)
	if err != nil {
		return fmt.Errorf("search in %s: %w", ns.Name, err)
	}
	for _, s := range spendings {
		p.got[s.name] = append(p.got[s.name], hold(s.spend(answer, p.budget), a.units, q))
	}
	return nil
}

// hold looks for the evidence in a prompt. Evidence is memories, or where none are named the
// conversations that hold the answer.
func hold(p prompt, units map[string]memory.Capture, q judged.Question) holding {
	h := holding{group: q.Group, memories: len(p.records), tokens: tokens.Count(p.text), sessions: len(q.Evidence) == 0}
	wanted := q.Evidence
	if h.sessions {
		wanted = q.Sessions
	}
	var there, uncut []string
	for _, id := range slices.Concat(p.records, p.covered) {
		c := units[id]
		name := c.ID
		if h.sessions {
			name = c.Conversation
		}
		if !slices.Contains(wanted, name) || slices.Contains(there, name) {
			continue
		}
		there = append(there, name)
		if text := recall.Quote(c.Text); strings.Contains(p.text, c.Text) || strings.Contains(p.text, text) {
			uncut = append(uncut, name)
		}
	}
	h.share = float64(len(there)) / float64(len(wanted))
	h.whole = float64(len(uncut)) / float64(len(wanted))
	h.all = oneIf(len(there) == len(wanted))
	return h
}

func (p *prompting) rows() []promptRow {
	var out []promptRow
	for _, s := range spendings {
		r := promptRow{Way: s.name, Questions: len(p.got[s.name])}
		for _, h := range p.got[s.name] {
			r.shares = append(r.shares, stats.Sample{Group: h.group, Value: h.share})
			n := float64(r.Questions)
			r.All += h.all / n
			r.Share += h.share / n
			r.Whole += h.whole / n
			r.Memories += float64(h.memories) / n
			r.Tokens += float64(h.tokens) / n
			r.sessions = r.sessions || h.sessions
		}
		out = append(out, r)
	}
	return out
}

// promptTable prints the blocks of all sets beside whole texts.
func promptTable(results []result, budget int, missing []string) *report.Table {
	t := &report.Table{Title: fmt.Sprintf("What %d tokens of a prompt hold", budget), Header: []string{"set", "questions", "prompt", "all evidence",
		"share of the evidence", "… less full texts", "… uncut", "memories", "tokens"}}
	for _, r := range results {
		for _, row := range r.Prompts {
			less, uncut := "", three(row.Whole)
			if last := r.Prompts[len(r.Prompts)-1]; row.Way != fullTexts {
				low, high := stats.GroupDifference(row.shares, last.shares, seed)
				less = fmt.Sprintf("%s (%s)", signed(row.Share-last.Share), span(low, high))
			}
			if row.sessions {
				uncut = ""
			}
			t.Rows = append(t.Rows, []string{r.Set, fmt.Sprint(row.Questions), row.Way, three(row.All), three(row.Share), less, uncut,
				report.Number(row.Memories), report.Number(row.Tokens)})
		}
	}
	t.Note("one hybrid search for each question, above the floor of its namespace; recall block: what hooks inject, of up to %d memories, a long one by its snippet and the last one cut (internal/recall); "+
		"full texts: the first results as they are, of up to %d, the last one cut", recall.DefaultLimit, depth)
	t.Note("all evidence: share of the questions of which every memory that answers them stands there, in part at least, or in a block all its words in those of another one; share of the evidence: the mean of their shares; uncut: the same of memories that stand there with their whole text")
	t.Note("where a set names conversations and not memories, one of which a memory stands there counts; questions that nothing answers are left out; intervals as above: 95 %%, by bootstrap")
	for _, m := range missing {
		t.Note("left out: %s", m)
	}
	return t
}
