package rank

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme/internal/text"
	"mneme/memory"
)

// A question about somebody is mostly answered by what they said themselves, and a
// question in the first person by what the asker said.

// askers are the names under which people speak to assistants. "I" means one of
// them where the request does not say who is asking.
var askers = []string{"user", "human"}

// valueNamed and valueFirst are the values of the part: a query that names
// somebody may be about him, one that says "I" hardly.
const (
	valueNamed = 0.6
	valueFirst = 1
)

// findSpeakers finds whether the query is in the first person, and the agents that it names,
// for each partition. Where everything is of one agent, naming it says nothing. Agents have names such as search
// or docs, which queries hold as words: only a word that begins with a capital where
// none need be names an agent, and none behind a determiner, "the Search timeout".
func (p *Plan) findSpeakers() {
	sentence, practice, before := true, false, ""
	var names []string
	text.AnalyzeWords(p.Query, func(w text.Word) bool {
		if w.Kind == text.KindStop && isFirstPerson(w.Folded) && !isWithin(p.Query, w.Token) {
			p.first = p.first || !anybody(w.Folded, before, practice)
		}
		if !sentence && startsUpper(p.Query[w.Start:w.End]) && !determiners[before] {
			name, _, _ := strings.Cut(w.Folded, "'")
			names = append(names, name)
		}
		practice = practice || w.Folded == "how" || w.Folded == "where"
		before = w.Folded
		if sentence = endsSentence(p.Query[w.End:]); sentence {
			practice, before = false, ""
		}
		return len(names) < maxConcepts
	})
	if !p.Parts[memory.PartSpeaker] {
		return
	}
	speakers := make([]map[uint32]float64, len(p.Partitions))
	for i := range p.Partitions {
		if c := p.Partitions[i].Conversations; c != nil {
			speakers[i] = c.named(names, p.first, p.As)
			if len(speakers[i]) > 0 {
				p.speakers = speakers
			}
		}
	}
}

// named returns the value of the agents that are named, or that the first person means,
// as 1 + their number.
func (c *Conversations) named(names []string, first bool, as string) map[uint32]float64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.agents) < 2 {
		return nil
	}
	out := map[uint32]float64{}
	for _, name := range names {
		if a, ok := c.byAgent[name]; ok {
			out[a+1] = valueNamed
		}
	}
	if !first {
		return out
	}
	for _, name := range append([]string{as}, askers...) {
		if a, ok := c.byAgent[name]; ok && name != "" {
			out[a+1] = valueFirst
			break
		}
	}
	return out
}

// anybody reports whether "I" or "we" is anybody who does such a thing, and not who asks: "how do
// we deploy", "can I restart it". practice: the sentence asks how or where.
func anybody(pronoun, before string, practice bool) bool {
	if pronoun != "i" && pronoun != "we" {
		return false
	}
	switch before {
	case "can", "could", "should", "may", "must", "shall":
		return true
	case "do", "would":
		return practice
	}
	return false
}

// determiners stand before what is no name of a person, but for other words between them.
var determiners = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`the a an this that these those which what each every any all no some my our your his her its their
		der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner welche welcher welches welchem welchen
		dieser diese dieses diesem diesen jeder jede jedes jedem jeden im am zum zur beim vom ins ans laut`) {
		out[w] = true
	}
	return out
}()

// endsSentence reports whether what follows a word ends its sentence.
func endsSentence(rest string) bool {
	rest = strings.TrimLeft(rest, `"')]”’`)
	return rest != "" && strings.ContainsAny(rest[:1], ".!?:\n")
}

func startsUpper(s string) bool {
	for _, r := range s {
		return unicode.IsUpper(r)
	}
	return false
}

// isWithin reports whether a word is joined to others: us of us-east-1, I of I/O, my of my.cnf.
func isWithin(s string, w text.Token) bool {
	const joints = "-_./:@"
	inName := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	left, n := utf8.DecodeLastRuneInString(s[:w.Start])
	further, _ := utf8.DecodeLastRuneInString(s[:w.Start-n])
	right, n := utf8.DecodeRuneInString(s[w.End:])
	next, _ := utf8.DecodeRuneInString(s[w.End+n:])
	return strings.ContainsRune(joints, left) && inName(further) || strings.ContainsRune(joints, right) && inName(next)
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
