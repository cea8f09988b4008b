package dates

// weekdayAround resolves "last Friday" to the latest before today.
func (p *parser) weekdayAround(w, rel int) match {
	m := match{grain: GrainDay, conf: 0.9, relative: true}
	week := monday(p.today)
	switch rel {
	case -1:
		day := p.lastWeekday(w, p.today)
		m.span = days(day, 1)
		if other := week - 7 + w; other != day {
			m.alt = days(other, 1)
		}
	case 0:
		m.span = days(week+w, 1)
	case 1:
		day := p.lastWeekday(w, p.today+8) // the first after today
		m.span = days(day, 1)
		if other := week + 7 + w; other != day {
			m.alt = days(other, 1)
		}
	}
	return m
}

// lastWeekday returns the latest weekday w before a day.
func (p *parser) lastWeekday(w, day int) int {
	return day - 1 - (weekday(day-1)-w+7)%7
}

// lastWeekend returns the Saturday of the latest weekend that began before a day
// and, for a day of a weekend, of the one before.
func lastWeekend(day int) int { return monday(day) - 2 }

// pick chooses the latest of yearly spans that is over (-1), the one of this
// year (0), or the first that has not begun (1). of returns the span of a year.
func (p *parser) pick(rel int, of func(y int) span) (best, other span) {
	y := p.year + 1
	switch rel {
	case -1:
		for y > p.year-2 && of(y).to > dayCivil(p.today) {
			y--
		}
		return of(y), of(y - 1)
	case 1:
		for y = p.year - 1; y < p.year+2 && of(y).from <= p.now; {
			y++
		}
		return of(y), of(y + 1)
	}
	return of(p.year), span{}
}

// nearest returns the latest of yearly spans that has begun, and the next.
func (p *parser) nearest(of func(y int) span) (best, coming span) {
	y := p.year + 1
	for y > p.year-8 && (of(y).empty() || of(y).from > p.now) {
		y--
	}
	return of(y), of(y + 1)
}

func (p *parser) monthAround(month, rel int) match {
	m := match{grain: GrainMonth, conf: 0.9, relative: true}
	m.span, m.alt = p.pick(rel, func(y int) span { return monthSpan(y, month) })
	return m
}

func (p *parser) seasonAround(season, rel int) match {
	m := match{grain: GrainSeason, conf: 0.85, relative: true}
	m.span, m.alt = p.pick(rel, func(y int) span { return seasonSpan(y, season) })
	if rel == 0 && season == 3 && p.month < 3 {
		m.span = seasonSpan(p.year-1, season)
	}
	return m
}

func (p *parser) quarterAround(q, rel int) match {
	m := match{grain: GrainQuarter, conf: 0.85, relative: true}
	m.span, m.alt = p.pick(rel, func(y int) span { return quarterSpan(y, q) })
	return m
}

func (p *parser) holidayAround(h holiday, rel int) match {
	m := match{grain: h.grain(), conf: 0.9 * h.trust(), relative: true}
	m.span, m.alt = p.pick(rel, h.span)
	return m
}

// seasonSpan returns the meteorological season of the northern hemisphere that
// begins in year y; winter ends in the next.
func seasonSpan(y, season int) span {
	m := 3 + 3*season
	return span{dayCivil(dayOf(y, m, 1)), dayCivil(dayOf(y, m+3, 1))}
}

func quarterSpan(y, q int) span {
	return span{dayCivil(dayOf(y, 3*q-2, 1)), dayCivil(dayOf(y, 3*q+1, 1))}
}

// unitAround resolves "last week", "this month", "next year".
func (p *parser) unitAround(unit, rel int, past bool) match {
	m := match{conf: 0.95, relative: true}
	if past && unit != uWeekend && p.rolls(unit) {
		return p.period(count{halves: 2}, unit, rel)
	}
	switch unit {
	case uWeek:
		m.span, m.grain = days(monday(p.today)+7*rel, 7), GrainWeek
	case uWeekend:
		first := monday(p.today) + 5 + 7*rel
		m.span, m.grain = days(first, 2), GrainDay
	case uMonth:
		m.span, m.grain = monthSpan(p.year, p.month+rel), GrainMonth
	case uQuarter:
		m.span, m.grain = quarterSpan(p.year, (p.month+2)/3+rel), GrainQuarter
	case uYear:
		m.span, m.grain = yearSpan(p.year+rel), GrainYear
	case uDecade:
		first := p.year - p.year%10 + 10*rel
		m.span, m.grain = span{yearSpan(first).from, yearSpan(first + 9).to}, GrainDecade
	case uHour:
		if rel == 0 {
			return match{}
		}
		return p.period(count{halves: 2}, unit, rel)
	default:
		return match{}
	}
	return m
}

// rolls reports whether "the past X" ends today rather than with a calendar X.
func (p *parser) rolls(unit int) bool {
	return unit == uDay || unit == uWeek || unit == uMonth || unit == uYear || unit == uDecade
}

// period resolves "the last 3 months" and "the next few days".
func (p *parser) period(c count, unit, rel int) match {
	m := match{conf: 0.85, grain: unitGrain(unit), relative: true}
	if c.loose {
		m.conf = 0.7
	}
	switch {
	case unit <= uHour || unit == uSecond:
		n := civil(c.halves) * unitSecs(unit) / 2
		m.span = span{p.now - n, p.now + 1}
		if rel > 0 {
			m.span = span{p.now, p.now + n}
		}
	case rel < 0:
		m.span = span{dayCivil(p.move(p.today, c, unit, -1)), dayCivil(p.today + 1)}
	default:
		m.span = span{dayCivil(p.today), dayCivil(p.move(p.today, c, unit, 1) + 1)}
	}
	return m
}

func unitSecs(unit int) civil {
	switch unit {
	case uHour:
		return 3600
	case uMinute:
		return 60
	}
	return 1
}

func unitGrain(unit int) Grain {
	switch unit {
	case uMinute, uHour, uSecond:
		return GrainHour
	case uDay, uWeekend:
		return GrainDay
	case uWeek, uFortnight:
		return GrainWeek
	case uMonth:
		return GrainMonth
	case uQuarter:
		return GrainQuarter
	case uYear:
		return GrainYear
	}
	return GrainDecade
}

// move goes n units of days or more from a day.
func (p *parser) move(day int, c count, unit, sign int) int {
	n := sign * c.halves
	switch unit {
	case uDay:
		return day + n/2
	case uWeek, uWeekend:
		return day + n*7/2
	case uFortnight:
		return day + n*7
	case uMonth:
		return addMonths(day, n/2) + n%2*15
	case uQuarter:
		return addMonths(day, n*3/2)
	case uYear:
		return addMonths(day, n*6)
	case uDecade:
		return addMonths(day, n*60)
	}
	return day
}
