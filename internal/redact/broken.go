package redact

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Secrets that are broken over lines: by a terminal at its width, by a backslash, because what
// wrote them wraps what is long, or as a program puts strings together. Lines of a quote, of a box and of a diff
// begin with a sign that is none of theirs.

// broken are the rules that look at lines put together. Those that are known know how their secrets
// begin or how long they are, so that two halves which only together make one are one; what the others find may
// end at any character.
var broken = []struct {
	rules []rule
	known bool
}{{tokens, true}, {rules, true}, {options, false}, {own, false}}

// passage is some lines of a text, put together where a word may be broken.
type passage struct {
	text   []byte
	begin  int // of it in the whole text
	breaks []lineBreak
}

// lineBreak is where a line end was taken out.
type lineBreak struct {
	to   int  // the byte of the passage behind it
	on   int  // where that stands in the whole text
	said bool // by a backslash
}

// before counts the breaks before a byte of the passage.
func (p *passage) before(i int) int {
	return sort.Search(len(p.breaks), func(n int) bool { return p.breaks[n].to >= i })
}

// place is where a byte of the passage stands in the whole text.
func (p *passage) place(i int) int {
	if n := p.before(i + 1); n > 0 {
		return p.breaks[n-1].on + i - p.breaks[n-1].to
	}
	return p.begin + i
}

const (
	narrow    = 40 // columns that a terminal has at least
	leastWord = 16 // bytes of a word that another line alone goes on with
	leastPart = 4  // of it in one line
	cardRule  = "card"

	leastQuoted, mostQuoted = 70, 76 // columns of a line of quoted-printable that goes on

	boxes     = "│┃║"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	wordBytes = "abcdefghijklmnopqrstuvwxyz" + capitals + "0123456789+/=_.~-"
)

// unbroken takes out secrets that reach over the end of a line.
func unbroken(s string, opts Options) (string, []string) {
	all := passages(s)
	if len(all) == 0 {
		return s, nil
	}
	var texts []byte
	for i := range all {
		texts = append(append(texts, all[i].text...), '\n')
	}
	small := lower(string(texts))
	var spans [][2]int
	var ids []string
	for _, table := range broken {
		for i := range table.rules {
			r := &table.rules[i]
			if r.id == emailRule && !opts.Emails || !r.mayFind(small) {
				continue
			}
			for p := range all {
				for _, span := range r.over(&all[p], table.known && r.entropy == 0) {
					spans, ids = append(spans, span), append(ids, r.id)
				}
			}
		}
	}
	return replaceSpans(s, spans, ids)
}

// replaceSpans puts the names of rules in the place of what they found, once where finds overlap.
func replaceSpans(s string, spans [][2]int, ids []string) (string, []string) {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return spans[a][0] - spans[b][0] })
	var sb strings.Builder
	var found []string
	done := 0
	for n := 0; n < len(order); {
		from, to := spans[order[n]][0], spans[order[n]][1]
		id := ids[order[n]]
		for n++; n < len(order) && spans[order[n]][0] < to; n++ {
			to = max(to, spans[order[n]][1])
		}
		sb.WriteString(s[done:from] + marker + id + "]")
		done, found = to, withName(found, id)
	}
	return sb.String() + s[done:], found
}

// over finds the secrets of a passage that reach over a break, and where they stand in the text.
// Of each match one break at most is looked at closely, so that the work grows as the text does:
// the last one that nothing says. What stands behind the others goes on, up to that one at least.
func (r *rule) over(p *passage, known bool) (spans [][2]int) {
	re, skip := r.compile()
	for _, at := range re.FindAllSubmatchIndex(p.text, -1) {
		from, to := secretAt(at, r.group)
		inside := p.breaks[p.before(at[0]+1):max(p.before(at[0]+1), p.before(to))]
		last := len(inside) - 1
		for last >= 0 && inside[last].said {
			last--
		}
		if last >= 0 {
			b := inside[last].to
			if from < b && !goesOn(p.text[b:to]) && (!known || re.Match(p.text[at[0]:b])) {
				to, inside = b, inside[:last] // it ended with the line
			}
		}
		if len(inside) > 0 && (r.id != cardRule || inFours(p.text[from:to])) && r.takes(string(p.text[from:to]), skip) {
			spans = append(spans, [2]int{p.place(from), p.place(to-1) + 1})
		}
	}
	return spans
}

// inFours reports digits as cards have them, and no time that stands below a number.
func inFours(card []byte) bool {
	groups := strings.FieldsFunc(string(card), func(c rune) bool { return c < '0' || c > '9' })
	for _, group := range groups[:len(groups)-1] {
		if len(group)%4 != 0 {
			return false
		}
	}
	return true
}

// goesOn tells what continues a secret from a word.
func goesOn(b []byte) bool {
	return len(b) >= leastPart && mixed(string(b))
}

// passages finds the lines between which a word may be broken, each with the line before them.
func passages(s string) (all []passage) {
	open := false
	from := 0           // what is not in the last passage yet
	begin, last := 0, 0 // of this line, and of the one before
	for {
		n := strings.IndexByte(s[begin:], '\n')
		if n < 0 {
			break
		}
		end := begin + n
		cut, on, b := joint(s, begin, end)
		switch {
		case on > 0:
			if !open {
				all, from, open = append(all, passage{begin: last}), last, true
			}
			p := &all[len(all)-1]
			p.text = append(p.text, s[from:cut]...)
			b.to, b.on, from = len(p.text), on, on
			p.breaks = append(p.breaks, b)
		case open:
			all[len(all)-1].text = append(all[len(all)-1].text, s[from:end]...)
			open = false
		}
		last, begin = begin, end+1
	}
	if open {
		all[len(all)-1].text = append(all[len(all)-1].text, s[from:]...)
	}
	return all
}

// joint is what is taken out of a text where the line from begin to end may go on in the next
// one: s[cut:on]. on is 0 where it does not. A line goes on behind a backslash or a plus between
// two strings, where it is as long as a terminal is wide or ends in a back tick, and where the
// next one has nothing but the rest of a long word.
func joint(s string, begin, end int) (cut, on int, b lineBreak) {
	line := strings.TrimSuffix(s[begin:end], "\r")
	wide := len(line) >= narrow
	next, _, _ := strings.Cut(s[end+1:], "\n")
	skip := framed(line, next)
	indent := len(next[skip:]) - len(strings.TrimLeft(next[skip:], " \t"))
	if skip > 0 {
		line = strings.TrimRight(line, boxes+" \t")
	}
	cut, on = begin+len(line), end+1+skip+indent
	if strings.HasSuffix(line, `\`) && !strings.HasSuffix(line, `\\`) {
		return cut - 1, on, lineBreak{said: true}
	}
	next = strings.TrimRight(next[skip+indent:], boxes+" \t\r")
	if n, quote := added(line, next); n > 0 && goesOn([]byte(lastWord(line[:n]))) {
		return begin + n, on + quote, lineBreak{said: true}
	}
	switch {
	case len(line) >= leastQuoted && len(line) <= mostQuoted && strings.HasSuffix(line, "=") && !strings.HasSuffix(line, "=="):
		line = line[:len(line)-1] // quoted-printable
	case strings.HasSuffix(line, "`") && strings.Count(line, "`")%2 == 1 && !strings.HasSuffix(line, "``"):
		line, wide = line[:len(line)-1], true // PowerShell
	}
	cut = begin + len(line)
	head, tail := lastWord(line), next[:len(next)-len(strings.TrimLeft(next, wordBytes))]
	alone := len(tail) == len(next)
	if len(head) < leastPart || tail == "" || !mixed(head) || begins(next, tail) || !(wide && indent == 0 || alone && len(head) >= leastWord) {
		return 0, 0, b
	}
	return cut, on, b
}

func lastWord(line string) string { return line[len(strings.TrimRight(line, wordBytes)):] }

// framed is how much of a line is no text of it, where the line before it begins with the same:
// a quote, a box, a diff or a comment.
func framed(line, next string) int {
	of := func(s string) string { return frame().FindString(s) }
	if f := of(next); f != "" && strings.TrimSpace(f) == strings.TrimSpace(of(line)) {
		return len(f)
	}
	return 0
}

var frame = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ \t]*(?:(?:[>│┃║] ?)+|(?:\+|#|//) ?)`)
})

// added is where the quote stands that ends the string of a line, and how much of the next line
// is the quote that begins the one that is added to it; 0 if none is.
func added(line, next string) (end, begin int) {
	rest := strings.TrimRight(line, " \t")
	plus := strings.HasSuffix(rest, "+")
	if plus {
		rest = strings.TrimRight(rest[:len(rest)-1], " \t")
	}
	second := strings.TrimLeft(strings.TrimPrefix(next, "+"), " \t")
	if plus == strings.HasPrefix(next, "+") || rest == "" || second == "" || rest[len(rest)-1] != second[0] || !strings.ContainsRune("\"'`", rune(second[0])) {
		return 0, 0
	}
	return len(rest) - 1, len(next) - len(second) + 1
}

// plain are words that are whole: paths in small letters, and versions or addresses in numbers.
var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:\.{0,2}|~)/[a-z0-9._-]+/[a-z0-9._/-]+|v?\d+(?:\.\d+){2,}(?:[-+][a-z0-9.]+)?)$`)
})

// begins reports a line that is no end of another one: a setting, an option, one of a list, a
// rule, or what is whole.
func begins(line, word string) bool {
	name, value, set := strings.Cut(word, "=")
	return plain().MatchString(word) || set && name != "" && strings.Trim(value, "=") != "" || strings.HasPrefix(line[len(word):], ":") && !random(word) || strings.HasPrefix(line, "--") || strings.HasPrefix(line, "=") || strings.HasPrefix(line, "- ")
}

// random reports what is no name of a setting.
func random(word string) bool {
	return len(word) >= leastWord && hasDigit(word) && !strings.ContainsAny(word, "_-./")
}

// mixed reports what is no word of a language.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789=_+") || strings.ContainsAny(s[1:], capitals)
}
