package query

import (
	"slices"
	"strings"
	"unicode"

	"mneme/internal/text"
)

// A question about somebody is mostly answered by what he said himself, and one
// in the first person by what the one who asks said.

// askers are the names under which people speak to assistants: whom "I" means
// where nobody says who is asking.
var askers = []string{"user", "human"}

// minAlias is the shortest beginning of a name that stands for it ("Mel").
const minAlias = 3

// planSpeakers finds the agents that the query speaks of, for each partition.
// Where everything is of one agent, naming it says nothing.
func (r *Reader) planSpeakers(p *plan) {
	view := r.s.contexts.Load()
	var words []string
	first := false
	text.AnalyzeWords(p.req.Query, func(w text.Word) bool {
		first = first || w.Kind == text.KindStop && isFirstPerson(w.Folded)
		if raw := p.req.Query[w.Start:w.End]; w.Kind == text.KindWord && startsUpper(raw) {
			words = append(words, w.Folded)
		}
		return len(words) < maxQueryTerms
	})
	found := false
	speakers := make([]map[uint32]bool, len(p.parts))
	for i := range p.parts {
		if around := view.get(p.parts[i].ID); around != nil {
			speakers[i] = around.named(p.terms, words, first, r.cap.agent)
			found = found || len(speakers[i]) > 0
		}
	}
	if found {
		p.speakers = speakers
	}
}

// named returns the agents, as 1 + their number, that terms name as a whole,
// that a capitalised word is the beginning of, or that the first person means.
func (p *contextPart) named(terms, capitalised []string, first bool, as string) map[uint32]bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.agents) < 2 {
		return nil
	}
	out := map[uint32]bool{}
	for _, t := range terms {
		for _, a := range p.byTerm[t] {
			if subset(text.Terms(p.agents[a]), terms) {
				out[a+1] = true
			}
		}
	}
	for _, w := range capitalised {
		if a, ok := p.alias(w); ok {
			out[a+1] = true
		}
	}
	if first {
		for _, name := range slices.Concat([]string{as}, askers) {
			if a, ok := p.byAgent[name]; ok && name != "" {
				out[a+1] = true
				break
			}
		}
	}
	return out
}

// maxAliases is the number of agents up to which beginnings of names are
// looked for; among more, they are hardly ever clear.
const maxAliases = 256

// alias finds the only agent whose name begins with a word.
func (p *contextPart) alias(word string) (agent uint32, ok bool) {
	word, _, _ = strings.Cut(word, "'")
	if len(word) < minAlias || len(p.agents) > maxAliases {
		return 0, false
	}
	for a, name := range p.agents {
		if !strings.HasPrefix(name, word) {
			continue
		}
		if ok {
			return 0, false
		}
		agent, ok = uint32(a), true
	}
	return agent, ok
}

func subset(of, all []string) bool {
	for _, t := range of {
		if !slices.Contains(all, t) {
			return false
		}
	}
	return true
}

func startsUpper(s string) bool {
	for _, r := range s {
		return unicode.IsUpper(r)
	}
	return false
}

// isFirstPerson reports whether a folded stop word is "I" in any form.
func isFirstPerson(w string) bool {
	w, _, _ = strings.Cut(w, "'")
	switch w {
	case "i", "me", "my", "mine", "myself", "we", "us", "our", "ours":
		return true
	}
	return false
}
