package rank

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"mneme/internal/text"
)

// A question about somebody is mostly answered by what they said themselves, and a
// question in the first person by what the asker said.

// askers are the names under which people speak to assistants. "I" means one of
// them where the request does not say who is asking.
var askers = []string{"user", "human"}

const (
	// valueNamed and valueFirst are the values of the part: a query that names
	// somebody may be about him, one that says "I" hardly.
	valueNamed = 0.6
	valueFirst = 1
	// nameWeight is the weight of an agent's name as a word: those who address a
	// person say the name more often than that person does.
	nameWeight = 0.5
)

// minAlias is the shortest beginning of a name that stands for it ("Mel").
const minAlias = 3

// findSpeakers finds the agents that the query names, for each partition. Where
// everything is of one agent, naming it says nothing.
func (p *Plan) findSpeakers() {
	m := mention{terms: make(map[string]bool, len(p.Terms)), as: p.As, names: map[string]bool{}}
	for _, t := range p.Terms {
		m.terms[t] = true
	}
	text.AnalyzeWords(p.Query, func(w text.Word) bool {
		m.first = m.first || w.Kind == text.KindStop && isFirstPerson(w.Folded)
		if raw := p.Query[w.Start:w.End]; w.Kind == text.KindWord && startsUpper(raw) {
			m.capitalised = append(m.capitalised, w.Folded)
		}
		return len(m.capitalised) < maxQueryTerms
	})
	speakers := make([]map[uint32]float64, len(p.Partitions))
	for i := range p.Partitions {
		if c := p.Partitions[i].Conversations; c != nil {
			speakers[i] = c.named(&m)
			if len(speakers[i]) > 0 {
				p.speakers = speakers
			}
		}
	}
	for i, t := range p.Terms {
		if m.names[t] {
			p.Words.Terms[i].Weight = nameWeight
		}
	}
}

// mention is how a query may name an agent.
type mention struct {
	terms       map[string]bool
	capitalised []string        // folded
	first       bool            // it is in the first person
	as          string          // who asks
	names       map[string]bool // filled in: the terms that are names
}

// named returns the value of the agents that a query names, as 1 + their number:
// terms name one as a whole, a capitalised word is the beginning of its name, or
// the first person means it.
func (c *Conversations) named(m *mention) map[uint32]float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.agents) < 2 {
		return nil
	}
	out := map[uint32]float64{}
	for t := range m.terms {
		for _, a := range c.byTerm[t] {
			if name := c.names[a]; subset(name, m.terms) {
				out[a+1] = valueNamed
				for _, t := range name {
					m.names[t] = true
				}
			}
		}
	}
	for _, w := range m.capitalised {
		if a, ok := c.aliasLocked(w); ok {
			out[a+1] = valueNamed
		}
	}
	if m.first {
		for _, name := range slices.Concat([]string{m.as}, askers) {
			if a, ok := c.byAgent[name]; ok && name != "" {
				out[a+1] = valueFirst
				break
			}
		}
	}
	return out
}

// maxAliases is the number of agents up to which beginnings of names are looked
// for; among more agents a beginning hardly ever fits only one.
const maxAliases = 256

// maxNamesake is the number of agents that are looked at for one word of a query.
const maxNamesake = 256

// nameLocked files a new agent under that term of its name under which the fewest
// are, so that "agent-7" is not looked for among all whose names begin with "agent".
// Where there are maxNamesake of each term, its name finds it no longer.
func (c *Conversations) nameLocked(agent uint32, terms []string) {
	c.names = append(c.names, terms)
	if len(terms) == 0 {
		return
	}
	rarest := slices.MinFunc(terms, func(a, b string) int { return cmp.Compare(len(c.byTerm[a]), len(c.byTerm[b])) })
	if len(c.byTerm[rarest]) < maxNamesake {
		c.byTerm[rarest] = append(c.byTerm[rarest], agent)
	}
}

// aliasLocked finds the only agent whose name begins with a word.
func (c *Conversations) aliasLocked(word string) (agent uint32, ok bool) {
	word, _, _ = strings.Cut(word, "'")
	if len(word) < minAlias || len(c.agents) > maxAliases {
		return 0, false
	}
	for a, name := range c.agents {
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

func subset(of []string, all map[string]bool) bool {
	for _, t := range of {
		if !all[t] {
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
