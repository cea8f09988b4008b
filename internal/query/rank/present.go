package rank

import (
	"regexp"
	"strings"
)

// present are the words with which a query asks for what holds now, in the languages in which
// dates are read.
var present = regexp.MustCompile(`(?i)\b(?:right now|as of now|now|these days|nowadays|at the moment|at present|presently|up[ -]to[ -]date|` +
	`current|currently|still|latest|newest|most recent|any ?more)\b|现在|目前|当前|如今|至今|现今|最新`)

// WithoutPresent takes from a query the words with which it asks for what holds now, and reports
// whether it has any: a memory of what holds does not say so. A query that is nothing else stays
// as it is, and so does one of several lines, which was pasted.
func WithoutPresent(query string) (rest string, asks bool) {
	if strings.ContainsAny(strings.TrimSpace(query), "\n\r") {
		return query, false
	}
	var out strings.Builder
	from := 0
	for _, m := range present.FindAllStringIndex(query, -1) {
		if asksNow(query[:m[0]], query[m[0]:m[1]], query[m[1]:]) {
			out.WriteString(query[from:m[0]] + " ")
			from = m[1]
		}
	}
	out.WriteString(query[from:])
	rest = out.String()
	if from == 0 || strings.Trim(rest, " \t,;.:?!()，；。：？！（）的") == "" {
		return query, false
	}
	return rest, true
}

// asksNow reports whether a word of present is one where it stands: between blanks and the marks of
// a sentence, so that restricted:latest and now() are none. "Current" at the end of a query, but
// for a comma before it, is that of a wire.
func asksNow(before, word, after string) bool {
	if word[0] >= 0x80 { // Chinese has no blanks
		return true
	}
	alone := (before == "" || strings.ContainsAny(before[len(before)-1:], " \t,;(")) && (after == "" || strings.ContainsAny(after[:1], " \t,;.:?!)"))
	if strings.EqualFold(word, "current") && strings.Trim(after, " \t.?!") == "" {
		return alone && strings.HasSuffix(strings.TrimRight(before, " \t"), ",")
	}
	return alone
}
