package dates

import "time"

// Bounds on what is read of one text: what is matched pair by pair must not grow
// with the text.
const (
	MaxParse  = 16
	MaxInText = 64
)

// Parse returns the dates in a query, in order, at most MaxParse. Relative ones are
// resolved against ref, in whose zone all ranges are. A date without a year is
// looked for in the past.
func Parse(text string, ref time.Time) []Expr { return parse(text, ref, false, MaxParse) }

// InText returns the dates in a message, with the time at which it was said as the
// reference: "yesterday" in a message of 8 May is 7 May. A date without a year is
// the nearest one, past or to come. At most MaxInText are read.
func InText(text string, occurred time.Time) []Expr { return parse(text, occurred, true, MaxInText) }

// parser reads the dates of one text.
type parser struct {
	tokens      []token
	loc         *time.Location
	today       int
	year, month int
	nearest     bool // a date without a year is the nearest one, not the latest
}

// match is one date before it gets a relation.
type match struct {
	span, alt span
	grain     Grain
	repeat    Repeat
	others    float64
	relative  bool
	conf      float64
}

func parse(text string, ref time.Time, nearest bool, limit int) []Expr {
	p := &parser{tokens: scan(text), loc: ref.Location(), today: dayIn(ref), nearest: nearest}
	p.year, p.month, _ = dateOf(p.today)
	var out []Expr
	for i := 0; i < len(p.tokens) && len(out) < limit; {
		e, n := p.expression(i)
		if w := e.Window(); n > 0 && w.From.Before(w.To) { // nothing lies before the first year
			out = append(out, e)
		}
		i += max(n, 1)
	}
	return out
}

// at returns token i; beyond the text it is one of kind kEnd.
func (p *parser) at(i int) *token {
	if i < 0 || i >= len(p.tokens) {
		return &token{}
	}
	return &p.tokens[i]
}

// expression reads a date with its relation at token i, and how many tokens it has.
func (p *parser) expression(i int) (Expr, int) {
	t := p.at(i)
	switch t.kind {
	case kBetween:
		if e, n := p.between(i, i+1); n > 0 {
			return e, n
		}
	case kRelate:
		if m, n := p.point(i+1, true); n > 0 {
			return p.expr(m, Relation(t.val), i, i+1+n), 1 + n
		}
	}
	m, n := p.beside(i)
	if n == 0 {
		m, n = p.point(i, introduces(p.at(i-1).kind))
	}
	if n == 0 {
		return Expr{}, 0
	}
	if and := p.at(i + n); and.kind == kAnd && and.val == 1 {
		if e, k := p.between(i, i); k > 0 {
			return e, k
		}
	}
	if r := p.at(i + n); r.kind == kRelated {
		return p.expr(m, Relation(r.val), i, i+n+1), n + 1
	}
	return p.expr(m, On, i, i+n), n
}

// beside reads "the day after tomorrow", "two weeks before 9 June" and "the last
// Friday before 9 June": a unit or weekday counted from another day.
func (p *parser) beside(i int) (match, int) {
	start, count := i, &token{entry: entry{kind: kNumber, val: 1}}
	if p.at(i).kind == kRel {
		i++
	} else if k := p.at(i).kind; k == kNumber || k == kLoose {
		count, i = p.at(i), i+1
	}
	t, r := p.at(i), p.at(i+1)
	if t.kind != kUnit && (t.kind != kWeekday || t.plural) || !related(r, kRelate, Before) && !related(r, kRelate, After) {
		return match{}, 0
	}
	m, n := p.point(i+2, true)
	if n == 0 || m.grain != GrainDay {
		return match{}, 0
	}
	origin, side := *p, 1
	if origin.today = m.span.from; Relation(r.val) == Before {
		side = -1
	}
	origin.year, origin.month, _ = dateOf(origin.today)
	var found match
	switch {
	case t.kind == kWeekday:
		found = origin.relWeekday([]*token{{entry: entry{val: side}}, t})
	case t.plural || t.val == uDay:
		found = origin.distance(count, t, side, m.conf)
	default:
		found = origin.around(side, t)
	}
	m.span, m.alt, m.grain = found.span, span{}, found.grain
	return m, i + 2 + n - start
}

// introduces reports whether a date follows a word of this kind.
func introduces(k kind) bool {
	return k == kPrep || k == kIn || k == kRelate || k == kBetween || k == kRel
}

// between reads "between March and May 2022" and 从5月到7月, whose word is at token
// from and whose first date at token i.
func (p *parser) between(from, i int) (Expr, int) {
	a, n := p.point(i, true)
	if n == 0 || p.at(i+n).kind != kAnd {
		return Expr{}, 0
	}
	b, k := p.point(i+n+1, true)
	if k == 0 {
		return Expr{}, 0
	}
	if a.repeat == Yearly && (b.repeat != Yearly || a.span.from > b.span.from) { // the year of the second holds for both
		y, _, _ := dateOf(b.span.from)
		ay, _, _ := dateOf(a.span.from)
		a.span = a.span.shift(Yearly, y-ay)
		if a.span.from > b.span.from {
			a.span = a.span.shift(Yearly, -1)
		}
	}
	b.span.from, b.alt = a.span.from, span{}
	b.conf = min(a.conf, b.conf)
	if !b.span.valid() {
		return Expr{}, 0
	}
	end := i + n + 1 + k
	return p.expr(b, Between, from, end), end - from
}

// expr turns a match of the tokens from i to end into an expression.
func (p *parser) expr(m match, r Relation, i, end int) Expr {
	for p.at(i).kind == kFiller {
		i++
	}
	e := Expr{Start: p.at(i).start, End: p.at(end - 1).end, Range: m.span.in(p.loc), Grain: m.grain, Relation: r,
		Repeat: m.repeat, Others: m.others, Relative: m.relative, Confidence: m.conf}
	if m.alt.valid() && m.alt != m.span {
		e.Alt = m.alt.in(p.loc)
	}
	if r != On && r != Around { // "since May" means one May
		e.Alt, e.Repeat, e.Others = Range{}, Once, 0
	}
	return e
}

// point reads one date without a relation at token i. Introduced says that a word
// before it makes a date likely.
func (p *parser) point(i int, introduced bool) (match, int) {
	start, likely := i, introduced
	for p.at(i).kind == kFiller {
		i, likely = i+1, true
	}
	var found [longestShape]*token
	for k := range shapes {
		s := &shapes[k]
		n := p.fits(s, i, &found)
		if n == 0 || s.introduced && !likely && !found[0].han {
			continue
		}
		if m := s.read(p, found[:len(s.wants)]); m.span.valid() {
			if len(s.wants) == 1 && found[0].unsure && !introduced {
				continue
			}
			return m, i - start + n
		}
	}
	return match{}, 0
}

// fits matches a shape with the tokens from i on, between which fillers may stand,
// and returns how many tokens it takes, or 0.
func (p *parser) fits(s *shape, i int, found *[longestShape]*token) int {
	k := i
	for n, w := range s.wants {
		t := p.at(k)
		for n > 0 && t.kind == kFiller {
			k++
			t = p.at(k)
		}
		if !w(t) {
			return 0
		}
		found[n] = t
		k++
	}
	return k - i
}
