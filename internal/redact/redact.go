// Package redact takes secrets out of text before it is kept or sent anywhere.
//
// Its rules are those of gitleaks (rules.go is generated from its table) and some of our own
// for what gitleaks leaves to its user: passwords in sentences, addresses with credentials,
// headers, cards (own.go), options of programs and forms of tokens (programs.go). It errs on the side of taking out: gitleaks' lists of what is allowed
// (examples, test keys) are not used.
//
// Invariants: a found secret is replaced by [redacted:RULE] and by nothing that could tell it;
// what is returned besides the text are names of rules, never what they found; a text is
// redacted before it is cut, so that no cut leaves half of a secret that no rule knows (Head).
// Rules are compiled when a text first holds one of their words, so a start costs nothing.
//
// Not its job: finding personal data. E-mail addresses are taken out where that is asked for.
package redact

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Options says what is taken out beside secrets.
type Options struct {
	Emails bool
}

// rule finds one kind of secret.
type rule struct {
	id       string
	words    []string                // in small letters; a text with none of them has no such secret; empty = tried unless when tells otherwise
	when     func(small string) bool // reports whether a text may have such a secret, where no words can
	pattern  string
	group    int     // that holds the secret; 0 = the first that holds anything, else all that matched
	entropy  float64 // in bits a character, that it has at least
	unless   string  // a pattern of what is none after all
	accepts  func(secret string) bool
	apart    func(text string, at int) bool // reports a place where there is none
	compiled *compiled
}

type compiled struct {
	once     sync.Once
	re, skip *regexp.Regexp
}

func (r *rule) compile() (re, skip *regexp.Regexp) {
	r.compiled.once.Do(func() {
		r.compiled.re = regexp.MustCompile(r.pattern)
		if r.unless != "" {
			r.compiled.skip = regexp.MustCompile(r.unless)
		}
	})
	return r.compiled.re, r.compiled.skip
}

// tables are all rules, in the order in which they are tried.
var tables = [][]rule{blocks, options, tokens, rules, own, told}

// unseen are characters without width, which no secret has.
var unseen = strings.NewReplacer("\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "", "\u00ad", "")

// Text takes the secrets out of a text, and returns which rules found some, each once. A
// text whose secret is broken by characters without width loses all of those. It may be
// called concurrently.
func Text(s string, opts Options) (string, []string) {
	cleaned, found := text(s, opts)
	if seen := unseen.Replace(cleaned); seen != cleaned {
		if whole, more := text(seen, opts); len(more) > 0 {
			for _, id := range more {
				found = withName(found, id)
			}
			return whole, found
		}
	}
	return cleaned, found
}

// beyond is how many bytes Head looks at behind what it is asked for: more than most secrets have.
const beyond = 4 << 10

// Head takes the secrets out of the beginning of a text, and returns at most n bytes of what
// that becomes, whether it left anything out, and the rules that found what stands there replaced. It reads some more than n. Of a text that goes
// on it leaves out as much at the end, or all behind the last secret that it found, so that
// nothing stays of one that it read in part.
func Head(s string, n int, opts Options) (head string, cut bool, found []string) {
	if cut = len(s) > n+beyond; cut {
		s = strings.ToValidUTF8(s[:n+beyond], "")
	}
	head, found = Text(s, opts)
	spans, keep := replaced(head), len(head)
	if cut {
		keep = max(0, keep-beyond)
		if len(spans) > 0 {
			keep = max(keep, spans[len(spans)-1][1])
		}
	}
	keep = min(keep, n)
	for _, span := range spans {
		if span[0] < keep && keep < span[1] {
			keep = span[0]
		}
	}
	if keep < len(head) {
		head, cut = strings.ToValidUTF8(head[:keep], ""), true
		found = slices.DeleteFunc(found, func(id string) bool { return !strings.Contains(head, marker+id+"]") })
	}
	return head, cut, found
}

func text(s string, opts Options) (string, []string) {
	var found []string
	for i, table := range tables {
		if i == 1 { // behind blocks, which know their lines
			var over []string
			s, over = unbroken(s, opts)
			for _, id := range over {
				found = withName(found, id)
			}
		}
		small := lower(s)
		for i := range table {
			r := &table[i]
			if r.id == emailRule && !opts.Emails {
				continue
			}
			if !r.mayFind(small) {
				continue
			}
			if cleaned, is := r.apply(s); is {
				s, small = cleaned, lower(cleaned)
				found = withName(found, r.id)
			}
		}
	}
	return s, found
}

func withName(found []string, id string) []string {
	if slices.Contains(found, id) {
		return found
	}
	return append(found, id)
}

// apply replaces what the rule finds. What stands in place of a secret already is none, and
// goes with a secret that reaches over it.
func (r *rule) apply(s string) (string, bool) {
	re, skip := r.compile()
	var sb strings.Builder
	done, placed := 0, replaced(s)
	for _, at := range re.FindAllStringSubmatchIndex(s, -1) {
		from, to := secretAt(at, r.group)
		if from < done {
			continue
		}
		for len(placed) > 0 && placed[0][1] <= at[0] {
			placed = placed[1:]
		}
		from, to, secret := outside(s, from, to, placed)
		if len(secret) == 0 || len(secret) < minBeside && len(secret) < to-from {
			continue
		}
		if !r.takes(secret, skip) || r.apart != nil && r.apart(s, from) {
			continue
		}
		sb.WriteString(s[done:from] + marker + r.id + "]")
		done = to
	}
	if done == 0 {
		return s, false
	}
	return sb.String() + s[done:], true
}

// takes reports whether what matched is a secret.
func (r *rule) takes(secret string, skip *regexp.Regexp) bool {
	return (skip == nil || !skip.MatchString(secret)) && (r.accepts == nil || r.accepts(secret)) && (r.entropy == 0 || entropy(secret) >= r.entropy)
}

// marker begins what stands in place of a secret, up to the rule's name and a bracket.
const marker = "[redacted:"

// minBeside is the length of what is a secret beside one that was replaced: less is a
// bracket, a quote or a sign.
const minBeside = 4

// maxName is more than the longest name of a rule has.
const maxName = 100

// names are those of all rules.
var names = sync.OnceValue(func() map[string]bool {
	ids := map[string]bool{}
	for _, table := range tables {
		for _, r := range table {
			ids[r.id] = true
		}
	}
	return ids
})

// replaced tells where secrets were replaced: now, or before the text came here. Other words
// behind the marker than the name of a rule are looked at like any.
func replaced(s string) (spans [][2]int) {
	for from := 0; ; {
		i := strings.Index(s[from:], marker)
		if i < 0 {
			return spans
		}
		from += i
		behind := s[from+len(marker):]
		name, _, closed := strings.Cut(behind[:min(len(behind), maxName)], "]")
		if closed && names()[name] {
			spans = append(spans, [2]int{from, from + len(marker) + len(name) + 1})
		}
		from += len(marker)
	}
}

// outside widens a find to the spans that it touches, and returns what of it lies outside them.
func outside(s string, from, to int, spans [][2]int) (wideFrom, wideTo int, secret string) {
	wideFrom, wideTo = from, to
	for _, span := range spans {
		if span[0] >= to {
			break
		}
		if span[1] <= from {
			continue
		}
		wideFrom, wideTo = min(wideFrom, span[0]), max(wideTo, span[1])
		if span[0] > from {
			secret += s[from:span[0]]
		}
		from = span[1]
	}
	if from < to {
		secret += s[from:to]
	}
	return wideFrom, wideTo, secret
}

// mayFind looks for the rule's words in a text in small letters.
func (r *rule) mayFind(small string) bool {
	for _, w := range r.words {
		if strings.Contains(small, w) {
			return true
		}
	}
	return len(r.words) == 0 && (r.when == nil || r.when(small))
}

// lower writes ASCII letters small, which are all that words of rules are told in.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// secretAt is where the secret lies in a match.
func secretAt(at []int, group int) (from, to int) {
	if group > 0 && 2*group < len(at) && at[2*group] >= 0 {
		return at[2*group], at[2*group+1]
	}
	for i := 2; i < len(at); i += 2 {
		if at[i] >= 0 && at[i+1] > at[i] {
			return at[i], at[i+1]
		}
	}
	return at[0], at[1]
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	counts, n := map[rune]int{}, utf8.RuneCountInString(s)
	for _, r := range s {
		counts[r]++
	}
	sum := 0.0
	for _, c := range counts {
		p := float64(c) / float64(n)
		sum -= p * math.Log2(p)
	}
	return sum
}
