package query

import (
	"context"
	"errors"
	"strings"

	"mneme/internal/query/parse"
	"mneme/internal/query/rank"
	"mneme/internal/text"
	"mneme/memory"
)

// A message that somebody pastes has quotes in it, and names of its own in these. So where no
// memory holds all phrases of a query that says more than one phrase, those that none holds are
// words as any others, and the answer says so.

// quoted answers a search of whose phrases nothing that was read holds all.
type quoted struct {
	s    *search
	read int // how many memories were read that have the words of the phrases
}

// find gives the words that it found by, and closes w if those are others. A phrase alone means
// what it says, and finds nothing.
func (q *quoted) find(ctx context.Context, w *words) (*words, error) {
	s, all := q.s, q.s.plan.Phrases
	if len(s.plan.Words.Must) == 0 {
		q.read = 0 // they were read for other words
	}
	if len(all) == 1 && !q.beside() {
		if len(s.asked.Without) == 0 {
			q.tell(all, strings.Join(strings.Fields(s.asked.Text), " "), 0, q.read)
		}
		return w, nil
	}
	kept, err := q.held(ctx, all)
	if err != nil || len(kept) == len(all) && len(s.asked.Without) > 0 {
		return w, err // what holds them has what is left out
	}
	if len(kept) > 0 && len(kept) < len(all) {
		found := 0
		if w, found, err = q.again(ctx, w, kept); err != nil || found > 0 || len(s.asked.Without) > 0 {
			return w, err
		}
	}
	if len(kept) > 0 { // each stands somewhere, and nowhere all
		q.tell(kept, unquoted(kept), 1, 0)
	}
	w, _, err = q.again(ctx, w, nil)
	return w, err
}

// beside reports whether the query says more than its phrases.
func (q *quoted) beside() (more bool) {
	const phrase = "… " // when a query was asked stands behind something
	text.Index(rank.WithoutStamp(phrase+q.s.asked.Beside, q.s.namespaces[0].s.opt.Now().UTC()), func(t text.Token) bool {
		more = !t.Function
		return !more
	})
	return more
}

// again searches with those phrases alone. It says how many it found that hold them.
func (q *quoted) again(ctx context.Context, w *words, kept []parse.Phrase) (_ *words, found int, err error) {
	s := q.s
	question := s.plan.Question
	question.Phrases = kept
	s.plan = rank.NewPlan(question)
	s.ranking.Begin(s.plan)
	ask := s.plan.Words
	ask.K = rank.TextPool
	w.close()
	if w, err = s.words(ctx, ask); err != nil {
		return &words{}, 0, err
	}
	if s.plan.Checks() {
		found, _, err = s.findByReading(ctx, w)
		return w, found, err
	}
	return w, 0, w.top(ctx, rank.TextPool, false, s.ranking.FoundText)
}

// held are those phrases that a memory holds by itself. It tells the others. Each is looked for
// in an equal share of what may still be read, at least in one text, and one share is left.
func (q *quoted) held(ctx context.Context, all []parse.Phrase) (held []parse.Phrase, err error) {
	s := q.s
	s.left = max(s.left, shownWork+givenUpWork)
	share := (s.left - shownWork) / budget(len(all)+1)
	for i, ph := range all {
		holds, read := false, q.read
		if len(all) > 1 || len(s.asked.Without) > 0 { // else it was looked for
			if holds, read, err = q.holds(ctx, ph, s.left-share); err != nil {
				return nil, err
			}
		}
		if holds {
			held = append(held, ph)
		} else {
			q.tell(all[i:i+1], ph.String(), 1, read)
		}
	}
	s.left = max(s.left, shownWork+share) // long texts were read to their ends
	return held, nil
}

// holds reports whether a memory holds a phrase. It reads those that have its words until only
// so much may still be read, and says how many.
func (q *quoted) holds(ctx context.Context, ph parse.Phrase, least budget) (holds bool, read int, err error) {
	s := q.s
	plan := rank.NewPlan(rank.Question{Query: ph.String(), Phrases: []parse.Phrase{ph}, ByText: true, Partitions: s.plan.Partitions, Now: s.plan.Now})
	ask := plan.Words
	if !plan.HasText() { // of signs or stop words
		ask = s.plan.Words
		ask.Must = nil
	}
	ask.K = rank.TextPool
	w, err := s.words(ctx, ask)
	if err != nil {
		return false, 0, err
	}
	defer w.close()
	var failed error
	err = w.each(ctx, func(partition int, doc uint32) bool {
		if s.left <= least {
			return false
		}
		read++
		_, content, err := s.read(partition, doc)
		if failed = errors.Join(err, ctx.Err()); failed != nil {
			return false
		}
		if content == nil {
			return true
		}
		s.left.open(content.Text)
		holds = ph.In(parse.Fold(content.Text))
		return !holds
	})
	if len(plan.Words.Must) == 0 {
		read = 0 // for other words than its own
	}
	return holds, read, errors.Join(err, failed)
}

// tell says that no memory holds all of these phrases as they are written, what was looked for
// in their place and with what weight, and how many memories have their words.
func (q *quoted) tell(phrases []parse.Phrase, readAs string, weight float64, docs int) {
	marked := make([]string, len(phrases))
	for i, ph := range phrases {
		marked[i] = `"` + ph.String() + `"`
	}
	q.s.corrections = append(q.s.corrections, memory.Correction{Word: strings.Join(marked, " "), ReadAs: readAs, Kind: string(kindPhrase), Weight: weight, Docs: docs})
}

// unquoted are the words of phrases.
func unquoted(phrases []parse.Phrase) string {
	out := make([]string, len(phrases))
	for i, ph := range phrases {
		out[i] = ph.String()
	}
	return strings.Join(out, " ")
}
