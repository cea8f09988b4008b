package rank

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"mneme/internal/dates"
	"mneme/internal/text"
)

// sureDate is the least confidence in a date of the query that counts: "recently"
// hardly names a time.
const sureDate = 0.5

// findDates reads the times that the query names. "Last week" is counted from Now.
func (p *Plan) findDates() {
	p.dates = slices.DeleteFunc(dates.Parse(p.Query, p.Now), func(e dates.Expr) bool { return e.Confidence < sureDate })
}

// inDate reports whether a term of the query lies in a date.
func (p *Plan) inDate(t text.Token) bool {
	return slices.ContainsFunc(p.dates, func(e dates.Expr) bool { return t.Start >= e.Start && t.End <= e.End })
}

// dateFit says how well the time when a document occurred fits those of the query, 0..1.
func (p *Plan) dateFit(at int64) float64 {
	return min(dates.Best(p.dates, time.Unix(0, at).UTC()), 1)
}

var (
	// clock is a time of day behind a date, and nothing behind it.
	clock = regexp.MustCompile(`^[\s,，]*(?:周.|星期.|[A-Za-z]{3,9})?[\s,，]*\d{1,2}[:：]\d{2}(?:[:：]\d{2})?\s*(?:[AaPp][Mm]|UTC|GMT)?[\s)\]）】。.]*$`)
	// stamped is a date in digits with its time of day in one piece, "2024-04-04T07:42:00Z".
	stamped = regexp.MustCompile(`T\d{2}:\d{2}[\d:.]*(?:Z|[+-]\d{2}:?\d{2})?$`)
	// about are the words that make a time at the end of a query one that it asks about.
	about = regexp.MustCompile(`(?i)(?:^|\s)(?:on|at|since|before|after|until|till|by|from|to|and|or|around|between|am|um|seit|vor|nach|bis|ab|vom|zum|und|oder)\s*$`)
	// label stands before such a date: an opening bracket, and what the time is called.
	label = regexp.MustCompile(`[\s,，]*(?:[(（\[【][^()（）\[\]【】:：]{0,24}[:：]?)?\s*$`)
)

// WithoutStamp takes from the end of a query when it was asked, to the minute, which some
// agents append: it says nothing of what is looked for. A query that is nothing else
// stays as it is.
func WithoutStamp(query string, now time.Time) string {
	for _, e := range dates.Parse(query, now) {
		rest := query[e.End:]
		if !clock.MatchString(rest) && !(strings.Trim(rest, " )]）】。.Z") == "" && stamped.MatchString(strings.TrimRight(query[e.Start:], " )]）】。."))) {
			continue
		}
		asked := query[:e.Start]
		at := label.FindStringIndex(asked)
		if bracketed := strings.ContainsAny(asked[at[0]:], "(（[【"); !bracketed && (e.Relation != dates.On || about.MatchString(asked)) {
			continue
		}
		asked = asked[:at[0]]
		if strings.TrimSpace(asked) != "" {
			return asked
		}
	}
	return query
}
