package dates

import "time"

const (
	// MaxParse bounds the dates of one query: each is compared with each candidate.
	MaxParse = 16
	// maxFillers is how many words like "the" and "of" may stand together in a date.
	maxFillers = 4
)

// Parse returns the dates in a query, in order, at most MaxParse. Relative ones are
// resolved against ref, in whose zone all ranges are. A date without a year is
// looked for in the past.
func Parse(text string, ref time.Time) []Expr { return parse(text, ref, MaxParse) }

// parser reads the dates of one text.
type parser struct {
	tokens      []token
	loc         *time.Location
	today       int
	year, month int
}

// match is one date before it gets a relation.
type match struct {
	span   span
	grain  Grain
	yearly bool
	conf   float64
}

func parse(text string, ref time.Time, limit int) []Expr {
	p := &parser{tokens: scan(text), loc: ref.Location(), today: dayIn(ref)}
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

// none is what stands beyond the text, and where nothing has to stand.
var none token

func (p *parser) at(i int) *token {
	if i < 0 || i >= len(p.tokens) {
		return &none
	}
	return &p.tokens[i]
}

// skip returns the first token from i on that is no filler, or where too many of them
// stand together to belong to a date: a run of them must not be read again from each.
func (p *parser) skip(i int) int {
	for end := i + maxFillers; i < end && p.at(i).kind == kFiller; {
		i++
	}
	return i
}

// expression reads a date with its relation at token i, and how many tokens it has.
func (p *parser) expression(i int) (Expr, int) {
	t := p.at(i)
	if t.kind == kRelate {
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
	if r := p.at(i + n); r.kind == kRelated {
		return p.expr(m, Relation(r.val), i, i+n+1), n + 1
	}
	return p.expr(m, On, i, i+n), n
}

// introduces reports whether a date follows a word of this kind.
func introduces(k kind) bool { return k == kPrep || k == kRelate || k == kRel }

// beside reads "the day after tomorrow", "two weeks before 9 June" and "the last
// Friday before 9 June": a unit or weekday counted from another day.
func (p *parser) beside(i int) (match, int) {
	start, count := i, 1
	switch t := p.at(i); t.kind {
	case kRel:
		i++
	case kNumber:
		count, i = t.val, i+1
	}
	t, r := p.at(i), p.at(i+1)
	side := 1
	if related(r, kRelate, Before) {
		side = -1
	} else if !related(r, kRelate, After) {
		return match{}, 0
	}
	m, n := p.point(i+2, true)
	if n == 0 || m.grain != GrainDay {
		return match{}, 0
	}
	origin := *p
	origin.today = m.span.from
	origin.year, origin.month, _ = dateOf(origin.today)
	var found match
	switch {
	case t.kind == kWeekday:
		found = origin.relWeekday([]*token{{entry: entry{val: side}}, t})
	case t.kind != kUnit:
		return match{}, 0
	case t.plural || t.val == uDay:
		found = origin.distance(side*count, t)
	default:
		found = origin.around(side, t)
	}
	m.span, m.grain = found.span, found.grain
	return m, i + 2 + n - start
}

// expr turns a match of the tokens from i to end into an expression.
func (p *parser) expr(m match, r Relation, i, end int) Expr {
	i = p.skip(i)
	e := Expr{Start: p.at(i).start, End: p.at(end - 1).end, Range: m.span.in(p.loc), Grain: m.grain, Relation: r,
		Confidence: m.conf}
	e.Yearly = m.yearly && (r == On || r == Around) // "since May" means one May
	return e
}

// point reads one date without a relation at token i. Introduced says that a word
// before it makes a date likely.
func (p *parser) point(i int, introduced bool) (match, int) {
	start := i
	i = p.skip(i)
	likely := introduced || i > start
	var found [longestShape]*token
	for k := range shapes {
		s := &shapes[k]
		n := p.fits(s, i, &found)
		if n == 0 || s.introduced && !likely || n == 1 && p.at(i).unsure && !introduced {
			continue
		}
		if m := s.read(p, found[:]); m.span.valid() {
			return m, i - start + n
		}
	}
	return match{}, 0
}

// fits matches a shape with the tokens from i on, between which fillers may stand,
// and returns how many tokens it takes, or 0. found gets what fulfils each wish.
func (p *parser) fits(s *shape, i int, found *[longestShape]*token) int {
	end := i
	for k, w := range s.wants {
		next := end
		if next > i {
			next = p.skip(next)
		}
		switch t := p.at(next); {
		case w.fits(t):
			found[k], end = t, next+1
		case w.optional:
			found[k] = &none
		default:
			return 0
		}
	}
	return end - i
}
