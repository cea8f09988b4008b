package dates

// unitRules say what each unit is: the span of the one that holds a day, how to move
// by n of them, by how many days "n units ago" may be off (-1: the whole unit around
// that day is meant), and its grain.
var unitRules = [...]struct {
	around func(day int) span
	move   func(day, n int) int
	vague  int
	grain  Grain
}{
	uDay:     {daySpan, func(day, n int) int { return day + n }, 0, GrainDay},
	uWeek:    {weekSpan, func(day, n int) int { return day + 7*n }, 3, GrainWeek},
	uWeekend: {weekendSpan, func(day, n int) int { return day + 7*n }, -1, GrainDay},
	uMonth:   {func(day int) span { y, m, _ := dateOf(day); return monthSpan(y, m) }, addMonths, 15, GrainMonth},
	uYear:    {func(day int) span { y, _, _ := dateOf(day); return yearSpan(y) }, func(day, n int) int { return addMonths(day, 12*n) }, -1, GrainYear},
}

// unitOf returns the unit that a token names.
func unitOf(t *token) int {
	switch t.kind {
	case kWeek:
		return uWeek
	case kYear:
		return uYear
	case kMonthOf:
		return uMonth
	}
	return t.val
}

// absolute is a date with its year; a month or day of 0 leaves out the rest.
func absolute(y, m, d int) match {
	switch {
	case m == 0:
		return match{span: yearSpan(y), grain: GrainYear, conf: 0.95}
	case d == 0:
		return match{span: monthSpan(y, m), grain: GrainMonth, conf: 0.98}
	}
	return match{span: dateSpan(y, m, d), conf: 1}
}

// numeric reads a date in digits. 3/4/2023 has two readings.
func (p *parser) numeric(t []*token) match {
	m := absolute(t[0].y, t[0].m, t[0].d)
	if t[0].swapped {
		m.alt, m.conf = dateSpan(t[0].y, t[0].d, t[0].m), 0.6
	}
	return m
}

// relative marks a date that was counted from the reference.
func relative(m match) match {
	m.relative, m.conf = true, min(m.conf, 0.95)
	return m
}

// yearly is a day or, with day 0, a month without a year: the latest that has begun.
// The next one is the second reading.
func (p *parser) yearly(month, day int) match {
	y := p.year
	m := absolute(y, month, day)
	for (m.span.empty() || m.span.from > p.today) && y > p.year-8 {
		y--
		m = absolute(y, month, day)
	}
	m.alt, m.repeat, m.others, m.conf = absolute(y+1, month, day).span, Yearly, 0.8, 0.9
	return p.choose(m)
}

// weekly is a weekday that nothing else fixes; conf says how sure its name is.
func (p *parser) weekly(w int, conf float64) match {
	day := p.today - (weekday(p.today)-w+7)%7
	return p.choose(match{span: daySpan(day), alt: daySpan(day + 7), repeat: Weekly, others: 0.4, conf: conf})
}

// choose swaps the readings of a message's date if the coming one is nearer.
func (p *parser) choose(m match) match {
	if p.nearest && !m.alt.empty() && m.alt.from-p.today <= p.today-m.span.to {
		m.span, m.alt = m.alt, m.span
	}
	return m
}

// every is a weekday of every week.
func (p *parser) every(w int) match {
	m := p.weekly(w, 0.85)
	m.alt, m.others = span{}, 1
	return m
}

func (p *parser) weekday(t []*token) match {
	switch {
	case t[0].plural:
		return p.every(t[0].val)
	case t[0].unsure:
		return p.weekly(t[0].val, 0.6)
	}
	return p.weekly(t[0].val, 0.85)
}

// around is the unit that lies n units from the present one.
func (p *parser) around(n int, unit *token) match {
	u, day := unitOf(unit), p.today
	switch {
	case unit.plural || u == uDay:
		return match{}
	case u == uMonth:
		day = dayOf(p.year, p.month, 1) // so that 31 January moves into February
	}
	rule := unitRules[u]
	return match{span: rule.around(rule.move(day, n)), grain: rule.grain, conf: 0.95, relative: true}
}

// dayOfWeek resolves 上周五 and "Friday next week".
func (p *parser) dayOfWeek(w, weeks int) match {
	return match{span: daySpan(monday(p.today) + w + 7*weeks), conf: 0.95, relative: true}
}

// dayFrom is the day so many days from today.
func (p *parser) dayFrom(n int) match {
	return match{span: daySpan(p.today + n), conf: 0.95, relative: true}
}

// relWeekday resolves "last Friday" to the latest before today, and "next Friday" to
// the first after it. If the Friday of the last or next week is another day, that is
// the second reading.
func (p *parser) relWeekday(t []*token) match {
	n, w := t[0].val, t[1].val
	m := p.dayOfWeek(w, n)
	day := m.span.from
	switch n {
	case -1:
		day = p.today - 1 - (weekday(p.today-1)-w+7)%7
	case 1:
		day = p.today + 1 + (w-weekday(p.today+1)+7)%7
	}
	if day != m.span.from {
		m.span, m.alt = daySpan(day), m.span
	}
	return m
}

// relMonth resolves "last May" to the latest that is over; "next May" likewise.
func (p *parser) relMonth(t []*token) match {
	n, month, y := t[0].val, t[1].val, p.year
	switch {
	case n < 0 && month >= p.month:
		y--
	case n > 0 && month <= p.month:
		y++
	}
	m := relative(absolute(y, month, 0))
	if n != 0 {
		m.alt = monthSpan(y+n, month)
	}
	return m
}

// distance resolves "two weeks ago" (sign -1) and "in 3 days" (sign 1).
func (p *parser) distance(count, unit *token, sign int, conf float64) match {
	rule := unitRules[unitOf(unit)]
	day := rule.move(p.today, sign*count.val)
	m := match{span: span{day - rule.vague, day + rule.vague + 1}, grain: rule.grain, conf: conf, relative: true}
	if rule.vague < 0 {
		m.span = rule.around(day)
	}
	if count.kind == kLoose {
		wide := rule.move(p.today, 1) - p.today
		m.span, m.conf = span{m.span.from - wide, m.span.to + wide}, conf-0.15
	}
	return m
}

// stretch reads "the last 3 months" and "the next few days".
func (p *parser) stretch(rel int, count, unit *token) match {
	rule := unitRules[unitOf(unit)]
	m := match{conf: 0.85, grain: rule.grain, relative: true}
	switch {
	case rel < 0:
		m.span = span{rule.move(p.today, -count.val), p.today + 1}
	case rel > 0:
		m.span = span{p.today, rule.move(p.today, count.val) + 1}
	}
	if count.kind == kLoose {
		m.conf = 0.7
	}
	return m
}
