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

const (
	// worthNamed and worthFirst are the values of the part: a name may also be
	// spoken of, "I" hardly.
	worthNamed = 0.6
	worthFirst = 1
	// nameWeight is the weight of a name as a word, once it is understood: those
	// who address a person say it more often than that person.
	nameWeight = 0.5
)

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
	speakers := make([]map[uint32]float64, len(p.parts))
	names := map[string]bool{}
	for i := range p.parts {
		if around := view.get(p.parts[i].ID); around != nil {
			speakers[i] = around.named(p.terms, words, first, r.cap.agent, names)
			if len(speakers[i]) > 0 {
				p.speakers = speakers
			}
		}
	}
	for i, t := range p.terms {
		if names[t] {
			p.query.Terms[i].Weight = nameWeight
		}
	}
}

// named returns what it is worth to be one of the agents, as 1 + their number,
// that terms name as a whole, that a capitalised word is the beginning of, or
// that the first person means. names gets the terms that are names.
func (p *contextPart) named(terms, capitalised []string, first bool, as string, names map[string]bool) map[uint32]float64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.agents) < 2 {
		return nil
	}
	out := map[uint32]float64{}
	for _, t := range terms {
		for _, a := range p.byTerm[t] {
			if name := text.Terms(p.agents[a]); subset(name, terms) {
				out[a+1] = worthNamed
				for _, t := range name {
					names[t] = true
				}
			}
		}
	}
	for _, w := range capitalised {
		if a, ok := p.alias(w); ok {
			out[a+1] = worthNamed
		}
	}
	if first {
		for _, name := range slices.Concat([]string{as}, askers) {
			if a, ok := p.byAgent[name]; ok && name != "" {
				out[a+1] = worthFirst
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
