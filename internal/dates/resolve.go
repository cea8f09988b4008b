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

// named is a date with the name of its month; a year or day of 0 is missing.
func (p *parser) named(year, month, day int) match {
	if year == 0 {
		return p.yearly(month, day)
	}
	return absolute(year, month, day)
}

// inYear is a date whose year may be counted from the present one.
func (p *parser) inYear(year, month, day int) match {
	if year >= minYear {
		return absolute(year, month, day)
	}
	m := absolute(p.year+year, month, day)
	m.conf = 0.95
	return m
}

// yearly is a day or, with day 0, a month without a year: the latest that has begun.
func (p *parser) yearly(month, day int) match {
	y := p.year
	m := absolute(y, month, day)
	for (m.span.empty() || m.span.from > p.today) && y > p.year-8 {
		y--
		m = absolute(y, month, day)
	}
	m.yearly, m.conf = true, 0.9
	return m
}

// weekday is one that nothing else fixes: the latest.
func (p *parser) weekday(t []*token) match {
	ago := (weekday(p.today) - t[0].val + 7) % 7
	m := match{span: daySpan(p.today - ago), conf: 0.85}
	if t[0].unsure {
		m.conf = 0.6
	}
	return m
}

// around is the unit that lies n units from the present one.
func (p *parser) around(n int, unit *token) match {
	rule, day := unitRules[unit.val], p.today
	switch {
	case unit.plural || unit.val == uDay:
		return match{}
	case unit.val == uMonth:
		day = dayOf(p.year, p.month, 1) // so that 31 January moves into February
	}
	return match{span: rule.around(rule.move(day, n)), grain: rule.grain, conf: 0.95}
}

// dayOfWeek resolves 上周五 and "Friday next week".
func (p *parser) dayOfWeek(w, weeks int) match {
	return match{span: daySpan(monday(p.today) + w + 7*weeks), conf: 0.95}
}

// dayFrom is the day so many days from today.
func (p *parser) dayFrom(n int) match {
	return match{span: daySpan(p.today + n), conf: 0.95}
}

// relWeekday resolves "last Friday" to the latest before today, and "next Friday" to
// the first after it. 上周五 is that of the last week.
func (p *parser) relWeekday(t []*token) match {
	n, w := t[0].val, t[1].val
	switch {
	case t[1].han:
	case n == -1:
		return p.dayFrom(-1 - (weekday(p.today-1)-w+7)%7)
	case n == 1:
		return p.dayFrom(1 + (w-weekday(p.today+1)+7)%7)
	}
	return p.dayOfWeek(w, n)
}

// relMonth resolves "last May" to the latest that is over; "next May" likewise.
func (p *parser) relMonth(t []*token) match {
	n, month := t[0].val, t[1].val
	if n < 0 && month < p.month || n > 0 && month > p.month {
		n = 0
	}
	return p.inYear(n, month, 0)
}

// distance resolves "two weeks ago" (n = -2) and 三天后 (n = 3).
func (p *parser) distance(n int, unit *token) match {
	rule := unitRules[unit.val]
	day := rule.move(p.today, n)
	m := match{span: span{day - rule.vague, day + rule.vague + 1}, grain: rule.grain, conf: 0.9}
	if rule.vague < 0 {
		m.span = rule.around(day)
	}
	return m
}

// stretch reads "the last 3 months" (n = -3) and "the next few days".
func (p *parser) stretch(n int, unit *token) match {
	rule := unitRules[unit.val]
	day := rule.move(p.today, n)
	return match{span: span{min(day, p.today), max(day, p.today) + 1}, conf: 0.85, grain: rule.grain}
}
