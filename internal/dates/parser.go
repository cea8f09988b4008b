package dates

import (
	"slices"
	"time"
)

// Bounds on what is read of one text: what is matched pair by pair must not grow
// with the text.
const (
	MaxParse  = 16
	MaxInText = 64
)

// Parse returns the expressions of time in a query, in order, at most MaxParse.
// Relative ones are resolved against ref, in whose zone all ranges are; what has
// no year is looked for in the past.
func Parse(text string, ref time.Time) []Expr { return parse(text, ref, false, MaxParse) }

// InText returns the expressions of time in a message with the time at which it
// was said as the reference: "yesterday" in a message of 8 May is 7 May. What has
// no year is the nearest, past or to come. What says nothing about when
// ("recently", "in the morning") is left out. At most MaxInText are read.
func InText(text string, occurred time.Time) []Expr {
	out := parse(text, occurred, true, MaxInText)
	keep := out[:0]
	for _, e := range out {
		if e.Confidence >= 0.45 && e.Repeat != Daily {
			keep = append(keep, e)
		}
	}
	return keep
}

func parse(text string, ref time.Time, plans bool, limit int) []Expr {
	if y := ref.Year(); y < minYear || y > maxYear {
		return nil
	}
	p := parser{now: civilOf(ref), loc: ref.Location(), plans: plans, limit: limit}
	p.s = text
	p.today = p.now.day()
	p.year, p.month, _ = dateOf(p.today)
	p.run()
	return p.out
}

// parser walks over one text.
type parser struct {
	scanner
	loc         *time.Location
	now         civil
	today       int
	year, month int
	plans       bool // what has no year may be to come
	limit       int  // of expressions
	depth       int
	out         []Expr
}

// match is what a rule found; conf 0 means nothing.
type match struct {
	span   span
	alt    span
	grain  Grain
	rel    Relation
	repeat Repeat
	others float64
	conf   float64
	// relative: it depends on the reference even with its repetition.
	relative bool
	// end is the byte after a match that ends within a token, else 0.
	end int
}

func (m match) ok() bool { return m.conf > 0 }

func (p *parser) run() {
	i := p.slide(0)
	skip := 0 // tokens before this offset belong to an expression
	for {
		if !p.done && i > p.n-lookAhead {
			i = p.slide(i)
		}
		if i >= p.n || len(p.out) >= p.limit {
			return
		}
		t := p.at(i)
		if t.start < skip {
			i++
			continue
		}
		if t.kind == kHan || t.kind == kNumber && p.beforeHan(t.end) {
			if m, end := p.han(t.start); m.ok() {
				p.emit(m, t.start, end)
				skip = end
				continue
			}
		}
		if t.kind <= kHan && (t.kind != kSign || t.val != '\'') {
			i++
			continue
		}
		m, first, next := p.expr(i)
		if !m.ok() {
			i++
			continue
		}
		last := p.at(next - 1)
		end := last.end
		if m.end > last.start {
			end = m.end
		}
		p.emit(m, p.at(first).start, end)
		skip, i = end, next
	}
}

// emit keeps a match whose range is sane.
func (p *parser) emit(m match, start, end int) {
	edge := span{dayCivil(dayOf(minYear, 1, 2)), dayCivil(dayOf(maxYear, 12, 31))}
	if !m.span.valid() || m.rel == Before && m.span.from < edge.from || m.rel == After && m.span.to > edge.to {
		return
	}
	if !m.alt.valid() {
		m.alt = span{}
	}
	p.out = append(p.out, Expr{
		Start: start, End: end, Range: m.span.in(p.loc), Alt: m.alt.in(p.loc),
		Grain: m.grain, Relation: m.rel, Repeat: m.repeat, Others: m.others, Confidence: m.conf, Relative: m.relative,
	})
}

// expr reads an expression with its relation. It returns the first token that
// belongs to it, and the one after the last.
func (p *parser) expr(i int) (m match, first, next int) {
	switch t := p.at(i); t.kind {
	case kBetween:
		m, next = p.twoDates(i + 1)
		return m, i, next
	case kFrom:
		if m, next = p.twoDates(i + 1); m.ok() {
			return m, i, next
		}
		if m, next = p.point(i+1, ctxTime); m.ok() && m.rel == On && (p.at(next).kind == kOn || p.says(next, "onwards", "onward")) {
			m.rel = Since // from May on
			m.settle()
			return m, i, next + 1
		}
		return m, i + 1, next
	case kTo:
		if p.says(i-1, "up") {
			return p.related(i, i+1, Until, 1)
		}
	case kBefore:
		return p.related(i, i+1, Before, 1)
	case kPast:
		if p.at(i+1).kind == kTo {
			return p.related(i, i+2, Before, 1)
		}
	case kAfter, kFollowing:
		return p.related(i, i+1, After, 1)
	case kSince:
		return p.related(i, i+1, Since, 1)
	case kUntil:
		return p.related(i, i+1, Until, 1)
	case kBy:
		return p.related(i, i+1, Until, 0.8)
	case kAround:
		return p.related(i, i+1, Around, 1)
	case kDuring:
		return p.inOn(i, ctxIn)
	case kIn:
		if m, next = p.forward(i + 1); m.ok() {
			return m, i, next
		}
		return p.inOn(i, ctxIn)
	case kOn, kOver:
		return p.inOn(i, ctxOn)
	case kAt:
		return p.inOn(i, ctxAt)
	case kOf:
		return p.inOn(i, ctxOf)
	}
	m, next = p.spanned(i, ctxNone)
	return m, i, next
}

// says reports whether token i is one of words.
func (p *parser) says(i int, words ...string) bool {
	t := p.at(i)
	return t.kind != kEnd && slices.Contains(words, p.s[t.start:t.end])
}

// context says what stands before a date: with a preposition of time, words that
// also mean something else are dates.
type context uint8

const (
	ctxNone context = iota
	ctxOf
	ctxIn
	ctxOn
	ctxAt
	ctxTime // before, since, last, …
)

func (p *parser) inOn(i int, ctx context) (match, int, int) {
	j := i + 1
	rel := On
	if p.at(j).kind == kAround { // "at about 7 pm", "in around 2010"
		j, rel = j+1, Around
	}
	m, next := p.spanned(j, ctx)
	if m.ok() && m.rel == On {
		m.rel = rel
	}
	return m, j, next
}

// related reads the date at j that a word at i relates to.
func (p *parser) related(i, j int, rel Relation, trust float64) (match, int, int) {
	if p.at(j).kind == kAround {
		j++
	}
	ctx := ctxTime
	if rel == Around {
		ctx = ctxNone
	}
	m, next := p.point(j, ctx)
	if m.ok() {
		m.conf *= trust
		if m.rel == On {
			m.rel = rel
		}
		m.settle()
	}
	return m, i, next
}

// settle drops the readings that a relation excludes: nothing happens since
// a date that is to come, and the last May is meant, not any.
func (m *match) settle() {
	switch m.rel {
	case Since:
		m.repeat, m.others, m.alt = Once, 0, span{}
	case Before, After, Until:
		m.alt = span{}
	}
}

// spanned reads a date and, if a second one follows with "to" or a dash, both.
func (p *parser) spanned(i int, ctx context) (match, int) {
	a, j := p.point(i, ctx)
	if !a.ok() {
		return a, i
	}
	switch t := p.at(j); {
	case t.kind == kTo, t.kind == kUntil, t.kind == kSign && t.val == '-':
		if m, k := p.secondDate(a, j+1); m.ok() {
			return m, k
		}
	}
	return a, j
}

// twoDates reads "A and B" and "A to B" after between or from.
func (p *parser) twoDates(i int) (match, int) {
	a, j := p.point(i, ctxTime)
	if !a.ok() {
		return a, i
	}
	switch t := p.at(j); {
	case t.kind == kAnd, t.kind == kTo, t.kind == kUntil, t.kind == kSign && t.val == '-':
		return p.secondDate(a, j+1)
	}
	return match{}, i
}

func (p *parser) secondDate(a match, i int) (match, int) {
	b, j := p.point(i, ctxTime)
	if !b.ok() {
		return b, i
	}
	return join(a, b), j
}

// join spans two dates. What one of them leaves open the other settles: in
// "between March and May 2022" March is of 2022.
func join(a, b match) match {
	if a.rel != On || b.rel != On {
		return match{}
	}
	if b.repeat == Monthly && a.grain == GrainDay { // 3月5号到8号
		b.span = b.span.shift(Monthly, b.span.from.monthsTo(a.span.from))
		if b.span.from < a.span.from {
			b.span = b.span.shift(Monthly, 1)
		}
		b.repeat = a.repeat
	}
	switch {
	case a.repeat == Once && b.repeat != Once || a.repeat == b.repeat && b.repeat != Once:
		for n := 0; n < 2 && b.span.from < a.span.from; n++ {
			b.span = b.span.shift(b.repeat, 1)
		}
		if a.repeat == Once && b.repeat == Yearly {
			ya, _, _ := dateOf(a.span.from.day())
			yb, _, _ := dateOf(b.span.from.day())
			b.span = b.span.shift(Yearly, ya-yb)
			if b.span.from < a.span.from {
				b.span = b.span.shift(Yearly, 1)
			}
		}
	case a.repeat == Yearly && b.repeat == Once:
		ya, _, _ := dateOf(a.span.from.day())
		yb, _, _ := dateOf(b.span.from.day())
		a.span = a.span.shift(Yearly, yb-ya)
		if a.span.from > b.span.from {
			a.span = a.span.shift(Yearly, -1)
		}
		a.repeat = Once
	}
	if b.span.from < a.span.from {
		return match{}
	}
	m := match{span: span{a.span.from, b.span.to}, end: b.end, relative: a.relative || b.relative, grain: max(a.grain, b.grain), rel: Between, repeat: a.repeat, others: a.others, conf: min(a.conf, b.conf)}
	if m.repeat != b.repeat || m.repeat == Once {
		m.repeat, m.others = Once, 0
	}
	return m
}

// shift moves a span by n periods.
func (s span) shift(r Repeat, n int) span {
	switch r {
	case Daily:
		return span{s.from + civil(n)*daySecs, s.to + civil(n)*daySecs}
	case Weekly:
		return span{s.from + civil(n)*7*daySecs, s.to + civil(n)*7*daySecs}
	case Monthly, Yearly:
		if r == Yearly {
			n *= 12
		}
		return span{s.from.addMonths(n), s.to.addMonths(n)}
	}
	return s
}

// monthsTo returns how many months the month of d lies after that of c.
func (c civil) monthsTo(d civil) int {
	ya, ma, _ := dateOf(c.day())
	yb, mb, _ := dateOf(d.day())
	return (yb-ya)*12 + mb - ma
}

func (c civil) addMonths(n int) civil {
	day := c.day()
	return c - dayCivil(day) + dayCivil(addMonths(day, n))
}

// beforeHan reports whether Chinese follows a number that ends at i.
func (p *parser) beforeHan(i int) bool {
	p.blank(&i)
	return i < len(p.s) && p.s[i] >= 0xe3
}
