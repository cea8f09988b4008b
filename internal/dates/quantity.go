package dates

// count is a number of units, in halves.
type count struct {
	halves int
	loose  bool // a few, a couple
}

// maxCount keeps distances within what dates can be.
const maxCount = 5000

// count reads "3", "twenty-two", "a", "a couple of", "half a", "two or three".
func (p *parser) count(i int) (count, int) {
	t := p.at(i)
	switch t.kind {
	case kArticle:
		switch n := p.at(i + 1); n.kind {
		case kFew:
			c, j := p.count(i + 1)
			return c, j
		case kHalf:
			return count{halves: 1}, i + 2
		case kHundred:
			return count{halves: 200}, i + 2
		}
		return count{halves: 2}, i + 1
	case kFew:
		j := i + 1
		if p.at(j).kind == kOf {
			j++
		}
		return count{halves: 2 * int(t.val), loose: true}, j
	case kHalf:
		if p.at(i+1).kind == kArticle {
			return count{halves: 1}, i + 2
		}
	case kNumber:
		n, j := p.cardinal(i)
		if n <= 0 || n > maxCount {
			return count{}, i
		}
		c := count{halves: 2 * n}
		if p.at(j).kind == kOr {
			if more, k := p.cardinal(j + 1); more > n && more < 3*n+3 {
				return count{halves: n + more, loose: true}, k
			}
		}
		if p.at(j).kind == kAnd && p.at(j+1).kind == kArticle && p.at(j+2).kind == kHalf {
			return count{halves: 2*n + 1}, j + 3
		}
		return c, j
	}
	return count{}, i
}

// cardinal reads a whole number in digits or words.
func (p *parser) cardinal(i int) (int, int) {
	t := p.at(i)
	if t.kind != kNumber || t.is(flagOrdinal|flagGlued|flagTens) {
		return 0, i
	}
	n, j := int(t.val), i+1
	if !t.is(flagSpelled) {
		return n, j
	}
	if n >= 20 {
		k := j
		if s := p.at(k); s.kind == kSign && s.val == '-' {
			k++
		}
		if u := p.at(k); u.kind == kNumber && u.is(flagSpelled) && !u.is(flagOrdinal) && u.val < 10 && u.val > 0 {
			n, j = n+int(u.val), k+1
		}
	}
	if p.at(j).kind == kHundred && n < 50 {
		n, j = n*100, j+1
	}
	return n, j
}

// quantity reads "two weeks ago", "a few days before 9 June", "three years from
// now", "two Fridays ago".
func (p *parser) quantity(i int) (match, int) {
	c, j := p.count(i)
	u := p.at(j)
	if c.halves == 0 || u.kind != kUnit && u.kind != kWeekday || u.is(flagGlued) {
		return match{}, i
	}
	j++
	switch t := p.at(j); { // "a year and a half ago", "a week or two ago", "a week or so ago"
	case t.kind == kAnd && p.at(j+1).kind == kArticle && p.at(j+2).kind == kHalf:
		c.halves, j = c.halves+1, j+3
	case t.kind == kOr && p.at(j+1).kind == kNumber && p.at(j+1).val < 10:
		c, j = count{halves: c.halves/2 + int(p.at(j+1).val), loose: true}, j+2
	case t.kind == kOr && p.says(j+1, "so"):
		c.loose, j = true, j+2
	}
	switch t := p.at(j); t.kind {
	case kAgo:
		return p.away(p.today, c, u, -1), j + 1
	case kFromNow:
		return p.away(p.today, c, u, 1), j + 1
	case kFrom:
		if n := p.at(j + 1); n.kind == kNow || n.kind == kDay && n.val == 0 {
			return p.away(p.today, c, u, 1), j + 2
		}
		return p.beside(u, c, j)
	case kBefore, kAfter, kPast:
		return p.beside(u, c, j)
	}
	return match{}, i
}

// forward reads "3 days" after "in".
func (p *parser) forward(i int) (match, int) {
	c, j := p.count(i)
	u := p.at(j)
	if c.halves == 0 || u.kind != kUnit || u.is(flagGlued) || u.val == uSecond || p.at(j+1).kind == kAgo || relatesTo(p.at(j+1)) || p.at(j+1).kind == kOf {
		return match{}, i
	}
	m := p.away(p.today, c, u, 1)
	m.conf *= 0.7 // "done in 3 days" is a duration
	return m, j + 1
}

// away resolves a distance from a day. The farther, the wider: "two weeks ago"
// is a week, "four years ago" a year.
func (p *parser) away(day int, c count, u *token, sign int) match {
	m := match{conf: 0.9, relative: true}
	slack := 0
	if c.loose {
		m.conf, slack = 0.75, max(1, c.halves/4)
	}
	if u.kind == kWeekday {
		first := p.lastWeekday(int(u.val), day) - 7*(c.halves/2-1)
		if sign > 0 {
			first = p.lastWeekday(int(u.val), day+8) + 7*(c.halves/2-1)
		}
		m.span, m.grain = days(first, 1), GrainDay
		return m
	}
	unit := int(u.val)
	m.grain = unitGrain(unit)
	at := p.move(day, c, unit, sign)
	switch unit {
	case uMinute, uHour, uSecond:
		base := p.now + civil(sign*c.halves)*unitSecs(unit)/2
		half := unitSecs(unit) * civil(1+slack) / 2
		m.span = span{base - max(half, 1), base + max(half, 1)}
	case uDay:
		m.span = days(at-slack, 1+2*slack)
	case uWeek:
		m.span = days(at-3-7*slack, 7+14*slack)
	case uFortnight:
		m.span = days(at-3, 7)
	case uWeekend:
		first := lastWeekend(day) - 7*(c.halves/2-1)
		if sign > 0 {
			first = monday(day+2) + 5 + 7*(c.halves/2-1)
		}
		m.span = days(first-7*slack, 2+14*slack)
	case uMonth:
		m.span = days(at-15-30*slack, 31+60*slack)
	case uQuarter:
		m.span = days(at-45, 91)
	case uYear:
		y, _, _ := dateOf(at)
		m.span = span{yearSpan(y - slack).from, yearSpan(y + slack).to}
		if c.halves%2 == 1 {
			m.span, m.grain = days(at-91, 183), GrainSeason
		}
	case uDecade:
		y, _, _ := dateOf(at)
		m.span = span{yearSpan(y - 3 - 10*slack).from, yearSpan(y + 3 + 10*slack).to}
	default:
		return match{}
	}
	return m
}

// beside reads "before 9 June 2023" at i after a unit or weekday: what lies
// directly before or after a date, or count units from it.
func (p *parser) beside(u *token, c count, i int) (match, int) {
	sign, j := 1, i+1
	switch p.at(i).kind {
	case kBefore:
		sign = -1
	case kPast: // prior to
		if p.at(j).kind != kTo {
			return match{}, i
		}
		sign, j = -1, j+1
	}
	if n := p.at(j); n.kind == kRel && n.val != 0 && u.kind == kUnit { // the week before last
		if int(n.val) == sign && !p.startsDate(j+1) {
			m := p.unitAround(int(u.val), 2*sign, false)
			return m, j + 1
		}
	}
	x, k := p.point(j, ctxTime)
	if !x.ok() || x.rel != On && x.rel != Around || x.grain < GrainDay && (u.kind != kUnit || u.val > uHour) {
		return match{}, i
	}
	return p.adjacent(u, c, x, sign), k
}

func (p *parser) startsDate(i int) bool {
	switch p.at(i).kind {
	case kUnit, kWeekday, kMonth, kSeason, kHoliday, kThanks, kNew, kPart, kNumber, kFew:
		return true
	}
	return false
}

// adjacent resolves "the week before x" and "two days after x".
func (p *parser) adjacent(u *token, c count, x match, sign int) match {
	first, last := x.span.from.day(), (x.span.to - 1).day()
	base := first
	if sign > 0 {
		base = last
	}
	m := match{conf: 0.9 * x.conf, end: x.end, relative: x.relative, repeat: x.repeat, others: x.others}
	if u.kind == kPart {
		m.span, m.grain = partSpan(base+sign, int(u.val)), GrainPart
		return m
	}
	unit := int(u.val)
	if u.kind == kUnit && c.halves == 2 && !c.loose {
		switch {
		case unit == uWeek:
			m.span, m.grain = days(base-7, 7), GrainWeek
			if sign > 0 {
				m.span = days(base+1, 7)
			}
			return m
		case unit == uMonth && x.grain >= GrainMonth, unit == uYear && x.grain >= GrainYear:
			y, mo, _ := dateOf(base)
			if m.grain = unitGrain(unit); unit == uMonth {
				m.span = monthSpan(y, mo+sign)
			} else {
				m.span = yearSpan(y + sign)
			}
			return m
		case unit == uMonth:
			at := addMonths(base, sign)
			m.span, m.grain = span{dayCivil(min(at, base)), dayCivil(max(at, base))}, GrainMonth
			return m
		}
	}
	if unit <= uHour && u.kind == kUnit || unit == uSecond && u.kind == kUnit {
		edge := x.span.from
		if sign > 0 {
			edge = x.span.to
		}
		edge += civil(sign*c.halves) * unitSecs(unit) / 2
		m.span, m.grain = span{edge - 1800, edge + 1800}, GrainHour
		return m
	}
	away := p.away(base, c, u, sign)
	m.span, m.grain = away.span, away.grain
	if c.loose {
		m.conf *= 0.9
	}
	return m
}
